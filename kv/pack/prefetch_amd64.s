//go:build !noasm

#include "textflag.h"

// func prefetch(page []byte)
TEXT ·prefetch(SB), NOSPLIT, $0-24
	MOVQ  page_base+0(FP), AX
	MOVQ  page_len+8(FP), CX
	TESTQ CX, CX
	JZ    done

loop:
	PREFETCHT0 (AX)
	ADDQ       $64, AX
	SUBQ       $64, CX
	JG         loop

done:
	RET
