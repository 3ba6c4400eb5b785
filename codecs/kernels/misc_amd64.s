//go:build !noasm

#include "textflag.h"

// func swapAVX2(dst, src, mask *byte, n int); 64 bytes a step
TEXT ·swapAVX2(SB), NOSPLIT, $0-32
	MOVQ           dst+0(FP), DI
	MOVQ           src+8(FP), SI
	MOVQ           mask+16(FP), AX
	MOVQ           n+24(FP), CX
	VBROADCASTI128 (AX), Y2

loop:
	VMOVDQU (SI), Y0
	VMOVDQU 32(SI), Y1
	VPSHUFB Y2, Y0, Y0
	VPSHUFB Y2, Y1, Y1
	VMOVDQU Y0, (DI)
	VMOVDQU Y1, 32(DI)
	ADDQ    $64, SI
	ADDQ    $64, DI
	SUBQ    $64, CX
	JNZ     loop
	VZEROUPPER
	RET

// How often the sum b counts each byte of a vector: 32 times the first.
DATA weights<>+0(SB)/8, $0x191a1b1c1d1e1f20
DATA weights<>+8(SB)/8, $0x1112131415161718
DATA weights<>+16(SB)/8, $0x090a0b0c0d0e0f10
DATA weights<>+24(SB)/8, $0x0102030405060708
GLOBL weights<>(SB), RODATA|NOPTR, $32

DATA ones<>+0(SB)/8, $0x0001000100010001
DATA ones<>+8(SB)/8, $0x0001000100010001
DATA ones<>+16(SB)/8, $0x0001000100010001
DATA ones<>+24(SB)/8, $0x0001000100010001
GLOBL ones<>(SB), RODATA|NOPTR, $32

// SUM adds the eight double words of Y into the register r; t is a scratch.
#define SUM(X, Y, t, r) \
	VEXTRACTI128 $1, Y, t    \
	VPADDD       t, X, X     \
	VPSHUFD      $0x4e, X, t \
	VPADDD       t, X, X     \
	VPSHUFD      $0xb1, X, t \
	VPADDD       t, X, X     \
	VMOVD        X, r

// func adlerAVX2(a, b uint32, p *byte, n int) (newA, newB uint32); 32 bytes a step
//
// Over n bytes a grows by their sum, and b by n·a plus 32 times the sum of the
// bytes before each vector plus the weighted sum within the vectors.
TEXT ·adlerAVX2(SB), NOSPLIT, $0-32
	MOVL    a+0(FP), AX
	MOVL    b+4(FP), BX
	MOVQ    p+8(FP), SI
	MOVQ    n+16(FP), CX
	MOVL    AX, DX
	IMULL   CX, DX
	ADDL    DX, BX
	VPXOR   Y0, Y0, Y0           // sum of the bytes
	VPXOR   Y1, Y1, Y1           // sum of Y0 before each vector
	VPXOR   Y2, Y2, Y2           // weighted sums
	VPXOR   Y7, Y7, Y7
	VMOVDQU weights<>(SB), Y6
	VMOVDQU ones<>(SB), Y5

loop:
	VMOVDQU    (SI), Y3
	VPADDD     Y0, Y1, Y1
	VPSADBW    Y7, Y3, Y4
	VPADDD     Y4, Y0, Y0
	VPMADDUBSW Y6, Y3, Y3
	VPMADDWD   Y5, Y3, Y3
	VPADDD     Y3, Y2, Y2
	ADDQ       $32, SI
	SUBQ       $32, CX
	JNZ        loop
	SUM(X0, Y0, X3, DX)
	ADDL       DX, AX
	SUM(X1, Y1, X3, DX)
	SHLL       $5, DX
	ADDL       DX, BX
	SUM(X2, Y2, X3, DX)
	ADDL       DX, BX
	VZEROUPPER
	MOVL       AX, newA+24(FP)
	MOVL       BX, newB+28(FP)
	RET
