//go:build !noasm

#include "go_asm.h"
#include "textflag.h"

// The loop of fastGeneric, with everything in registers:
//
//	R8  word     R9  count, right modulo 64 only
//	SI  next byte of the input     R10 the last at which a round may begin
//	DI  next byte of the output    R11 likewise
//	R12 where the output begins
//	R13 d.lit    R15 d.dist
//	BX  the entry to be done, in turn with CX
//
// An entry shifts by its low six bits, which is what SHRX takes of it; count
// goes down by the whole entry, whose other bits are multiples of 64.

#define REFILL \
	MOVQ  (SI), AX    \
	SHLXQ R9, AX, AX  \
	ORQ   AX, R8      \
	MOVL  R9, AX      \
	SHRL  $3, AX      \
	ANDL  $7, AX      \
	SUBQ  AX, SI      \
	ADDQ  $7, SI      \
	ORL   $56, R9

// LOOKUP loads the entry of the next bits.
#define LOOKUP(e) \
	MOVL R8, AX                          \
	ANDL $((1<<const_litBits)-1), AX     \
	MOVL (R13)(AX*4), e

#define TAKE(e) \
	SHRXQ e, R8, R8 \
	SUBL  e, R9

// LITERAL stores the byte of the entry e and overwrites it.
#define LITERAL(e) \
	SHRL $8, e    \
	MOVB e, (DI)  \
	INCQ DI

// VALUE is the length or distance of the entry e, with its extra bits. t is
// overwritten.
#define VALUE(e, v, t) \
	BZHIQ e, R8, v  \
	MOVL  e, t      \
	SHRL  $8, t     \
	SHRXQ t, v, v   \
	MOVL  e, t      \
	SHRL  $16, t    \
	ADDL  t, v

// func fastBMI2(d *decoder) (end int)
TEXT ·fastBMI2(SB), NOSPLIT, $0-16
	MOVQ d+0(FP), DX
	MOVQ decoder_src(DX), AX
	MOVQ AX, SI
	ADDQ decoder_pos(DX), SI
	MOVQ AX, R10
	ADDQ decoder_lastIn(DX), R10
	MOVQ decoder_out(DX), AX
	MOVQ AX, DI
	ADDQ decoder_at(DX), DI
	MOVQ AX, R11
	ADDQ decoder_lastOut(DX), R11
	MOVQ AX, R12
	ADDQ decoder_base(DX), R12
	MOVQ decoder_word(DX), R8
	MOVQ decoder_count(DX), R9
	LEAQ decoder_lit(DX), R13
	LEAQ decoder_dist(DX), R15
	MOVL $(1<<const_litBits-1), BX
	ANDL R8, BX
	MOVL (R13)(BX*4), BX

	// Here BX is the entry of the next bits; REFILL leaves those as they are.
	// Refilling after the lookup keeps it out of the chain from one entry to
	// the next, which is what bounds the speed.
round:
	CMPQ SI, R10
	JHI  full
	CMPQ DI, R11
	JHI  full
	REFILL
	TESTB $const_literal, BX
	JZ    other
	TAKE(BX)
	LOOKUP(CX)
	LITERAL(BX)
	TESTB $const_literal, CX
	JZ    otherCX
	TAKE(CX)
	LOOKUP(BX)
	LITERAL(CX)
	TESTB $const_literal, BX
	JZ    other
	TAKE(BX)
	LOOKUP(CX)
	LITERAL(BX)
	MOVL  CX, BX
	JMP   round

full:
	XORL DX, DX
	JMP  leave

otherCX:
	MOVL CX, BX

other:
	TESTL BX, BX
	JS    notLength

length:
	VALUE(BX, DX, CX)
	TAKE(BX)
	MOVL  R8, BX
	ANDL  $((1<<const_distBits)-1), BX
	MOVL  (R15)(BX*4), BX
	REFILL
	TESTL BX, BX
	JS    notDist

dist:
	VALUE(BX, CX, AX)
	TAKE(BX)
	LOOKUP(BX)

	// Copy DX bytes from CX before DI: R14 is where from, AX where it ends.
	MOVQ DI, R14
	SUBQ CX, R14
	CMPQ R14, R12
	JCS  tooFar
	LEAQ (DI)(DX*1), AX
	CMPQ CX, $16
	JCS  near

	// A load of 16 bytes ends at or before the byte where it is stored.
	MOVOU (R14), X0
	MOVOU X0, (DI)
	MOVOU 16(R14), X0
	MOVOU X0, 16(DI)
	CMPQ  DX, $32
	JHI   far16
	MOVQ  AX, DI
	JMP   round

far16:
	ADDQ  $16, R14
	ADDQ  $16, DI
	MOVOU (R14), X0
	MOVOU X0, (DI)
	CMPQ  DI, AX
	JCS   far16
	MOVQ  AX, DI
	JMP   round

near:
	CMPQ CX, $1
	JEQ  run
	CMPQ CX, $8
	JCS  nearer

near8:
	MOVQ (R14), DX
	MOVQ DX, (DI)
	ADDQ $8, R14
	ADDQ $8, DI
	CMPQ DI, AX
	JCS  near8
	MOVQ AX, DI
	JMP  round

	// One byte again and again.
run:
	MOVBQZX (R14), DX
	MOVQ    $0x0101010101010101, R14
	IMULQ   R14, DX
	MOVQ    DX, X0
	PUNPCKLQDQ X0, X0

run16:
	MOVOU X0, (DI)
	ADDQ  $16, DI
	CMPQ  DI, AX
	JCS   run16
	MOVQ  AX, DI
	JMP   round

	// Of each word only the first CX bytes are right; the next repairs it.
nearer:
	MOVQ (R14), DX
	MOVQ DX, (DI)
	ADDQ CX, R14
	ADDQ CX, DI
	CMPQ DI, AX
	JCS  nearer
	MOVQ AX, DI
	JMP  round

	// A subtable, the end of the block or no code.
notLength:
	MOVL BX, CX
	SHRL $8, CX
	ANDL $15, CX
	JZ   notLength2
	TAKE(BX)
	BZHIQ CX, R8, AX
	SHRL  $16, BX
	ANDL  $0x7fff, BX
	ADDL  BX, AX
	MOVL  (R13)(AX*4), BX
	TESTB $const_literal, BX
	JZ    notLiteral
	TAKE(BX)
	LOOKUP(CX)
	LITERAL(BX)
	MOVL  CX, BX
	JMP   round

notLiteral:
	TESTL BX, BX
	JNS   length

notLength2:
	MOVL  BX, AX
	ANDL  $(~const_takeMask), AX
	MOVL  $const_badLength, DX
	CMPL  AX, $const_endOfBlock
	JNE   leave
	TAKE(BX)
	MOVL  $const_blockEnd, DX
	JMP   leave

notDist:
	MOVL  BX, CX
	SHRL  $8, CX
	ANDL  $15, CX
	JZ    noDist
	TAKE(BX)
	BZHIQ CX, R8, AX
	SHRL  $16, BX
	ANDL  $0x7fff, BX
	ADDL  BX, AX
	MOVL  (R15)(AX*4), BX
	TESTL BX, BX
	JNS   dist

noDist:
	MOVL $const_badDist, DX
	JMP  leave

tooFar:
	MOVL $const_farDist, DX

leave:
	MOVQ d+0(FP), AX
	MOVQ DX, end+8(FP)
	SUBQ decoder_src(AX), SI
	MOVQ SI, decoder_pos(AX)
	SUBQ decoder_out(AX), DI
	MOVQ DI, decoder_at(AX)
	MOVQ R8, decoder_word(AX)
	ANDL $63, R9
	MOVQ R9, decoder_count(AX)
	RET
