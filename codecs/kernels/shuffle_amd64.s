//go:build !noasm

#include "textflag.h"
#include "network_amd64.h"

// Each routine loads a group of vectors, runs a network of unpack
// instructions, and stores. Addresses of planes: base, +stride, +2·stride,
// +3·stride from one register, four planes a register.

// Four bytes of four elements, in a lane, to four elements' byte 0, byte 1 …
DATA gather4<>+0(SB)/8, $0x0d0905010c080400
DATA gather4<>+8(SB)/8, $0x0f0b07030e0a0602
DATA gather4<>+16(SB)/8, $0x0d0905010c080400
DATA gather4<>+24(SB)/8, $0x0f0b07030e0a0602
GLOBL gather4<>(SB), RODATA|NOPTR, $32

// Double words of the two lanes, side by side.
DATA lanes4<>+0(SB)/8, $0x0000000400000000
DATA lanes4<>+8(SB)/8, $0x0000000500000001
DATA lanes4<>+16(SB)/8, $0x0000000600000002
DATA lanes4<>+24(SB)/8, $0x0000000700000003
GLOBL lanes4<>(SB), RODATA|NOPTR, $32

// Even bytes of a lane, then the odd ones.
DATA gather2<>+0(SB)/8, $0x0e0c0a0806040200
DATA gather2<>+8(SB)/8, $0x0f0d0b0907050301
DATA gather2<>+16(SB)/8, $0x0e0c0a0806040200
DATA gather2<>+24(SB)/8, $0x0f0d0b0907050301
GLOBL gather2<>(SB), RODATA|NOPTR, $32

#define ARGS \
	MOVQ dst+0(FP), DI    \
	MOVQ src+8(FP), SI    \
	MOVQ stride+16(FP), R8 \
	MOVQ n+24(FP), CX

// func unshuffle2AVX2(dst, src *byte, stride, n int); 32 elements a step
TEXT ·unshuffle2AVX2(SB), NOSPLIT, $0-32
	ARGS

loop:
	VMOVDQU    (SI), Y0
	VMOVDQU    (SI)(R8*1), Y1
	VPUNPCKLBW Y1, Y0, Y2
	VPUNPCKHBW Y1, Y0, Y3
	VPERM2I128 $0x20, Y3, Y2, Y4
	VPERM2I128 $0x31, Y3, Y2, Y5
	VMOVDQU    Y4, (DI)
	VMOVDQU    Y5, 32(DI)
	ADDQ       $32, SI
	ADDQ       $64, DI
	SUBQ       $32, CX
	JNZ        loop
	VZEROUPPER
	RET

// func shuffle2AVX2(dst, src *byte, stride, n int); 32 elements a step
TEXT ·shuffle2AVX2(SB), NOSPLIT, $0-32
	ARGS
	VMOVDQU gather2<>(SB), Y15

loop:
	VMOVDQU    (SI), Y0
	VMOVDQU    32(SI), Y1
	VPSHUFB    Y15, Y0, Y0
	VPSHUFB    Y15, Y1, Y1
	VPERMQ     $0xd8, Y0, Y0
	VPERMQ     $0xd8, Y1, Y1
	VPERM2I128 $0x20, Y1, Y0, Y2
	VPERM2I128 $0x31, Y1, Y0, Y3
	VMOVDQU    Y2, (DI)
	VMOVDQU    Y3, (DI)(R8*1)
	ADDQ       $64, SI
	ADDQ       $32, DI
	SUBQ       $32, CX
	JNZ        loop
	VZEROUPPER
	RET

// func unshuffle4AVX2(dst, src *byte, stride, n int); 32 elements a step
TEXT ·unshuffle4AVX2(SB), NOSPLIT, $0-32
	ARGS
	LEAQ (R8)(R8*2), R9

loop:
	VMOVDQU    (SI), Y0
	VMOVDQU    (SI)(R8*1), Y1
	VMOVDQU    (SI)(R8*2), Y2
	VMOVDQU    (SI)(R9*1), Y3
	VPUNPCKLBW Y1, Y0, Y4
	VPUNPCKHBW Y1, Y0, Y5
	VPUNPCKLBW Y3, Y2, Y6
	VPUNPCKHBW Y3, Y2, Y7
	VPUNPCKLWD Y6, Y4, Y0
	VPUNPCKHWD Y6, Y4, Y1
	VPUNPCKLWD Y7, Y5, Y2
	VPUNPCKHWD Y7, Y5, Y3
	VPERM2I128 $0x20, Y1, Y0, Y4
	VPERM2I128 $0x20, Y3, Y2, Y5
	VPERM2I128 $0x31, Y1, Y0, Y6
	VPERM2I128 $0x31, Y3, Y2, Y7
	VMOVDQU    Y4, (DI)
	VMOVDQU    Y5, 32(DI)
	VMOVDQU    Y6, 64(DI)
	VMOVDQU    Y7, 96(DI)
	ADDQ       $32, SI
	ADDQ       $128, DI
	SUBQ       $32, CX
	JNZ        loop
	VZEROUPPER
	RET

// func shuffle4AVX2(dst, src *byte, stride, n int); 32 elements a step
TEXT ·shuffle4AVX2(SB), NOSPLIT, $0-32
	ARGS
	LEAQ    (R8)(R8*2), R9
	VMOVDQU gather4<>(SB), Y15
	VMOVDQU lanes4<>(SB), Y14

loop:
	VMOVDQU     (SI), Y0
	VMOVDQU     32(SI), Y1
	VMOVDQU     64(SI), Y2
	VMOVDQU     96(SI), Y3
	VPSHUFB     Y15, Y0, Y0
	VPSHUFB     Y15, Y1, Y1
	VPSHUFB     Y15, Y2, Y2
	VPSHUFB     Y15, Y3, Y3
	VPERMD      Y0, Y14, Y0
	VPERMD      Y1, Y14, Y1
	VPERMD      Y2, Y14, Y2
	VPERMD      Y3, Y14, Y3
	VPUNPCKLQDQ Y1, Y0, Y4
	VPUNPCKHQDQ Y1, Y0, Y5
	VPUNPCKLQDQ Y3, Y2, Y6
	VPUNPCKHQDQ Y3, Y2, Y7
	VPERM2I128  $0x20, Y6, Y4, Y0
	VPERM2I128  $0x20, Y7, Y5, Y1
	VPERM2I128  $0x31, Y6, Y4, Y2
	VPERM2I128  $0x31, Y7, Y5, Y3
	VMOVDQU     Y0, (DI)
	VMOVDQU     Y1, (DI)(R8*1)
	VMOVDQU     Y2, (DI)(R8*2)
	VMOVDQU     Y3, (DI)(R9*1)
	ADDQ        $128, SI
	ADDQ        $32, DI
	SUBQ        $32, CX
	JNZ         loop
	VZEROUPPER
	RET

// func unshuffle8AVX2(dst, src *byte, stride, n int); 32 elements a step
TEXT ·unshuffle8AVX2(SB), NOSPLIT, $0-32
	ARGS
	LEAQ (R8)(R8*2), R9
	LEAQ (SI)(R8*4), BX

loop:
	LOAD_PLANES(SI, BX)
	JOIN8
	VPERM2I128 $0x20, Y9, Y8, Y0
	VPERM2I128 $0x20, Y11, Y10, Y1
	VPERM2I128 $0x20, Y13, Y12, Y2
	VPERM2I128 $0x20, Y15, Y14, Y3
	VPERM2I128 $0x31, Y9, Y8, Y4
	VPERM2I128 $0x31, Y11, Y10, Y5
	VPERM2I128 $0x31, Y13, Y12, Y6
	VPERM2I128 $0x31, Y15, Y14, Y7
	VMOVDQU    Y0, (DI)
	VMOVDQU    Y1, 32(DI)
	VMOVDQU    Y2, 64(DI)
	VMOVDQU    Y3, 96(DI)
	VMOVDQU    Y4, 128(DI)
	VMOVDQU    Y5, 160(DI)
	VMOVDQU    Y6, 192(DI)
	VMOVDQU    Y7, 224(DI)
	ADDQ       $32, SI
	ADDQ       $32, BX
	ADDQ       $256, DI
	SUBQ       $32, CX
	JNZ        loop
	VZEROUPPER
	RET

// func shuffle8AVX2(dst, src *byte, stride, n int); 32 elements a step
TEXT ·shuffle8AVX2(SB), NOSPLIT, $0-32
	ARGS
	LEAQ (R8)(R8*2), R9
	LEAQ (DI)(R8*4), BX

loop:
	LOAD_PAIRS(SI)
	SPLIT8
	STORE_PLANES(DI, BX)
	ADDQ $256, SI
	ADDQ $32, DI
	ADDQ $32, BX
	SUBQ $32, CX
	JNZ  loop
	VZEROUPPER
	RET

// func unshuffle16AVX2(dst, src *byte, stride, n int); 16 elements a step
//
// The low lanes hold planes 0 to 7, the high lanes planes 8 to 15.
TEXT ·unshuffle16AVX2(SB), NOSPLIT, $0-32
	ARGS
	LEAQ (R8)(R8*2), R9
	LEAQ (SI)(R8*4), BX
	LEAQ (SI)(R8*8), R10
	LEAQ (BX)(R8*8), R11

loop:
	VMOVDQU     (SI), X0
	VMOVDQU     (SI)(R8*1), X1
	VMOVDQU     (SI)(R8*2), X2
	VMOVDQU     (SI)(R9*1), X3
	VMOVDQU     (BX), X4
	VMOVDQU     (BX)(R8*1), X5
	VMOVDQU     (BX)(R8*2), X6
	VMOVDQU     (BX)(R9*1), X7
	VINSERTI128 $1, (R10), Y0, Y0
	VINSERTI128 $1, (R10)(R8*1), Y1, Y1
	VINSERTI128 $1, (R10)(R8*2), Y2, Y2
	VINSERTI128 $1, (R10)(R9*1), Y3, Y3
	VINSERTI128 $1, (R11), Y4, Y4
	VINSERTI128 $1, (R11)(R8*1), Y5, Y5
	VINSERTI128 $1, (R11)(R8*2), Y6, Y6
	VINSERTI128 $1, (R11)(R9*1), Y7, Y7
	JOIN8
	VPERMQ      $0xd8, Y8, Y8
	VPERMQ      $0xd8, Y9, Y9
	VPERMQ      $0xd8, Y10, Y10
	VPERMQ      $0xd8, Y11, Y11
	VPERMQ      $0xd8, Y12, Y12
	VPERMQ      $0xd8, Y13, Y13
	VPERMQ      $0xd8, Y14, Y14
	VPERMQ      $0xd8, Y15, Y15
	VMOVDQU     Y8, (DI)
	VMOVDQU     Y9, 32(DI)
	VMOVDQU     Y10, 64(DI)
	VMOVDQU     Y11, 96(DI)
	VMOVDQU     Y12, 128(DI)
	VMOVDQU     Y13, 160(DI)
	VMOVDQU     Y14, 192(DI)
	VMOVDQU     Y15, 224(DI)
	ADDQ        $16, SI
	ADDQ        $16, BX
	ADDQ        $16, R10
	ADDQ        $16, R11
	ADDQ        $256, DI
	SUBQ        $16, CX
	JNZ         loop
	VZEROUPPER
	RET

// func shuffle16AVX2(dst, src *byte, stride, n int); 16 elements a step
TEXT ·shuffle16AVX2(SB), NOSPLIT, $0-32
	ARGS
	LEAQ (R8)(R8*2), R9
	LEAQ (DI)(R8*4), BX
	LEAQ (DI)(R8*8), R10
	LEAQ (BX)(R8*8), R11

loop:
	VPERMQ       $0xd8, (SI), Y0
	VPERMQ       $0xd8, 32(SI), Y1
	VPERMQ       $0xd8, 64(SI), Y2
	VPERMQ       $0xd8, 96(SI), Y3
	VPERMQ       $0xd8, 128(SI), Y4
	VPERMQ       $0xd8, 160(SI), Y5
	VPERMQ       $0xd8, 192(SI), Y6
	VPERMQ       $0xd8, 224(SI), Y7
	SPLIT8
	VMOVDQU      X8, (DI)
	VMOVDQU      X9, (DI)(R8*1)
	VMOVDQU      X10, (DI)(R8*2)
	VMOVDQU      X11, (DI)(R9*1)
	VMOVDQU      X12, (BX)
	VMOVDQU      X13, (BX)(R8*1)
	VMOVDQU      X14, (BX)(R8*2)
	VMOVDQU      X15, (BX)(R9*1)
	VEXTRACTI128 $1, Y8, (R10)
	VEXTRACTI128 $1, Y9, (R10)(R8*1)
	VEXTRACTI128 $1, Y10, (R10)(R8*2)
	VEXTRACTI128 $1, Y11, (R10)(R9*1)
	VEXTRACTI128 $1, Y12, (R11)
	VEXTRACTI128 $1, Y13, (R11)(R8*1)
	VEXTRACTI128 $1, Y14, (R11)(R8*2)
	VEXTRACTI128 $1, Y15, (R11)(R9*1)
	ADDQ         $256, SI
	ADDQ         $16, DI
	ADDQ         $16, BX
	ADDQ         $16, R10
	ADDQ         $16, R11
	SUBQ         $16, CX
	JNZ          loop
	VZEROUPPER
	RET
