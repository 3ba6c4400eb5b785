package codecs

import (
	"unsafe"
)

// axis is one dimension of a copy: the number of steps, and their bytes on
// either side.
type axis struct{ n, dst, src int }

// CopyStrided copies an array of the given extent and element size from one
// layout to the other. Src and dst must not overlap, nor must two elements of
// dst. It allocates nothing. A layout that reaches outside its Data panics
// before anything is written.
func CopyStrided(dst Dst, src Src, count []int, size int) {
	checkStrided(dst, count, size)
	checkStrided(src, count, size)
	var buf [MaxRank]axis
	axes, run := plan(buf[:0], dst.Strides, src.Strides, count, size)
	switch {
	case run == 0:
	case len(axes) == 0 && len(dst.Data) <= cachedBytes:
		copyCached(dst.Data[dst.Offset:dst.Offset+run], src.Data[src.Offset:])
	default:
		copyAxes(unsafe.Pointer(&dst.Data[dst.Offset]), unsafe.Pointer(&src.Data[src.Offset]), axes, run)
	}
}

const (
	// cachedBytes is the largest destination that caches of processors hold.
	cachedBytes = 8 << 20
	// copiedCached is the length of a piece. The function copy writes pieces of a MiB and more
	// past the caches, which is faster for destinations larger than the caches.
	copiedCached = 512 << 10
)

// copyCached fills dst from src through the caches. The caller reads the bytes there next, and
// several readers do not wait for the memory: two copy 32 GB/s, past the caches 23.
func copyCached(dst, src []byte) {
	for len(dst) > 0 {
		n := copy(dst[:min(len(dst), copiedCached)], src)
		dst, src = dst[n:], src[n:]
	}
}

// FillStrided puts one element at every place of an array of the given extent;
// an empty element means size zeros. It panics like CopyStrided.
func FillStrided(dst Dst, count []int, elem []byte, size int) {
	checkStrided(dst, count, size)
	var buf [MaxRank]axis
	axes, run := plan(buf[:0], dst.Strides, dst.Strides, count, size)
	if run == 0 {
		return
	}
	// The first run is filled and copied to the other runs.
	first := dst.Data[dst.Offset : dst.Offset+run]
	fillRun(first, elem)
	for i := range axes {
		axes[i].src = 0
	}
	p := unsafe.Pointer(&first[0])
	copyAxes(p, p, axes, run)
}

// fillRun repeats elem over b.
func fillRun(b, elem []byte) {
	if len(elem) == 0 {
		clear(b)
		return
	}
	for n := copy(b, elem); n < len(b); n *= 2 {
		copy(b[n:], b[:n])
	}
}

// checkStrided panics if an element of the array lies outside the data.
func checkStrided(a Dst, count []int, size int) {
	lo, hi := a.Offset, a.Offset+size
	for i, n := range count {
		if n == 0 {
			return
		}
		if reach := (n - 1) * a.Strides[i]; reach < 0 {
			lo += reach
		} else {
			hi += reach
		}
	}
	_ = a.Data[lo:hi]
}

// plan sorts the dimensions of a copy by decreasing steps of the destination,
// the outermost first. Neighbours that are one run on both sides are joined. run
// is the number of contiguous bytes on both sides, 0 if there is nothing to
// copy.
func plan(axes []axis, dst, src, count []int, size int) (_ []axis, run int) {
	for i, n := range count {
		if n == 0 {
			return nil, 0
		}
		if n == 1 {
			continue
		}
		// Insertion sort: almost always there is nothing to do.
		a := axis{n, dst[i], src[i]}
		k := len(axes)
		axes = append(axes, a)
		for ; k > 0 && abs(axes[k-1].dst) < abs(a.dst); k-- {
			axes[k] = axes[k-1]
		}
		axes[k] = a
	}
	out := axes[:0]
	for _, a := range axes {
		if k := len(out) - 1; k >= 0 && out[k].dst == a.dst*a.n && out[k].src == a.src*a.n {
			out[k] = axis{out[k].n * a.n, a.dst, a.src}
			continue
		}
		out = append(out, a)
	}
	run = size
	if k := len(out) - 1; k >= 0 && out[k].dst == size && out[k].src == size {
		run *= out[k].n
		out = out[:k]
	}
	return out, run
}

func abs(n int) int {
	if n < 0 {
		return -n
	}
	return n
}

// copyAxes copies runs of bytes. The bounds have been checked: every pointer
// made here lies inside the data of its side.
func copyAxes(dst, src unsafe.Pointer, axes []axis, run int) {
	switch run {
	case 1:
		copyElems[[1]byte](dst, src, axes)
	case 2:
		copyElems[[2]byte](dst, src, axes)
	case 4:
		copyElems[[4]byte](dst, src, axes)
	case 8:
		copyElems[[8]byte](dst, src, axes)
	case 16:
		copyElems[[16]byte](dst, src, axes)
	default:
		copyRuns(dst, src, axes, run)
	}
}

func copyRuns(dst, src unsafe.Pointer, axes []axis, run int) {
	if len(axes) == 0 {
		copy(unsafe.Slice((*byte)(dst), run), unsafe.Slice((*byte)(src), run))
		return
	}
	a := axes[0]
	if len(axes) > 1 {
		for i := range a.n {
			copyRuns(unsafe.Add(dst, i*a.dst), unsafe.Add(src, i*a.src), axes[1:], run)
		}
		return
	}
	for i := range a.n {
		copy(unsafe.Slice((*byte)(unsafe.Add(dst, i*a.dst)), run), unsafe.Slice((*byte)(unsafe.Add(src, i*a.src)), run))
	}
}

// elem is a run short enough to be loaded and stored at once. Arrays of bytes
// may lie at any address.
type elem interface {
	[1]byte | [2]byte | [4]byte | [8]byte | [16]byte
}

// copyElems copies single elements, for a transposition. It walks in tiles
// along two axes, the one with the smallest stride in the source and the one
// with the smallest stride in the destination, so that a cache line is used up
// on both sides before it is dropped.
func copyElems[T elem](dst, src unsafe.Pointer, axes []axis) {
	if len(axes) == 0 {
		*(*T)(dst) = *(*T)(src)
		return
	}
	last := len(axes) - 1
	inner := last
	for i, a := range axes {
		if abs(a.src) < abs(axes[inner].src) {
			inner = i
		}
	}
	if inner != last {
		// Tiles want their second axis next to the last.
		a := axes[inner]
		copy(axes[inner:], axes[inner+1:last])
		axes[last-1] = a
		walkTiles[T](dst, src, axes)
		return
	}
	walkElems[T](dst, src, axes)
}

func walkElems[T elem](dst, src unsafe.Pointer, axes []axis) {
	a := axes[0]
	if len(axes) > 1 {
		for i := range a.n {
			walkElems[T](unsafe.Add(dst, i*a.dst), unsafe.Add(src, i*a.src), axes[1:])
		}
		return
	}
	for i := range a.n {
		*(*T)(unsafe.Add(dst, i*a.dst)) = *(*T)(unsafe.Add(src, i*a.src))
	}
}

func walkTiles[T elem](dst, src unsafe.Pointer, axes []axis) {
	a := axes[0]
	if len(axes) > 2 {
		for i := range a.n {
			walkTiles[T](unsafe.Add(dst, i*a.dst), unsafe.Add(src, i*a.src), axes[1:])
		}
		return
	}
	copyTiles[T](dst, src, a, axes[1])
}

// tile is the side of a tile in elements: a few cache lines of small elements,
// and few enough lines that power-of-two strides do not fight for one set.
const tile = 8

// copyTiles copies the plane of two axes: a has the smallest step in the source,
// b in the destination.
func copyTiles[T elem](dst, src unsafe.Pointer, a, b axis) {
	wholeB := b.n - b.n%tile
	for i := 0; i < a.n; i += tile {
		ni := min(tile, a.n-i)
		d, s := unsafe.Add(dst, i*a.dst), unsafe.Add(src, i*a.src)
		for j := 0; j < wholeB; j += tile {
			for ii := range ni {
				d, s := unsafe.Add(d, ii*a.dst+j*b.dst), unsafe.Add(s, ii*a.src+j*b.src)
				e0, e1, e2, e3 := load4[T](s, b.src)
				e4, e5, e6, e7 := load4[T](unsafe.Add(s, 4*b.src), b.src)
				store4(d, b.dst, e0, e1, e2, e3)
				store4(unsafe.Add(d, 4*b.dst), b.dst, e4, e5, e6, e7)
			}
		}
		for ii := range ni {
			for j := wholeB; j < b.n; j++ {
				*(*T)(unsafe.Add(d, ii*a.dst+j*b.dst)) = *(*T)(unsafe.Add(s, ii*a.src+j*b.src))
			}
		}
	}
}

func load4[T elem](p unsafe.Pointer, step int) (a, b, c, d T) {
	return *(*T)(p), *(*T)(unsafe.Add(p, step)), *(*T)(unsafe.Add(p, 2*step)), *(*T)(unsafe.Add(p, 3*step))
}

func store4[T elem](p unsafe.Pointer, step int, a, b, c, d T) {
	*(*T)(p) = a
	*(*T)(unsafe.Add(p, step)) = b
	*(*T)(unsafe.Add(p, 2*step)) = c
	*(*T)(unsafe.Add(p, 3*step)) = d
}
