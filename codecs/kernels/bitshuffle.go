package kernels

import "sync"

// BitShuffle writes the bit-shuffled src to dst[:len(src)]: for n elements of
// size bytes, 8·size planes of n/8 bytes. Only groups of eight elements have
// that form; the rest after the last whole group is copied. It panics if size <
// 1 or dst is shorter than src.
func BitShuffle(dst, src []byte, size int) {
	mustSize(size)
	dst = dst[:len(src)]
	groups := len(src) / size / 8
	scratch := tilePool.Get().(*tile)
	buf := scratch.of(size)
	// A tile of elements is byte-shuffled into the scratch, then each of its
	// byte planes is spread over eight bit planes.
	for at := 0; at < groups; at += tileGroups {
		n := min(tileGroups, groups-at)
		planes := src[at*8*size:]
		if size > 1 {
			shufflePlanes(buf, planes, size, 8*n, 8*n)
			planes = buf
		}
		bytesToBits(dst[at:], planes, size, groups, n)
	}
	tilePool.Put(scratch)
	copy(dst[groups*8*size:], src[groups*8*size:])
}

// BitUnshuffle undoes [BitShuffle]. It panics if size < 1 or dst is shorter
// than src.
func BitUnshuffle(dst, src []byte, size int) {
	mustSize(size)
	dst = dst[:len(src)]
	groups := len(src) / size / 8
	scratch := tilePool.Get().(*tile)
	buf := scratch.of(size)
	for at := 0; at < groups; at += tileGroups {
		n := min(tileGroups, groups-at)
		elements := dst[at*8*size:]
		if size == 1 {
			bitsToBytes(elements, src[at:], size, groups, n)
			continue
		}
		bitsToBytes(buf, src[at:], size, groups, n)
		unshufflePlanes(elements, buf, size, 8*n, 8*n)
	}
	tilePool.Put(scratch)
	copy(dst[groups*8*size:], src[groups*8*size:])
}

// tileGroups is how many groups of eight elements make a tile: 64, so that
// each visit to a bit plane moves one cache line. The planes are a power of
// two apart more often than not and share few cache sets, so a line that is
// visited twice is fetched twice.
const tileGroups = 64

// tile is the scratch of one call, in byte-shuffled form.
type tile struct{ b []byte }

var tilePool = sync.Pool{New: func() any { return new(tile) }}

func (t *tile) of(size int) []byte {
	if need := tileGroups * 8 * size; len(t.b) < need {
		t.b = make([]byte, need)
	}
	return t.b
}

// bitsToBytes joins 8·planes rows of n bits-of-eight-elements, stride bytes
// apart, to planes rows of 8·n bytes, one after the other.
func bitsToBytes(dst, src []byte, planes, stride, n int) {
	_, _ = src[(8*planes-1)*stride+n-1], dst[planes*8*n-1]
	done := bitsToBytesArch(dst, src, planes, stride, n)
	bitsToBytesGeneric(dst, src, planes, stride, done, n)
}

// bytesToBits undoes bitsToBytes: its rows of 8·n bytes are src.
func bytesToBits(dst, src []byte, planes, stride, n int) {
	_, _ = dst[(8*planes-1)*stride+n-1], src[planes*8*n-1]
	done := bytesToBitsArch(dst, src, planes, stride, n)
	bytesToBitsGeneric(dst, src, planes, stride, done, n)
}
