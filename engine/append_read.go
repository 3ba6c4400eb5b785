package engine

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"iter"
	"math"
	"strings"

	"github.com/zarrdb/zarrdb/engine/internal/names"
	"github.com/zarrdb/zarrdb/engine/source"
	"github.com/zarrdb/zarrdb/refs"
	"github.com/zarrdb/zarrdb/zarr"
	"github.com/zarrdb/zarrdb/zarr/cf"
	"github.com/zarrdb/zarrdb/zarr/dtype"
)

// elems are elements of an array: of a fixed size, or of variable length.
type elems struct {
	data []byte
	vars dtype.Variable
}

// size is the number of their bytes.
func (e elems) size() int64 {
	n := int64(len(e.data))
	for i := range e.vars.Len() {
		n += int64(len(e.vars.At(i))) + 4
	}
	return n
}

// pieceArray is an array that is read as a part of a joined array.
type pieceArray struct {
	*zarr.Array
	meta   *zarr.Meta // has a first dimension of length 1 that Array has not, if that is new
	label  []byte     // the only element, if Array is nil
	base   *appendBase
	start  int64                        // in the joined array, elements along the dimension
	as     *cf.Recoder                  // to elements of the joined array; nil if they are equal
	misfit func(*cf.InexactError) error // makes the error of an element that has no exact value
	uncut  bool                         // parts are not cut along their dimension
}

// read reads n elements. index has a selection for each dimension.
func (a *pieceArray) read(ctx context.Context, index []zarr.Index, n int64) (e elems, err error) {
	t := a.base.meta.Type
	e.data = a.label
	if a.label == nil {
		sel := zarr.Sel(index[len(index)-len(a.Shape()):]...)
		if t.Variable() {
			e.vars, err = a.ReadVar(ctx, sel)
			return e, err
		}
		size := int64(a.Type().Size())
		if n > math.MaxInt/max(size, int64(t.Size())) {
			return e, zarr.ErrTooLarge
		}
		e.data = make([]byte, n*size)
		if err := a.ReadBytes(ctx, sel, e.data); err != nil {
			return e, err
		}
	}
	if a.as != nil {
		e.data, err = a.as.Append(make([]byte, 0, n*int64(t.Size())), e.data)
	}
	if inexact, ok := errors.AsType[*cf.InexactError](err); ok {
		err = a.misfit(inexact)
	}
	return e, err
}

// slabBytes is the number of bytes of elements read at a time. Tests make it
// small.
var slabBytes int64 = 8 << 20

// variableSize is the assumed size of an element of variable length.
const variableSize = 256

// parts reads the elements lo to hi of the dimension in parts of about slabBytes, which end
// where chunks of the joined array do if that is possible. Where a part would still be very
// large, it has one chunk of each other dimension. fn gets the selection of each part, whose
// slice along the dimension goes from first to end. fn must not keep the selection.
func (a *pieceArray) parts(ctx context.Context, lo, hi int64, fn func(index []zarr.Index, first, end int64, e elems) error) error {
	shape := a.meta.Shape
	if len(shape) == 0 {
		e, err := a.read(ctx, nil, 1)
		if err == nil {
			err = fn(nil, 0, 0, e)
		}
		return err
	}
	axis, chunk := max(a.base.axis, 0), a.base.chunk
	elem := int64(max(a.base.meta.Type.Size(), 1))
	if a.base.meta.Type.Variable() {
		elem = variableSize
	}
	if lo == hi {
		return nil
	}
	length := int64(1) // along the dimension, at least
	if a.uncut {
		length = hi - lo
	}
	step := length // elements of all other dimensions, 0 if they are too many
	for d, n := range shape {
		switch {
		case d == axis:
		case n == 0:
			return nil
		case step > maxHeldValue/elem/n:
			step = 0
		default:
			step *= n
		}
	}
	index := make([]zarr.Index, len(shape))
	var box func(d int, step int64) error
	box = func(d int, n int64) error {
		switch {
		case d == axis || d < len(shape) && step > 0:
			return box(d+1, n)
		case d < len(shape):
			grid := a.meta.Grid
			for c := range grid.Count(d, shape[d]) {
				from, to := grid.Start(d, c), min(grid.Start(d, c+1), shape[d])
				index[d] = zarr.Slice(from, to, 1)
				if err := box(d+1, n*(to-from)); err != nil {
					return err
				}
			}
			return nil
		}
		for first := lo; first < hi; {
			end := min(hi, first+max(slabBytes/(elem*n), length))
			if whole := end - (a.start+end)%chunk; end < hi && whole > first {
				end = whole
			}
			index[axis] = zarr.Slice(first, end, 1)
			e, err := a.read(ctx, index, n*(end-first))
			if err == nil {
				err = fn(index, first, end, e)
			}
			if err != nil {
				return err
			}
			first = end
		}
		return nil
	}
	return box(0, max(step/length, 1))
}

// contentsOf returns a digest of all elements of an array without the dimension. The chunks of
// the joined array give the order in which elements are read.
func contentsOf(ctx context.Context, a *pieceArray) ([]byte, error) {
	x := *a
	x.meta = a.base.meta
	length := int64(0)
	if shape := x.meta.Shape; len(shape) > 0 {
		length = shape[0]
	}
	h := sha256.New()
	err := x.parts(ctx, 0, length, func(_ []zarr.Index, _, _ int64, e elems) error {
		h.Write(e.data)
		for i := range e.vars.Len() {
			v := e.vars.At(i)
			fmt.Fprintf(h, "%d\n", len(v))
			h.Write(v)
		}
		return nil
	})
	return h.Sum(nil), err
}

// openPiece is a piece whose elements are read.
type openPiece struct {
	plan  *AppendPlan
	piece *appendPiece
	src   *Source

	// Of a linked piece.
	set    *source.Set
	prefix string    // of its keys in the set
	held   *heldRefs // the references read of it

	// While the piece is being written:
	keep  bool         // it is the first of new arrays: all keys of it are kept
	last  *appendArray // that a key belonged to
	names renumberer
}

// open opens the piece, and fetches the values that will be read if they are
// known.
func (p *openPiece) open(ctx context.Context) (err error) {
	if p.src == nil {
		if p.src, err = p.piece.Open(ctx); err != nil {
			return err
		}
	}
	if !p.plan.link {
		_, err = p.src.selection(ctx)
		return err
	}
	if p.set, p.prefix, err = p.src.env.ReferenceSet(ctx, p.src.at); err != nil {
		return err
	}
	p.held = &heldRefs{set: p.set, refs: map[string]refs.Reference{}}
	if p.piece.kept == nil {
		return nil
	}
	return p.hold(ctx, p.piece.kept.entries)
}

// hold keeps the references whose values are read, and fetches the short values.
func (p *openPiece) hold(ctx context.Context, entries func(context.Context) iter.Seq2[refs.Entry, error]) error {
	var last *appendArray
	for e, err := range entries(ctx) {
		if err != nil {
			return err
		}
		key, ok := strings.CutPrefix(e.Key, p.prefix)
		if !ok || names.IsDocument(key) {
			continue
		}
		a, _ := p.piece.array(last, key)
		if last = cmp.Or(a, last); a == nil || !a.reads {
			continue
		}
		if err := p.held.hold(key, e.Reference); err != nil {
			return err
		}
	}
	return p.held.fetch(ctx)
}

// array opens an array of the piece for reading its elements in the type of the joined array.
func (p *openPiece) array(ctx context.Context, a *appendArray) (from *pieceArray, err error) {
	from = &pieceArray{meta: a.meta, label: a.label, base: a.base, start: a.start, as: a.as, misfit: func(e *cf.InexactError) error {
		return p.plan.unlike(a, textOfType(a.base.meaning()), e.Reason)
	}}
	if a.label == nil {
		from.Array, err = p.stored(ctx, a)
	}
	return from, err
}

// stored opens an array of the piece as it is there.
func (p *openPiece) stored(ctx context.Context, a *appendArray) (*zarr.Array, error) {
	o := *p.src.open
	o.Version = a.meta.Version
	if p.held == nil {
		at, err := p.src.dataset(ctx)
		if err != nil {
			return nil, err
		}
		return zarr.OpenArray(ctx, at.View, names.Join(at.Path, a.path), &o)
	}
	docs, err := cmp.Or(a.own, a.meta).Print()
	if err != nil {
		return nil, err
	}
	for name, b := range docs {
		p.held.refs[names.Dir(a.path)+name] = refs.Reference{Data: b}
	}
	return zarr.OpenArray(ctx, p.held, a.path, &o)
}

// tryAll converts all elements of an array.
func (p *openPiece) tryAll(ctx context.Context, a *appendArray) error {
	from, err := p.array(ctx, a)
	if err != nil || from.as == nil {
		return err
	}
	return from.parts(ctx, 0, a.length(), func([]zarr.Index, int64, int64, elems) error { return nil })
}

// follows makes sure that the coordinates of the piece follow the coordinates before.
func (p *openPiece) follows(ctx context.Context, a *appendArray) error {
	from, err := p.array(ctx, a)
	if err != nil {
		return err
	}
	for _, r := range p.piece.runs {
		if !r.replaces {
			if err := a.base.order.read(ctx, from, r.lo, r.hi, p.piece.label); err != nil {
				return err
			}
		}
	}
	if p.piece.runs != nil {
		return nil
	}
	return a.base.order.read(ctx, from, 0, a.length(), p.piece.label)
}

// unlike is the error of an array of a piece whose elements do not fit.
func (p *AppendPlan) unlike(a *appendArray, want, got string) error {
	return &MisfitError{Dim: p.dim, Path: a.path, Field: "values", From: a.base.from, Want: want, Files: []string{a.piece.label}, Got: []string{got}}
}

// textOfType describes a data type in words.
func textOfType(m *zarr.Meta) string {
	if units, ok := textAttribute(m, "units"); ok {
		return fmt.Sprintf("%v %q", m.Type, units)
	}
	return m.Type.String()
}

// equal checks that an array without the dimension has the elements of the
// joined one.
func (j *joiner) equal(ctx context.Context, p *openPiece, a *appendArray) error {
	var is []byte
	got, err := p.array(ctx, a)
	if err == nil {
		is, err = contentsOf(ctx, got)
	}
	if err == nil && a.base.sum == nil {
		err = j.readJoined(ctx, a)
	}
	switch {
	case err != nil:
		return fmt.Errorf("/%s has not the dimension %s and must be the same in every source, but cannot be compared: %w", a.path, j.plan.dim, err)
	case !bytes.Equal(is, a.base.sum):
		return j.plan.unlike(a, "one set of elements", "another")
	}
	return nil
}

// readJoined finds the digest of the joined array that an array of a piece must be equal to.
func (j *joiner) readJoined(ctx context.Context, a *appendArray) (err error) {
	joined := &pieceArray{base: a.base}
	if m := j.model; m != nil {
		joined.Array, err = m.stored(ctx, m.piece.arrays[a.path])
	} else {
		joined.Array, err = j.s.Array(ctx, names.Join(j.o.To, a.path))
	}
	if err == nil {
		a.base.sum, err = contentsOf(ctx, joined)
	}
	return err
}
