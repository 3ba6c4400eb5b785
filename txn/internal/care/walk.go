package care

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/zarrdb/zarrdb/kv/digest"
	"github.com/zarrdb/zarrdb/kv/index"
	"github.com/zarrdb/zarrdb/kv/pack"
	"github.com/zarrdb/zarrdb/kv/tree"
	"github.com/zarrdb/zarrdb/txn/internal/catalog"
	"github.com/zarrdb/zarrdb/txn/internal/namespace"
	"github.com/zarrdb/zarrdb/txn/internal/reach"
)

// Checker looks at one state of the index. Pages that several versions share are
// read once. Only if something is damaged, they are read again: for the versions
// that it belongs to.
type Checker struct {
	*Parts
	Options CheckOptions
	// Gone says that packs may have been removed since, because the index is a
	// checkpoint: that one is missing matters where a payload lies in it.
	Gone bool
	// Look replaces the look at a payload; it may be called side by side.
	Look func(ctx context.Context, v tree.Value) error

	snap *index.Snapshot
	tree *tree.Tree // without a cache: what is on disk counts

	heads       map[catalog.CommitID][]string
	targets     map[string]catalog.CommitID
	Moved       time.Time // when a branch or tag was moved last
	seen        map[catalog.CommitID]struct{}
	pending     []pendingCommit
	generations map[catalog.CommitID]uint64
	lineage     []edge
	holes       map[pack.Address]digest.Sum
	roots       []checkRoot

	mu       sync.Mutex // guards what follows, and calls of callbacks
	Report   CheckReport
	pages    map[tree.Name]struct{}
	notes    []Problem              // about neither pages nor payloads
	damaged  map[string]error       // pages, by Problem.Page
	bad      map[pack.Address]error // payloads
	Payloads reach.AddressSet       // that were looked at
	progress CheckProgress
	reported int64 // bytes
}

type pendingCommit struct {
	id   catalog.CommitID
	from string
}

type edge struct{ child, parent catalog.CommitID }

// checkRoot is a namespace that must be sound, of a commit or a session.
type checkRoot struct {
	root   tree.Root
	commit *catalog.CommitID // nil for a session
}

// RunAll is Run with the commits that are not in the index yet.
func (c *Checker) RunAll(ctx context.Context) error {
	if err := c.DB.Usable(); err != nil {
		return err
	}
	if err := c.DB.WritePending(ctx); err != nil {
		return err
	}
	return c.Run(ctx)
}

// Run looks at the database as its index is now. Nothing is reclaimed meanwhile. It may be called once.
func (c *Checker) Run(ctx context.Context) error {
	if err := c.Relied.RLock(ctx); err != nil {
		return err
	}
	defer c.Relied.RUnlock()
	c.snap = c.Index.Snapshot()
	defer c.snap.Close()
	c.heads, c.targets = map[catalog.CommitID][]string{}, map[string]catalog.CommitID{}
	c.seen, c.generations = map[catalog.CommitID]struct{}{}, map[catalog.CommitID]uint64{}
	c.pages, c.damaged, c.bad = map[tree.Name]struct{}{}, map[string]error{}, map[pack.Address]error{}
	c.tree = tree.New(storedPages{c.snap}, reach.Uncached)
	c.progress.TotalBytes = int64(c.Index.Metrics().DiskBytes)
	if c.Options.Payloads {
		for _, i := range c.Packs.Infos() {
			c.progress.TotalBytes += int64(i.End)
		}
	}
	err := InTurn(ctx, c.packs, c.known, c.refs, c.reflogs, c.sessions, c.history, c.walk, c.orphans, c.trace)
	c.pages, c.seen, c.generations, c.lineage = nil, nil, nil, nil // they are long
	return err
}

// storedPages is the page store of an index, or of one state of it.
type storedPages struct {
	in interface {
		GetPage(ctx context.Context, name tree.Name) ([]byte, error)
	}
}

func (p storedPages) GetPage(ctx context.Context, name tree.Name) ([]byte, error) {
	b, err := p.in.GetPage(ctx, name)
	if errors.Is(err, index.ErrNotFound) {
		return nil, fmt.Errorf("page %v: %w", name, tree.ErrMissing)
	}
	return b, err
}

func (p storedPages) PutPage(context.Context, tree.Name, []byte) error {
	return errors.New("txn: bug: page written by a check")
}

// note takes a problem. Those of pages and payloads wait for trace, which finds out where
// they are. What is more than the report has room for is passed on at once.
func (c *Checker) note(p Problem) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.Report.Found++
	page, payload := p.Page != "", p.Kind == ProblemPayload
	switch {
	case page && len(c.damaged) < MaxProblems:
		c.damaged[p.Page] = p.Err
	case payload && len(c.bad) < MaxProblems:
		c.bad[p.Address] = p.Err
	case !page && !payload && len(c.notes) < MaxProblems:
		c.notes = append(c.notes, p)
	default:
		c.tell(p)
	}
}

// tell passes a problem on. c.mu is held, or the goroutine is alone.
func (c *Checker) tell(p Problem) {
	if c.Options.Found != nil {
		c.Options.Found(p)
	}
}

// unreadable notes that a part of the index cannot be scanned, which ends a step.
func (c *Checker) unreadable(err error, kind, what string) error {
	if Stop(err) {
		return err
	}
	c.note(Problem{Kind: kind, What: what, Err: err})
	return errNoted
}

// reach puts a commit on the list of what is kept.
func (c *Checker) reach(id catalog.CommitID, from string) {
	if _, ok := c.seen[id]; !ok {
		c.seen[id] = struct{}{}
		c.pending = append(c.pending, pendingCommit{id, from})
	}
}

func (c *Checker) start(root tree.Root, commit *catalog.CommitID) {
	c.roots = append(c.roots, checkRoot{root, commit})
}

// place is a page on the list of those to be read, or a payload that one names.
type place struct {
	at      tree.Place
	path    string          // of the directory
	form    *namespace.Form // of a chunk map; nil for a page of a directory
	payload *payloadPlace   // nil for a page
}

// payloadPlace is a payload that is large enough to be work of its own: few pages
// may name many bytes.
type payloadPlace struct {
	key   string
	chunk []int64
	v     tree.Value
}

const largePayload = 1 << 20

// walk reads every page below the roots, each once, with several goroutines, and
// checks what is in it.
func (c *Checker) walk(ctx context.Context) error {
	defer c.read(0, true)
	var roots []place
	for _, r := range slices.Backward(c.roots) {
		if c.enter(r.root.Place()) {
			roots = append(roots, place{at: r.root.Place()})
		}
	}
	q := reach.NewWorkList(roots...)
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for {
				p, ok := q.Take()
				if !ok {
					return
				}
				below, err := c.page(ctx, p)
				if err == nil {
					err = ctx.Err()
				}
				q.Done(below, err)
			}
		})
	}
	wg.Wait()
	return q.Err()
}

// enter reports whether a page is there and is met for the first time.
func (c *Checker) enter(at tree.Place) bool {
	page := at.Page()
	if page.Empty() {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	_, known := c.pages[page.Name]
	c.pages[page.Name] = struct{}{}
	return !known
}

// page checks one page, and leaves large payloads for later. It returns the pages
// below that were not met before, the first one last.
func (c *Checker) page(ctx context.Context, p place) ([]place, error) {
	var n CheckReport // counts
	defer c.count(&n)
	if l := p.payload; l != nil {
		return nil, c.value(ctx, &n, p.path, *l)
	}
	var below, large []place
	value := func(l payloadPlace) error {
		n.Values++
		if c.Options.Payloads && l.v.Kind == tree.KindNative && l.v.Length >= largePayload {
			large = append(large, place{path: p.path, payload: &payloadPlace{l.key, l.chunk, l.v}})
			return nil
		}
		return c.value(ctx, &n, p.path, l)
	}
	err := namespace.CheckPath(ctx, p.path)
	if err == nil {
		err = c.open(ctx, p, func(child place) error {
			below = append(below, child)
			return nil
		}, value)
	}
	if errors.Is(err, tree.ErrMissing) && c.Away != nil {
		if err = c.Away(ctx, p.at.Page().Name); err == nil {
			n.AwayPages++
			return nil, nil
		}
		if !errors.Is(err, tree.ErrMissing) {
			return nil, err // the remote could not be asked
		}
	}
	if Stop(err) {
		return nil, err
	}
	if err != nil { // what it leads to is met at another place, or not at all
		c.note(pageProblem(p.at.Page().Name, p.path, err))
		return nil, nil
	}
	n.Pages++
	c.read(int64(p.at.Page().Size), false)
	below = slices.DeleteFunc(below, func(child place) bool { return !c.enter(child.at) })
	slices.Reverse(below)
	slices.Reverse(large) // the first one is taken first, and pages after them
	return append(below, large...), nil
}

// count adds the counts of a page.
func (c *Checker) count(n *CheckReport) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.Report.Pages += n.Pages
	c.Report.AwayPages += n.AwayPages
	c.Report.AwayPayloads += n.AwayPayloads
	c.Report.Values += n.Values
	c.Report.Payloads += n.Payloads
	c.Report.PayloadBytes += n.PayloadBytes
}

// open reads a page, and calls below for the pages below it and value for what it maps
// to bytes.
func (c *Checker) open(ctx context.Context, p place, below func(place) error, value func(payloadPlace) error) error {
	return c.tree.Open(ctx, p.at, func(child tree.Place) error {
		return below(place{at: child, path: p.path, form: p.form})
	}, func(e tree.Entry) error {
		key, chunk, m, err := namespace.ReadEntry(p.path, p.form, e)
		switch {
		case err != nil:
			return err
		case m != nil:
			return below(place{at: e.Value.Child.Place(), path: m.Path, form: m.Form})
		case key != "":
			return value(payloadPlace{key, chunk, e.Value})
		}
		return nil
	})
}

// value checks what a key in a directory maps to.
func (c *Checker) value(ctx context.Context, n *CheckReport, dir string, l payloadPlace) error {
	if l.v.Kind != tree.KindNative || !c.Payloads.Add(catalog.AddressOf(l.v)) {
		return nil
	}
	n.Payloads++
	n.PayloadBytes += int64(l.v.Length)
	err := c.payload(ctx, l.v)
	if errors.As(err, new(*pack.CorruptError)) && c.AwayPayload != nil && c.Look == nil {
		if err = c.AwayPayload(ctx, catalog.AddressOf(l.v), err); err == nil {
			n.AwayPayloads++
		} else if !errors.As(err, new(*pack.CorruptError)) {
			return err // the remote could not be asked
		}
	}
	if err == nil || Stop(err) {
		return err
	}
	c.note(payloadProblem(dir, l, err))
	return nil
}

// payload checks that a payload can be there, or that it is.
func (c *Checker) payload(ctx context.Context, v tree.Value) error {
	if c.Look != nil {
		return c.Look(ctx, v)
	}
	a := catalog.AddressOf(v)
	_, hole := c.holes[a]
	err := c.Packs.Covered(ctx, a)
	if err == nil && !c.Options.Payloads && !hole {
		return nil
	}
	if err == nil {
		err = c.VerifyPayload(ctx, a, v.Sum)
	}
	if err != nil && hole {
		err = holeError{err}
	}
	c.read(int64(a.Length), false)
	return err
}

// holeError is the damage of a known hole.
type holeError struct{ error }

func (e holeError) Error() string { return "known hole: " + e.error.Error() }
func (e holeError) Unwrap() error { return e.error }

func pageProblem(name tree.Name, dir string, err error) Problem {
	return Problem{
		Kind: ProblemPage, What: fmt.Sprintf("page %v of directory %q,", name, dir), Err: err, Key: dir, Page: name.String(),
	}
}

func payloadProblem(dir string, l payloadPlace, err error) Problem {
	a := catalog.AddressOf(l.v)
	p := Problem{Kind: ProblemPayload, Err: err, Hole: errors.As(err, new(holeError)), Key: l.key, Chunk: l.chunk, Address: a, sum: l.v.Sum}
	what := "payload of " + l.key
	if l.chunk != nil {
		p.Array = namespace.NodePath(dir)
		what = fmt.Sprintf("chunk %v of array %q, key %s", l.chunk, p.Array, l.key)
	}
	p.What = fmt.Sprintf("%s, pack %v at %d, %d bytes,", what, a.Pack, a.Offset, a.Length)
	return p
}

// progressStep is how many bytes lie between two reports.
const progressStep = 1 << 20

// read counts bytes, and reports them from time to time.
func (c *Checker) read(n int64, always bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := &c.progress
	p.Bytes += n
	p.TotalBytes = max(p.TotalBytes, p.Bytes)
	if c.Options.Progress != nil && (always || p.Bytes >= c.reported+progressStep) {
		c.reported = p.Bytes
		c.Options.Progress(*p)
	}
}

// orphans counts what is in the index and was not reached.
func (c *Checker) orphans(ctx context.Context) error {
	for rec, err := range c.snap.Scan(index.SpacePage, nil, nil, false) {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return c.unreadable(err, ProblemPage, "pages of the index")
		}
		if len(rec.Key) != digest.Size {
			c.note(Problem{Kind: ProblemPage, What: fmt.Sprintf("page %x", rec.Key), Err: catalog.Corrupt("a name of %d bytes", len(rec.Key))})
			continue
		}
		if _, ok := c.pages[tree.Name(rec.Key)]; !ok {
			c.Report.OrphanPages++
			c.Report.OrphanBytes += int64(len(rec.Value))
		}
	}
	for rec, err := range c.snap.Scan(index.SpaceCommit, nil, nil, false) {
		if err != nil {
			return c.unreadable(err, ProblemCommit, "commits of the index")
		}
		if len(rec.Key) == digest.Size {
			if _, ok := c.seen[catalog.CommitID(rec.Key)]; !ok {
				c.Report.OrphanCommits++
			}
		}
	}
	return nil
}
