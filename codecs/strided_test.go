package codecs

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
)

// copySlow is CopyStrided one element at a time.
func copySlow(dst Dst, src Src, count []int, size int) {
	n := elements(count)
	index := make([]int, len(count))
	for range n {
		d, s := dst.Offset, src.Offset
		for i, at := range index {
			d += at * dst.Strides[i]
			s += at * src.Strides[i]
		}
		copy(dst.Data[d:d+size], src.Data[s:s+size])
		step(index, count, make([]int, len(count)))
	}
}

// randomLayout returns a layout of the given extent whose elements do not
// overlap: any axis order, gaps, and axes that run backwards.
func randomLayout(r *rand.Rand, count []int, size int) Dst {
	d := Dst{Strides: make([]int, len(count))}
	step := size + r.IntN(2)*r.IntN(5)
	for _, axis := range r.Perm(len(count)) {
		d.Strides[axis] = step
		step *= max(1, count[axis])
		step += r.IntN(2) * r.IntN(7)
	}
	d.Data = make([]byte, step+size+8)
	for axis, n := range count {
		if n > 0 && r.IntN(4) == 0 {
			d.Offset += (n - 1) * d.Strides[axis]
			d.Strides[axis] = -d.Strides[axis]
		}
	}
	d.Offset += r.IntN(8)
	for i := range d.Data {
		d.Data[i] = byte(r.Uint32())
	}
	return d
}

func TestCopyStrided(t *testing.T) {
	seed := must.Seed(t)
	r := rand.New(rand.NewPCG(seed, 1))
	for range 3000 {
		rank := r.IntN(5)
		count := make([]int, rank)
		for i := range count {
			count[i] = r.IntN(20)
			if r.IntN(3) == 0 {
				count[i] = 1
			}
		}
		size := []int{1, 2, 3, 4, 8, 12, 16, 20}[r.IntN(8)]
		dst, src := randomLayout(r, count, size), randomLayout(r, count, size)
		want := dst
		want.Data = bytes.Clone(dst.Data)
		copySlow(want, src, count, size)
		CopyStrided(dst, src, count, size)
		if !bytes.Equal(dst.Data, want.Data) {
			t.Fatalf("shape %v, size %d, from %v to %v: wrong copy", count, size, src.Strides, dst.Strides)
		}

		// Filling is copying from an array that stands still.
		elem := src.Data[:size]
		if r.IntN(4) == 0 {
			elem = make([]byte, size)
		}
		copySlow(want, Src{Data: elem, Strides: make([]int, rank)}, count, size)
		FillStrided(dst, count, elem, size)
		if !bytes.Equal(dst.Data, want.Data) {
			t.Fatalf("shape %v, size %d, into %v: wrong fill", count, size, dst.Strides)
		}
	}
}

// A run longer than the pieces in which it is copied.
func TestCopyStridedLongRun(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 1))
	for _, size := range []int{copiedCached - 1, copiedCached + 1, 3*copiedCached + 7, cachedBytes - 3, cachedBytes} {
		src := Src{Data: make([]byte, size+5), Offset: 5, Strides: []int{1}}
		for i := range src.Data {
			src.Data[i] = byte(r.Uint32())
		}
		dst := Dst{Data: make([]byte, size+4), Offset: 3, Strides: []int{1}}
		CopyStrided(dst, src, []int{size}, 1)
		if !bytes.Equal(dst.Data[3:3+size], src.Data[5:]) || dst.Data[2] != 0 || dst.Data[3+size] != 0 {
			t.Errorf("%d bytes are not copied, or others are", size)
		}
	}
}

func TestCopyStridedOutside(t *testing.T) {
	ok := Dst{Data: make([]byte, 24), Strides: []int{12, 4}}
	for _, bad := range []Dst{
		{Data: make([]byte, 23), Strides: []int{12, 4}},
		{Data: make([]byte, 24), Offset: 1, Strides: []int{12, 4}},
		{Data: make([]byte, 24), Strides: []int{-12, 4}},
		{Data: make([]byte, 24), Offset: -4, Strides: []int{12, 4}},
	} {
		for _, pair := range [][2]Dst{{ok, bad}, {bad, ok}} {
			func() {
				defer func() {
					if recover() == nil {
						t.Errorf("offset %d, strides %v in %d bytes: no panic", bad.Offset, bad.Strides, len(bad.Data))
					}
				}()
				CopyStrided(pair[0], pair[1], []int{2, 3}, 4)
			}()
		}
	}
}
