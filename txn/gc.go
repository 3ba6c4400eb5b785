package txn

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/zarrdb/zarrdb/kv/index"
	"github.com/zarrdb/zarrdb/kv/pack"
	"github.com/zarrdb/zarrdb/kv/tree"
	"github.com/zarrdb/zarrdb/txn/internal/catalog"
	"github.com/zarrdb/zarrdb/txn/internal/reach"
)

// The collector removes what no kept version, session or snapshot reaches.
// docs/design/gc.md says why it is right beside readers and writers.
//
//	sweep begins ─▶ roots ─▶ mark ─▶ delete pages ─▶ tidy ─▶ checkpoint ─▶ reclaim packs
//	 (puts are       (under    (index     (in small      (tables,  (of the     (holes, rewriting,
//	  spared)         a lock)   pages      batches)       logs)     index)      removal)
//	                            only)

// ErrCollecting means that another collection, or a transfer into the database,
// is running.
var ErrCollecting = errors.New("txn: another collection or transfer is running")

// GCOptions say how to collect.
type GCOptions struct {
	// DryRun only finds out what would be removed.
	DryRun bool
	// Explain also finds out what holds the rest; see [GCReport.Holders].
	Explain bool
	// Progress, if not nil, is called now and then with how far a phase is. Calls do
	// not overlap.
	Progress func(GCProgress) `json:"-"`

	// Bounds of memory: names of dead pages, bytes of ranges. Tests use less.
	deadNames, rangeBytes int
}

// GCProgress says how far a collection is.
type GCProgress struct {
	Phase string // "mark", "delete" or "reclaim"
	Done  int64  // pages, pages, packs
}

// GCReport says what a collection did, or would do.
type GCReport struct {
	// Pages of the index that stay, and their bytes.
	Pages, PageBytes int64
	// DeletedPages of the index, and their bytes.
	DeletedPages, DeletedPageBytes int64
	// LiveBytes are payloads that stay, with their headers, as near as the
	// collector knows them.
	LiveBytes int64
	// FreedBytes were given back from packs; HeldBytes are dead and stay for
	// now: in small pieces, in files with more than one link,
	// or in files that other processes read.
	FreedBytes, HeldBytes int64
	// Packs that were removed, got holes or were rewritten, and those that
	// were left alone because of a second link, or a process that reads them and
	// was given the file.
	Removed, Punched, Rewritten, Linked, Leased int
	// Holders are what keeps payloads, and Disk is what the directory takes, with Explain.
	Holders []Holder
	Disk    DiskUse
}

// GC removes pages and payloads that nothing reaches: no commit that has not
// expired, no session or open snapshot. It reads pages of the index, not
// payloads. Readers and writers go on meanwhile. It can be interrupted at any
// moment, by ctx or a crash, and then be run again. Damage ends the collection
// before anything is removed. It waits some seconds for processes that have versions open
// through a process which was killed, and then is [ErrPeersAway].
func (db *DB) GC(ctx context.Context, o GCOptions) (*GCReport, error) {
	db.letGo()
	return cared(ctx, db, "gc", o, o.Progress, nil, db.gc)
}

func (db *DB) gc(ctx context.Context, o GCOptions) (*GCReport, error) {
	check := db.writable
	if o.DryRun {
		check = db.check
	}
	if err := check(); err != nil {
		return nil, err
	}
	if err := db.unappliedLog(ctx); err != nil {
		return nil, fmt.Errorf("gc: %w", err)
	}
	if !o.DryRun {
		if err := db.awaitPeers(ctx); err != nil {
			return nil, fmt.Errorf("gc: %w", err)
		}
	}
	if !db.collecting.TryLock() {
		return nil, ErrCollecting
	}
	defer db.collecting.Unlock()
	if o.deadNames == 0 {
		o.deadNames = maxDead
	}
	if o.rangeBytes == 0 {
		o.rangeBytes = reach.MaxRangeBytes
	}
	g := &collector{
		db: db, o: o, r: &GCReport{}, stored: tree.New(db.committed(), reach.Uncached), marks: reach.NewMarks(o.rangeBytes), spare: map[tree.Name]struct{}{},
	}
	if !o.DryRun {
		sweep, err := db.idx.Sweep()
		if err != nil {
			return nil, fmt.Errorf("gc: %w", err)
		}
		defer sweep.Close()
		g.sweep = sweep
	}
	defer func() {
		if g.snap != nil {
			g.snap.Close()
		}
	}()
	for _, step := range []func(context.Context) error{g.findRoots, g.mark, g.deletePages, g.dropHoles, g.tidy, g.reclaim, g.explain} {
		if err := step(ctx); err != nil {
			return g.r, fmt.Errorf("gc: %w", err)
		}
	}
	return g.r, nil
}

type collector struct {
	db    *DB
	o     GCOptions
	r     *GCReport
	sweep *index.Sweep

	stored *tree.Tree      // reads pages as they are stored, with no cache before them
	snap   *index.Snapshot // of the moment of the roots
	kept   []gcRoot        // commits that have not expired, stored sessions
	open   []gcRoot        // sessions and snapshots of this process
	roots  []gcRoot        // those that were marked, in this order
	floors []pack.Position

	marks *reach.Marks
	spare map[tree.Name]struct{} // not walked from, but not deleted either

	mu   sync.Mutex
	dead []tree.Name // pages to delete
	more bool        // there are others

	renewed bool // the checkpoints, since the pages were deleted
}

// gcRoot is a place to mark from.
type gcRoot struct {
	reach.Root
	by holderID
}

type holderID struct{ kind, name string }

// Kinds of holders.
const (
	HolderBranch   = "branch"
	HolderTag      = "tag"
	HolderKept     = "kept by name" // see [DB.KeepVersion]
	HolderSession  = "session"
	HolderSnapshot = "open snapshot"
	HolderHistory  = "history"    // versions that no branch or tag points at
	HolderReflog   = "reflog"     // of a branch or tag; for Expire only
	HolderAge      = "age"        // versions within the age limit; for Expire only
	HolderBase     = "merge base" // of branches and tags
)

// holderOf is a branch or tag.
func holderOf(ref string) holderID {
	if catalog.IsHead(ref) {
		return holderID{HolderBranch, ref[len(catalog.HeadPrefix):]}
	}
	return holderID{HolderTag, ref[len(catalog.TagPrefix):]}
}

// findRoots collects everything that must stay, as of one moment. Commits wait
// only while the state is taken, not while it is read.
func (g *collector) findRoots(ctx context.Context) error {
	db := g.db
	db.commit.lock()
	if err := db.writePending(ctx); err != nil {
		db.commit.unlock()
		return err
	}
	snap := db.idx.Snapshot()
	g.snap = snap
	g.floors = append(g.floors, db.packs.Position())
	heads := db.heads.list("")
	db.mu.Lock()
	// Sessions may hold roots with pages that only they have. A page is read once,
	// whichever session it was found from: if that one has ended, another may have
	// made the same.
	pages := overlays{newOverlay(db.committed(), 0)}
	for _, s := range db.sessions {
		pages = append(pages, s.pages)
	}
	t := g.stored.With(pages)
	for _, s := range db.sessions {
		g.addSession(t, s)
	}
	for root := range db.roots {
		released := func() bool {
			db.mu.Lock()
			defer db.mu.Unlock()
			return db.roots[root] == 0
		}
		g.open = append(g.open, gcRoot{reach.Root{Root: root, Tree: t, Ended: released}, holderID{HolderSnapshot, ""}})
	}
	db.mu.Unlock()
	db.commit.unlock()

	expired, err := catalog.ExpiredIDs(snap)
	if err == nil {
		err = db.keptExpired(expired)
	}
	if err != nil {
		return err
	}
	commits := map[CommitID]tree.Root{} // of refs and sessions
	want := func(id CommitID) { commits[id] = tree.Root{} }
	sessions, err := sessionsIn(snap, want)
	if err != nil {
		return err
	}
	for _, h := range heads {
		want(h.Commit)
	}
	var pins []*catalog.Pin
	for p, err := range catalog.Pins.All(snap) {
		if err != nil {
			return err
		}
		want(p.Commit)
		pins = append(pins, p)
	}
	bases := map[CommitID]struct{}{}
	if g.o.Explain {
		list, err := db.mergeBases(ctx, heads)
		if err != nil {
			return err
		}
		for _, id := range list {
			bases[id] = struct{}{}
		}
	}
	for rec, err := range catalog.StoredCommits(ctx, snap, nil) {
		if err != nil {
			return err
		}
		id := rec.ID
		_, named := commits[id]
		_, gone := expired[id]
		if gone && !named {
			continue
		}
		c, err := catalog.DecodeCommit(id, rec.Value)
		if err != nil {
			return err
		}
		if named {
			commits[id] = c.Root
		} else if _, ok := bases[id]; ok {
			g.add(c.Root, HolderBase, id.Short())
		} else {
			g.add(c.Root, HolderHistory, "")
		}
	}
	for _, h := range heads {
		by := holderOf(h.Name)
		g.add(commits[h.Commit], by.kind, by.name)
	}
	for _, p := range pins {
		g.add(commits[p.Commit], HolderKept, p.Name)
	}
	for _, s := range sessions {
		g.add(s.Work, HolderSession, s.ID.String())
		if s.Start != nil {
			g.add(*s.Start, HolderSession, s.ID.String())
		}
		g.add(commits[s.Base], HolderSession, s.ID.String())
	}
	return nil
}

func (g *collector) add(root tree.Root, kind, name string) {
	g.kept = append(g.kept, gcRoot{reach.Root{Root: root, Tree: g.stored}, holderID{kind, name}})
}

// addSession takes the state of an open session. Pages that it has spilled stay
// though nothing may name them yet, and so does everything that was appended
// to packs since it was opened.
func (g *collector) addSession(t *tree.Tree, s *Session) {
	live := s.live.Load()
	ended := func() bool { return s.live.Load() == nil }
	if live == nil {
		return
	}
	for _, root := range []tree.Root{live.start, live.work} {
		g.open = append(g.open, gcRoot{reach.Root{Root: root, Tree: t, Ended: ended}, holderID{HolderSession, s.id.String()}})
	}
	s.pages.eachSpilled(func(name tree.Name) { g.spare[name] = struct{}{} })
	g.floors = append(g.floors, s.floor)
}

// sessionsIn reads the stored sessions, and calls want with the base of each.
func sessionsIn(snap *index.Snapshot, want func(CommitID)) (sessions []*catalog.Session, err error) {
	for s, err := range catalog.Sessions.All(snap) {
		if err != nil {
			return nil, err
		}
		want(s.Base)
		sessions = append(sessions, s)
	}
	return sessions, nil
}

// mark marks what the roots reach, and finds the pages that are dead. Pages
// that only an open session may have come last.
func (g *collector) mark(ctx context.Context) error {
	p := progress{g: g, phase: "mark"}
	for _, stage := range [][]gcRoot{g.kept, g.open} {
		g.roots = append(g.roots, stage...)
		roots := make([]reach.Root, len(stage))
		for i := range stage {
			roots[i] = stage[i].Root
		}
		if err := g.marks.Mark(ctx, roots, p.step); err != nil {
			return err
		}
	}
	defer g.snap.Close() // what is deleted takes no space in it
	return g.scan(ctx, g.snap, &p)
}

// progress tells about a phase, a few times a second.
type progress struct {
	g     *collector
	phase string
	done  int64
	asked int64 // done when the clock was last read
	next  time.Time
}

func (p *progress) step(n int64) {
	p.done += n
	if p.g.o.Progress == nil || p.done-p.asked < 256 && p.phase != "reclaim" {
		return
	}
	p.asked = p.done
	if now := time.Now(); now.After(p.next) {
		p.next = now.Add(100 * time.Millisecond)
		p.g.o.Progress(GCProgress{p.phase, p.done})
	}
}

// liveState is what the collector needs of an open session.
type liveState struct{ start, work tree.Root }

// publish shows the collector the present state. mu is held, or the
// session is not shared yet.
func (s *Session) publish() { s.live.Store(&liveState{s.start, s.work}) }
