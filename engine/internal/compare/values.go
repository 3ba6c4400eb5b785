package compare

import (
	"bytes"
	"context"
	"iter"
	"slices"

	"github.com/zarrdb/zarrdb/txn"
	"github.com/zarrdb/zarrdb/zarr"
	"github.com/zarrdb/zarrdb/zarr/dtype"
)

// ValueChange is the difference of values within one part of an array.
type ValueChange struct {
	// Path of the array in the newer version.
	Path string `json:"path"`
	// Start and Shape are the smallest box, within one chunk of the newer
	// version, that holds all elements which differ.
	Start []int64 `json:"start,omitempty"`
	Shape []int64 `json:"shape,omitempty"`
	// Count is the number of differing elements. Two NaNs are equal.
	Count int64 `json:"count"`
	// Numbers is the number of elements with a numeric difference, of which Min,
	// Max and Mean are computed: newer minus older; for complex numbers its
	// modulus; for times in counts of their unit. Text, bytes, structs, NaN,
	// infinity and NaT have none.
	Numbers int64   `json:"numbers"`
	Min     float64 `json:"min"`
	Max     float64 `json:"max"`
	Mean    float64 `json:"mean"`
	// Incomparable is the reason if values were not compared: "data type" or
	// "rank".
	Incomparable string `json:"incomparable,omitempty"`
}

// Add takes another part into a sum of parts of one array. The box becomes
// that around both.
func (v *ValueChange) Add(o ValueChange) {
	if o.Count == 0 {
		return
	}
	if v.Count == 0 {
		o.Start, o.Shape = slices.Clone(o.Start), slices.Clone(o.Shape)
		*v = o
		return
	}
	for d, lo := range o.Start {
		end := max(v.Start[d]+v.Shape[d], lo+o.Shape[d])
		v.Start[d] = min(v.Start[d], lo)
		v.Shape[d] = end - v.Start[d]
	}
	v.Count += o.Count
	switch {
	case o.Numbers == 0:
		return
	case v.Numbers == 0:
		v.Min, v.Max, v.Mean = o.Min, o.Max, o.Mean
	default:
		v.Min, v.Max = min(v.Min, o.Min), max(v.Max, o.Max)
		v.Mean += (o.Mean - v.Mean) * (float64(o.Numbers) / float64(v.Numbers+o.Numbers))
	}
	v.Numbers += o.Numbers
}

// Values compares the elements that two states of an array both have, and yields the parts that
// differ, each within one chunk. keys yields the changes of its keys, as [txn.DB.DiffNode] does.
// Only chunks that changed are decoded, one after the other, unless the chunking or the encoding
// changed: then all are. A value that was encoded anew to the same is no difference.
func Values(ctx context.Context, path string, old, new *zarr.Array, keys iter.Seq2[txn.Change, error]) iter.Seq2[ValueChange, error] {
	return func(yield func(ValueChange, error) bool) {
		v := valueDiff{path: path, old: old, new: new}
		if why := v.incomparable(); why != "" {
			yield(ValueChange{Path: path, Incomparable: why}, nil)
			return
		}
		for chunk, err := range v.chunks(ctx, keys) {
			if err == nil {
				err = v.compare(ctx, chunk.Start, chunk.Shape, yield)
			}
			if err == errStopped {
				return
			}
			if err != nil {
				yield(ValueChange{}, err)
				return
			}
		}
	}
}

// Parts yields the parts of two states of an array that [Values] compares, none if their
// values cannot be compared.
func Parts(ctx context.Context, old, new *zarr.Array, keys iter.Seq2[txn.Change, error]) iter.Seq2[zarr.Chunk, error] {
	v := valueDiff{old: old, new: new}
	if v.incomparable() != "" {
		return func(func(zarr.Chunk, error) bool) {}
	}
	return v.chunks(ctx, keys)
}

// valueDiff compares two states of an array.
type valueDiff struct {
	path       string
	old, new   *zarr.Array
	common     []int64 // common shape of both
	bufs       [2][]byte
	difference Difference
	each       func(at []int64) // called for each element that differs; may be nil
}

// Elements calls fn with the place of each element of a box that differs between two states of an
// array, in any order. The slice is valid during the call. comparable is false, and fn is not called,
// if values of their data types cannot be compared.
func Elements(ctx context.Context, old, new *zarr.Array, start, shape []int64, fn func(at []int64)) (comparable bool, err error) {
	v := valueDiff{old: old, new: new, each: fn}
	if v.incomparable() != "" {
		return false, nil
	}
	return true, v.compare(ctx, start, shape, func(ValueChange, error) bool { return true })
}

func (v *valueDiff) incomparable() string {
	t := v.new.Type().WithOrder(dtype.None)
	a, b := v.old.Shape(), v.new.Shape()
	switch {
	case !t.Equal(v.old.Type().WithOrder(dtype.None)):
		return "data type"
	case len(a) != len(b):
		return "rank"
	}
	v.common = make([]int64, len(a))
	for d := range a {
		v.common[d] = min(a[d], b[d])
	}
	v.difference = DifferenceOf(t)
	return ""
}

// chunks yields the chunks whose values may differ, as parts of the common
// shape.
func (v *valueDiff) chunks(ctx context.Context, keys iter.Seq2[txn.Change, error]) iter.Seq2[zarr.Chunk, error] {
	all := make([]zarr.Index, len(v.common))
	for d, n := range v.common {
		if n == 0 {
			return func(func(zarr.Chunk, error) bool) {}
		}
		all[d] = zarr.Slice(0, n, 1)
	}
	m := v.new.Meta()
	if m.Version == zarr.Draft3 || !bytes.Equal(m.StructureKey(), v.old.Meta().StructureKey()) {
		return func(yield func(zarr.Chunk, error) bool) {
			for c, err := range v.new.Chunks(ctx, zarr.Sel(all...)) {
				if err != nil || v.clip(&c) {
					if !yield(c, err) {
						return
					}
				}
			}
		}
	}
	return func(yield func(zarr.Chunk, error) bool) {
		for change, err := range keys {
			if err != nil {
				yield(zarr.Chunk{}, err)
				return
			}
			coords, ok := m.Keys.Parse(change.Key)
			if !ok || len(coords) != len(v.common) {
				continue
			}
			c := zarr.Chunk{Coords: coords}
			if v.place(&c) && v.clip(&c) && !yield(c, nil) {
				return
			}
		}
	}
}

// place finds the part of the array that a chunk holds; false if the grid has
// no such chunk.
func (v *valueDiff) place(c *zarr.Chunk) bool {
	grid := v.new.Meta().Grid
	for d, i := range c.Coords {
		if i >= grid.Count(d, v.common[d]) {
			return false
		}
		lo := grid.Start(d, i)
		c.Start = append(c.Start, lo)
		c.Shape = append(c.Shape, grid.Start(d, i+1)-lo)
	}
	return true
}

// clip cuts a chunk to the common shape; false if it is outside.
func (v *valueDiff) clip(c *zarr.Chunk) bool {
	for d := range c.Start {
		c.Shape[d] = min(c.Shape[d], v.common[d]-c.Start[d])
		if c.Shape[d] <= 0 {
			return false
		}
	}
	return true
}
