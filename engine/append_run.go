package engine

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/zarrdb/zarrdb/engine/internal/names"
	"github.com/zarrdb/zarrdb/engine/internal/transfer"
	"github.com/zarrdb/zarrdb/kv/gather"
	"github.com/zarrdb/zarrdb/refs"
	"github.com/zarrdb/zarrdb/txn"
	"github.com/zarrdb/zarrdb/zarr"
)

// joiner is one append under way. Chunks go straight to where they belong:
// linked ones through a bulk write, copied ones through the session. Elements
// that are written anew wait until the chunks around them are there.
type joiner struct {
	db    *DB
	plan  *AppendPlan
	o     ImportOptions
	meter transfer.Meter
	first *Source // the first piece, open until the end
	model *openPiece
	fresh bool
	s     *Session
	bulk  *txn.Bulk // of a linking append, nil if none is under way

	pending []pendingValues
	waiting int64 // bytes of pending
	encoded int64 // bytes of elements that were encoded again

	done  int    // pieces that are complete
	label string // of its session, without their number
	saved time.Time
	kept  bool // something was saved

	follow     Follow // the followed references
	notGranted error
	forbidden  []string // as in ImportResult
}

// pendingValues are elements that wait to be written to a selection of a joined array.
type pendingValues struct {
	base  *appendBase
	index []zarr.Index
	elems
}

// maxWaiting bounds the pending elements in memory. Tests make it small.
var maxWaiting int64 = 64 << 20

// Append joins the pieces of a plan along its dimension, as one commit: to the
// arrays at o.To, or to each other if o.To is empty or o.Overwrite is set.
// Chunks keep their bytes and get other numbers. If the dimension's coordinates
// have other chunks, their elements are encoded again; a copying append does so
// for all pieces that begin inside a chunk. Arrays without the dimension must
// have the same elements in all pieces, and the coordinates of the dimension
// must continue in one direction: see [OrderError]. If pieces do not fit, the
// error is ErrMisfit and nothing is committed. If ctx ends, or a piece cannot be
// read, nothing is committed either, complete pieces may be saved, and the error
// is ErrResumable. o.Resume continues an equal plan after the complete pieces,
// whose chunks are not read again. o.Link must be as in the plan. Memory is
// bounded, except for the metadata of the pieces.
func (db *DB) Append(ctx context.Context, p *AppendPlan, o ImportOptions) (_ *ImportResult, err error) {
	o.To, o.Link = names.Clean(o.To), p.link
	j := &joiner{db: db, plan: p, o: o, saved: time.Now()}
	j.label = fmt.Sprintf("append %d sources along %s to /%s (%s)", len(p.pieces), p.dim, o.To, p.digest(o))
	if j.first, err = p.pieces[0].Open(ctx); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, j.first.Close()) }()
	ours := func(label string) bool { return j.doneIn(label) > 0 }
	if j.s, err = db.beginImport(ctx, j.label, o, ours, j.prepare); err != nil {
		return nil, err
	}
	res, err := j.run(ctx)
	if err != nil {
		return nil, j.stop(err)
	}
	if p.link {
		res.Forbidden, res.NotGranted = db.grantLinked(j.follow, j.forbidden)
		res.NotGranted = errors.Join(j.notGranted, res.NotGranted)
	}
	return res, nil
}

// prepare compares the arrays at the destination with the plan. left is the label of a
// session that an append of this plan left, "" for another session.
func (j *joiner) prepare(ctx context.Context, s *Session, left string) error {
	j.s = s
	if j.done = j.doneIn(left); j.done > 0 {
		j.kept = true
		return j.takeUp(ctx)
	}
	err := j.fit(ctx, s.nodes)
	if err != nil || !j.fresh || j.o.Link && j.o.Overwrite { // the old nodes are replaced when the rest is complete
		return err
	}
	err = vacant(ctx, s, j.o.To)
	if j.o.Overwrite && errors.Is(err, zarr.ErrExists) {
		err = s.Remove(ctx, j.o.To)
	}
	return err
}

// fit compares the existing arrays with the plan, finds where the pieces go, and begins to look
// at the order of coordinates.
func (j *joiner) fit(ctx context.Context, there nodes) error {
	_, err := there.Node(ctx, j.o.To)
	j.fresh = errors.Is(err, zarr.ErrNotFound) || err == nil && j.o.Overwrite
	if err == nil && !j.fresh {
		err = j.plan.existing(ctx, there, j.o.To)
	}
	if err == nil || j.fresh {
		err = j.plan.Fits(ctx)
	}
	if err != nil {
		return err
	}
	for _, b := range j.plan.sorted {
		if !j.o.AnyOrder {
			if err := j.watch(ctx, there, b); err != nil {
				return err
			}
		}
		for _, a := range j.plan.arraysOf(b) {
			a.reads = a.rewrite || b.axis < 0 || b.order != nil
		}
	}
	return nil
}

// run writes everything and commits.
func (j *joiner) run(ctx context.Context) (_ *ImportResult, err error) {
	if !j.o.Link {
		if err := j.check(ctx); err != nil {
			return nil, err
		}
	}
	switch {
	case j.done > 0: // metadata is there
	case j.fresh:
		err = j.documents(ctx)
	default:
		err = j.grow(ctx)
	}
	if err == nil {
		err = j.write(ctx)
	}
	if err == nil {
		err = j.flush(ctx)
	}
	if err != nil {
		return nil, err
	}
	for _, b := range j.plan.sorted {
		if b.axis >= 0 && j.fresh {
			if err := j.s.copies.Above(ctx, names.Join(j.o.To, b.path)); err != nil {
				return nil, err
			}
		}
	}
	found, err := verifyNodes(ctx, j.s, j.o.To)
	if err != nil {
		return nil, err
	}
	c, err := j.o.finish(ctx, j.s)
	return &ImportResult{Commit: c, Nodes: found.Nodes, Keys: j.meter.Keys.Load(), Bytes: j.meter.Bytes.Load(), Encoded: j.encoded, Healed: j.s.tx.Healed()}, err
}

// check compares the elements of all pieces that are to be copied, before anything
// is: a payload that was stored takes room even if the append is refused.
func (j *joiner) check(ctx context.Context) error {
	return j.each(ctx, func(p *openPiece) error {
		for _, b := range j.plan.sorted {
			if err := j.compare(ctx, p, p.piece.arrays[b.path]); err != nil {
				return err
			}
		}
		return nil
	})
}

// write adds the chunks of all pieces, and compares the elements of linked pieces.
func (j *joiner) write(ctx context.Context) error {
	return j.each(ctx, func(p *openPiece) error {
		pass := j.copy
		if j.o.Link {
			pass = j.link
		}
		if err := pass(ctx, p); err != nil {
			return err
		}
		for _, b := range j.plan.sorted {
			var err error
			switch a := p.piece.arrays[b.path]; {
			case a != nil && a.rewrite:
				err = j.rewrite(ctx, p, a)
			case j.o.Link:
				err = j.compare(ctx, p, a)
			}
			if err != nil {
				return err
			}
		}
		j.done++
		return j.save(ctx)
	})
}

// each calls fn for the pieces that are not complete, one after the other. Some
// are opened at a time.
func (j *joiner) each(ctx context.Context, fn func(*openPiece) error) error {
	for lo := j.done; lo < len(j.plan.pieces); lo += piecesAtOnce {
		passes := make([]*openPiece, min(piecesAtOnce, len(j.plan.pieces)-lo))
		err := gather.Each(ctx, len(passes), len(passes), func(_ context.Context, k int) error {
			// Opened pieces are used after this function has returned, so their
			// context must not end.
			p := &openPiece{plan: j.plan, piece: j.plan.pieces[lo+k]}
			if passes[k] = p; lo+k == 0 {
				p.src, p.keep = j.first, j.fresh
			}
			return p.piece.failed(p.open(ctx))
		})
		for _, p := range passes {
			if err == nil {
				if p.keep {
					j.model = p
				}
				err = p.piece.failed(fn(p))
			}
			if p != nil && p.src != nil && p.src != j.first {
				err = errors.Join(err, p.src.Close())
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// compare checks that the elements of an array, if the piece has it, fit the elements
// before: coordinates continue, and arrays without the dimension are equal.
func (j *joiner) compare(ctx context.Context, p *openPiece, a *appendArray) error {
	switch {
	case a == nil:
	case a.base.order != nil:
		return orderFailed(a.path, p.follows(ctx, a))
	case a.base.axis < 0 && !p.keep:
		return j.equal(ctx, p, a)
	case a.base.axis >= 0 && a.as != nil:
		return p.tryAll(ctx, a)
	}
	return nil
}

// place returns the destination of a key's value, relative to the destination
// of the append.
func (p *openPiece) place(key string) (to string, a *appendArray, put bool) {
	if names.IsDocument(key) {
		return "", nil, false // written already
	}
	a, name := p.piece.array(p.last, key)
	if a == nil {
		return key, nil, p.keep
	}
	p.last = a
	if a.base.axis < 0 {
		return key, a, p.keep
	}
	to, put, chunk := p.names.key(a, name)
	if !chunk {
		return key, a, p.keep
	}
	return to, a, put
}

// link is the pass over a reference set.
func (j *joiner) link(ctx context.Context, p *openPiece) (err error) {
	if j.bulk == nil {
		if j.bulk, err = j.s.Bulk(ctx, j.o.To, true); err != nil {
			return err
		}
	}
	l := newLinker(j.db, p.src, j.o, p.set, p.prefix)
	l.bulk, l.meter = j.bulk, &j.meter
	kept := p.piece.kept
	if kept != nil {
		l.entries = kept.entries
		defer func() { p.piece.kept = nil }()
	}
	l.place = func(key string, e *refs.Entry) (string, bool, error) {
		to, a, put := p.place(key)
		if kept == nil && a != nil && a.reads {
			if err := p.held.hold(key, e.Reference); err != nil {
				return "", false, err
			}
		}
		return to, put, nil
	}
	if err := l.copy(ctx); err != nil {
		return err
	}
	j.follow = l.grants().With(j.follow)
	j.forbidden = append(j.forbidden, l.forbidden()...)
	if kept != nil {
		return nil
	}
	return p.held.fetch(ctx)
}

// copy is the pass over another store.
func (j *joiner) copy(ctx context.Context, p *openPiece) error {
	from, err := p.src.selection(ctx)
	if err != nil {
		return err
	}
	to := map[string]string{} // by key
	return transfer.Batches(from.keys(ctx), func(keys []string) error {
		clear(to)
		keys = slices.DeleteFunc(keys, func(key string) bool {
			at, _, put := p.place(strings.TrimPrefix(key, from.prefix))
			if put {
				to[key] = at
			}
			return !put
		})
		return transfer.EachValue(ctx, j.db.pool, from.view, keys, func(ctx context.Context, key string, b []byte) error {
			if err := j.s.Set(ctx, names.Dir(j.o.To)+to[key], b); err != nil {
				return err
			}
			j.meter.Add(int64(len(b)), j.o.Progress)
			return nil
		})
	})
}

// rewrite reads the elements of an array, to be written when the chunks that fit are there.
// For a linking append rewrite also compares the order of the elements; for a copying one check
// has done so.
func (j *joiner) rewrite(ctx context.Context, p *openPiece, a *appendArray) error {
	from, err := p.array(ctx, a)
	if err != nil {
		return err
	}
	return j.await(ctx, from, a.kept, a.length(), func(e elems) error {
		if j.waiting > maxWaiting {
			if err := j.flush(ctx); err != nil {
				return err
			}
		}
		if a.base.order == nil || !j.o.Link {
			return nil
		}
		return a.base.order.values(e, p.piece.label)
	})
}

// await reads the elements lo to hi of an array, to be written to the joined one. before, if
// it is not nil, gets each part before it waits.
func (j *joiner) await(ctx context.Context, from *pieceArray, lo, hi int64, before func(elems) error) error {
	return from.parts(ctx, lo, hi, func(index []zarr.Index, first, end int64, e elems) error {
		if before != nil {
			if err := before(e); err != nil {
				return err
			}
		}
		index = slices.Clone(index)
		index[from.base.axis] = zarr.Slice(from.start+first, from.start+end, 1)
		j.pending = append(j.pending, pendingValues{from.base, index, e})
		j.waiting += e.size() + 64
		j.encoded += e.size()
		return nil
	})
}

// flush ends the bulk write, so that the session sees its values, and then
// writes the waiting elements.
func (j *joiner) flush(ctx context.Context) error {
	if j.bulk != nil {
		if err := j.bulk.Finish(ctx); err != nil {
			return err
		}
		j.bulk = nil
	}
	for _, v := range j.pending {
		a, err := j.s.Array(ctx, names.Join(j.o.To, v.base.path))
		if err != nil {
			return err
		}
		if sel := zarr.Sel(v.index...); a.Type().Variable() {
			err = a.WriteVar(ctx, sel, v.vars)
		} else {
			err = a.WriteBytes(ctx, sel, v.data)
		}
		if err != nil {
			return err
		}
	}
	j.pending, j.waiting = nil, 0
	return nil
}

// An append of many pieces saves its session from time to time between two
// pieces, with the number of complete pieces in its label. The same
// append, resumed, compares all pieces again and continues after them.
//
//	label   append 365 sources along time to /era5 (5f0c…): 120 done
//	                                                 │       └ where to go on
//	                                                 └ of everything that decides where chunks go

// digest identifies the result of the plan with the options.
func (p *AppendPlan) digest(o ImportOptions) string {
	h := sha256.New()
	fmt.Fprintf(h, "%q %v %v %v %v %v\n", p.dim, p.link, p.rectilinear, o.Overwrite, o.AnyOrder, o.Validate)
	for _, piece := range p.pieces {
		fmt.Fprintf(h, "%q %d\n", piece.Name, len(piece.arrays))
		for _, path := range slices.Sorted(maps.Keys(piece.arrays)) {
			a := piece.arrays[path]
			fmt.Fprintf(h, "%q %x %x\n", path, a.sum, a.label)
		}
	}
	return fmt.Sprintf("%x", h.Sum(nil)[:8])
}

// labelAt is the label of the session when some pieces are complete.
func (j *joiner) labelAt(done int) string { return fmt.Sprintf("%s: %d done", j.label, done) }

// doneIn returns the number of complete pieces in a session with that label, 0
// if it is not of this append.
func (j *joiner) doneIn(label string) int {
	for n := 1; n < len(j.plan.pieces); n++ {
		if label == j.labelAt(n) {
			return n
		}
	}
	return 0
}

// takeUp restores the state of a saved session: the arrays before it began, and
// the last coordinates.
func (j *joiner) takeUp(ctx context.Context) (err error) {
	before, err := j.db.Snapshot(ctx, j.s.Base())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, before.Close()) }()
	if err := j.fit(ctx, before.nodes); err != nil {
		return err
	}
	for _, b := range j.plan.sorted {
		if b.order == nil {
			continue
		}
		last := j.plan.pieces[j.done-1].arrays[b.path]
		a, err := j.s.Array(ctx, names.Join(j.o.To, b.path))
		if err == nil {
			err = b.order.read(ctx, &pieceArray{Array: a, meta: a.Meta(), base: b}, b.had, last.start+last.length(), last.piece.label)
		}
		if err := orderFailed(b.path, err); err != nil {
			return err
		}
	}
	return nil
}

// save stores the complete pieces, if they are much work. It grants the followed
// references too, because a resumed append does not see them again.
func (j *joiner) save(ctx context.Context) error {
	// The caller's session is saved when everything is complete.
	if j.o.Session != nil || j.done == len(j.plan.pieces) || time.Since(j.saved) < saveEvery {
		return nil
	}
	if err := j.flush(ctx); err != nil {
		return err
	}
	if j.o.Link {
		j.notGranted = j.db.Grant(j.follow)
	}
	j.s.SetLabel(j.labelAt(j.done))
	if err := j.s.Savepoint(ctx); err != nil {
		return err
	}
	j.kept, j.saved = true, time.Now()
	return nil
}

// stop ends a failed append. It keeps the saved part, unless the same append
// would fail again.
func (j *joiner) stop(err error) error {
	if j.o.Session == nil && j.kept && !errors.Is(err, ErrMisfit) && !errors.Is(err, txn.ErrConflict) {
		return errors.Join(fmt.Errorf("%w: %w", err, ErrResumable), j.s.Close())
	}
	return j.o.abandon(j.s, err)
}
