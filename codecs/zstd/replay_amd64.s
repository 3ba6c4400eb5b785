//go:build !noasm

#include "go_asm.h"
#include "textflag.h"

// Sixteen bytes that repeat the first k, for each k below 16; that of 0 is not used.
DATA period<>+0x00(SB)/8, $0x0000000000000000
DATA period<>+0x08(SB)/8, $0x0000000000000000
DATA period<>+0x10(SB)/8, $0x0000000000000000
DATA period<>+0x18(SB)/8, $0x0000000000000000
DATA period<>+0x20(SB)/8, $0x0100010001000100
DATA period<>+0x28(SB)/8, $0x0100010001000100
DATA period<>+0x30(SB)/8, $0x0100020100020100
DATA period<>+0x38(SB)/8, $0x0002010002010002
DATA period<>+0x40(SB)/8, $0x0302010003020100
DATA period<>+0x48(SB)/8, $0x0302010003020100
DATA period<>+0x50(SB)/8, $0x0201000403020100
DATA period<>+0x58(SB)/8, $0x0004030201000403
DATA period<>+0x60(SB)/8, $0x0100050403020100
DATA period<>+0x68(SB)/8, $0x0302010005040302
DATA period<>+0x70(SB)/8, $0x0006050403020100
DATA period<>+0x78(SB)/8, $0x0100060504030201
DATA period<>+0x80(SB)/8, $0x0706050403020100
DATA period<>+0x88(SB)/8, $0x0706050403020100
DATA period<>+0x90(SB)/8, $0x0706050403020100
DATA period<>+0x98(SB)/8, $0x0605040302010008
DATA period<>+0xa0(SB)/8, $0x0706050403020100
DATA period<>+0xa8(SB)/8, $0x0504030201000908
DATA period<>+0xb0(SB)/8, $0x0706050403020100
DATA period<>+0xb8(SB)/8, $0x04030201000a0908
DATA period<>+0xc0(SB)/8, $0x0706050403020100
DATA period<>+0xc8(SB)/8, $0x030201000b0a0908
DATA period<>+0xd0(SB)/8, $0x0706050403020100
DATA period<>+0xd8(SB)/8, $0x0201000c0b0a0908
DATA period<>+0xe0(SB)/8, $0x0706050403020100
DATA period<>+0xe8(SB)/8, $0x01000d0c0b0a0908
DATA period<>+0xf0(SB)/8, $0x0706050403020100
DATA period<>+0xf8(SB)/8, $0x000e0d0c0b0a0908
GLOBL period<>(SB), RODATA|NOPTR, $256

// The most bytes of these that are whole periods.
DATA whole<>+0(SB)/8, $0x0e0c0f100f101010
DATA whole<>+8(SB)/8, $0x0f0e0d0c0b0a0910
GLOBL whole<>(SB), RODATA|NOPTR, $16

// An entry of a table: its bits, the bits to add, the next state and the value.
#define WIDTH(table, state) table(R15)(state*8)
#define EXTRA(table, state) (table+1)(R15)(state*8)
#define NEXT(table, state)  (table+2)(R15)(state*8)
#define VALUE(table, state) (table+4)(R15)(state*8)

#define LITERALS (replay_literals+states_entries)
#define MATCHES  (replay_matches+states_entries)
#define OFFSETS  (replay_offsets+states_entries)

// Reads CX bits of AX, of which BX are left.
#define READ(to) \
	SUBQ  CX, BX     \
	SHRXQ BX, AX, to \
	BZHIQ CX, to, to

// Leaves if the literals or the room are too few, or there is nothing so far back.
#define ROOM(distance) \
	LEAQ (SI)(R11*1), CX    \
	CMPQ CX, litsEnd-40(SP) \
	JA   done               \
	LEAQ (DI)(R11*1), CX    \
	SUBQ base-32(SP), CX    \
	CMPQ distance, CX       \
	JA   done               \
	ADDQ R12, CX            \
	CMPQ CX, room-24(SP)    \
	JA   done

// func replayBMI2(r *replay, c *cursor)
//
//	R15 replay                        R8, R9, R10 states of offsets, matches, literals
//	DI  out        SI literals        DX  bits that are not read, plus 7
//	AX  eight bytes of the bits       BX  bits of them that are not read
//	R11 literals, R12 match and R13 distance of the sequence
TEXT ·replayBMI2(SB), NOSPLIT, $48-16
	MOVQ r+0(FP), R15
	MOVQ c+8(FP), R14
	MOVQ cursor_bits(R14), CX
	MOVQ CX, bits-8(SP)
	MOVQ cursor_room(R14), CX
	MOVQ CX, room-24(SP)
	MOVQ cursor_base(R14), CX
	MOVQ CX, base-32(SP)
	MOVQ cursor_litsEnd(R14), CX
	MOVQ CX, litsEnd-40(SP)
	MOVQ cursor_left(R14), CX
	MOVQ CX, left-48(SP)
	MOVQ cursor_unread(R14), DX
	MOVQ cursor_out(R14), DI
	MOVQ cursor_lits(R14), SI
	MOVL replay_offset(R15), R8
	MOVL replay_match(R15), R9
	MOVL replay_literal(R15), R10
	ADDQ $7, DX

sequence:
	CMPQ DX, $64
	JLT  done
	MOVQ bits-8(SP), CX
	MOVQ DX, BX
	SHRQ $3, BX
	MOVQ -8(CX)(BX*1), AX
	MOVL DX, BX
	ANDL $7, BX
	ADDL $57, BX

	// All bits of a sequence are in AX, but for rare ones.
	MOVWLZX WIDTH(OFFSETS, R8), R14
	MOVWLZX WIDTH(MATCHES, R9), CX
	ADDL    CX, R14
	MOVWLZX WIDTH(LITERALS, R10), CX
	ADDL    CX, R14
	MOVL    R14, CX
	SHRL    $8, CX
	MOVBLZX R14, R14
	ADDL    CX, R14
	CMPL    R14, $57
	JA      done
	NEGQ    R14
	ADDQ    DX, R14

	MOVBLZX EXTRA(OFFSETS, R8), CX
	MOVL    VALUE(OFFSETS, R8), R13
	READ(R11)
	ADDQ    R11, R13
	MOVBLZX EXTRA(MATCHES, R9), CX
	MOVL    VALUE(MATCHES, R9), R12
	READ(R11)
	ADDQ    R11, R12
	MOVBLZX EXTRA(LITERALS, R10), CX
	READ(R11)
	MOVL    VALUE(LITERALS, R10), CX
	ADDQ    CX, R11
	MOVQ    R14, unread-16(SP)

	CMPB EXTRA(OFFSETS, R8), $2
	JB   lately

	ROOM(R13)
	MOVL replay_recent+0(R15), CX
	MOVL replay_recent+4(R15), R14
	MOVL R13, replay_recent+0(R15)
	MOVL CX, replay_recent+4(R15)
	MOVL R14, replay_recent+8(R15)

states:
	MOVBLZX WIDTH(LITERALS, R10), CX
	MOVWLZX NEXT(LITERALS, R10), R10
	READ(R14)
	ADDQ    R14, R10
	MOVBLZX WIDTH(MATCHES, R9), CX
	MOVWLZX NEXT(MATCHES, R9), R9
	READ(R14)
	ADDQ    R14, R9
	MOVBLZX WIDTH(OFFSETS, R8), CX
	MOVWLZX NEXT(OFFSETS, R8), R8
	READ(R14)
	ADDQ    R14, R8
	MOVQ    unread-16(SP), DX

	// Copies may write 15 bytes too many: the next ones go there.
	MOVOU (SI), X0
	MOVOU X0, (DI)
	CMPQ  R11, $16
	JA    literals

match:
	ADDQ  R11, SI
	ADDQ  R11, DI
	MOVQ  DI, R14
	SUBQ  R13, R14
	CMPQ  R13, $16
	JB    near
	MOVOU (R14), X0
	MOVOU X0, (DI)
	CMPQ  R12, $16
	JA    far

next:
	ADDQ R12, DI
	DECQ left-48(SP)
	JNZ  sequence

done:
	MOVQ c+8(FP), R14
	MOVQ left-48(SP), CX
	MOVQ CX, cursor_left(R14)
	SUBQ $7, DX
	MOVQ DX, cursor_unread(R14)
	MOVQ DI, cursor_out(R14)
	MOVQ SI, cursor_lits(R14)
	MOVL R8, replay_offset(R15)
	MOVL R9, replay_match(R15)
	MOVL R10, replay_literal(R15)
	RET

literals:
	MOVL $16, CX

literalsLoop:
	MOVOU (SI)(CX*1), X0
	MOVOU X0, (DI)(CX*1)
	ADDQ  $16, CX
	CMPQ  CX, R11
	JB    literalsLoop
	JMP   match

far:
	MOVL $16, CX

farLoop:
	MOVOU (R14)(CX*1), X0
	MOVOU X0, (DI)(CX*1)
	ADDQ  $16, CX
	CMPQ  CX, R12
	JB    farLoop
	JMP   next

near:
	// What is copied repeats itself: so many bytes as are whole periods at a time.
	MOVOU   (R14), X0
	LEAQ    whole<>(SB), CX
	MOVBLZX (CX)(R13*1), R14
	LEAQ    period<>(SB), CX
	SHLQ    $4, R13
	PSHUFB  (CX)(R13*1), X0
	XORL    CX, CX

nearLoop:
	MOVOU X0, (DI)(CX*1)
	ADDQ  R14, CX
	CMPQ  CX, R12
	JB    nearLoop
	JMP   next

lately:
	// R13 is 0, 1 or 2: which of the recent distances, but for the next one if there are
	// no literals. The one after the last is rare.
	CMPQ R11, $1
	ADCQ $0, R13
	CMPQ R13, $3
	JAE  done
	MOVL replay_recent(R15)(R13*4), R14
	ROOM(R14)
	CMPQ R13, $1
	JB   same
	MOVL replay_recent+0(R15), CX
	JEQ  second
	MOVL replay_recent+4(R15), R13
	MOVL R13, replay_recent+8(R15)

second:
	MOVL CX, replay_recent+4(R15)
	MOVL R14, replay_recent+0(R15)

same:
	MOVQ R14, R13
	JMP  states
