package engine

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math"

	"github.com/zarrdb/zarrdb/engine/internal/names"
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

// pieceArray is an array with elements of the joined array.
type pieceArray struct {
	*zarr.Array
	meta   *zarr.Meta                   // has a first dimension of length 1 that Array has not, if that is new
	as     *cf.Recoder                  // nil if the elements need no conversion
	t      dtype.Type                   // of the joined array
	uncut  bool                         // parts are not cut along their dimension
	misfit func(*cf.InexactError) error // makes the error of an element that has no exact value
}

// plainArray is an array whose elements are not converted.
func plainArray(a *zarr.Array) *pieceArray { return &pieceArray{Array: a, meta: a.Meta(), t: a.Type()} }

// read reads n elements. index has a selection for each dimension.
func (a *pieceArray) read(ctx context.Context, index []zarr.Index, n int64) (e elems, err error) {
	sel := zarr.Sel(index[len(index)-len(a.Array.Shape()):]...)
	if a.t.Variable() {
		e.vars, err = a.ReadVar(ctx, sel)
		return e, err
	}
	size := int64(a.Array.Type().Size())
	if n > math.MaxInt/max(size, int64(a.t.Size())) {
		return e, zarr.ErrTooLarge
	}
	e.data = make([]byte, n*size)
	if err := a.ReadBytes(ctx, sel, e.data); err != nil || a.as == nil {
		return e, err
	}
	e.data, err = a.as.Append(make([]byte, 0, n*int64(a.t.Size())), e.data)
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

// along selects a part of one dimension.
func along(rank, axis int, lo, hi int64) []zarr.Index {
	index := make([]zarr.Index, rank)
	index[axis] = zarr.Slice(lo, hi, 1)
	return index
}

// parts reads the elements lo to hi of a dimension in parts of about slabBytes, which end
// where chunks do if that is possible: chunks of the given length that begin at -start. Where
// a part would still be very large, it has one chunk of each other dimension. fn gets the
// selection of each part, whose slice along the dimension goes from first to end. fn must not
// keep the selection.
func (a *pieceArray) parts(ctx context.Context, axis int, lo, hi, chunk, start int64, fn func(index []zarr.Index, first, end int64, e elems) error) error {
	shape := a.meta.Shape
	if len(shape) == 0 {
		e, err := a.read(ctx, nil, 1)
		if err == nil {
			err = fn(nil, 0, 0, e)
		}
		return err
	}
	elem := int64(max(a.t.Size(), 1))
	if a.t.Variable() {
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
			if whole := end - (start+end)%chunk; end < hi && whole > first {
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

// array opens an array of the piece for reading its elements as those of the joined one.
func (p *openPiece) array(ctx context.Context, a *appendArray) (*pieceArray, error) {
	from, err := p.stored(ctx, a)
	return &pieceArray{Array: from, meta: a.meta, as: a.as, t: a.base.meta.Type, misfit: func(e *cf.InexactError) error {
		return p.unlike(a, textOfType(a.base.meaning()), e.Reason)
	}}, err
}

// unlike is the error of an array of a piece whose elements do not fit.
func (p *openPiece) unlike(a *appendArray, want, got string) error {
	return &MisfitError{Dim: p.plan.dim, Path: a.path, Field: "values", From: a.base.from, Want: want, Files: []string{p.piece.label}, Got: []string{got}}
}

// contentsOf returns a digest of all elements of an array without the dimension. The chunks of
// the joined array, whose metadata is as, give the order in which elements are read.
func contentsOf(ctx context.Context, a *pieceArray, as *zarr.Meta) (sum [sha256.Size]byte, err error) {
	x := *a
	x.meta = as
	chunk, length := int64(1), int64(0)
	if shape := as.Shape; len(shape) > 0 {
		length = shape[0]
		if c := as.Grid.Regular(); c != nil {
			chunk = int64(max(c[0], 1))
		}
	}
	h := sha256.New()
	err = x.parts(ctx, 0, 0, length, chunk, 0, func(_ []zarr.Index, _, _ int64, e elems) error {
		h.Write(e.data)
		for i := range e.vars.Len() {
			v := e.vars.At(i)
			fmt.Fprintf(h, "%d\n", len(v))
			h.Write(v)
		}
		return nil
	})
	return [sha256.Size]byte(h.Sum(nil)), err
}

// joined returns the digest of the joined array that an array of a piece must be equal to.
func (j *joiner) joined(ctx context.Context, a *appendArray) (sum [sha256.Size]byte, err error) {
	if sum, ok := j.contents[a.base]; ok {
		return sum, nil
	}
	var array *zarr.Array
	if m := j.model; m != nil {
		array, err = m.stored(ctx, m.piece.arrays[a.path])
	} else {
		array, err = j.s.Array(ctx, names.Join(j.o.To, a.path))
	}
	if err == nil {
		sum, err = contentsOf(ctx, plainArray(array), a.base.meta)
	}
	if err == nil {
		j.contents[a.base] = sum
	}
	return sum, err
}

// equal checks that an array without the dimension has the elements of the
// joined one.
func (p *piecePass) equal(ctx context.Context, a *appendArray) error {
	var is, want [sha256.Size]byte
	got, err := p.array(ctx, a)
	if err == nil {
		is, err = contentsOf(ctx, got, a.base.meta)
	}
	if err == nil {
		want, err = p.j.joined(ctx, a)
	}
	switch {
	case err != nil:
		return fmt.Errorf("/%s has not the dimension %s and must be the same in every source, but cannot be compared: %w", a.path, p.plan.dim, err)
	case is != want:
		return p.unlike(a, "one set of elements", "another")
	}
	return nil
}
