//go:build !noasm

#include "textflag.h"
#include "network_amd64.h"

// Bit planes are byte planes of 8-byte groups whose bits are transposed, so
// the byte networks do the coarse work and each 8-byte word is an 8×8 matrix
// of bits to turn.

#define MASK(name, word) \
	DATA name<>+0(SB)/8, word  \
	DATA name<>+8(SB)/8, word  \
	DATA name<>+16(SB)/8, word \
	DATA name<>+24(SB)/8, word \
	GLOBL name<>(SB), RODATA|NOPTR, $32

MASK(mask7, $0x00aa00aa00aa00aa)
MASK(mask14, $0x0000cccc0000cccc)
MASK(mask28, $0x00000000f0f0f0f0)
MASK(identity, $0x8040201008040201)

// Bytes of each word in reverse.
DATA reverse8<>+0(SB)/8, $0x0001020304050607
DATA reverse8<>+8(SB)/8, $0x08090a0b0c0d0e0f
DATA reverse8<>+16(SB)/8, $0x0001020304050607
DATA reverse8<>+24(SB)/8, $0x08090a0b0c0d0e0f
GLOBL reverse8<>(SB), RODATA|NOPTR, $32

// One step of the transposition: swap two squares of bits in each word of r.
#define SQUARES(r, t, shift, mask) \
	VPSRLQ shift, r, t       \
	VPXOR  r, t, t           \
	VPAND  mask<>(SB), t, t  \
	VPXOR  t, r, r           \
	VPSLLQ shift, t, t       \
	VPXOR  t, r, r

#define TURN(r, t) \
	SQUARES(r, t, $7, mask7)   \
	SQUARES(r, t, $14, mask14) \
	SQUARES(r, t, $28, mask28)

// GFNI multiplies bit matrices; a product with the identity, taken with the
// operands the other way round, is the transpose with the bits of each byte
// in reverse. That is undone by reversing the rows before.
#define TURN_GFNI(r, id) \
	VGF2P8AFFINEQB $0, r, id, r

#define STORE_ELEMENTS(p) \
	VMOVDQU      X8, (p)             \
	VMOVDQU      X9, 16(p)           \
	VMOVDQU      X10, 32(p)          \
	VMOVDQU      X11, 48(p)          \
	VMOVDQU      X12, 64(p)          \
	VMOVDQU      X13, 80(p)          \
	VMOVDQU      X14, 96(p)          \
	VMOVDQU      X15, 112(p)         \
	VEXTRACTI128 $1, Y8, 128(p)      \
	VEXTRACTI128 $1, Y9, 144(p)      \
	VEXTRACTI128 $1, Y10, 160(p)     \
	VEXTRACTI128 $1, Y11, 176(p)     \
	VEXTRACTI128 $1, Y12, 192(p)     \
	VEXTRACTI128 $1, Y13, 208(p)     \
	VEXTRACTI128 $1, Y14, 224(p)     \
	VEXTRACTI128 $1, Y15, 240(p)

// func bitsToBytesAVX2(dst, src *byte, planes, stride, n, dstStride int); 32 columns a step
TEXT ·bitsToBytesAVX2(SB), NOSPLIT, $0-48
	MOVQ dst+0(FP), R12
	MOVQ src+8(FP), R13
	MOVQ planes+16(FP), DX
	MOVQ stride+24(FP), R8
	MOVQ dstStride+40(FP), R15
	LEAQ (R8)(R8*2), R9

plane:
	MOVQ R12, DI
	MOVQ R13, SI
	LEAQ (SI)(R8*4), BX
	MOVQ n+32(FP), CX

loop:
	LOAD_PLANES(SI, BX)
	JOIN8
	TURN(Y8, Y0)
	TURN(Y9, Y1)
	TURN(Y10, Y2)
	TURN(Y11, Y3)
	TURN(Y12, Y4)
	TURN(Y13, Y5)
	TURN(Y14, Y6)
	TURN(Y15, Y7)
	STORE_ELEMENTS(DI)
	ADDQ $32, SI
	ADDQ $32, BX
	ADDQ $256, DI
	SUBQ $32, CX
	JNZ  loop
	ADDQ R15, R12
	LEAQ (R13)(R8*8), R13
	DECQ DX
	JNZ  plane
	VZEROUPPER
	RET

// func bitsToBytesGFNI(dst, src *byte, planes, stride, n, dstStride int); 32 columns a step
TEXT ·bitsToBytesGFNI(SB), NOSPLIT, $0-48
	MOVQ dst+0(FP), R12
	MOVQ src+8(FP), R13
	MOVQ planes+16(FP), DX
	MOVQ stride+24(FP), R8
	MOVQ dstStride+40(FP), R15
	LEAQ (R8)(R8*2), R9

plane:
	MOVQ R12, DI
	MOVQ R13, SI
	LEAQ (SI)(R8*4), BX
	MOVQ n+32(FP), CX

loop:
	// Rows in reverse, for TURN_GFNI.
	VMOVDQU (BX)(R9*1), Y0
	VMOVDQU (BX)(R8*2), Y1
	VMOVDQU (BX)(R8*1), Y2
	VMOVDQU (BX), Y3
	VMOVDQU (SI)(R9*1), Y4
	VMOVDQU (SI)(R8*2), Y5
	VMOVDQU (SI)(R8*1), Y6
	VMOVDQU (SI), Y7
	JOIN8
	VMOVDQU identity<>(SB), Y0
	TURN_GFNI(Y8, Y0)
	TURN_GFNI(Y9, Y0)
	TURN_GFNI(Y10, Y0)
	TURN_GFNI(Y11, Y0)
	TURN_GFNI(Y12, Y0)
	TURN_GFNI(Y13, Y0)
	TURN_GFNI(Y14, Y0)
	TURN_GFNI(Y15, Y0)
	STORE_ELEMENTS(DI)
	ADDQ    $32, SI
	ADDQ    $32, BX
	ADDQ    $256, DI
	SUBQ    $32, CX
	JNZ     loop
	ADDQ    R15, R12
	LEAQ    (R13)(R8*8), R13
	DECQ    DX
	JNZ     plane
	VZEROUPPER
	RET

// func bytesToBitsAVX2(dst, src *byte, planes, stride, n, srcStride int); 32 columns a step
TEXT ·bytesToBitsAVX2(SB), NOSPLIT, $0-48
	MOVQ dst+0(FP), R12
	MOVQ src+8(FP), R13
	MOVQ planes+16(FP), DX
	MOVQ stride+24(FP), R8
	MOVQ srcStride+40(FP), R15
	LEAQ (R8)(R8*2), R9

plane:
	MOVQ R12, DI
	MOVQ R13, SI
	LEAQ (DI)(R8*4), BX
	MOVQ n+32(FP), CX

loop:
	LOAD_PAIRS(SI)
	TURN(Y0, Y8)
	TURN(Y1, Y9)
	TURN(Y2, Y10)
	TURN(Y3, Y11)
	TURN(Y4, Y12)
	TURN(Y5, Y13)
	TURN(Y6, Y14)
	TURN(Y7, Y15)
	SPLIT8
	STORE_PLANES(DI, BX)
	ADDQ $256, SI
	ADDQ $32, DI
	ADDQ $32, BX
	SUBQ $32, CX
	JNZ  loop
	ADDQ R15, R13
	LEAQ (R12)(R8*8), R12
	DECQ DX
	JNZ  plane
	VZEROUPPER
	RET

// func bytesToBitsGFNI(dst, src *byte, planes, stride, n, srcStride int); 32 columns a step
TEXT ·bytesToBitsGFNI(SB), NOSPLIT, $0-48
	MOVQ dst+0(FP), R12
	MOVQ src+8(FP), R13
	MOVQ planes+16(FP), DX
	MOVQ stride+24(FP), R8
	MOVQ srcStride+40(FP), R15
	LEAQ (R8)(R8*2), R9

plane:
	MOVQ R12, DI
	MOVQ R13, SI
	LEAQ (DI)(R8*4), BX
	MOVQ n+32(FP), CX

loop:
	LOAD_PAIRS(SI)
	VMOVDQU identity<>(SB), Y8
	VMOVDQU reverse8<>(SB), Y9
	VPSHUFB Y9, Y0, Y0
	VPSHUFB Y9, Y1, Y1
	VPSHUFB Y9, Y2, Y2
	VPSHUFB Y9, Y3, Y3
	VPSHUFB Y9, Y4, Y4
	VPSHUFB Y9, Y5, Y5
	VPSHUFB Y9, Y6, Y6
	VPSHUFB Y9, Y7, Y7
	TURN_GFNI(Y0, Y8)
	TURN_GFNI(Y1, Y8)
	TURN_GFNI(Y2, Y8)
	TURN_GFNI(Y3, Y8)
	TURN_GFNI(Y4, Y8)
	TURN_GFNI(Y5, Y8)
	TURN_GFNI(Y6, Y8)
	TURN_GFNI(Y7, Y8)
	SPLIT8
	STORE_PLANES(DI, BX)
	ADDQ    $256, SI
	ADDQ    $32, DI
	ADDQ    $32, BX
	SUBQ    $32, CX
	JNZ     loop
	ADDQ    R15, R13
	LEAQ    (R12)(R8*8), R12
	DECQ    DX
	JNZ     plane
	VZEROUPPER
	RET
