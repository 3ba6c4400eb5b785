// Package collect lets versions go, and removes what nothing reaches any more.
//
//	Expire   marks the commits whose content may go
//	GC       removes pages and payloads that no version, session or snapshot reaches
//
// It gets the parts of an open database ([care.Parts]). What is open in the process is behind [Core].
package collect

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/zarrdb/zarrdb/kv/index"
	"github.com/zarrdb/zarrdb/kv/pack"
	"github.com/zarrdb/zarrdb/kv/tree"
	"github.com/zarrdb/zarrdb/txn/history"
	"github.com/zarrdb/zarrdb/txn/internal/care"
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

// Core is what a collection and an expiry ask of an open database beside its parts.
type Core interface {
	// Moment is what is open in this process, as of one moment in which no ref moves.
	Moment(ctx context.Context) (*Moment, error)
	// StillKept leaves in expired what no running transfer keeps.
	StillKept(expired map[catalog.CommitID]struct{}) error
	// OpenBases are the bases of open sessions.
	OpenBases() map[catalog.SessionID]catalog.CommitID
	// LetGo commits a batch that marks versions while no version is being opened.
	LetGo(ctx context.Context, batch *index.Batch) error
	// SealPack ends the growth of a pack, and records it.
	SealPack(id pack.ID) error
	// Forget removes copies of what buckets have, with all also the payloads of a lazy clone, and returns how much
	// of these. left says that some may be in use.
	Forget(ctx context.Context, all bool) (bytes int64, left bool, err error)
	// Publish calls fn while nothing else is published.
	Publish(ctx context.Context, fn func() error) error
}

// Moment is the state of a database that is open. Whoever takes it closes Index.
type Moment struct {
	Index *index.Snapshot
	Heads []catalog.Ref
	// Open are the roots of sessions and snapshots, and Spilled are pages that sessions have in
	// the index though nothing may name them yet.
	Open    []Root
	Spilled map[tree.Name]struct{}
	// Floors are where packs were when the moment was taken, and when sessions began: what lies
	// behind may be named by something that the collector does not see.
	Floors []pack.Position
}

// GCOptions say how to collect.
type GCOptions struct {
	// DryRun only finds out what would be removed.
	DryRun bool
	// Away also removes what a lazy clone has fetched of payloads.
	Away bool
	// AwaySize, if positive, bounds from now on the bytes on disk that a lazy clone keeps of the payloads that it fetches.
	AwaySize int64
	// Erase removes every byte of what is dead, as after an erasure, whatever that costs.
	Erase bool
	// Explain also finds out what holds the rest; see [GCReport.Holders].
	Explain bool
	// Progress, if not nil, is called now and then with how far a phase is. Calls do
	// not overlap.
	Progress func(GCProgress) `json:"-"`
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
	// AwayBytes is the space of payloads that were fetched from the remote, with Away.
	AwayBytes int64
	// Packs that were removed, got holes or were rewritten, and those that
	// were left alone because of a second link, or a process that reads them and
	// was given the file.
	Removed, Punched, Rewritten, Linked, Leased int
	// Erased says that something was erased before that is not gone yet: a version with it is open, or
	// a file has a second link or another reader. A later collection removes it.
	Erased bool
	// Quarantine is the directory with files that a repair has put aside, if a collection that leaves nothing of what was
	// erased has left these.
	Quarantine string
	// Holders are what keeps payloads, and Disk is what the directory takes, with Explain.
	Holders []Holder
	Disk    DiskUse
}

// GC collects. It can be interrupted at any moment, by ctx or a crash, and then be run again.
// Only one runs at a time.
func GC(ctx context.Context, p *care.Parts, core Core, o GCOptions) (*GCReport, error) {
	g := &collector{
		Parts: p, core: core, o: o, r: &GCReport{}, stored: tree.New(p.Pages, reach.Uncached), marks: reach.NewMarks(reach.MaxRangeBytes),
	}
	g.marks.Away = p.Away
	if !o.DryRun {
		sweep, err := p.Index.Sweep()
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
	for _, step := range []func(context.Context) error{g.findRoots, g.mark, g.deletePages, g.dropHoles, g.tidy, g.reclaim, g.erased, g.explain} {
		if err := step(ctx); err != nil {
			return g.r, fmt.Errorf("gc: %w", err)
		}
	}
	return g.r, nil
}

type collector struct {
	*care.Parts
	core  Core
	o     GCOptions
	r     *GCReport
	sweep *index.Sweep

	stored *tree.Tree      // reads pages as they are stored, with no cache before them
	snap   *index.Snapshot // of the moment of the roots
	kept   []Root          // commits that have not expired, stored sessions
	open   []Root          // sessions and snapshots of this process
	roots  []Root          // those that were marked, in this order
	floors []pack.Position

	marks *reach.Marks
	spare map[tree.Name]struct{} // not walked from, but not deleted either

	mu   sync.Mutex
	dead []tree.Name // pages to delete
	more bool        // there are others

	renewed bool   // the checkpoints, since the pages were deleted
	erase   bool   // no byte of what is dead may stay, because something was erased
	erasure string // the last one when the collection began
	spared  bool   // something may keep what was erased
}

// Root is a place to mark from.
type Root struct {
	reach.Root
	By HolderID
}

// HolderID is what keeps versions; see [Holder].
type HolderID struct{ Kind, Name string }

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
func holderOf(ref string) HolderID {
	if catalog.IsHead(ref) {
		return HolderID{HolderBranch, ref[len(catalog.HeadPrefix):]}
	}
	return HolderID{HolderTag, ref[len(catalog.TagPrefix):]}
}

// findRoots collects everything that must stay, as of one moment. Commits wait
// only while the state is taken, not while it is read.
func (g *collector) findRoots(ctx context.Context) error {
	m, err := g.core.Moment(ctx)
	if err != nil {
		return err
	}
	snap, heads := m.Index, m.Heads
	g.snap, g.open, g.spare, g.floors = snap, m.Open, m.Spilled, m.Floors
	if g.erasure, err = catalog.Erased(snap); err != nil {
		return err
	}
	g.erase = g.erasure != "" || g.o.Erase
	expired, err := catalog.ExpiredIDs(snap)
	all := len(expired)
	if err == nil {
		err = g.core.StillKept(expired)
	}
	if err != nil {
		return err
	}
	g.spared = len(expired) < all || len(g.open) > 0 || len(g.floors) > 1
	commits := map[catalog.CommitID]tree.Root{} // of refs and sessions
	want := func(id catalog.CommitID) { commits[id] = tree.Root{} }
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
	bases := map[catalog.CommitID]struct{}{}
	if g.o.Explain {
		list, err := mergeBases(ctx, g.Parts, heads)
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
		g.add(commits[h.Commit], by.Kind, by.Name)
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
	g.kept = append(g.kept, Root{reach.Root{Root: root, Tree: g.stored}, HolderID{kind, name}})
}

// sessionsIn reads the stored sessions, and calls want with the base of each.
func sessionsIn(snap *index.Snapshot, want func(catalog.CommitID)) (sessions []*catalog.Session, err error) {
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
	for _, stage := range [][]Root{g.kept, g.open} {
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

// mergeBases returns the best common ancestors of all pairs of refs.
func mergeBases(ctx context.Context, p *care.Parts, refs []catalog.Ref) ([]catalog.CommitID, error) {
	tips := make([]catalog.CommitID, len(refs))
	for i, r := range refs {
		tips[i] = r.Commit
	}
	return history.MergeBases(ctx, p.DB.Lookup, tips)
}
