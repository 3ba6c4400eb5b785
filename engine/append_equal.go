package engine

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/zarrdb/zarrdb/engine/internal/names"
	"github.com/zarrdb/zarrdb/zarr"
	"github.com/zarrdb/zarrdb/zarr/dtype"
)

// equal checks that an array without the dimension has the elements of the
// joined one.
func (p *piecePass) equal(ctx context.Context, a *appendArray) error {
	got, err := p.array(ctx, a)
	if err != nil {
		return err
	}
	want, err := p.j.joined(ctx, a)
	if err != nil {
		return err
	}
	same, err := want.same(ctx, got)
	if err != nil {
		return fmt.Errorf("/%s has not the dimension %s and must be the same in every source, but cannot be compared: %w", a.path, p.j.plan.dim, err)
	}
	if !same {
		return &MisfitError{Dim: p.j.plan.dim, Path: a.path, Field: "values", From: a.base.from, Want: "one set of elements", Files: []string{p.piece.label}, Got: []string{"another"}}
	}
	return nil
}

// joinedArray is an array that all pieces are compared with. Its chunks may be
// on a server, so a short one is read once.
type joinedArray struct {
	*zarr.Array
	j    *joiner
	text []byte         // all elements of fixed size, in C order; nil if they are not kept
	vars dtype.Variable // all elements of variable length
	read bool           // text or vars is filled
}

// maxJoined bounds the elements of all arrays that are kept to be compared with.
// Tests make it small.
var maxJoined int64 = 32 << 20

// joined returns the joined array that one of a piece must be equal to.
func (j *joiner) joined(ctx context.Context, a *appendArray) (*joinedArray, error) {
	if x := j.compared[a.base]; x != nil {
		return x, nil
	}
	x := &joinedArray{j: j}
	var err error
	if m := j.model; m != nil {
		x.Array, err = m.stored(ctx, m.piece.arrays[a.path])
	} else {
		x.Array, err = j.s.Array(ctx, names.Join(j.o.To, a.path))
	}
	if err != nil {
		return nil, err
	}
	if size := a.size(); !x.Type().Variable() && size <= maxJoined-j.held {
		x.text = make([]byte, int(size))
		j.held += size
	}
	if j.compared == nil {
		j.compared = map[*appendBase]*joinedArray{}
	}
	j.compared[a.base] = x
	return x, nil
}

// same compares the elements with those of another array of the same shape and
// type, bit by bit.
func (x *joinedArray) same(ctx context.Context, got *pieceArray) (bool, error) {
	if x.Type().Variable() {
		return x.sameVariable(ctx, got)
	}
	if x.text != nil && !x.read {
		if err := x.ReadBytes(ctx, zarr.Sel(), x.text); err != nil {
			return false, err
		}
		x.read = true
	}
	var want, is []byte
	at := 0
	compare := func(sel zarr.Selection, size int) error {
		is = slices.Grow(is[:0], size)[:size]
		if err := got.ReadBytes(ctx, sel, is); err != nil {
			return err
		}
		if x.text != nil {
			want = x.text[at : at+size] // parts follow each other along the first dimension
			at += size
		} else {
			want = slices.Grow(want[:0], size)[:size]
			if err := x.ReadBytes(ctx, sel, want); err != nil {
				return err
			}
		}
		if !bytes.Equal(want, is) {
			return errEnough
		}
		return nil
	}
	shape, size := x.Shape(), int64(x.Type().Size())
	var err error
	if len(shape) == 0 {
		err = compare(zarr.Sel(), int(size))
	} else {
		chunk := int64(1)
		if c := x.Meta().Grid.Regular(); c != nil {
			chunk = int64(max(c[0], 1))
		}
		err = slabs(shape, 0, size, chunk, 0, func(sel zarr.Selection, _, _ int64, n int) error { return compare(sel, n) })
	}
	if err == errEnough {
		return false, nil
	}
	return err == nil, err
}

func (x *joinedArray) sameVariable(ctx context.Context, got *pieceArray) (bool, error) {
	want := x.vars
	if !x.read {
		var err error
		if want, err = x.ReadVar(ctx, zarr.Sel()); err != nil {
			return false, err
		}
		size := int64(0)
		for i := range want.Len() {
			size += int64(len(want.At(i))) + 4
		}
		if size <= maxJoined-x.j.held {
			x.j.held += size
			x.vars, x.read = want, true
		}
	}
	is, err := got.ReadVar(ctx, zarr.Sel())
	if err != nil {
		return false, err
	}
	for i := range is.Len() {
		if !bytes.Equal(want.At(i), is.At(i)) {
			return false, nil
		}
	}
	return true, nil
}
