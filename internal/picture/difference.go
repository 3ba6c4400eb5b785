package picture

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"math"

	"github.com/zarrdb/zarrdb/zarr"
	"github.com/zarrdb/zarrdb/zarr/cf"
	"github.com/zarrdb/zarrdb/zarr/dtype"
)

// PieceElements is how many elements of each array [Pair.Read] has in memory beside the
// window.
const PieceElements = 1 << 20

// Pair are two states of an array. What is read of them has elements in both.
type Pair struct {
	Older, Newer *zarr.Array
	// Was decodes elements of Older, as [Request.Decoder] decodes elements of Newer.
	Was *cf.Decoder
	// Parts yields the parts of the array, each within one chunk, whose values may differ.
	// With nil the arrays are equal.
	Parts iter.Seq2[zarr.Chunk, error]
	// Most is the most parts that are read; 0 is no limit.
	Most int64
}

// Read reads the difference of a pair, newer minus older. Each place of the window has the
// difference that is farthest from 0 among the elements that share the place, so that no
// difference disappears. A value that was missing before differs by +Inf, a value that is
// missing now by -Inf. Chunks of the window counts the parts that were read, and more
// reports that other parts of the plane were left out. Axes of rows and columns are ranges
// of step 1, else the error is [zarr.ErrSelection]. Other errors are as for [Read].
func (p Pair) Read(ctx context.Context, r Request) (w *Window, more bool, err error) {
	fail := func(err error) (*Window, bool, error) {
		return nil, false, fmt.Errorf("difference of /%s: %w", p.Newer.Path(), err)
	}
	transposed, up := r.Transposed, r.Up
	if transposed {
		r.Width, r.Height = r.Height, r.Width
	}
	r.Transposed, r.Up = false, false
	if w, err = Read(ctx, p.Newer, r); err != nil {
		return nil, false, err
	}
	if len(p.Older.Shape()) != len(p.Newer.Shape()) {
		return fail(fmt.Errorf("%w: the shapes differ", zarr.ErrSelection))
	}
	for _, l := range []Line{w.Y, w.X} {
		if l.Dim >= 0 && (l.list != nil || l.Step != l.Skip) {
			return fail(fmt.Errorf("%w: rows and columns must be ranges of step 1", zarr.ErrSelection))
		}
		if l.Dim >= 0 && l.Index(l.Len-1) >= p.Older.Shape()[l.Dim] {
			return fail(fmt.Errorf("%w: the older version ends at %d", zarr.ErrSelection, p.Older.Shape()[l.Dim]))
		}
	}
	w.Pixels, w.words = nil, nil
	older, newer := sideOf(p.Older, p.Was), sideOf(p.Newer, r.Decoder)
	if (isTime(older.t) || isTime(newer.t)) && !newer.t.Equal(older.t) {
		return fail(fmt.Errorf("%v and %v have no difference: %w", older.t, newer.t, errors.ErrUnsupported))
	}
	n, err := newer.a.Resolve(w.Select)
	if err != nil {
		return fail(err)
	}
	if product(n) != int64(w.Y.Len)*int64(w.X.Len) { // elements with colours of their own
		return fail(fmt.Errorf("%w: choose one colour", zarr.ErrSelection))
	}
	if err := differences(ctx, older, newer, w.Select, func(i int, by float64) { w.Values[i] = by }); err != nil {
		return fail(err)
	}
	w.Chunks = 0
	if p.Parts != nil {
		for part, err := range p.Parts {
			if err != nil {
				return fail(err)
			}
			if !w.clip(&part, newer.a.Shape()) {
				continue
			}
			if p.Most > 0 && w.Chunks == p.Most {
				more = true
				break
			}
			w.Chunks++
			if err := w.strongest(ctx, older, newer, part); err != nil {
				return fail(err)
			}
		}
	}
	if transposed {
		w.transpose()
	}
	if up {
		w.TurnUp()
	}
	return w, more, nil
}

// clip cuts a part to the plane of the window; false if nothing remains.
func (w *Window) clip(part *zarr.Chunk, shape []int64) bool {
	for d := range part.Start {
		lo, hi := w.At[d], w.At[d]+1
		for _, l := range []Line{w.Y, w.X} {
			if d == l.Dim {
				hi = min(lo+int64(l.Len)*l.Skip, shape[d])
			}
		}
		start, end := max(part.Start[d], lo), min(part.Start[d]+part.Shape[d], hi)
		if start >= end {
			return false
		}
		part.Start[d], part.Shape[d] = start, end-start
	}
	return true
}

// strongest compares a part of the plane in pieces.
func (w *Window) strongest(ctx context.Context, older, newer side, part zarr.Chunk) error {
	at, cols := make([]zarr.Index, len(part.Start)), int64(1)
	for d, i := range part.Start {
		at[d] = zarr.At(i)
	}
	edge := func(l Line) int64 { // distance of the part's edge from the window's, in elements
		if l.Dim < 0 {
			return 0
		}
		lo := part.Start[l.Dim]
		at[l.Dim] = zarr.Slice(lo, lo+part.Shape[l.Dim], 1)
		return lo - l.Start
	}
	y0, x0, n := edge(w.Y), edge(w.X), int64(0)
	if w.X.Dim >= 0 {
		cols = part.Shape[w.X.Dim]
	}
	for piece, err := range newer.a.Parts(zarr.Sel(at...), PieceElements/4*int64(newer.a.Type().Size())) {
		if err == nil {
			err = differences(ctx, older, newer, piece.Selection, func(i int, by float64) {
				k := n + int64(i)
				v := &w.Values[(y0+k/cols)/w.Y.Skip*int64(w.X.Len)+(x0+k%cols)/w.X.Skip]
				if by != 0 && by == by && (*v != *v || math.Abs(by) > math.Abs(*v)) {
					*v = by
				}
			})
		}
		if err != nil {
			return err
		}
		n += product(piece.Shape)
	}
	return nil
}

// side is one state of an array, as it is decoded.
type side struct {
	a   *zarr.Array
	dec *cf.Decoder
	t   dtype.Type // of decoded elements
}

func sideOf(a *zarr.Array, dec *cf.Decoder) side {
	if dec == nil {
		return side{a: a, t: a.Type()}
	}
	return side{a, dec, dec.Type()}
}

// read reads elements, decoded and in memory layout.
func (s side) read(ctx context.Context, sel zarr.Selection) ([]byte, error) {
	b, err := s.stored(ctx, sel, nil)
	if err != nil {
		return nil, err
	}
	return s.unpack(b)
}

// stored reads elements as they are stored, into buf if it has room.
func (s side) stored(ctx context.Context, sel zarr.Selection, buf []byte) ([]byte, error) {
	shape, err := s.a.Resolve(sel)
	if err != nil {
		return nil, err
	}
	n := product(shape) * int64(s.a.Type().Size())
	if n > int64(cap(buf)) {
		buf = make([]byte, n)
	}
	return buf[:n], s.a.ReadBytes(ctx, sel, buf[:n])
}

func (s side) unpack(b []byte) ([]byte, error) {
	if s.dec == nil {
		return b, nil
	}
	return s.dec.Append(nil, b)
}

func product(shape []int64) int64 {
	n := int64(1)
	for _, m := range shape {
		n *= m
	}
	return n
}

// differences calls yield with newer minus older of each selected element.
func differences(ctx context.Context, older, newer side, sel zarr.Selection, yield func(i int, by float64)) error {
	was, err := older.read(ctx, sel)
	if err != nil {
		return err
	}
	is, err := newer.read(ctx, sel)
	if err != nil {
		return err
	}
	// Neighbours among large integers are one float64: their bits are subtracted.
	k := newer.t.Kind()
	exact := k == older.t.Kind() && (k == dtype.Int || k == dtype.Uint || isTime(newer.t)) && newer.t.Size() == 8 && older.t.Size() == 8
	a, b := AppendFloats(nil, older.t, was), AppendFloats(nil, newer.t, is)
	for i, v := range b {
		by := v - a[i]
		switch {
		case v != v && a[i] != a[i]: // missing in both
		case a[i] != a[i]:
			by = math.Inf(1)
		case v != v:
			by = math.Inf(-1)
		case v == a[i] && exact:
			by = float64(int64(binary.LittleEndian.Uint64(is[8*i:]) - binary.LittleEndian.Uint64(was[8*i:])))
		case v == a[i]: // also two infinities
			by = 0
		}
		yield(i, by)
	}
	return nil
}
