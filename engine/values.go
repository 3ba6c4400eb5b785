package engine

import (
	"bytes"
	"context"
	"iter"
	"slices"

	"github.com/zarrdb/zarrdb/txn"
	"github.com/zarrdb/zarrdb/zarr"
	"github.com/zarrdb/zarrdb/zarr/dtype"
)

// ValueChange is what differs in values within one part of an array.
type ValueChange struct {
	// Path of the array in the newer version.
	Path string `json:"path"`
	// Start and Shape are the smallest box, within one chunk of the newer
	// version, that holds all elements which differ.
	Start []int64 `json:"start,omitempty"`
	Shape []int64 `json:"shape,omitempty"`
	// Count is how many elements differ. Two NaNs do not.
	Count int64 `json:"count"`
	// Numbers is how many of them have a difference that is a number, which
	// Min, Max and Mean are of: newer minus older; for complex numbers its
	// modulus; for times in counts of their unit. Not of text, bytes, structs,
	// and where either side is NaN, infinite or NaT.
	Numbers int64   `json:"numbers"`
	Min     float64 `json:"min"`
	Max     float64 `json:"max"`
	Mean    float64 `json:"mean"`
	// Incomparable says why nothing was compared: "data type" or "rank".
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

// ValueChanges compares the values of an array that NodeChanges found changed or
// renamed, where both versions have elements, and yields the parts that differ,
// each within one chunk. Only chunks that changed are decoded, one after the
// other, unless the chunking or the encoding changed: then all are. A value that
// was encoded anew to the same is no difference. Nodes that are no arrays in both
// versions yield nothing.
func (db *DB) ValueChanges(ctx context.Context, from, to txn.CommitID, c NodeChange) iter.Seq2[ValueChange, error] {
	return func(yield func(ValueChange, error) bool) {
		if err := db.valueChanges(ctx, from, to, c, yield); err != nil && err != errStopped {
			yield(ValueChange{}, err)
		}
	}
}

func (db *DB) valueChanges(ctx context.Context, from, to txn.CommitID, c NodeChange, yield func(ValueChange, error) bool) error {
	if c.Kind != "changed" && c.Kind != "renamed" {
		return nil
	}
	v := valueDiff{path: c.Path, oldPath: c.Path}
	if c.From != "" {
		v.oldPath = c.From
	}
	for _, side := range []struct {
		id   txn.CommitID
		path string
		a    **zarr.Array
	}{{from, v.oldPath, &v.old}, {to, v.path, &v.new}} {
		s, err := db.Snapshot(ctx, side.id)
		if err != nil {
			return err
		}
		defer s.Close()
		n, err := s.Node(ctx, side.path)
		if err != nil {
			return err
		}
		a, ok := n.Array()
		if !ok {
			return nil
		}
		*side.a = a
	}
	why := v.incomparable()
	if why != "" {
		yield(ValueChange{Path: c.Path, Incomparable: why}, nil)
		return nil
	}
	for chunk, err := range v.chunks(ctx, db.DB, from, to) {
		if err != nil {
			return err
		}
		if err := v.compare(ctx, chunk.Start, chunk.Shape, yield); err != nil {
			return err
		}
	}
	return nil
}

// valueDiff compares two states of an array.
type valueDiff struct {
	path, oldPath string
	old, new      *zarr.Array
	common        []int64 // shape of what both have
	bufs          [2][]byte
	difference    differenceFunc
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
	v.difference = differenceOf(t)
	return ""
}

// chunks yields the chunks whose values may differ, as parts of what both have.
func (v *valueDiff) chunks(ctx context.Context, db *txn.DB, from, to txn.CommitID) iter.Seq2[zarr.Chunk, error] {
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
		for change, err := range db.DiffNode(ctx, from, v.oldPath, to, v.path) {
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

// clip cuts a chunk to what both have; false if nothing is left.
func (v *valueDiff) clip(c *zarr.Chunk) bool {
	for d := range c.Start {
		c.Shape[d] = min(c.Shape[d], v.common[d]-c.Start[d])
		if c.Shape[d] <= 0 {
			return false
		}
	}
	return true
}
