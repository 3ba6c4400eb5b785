package engine

import (
	"context"
	"fmt"
	"math"
	"path"
	"slices"

	"github.com/zarrdb/zarrdb/engine/internal/compare"
	"github.com/zarrdb/zarrdb/engine/internal/names"
	"github.com/zarrdb/zarrdb/zarr"
	"github.com/zarrdb/zarrdb/zarr/dtype"
)

// OrderError means that the coordinates of an append repeat or go back: mostly a
// file is appended twice, or files are in the wrong order. It is ErrMisfit;
// [ImportOptions].AnyOrder joins such pieces anyway.
type OrderError struct {
	// Dim is the dimension, Path the array of its coordinates.
	Dim, Path string
	// Value of File repeats or does not follow Last of From. Both are JSON.
	Value, File string
	Last, From  string
	// Repeats means that the value exists already.
	Repeats bool
}

// Error names the array, the values and their files.
func (e *OrderError) Error() string {
	if e.Repeats {
		return fmt.Sprintf("append along %s: /%s: %s in %s is there already, in %s", e.Dim, e.Path, e.Value, e.File, e.From)
	}
	return fmt.Sprintf("append along %s: /%s: %s in %s does not follow %s in %s", e.Dim, e.Path, e.Value, e.File, e.Last, e.From)
}

// Is makes it an ErrMisfit.
func (e *OrderError) Is(target error) bool { return target == ErrMisfit }

// coordinateOrder watches the values of a coordinate variable, the array of one
// dimension that has the dimension's name (CF conventions, "Coordinate Types"):
// numbers and times must go on in one direction, labels must not repeat.
type coordinateOrder struct {
	dim  string
	base *appendBase

	// Of numbers and times.
	difference compare.Difference
	pace       *pace
	last       []byte // value, nil before the first
	from       string // its source
	sign       float64

	labels map[string]string // with their sources
	size   int64             // of labels
}

// newCoordinateOrder returns nil for an array that is no coordinate variable.
func newCoordinateOrder(dim string, b *appendBase) *coordinateOrder {
	if b.axis != 0 || len(b.meta.Shape) != 1 || path.Base(b.path) != dim {
		return nil
	}
	o := &coordinateOrder{dim: dim, base: b}
	switch b.meta.Type.Kind() {
	case dtype.Int, dtype.Uint, dtype.Float, dtype.Datetime, dtype.Timedelta:
		o.difference = compare.DifferenceOf(b.meta.Type)
		o.pace = newPace(o)
	default:
		o.labels = map[string]string{}
	}
	return o
}

// begin reads the existing values: the first and the last number give the
// direction.
func (o *coordinateOrder) begin(ctx context.Context, a *pieceArray, from string) error {
	n := a.meta.Shape[0]
	if o.labels != nil || n == 0 {
		return o.read(ctx, a, 0, n, from)
	}
	at := func(i int64) (elems, error) { return a.read(ctx, []zarr.Index{zarr.Slice(i, i+1, 1)}, 1) }
	first, err := at(0)
	if err != nil {
		return err
	}
	last, err := at(n - 1)
	if err != nil {
		return err
	}
	o.last, o.from = last.data, from
	if by, how := o.difference(first.data, last.data); n > 1 && how == compare.NumberDifference {
		o.sign = by
	}
	o.pace.existing = true
	defer func() { o.pace.existing = false }()
	return a.parts(ctx, max(n-tail, 0), n, func(_ []zarr.Index, _, _ int64, e elems) error {
		for v := range slices.Chunk(e.data, max(o.base.meta.Type.Size(), 1)) {
			o.pace.value(v, from)
		}
		return nil
	})
}

// read checks that the values lo to hi of an array follow the values of earlier calls.
func (o *coordinateOrder) read(ctx context.Context, a *pieceArray, lo, hi int64, from string) error {
	return a.parts(ctx, lo, hi, func(_ []zarr.Index, _, _ int64, e elems) error { return o.values(e, from) })
}

// values checks that values follow the values of earlier calls, and notes the last value.
func (o *coordinateOrder) values(e elems, from string) error {
	for i := range e.vars.Len() {
		if err := o.label(e.vars.At(i), from); err != nil {
			return err
		}
	}
	take := o.number
	if o.labels != nil {
		take = o.label
	}
	for elem := range slices.Chunk(e.data, max(o.base.meta.Type.Size(), 1)) {
		if err := take(elem, from); err != nil {
			return err
		}
	}
	return nil
}

func (o *coordinateOrder) number(v []byte, from string) error {
	if o.last != nil {
		by, how := o.difference(o.last, v)
		switch {
		case string(v) == string(o.last) || how == compare.NumberDifference && by == 0:
			return o.misfit(v, from, o.last, o.from, true)
		case how != compare.NumberDifference || math.Signbit(by) != math.Signbit(o.sign) && o.sign != 0:
			return o.misfit(v, from, o.last, o.from, false)
		}
		o.sign = by
	}
	o.last, o.from = append(o.last[:0], v...), from
	o.pace.value(v, from)
	return nil
}

func (o *coordinateOrder) label(v []byte, from string) error {
	if had, ok := o.labels[string(v)]; ok {
		return o.misfit(v, from, v, had, true)
	}
	if o.size += int64(len(v)) + 64; o.size > maxHeld {
		return fmt.Errorf("%w: labels of more than %d MiB are not compared", zarr.ErrTooLarge, maxHeld>>20)
	}
	o.labels[string(v)] = from
	return nil
}

func (o *coordinateOrder) misfit(v []byte, file string, last []byte, from string, repeats bool) error {
	return &OrderError{Dim: o.dim, Path: o.base.path, Value: o.text(v), File: file, Last: o.text(last), From: from, Repeats: repeats}
}

// text is a value as JSON.
func (o *coordinateOrder) text(v []byte) string {
	b, err := o.base.meta.Type.AppendJSON(nil, v)
	if err != nil {
		return fmt.Sprintf("%x", v)
	}
	return string(b)
}

// watch begins to check the order of coordinates, if the array has some. It reads the
// existing ones before the array grows.
func (j *joiner) watch(ctx context.Context, there nodes, b *appendBase) error {
	b.order = newCoordinateOrder(j.plan.dim, b)
	if b.order == nil || j.fresh {
		return nil
	}
	var from *pieceArray
	a, err := there.Array(ctx, names.Join(j.o.To, b.path))
	if err == nil {
		from, err = b.existing(a)
	}
	if err == nil {
		err = b.order.begin(ctx, from, b.from)
	}
	return orderFailed(b.path, err)
}

func orderFailed(path string, err error) error {
	if _, ok := err.(*OrderError); ok || err == nil {
		return err
	}
	return fmt.Errorf("/%s: whether its values are in order cannot be found out: %w", path, err)
}
