package kernels

// Shuffle writes the byte-shuffled src to dst[:len(src)]. Elements are size
// bytes; bytes after the last whole element are copied. It panics if size < 1
// or dst is shorter than src.
func Shuffle(dst, src []byte, size int) {
	dst = dst[:len(src)]
	if size <= 1 {
		mustSize(size)
		copy(dst, src)
		return
	}
	n := len(src) / size
	shufflePlanes(dst, src, size, n, n)
	copy(dst[n*size:], src[n*size:])
}

// Unshuffle undoes [Shuffle]: it writes elements of size bytes to
// dst[:len(src)]. It panics if size < 1 or dst is shorter than src.
func Unshuffle(dst, src []byte, size int) {
	dst = dst[:len(src)]
	if size <= 1 {
		mustSize(size)
		copy(dst, src)
		return
	}
	n := len(src) / size
	unshufflePlanes(dst, src, size, n, n)
	copy(dst[n*size:], src[n*size:])
}

func mustSize(size int) {
	if size < 1 {
		panic("kernels: element size below 1")
	}
}

// shufflePlanes splits the first n elements of src into size planes of dst
// that begin stride bytes apart.
func shufflePlanes(dst, src []byte, size, stride, n int) {
	if n == 0 {
		return
	}
	// The assembly checks no bounds.
	_, _ = src[n*size-1], dst[(size-1)*stride+n-1]
	done := shuffleArch(dst, src, size, stride, n)
	shuffleGeneric(dst, src, size, stride, done, n)
}

// unshufflePlanes joins size planes of src that begin stride bytes apart to n
// elements of dst.
func unshufflePlanes(dst, src []byte, size, stride, n int) {
	if n == 0 {
		return
	}
	_, _ = dst[n*size-1], src[(size-1)*stride+n-1]
	done := unshuffleArch(dst, src, size, stride, n)
	unshuffleGeneric(dst, src, size, stride, done, n)
}
