//go:build !noasm

#include "go_asm.h"
#include "textflag.h"

// func encodeSmallAMD64(w *writer, table *[8192]uint16, tries int) bool
TEXT ·encodeSmallAMD64(SB), NOSPLIT, $8-25
#define HASH(v, h) \
	MOVL  v, h; \
	IMULL R8, h; \
	SHRL  $19, h
#define LOAD(h, m) MOVWLZX (BX)(h*2), m
#define STORE(ip, h) MOVW ip, (BX)(h*2)
#define FAR(ip, m, d)
	MOVL $2654435761, R8
#include "sequences_amd64.h"
#undef HASH
#undef LOAD
#undef STORE
#undef FAR

// func encodeLargeAMD64(w *writer, table *[4096]uint32, tries int) bool
TEXT ·encodeLargeAMD64(SB), NOSPLIT, $8-25
#define HASH(v, h) \
	MOVQ  v, h; \
	SHLQ  $24, h; \
	IMULQ R8, h; \
	SHRQ  $52, h
#define LOAD(h, m) MOVL (BX)(h*4), m
#define STORE(ip, h) MOVL ip, (BX)(h*4)
#define FAR(ip, m, d) \
	MOVQ ip, R14; \
	SUBQ m, R14; \
	SHRQ $16, R14; \
	ORL  R14, d
	MOVQ $889523592379, R8
#include "sequences_amd64.h"
