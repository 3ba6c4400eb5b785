// The two networks that the byte and the bit shuffles share. Both work in each
// 128-bit lane alone, on sixteen 8-byte elements, take Y0 to Y7, leave the
// result in Y8 to Y15 and overwrite all others. R8 is the distance of two
// planes, R9 three times that.

// Bytes of two 8-byte elements in a lane, alternating.
DATA pair8<>+0(SB)/8, $0x0b030a0209010800
DATA pair8<>+8(SB)/8, $0x0f070e060d050c04
DATA pair8<>+16(SB)/8, $0x0b030a0209010800
DATA pair8<>+24(SB)/8, $0x0f070e060d050c04
GLOBL pair8<>(SB), RODATA|NOPTR, $32

// LOAD_PLANES loads 32 bytes of eight planes; q is four planes after p.
#define LOAD_PLANES(p, q) \
	VMOVDQU (p), Y0        \
	VMOVDQU (p)(R8*1), Y1  \
	VMOVDQU (p)(R8*2), Y2  \
	VMOVDQU (p)(R9*1), Y3  \
	VMOVDQU (q), Y4        \
	VMOVDQU (q)(R8*1), Y5  \
	VMOVDQU (q)(R8*2), Y6  \
	VMOVDQU (q)(R9*1), Y7

// STORE_PLANES stores 32 bytes of eight planes.
#define STORE_PLANES(p, q) \
	VMOVDQU Y8, (p)         \
	VMOVDQU Y9, (p)(R8*1)   \
	VMOVDQU Y10, (p)(R8*2)  \
	VMOVDQU Y11, (p)(R9*1)  \
	VMOVDQU Y12, (q)        \
	VMOVDQU Y13, (q)(R8*1)  \
	VMOVDQU Y14, (q)(R8*2)  \
	VMOVDQU Y15, (q)(R9*1)

// LOAD_PAIRS loads 32 elements of 8 bytes: Yk has elements 2k and 2k+1 in the
// low lane, 16+2k and 17+2k in the high one.
#define LOAD_PAIRS(p) \
	VMOVDQU     (p), X0               \
	VMOVDQU     16(p), X1             \
	VMOVDQU     32(p), X2             \
	VMOVDQU     48(p), X3             \
	VMOVDQU     64(p), X4             \
	VMOVDQU     80(p), X5             \
	VMOVDQU     96(p), X6             \
	VMOVDQU     112(p), X7            \
	VINSERTI128 $1, 128(p), Y0, Y0    \
	VINSERTI128 $1, 144(p), Y1, Y1    \
	VINSERTI128 $1, 160(p), Y2, Y2    \
	VINSERTI128 $1, 176(p), Y3, Y3    \
	VINSERTI128 $1, 192(p), Y4, Y4    \
	VINSERTI128 $1, 208(p), Y5, Y5    \
	VINSERTI128 $1, 224(p), Y6, Y6    \
	VINSERTI128 $1, 240(p), Y7, Y7

// JOIN8 turns eight planes of a lane's 16 elements into elements: Y8 has the
// elements 0 and 1, … Y15 the elements 14 and 15.
#define JOIN8 \
	VPUNPCKLBW Y1, Y0, Y8     \
	VPUNPCKHBW Y1, Y0, Y9     \
	VPUNPCKLBW Y3, Y2, Y10    \
	VPUNPCKHBW Y3, Y2, Y11    \
	VPUNPCKLBW Y5, Y4, Y12    \
	VPUNPCKHBW Y5, Y4, Y13    \
	VPUNPCKLBW Y7, Y6, Y14    \
	VPUNPCKHBW Y7, Y6, Y15    \
	VPUNPCKLWD Y10, Y8, Y0    \
	VPUNPCKHWD Y10, Y8, Y1    \
	VPUNPCKLWD Y11, Y9, Y2    \
	VPUNPCKHWD Y11, Y9, Y3    \
	VPUNPCKLWD Y14, Y12, Y4   \
	VPUNPCKHWD Y14, Y12, Y5   \
	VPUNPCKLWD Y15, Y13, Y6   \
	VPUNPCKHWD Y15, Y13, Y7   \
	VPUNPCKLDQ Y4, Y0, Y8     \
	VPUNPCKHDQ Y4, Y0, Y9     \
	VPUNPCKLDQ Y5, Y1, Y10    \
	VPUNPCKHDQ Y5, Y1, Y11    \
	VPUNPCKLDQ Y6, Y2, Y12    \
	VPUNPCKHDQ Y6, Y2, Y13    \
	VPUNPCKLDQ Y7, Y3, Y14    \
	VPUNPCKHDQ Y7, Y3, Y15

// SPLIT8 undoes JOIN8: Yk has elements 2k and 2k+1 in a lane, and Y8 to Y15
// become the planes 0 to 7.
#define SPLIT8 \
	VPSHUFB     pair8<>(SB), Y0, Y0 \
	VPSHUFB     pair8<>(SB), Y1, Y1 \
	VPSHUFB     pair8<>(SB), Y2, Y2 \
	VPSHUFB     pair8<>(SB), Y3, Y3 \
	VPSHUFB     pair8<>(SB), Y4, Y4 \
	VPSHUFB     pair8<>(SB), Y5, Y5 \
	VPSHUFB     pair8<>(SB), Y6, Y6 \
	VPSHUFB     pair8<>(SB), Y7, Y7 \
	VPUNPCKLWD  Y1, Y0, Y8          \
	VPUNPCKHWD  Y1, Y0, Y9          \
	VPUNPCKLWD  Y3, Y2, Y10         \
	VPUNPCKHWD  Y3, Y2, Y11         \
	VPUNPCKLWD  Y5, Y4, Y12         \
	VPUNPCKHWD  Y5, Y4, Y13         \
	VPUNPCKLWD  Y7, Y6, Y14         \
	VPUNPCKHWD  Y7, Y6, Y15         \
	VPUNPCKLDQ  Y10, Y8, Y0         \
	VPUNPCKHDQ  Y10, Y8, Y1         \
	VPUNPCKLDQ  Y11, Y9, Y2         \
	VPUNPCKHDQ  Y11, Y9, Y3         \
	VPUNPCKLDQ  Y14, Y12, Y4        \
	VPUNPCKHDQ  Y14, Y12, Y5        \
	VPUNPCKLDQ  Y15, Y13, Y6        \
	VPUNPCKHDQ  Y15, Y13, Y7        \
	VPUNPCKLQDQ Y4, Y0, Y8          \
	VPUNPCKHQDQ Y4, Y0, Y9          \
	VPUNPCKLQDQ Y5, Y1, Y10         \
	VPUNPCKHQDQ Y5, Y1, Y11         \
	VPUNPCKLQDQ Y6, Y2, Y12         \
	VPUNPCKHQDQ Y6, Y2, Y13         \
	VPUNPCKLQDQ Y7, Y3, Y14         \
	VPUNPCKHQDQ Y7, Y3, Y15
