package txn

import (
	"context"
	"time"

	"github.com/zarrdb/zarrdb/kv/index"
	"github.com/zarrdb/zarrdb/kv/pack"
	"github.com/zarrdb/zarrdb/kv/tree"
	"github.com/zarrdb/zarrdb/txn/internal/bucket"
	"github.com/zarrdb/zarrdb/txn/internal/care"
	"github.com/zarrdb/zarrdb/txn/internal/collect"
	"github.com/zarrdb/zarrdb/txn/internal/overlay"
	"github.com/zarrdb/zarrdb/txn/internal/reach"
	"github.com/zarrdb/zarrdb/txn/internal/transfer"
)

// core is what packages below txn see of a database that this process has open.
type core struct{ *DB }

var (
	_ care.DB                = core{}
	_ collect.Core           = core{}
	_ transfer.DestinationDB = core{}
)

func (c core) Usable() error                          { return c.check() }
func (c core) WritePending(ctx context.Context) error { return c.writePending(ctx) }
func (c core) Heads() []Ref                           { return c.heads.list("") }
func (c core) Head(ref string) (CommitID, bool)       { return c.heads.get(ref) }

func (c core) Protection(ref string) Protection { return c.heads.protection(ref) }

func (c core) Expired(ctx context.Context, id CommitID) (bool, time.Time, error) {
	return c.home.expired(ctx, id)
}

func (c core) Publish(ctx context.Context, fn func() error) error {
	defer c.care.Checkpoints.MakeIfDue()
	c.commit.lock()
	defer c.commit.unlock()
	if err := c.writePending(ctx); err != nil {
		return err
	}
	return fn()
}

func (c core) Write(ctx context.Context, b *transfer.LastBatch) error {
	w := newChange(0)
	w.noPayloads, w.extra, w.moves, w.mirrored = true, b.Batch, b.Moves, b.Mirrored
	return c.write(ctx, w)
}

func (c core) Move(ref, op string, to CommitID) error {
	_, err := c.moveRef(ref, op, func(CommitID) (CommitID, error) { return to, nil })
	return err
}

func (c core) StillKept(expired map[CommitID]struct{}) error { return c.keptExpired(expired) }

func (c core) OpenBases() map[SessionID]CommitID {
	bases := map[SessionID]CommitID{}
	for _, s := range c.openSessions() {
		bases[s.id] = s.Info().Base
	}
	return bases
}

func (c core) LetGo(ctx context.Context, batch *index.Batch) error {
	// Code that opens a version reads its mark and registers under this lock.
	if err := c.keeping.Lock(ctx); err != nil {
		return err
	}
	defer c.keeping.Unlock()
	defer c.current.clear() // the batch may be stored although Commit fails
	return batch.Commit(true)
}

func (c core) SealPack(id pack.ID) error {
	c.packs.Seal(id)
	w := newChange(c.packFailures.Load())
	w.makesRoom = true
	return c.write(context.Background(), w)
}

func (c core) Forget(ctx context.Context, all bool) (bytes int64, left bool, err error) {
	if all && c.away != nil {
		if bytes, left, err = c.away.Empty(ctx, false); err != nil {
			return bytes, left, err
		}
	}
	return bytes, !bucket.ForgetCaches(c.fs, c.dir) || left, nil
}

func (c core) Moment(ctx context.Context) (*collect.Moment, error) {
	db := c.DB
	db.commit.lock()
	defer db.commit.unlock()
	if err := db.writePending(ctx); err != nil {
		return nil, err
	}
	m := &collect.Moment{
		Index: db.idx.Snapshot(), Heads: db.heads.list(""), Spilled: map[tree.Name]struct{}{}, Floors: []pack.Position{db.packs.Position()},
	}
	db.mu.Lock()
	defer db.mu.Unlock()
	// Sessions may hold roots with pages that only they have. A page is read once,
	// whichever session it was found from: if that one has ended, another may have
	// made the same.
	pages := overlay.Group{overlay.New(db.committed(), 0)}
	for _, s := range db.sessions {
		pages = append(pages, s.pages)
	}
	t := tree.New(pages, reach.Uncached)
	for _, s := range db.sessions {
		s.addTo(m, t)
	}
	for root := range db.roots {
		released := func() bool {
			db.mu.Lock()
			defer db.mu.Unlock()
			return db.roots[root] == 0
		}
		m.Open = append(m.Open, collect.Root{Root: reach.Root{Root: root, Tree: t, Ended: released}, By: collect.HolderID{Kind: HolderSnapshot}})
	}
	return m, nil
}

// addTo adds the state of an open session to a moment. Pages that it has spilled stay though
// nothing may name them yet, and so does everything that was appended to packs since it was opened.
func (s *Session) addTo(m *collect.Moment, t *tree.Tree) {
	live := s.live.Load()
	ended := func() bool { return s.live.Load() == nil }
	if live == nil {
		return
	}
	for _, root := range []tree.Root{live.start, live.work} {
		m.Open = append(m.Open, collect.Root{Root: reach.Root{Root: root, Tree: t, Ended: ended}, By: collect.HolderID{Kind: collect.HolderSession, Name: s.id.String()}})
	}
	s.pages.EachSpilled(func(name tree.Name) { m.Spilled[name] = struct{}{} })
	m.Floors = append(m.Floors, s.floor)
}

// liveState is what the collector needs of an open session.
type liveState struct{ start, work tree.Root }

// publish shows the collector the present state. mu is held, or the
// session is not shared yet.
func (s *Session) publish() { s.live.Store(&liveState{s.start, s.work}) }

// donor is a database that a repair takes bytes from; a peer is one too.
type donor struct{ *DB }

var _ care.Donor = donor{}

func (d donor) Stored(ctx context.Context, s index.Space, name []byte) ([]byte, error) {
	if s != index.SpacePage || len(name) != len(PageName{}) {
		return d.home.records(ctx).Get(s, name)
	}
	return onePage(d.Source().Pages(ctx, PageQuery{Names: []PageName{PageName(name)}}))
}
