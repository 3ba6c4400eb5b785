//go:build amd64 && !noasm

package kernels

import "github.com/klauspost/cpuid/v2"

var (
	hasAVX2 = cpuid.CPU.Supports(cpuid.AVX2)
	hasGFNI = hasAVX2 && cpuid.CPU.Supports(cpuid.GFNI)
)

// The routines below make no checks: the caller passes n as a multiple of one
// step, and every address that follows from the arguments is inside the slices.

//go:noescape
func shuffle2AVX2(dst, src *byte, stride, n int)

//go:noescape
func shuffle4AVX2(dst, src *byte, stride, n int)

//go:noescape
func shuffle8AVX2(dst, src *byte, stride, n int)

//go:noescape
func shuffle16AVX2(dst, src *byte, stride, n int)

//go:noescape
func unshuffle2AVX2(dst, src *byte, stride, n int)

//go:noescape
func unshuffle4AVX2(dst, src *byte, stride, n int)

//go:noescape
func unshuffle8AVX2(dst, src *byte, stride, n int)

//go:noescape
func unshuffle16AVX2(dst, src *byte, stride, n int)

//go:noescape
func bitsToBytesAVX2(dst, src *byte, planes, stride, n, dstStride int)

//go:noescape
func bitsToBytesGFNI(dst, src *byte, planes, stride, n, dstStride int)

//go:noescape
func bytesToBitsAVX2(dst, src *byte, planes, stride, n, srcStride int)

//go:noescape
func bytesToBitsGFNI(dst, src *byte, planes, stride, n, srcStride int)

//go:noescape
func swapAVX2(dst, src, mask *byte, n int)

//go:noescape
func adlerAVX2(a, b uint32, p *byte, n int) (newA, newB uint32)

// shuffleArch does the first elements of shufflePlanes and returns how many.
func shuffleArch(dst, src []byte, size, stride, n int) int {
	if n = steps(size, n); n == 0 {
		return 0
	}
	d, s := &dst[0], &src[0]
	switch size {
	case 2:
		shuffle2AVX2(d, s, stride, n)
	case 4:
		shuffle4AVX2(d, s, stride, n)
	case 8:
		shuffle8AVX2(d, s, stride, n)
	case 16:
		shuffle16AVX2(d, s, stride, n)
	}
	return n
}

func unshuffleArch(dst, src []byte, size, stride, n int) int {
	if n = steps(size, n); n == 0 {
		return 0
	}
	d, s := &dst[0], &src[0]
	switch size {
	case 2:
		unshuffle2AVX2(d, s, stride, n)
	case 4:
		unshuffle4AVX2(d, s, stride, n)
	case 8:
		unshuffle8AVX2(d, s, stride, n)
	case 16:
		unshuffle16AVX2(d, s, stride, n)
	}
	return n
}

// steps returns how many of n elements the routines above do in whole steps; 0 for sizes
// that they do not know.
func steps(size, n int) int {
	if !hasAVX2 || n < 32 {
		return 0
	}
	switch size {
	case 2, 4, 8:
		return n &^ 31
	case 16:
		return n &^ 15
	}
	return 0
}

// bitsToBytesArch does the first columns of every row and returns how many.
func bitsToBytesArch(dst, src []byte, planes, stride, n int) int {
	done := n &^ 31
	switch {
	case done == 0 || !hasAVX2:
		return 0
	case hasGFNI:
		bitsToBytesGFNI(&dst[0], &src[0], planes, stride, done, 8*n)
	default:
		bitsToBytesAVX2(&dst[0], &src[0], planes, stride, done, 8*n)
	}
	return done
}

func bytesToBitsArch(dst, src []byte, planes, stride, n int) int {
	done := n &^ 31
	switch {
	case done == 0 || !hasAVX2:
		return 0
	case hasGFNI:
		bytesToBitsGFNI(&dst[0], &src[0], planes, stride, done, 8*n)
	default:
		bytesToBitsAVX2(&dst[0], &src[0], planes, stride, done, 8*n)
	}
	return done
}

// swapMasks reverses, by position of a byte in its 16-byte lane.
var swapMasks = func() (m [4][16]byte) {
	for k := range m {
		for i := range m[k] {
			m[k][i] = byte(i ^ (1<<k - 1))
		}
	}
	return m
}()

// swapArch returns how many bytes it has done.
func swapArch(dst, src []byte, size int) int {
	n := len(src) &^ 63
	if n == 0 || !hasAVX2 {
		return 0
	}
	mask := &swapMasks[1]
	switch size {
	case 4:
		mask = &swapMasks[2]
	case 8:
		mask = &swapMasks[3]
	}
	swapAVX2(&dst[0], &src[0], &mask[0], n)
	return n
}

func adlerArch(a, b uint32, p []byte) (newA, newB uint32, done int) {
	done = len(p) &^ 31
	if done == 0 || !hasAVX2 {
		return a, b, 0
	}
	a, b = adlerAVX2(a, b, &p[0], done)
	return a, b, done
}
