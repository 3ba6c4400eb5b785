package engine

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/zarrdb/zarrdb/engine/internal/names"
	"github.com/zarrdb/zarrdb/engine/internal/transfer"
	"github.com/zarrdb/zarrdb/engine/source"
	"github.com/zarrdb/zarrdb/kv/gather"
	"github.com/zarrdb/zarrdb/refs"
	"github.com/zarrdb/zarrdb/txn"
	"github.com/zarrdb/zarrdb/zarr"
	"github.com/zarrdb/zarrdb/zarr/cf"
)

// joiner is one append under way. Chunks go straight to where they belong:
// linked ones through a bulk write, copied ones through the session. Elements
// that are written anew wait until the chunks around them are there.
type joiner struct {
	db     *DB
	plan   *AppendPlan
	o      ImportOptions
	meter  *transfer.Meter
	first  *Source // the first piece, open until the end
	model  *piecePass
	fresh  bool
	orders map[*appendBase]*coordinateOrder // nil if any order will do
	s      *Session
	bulk   *txn.Bulk // of a linking append
	follow Follow    // the followed references

	pending []pendingValues
	waiting int64 // bytes of pending
	encoded int64 // bytes of elements that were encoded again

	contents map[*appendBase][sha256.Size]byte // of arrays without the dimension

	done       int    // pieces that are complete
	label      string // of its session, without their number
	saved      time.Time
	kept       bool // something was saved
	notGranted error
	forbidden  []string // as in ImportResult
}

// pendingValues are elements that wait to be written to a selection of a joined array.
type pendingValues struct {
	base  *appendBase
	index []zarr.Index
	elems
}

// maxWaiting bounds the pending elements in memory.
const maxWaiting = 64 << 20

// run writes everything and commits.
func (j *joiner) run(ctx context.Context, s *Session) (_ *ImportResult, err error) {
	j.s = s
	resumed := j.done > 0
	if !j.o.Link {
		if err := j.check(ctx); err != nil {
			return nil, err
		}
	}
	if !j.fresh && !resumed {
		if err := j.grow(ctx); err != nil {
			return nil, err
		}
	}
	if j.o.Link {
		if j.bulk, err = s.Bulk(ctx, j.o.To, !j.fresh || resumed); err != nil {
			return nil, err
		}
	}
	if j.fresh && !resumed {
		if err := j.documents(ctx); err != nil {
			return nil, err
		}
	}
	if err := j.write(ctx); err != nil {
		return nil, err
	}
	if err := j.finish(ctx); err != nil {
		return nil, err
	}
	for _, b := range j.plan.base {
		if b.axis >= 0 && j.fresh {
			if err := s.copies.Above(ctx, names.Join(j.o.To, b.path)); err != nil {
				return nil, err
			}
		}
	}
	found, err := verifyNodes(ctx, s, j.o.To)
	if err != nil {
		return nil, err
	}
	return j.commit(ctx, s, found.Nodes)
}

// documents writes the metadata of new arrays with their final shapes, and that
// of the groups around them.
func (j *joiner) documents(ctx context.Context) error {
	nodes := slices.Clone(j.plan.groups)
	for _, path := range j.plan.paths {
		b := j.plan.base[path]
		m := b.meta
		if b.axis >= 0 {
			m = b.joined()
		}
		nodes = append(nodes, &appendArray{path: path, meta: m})
	}
	for _, n := range nodes {
		if err := j.document(ctx, n.path, n.meta); err != nil {
			return err
		}
	}
	return nil
}

// joined is the metadata of the joined array.
func (b *appendBase) joined() *zarr.Meta {
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

// grow gives the arrays that are there their final shapes.
func (j *joiner) grow(ctx context.Context) error {
	for _, path := range j.plan.paths {
		b := j.plan.base[path]
		if b.axis < 0 {
			continue
		}
		a, err := j.s.Array(ctx, names.Join(j.o.To, path))
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
// kept on are encoded again, of another type all: they are not many, see widen.
func (j *joiner) replace(ctx context.Context, b *appendBase, a *zarr.Array) error {
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
		return j.await(ctx, b, from, b.kept, b.had, 0, nil)
	}
	if err := j.await(ctx, b, from, 0, b.had, 0, nil); err != nil {
		return err
	}
	if err := j.deleteChunks(ctx, j.s, b, 0); err != nil {
		return err
	}
	return j.document(ctx, b.path, b.joined())
}

// existing is the existing array with elements of the joined one.
func (b *appendBase) existing(a *zarr.Array) (*pieceArray, error) {
	stored := b.stored
	if b.parent != nil {
		stored = withUnits(stored, b.parent.meta)
	}
	as, err := recoder(b.meaning(), stored)
	return &pieceArray{Array: a, meta: b.stored, as: as, t: b.meta.Type, misfit: func(e *cf.InexactError) error { return e }}, err
}

// openPiece is a piece whose elements are read.
type openPiece struct {
	plan  *AppendPlan
	piece *appendPiece
	src   *Source
	// reads reports whether elements of an array of a linked piece are read.
	reads func(*appendArray) bool

	// Of a linked piece.
	set    *source.Set
	prefix string    // of its keys in the set
	held   *heldRefs // the references read of it
}

// piecePass is one pass of an append over a piece.
type piecePass struct {
	openPiece
	j     *joiner
	keep  bool         // it is the first of new arrays: all keys of it are kept
	last  *appendArray // that a key belonged to
	names renumberer
}

// check compares the elements of all pieces that are to be copied, before anything
// is: a payload that was stored takes room even if the append is refused.
func (j *joiner) check(ctx context.Context) error {
	err := j.each(ctx, func(p *piecePass) error {
		if p.keep {
			j.model = p
		}
		for _, path := range j.plan.paths {
			a := p.piece.arrays[path]
			if a == nil {
				continue
			}
			if err := p.failed(p.compare(ctx, a)); err != nil {
				return err
			}
		}
		return nil
	})
	j.orders = nil // they were looked at
	return err
}

// write writes the elements of all pieces.
func (j *joiner) write(ctx context.Context) error {
	return j.each(ctx, func(p *piecePass) error {
		err := p.failed(j.piece(ctx, p))
		if err == nil {
			j.done++
			err = j.save(ctx)
		}
		return err
	})
}

// each calls fn for the pieces that are not complete, one after the other. Some
// are opened at a time.
func (j *joiner) each(ctx context.Context, fn func(*piecePass) error) error {
	for lo := j.done; lo < len(j.plan.pieces); lo += piecesAtOnce {
		passes := make([]*piecePass, min(piecesAtOnce, len(j.plan.pieces)-lo))
		err := gather.Each(ctx, len(passes), len(passes), func(_ context.Context, k int) (err error) {
			// Opened pieces are used after this function has returned, so their
			// context must not end.
			passes[k] = &piecePass{openPiece: openPiece{plan: j.plan, piece: j.plan.pieces[lo+k], reads: j.reads}, j: j, keep: lo+k == 0 && j.fresh}
			if lo+k == 0 {
				passes[k].src = j.first
			}
			return passes[k].failed(passes[k].open(ctx))
		})
		for _, p := range passes {
			if err == nil {
				err = fn(p)
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

func (p *openPiece) failed(err error) error {
	if err != nil {
		err = fmt.Errorf("append %s: %w", p.piece.label, err)
	}
	return err
}

// open opens the piece, and fetches the values that will be read if they are
// known.
func (p *openPiece) open(ctx context.Context) (err error) {
	if p.src == nil {
		if p.src, err = p.piece.Open(ctx); err != nil {
			return err
		}
	}
	if !p.plan.link {
		_, err = p.src.selection(ctx)
		return err
	}
	set, prefix, err := p.src.env.ReferenceSet(ctx, p.src.at)
	if err != nil {
		return err
	}
	p.set, p.prefix = set, prefix
	p.held = &heldRefs{set: set, refs: map[string]refs.Reference{}}
	kept := p.piece.kept
	if kept == nil {
		return nil
	}
	var last *appendArray
	for i := range kept.list {
		key, ok := strings.CutPrefix(kept.list[i].Key, prefix)
		if !ok || names.IsDocument(key) {
			continue
		}
		a, _ := p.piece.array(last, key)
		if last = cmp.Or(a, last); !p.reads(a) {
			continue
		}
		if err := p.held.hold(key, kept.list[i].Reference); err != nil {
			return err
		}
	}
	return p.held.fetch(ctx)
}

// reads reports whether the append reads elements of an array of a linked piece.
func (j *joiner) reads(a *appendArray) bool {
	return a != nil && (a.rewrite || a.base.axis < 0 || j.orders[a.base] != nil)
}

// piece writes the elements of a piece, and compares the rest of it.
func (j *joiner) piece(ctx context.Context, pass *piecePass) (err error) {
	p := pass.piece
	if j.o.Link {
		err = pass.link(ctx)
	} else {
		err = pass.copy(ctx)
	}
	if err != nil {
		return err
	}
	if pass.keep {
		j.model = pass
	}
	for _, path := range j.plan.paths {
		a := p.arrays[path]
		switch {
		case a == nil:
		case a.rewrite:
			err = pass.rewrite(ctx, a)
		case j.o.Link: // check has done it for copied values
			err = pass.compare(ctx, a)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// compare checks that the elements of an array fit those before: coordinates
// continue, and arrays without the dimension are equal.
func (p *piecePass) compare(ctx context.Context, a *appendArray) error {
	switch {
	case p.j.orders[a.base] != nil:
		return p.ordered(ctx, a)
	case a.base.axis < 0 && !p.keep:
		return p.equal(ctx, a)
	case a.base.axis >= 0 && a.as != nil:
		return p.tryAll(ctx, a)
	}
	return nil
}

// place returns the destination of a key's value, relative to that of the
// append.
func (p *piecePass) place(key string) (to string, a *appendArray, put bool) {
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
	if to, put, ok := p.names.key(a, name); ok {
		return to, a, put
	}
	_, chunk := cmp.Or(a.own, a.meta).Keys.Parse(name)
	return key, a, p.keep && !chunk // a chunk outside of the array is ignored
}

// link is the pass over a reference set.
func (p *piecePass) link(ctx context.Context) error {
	l := newLinker(p.j.db, p.src, p.j.o, p.set, p.prefix)
	l.bulk, l.meter = p.j.bulk, p.j.meter
	kept := p.piece.kept
	if kept != nil {
		l.entries = kept.entries
		defer func() { p.piece.kept = nil }()
	}
	l.place = func(key string, e *refs.Entry) (string, bool, error) {
		to, a, put := p.place(key)
		if kept == nil && p.reads(a) {
			if err := p.held.hold(key, e.Reference); err != nil {
				return "", false, err
			}
		}
		return to, put, nil
	}
	if err := l.copy(ctx); err != nil {
		return err
	}
	if kept == nil {
		if err := p.held.fetch(ctx); err != nil {
			return err
		}
	}
	p.j.follow = l.grants().With(p.j.follow)
	for _, prefix := range l.forbidden() {
		if !slices.Contains(p.j.forbidden, prefix) {
			p.j.forbidden = append(p.j.forbidden, prefix)
		}
	}
	return nil
}

// copy is the pass over another store.
func (p *piecePass) copy(ctx context.Context) error {
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
		return transfer.EachValue(ctx, p.j.db.pool, from.view, keys, func(ctx context.Context, key string, b []byte) error {
			if err := p.j.s.Set(ctx, names.Dir(p.j.o.To)+to[key], b); err != nil {
				return err
			}
			p.j.meter.Add(int64(len(b)), p.j.o.Progress)
			return nil
		})
	})
}

// textOfType says what elements are, in words.
func textOfType(m *zarr.Meta) string {
	if units, ok := textAttribute(m, "units"); ok {
		return fmt.Sprintf("%v %q", m.Type, units)
	}
	return m.Type.String()
}

func (p *openPiece) stored(ctx context.Context, a *appendArray) (*zarr.Array, error) {
	o := *p.src.open
	o.Version = a.meta.Version
	if a.label != nil {
		return labelArray(ctx, a, o)
	}
	if p.held == nil {
		at, err := p.src.dataset(ctx)
		if err != nil {
			return nil, err
		}
		return zarr.OpenArray(ctx, at.View, names.Join(at.Path, a.path), &o)
	}
	docs, err := cmp.Or(a.own, a.meta).Print()
	if err != nil {
		return nil, err
	}
	for name, b := range docs {
		p.held.refs[names.Dir(a.path)+name] = refs.Reference{Data: b}
	}
	return zarr.OpenArray(ctx, p.held, a.path, &o)
}

// rewrite reads the elements of an array, to be written when the chunks that
// fit are there.
func (p *piecePass) rewrite(ctx context.Context, a *appendArray) error {
	from, err := p.array(ctx, a)
	if err != nil {
		return err
	}
	return p.j.await(ctx, a.base, from, a.kept, a.length(), a.start, func(e elems) error {
		if o := p.j.orders[a.base]; o != nil {
			return o.values(e, p.piece.label)
		}
		return nil
	})
}

// await reads the elements lo to hi of an array, to be written from lo + start on. look, if
// it is not nil, gets each part before.
func (j *joiner) await(ctx context.Context, b *appendBase, from *pieceArray, lo, hi, start int64, look func(elems) error) error {
	return from.parts(ctx, b.axis, lo, hi, b.chunk, start, func(index []zarr.Index, first, end int64, e elems) error {
		if look != nil {
			if err := look(e); err != nil {
				return err
			}
		}
		index = slices.Clone(index)
		index[b.axis] = zarr.Slice(start+first, start+end, 1)
		j.pending = append(j.pending, pendingValues{b, index, e})
		j.waiting += e.size() + 64
		if j.encoded += e.size(); j.waiting > maxWaiting {
			return j.flush(ctx)
		}
		return nil
	})
}

// flush writes the pending values, then starts a new bulk write.
func (j *joiner) flush(ctx context.Context) error {
	if err := j.finish(ctx); err != nil {
		return err
	}
	return j.restart(ctx)
}

// restart begins another bulk write after finish.
func (j *joiner) restart(ctx context.Context) (err error) {
	if j.bulk != nil {
		j.bulk, err = j.s.Bulk(ctx, j.o.To, true)
	}
	return err
}

// finish ends the bulk write, so that the session sees its values, and then
// writes the waiting elements.
func (j *joiner) finish(ctx context.Context) error {
	if j.bulk != nil {
		if err := j.bulk.Finish(ctx); err != nil {
			return err
		}
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
