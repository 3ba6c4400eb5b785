package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/zarrdb/zarrdb/engine/internal/names"
	"github.com/zarrdb/zarrdb/txn"
	"github.com/zarrdb/zarrdb/zarr"
	"github.com/zarrdb/zarrdb/zarr/cf"
	"github.com/zarrdb/zarrdb/zarr/dtype"
	"github.com/zarrdb/zarrdb/zarr/meta"
)

// align finds where each piece goes, and which elements are encoded again.
func (p *AppendPlan) align() {
	for _, b := range p.sorted {
		arrays := p.arraysOf(b)
		for _, a := range arrays {
			var err error
			if a.as, err = recoder(b.meaning(), a.meaning()); err != nil {
				field := "data_type"
				if b.meta.Type.Equal(a.meta.Type) {
					field = "fill_value"
				}
				p.bad.add(b.path, field, false, misfitValue{b.from, metaText(b.meta, field)}, misfitValue{a.piece.label, metaText(a.meta, field)})
			}
		}
		switch {
		case b.axis < 0:
		case p.replace && p.coordinate != nil:
			p.placeSteps(b, arrays)
		case !p.place(b, arrays):
			return
		}
	}
}

// arraysOf returns the arrays that are joined. Pieces may lack an array without the dimension.
func (p *AppendPlan) arraysOf(b *appendBase) (list []*appendArray) {
	for _, piece := range p.pieces {
		if a := piece.arrays[b.path]; a != nil {
			list = append(list, a)
		}
	}
	return list
}

// place finds where the pieces of an array go. ok is false if the joined array becomes too
// long.
func (p *AppendPlan) place(b *appendBase, arrays []*appendArray) (ok bool) {
	b.total, b.grid, b.kept = b.had, nil, b.had
	rejoin := false // elements have to move to other chunks
	for _, a := range arrays {
		a.start, a.first, a.kept = b.total, b.total/b.chunk, 0
		if b.total += a.length(); b.total < a.start {
			p.bad.add(b.path, "shape", false, misfitValue{b.from, fmt.Sprint(a.start)}, misfitValue{a.piece.label, "longer than an array can be"})
			return false
		}
		diff := b.meta.Diff(a.meta)
		a.sameGrid = !slices.Contains(diff, "chunk_grid")
		// Of data types, v2 also has other byte orders.
		a.recoded = a.as != nil || a.label != nil || slices.Contains(diff, "codecs") || slices.Contains(diff, "data_type")
		cut := !a.sameGrid || a.start%b.chunk != 0
		a.rewrite = a.length() > 0 && (a.recoded || cut)
		rejoin = rejoin || a.rewrite && cut
	}
	if regular := b.meta.Grid.Regular() != nil; !regular || rejoin && p.rectilinear && !b.small {
		p.joinRuns(b, arrays)
	}
	if !p.link {
		return true
	}
	rewrite := slices.ContainsFunc(arrays, func(a *appendArray) bool { return a.rewrite })
	before := b.from
	for _, a := range arrays {
		if a.rewrite && (!b.small || metaSize(a.meta) > maxRewrite) {
			p.notLinked(a, before)
		}
		if rewrite {
			a.rewrite, a.kept = true, 0
		}
		before = a.piece.label
	}
	if !b.small && b.kept < b.had {
		p.bad.add(b.path, "chunk boundary", true, misfitValue{b.from, "a last chunk that is not full"}, misfitValue{p.pieces[0].label, "linked behind it"})
	}
	return true
}

// notLinked adds why a linking append cannot join an array of which elements would have to
// be encoded again. before is the source of the elements before.
func (p *AppendPlan) notLinked(a *appendArray, before string) {
	b, long := a.base, ""
	if b.small {
		long = fmt.Sprintf(", with %d bytes of coordinates (at most %d MiB are written anew when linking)", metaSize(a.meta), maxRewrite>>20)
	}
	add := func(field, from, want, got string) {
		p.bad.add(b.path, field, true, misfitValue{from, want}, misfitValue{a.piece.label, got + long})
	}
	switch {
	case !a.sameGrid:
		add("chunk_grid", b.from, metaText(b.meta, "chunk_grid"), metaText(a.meta, "chunk_grid"))
	case a.start%b.chunk == 0:
		add("elements", b.from, "stored as "+b.meta.Type.String(), "converted")
	default:
		add("chunk boundary", before, fmt.Sprintf("a last chunk of %d that is not full", b.chunk), fmt.Sprintf("begins at %d, inside of it", a.start))
	}
}

// joinRuns gives an array a rectilinear grid, in which chunks follow each other as they are
// in the pieces:
//
//	there   chunk 31, length 31   31                 keeps its bytes
//	a       chunk 10, length 28   10 10, and 8       the last one was stored with 10 elements
//	                                                 and is encoded again
func (p *AppendPlan) joinRuns(b *appendBase, arrays []*appendArray) {
	var runs [][2]int64
	var chunks int64
	runs, chunks, b.kept = chunkRuns(b.meta.Grid, b.axis, b.had)
	for _, a := range arrays {
		own, count, kept := chunkRuns(a.meta.Grid, b.axis, a.length())
		for d := range a.meta.Shape {
			if a.recoded || d != b.axis && fmt.Sprint(meta.EdgesOf(a.meta.Grid, d)) != fmt.Sprint(meta.EdgesOf(b.meta.Grid, d)) {
				kept = 0
			}
		}
		a.first, a.kept, a.rewrite = chunks, kept, kept < a.length()
		runs, chunks = append(runs, own...), chunks+count
	}
	edges := make([]meta.Edges, len(b.meta.Shape))
	for d := range edges {
		edges[d] = meta.EdgesOf(b.meta.Grid, d)
	}
	edges[b.axis] = meta.Edges{Runs: runs}
	var err error
	if b.grid, err = meta.RectilinearGrid(edges); err == nil {
		m := b.joined()
		if err = m.Validate(); err == nil {
			_, err = m.Print()
		}
	}
	if err != nil {
		p.bad.add(b.path, "chunk_grid", false, misfitValue{b.from, metaText(b.meta, "chunk_grid")}, misfitValue{p.pieces[0].label, "not to be joined as a rectilinear grid: " + err.Error()})
	}
}

// chunkRuns returns the lengths of the chunks along one dimension, which has n elements: runs
// of a length and how often it is repeated, and the number of chunks. The chunks of the first
// kept elements are stored with these lengths; the last chunk may be stored longer.
func chunkRuns(g zarr.Grid, axis int, n int64) (runs [][2]int64, count, kept int64) {
	e := meta.EdgesOf(g, axis)
	if e.Step > 0 {
		e.Runs = [][2]int64{{e.Step, n/e.Step + 1}}
	}
	for _, r := range e.Runs {
		whole := min((n-kept)/r[0], r[1])
		if whole > 0 {
			runs, count, kept = append(runs, [2]int64{r[0], whole}), count+whole, kept+whole*r[0]
		}
		if whole < r[1] {
			break
		}
	}
	if kept < n {
		runs, count = append(runs, [2]int64{n - kept, 1}), count+1
	}
	return runs, count, kept
}

// widenTimes reads the times of pieces that count them in other units, and gives the joined
// array a type that holds their counts exactly, if there is one.
func (p *AppendPlan) widenTimes(ctx context.Context) error {
	for _, piece := range p.pieces {
		var list []*appendArray
		for _, b := range p.sorted {
			a := piece.arrays[b.path]
			if a == nil || b.axis < 0 || b.meta.Type.Kind() == dtype.Float {
				continue
			}
			is, as := b.meaning(), a.meaning()
			r, err := recoder(is, as)
			if times, _ := cf.SameTimes(is, as); err == nil && r != nil && times && !(r.Whole() && b.meta.Type.Size() == 8) {
				list = append(list, a)
				a.reads = true
			}
		}
		if len(list) == 0 {
			continue
		}
		if err := piece.failed((&openPiece{plan: p, piece: piece}).widen(ctx, list)); err != nil {
			return err
		}
	}
	return nil
}

// widen is widenTimes for the arrays of one piece.
func (p *openPiece) widen(ctx context.Context, list []*appendArray) (err error) {
	if err := p.open(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.src.Close()) }()
	if p.set != nil && p.piece.kept == nil {
		if err := p.hold(ctx, p.set.Entries); err != nil {
			return err
		}
	}
	for _, a := range list {
		b := a.base
		for _, t := range []dtype.Type{b.meta.Type, dtype.NewInt(64), dtype.NewFloat(64)} {
			if t = t.WithOrder(b.meta.Type.Order()); t.Size() < b.meta.Type.Size() || b.widen(t) != nil {
				continue
			}
			if a.as, err = recoder(b.meaning(), a.meaning()); err != nil {
				return nil // align reports the error
			}
			if err = p.tryAll(ctx, a); err == nil {
				break
			} else if !errors.Is(err, ErrMisfit) {
				return err
			}
		}
	}
	return nil // the comparison of all pieces names counts that have no exact form
}

// documents writes the metadata of new arrays with their final shapes, and the
// metadata of the groups around them.
func (j *joiner) documents(ctx context.Context) (err error) {
	if j.o.Link {
		if j.bulk, err = j.s.Bulk(ctx, j.o.To, false); err != nil {
			return err
		}
	}
	for _, n := range j.plan.groups {
		if err := j.document(ctx, n.path, n.meta); err != nil {
			return err
		}
	}
	for _, b := range j.plan.sorted {
		if err := j.document(ctx, b.path, b.joined()); err != nil {
			return err
		}
	}
	return nil
}

// joined is the metadata of the joined array.
func (b *appendBase) joined() *zarr.Meta {
	if b.axis < 0 {
		return b.meta
	}
	m := b.meta.Clone()
	m.Shape[b.axis] = b.total
	if b.grid != nil {
		m.Grid = b.grid
	}
	return m
}

// document writes the metadata of a node.
func (j *joiner) document(ctx context.Context, path string, m *zarr.Meta) error {
	docs, err := m.Print()
	if err != nil {
		return fmt.Errorf("append to /%s: %w", names.Join(j.o.To, path), err)
	}
	for name, b := range docs {
		key := names.Dir(path) + name
		if j.bulk != nil {
			err = j.bulk.Set(ctx, key, b)
		} else {
			err = j.s.Set(ctx, names.Dir(j.o.To)+key, b)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// grow gives existing arrays their final shapes.
func (j *joiner) grow(ctx context.Context) error {
	for _, b := range j.plan.sorted {
		// The compared metadata must not change before the commit.
		if err := j.s.Guard(ctx, names.Join(j.o.To, b.path)); err != nil {
			return err
		}
		if b.axis < 0 {
			continue
		}
		// An array that appears beside it would be too short.
		if err := j.s.Guard(ctx, names.Parent(names.Join(j.o.To, b.path))+"/"); err != nil {
			return err
		}
		// Stores may have kept chunks from a time when the array was longer, and they would
		// become visible when the array grows.
		if err := j.deleteChunks(ctx, b, b.stored.Grid.Count(b.axis, b.had)); err != nil {
			return err
		}
		a, err := j.s.Array(ctx, names.Join(j.o.To, b.path))
		if err != nil {
			return err
		}
		if b.grid != nil || !b.meta.Type.Equal(b.stored.Type) {
			if err := j.replace(ctx, b, a); err != nil {
				return fmt.Errorf("append to /%s: %w", a.Path(), err)
			}
			continue
		}
		shape := a.Shape()
		shape[b.axis] = b.total
		if err := a.Resize(ctx, shape, zarr.ResizeOptions{KeepChunks: true}); err != nil {
			return err
		}
	}
	return nil
}

// replace gives an existing array another type or grid. Of another grid, the elements from
// kept on are encoded again, of another type all: they are not many, see widen. They all wait
// until the array has its type.
func (j *joiner) replace(ctx context.Context, b *appendBase, a *zarr.Array) error {
	if err := j.flush(ctx); err != nil { // chunks of other arrays
		return err
	}
	if err := j.s.copies.Above(ctx, a.Path()); err != nil {
		return err
	}
	from, err := b.existing(a)
	if err != nil {
		return err
	}
	if b.meta.Type.Equal(b.stored.Type) {
		if err := j.document(ctx, b.path, b.joined()); err != nil {
			return err
		}
		from.uncut = true // the chunk that is stored has another length and must not be read
		return j.await(ctx, from, b.kept, b.had, nil)
	}
	if err := j.await(ctx, from, 0, b.had, nil); err != nil {
		return err
	}
	if err := j.deleteChunks(ctx, b, 0); err != nil {
		return err
	}
	return j.document(ctx, b.path, b.joined())
}

// existing is the existing array with elements of the joined one.
func (b *appendBase) existing(a *zarr.Array) (*pieceArray, error) {
	stored := appendBase{meta: b.stored, parent: b.parent}
	as, err := recoder(b.meaning(), stored.meaning())
	return &pieceArray{Array: a, meta: b.stored, base: b, as: as, misfit: func(e *cf.InexactError) error { return e }}, err
}

// deleteChunks deletes the chunks of the existing array from one on, along the dimension.
func (j *joiner) deleteChunks(ctx context.Context, b *appendBase, from int64) error {
	k := b.stored.Keys
	f := txn.Form{Prefix: k.Prefix(), Sep: k.Separator(), Rank: k.Rank()}
	return j.s.DeleteChunks(ctx, names.Join(j.o.To, b.path), f, b.axis, from)
}
