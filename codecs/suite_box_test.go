package codecs_test

import (
	"bytes"
	"context"
	"slices"
	"testing"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/zarr/dtype"
)

// box returns a random box of a chunk; now and then all of it.
func (s *suite) box() codecs.Box {
	b := codecs.Box{Start: make([]int, len(s.Shape)), Count: make([]int, len(s.Shape))}
	whole := s.r.IntN(5) == 0
	for d, n := range s.Shape {
		if whole {
			b.Count[d] = n
			continue
		}
		b.Start[d] = s.r.IntN(n + 1)
		b.Count[d] = s.r.IntN(n - b.Start[d] + 1)
		if b.Count[d] == 0 && n > 0 && s.r.IntN(4) > 0 {
			b.Start[d] = s.r.IntN(n)
			b.Count[d] = 1
		}
	}
	return b
}

// region is a destination with bytes around and between its elements.
type region struct {
	codecs.Dst
	count []int
	size  int
}

// layout returns a region for an array of the given extent: packed, or with
// any axis order, gaps and axes that run backwards.
func (s *suite) layout(count []int) *region {
	r := &region{count: count, size: s.Type.Size()}
	r.Strides = make([]int, len(count))
	order := s.r.Perm(len(count))
	packed := s.r.IntN(2) == 0
	if packed {
		for i := range order {
			order[i] = len(order) - 1 - i
		}
	}
	step := r.size
	for _, d := range order {
		if !packed {
			step += s.r.IntN(3)
		}
		r.Strides[d] = step
		step *= max(1, count[d])
	}
	r.Offset = s.r.IntN(9)
	r.Data = make([]byte, step+r.size+16)
	for d, n := range count {
		if !packed && n > 0 && s.r.IntN(3) == 0 {
			r.Offset += (n - 1) * r.Strides[d]
			r.Strides[d] = -r.Strides[d]
		}
	}
	for i := range r.Data {
		r.Data[i] = byte(s.r.Uint32())
	}
	return r
}

// guard remembers the bytes that are no elements.
type guard struct {
	r      *region
	before []byte
}

func (r *region) guard() guard { return guard{r, bytes.Clone(r.Data)} }

// check fails if a byte between the elements was changed.
func (g guard) check(t testing.TB, what string) {
	t.Helper()
	after := bytes.Clone(g.r.Data)
	g.r.each(func(off int, _ []int) { copy(after[off:off+g.r.size], g.before[off:]) })
	if !bytes.Equal(after, g.before) {
		t.Fatalf("%s: wrote outside the elements", what)
	}
}

// each calls fn with the offset and the coordinates of every element.
func (r *region) each(fn func(off int, at []int)) {
	walk(r.count, func(at []int) {
		off := r.Offset
		for d, i := range at {
			off += i * r.Strides[d]
		}
		fn(off, at)
	})
}

// walk calls fn with every index of an array of the given extent, in C order.
func walk(count []int, fn func(at []int)) {
	for _, n := range count {
		if n == 0 {
			return
		}
	}
	at := make([]int, len(count))
	for {
		fn(at)
		d := len(at) - 1
		for ; d >= 0; d-- {
			if at[d]++; at[d] < count[d] {
				break
			}
			at[d] = 0
		}
		if d < 0 {
			return
		}
	}
}

// number returns the position of an element of the chunk in C order.
func (s *suite) number(start, at []int) int {
	n := 0
	for d, size := range s.Shape {
		n = n*size + start[d] + at[d]
	}
	return n
}

// source counts what is read, and fails the test for a read outside.
type source struct {
	t     testing.TB
	b     []byte
	reads int
	read  int64
}

func (s *source) Size() int64 { return int64(len(s.b)) }

// Gap is small, so that small test data are read in pieces.
func (s *source) Gap() int64 { return 8 }

func (s *source) ReadRange(_ context.Context, off, n int64, fn func([]byte) error) error {
	if off < 0 || n < 0 || off > s.Size()-n {
		s.t.Fatalf("read of %d+%d in %d bytes", off, n, s.Size())
	}
	s.reads++
	s.read += n
	// A copy, overwritten afterwards: fn must not keep it.
	p := bytes.Clone(s.b[off : off+n])
	err := fn(p)
	clear(p)
	return err
}

func (s *suite) testBox(t testing.TB) {
	ctx := context.Background()
	for name, elems := range s.chunks(t) {
		stored := s.encode(t, elems)
		want := s.expected(t, elems, stored)
		for range 20 {
			box := s.box()
			compare := func(how string, r *region) {
				t.Helper()
				r.each(func(off int, at []int) {
					n := s.number(box.Start, at) * r.size
					if !bytes.Equal(r.Data[off:off+r.size], want[n:n+r.size]) {
						t.Fatalf("%s, %s: element %v of box %v + %v is wrong", name, how, at, box.Start, box.Count)
					}
				})
			}
			r := s.layout(box.Count)
			g := r.guard()
			must.Do(t, s.b.DecodeInto(stored, box, r.Dst))
			g.check(t, "DecodeInto")
			compare("DecodeInto", r)

			r = s.layout(box.Count)
			g = r.guard()
			must.Do(t, s.b.DecodeBox(ctx, &source{t: t, b: stored}, box, r.Dst))
			g.check(t, "DecodeBox")
			compare("DecodeBox", r)

			if x, err := s.b.ReadIndex(ctx, codecs.Bytes(stored)); err == nil {
				r = s.layout(box.Count)
				must.Do(t, s.b.DecodeBoxAt(ctx, &source{t: t, b: stored}, x, box, r.Dst))
				compare("DecodeBoxAt", r)
			}

			if r = s.layout(box.Count); s.b.InStrips() && !slices.Contains(box.Count, 0) {
				n := 0
				must.Do(t, s.b.DecodeStrips(ctx, &source{t: t, b: stored}, box, 1+s.r.IntN(40), func(part codecs.Box, data codecs.Src) error {
					to := codecs.Dst{Data: r.Data, Offset: r.Offset, Strides: r.Strides}
					for d, at := range part.Start {
						to.Offset += (at - box.Start[d]) * r.Strides[d]
					}
					codecs.CopyStrided(to, data, part.Count, r.size)
					walk(part.Count, func([]int) { n++ })
					return nil
				}))
				compare("DecodeStrips", r)
				if walk(box.Count, func([]int) { n-- }); n != 0 {
					t.Errorf("%s: the strips of box %v + %v have %d elements too many", name, box.Start, box.Count, n)
				}
			}

			flat, err := s.b.AppendBox(ctx, []byte("head"), &source{t: t, b: stored}, box)
			if err != nil || !bytes.HasPrefix(flat, []byte("head")) {
				t.Fatalf("AppendBox: %v", err)
			}
			i := 4
			walk(box.Count, func(at []int) {
				n := s.number(box.Start, at) * r.size
				if !bytes.Equal(flat[i:i+r.size], want[n:n+r.size]) {
					t.Fatalf("%s, AppendBox: element %v of box %v + %v is wrong", name, at, box.Start, box.Count)
				}
				i += r.size
			})
			if i != len(flat) {
				t.Fatalf("AppendBox gave %d bytes for %v elements", len(flat)-4, box.Count)
			}
		}
		// From any layout, the same bytes as from a packed one.
		r := s.layout(s.Shape)
		r.each(func(off int, at []int) {
			n := s.number(make([]int, len(at)), at) * r.size
			copy(r.Data[off:off+r.size], elems[n:])
		})
		again, err := s.b.EncodeFrom(nil, r.Dst)
		if err != nil || !bytes.Equal(again, stored) {
			t.Fatalf("%s: EncodeFrom gave other bytes (%v)", name, err)
		}
	}
	for _, bad := range s.badBoxes() {
		r := s.layout(s.Shape)
		if s.b.DecodeInto(nil, bad, r.Dst) == nil {
			t.Errorf("box %v + %v was accepted", bad.Start, bad.Count)
		}
	}
}

// badBoxes do not lie in the chunk.
func (s *suite) badBoxes() []codecs.Box {
	rank := len(s.Shape)
	bad := []codecs.Box{{Start: make([]int, rank+1), Count: make([]int, rank+1)}}
	for d, n := range s.Shape {
		for _, edge := range [][2]int{{-1, 1}, {0, n + 1}, {n, 1}, {1, -1}} {
			b := codecs.Box{Start: make([]int, rank), Count: make([]int, rank)}
			b.Start[d], b.Count[d] = edge[0], edge[1]
			bad = append(bad, b)
		}
	}
	return bad
}

// testPartial updates a chunk box by box, beside a plain array.
func (s *suite) testPartial(t testing.TB) {
	if s.Lossy {
		t.Skip("lossy")
	}
	ctx := context.Background()
	size := s.Type.Size()
	model := bytes.Repeat(s.fill(), s.n)
	var stored []byte // nil: the chunk is not there
	for step := range 30 {
		box := s.box()
		r := s.layout(box.Count)
		fresh := s.elems(t, s.n)
		clearIt := s.r.IntN(4) == 0
		r.each(func(off int, at []int) {
			n := s.number(box.Start, at) * size
			if clearIt {
				copy(fresh[n:n+size], s.fill())
			}
			copy(r.Data[off:off+size], fresh[n:])
			copy(model[n:n+size], fresh[n:])
		})
		var old codecs.Source
		if stored != nil {
			old = &source{t: t, b: stored}
		}
		next, err := s.b.EncodePartial(ctx, []byte("head"), old, box, r.Dst)
		if err != nil || !bytes.HasPrefix(next, []byte("head")) {
			t.Fatalf("step %d: %v", step, err)
		}
		if stored = next[4:]; len(stored) == 0 && s.b.EncodedSize() != 0 {
			if !s.b.IsFill(model) {
				t.Fatalf("step %d: no bytes for a chunk with other values than the fill value", step)
			}
			stored = nil
			continue
		}
		got, err := s.b.Decode(nil, stored)
		if err != nil || !bytes.Equal(got, model) {
			t.Fatalf("step %d: box %v + %v: decoded to other elements (%v)", step, box.Start, box.Count, err)
		}
		if s.b.InnerShape() != nil {
			// However it came about, equal elements are equal bytes.
			if again := s.encode(t, model); !bytes.Equal(again, stored) {
				t.Fatalf("step %d: an updated shard differs from a new one", step)
			}
		}
	}
}

func (s *suite) testVariableBox(t testing.TB) {
	ctx := context.Background()
	for name, elems := range s.chunks(t) {
		stored := s.encode(t, elems)
		want := must.Get(dtype.OpenVariable(s.expected(t, elems, stored), s.n))(t)
		for range 20 {
			box := s.box()
			flat, err := s.b.AppendBox(ctx, []byte("head"), &source{t: t, b: stored}, box)
			if err != nil || !bytes.HasPrefix(flat, []byte("head")) {
				t.Fatalf("AppendBox: %v", err)
			}
			n := 1
			for _, c := range box.Count {
				n *= c
			}
			got := must.Get(dtype.OpenVariable(flat[4:], n))(t)
			i := 0
			walk(box.Count, func(at []int) {
				if w := want.At(s.number(box.Start, at)); !bytes.Equal(got.At(i), w) {
					t.Fatalf("%s: element %v of box %v + %v is %q, want %q", name, at, box.Start, box.Count, got.At(i), w)
				}
				i++
			})
		}
	}
}
