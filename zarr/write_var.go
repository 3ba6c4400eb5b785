package zarr

import (
	"context"
	"fmt"

	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/zarr/dtype"
)

// WriteVar writes elements of a variable-length type to sel: src has as many elements as the selection, else
// the error is [ErrSelection]. Elements are checked to be of the array's type (UTF-8 text, whole
// numbers of a ragged element). The rest is as for [Array.WriteBytes].
func (a *Array) WriteVar(ctx context.Context, sel Selection, src dtype.Variable) error {
	return a.fail("write", a.writeVar(ctx, sel, src, false))
}

// writeVar is WriteVar; with every, src is one element, to be written
// everywhere.
func (a *Array) writeVar(ctx context.Context, sel Selection, src dtype.Variable, every bool) error {
	j, err := a.begin(ctx, sel, false)
	if err != nil {
		return err
	}
	defer j.end()
	t := j.st.meta.Type
	switch {
	case !t.Variable():
		return fmt.Errorf("%w: elements of type %v have a fixed size", ErrType, t)
	case int64(src.Len()) != j.total && (!every || src.Len() != 1):
		return fmt.Errorf("%w: %d elements for shape %v", ErrSelection, src.Len(), j.shape)
	case a.readOnly != nil:
		return a.readOnly
	}
	if err := src.Validate(t); err != nil {
		return err
	}
	j.pack(nil)
	if every {
		clear(j.user.Strides)
	}
	return j.work(ctx, func(t *task, ctx context.Context) error {
		return t.change(ctx, func() error { return t.writeBlock(ctx, src) })
	})
}

// variableOf returns one element as a Variable.
func variableOf(elem []byte) (dtype.Variable, error) {
	b, err := dtype.NewBuilder(nil, 1)
	if err != nil {
		return dtype.Variable{}, err
	}
	if err := b.Append(elem); err != nil {
		return dtype.Variable{}, err
	}
	buf, err := b.Finish()
	if err != nil {
		return dtype.Variable{}, err
	}
	return dtype.OpenVariable(buf, 1)
}

// writeBlock stores the wanted elements of the chunk in hand.
func (t *task) writeBlock(ctx context.Context, src dtype.Variable) error {
	form := t.form
	var old dtype.Variable
	there := true
	if whole, _ := t.covers(); !whole {
		v, err := t.old(ctx)
		if err != nil {
			return err
		}
		if there = v != nil; there {
			err := v.View(ctx, kv.All(), func(encoded []byte) error {
				t.scratch, err = form.bound.Decode(t.scratch[:0], encoded)
				return err
			})
			if err != nil {
				return err
			}
			if old, err = openBlock(t.scratch, form.count); err != nil {
				return err
			}
		}
	}
	// which holds for each element of the chunk its number in src plus one.
	which := make([]int32, form.count)
	t.pairs(t.origin(), form.strides, func(buf, user int) { which[buf] = int32(user) + 1 })
	out, err := dtype.NewBuilder(nil, form.count)
	if err != nil {
		return err
	}
	for i, w := range which {
		elem := t.j.st.meta.Fill
		switch {
		case w > 0:
			elem = src.At(int(w - 1))
		case old.Len() > 0:
			elem = old.At(i)
		}
		if err := out.Append(elem); err != nil {
			return err
		}
	}
	block, err := out.Finish()
	if err != nil {
		return err
	}
	return t.storeBuffer(ctx, block, there)
}
