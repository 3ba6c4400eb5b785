package txn

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/zarrdb/zarrdb/kv/digest"
	"github.com/zarrdb/zarrdb/kv/index"
	"github.com/zarrdb/zarrdb/kv/pack"
	"github.com/zarrdb/zarrdb/kv/tree"
	"github.com/zarrdb/zarrdb/txn/internal/catalog"
	"github.com/zarrdb/zarrdb/txn/internal/namespace"
	"github.com/zarrdb/zarrdb/txn/internal/reach"
)

// checker looks at one state of the index. Pages that several versions share are
// read once. Only if something is damaged, they are read again: for the versions
// that it belongs to.
type checker struct {
	db   *DB
	o    CheckOptions
	snap *index.Snapshot
	tree *tree.Tree // without a cache: what is on disk counts

	heads       map[CommitID][]string
	targets     map[string]CommitID
	seen        map[CommitID]struct{}
	pending     []pendingCommit
	generations map[CommitID]uint64
	lineage     []edge
	holes       map[pack.Address]digest.Sum
	roots       []checkRoot

	mu       sync.Mutex // guards what follows, and calls of callbacks
	r        CheckReport
	pages    map[tree.Name]struct{}
	notes    []Problem              // about neither pages nor payloads
	damaged  map[tree.Name]error    // pages
	bad      map[pack.Address]error // payloads
	payloads reach.AddressSet       // that were looked at

	nPages, nPayloads, nValues, nBytes, payloadBytes atomic.Int64
	total, reported                                  int64
}

type pendingCommit struct {
	id   CommitID
	from string
}

type edge struct{ child, parent CommitID }

// checkRoot is a namespace that must be sound, of a commit or a session.
type checkRoot struct {
	root   tree.Root
	of     string
	commit *CommitID
}

func newChecker(db *DB, o CheckOptions) *checker {
	c := &checker{
		db: db, o: o, snap: db.idx.Snapshot(),
		heads: map[CommitID][]string{}, targets: map[string]CommitID{},
		seen: map[CommitID]struct{}{}, generations: map[CommitID]uint64{},
		pages: map[tree.Name]struct{}{}, damaged: map[tree.Name]error{}, bad: map[pack.Address]error{},
	}
	c.tree = tree.New(snapshotPages{c.snap}, uncached)
	c.total = int64(db.idx.Metrics().DiskBytes)
	if o.Payloads {
		for _, i := range db.packs.Infos() {
			c.total += int64(i.End)
		}
	}
	return c
}

// snapshotPages is the page store of one state of the index.
type snapshotPages struct{ s *index.Snapshot }

func (p snapshotPages) GetPage(ctx context.Context, name tree.Name) ([]byte, error) {
	b, err := p.s.GetPage(ctx, name)
	if errors.Is(err, index.ErrNotFound) {
		return nil, fmt.Errorf("page %v: %w", name, tree.ErrMissing)
	}
	return b, err
}

func (p snapshotPages) PutPage(context.Context, tree.Name, []byte) error {
	return errors.New("txn: bug: page written by a check")
}

// note adds a problem that is complete.
func (c *checker) note(p Problem) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.r.Found++
	if len(c.notes) < maxProblems {
		c.notes = append(c.notes, p)
	} else {
		c.tell(p)
	}
}

// tell passes on a problem that the report has no room for. c.mu is held.
func (c *checker) tell(p Problem) {
	if c.o.Found != nil {
		c.o.Found(p)
	}
}

// unreadable notes that a part of the index cannot be scanned.
func (c *checker) unreadable(err error, kind, what string) error {
	if stop(err) {
		return err
	}
	c.note(Problem{Kind: kind, What: what, Err: err})
	return nil
}

// reach puts a commit on the list of what is kept.
func (c *checker) reach(id CommitID, from string) {
	if _, ok := c.seen[id]; !ok {
		c.seen[id] = struct{}{}
		c.pending = append(c.pending, pendingCommit{id, from})
	}
}

func (c *checker) commit(id CommitID) (*Commit, error) {
	commit, err := catalog.Commits.Get(c.snap, id)
	if errors.Is(err, index.ErrNotFound) {
		return nil, corrupt("commit %v is missing", id)
	}
	return commit, err
}

func (c *checker) start(root tree.Root, of string, commit *CommitID) {
	c.roots = append(c.roots, checkRoot{root, of, commit})
}

// place is a page on the list of those to be read, or a payload that one names.
type place struct {
	at      tree.Place
	of      string        // what it belongs to, for messages
	path    string        // of the directory
	form    *Form         // of a chunk map; nil for a page of a directory
	payload *payloadPlace // nil for a page
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
func (c *checker) walk(ctx context.Context) error {
	defer c.progress(true)
	var roots []place
	for _, r := range slices.Backward(c.roots) {
		if c.enter(r.root.Place()) {
			roots = append(roots, place{at: r.root.Place(), of: r.of})
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
func (c *checker) enter(at tree.Place) bool {
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
// below, the first one last.
func (c *checker) page(ctx context.Context, p place) ([]place, error) {
	if l := p.payload; l != nil {
		return nil, c.value(ctx, p, l.key, l.chunk, l.v)
	}
	var large []place
	below, err := c.open(ctx, p, func(key string, chunk []int64, v tree.Value) error {
		if c.o.Payloads && v.Kind == tree.KindNative && v.Length >= largePayload {
			large = append(large, place{of: p.of, path: p.path, payload: &payloadPlace{key, slices.Clone(chunk), v}})
			return nil
		}
		return c.value(ctx, p, key, chunk, v)
	})
	if err != nil {
		if stop(err) {
			return nil, err
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.r.Found++
		if name := p.at.Page().Name; len(c.damaged) < maxProblems {
			c.damaged[name] = err
		} else {
			c.tell(pageProblem(name, p.path, err))
		}
		return large, nil
	}
	c.nPages.Add(1)
	c.nBytes.Add(int64(p.at.Page().Size))
	c.progress(false)
	slices.Reverse(large) // the first one is taken first, and pages after them
	return append(below, large...), nil
}

// open reads a page, calls value for what it maps to bytes, and returns the
// pages below that were not met before.
func (c *checker) open(ctx context.Context, p place, value func(key string, chunk []int64, v tree.Value) error) ([]place, error) {
	if err := namespace.CheckPath(ctx, p.path); err != nil {
		return nil, err
	}
	var below []place
	add := func(at tree.Place, path string, form *Form) {
		if c.enter(at) {
			below = append(below, place{at: at, of: p.of, path: path, form: form})
		}
	}
	err := c.tree.Open(ctx, p.at, func(child tree.Place) error {
		add(child, p.path, p.form)
		return nil
	}, func(e tree.Entry) error {
		key, chunk, m, err := namespace.ReadEntry(p.path, p.form, e)
		switch {
		case err != nil:
			return err
		case m != nil:
			add(e.Value.Child.Place(), m.Path, m.Form)
			return nil
		case key == "":
			return nil
		}
		return value(key, chunk, e.Value)
	})
	slices.Reverse(below)
	return below, err
}

// value checks what a key maps to.
func (c *checker) value(ctx context.Context, p place, key string, chunk []int64, v tree.Value) error {
	c.nValues.Add(1)
	if v.Kind != tree.KindNative || !c.payloads.Add(addressOf(v)) {
		return nil
	}
	c.nPayloads.Add(1)
	c.payloadBytes.Add(int64(v.Length))
	err := c.payload(ctx, v)
	if err == nil || stop(err) {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.r.Found++
	if len(c.bad) < maxProblems {
		c.bad[addressOf(v)] = err
	} else {
		// Too many to find out where each of them is.
		c.tell(payloadProblem(key, p.path, chunk, v, err))
	}
	return nil
}

// payload checks that a payload can be there, or that it is.
func (c *checker) payload(ctx context.Context, v tree.Value) error {
	if c.o.payload != nil {
		return c.o.payload(ctx, v)
	}
	a := addressOf(v)
	_, hole := c.holes[a]
	err := c.db.packs.Covered(ctx, a)
	if err == nil && !c.o.Payloads && !hole {
		return nil
	}
	if err == nil {
		err = c.db.verifyPayload(ctx, a, v.Sum)
	}
	if err != nil && hole {
		err = holeError{err}
	}
	c.nBytes.Add(int64(a.Length))
	c.progress(false)
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

func payloadProblem(key, dir string, chunk []int64, v tree.Value, err error) Problem {
	a := addressOf(v)
	p := Problem{Kind: ProblemPayload, Err: err, Hole: errors.As(err, new(holeError)), Key: key, Chunk: chunk, Address: a, sum: v.Sum}
	what := "payload of " + key
	if chunk != nil {
		p.Array = trimSlash(dir)
		what = fmt.Sprintf("chunk %v of array %q, key %s", chunk, p.Array, key)
	}
	p.What = fmt.Sprintf("%s, pack %v at %d, %d bytes,", what, a.Pack, a.Offset, a.Length)
	return p
}

func trimSlash(path string) string {
	if path == "" {
		return path
	}
	return path[:len(path)-1]
}

// progressStep is how many bytes lie between two reports.
const progressStep = 1 << 20

func (c *checker) progress(always bool) {
	if c.o.Progress == nil {
		return
	}
	n := c.nBytes.Load()
	c.mu.Lock()
	defer c.mu.Unlock()
	if !always && n < c.reported+progressStep {
		return
	}
	c.reported = n
	c.o.Progress(CheckProgress{Bytes: n, TotalBytes: max(c.total, n)})
}

// report puts the counts together.
func (c *checker) report() *CheckReport {
	c.r.Pages, c.r.Values, c.r.Payloads = c.nPages.Load(), c.nValues.Load(), c.nPayloads.Load()
	c.r.PayloadBytes = c.payloadBytes.Load()
	return &c.r
}

// orphans counts what is in the index and was not reached.
func (c *checker) orphans(ctx context.Context) error {
	for rec, err := range c.snap.Scan(index.SpacePage, nil, nil, false) {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return c.unreadable(err, ProblemPage, "pages of the index")
		}
		if len(rec.Key) != digest.Size {
			c.note(Problem{Kind: ProblemPage, What: fmt.Sprintf("page %x", rec.Key), Err: corrupt("a name of %d bytes", len(rec.Key))})
			continue
		}
		if _, ok := c.pages[tree.Name(rec.Key)]; !ok {
			c.r.OrphanPages++
			c.r.OrphanBytes += int64(len(rec.Value))
		}
	}
	for rec, err := range c.snap.Scan(index.SpaceCommit, nil, nil, false) {
		if err != nil {
			return c.unreadable(err, ProblemCommit, "commits of the index")
		}
		if len(rec.Key) == digest.Size {
			if _, ok := c.seen[CommitID(rec.Key)]; !ok {
				c.r.OrphanCommits++
			}
		}
	}
	return nil
}
