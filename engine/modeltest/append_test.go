package modeltest

import (
	"context"
	"maps"
	"slices"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/kv/dirkv"
	"github.com/zarrdb/zarrdb/zarr"
)

// dimensions are the names of those of all arrays in Zarr v3. Version 2 has none.
var dimensions = []string{"t", "x"}

// stepAppend joins stores of one array each to an array of a branch.
func stepAppend(r *run) {
	d := r.database()
	branch := one(r, d.branches())
	head := r.head(d, branch)
	list := slices.DeleteFunc(head.tree.arrays(), func(p string) bool {
		a := head.tree[p].array
		return a.hides() || slices.Contains(a.shape, 0)
	})
	if r.format != zarr.V3 || len(list) == 0 {
		return
	}
	p := one(r, list)
	n := head.tree[p]
	axis := r.rng.IntN(len(n.array.shape))
	r.note("%s: append to /%s of %s along %d:", d.name, p, branch, axis)
	joined, layer := n.array, product(n.array.shape)/n.array.shape[axis]
	var pieces []engine.Piece
	for range 1 + r.rng.IntN(3) {
		start := joined.shape[axis]
		piece, values := r.piece(n.array, axis)
		pieces = append(pieces, piece)
		shape := slices.Clone(joined.shape)
		shape[axis] += int64(len(values)) / layer
		joined = joined.resize(shape)
		sel := whole(joined)
		sel.lo[axis] = start
		joined = joined.write(sel, values)
	}
	plan, err := engine.PlanAppend(bg, pieces, engine.AppendOptions{Dim: dimensions[axis]})
	r.must(err, "plan the append")
	res, err := r.via(d).Append(bg, plan, engine.ImportOptions{To: p, Branch: branch, AnyOrder: true})
	r.must(err, "append")
	after := maps.Clone(head.tree)
	after[p] = n.withArray(joined)
	r.replayed(d, branch, res.Commit, after, false)
}

// piece writes a store of random values that continue an array along an axis.
func (r *run) piece(a *array, axis int) (engine.Piece, []int32) {
	spec := r.spec(a.kind, a.fill)
	spec.Shape = slices.Clone(a.shape)
	spec.Shape[axis] = 1 + r.rng.Int64N(a.kind.chunk[axis]+2)
	if r.chance(2) {
		spec.Shape[axis] = a.kind.chunk[axis]
	}
	values := make([]int32, product(spec.Shape))
	for i := range values {
		values[i] = r.rng.Int32N(a.kind.limit)
	}
	r.note("%d", spec.Shape[axis])
	dir := r.file("piece.zarr")
	store, err := dirkv.Create(dir, &dirkv.Options{NoSync: true})
	r.must(err, "create a piece")
	defer store.Close()
	made, err := zarr.Create(bg, store, "", spec, nil)
	r.must(err, "create a piece")
	r.must(a.kind.write(bg, made, zarr.Sel(), values), "write a piece")
	return engine.Piece{Name: dir, Open: func(context.Context) (*engine.Source, error) { return engine.OpenSource(bg, dir, nil) }}, values
}
