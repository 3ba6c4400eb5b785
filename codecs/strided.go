package codecs

import "slices"

// axis is one dimension of a copy: how many steps, and how many bytes each is
// on either side.
type axis struct{ n, dst, src int }

// CopyStrided copies an array of the given extent and element size from one
// layout to the other. Src and dst must not overlap. It allocates nothing. A
// layout that reaches outside its Data panics before anything is written.
func CopyStrided(dst Dst, src Src, count []int, size int) {
	checkStrided(dst, count, size)
	checkStrided(src, count, size)
	var buf [MaxRank]axis
	axes, run := plan(buf[:0], dst.Strides, src.Strides, count, size)
	if run == 0 {
		return
	}
	copyAxes(dst.Data[dst.Offset:], src.Data[src.Offset:], axes, run)
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

// plan brings the dimensions of a copy into the order in which they are
// walked, the outermost first: steps of the destination get smaller. Neighbours
// that are one run on both sides become one. run is the number of bytes that
// lie together on both sides, 0 if there is nothing to copy.
func plan(axes []axis, dst, src, count []int, size int) (_ []axis, run int) {
	for i, n := range count {
		if n == 0 {
			return nil, 0
		}
		if n > 1 {
			axes = append(axes, axis{n, dst[i], src[i]})
		}
	}
	slices.SortStableFunc(axes, func(a, b axis) int { return abs(b.dst) - abs(a.dst) })
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

func copyAxes(dst, src []byte, axes []axis, run int) {
	if len(axes) == 0 {
		copy(dst[:run], src)
		return
	}
	a := axes[0]
	for i := range a.n {
		copyAxes(dst[i*a.dst:], src[i*a.src:], axes[1:], run)
	}
}
