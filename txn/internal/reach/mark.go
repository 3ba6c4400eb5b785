package reach

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"

	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/tree"
)

// Root is a version to mark from.
type Root struct {
	Root tree.Root
	Tree *tree.Tree // reads its pages
	// Ended reports whether a session or snapshot has ended, whose pages may be gone
	// then. It is nil for versions of the index.
	Ended func() bool
}

// Marks are the pages and payloads below some roots.
//
// Mark visits each page once. It reads pages that lead to others at once, by name.
// Leaves with payloads, which are nearly all pages, are only noted: a LeafReader
// reads them in the order in which the index keeps them. Pages that only an open
// session may have are read at once.
type Marks struct {
	Live *Ranges // where the payloads are
	// Away, if not nil, returns nil for a page that is missing here, but not elsewhere, with all that is below it.
	Away func(ctx context.Context, name tree.Name) error

	roots []Root
	pages *Pages // the number is 1 + that of the root if the page is still to be read

	mu sync.Mutex // held while step runs
}

// NewMarks returns marks of nothing. rangeBytes bounds the memory of Live.
func NewMarks(rangeBytes int) *Marks {
	return &Marks{Live: NewRanges(rangeBytes), pages: NewPages()}
}

// markItem is a page that was marked and is still to be read.
type markItem struct {
	root tree.Root
	from uint32 // the number of a root
}

// Mark marks what roots reach, on all processors. A page is read by the first root
// that leads to it. step is called with the number of new pages, by one goroutine
// at a time.
func (m *Marks) Mark(ctx context.Context, roots []Root, step func(pages int64)) error {
	first := len(m.roots)
	m.roots = append(m.roots, roots...)
	var items []markItem
	n := int64(0)
	for i := range roots {
		items = m.enter(items, roots[i].Root, uint32(first+i), &n)
	}
	step(n)
	work := NewWorkList(items...)
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() { m.work(ctx, work, step) })
	}
	wg.Wait()
	return work.Err()
}

// enter marks a page, and adds it to items if it is to be read at once.
func (m *Marks) enter(items []markItem, root tree.Root, from uint32, marked *int64) []markItem {
	if root.Empty() {
		return items
	}
	payloads := root.Flags&tree.HasNative != 0
	leads := root.Height > 0 || root.Flags&tree.HasChild != 0
	later := uint32(0)
	if payloads && !leads && m.roots[from].Ended == nil {
		later = from + 1
	}
	if !m.pages.Add(root.Name, later) {
		return items
	}
	*marked++
	if leads || payloads && later == 0 {
		items = append(items, markItem{root, from})
	}
	return items
}

func (m *Marks) work(ctx context.Context, work *WorkList[markItem], step func(int64)) {
	found := m.Leaves()
	defer found.Flush()
	var below []markItem
	for {
		it, ok := work.Take()
		if !ok {
			return
		}
		from := &m.roots[it.from]
		err := from.Tree.Links(ctx, it.root, &found.links)
		if errors.Is(err, tree.ErrMissing) && from.Ended != nil && from.Ended() {
			err = nil // an aborted session took its pages with it
		}
		if errors.Is(err, tree.ErrMissing) && m.Away != nil {
			if err = m.Away(ctx, it.root.Name); err == nil {
				found.links = tree.Links{Exact: found.links.Exact}
			}
		}
		found.payloads()
		n := int64(0)
		below = below[:0]
		for _, p := range found.links.Pages {
			below = m.enter(below, p, it.from, &n)
		}
		if n > 0 {
			m.mu.Lock()
			step(n)
			m.mu.Unlock()
		}
		if err == nil {
			err = ctx.Err()
		}
		work.Done(below, err)
	}
}

// LeafReader reads marked leaves, for one goroutine.
type LeafReader struct {
	m     *Marks
	links tree.Links
	live  *Local
}

// Leaves returns a reader of marked leaves.
func (m *Marks) Leaves() *LeafReader {
	return &LeafReader{m: m, live: m.Live.Local()}
}

// Read reports whether a page is marked, and reads it if Mark has not.
func (r *LeafReader) Read(name tree.Name, page []byte) (marked bool, err error) {
	later, marked := r.m.pages.read(name)
	if later == 0 {
		return marked, nil
	}
	if _, err := r.links.Read(name, page); err != nil {
		return true, err
	}
	if len(r.links.Pages) > 0 {
		return true, corrupt("page %v: the page above says that it names no others", name)
	}
	r.payloads()
	return true, nil
}

// payloads adds those of the page that was read last.
func (r *LeafReader) payloads() {
	for i := range r.links.Payloads {
		r.live.Add(&r.links.Payloads[i])
	}
}

// Flush adds what was found to the marks.
func (r *LeafReader) Flush() {
	r.live.Flush()
}

// Missing returns an error if a marked leaf of a part was not read. Call it when
// all pages of the part have been read, and none is read at the same time.
func (m *Marks) Missing(ctx context.Context, part int) error {
	for name, later := range m.pages.parts[part].m {
		if later == 0 {
			continue
		}
		err := fmt.Errorf("%w: %v", tree.ErrMissing, name)
		if m.Away != nil {
			err = m.Away(ctx, name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// corrupt is an error about stored pages.
func corrupt(format string, args ...any) error {
	return fmt.Errorf("txn: "+format+": %w", append(args, kv.ErrCorrupt)...)
}

// Uncached are the options of a tree whose pages must come from the index: a
// cache would hide that a page is missing there, or is another one.
var Uncached = &tree.Options{CacheBytes: -1}
