// The body of encodeSmallAMD64 and encodeLargeAMD64, with
//
//	HASH(v, h)      h = index into the table for the bytes v
//	LOAD(h, m)      m = table[h]
//	STORE(ip, h)    table[h] = ip
//	FAR(ip, m, d)   adds bits to d if m is too far from ip; may use R14
//
// Registers for all of it:
//
//	SI src         DI next byte of dst   BX table      R8 multiplier of HASH
//	R9 ip          R10 match             R12 last      R15 anchor
//
// While searching R11 is the next position, CX the step, R13 the tries, DX the
// bytes at the position and AX their hash. In a sequence R11 points to the token
// and R13 is its value.

	MOVQ w+0(FP), AX
	MOVQ writer_dst(AX), DI
	MOVQ writer_src(AX), SI
	MOVQ writer_room(AX), CX
	ADDQ DI, CX
	MOVQ CX, end-8(SP)
	MOVQ writer_size(AX), R12
	SUBQ $11, R12
	MOVQ table+8(FP), BX
	MOVQ $1, R9
	XORQ R15, R15

search:
	MOVQ tries+16(FP), R13
	MOVQ R9, R11
	MOVQ $1, CX
	MOVQ (SI)(R11*1), DX
	HASH(DX, AX)

try:
	MOVQ R11, R9
	ADDQ CX, R11
	CMPQ R11, R12
	JGT  done
	MOVQ R13, CX
	SHRQ $6, CX
	INCQ R13
	LOAD(AX, R10)
	STORE(R9, AX)
	XORL (SI)(R10*1), DX
	FAR(R9, R10, DX)
	TESTL DX, DX
	JZ   found
	MOVQ (SI)(R11*1), DX
	HASH(DX, AX)
	JMP  try

found:
	// AX = how far the match may begin sooner.
	MOVQ R9, AX
	SUBQ R15, AX
	CMPQ R10, AX
	CMOVQLT R10, AX
	CMPQ R10, $8
	JLT  back
	MOVQ -8(SI)(R9*1), DX
	XORQ -8(SI)(R10*1), DX
	JZ   back
	BSRQ DX, DX
	SHRQ $3, DX
	XORQ $7, DX
	CMPQ AX, DX
	CMOVQLT AX, DX
	SUBQ DX, R9
	SUBQ DX, R10
	JMP  literals

back:
	TESTQ AX, AX
	JZ   literals
	MOVB -1(SI)(R9*1), DX
	CMPB DX, -1(SI)(R10*1)
	JNE  literals
	DECQ R9
	DECQ R10
	DECQ AX
	JMP  back

literals:
	// CX = how many.
	MOVQ R9, CX
	SUBQ R15, CX
	LEAQ 9(DI)(CX*1), DX
	CMPQ CX, $255
	JGE  longRoom

roomy:
	CMPQ DX, end-8(SP)
	JHI  full
	MOVQ DI, R11
	INCQ DI
	MOVQ CX, R13
	SHLQ $4, R13
	CMPQ CX, $15
	JGE  longLiterals

copy:
	TESTQ CX, CX
	JZ   match
	// 32 bytes at a time, if there are so many in both slices.
	LEAQ 31(CX), AX
	ANDQ $~31, AX
	LEAQ (DI)(AX*1), DX
	CMPQ DX, end-8(SP)
	JHI  copyExactly
	ADDQ R15, AX
	SUBQ R12, AX
	CMPQ AX, $11
	JGT  copyExactly
	LEAQ (SI)(R15*1), DX
	XORQ AX, AX

copy32:
	MOVOU (DX)(AX*1), X0
	MOVOU 16(DX)(AX*1), X1
	MOVOU X0, (DI)(AX*1)
	MOVOU X1, 16(DI)(AX*1)
	ADDQ $32, AX
	CMPQ AX, CX
	JLT  copy32
	ADDQ CX, DI

match:
	MOVQ R9, AX
	SUBQ R10, AX
	MOVW AX, (DI)
	ADDQ $2, DI
	// CX = the end of the match.
	LEAQ 4(R9), CX
	ADDQ $4, R10
	LEAQ 6(R12), R14

forward:
	LEAQ 8(CX), AX
	CMPQ AX, R14
	JGT  forwardBytes
	MOVQ (SI)(CX*1), DX
	XORQ (SI)(R10*1), DX
	JNZ  differs
	MOVQ AX, CX
	ADDQ $8, R10
	JMP  forward

differs:
	BSFQ DX, DX
	SHRQ $3, DX
	ADDQ DX, CX
	JMP  matched

forwardBytes:
	CMPQ CX, R14
	JGE  matched
	MOVB (SI)(CX*1), DX
	CMPB DX, (SI)(R10*1)
	JNE  matched
	INCQ CX
	INCQ R10
	JMP  forwardBytes

matched:
	MOVQ CX, AX
	SUBQ R9, AX
	SUBQ $4, AX
	MOVQ CX, R9
	MOVQ CX, R15
	LEAQ 6(DI), DX
	CMPQ AX, $15
	JGE  longMatch
	CMPQ DX, end-8(SP)
	JHI  full
	ADDQ AX, R13
	MOVB R13, (R11)

after:
	CMPQ R9, R12
	JGE  done
	MOVQ -2(SI)(R9*1), DX
	HASH(DX, AX)
	LEAQ -2(R9), CX
	STORE(CX, AX)
	MOVQ (SI)(R9*1), DX
	HASH(DX, AX)
	LOAD(AX, R10)
	STORE(R9, AX)
	XORL (SI)(R10*1), DX
	FAR(R9, R10, DX)
	TESTL DX, DX
	JNZ  missed
	MOVQ DI, R11
	INCQ DI
	XORQ R13, R13
	JMP  match

missed:
	INCQ R9
	JMP  search

longRoom:
	// DX += CX / 255
	MOVQ $0x80808081, AX
	IMULQ CX, AX
	SHRQ $39, AX
	ADDQ AX, DX
	JMP  roomy

longLiterals:
	MOVQ $0xf0, R13
	LEAQ -15(CX), AX

literalLength:
	CMPQ AX, $255
	JLT  literalRest
	MOVB $255, (DI)
	INCQ DI
	SUBQ $255, AX
	JMP  literalLength

literalRest:
	MOVB AX, (DI)
	INCQ DI
	JMP  copy

copyExactly:
	MOVQ SI, DX
	ADDQ R15, SI
	REP; MOVSB
	MOVQ DX, SI
	JMP  match

longMatch:
	// DX += (AX + 240) / 255
	LEAQ 240(AX), CX
	MOVQ $0x80808081, R14
	IMULQ CX, R14
	SHRQ $39, R14
	ADDQ R14, DX
	CMPQ DX, end-8(SP)
	JHI  full
	ADDQ $15, R13
	MOVB R13, (R11)
	SUBQ $15, AX

matchLength:
	CMPQ AX, $255
	JLT  matchRest
	MOVB $255, (DI)
	INCQ DI
	SUBQ $255, AX
	JMP  matchLength

matchRest:
	MOVB AX, (DI)
	INCQ DI
	JMP  after

done:
	MOVQ w+0(FP), AX
	SUBQ writer_dst(AX), DI
	MOVQ DI, writer_at(AX)
	MOVQ R15, writer_anchor(AX)
	MOVB $1, ret+24(FP)
	RET

full:
	MOVB $0, ret+24(FP)
	RET
