package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/zarrdb/zarrdb/engine/internal/names"
	"github.com/zarrdb/zarrdb/zarr"
	"github.com/zarrdb/zarrdb/zarr/cf"
	"github.com/zarrdb/zarrdb/zarr/dtype"
	"github.com/zarrdb/zarrdb/zarr/meta"
)

// align finds where each piece goes, and which elements are encoded again.
func (p *AppendPlan) align() {
	for _, path := range p.paths {
		b, arrays := p.base[path], p.arraysAt(path)
		for i, a := range arrays {
			if a == nil {
				continue
			}
			var err error
			if a.as, err = recoder(b.meaning(), p.pieces[i].meaning(a)); err != nil {
				field := "data_type"
				if b.meta.Type.Equal(a.meta.Type) {
					field = "fill_value"
				}
				p.misfit(a, i, field, metaText(b.meta, field), metaText(a.meta, field))
			}
		}
		if b.axis >= 0 && !p.place(b, arrays) {
			return
		}
	}
}

// place finds where the pieces of an array go. ok is false if the joined array becomes too
// long.
func (p *AppendPlan) place(b *appendBase, arrays []*appendArray) (ok bool) {
	b.total, b.rewrite, b.grid, b.kept = b.had, false, nil, b.had
	rejoin := false // elements have to move to other chunks
	for i, a := range arrays {
		if a == nil {
			continue
		}
		a.start, a.first, a.kept = b.total, b.total/b.chunk, 0
		if b.total += a.length(); b.total < a.start {
			p.misfit(a, i, "shape", fmt.Sprint(a.start), "longer than an array can be")
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
	b.rewrite = slices.ContainsFunc(arrays, func(a *appendArray) bool { return a != nil && a.rewrite })
	for i, a := range arrays {
		if a == nil || !b.rewrite {
			continue
		}
		if a.rewrite && (!b.small || a.size() > maxRewrite) {
			p.notLinked(a, i)
		}
		a.rewrite, a.kept = true, 0
	}
	if !b.small && b.kept < b.had {
		p.bad.addLinked(b.path, "chunk boundary", misfitValue{b.from, "a last chunk that is not full"}, misfitValue{p.pieces[0].label, "linked behind it"})
	}
	return true
}

// misfit adds a difference between piece i and the joined array.
func (p *AppendPlan) misfit(a *appendArray, i int, field, want, got string) {
	p.bad.add(a.path, field, misfitValue{a.base.from, want}, misfitValue{p.pieces[i].label, got})
}

// notLinked adds why a linking append cannot join an array of which elements would have to
// be encoded again.
func (p *AppendPlan) notLinked(a *appendArray, i int) {
	b := a.base
	long := ""
	if b.small {
		long = a.tooMany()
	}
	add := func(field, want, got string) {
		p.bad.addLinked(b.path, field, misfitValue{b.from, want}, misfitValue{p.pieces[i].label, got})
	}
	switch {
	case !a.sameGrid:
		got := metaText(a.meta, "chunk_grid")
		if long != "" {
			got += " for " + long
		}
		add("chunk_grid", metaText(b.meta, "chunk_grid"), got)
	case a.start%b.chunk == 0:
		add("elements", "stored as "+b.meta.Type.String(), "converted, "+long)
	default:
		before := b.from
		if i > 0 {
			before = p.pieces[i-1].label
		}
		begins := fmt.Sprintf("begins at %d, inside of it", a.start)
		if long != "" {
			begins += ", with " + long
		}
		p.bad.addLinked(b.path, "chunk boundary", misfitValue{before, fmt.Sprintf("a last chunk of %d that is not full", b.chunk)}, misfitValue{p.pieces[i].label, begins})
	}
}

// arraysAt returns the array of each piece at a path, nil for a piece without an array that
// has the dimension.
func (p *AppendPlan) arraysAt(path string) []*appendArray {
	list := make([]*appendArray, len(p.pieces))
	for i, piece := range p.pieces {
		if a := piece.arrays[path]; a != nil && len(a.meta.Shape) > a.base.axis {
			list[i] = a
		}
	}
	return list
}

// joinRuns gives an array a rectilinear grid, in which chunks follow each other as they are
// in the pieces:
//
//	there   chunk 31, length 31   31                 keeps its bytes
//	a       chunk 10, length 28   10 10, and 8       the last one was stored with 10 elements
//	                                                 and is encoded again
func (p *AppendPlan) joinRuns(b *appendBase, arrays []*appendArray) {
	runs, chunks, kept := chunkRuns(b.meta.Grid, b.axis, b.had)
	b.kept = kept
	for _, a := range arrays {
		if a == nil {
			continue
		}
		own, count, kept := chunkRuns(a.meta.Grid, b.axis, a.length())
		for d := range a.meta.Shape {
			if d != b.axis && fmt.Sprint(meta.EdgesOf(a.meta.Grid, d)) != fmt.Sprint(meta.EdgesOf(b.meta.Grid, d)) {
				kept = 0
			}
		}
		if a.recoded {
			kept = 0
		}
		a.first, a.kept, a.rewrite = chunks, kept, kept < a.length()
		runs, chunks = append(runs, own...), chunks+count
	}
	edges := make([]meta.Edges, len(b.meta.Shape))
	for d := range edges {
		edges[d] = meta.EdgesOf(b.meta.Grid, d)
	}
	edges[b.axis] = meta.Edges{Runs: runs}
	grid, err := meta.RectilinearGrid(edges)
	m := b.meta.Clone()
	m.Grid, m.Shape[b.axis] = grid, b.total
	if err == nil {
		err = m.Validate()
	}
	if err == nil {
		_, err = m.Print()
	}
	if err != nil {
		p.bad.add(b.path, "chunk_grid", misfitValue{b.from, metaText(b.meta, "chunk_grid")}, misfitValue{p.pieces[0].label, "not to be joined as a rectilinear grid: " + err.Error()})
		return
	}
	b.grid = grid
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
		for _, path := range p.paths {
			a, b := piece.arrays[path], p.base[path]
			if a == nil || b.axis < 0 || len(a.meta.Shape) <= b.axis || b.meta.Type.Kind() == dtype.Float {
				continue
			}
			is, as := b.meaning(), piece.meaning(a)
			r, err := recoder(is, as)
			if times, _ := cf.SameTimes(is, as); err == nil && r != nil && times && !(r.Whole() && b.meta.Type.Size() == 8) {
				list = append(list, a)
			}
		}
		if len(list) == 0 {
			continue
		}
		open := &openPiece{plan: p, piece: piece, reads: func(a *appendArray) bool { return slices.Contains(list, a) }}
		if err := open.failed(open.widen(ctx, list)); err != nil {
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
		if err := p.holdAll(ctx); err != nil {
			return err
		}
	}
	for _, a := range list {
		b := a.base
		for _, t := range []dtype.Type{b.meta.Type, dtype.NewInt(64), dtype.NewFloat(64)} {
			if t = t.WithOrder(b.meta.Type.Order()); t.Size() < b.meta.Type.Size() || b.widen(t) != nil {
				continue
			}
			if a.as, err = recoder(b.meaning(), p.piece.meaning(a)); err != nil {
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

// holdAll takes the references of a piece whose elements are read.
func (p *openPiece) holdAll(ctx context.Context) error {
	for e, err := range p.set.Entries(ctx) {
		if err != nil {
			return err
		}
		key, ok := strings.CutPrefix(e.Key, p.prefix)
		if !ok || names.IsDocument(key) {
			continue
		}
		if a, _ := p.piece.array(nil, key); p.reads(a) {
			if err := p.held.hold(key, e.Reference); err != nil {
				return err
			}
		}
	}
	return p.held.fetch(ctx)
}

// tryAll converts all elements of an array.
func (p *openPiece) tryAll(ctx context.Context, a *appendArray) error {
	from, err := p.array(ctx, a)
	if err != nil || from.as == nil {
		return err
	}
	return from.parts(ctx, a.base.axis, 0, a.length(), 1, 0, func([]zarr.Index, int64, int64, elems) error { return nil })
}
