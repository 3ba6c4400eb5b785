//go:build !noasm

#include "textflag.h"

// repeat<>[d*32:] are the two shuffles that make 32 bytes of a match at distance d
// below 16: byte i of the match is byte i%d of the 16 that are loaded. The last one is for
// all larger distances and changes nothing.
DATA repeat<>+0(SB)/8, $0x0000000000000000
DATA repeat<>+8(SB)/8, $0x0000000000000000
DATA repeat<>+16(SB)/8, $0x0000000000000000
DATA repeat<>+24(SB)/8, $0x0000000000000000
DATA repeat<>+32(SB)/8, $0x0000000000000000
DATA repeat<>+40(SB)/8, $0x0000000000000000
DATA repeat<>+48(SB)/8, $0x0000000000000000
DATA repeat<>+56(SB)/8, $0x0000000000000000
DATA repeat<>+64(SB)/8, $0x0100010001000100
DATA repeat<>+72(SB)/8, $0x0100010001000100
DATA repeat<>+80(SB)/8, $0x0100010001000100
DATA repeat<>+88(SB)/8, $0x0100010001000100
DATA repeat<>+96(SB)/8, $0x0100020100020100
DATA repeat<>+104(SB)/8, $0x0002010002010002
DATA repeat<>+112(SB)/8, $0x0201000201000201
DATA repeat<>+120(SB)/8, $0x0100020100020100
DATA repeat<>+128(SB)/8, $0x0302010003020100
DATA repeat<>+136(SB)/8, $0x0302010003020100
DATA repeat<>+144(SB)/8, $0x0302010003020100
DATA repeat<>+152(SB)/8, $0x0302010003020100
DATA repeat<>+160(SB)/8, $0x0201000403020100
DATA repeat<>+168(SB)/8, $0x0004030201000403
DATA repeat<>+176(SB)/8, $0x0302010004030201
DATA repeat<>+184(SB)/8, $0x0100040302010004
DATA repeat<>+192(SB)/8, $0x0100050403020100
DATA repeat<>+200(SB)/8, $0x0302010005040302
DATA repeat<>+208(SB)/8, $0x0504030201000504
DATA repeat<>+216(SB)/8, $0x0100050403020100
DATA repeat<>+224(SB)/8, $0x0006050403020100
DATA repeat<>+232(SB)/8, $0x0100060504030201
DATA repeat<>+240(SB)/8, $0x0201000605040302
DATA repeat<>+248(SB)/8, $0x0302010006050403
DATA repeat<>+256(SB)/8, $0x0706050403020100
DATA repeat<>+264(SB)/8, $0x0706050403020100
DATA repeat<>+272(SB)/8, $0x0706050403020100
DATA repeat<>+280(SB)/8, $0x0706050403020100
DATA repeat<>+288(SB)/8, $0x0706050403020100
DATA repeat<>+296(SB)/8, $0x0605040302010008
DATA repeat<>+304(SB)/8, $0x0504030201000807
DATA repeat<>+312(SB)/8, $0x0403020100080706
DATA repeat<>+320(SB)/8, $0x0706050403020100
DATA repeat<>+328(SB)/8, $0x0504030201000908
DATA repeat<>+336(SB)/8, $0x0302010009080706
DATA repeat<>+344(SB)/8, $0x0100090807060504
DATA repeat<>+352(SB)/8, $0x0706050403020100
DATA repeat<>+360(SB)/8, $0x04030201000a0908
DATA repeat<>+368(SB)/8, $0x01000a0908070605
DATA repeat<>+376(SB)/8, $0x0908070605040302
DATA repeat<>+384(SB)/8, $0x0706050403020100
DATA repeat<>+392(SB)/8, $0x030201000b0a0908
DATA repeat<>+400(SB)/8, $0x0b0a090807060504
DATA repeat<>+408(SB)/8, $0x0706050403020100
DATA repeat<>+416(SB)/8, $0x0706050403020100
DATA repeat<>+424(SB)/8, $0x0201000c0b0a0908
DATA repeat<>+432(SB)/8, $0x0a09080706050403
DATA repeat<>+440(SB)/8, $0x0504030201000c0b
DATA repeat<>+448(SB)/8, $0x0706050403020100
DATA repeat<>+456(SB)/8, $0x01000d0c0b0a0908
DATA repeat<>+464(SB)/8, $0x0908070605040302
DATA repeat<>+472(SB)/8, $0x030201000d0c0b0a
DATA repeat<>+480(SB)/8, $0x0706050403020100
DATA repeat<>+488(SB)/8, $0x000e0d0c0b0a0908
DATA repeat<>+496(SB)/8, $0x0807060504030201
DATA repeat<>+504(SB)/8, $0x01000e0d0c0b0a09
DATA repeat<>+512(SB)/8, $0x0706050403020100
DATA repeat<>+520(SB)/8, $0x0f0e0d0c0b0a0908
DATA repeat<>+528(SB)/8, $0x0706050403020100
DATA repeat<>+536(SB)/8, $0x0f0e0d0c0b0a0908
GLOBL repeat<>(SB), RODATA|NOPTR, $544

// multiple<>[d] is the smallest multiple of a distance d below 16 that is 16 or more.
DATA multiple<>+0(SB)/8, $0x1512141012101000
DATA multiple<>+8(SB)/8, $0x1e1c1a1816141210
GLOBL multiple<>(SB), RODATA|NOPTR, $16

// func decodeArch(dst, src []byte, di, si int) (newDi, newSi int)
//
// Lengths and distances are hard to predict, so there are few branches on them: 64 bytes of
// literals and 32 of a match are always copied, the byte that may follow a length is always
// loaded, and a short distance differs by its shuffle only. Where there are no literals, the
// 64 bytes go to scratch memory: a match that is loaded from behind them would wait.
//
//	SI sequence   R8 end of src, less 80   R13 literals, then match
//	DI output     R9 end of dst, less 64   R14 behind the literals
//	R10 dst       R11 repeat  R12 zero     R15 output behind the literals
TEXT ·decodeArch(SB), NOSPLIT, $64-80
	MOVQ dst_base+0(FP), R10
	MOVQ dst_len+8(FP), R9
	MOVQ src_base+24(FP), SI
	MOVQ src_len+32(FP), R8
	MOVQ di+48(FP), DI
	MOVQ si+56(FP), AX
	CMPQ R9, $64
	JLT  none
	CMPQ R8, $80
	JLT  none
	LEAQ -64(R10)(R9*1), R9
	LEAQ -80(SI)(R8*1), R8
	ADDQ R10, DI
	ADDQ AX, SI
	LEAQ repeat<>(SB), R11
	XORL R12, R12

sequence:
	CMPQ    SI, R8
	JAE     done
	MOVBLZX (SI), AX
	MOVBLZX 1(SI), DX
	MOVL    AX, CX
	SHRL    $4, CX
	LEAQ    1(SI)(CX*1), R14
	LEAQ    17(SI)(DX*1), BX
	LEAQ    2(SI), R13
	CMPL    AX, $240
	CMOVQCC BX, R14
	SBBQ    $0, R13
	MOVQ    R14, CX
	SUBQ    R13, CX
	CMPL    CX, $270
	JEQ     done
	LEAQ    (DI)(CX*1), R15
	CMPQ    R14, R8
	JAE     done
	CMPQ    R15, R9
	JAE     done
	VMOVDQU (R13), Y0
	VMOVDQU 32(R13), Y1
	LEAQ    scratch-64(SP), BX
	TESTL   CX, CX
	CMOVQNE DI, BX
	VMOVDQU Y0, (BX)
	VMOVDQU Y1, 32(BX)
	CMPL    CX, $64
	JHI     literals

match:
	MOVWLZX (R14), CX
	MOVBLZX 2(R14), DX
	ANDL    $15, AX
	MOVL    $2, BX
	CMPL    AX, $15
	CMOVLCS R12, DX
	SBBL    $-1, BX
	ADDL    DX, AX
	CMPL    DX, $255
	JEQ     done
	TESTL   CX, CX
	JEQ     done
	MOVQ    R15, R13
	SUBQ    CX, R13
	CMPQ    R13, R10
	JCS     done
	LEAQ    4(R15)(AX*1), DX
	CMPQ    DX, R9
	JAE     done
	LEAQ    (R14)(BX*1), SI
	MOVQ    DX, DI
	LEAQ    16(R13), BX
	MOVL    $16, R14
	CMPL    CX, $16
	CMOVQCS R13, BX
	CMOVLCS CX, R14
	SHLL    $5, R14
	VMOVDQU (R13), X0
	VPSHUFB (R11)(R14*1), X0, X0
	VMOVDQU X0, (R15)
	VMOVDQU (BX), X1
	VPSHUFB 16(R11)(R14*1), X1, X1
	VMOVDQU X1, 16(R15)
	CMPL    AX, $28
	JLS     sequence

	// The rest of a long match, from a distance of 16 or more.
	CMPL    CX, $16
	JCC     far
	LEAQ    multiple<>(SB), R13
	MOVBLZX (R13)(CX*1), CX

far:
	ADDQ $32, R15
	MOVQ R15, R13
	SUBQ CX, R13

more:
	VMOVDQU (R13), X0
	VMOVDQU X0, (R15)
	ADDQ    $16, R13
	ADDQ    $16, R15
	CMPQ    R15, DI
	JCS     more
	JMP     sequence

literals:
	MOVL $64, BX

next:
	VMOVDQU (R13)(BX*1), Y0
	VMOVDQU 32(R13)(BX*1), Y1
	VMOVDQU Y0, (DI)(BX*1)
	VMOVDQU Y1, 32(DI)(BX*1)
	ADDQ    $64, BX
	CMPQ    BX, CX
	JCS     next
	JMP     match

done:
	VZEROUPPER
	SUBQ R10, DI
	SUBQ src_base+24(FP), SI
	MOVQ DI, newDi+64(FP)
	MOVQ SI, newSi+72(FP)
	RET

none:
	MOVQ DI, newDi+64(FP)
	MOVQ AX, newSi+72(FP)
	RET
