//go:build !noasm

#include "go_asm.h"
#include "textflag.h"

// The hashes of hashLong and hashShort; CX is the shift.
#define HASHLONG(v, h) \
	MOVQ  v, h; \
	IMULQ prime-8(SP), h; \
	SHRQ  $32, h; \
	SHRL  CX, h

#define HASHSHORT(v, h) \
	IMUL3L $-1640531535, v, h; \
	SHRL   CX, h

// func searchAMD64(s *state)
//
//	SI src      BX long table   DI short table   CX shift
//	R9 ip       R10 match       R12 last         R14 anchor
//	R13 distance of the last match, R15 of the one before
TEXT ·searchAMD64(SB), NOSPLIT, $32-8
	MOVQ s+0(FP), AX
	MOVQ state_src(AX), SI
	MOVQ state_long(AX), BX
	MOVQ state_short(AX), DI
	MOVQ state_shift(AX), CX
	MOVQ state_ip(AX), R9
	MOVQ state_anchor(AX), R14
	MOVQ state_d1(AX), R13
	MOVQ state_d2(AX), R15
	MOVQ state_last(AX), R12
	MOVQ state_seqs(AX), DX
	MOVQ DX, seqs-16(SP)
	MOVQ state_literals(AX), DX
	MOVQ DX, literals-24(SP)
	MOVQ $0xcf1bbcdcb7a56463, DX
	MOVQ DX, prime-8(SP)

search:
	CMPQ R9, R12
	JGE  done
	MOVQ (SI)(R9*1), DX
	HASHLONG(DX, AX)
	HASHSHORT(DX, R11)
	MOVL (BX)(AX*4), R10
	MOVL R9, (BX)(AX*4)
	MOVL (DI)(R11*4), AX
	MOVL R9, (DI)(R11*4)
	// The next search mostly begins eight bytes further on: its candidate is fetched.
	MOVQ 8(SI)(R9*1), R11
	HASHLONG(R11, R8)
	MOVL (BX)(R8*4), R8
	PREFETCHT0 (SI)(R8*1)
	MOVQ DX, R11
	SHRQ $8, R11
	LEAQ 1(SI)(R9*1), R8
	SUBQ R13, R8
	CMPL R11, (R8)
	JEQ  repeated
	CMPQ DX, (SI)(R10*1)
	JEQ  long
	CMPL DX, (SI)(AX*1)
	JEQ  short
	MOVQ R9, AX
	SUBQ R14, AX
	SHRQ $const_patience, AX
	LEAQ 1(R9)(AX*1), R9
	JMP  search

repeated:
	MOVQ R9, at-32(SP)
	INCQ R9
	MOVQ R9, R10
	SUBQ R13, R10
	MOVQ $1, R11
	JMP  emit

long:
	MOVQ R9, at-32(SP)
	JMP  backwards

short:
	// AX is the match. Perhaps a long one begins one later.
	MOVQ R9, at-32(SP)
	MOVQ 1(SI)(R9*1), DX
	HASHLONG(DX, R11)
	MOVL (BX)(R11*4), R10
	LEAQ 1(R9), R8
	MOVL R8, (BX)(R11*4)
	CMPQ DX, (SI)(R10*1)
	JNE  onlyShort
	INCQ R9
	JMP  backwards

onlyShort:
	MOVQ AX, R10

backwards:
	MOVQ R13, R15
	MOVQ R9, R13
	SUBQ R10, R13
	LEAQ 3(R13), R11
	// AX = how far the match may begin sooner.
	MOVQ R9, AX
	SUBQ R14, AX
	CMPQ R10, AX
	CMOVQLT R10, AX

back:
	TESTQ AX, AX
	JZ   emit
	MOVB -1(SI)(R9*1), DX
	CMPB DX, -1(SI)(R10*1)
	JNE  emit
	DECQ R9
	DECQ R10
	DECQ AX
	JMP  back

emit:
	// A sequence: the literals from R14 to R9, and the match of R9 with R10, of
	// at least four bytes; R11 stands for its distance.
	MOVQ seqs-16(SP), DX
	MOVQ R9, AX
	SUBQ R14, AX
	MOVL AX, sequence_literals(DX)
	MOVL R11, sequence_offset(DX)
	MOVQ literals-24(SP), R8
	ADDQ SI, R14
	XORQ R11, R11

copy:
	// Up to 15 bytes more than there are: a match ends before the last 16.
	MOVOU (R14)(R11*1), X0
	MOVOU X0, (R8)(R11*1)
	ADDQ $16, R11
	CMPQ R11, AX
	JLT  copy
	ADDQ AX, R8
	MOVQ R8, literals-24(SP)

	LEAQ 4(R9), R11
	ADDQ $4, R10
	LEAQ const_blockTail(R12), R8

forward:
	LEAQ 8(R11), AX
	CMPQ AX, R8
	JGT  forwardBytes
	MOVQ (SI)(R11*1), R14
	XORQ (SI)(R10*1), R14
	JNZ  differs
	MOVQ AX, R11
	ADDQ $8, R10
	JMP  forward

differs:
	// A branch for matches that end with an element of four bytes: the processor guesses the
	// length and begins the next search before the match is loaded.
	TESTL R14, R14
	JNZ  counted
	SHRQ $32, R14
	TESTB R14, R14
	JZ   counted4
	ADDQ $4, R11
	JMP  matched

counted4:
	SHLQ $32, R14

counted:
	BSFQ R14, R14
	SHRQ $3, R14
	ADDQ R14, R11
	JMP  matched

forwardBytes:
	CMPQ R11, R8
	JGE  matched
	MOVB (SI)(R11*1), R14
	CMPB R14, (SI)(R10*1)
	JNE  matched
	INCQ R11
	INCQ R10
	JMP  forwardBytes

matched:
	MOVQ R11, AX
	SUBQ R9, AX
	MOVL AX, sequence_match(DX)
	ADDQ $sequence__size, DX
	MOVQ DX, seqs-16(SP)
	MOVQ R11, R9
	MOVQ R11, R14
	CMPQ R9, R12
	JGE  done
	MOVQ at-32(SP), AX
	TESTQ AX, AX
	JLT  again
	// Some of the positions that were skipped.
	MOVQ 2(SI)(AX*1), DX
	LEAQ 2(AX), R10
	HASHLONG(DX, AX)
	MOVL R10, (BX)(AX*4)
	HASHSHORT(DX, AX)
	MOVL R10, (DI)(AX*4)
	MOVQ -2(SI)(R9*1), DX
	LEAQ -2(R9), R10
	HASHLONG(DX, AX)
	MOVL R10, (BX)(AX*4)
	MOVQ -1(SI)(R9*1), DX
	LEAQ -1(R9), R10
	HASHSHORT(DX, AX)
	MOVL R10, (DI)(AX*4)

again:
	// The distance before the last one, with no literals.
	MOVQ (SI)(R9*1), DX
	MOVQ R9, R10
	SUBQ R15, R10
	CMPL DX, (SI)(R10*1)
	JNE  search
	HASHLONG(DX, AX)
	MOVL R9, (BX)(AX*4)
	HASHSHORT(DX, AX)
	MOVL R9, (DI)(AX*4)
	XCHGQ R13, R15
	MOVQ $-1, AX
	MOVQ AX, at-32(SP)
	MOVQ $1, R11
	JMP  emit

done:
	MOVQ s+0(FP), AX
	MOVQ R14, state_anchor(AX)
	MOVQ R13, state_d1(AX)
	MOVQ R15, state_d2(AX)
	MOVQ seqs-16(SP), DX
	MOVQ DX, state_seqs(AX)
	MOVQ literals-24(SP), DX
	MOVQ DX, state_literals(AX)
	RET
