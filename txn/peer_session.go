package txn

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/zarrdb/zarrdb/internal/fault"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/digest"
	"github.com/zarrdb/zarrdb/kv/pack"
	"github.com/zarrdb/zarrdb/kv/tree"
	"github.com/zarrdb/zarrdb/txn/internal/away"
	"github.com/zarrdb/zarrdb/txn/internal/catalog"
	"github.com/zarrdb/zarrdb/txn/internal/overlay"
	"github.com/zarrdb/zarrdb/txn/internal/seen"
)

// A session of a peer is in the process that has the database open. The peer asks for
// values by key, and reads listings and comparisons from the pages of the working root:
//
//	Set, Delete ─────────────────────▶ Tx.SetIf
//	SetVirtual, DeletePrefix, Move ──▶ Tx.Apply: entries as those of the log of a session
//	Copy, DeleteChunks, Bulk ────────▶ the pages are made here: Tx.Stage, then Tx.Swap
//	Get, Locate ─────────────────────▶ Tx.Value, then the payload from its pack
//	List, Changes, Values ───────────▶ Tx.Roots, then pages
//
// While this process alone writes to the session, it reads the session without requests; see near.

// begin opens a session.
func (p *peer) begin(ctx context.Context, o BeginOptions) (*Session, error) {
	if err := p.writes(); err != nil {
		return nil, err
	}
	tx, err := p.answerer.Begin(ctx, o)
	if err != nil {
		return nil, err
	}
	return p.session(tx), nil
}

// resume joins a session, or takes it up from its last savepoint.
func (p *peer) resume(ctx context.Context, id SessionID) (*Session, error) {
	if err := p.writes(); err != nil {
		return nil, err
	}
	tx, err := p.answerer.Resume(ctx, id)
	if err != nil {
		return nil, err
	}
	return p.session(tx), nil
}

// writes returns nil if the peer can write.
func (p *peer) writes() error {
	switch {
	case p.db.opts.ReadOnly:
		return p.db.opts.readOnly()
	case p.answerer == nil:
		return fmt.Errorf("%s: %w", p.db.dir, ErrPeer)
	}
	return p.db.check()
}

func (p *peer) session(tx Tx) *Session {
	i := tx.Info()
	pages := overlay.New(txPages{sourcePages{tx}, tx}, p.db.sessionBytes())
	s := &there{peer: p, tx: tx, seen: seen.New(), Session: &Session{
		db: p.db, id: i.ID, branch: i.Branch, created: i.Created, label: i.Label,
		pages: pages, space: p.db.space.With(batched{pages}),
	}}
	s.home = s
	s.told()
	p.register(s.Session)
	return s.Session
}

// there is the home of a session of a peer.
type there struct {
	*Session
	peer  *peer
	tx    Tx
	seen  *seen.Keys
	known atomic.Pointer[tree.Root] // the working root, unless this process has put references since
	near  near
}

// told takes over what the last answer says of the session.
func (s *there) told() {
	i := s.tx.Info()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.base, s.saved, s.used = i.Base, i.Saved, i.Used
}

// lockOpen acquires changing, to change a session that is open.
func (s *there) lockOpen(ctx context.Context) error {
	if err := s.changing.Lock(ctx); err != nil {
		return err
	}
	err := s.opened()
	if err != nil {
		s.changing.Unlock()
	}
	return err
}

// opened returns an error if the session has ended.
func (s *there) opened() error {
	if s.Ended() {
		return s.errClosed()
	}
	return s.db.check()
}

// write sends a write of what lock locks: a key, or all keys. Others go on beside it.
func (s *there) write(ctx context.Context, lock func(ctx context.Context) (unlock func(), err error), send func() error) error {
	if err := s.changing.RLock(ctx); err != nil {
		return err
	}
	defer s.changing.RUnlock()
	if err := s.opened(); err != nil {
		return err
	}
	unlock, err := lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	return send()
}

// send has the other process apply an entry. seen changes what is known of the values of keys.
func (s *there) send(ctx context.Context, e *catalog.Entry, seen func(ids map[string]kv.ID)) error {
	return s.write(ctx, s.seen.HoldAll, func() error {
		s.near.begin()
		err := s.tx.Apply(ctx, catalog.AppendEntry(nil, e))
		s.near.endMany()
		s.known.Store(nil)
		if err == nil {
			s.seen.Change(seen)
		}
		return err
	})
}

func (s *there) guard(ctx context.Context, paths []string) error {
	return s.send(ctx, &catalog.Entry{Kind: catalog.EntryGuard, Paths: paths}, nil)
}

func (s *there) change(ctx context.Context, e *catalog.Entry, fn func(root tree.Root) (tree.Root, error)) error {
	if e == nil {
		return s.swap(ctx, fn)
	}
	return s.send(ctx, e, func(ids map[string]kv.ID) {
		if e.Kind == catalog.EntryPrefix {
			s.seen.Deletes(e.Key)
		} else if e.Kind == catalog.EntryMove {
			s.seen.Deletes(e.Key + "/")
		}
		moved := map[string]kv.ID{}
		for key, id := range ids {
			if e.Kind == catalog.EntryPrefix && strings.HasPrefix(key, e.Key) {
				ids[key] = kv.ID{}
			}
			if e.Kind != catalog.EntryMove {
				continue
			}
			if below, ok := belowNode(key, e.Key); ok {
				ids[key], moved[e.To+below] = kv.ID{}, id
			} else if _, ok := belowNode(key, e.To); ok {
				delete(ids, key)
			}
		}
		maps.Copy(ids, moved)
	})
}

// belowNode returns what is left of a key behind the path of a node at or above it.
func belowNode(key, node string) (below string, ok bool) {
	below, ok = strings.CutPrefix(key, node)
	return below, ok && (below == "" || below[0] == '/')
}

func (s *there) setVirtual(ctx context.Context, key string, v tree.Value) error {
	return s.write(ctx, s.seen.Of(key).Hold, func() error {
		s.near.begin()
		err := s.tx.Apply(ctx, catalog.AppendEntry(nil, &catalog.Entry{Kind: catalog.EntryPut, Key: key, Value: v}))
		s.near.end(key, nearEdit{value: v}, err)
		s.known.Store(nil)
		if err == nil {
			s.seen.Wrote(key, kv.ID(v.ContentSum()))
		}
		return err
	})
}

func (s *there) set(ctx context.Context, key string, value []byte) error {
	if value == nil {
		value = []byte{}
	}
	_, err := s.setSeen(ctx, key, value, nil)
	return err
}

func (s *there) remove(ctx context.Context, key string) error {
	_, err := s.setSeen(ctx, key, nil, nil)
	return err
}

func (s *there) setIf(ctx context.Context, key string, value []byte, want Expect) (kv.ID, error) {
	return s.setSeen(ctx, key, value, &want)
}

// setSeen is SetIf. Without a condition, the key must have the value that was seen.
func (s *there) setSeen(ctx context.Context, key string, value []byte, want *Expect) (id kv.ID, err error) {
	err = s.write(ctx, s.seen.Of(key).Hold, func() error {
		if want == nil {
			if want, err = s.seen.Expect(key); err != nil {
				return err
			}
		}
		s.near.begin()
		id, err = s.tx.SetIf(ctx, key, value, *want)
		s.near.end(key, editOf(key, value, id), err)
		if err == nil {
			s.seen.Wrote(key, id)
		}
		return err
	})
	return id, err
}

// editOf is the write of a value that got an identity.
func editOf(key string, value []byte, id kv.ID) nearEdit {
	if value == nil {
		return nearEdit{deleted: true}
	}
	v, ok := inlineValue(key, value)
	return nearEdit{value: v, unknown: !ok || kv.ID(v.ContentSum()) != id}
}

func (s *there) lookup(ctx context.Context, key string) (tree.Value, error) {
	if err := ctx.Err(); err != nil {
		return tree.Value{}, err
	}
	if s.Ended() {
		return tree.Value{}, s.errClosed()
	}
	if s.near.due() {
		if _, err := s.roots(ctx); err != nil {
			return tree.Value{}, err
		}
	}
	of := s.seen.Of(key)
	if err := of.RLock(ctx); err != nil {
		return tree.Value{}, err
	}
	defer of.RUnlock()
	l := s.near.look(key)
	v, ok, err := s.lookupNear(ctx, key, l)
	if !ok && err == nil {
		if v, err = s.tx.Value(ctx, key); err == nil {
			s.near.learn(key, l, v)
		}
	}
	switch {
	case err == nil:
		s.seen.Read(key, kv.ID(v.ContentSum()))
	case errors.Is(err, kv.ErrNotFound):
		s.seen.Read(key, kv.ID{})
		err = kv.ErrNotFound
	}
	return v, err
}

// maxSwaps bounds how often a change is made again because others write to the session.
const maxSwaps = 100

// swap is change for a session of a peer: fn makes pages here, which the other process puts in place.
func (s *there) swap(ctx context.Context, fn func(root tree.Root) (tree.Root, error)) error {
	if err := s.lockOpen(ctx); err != nil {
		return err
	}
	defer s.changing.Unlock()
	for try := 0; ; try++ {
		from, err := s.tx.Roots(ctx)
		if err != nil {
			return err
		}
		s.life = from.Life
		to, err := fn(from.Work)
		if err == nil && to == from.Work {
			return nil
		}
		if err == nil {
			err = s.stage(ctx, to)
		}
		if err == nil {
			err = s.swapped(ctx, from, to)
		}
		if err == nil || try == maxSwaps || !s.outdated(ctx, from, err) {
			return err
		}
	}
}

// outdated reports whether a change failed because the session has another working root than
// from. Pages of a root end with the process that had the session open.
func (s *there) outdated(ctx context.Context, from Roots, err error) bool {
	if !errors.Is(err, fault.ErrCorrupt) {
		return errors.Is(err, ErrOtherRoot)
	}
	now, failed := s.tx.Roots(ctx)
	return failed == nil && now.Life != from.Life
}

// swapped puts a root in place. What is known of keys that this changes is changed too.
func (s *there) swapped(ctx context.Context, from Roots, to tree.Root) error {
	unlock, err := s.seen.HoldAll(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	known := s.seen.All()
	changed := map[string]kv.ID{}
	for key, id := range known {
		was, err := s.idIn(ctx, from.Work, key)
		if err != nil {
			return err
		}
		is, err := s.idIn(ctx, to, key)
		if err != nil {
			return err
		}
		if was == id && is != id {
			changed[key] = is
		}
	}
	err = s.tx.Swap(ctx, from, to)
	s.near.forget()
	s.known.Store(nil)
	if err == nil {
		s.seen.Change(func(ids map[string]kv.ID) { maps.Copy(ids, changed) })
	}
	return err
}

// idIn returns the identity of the value that a key has below a root, zero for none.
func (s *there) idIn(ctx context.Context, root tree.Root, key string) (kv.ID, error) {
	v, ok, err := s.space.Get(ctx, root, key)
	if err != nil || !ok {
		return kv.ID{}, err
	}
	return kv.ID(v.ContentSum()), nil
}

// stage sends the pages below a root that this process has made.
func (s *there) stage(ctx context.Context, root tree.Root) error {
	var pages [][]byte
	sent := map[tree.Name]struct{}{}
	err := overlay.Group{s.pages}.Private(ctx, s.space.Tree, root, sent, func(_ tree.Name, page []byte) { pages = append(pages, page) })
	if err == nil {
		err = stageAll(ctx, s.tx, pages)
	}
	if err == nil {
		s.pages.Drop(sent)
	}
	return err
}

// stageAll sends pages in requests of bounded size.
func stageAll(ctx context.Context, tx Tx, pages [][]byte) error {
	for len(pages) > 0 {
		n, bytes := 0, 0
		for n < len(pages) && (n == 0 || bytes+len(pages[n]) <= maxPageBytes) {
			bytes += len(pages[n])
			n++
		}
		if err := tx.Stage(ctx, pages[:n]); err != nil {
			return err
		}
		pages = pages[n:]
	}
	return nil
}

func (s *there) log(context.Context) error { return nil } // sessions that other processes use have logs

func (s *there) save(ctx context.Context) error {
	if err := s.lockOpen(ctx); err != nil {
		return err
	}
	defer s.changing.Unlock()
	err := s.tx.Savepoint(ctx, s.Label())
	s.told()
	return err
}

func (s *there) refresh(ctx context.Context, choices []PathChoice) error {
	if err := s.lockOpen(ctx); err != nil {
		return err
	}
	defer s.changing.Unlock()
	err := s.tx.Refresh(ctx, choices)
	s.near.forget()
	s.known.Store(nil)
	s.told()
	return err
}

func (s *there) commit(ctx context.Context, o CommitOptions) (*Commit, error) {
	if err := s.lockOpen(ctx); err != nil {
		return nil, err
	}
	defer s.changing.Unlock()
	if o.Author == "" {
		o.Author = s.db.opts.Author
	}
	c, err := s.tx.Commit(ctx, o)
	if err == nil && !o.DryRun {
		s.over()
	}
	return c, err
}

func (s *there) fork(ctx context.Context) (*Session, error) {
	if err := s.lockOpen(ctx); err != nil {
		return nil, err
	}
	defer s.changing.Unlock()
	tx, err := s.tx.Fork(ctx)
	if err != nil {
		return nil, fmt.Errorf("fork: %w", err)
	}
	s.told()
	return s.peer.session(tx), nil
}

func (s *there) join(ctx context.Context, f *Session, choices []PathChoice) error {
	err := s.lockOpen(ctx)
	if err == nil {
		defer s.changing.Unlock()
		err = s.tx.Join(ctx, f.id, choices)
		s.near.forget()
		s.known.Store(nil)
	}
	if err != nil {
		return fmt.Errorf("join session %v: %w", f.id, err)
	}
	f.close()
	return nil
}

// abortTime is how long Abort of a session of a peer waits for the answer.
const abortTime = 10 * time.Second

func (s *there) abort() error {
	ctx, cancel := context.WithTimeout(context.Background(), abortTime)
	defer cancel()
	err := s.changing.Lock(ctx)
	if err == nil {
		defer s.changing.Unlock()
		if s.Ended() {
			return nil
		}
		err = s.tx.Abort(ctx)
	}
	if err != nil {
		return fmt.Errorf("abort session %v: %w", s.id, err)
	}
	s.over()
	return nil
}

// close waits for no request of the session.
func (s *there) close() {
	if !s.Ended() {
		s.over()
		_ = s.tx.Close() // it is another process's
	}
}

func (s *there) asTx() Tx { return s.tx }

func (s *there) store(ctx context.Context, owner pack.Owner, value []byte, _ digest.Sum) (tree.Value, error) {
	return s.tx.Store(ctx, string(owner.Key), value)
}

// keeps heals nothing: a damaged payload is stored anew.
func (s *there) keeps(ctx context.Context, v tree.Value, _ []byte) (bool, error) {
	if v.Kind != tree.KindNative {
		return true, nil
	}
	a := catalog.AddressOf(v)
	err := s.db.home.view(ctx, a, 0, a.Length, true, digest.Sum{}, func([]byte) error { return nil })
	if errors.Is(err, kv.ErrCorrupt) || errors.Is(err, pack.ErrFailed) {
		return false, nil
	}
	return err == nil, err
}

// txPages are the pages of a session in another process.
type txPages struct {
	sourcePages
	tx Tx
}

var (
	_ tree.PageBatcher = txPages{}
	_ overlay.Spiller  = txPages{}
)

func (p txPages) PutPage(ctx context.Context, _ tree.Name, page []byte) error {
	return p.tx.Stage(ctx, [][]byte{page})
}

// batched is the overlay of a session of a peer: walks ask for many pages at a time.
type batched struct{ *overlay.Overlay }

var _ tree.PageBatcher = batched{}

func (b batched) GetPages(ctx context.Context, names []tree.Name) ([][]byte, error) {
	if page := b.Own(names[0]); page != nil {
		return [][]byte{page}, nil
	}
	n := slices.IndexFunc(names, func(name tree.Name) bool { return b.Own(name) != nil })
	if n < 0 {
		n = len(names)
	}
	return b.Below.(tree.PageBatcher).GetPages(ctx, names[:n])
}

func (b batched) GetPath(ctx context.Context, name tree.Name, key []byte) ([][]byte, error) {
	if page := b.Own(name); page != nil {
		return [][]byte{page}, nil
	}
	return b.Below.(tree.PageBatcher).GetPath(ctx, name, key)
}

// spill sends pages that outgrow the memory of a session.
func (p txPages) Spill(ctx context.Context, pages map[tree.Name][]byte) error {
	list := make([][]byte, 0, len(pages))
	for _, page := range pages {
		list = append(list, page)
	}
	return stageAll(ctx, p.tx, list)
}

// onePage returns the page of an answer that has one.
func onePage(pages [][]byte, err error) ([]byte, error) {
	if err == nil && len(pages) != 1 {
		err = fmt.Errorf("txn: %d pages came where one was asked for", len(pages))
	}
	if err != nil {
		return nil, err
	}
	return pages[0], nil
}

// somePages implements [Source.Pages] for the pages of a store.
func somePages(ctx context.Context, from tree.Pages, q PageQuery) (pages [][]byte, err error) {
	names, into, left := q.Names, q.Into, cap(q.Into)
	if into == nil {
		left = maxPageBytes
	}
	if p, ok := from.(away.Pages); ok && len(q.Key) == 0 && len(names) > 1 {
		if into == nil {
			return p.GetPages(ctx, names)
		}
		from = p.Batch(ctx, names[:min(len(names), tree.MaxFar)])
	}
	full := false
	for len(pages) < len(names) && !full {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		err := tree.ViewPage(ctx, from, names[len(pages)], func(b []byte) error {
			if full = len(pages) > 0 && len(b) > left; full {
				return nil
			}
			at := len(into)
			if len(b) <= cap(into)-at {
				into = append(into, b...)
				b = into[at:len(into):len(into)]
			} else {
				b = slices.Clone(b)
			}
			pages = append(pages, b)
			left -= len(b)
			return nil
		})
		if err != nil && len(q.Key) > 0 && len(pages) > 0 {
			return pages, nil // the peer asks for the page that is missing, and gets the error
		}
		if err != nil {
			return nil, err
		}
		if len(q.Key) > 0 && !full && len(pages) < tree.MaxFetch {
			next, ok, err := tree.Below(pages[len(pages)-1], q.Key)
			if err != nil || !ok {
				return pages, nil // the peer finds out what is wrong with the page
			}
			names = append(names[:len(names):len(names)], next)
		}
	}
	return pages, nil
}
