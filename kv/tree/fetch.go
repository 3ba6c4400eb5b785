package tree

import (
	"bytes"
	"context"
	"sync"
	"sync/atomic"

	"github.com/zarrdb/zarrdb/kv/digest"
)

// PageBatcher is an optional interface of [Pages] whose reads are requests to another
// process. A Tree with a cache then asks for several pages at once, before it needs them:
//
//	scan, diff      the next pages below an interior page, more with each that was needed
//	Tree.Fetch      pages that the caller names
//	Tree.Get        the pages on the way to the key
type PageBatcher interface {
	// GetPages returns the pages of the first names, in this order: at least one page, and
	// as many as it likes. The Tree keeps them. Errors are those of GetPage. It is called by
	// several goroutines at a time.
	GetPages(ctx context.Context, names []Name) ([][]byte, error)
	// GetPath returns the page of a name and, as far as it likes, the pages below that page on
	// the way to a key, from the top. Otherwise it is as GetPages.
	GetPath(ctx context.Context, name Name, key []byte) ([][]byte, error)
}

// Below returns the name of the page below an interior page on the way to a key. ok is false
// for a leaf, and if all keys of the page are less. raw has the bytes of the page, which are
// neither kept nor compared with a name. The error is [ErrCorrupt] if raw is not a page.
func Below(raw, key []byte) (name Name, ok bool, err error) {
	p, err := decodePage(Name{}, raw)
	if err != nil || p.isLeaf() {
		return name, false, err
	}
	var buf scratchKey
	i, _ := p.find(key, buf[:])
	if i == p.len() {
		return name, false, nil
	}
	return p.child.name(p.raw, i), true, nil
}

// FarPages is an optional interface of a [PageBatcher] whose requests take so long that a Tree asks for many more pages
// ahead. GetPages then gets up to Far() names, at most [MaxFar].
type FarPages interface {
	PageBatcher
	Far() int
}

const (
	// MaxFetch is the greatest number of pages in one request of a [PageBatcher].
	MaxFetch = 64
	// MaxFar is the most for [FarPages].
	MaxFar = 1 << 14
	// fetchBytes bounds the pages of one request, but for one page.
	fetchBytes = 8 << 20
)

// Pace says how many pages are asked for before it is known how many are needed: First, and after n pages Next(n).
type Pace struct{ First, Times, Most int }

// Next returns how many pages to ask for after n.
func (p Pace) Next(n int) int { return min(p.Times*n, p.Most) }

var (
	near     = Pace{1, 2, MaxFetch}
	farPages = Pace{16, 8, 1024} // below an interior page, of which a walk may need few
	farRoots = Pace{256, 64, MaxFar}
)

// maxRequests is the greatest number of requests of one [Tree.Fetch] that are under way.
const maxRequests = 8

// fetcher holds the names of the pages that were asked for and have not come.
type fetcher struct {
	from  PageBatcher
	most  int  // pages of a request
	pages Pace // below an interior page
	roots Pace // that a caller names

	mu      sync.Mutex
	flights map[Name]chan struct{} // closed when the page is in the cache, or has failed
}

func newFetcher(p Pages, c *Cache) *fetcher {
	from, ok := p.(PageBatcher)
	if !ok || c == nil {
		return nil
	}
	f := &fetcher{from: from, most: MaxFetch, pages: near, roots: near, flights: map[Name]chan struct{}{}}
	if far, ok := p.(FarPages); ok {
		f.most, f.pages, f.roots = far.Far(), farPages, farRoots
	}
	return f
}

// Batches reports whether the store is a [PageBatcher] and the Tree has a cache. Without
// both, Fetch does nothing.
func (t *Tree) Batches() bool { return t.fetcher != nil }

// Pace is for callers of Fetch that do not know how many pages they will need. It is zero where Fetch does nothing.
func (t *Tree) Pace() (p Pace) {
	if t.fetcher != nil {
		p = t.fetcher.roots
	}
	return p
}

// fetchBatch are pages of one request.
type fetchBatch struct {
	names  []Name
	landed chan struct{}
}

// Fetch gets pages into the cache, [MaxFetch] (or [FarPages].Far) with a request and [maxRequests] requests at a
// time, if the store is a [PageBatcher]. It returns at once: a walk that needs one of the
// pages waits for the page. After an error, or the end of ctx, the walk reads the page itself.
func (t *Tree) Fetch(ctx context.Context, roots []Root) {
	f := t.fetcher
	if f == nil {
		return
	}
	var batches []*fetchBatch
	bytes := 0 // of the last batch
	f.mu.Lock()
	for i := range roots {
		name := roots[i].Name
		if roots[i].Empty() || f.flights[name] != nil || t.cache.get(&name) != nil {
			continue
		}
		bytes += int(roots[i].Size)
		if n := len(batches); n == 0 || len(batches[n-1].names) == f.most || bytes > fetchBytes {
			batches = append(batches, &fetchBatch{landed: make(chan struct{})})
			bytes = int(roots[i].Size)
		}
		b := batches[len(batches)-1]
		b.names = append(b.names, name)
		f.flights[name] = b.landed
	}
	f.mu.Unlock()
	var next atomic.Int64
	for range min(len(batches), maxRequests) {
		go func() {
			for i := int(next.Add(1)); i <= len(batches); i = int(next.Add(1)) {
				t.getMany(ctx, batches[i-1].names)
				f.landed(batches[i-1])
			}
		}()
	}
}

// getMany gets pages into the cache.
func (t *Tree) getMany(ctx context.Context, names []Name) {
	for len(names) > 0 && ctx.Err() == nil {
		raw, err := t.fetcher.from.GetPages(ctx, names)
		if err != nil || len(raw) == 0 || len(raw) > len(names) {
			return
		}
		for i, b := range raw {
			r := Root{Name: names[i]}
			if compare(&r, b) != nil {
				return
			}
			p, err := decodePage(r.Name, b)
			if err != nil {
				return
			}
			t.cache.put(p)
		}
		names = names[len(raw):]
	}
}

// getPath gets an interior page and the pages below it on the way to a key into the cache, if
// the page is not there. After an error the walk reads the pages itself.
func (t *Tree) getPath(ctx context.Context, r *Root, key []byte) {
	if t.fetcher == nil || r.Height == 0 || t.cache.get(&r.Name) != nil || t.fetcher.wait(ctx, &r.Name) {
		return
	}
	raw, err := t.fetcher.from.GetPath(ctx, r.Name, bytes.Clone(key)) // a key of the caller stays on its stack
	if err != nil || len(raw) > MaxFetch {
		return
	}
	for _, b := range raw {
		p, err := decodePage(digest.Of(b), b)
		if err != nil {
			return
		}
		t.cache.put(p)
	}
}

// landed wakes the goroutines that wait for pages of a batch.
func (f *fetcher) landed(b *fetchBatch) {
	f.mu.Lock()
	for _, name := range b.names {
		delete(f.flights, name)
	}
	f.mu.Unlock()
	close(b.landed)
}

// wait waits until a page that was asked for has come or failed. It returns false at once
// for a page that no request is under way for.
func (f *fetcher) wait(ctx context.Context, name *Name) bool {
	f.mu.Lock()
	landed := f.flights[*name]
	f.mu.Unlock()
	if landed == nil {
		return false
	}
	select {
	case <-landed:
	case <-ctx.Done():
	}
	return true
}

// readAhead is called before a walk reads the page at the end of a path. If the walk read the
// pages before that page too, readAhead asks for the next pages:
//
//	| 0 | 1 | 2 | 3 | 4 | 5 | 6 | 7 | 8 | …
//	  ^   `---´   `-----------´   `----- …     requests for pages 0 | 1 2 | 3–6 | 7–14 | …
//
// [FarPages] are asked for the first 16 pages at once, and then for eight times as many each time.
//
// A request leaves when the walk reaches the first page of the request before. Each request
// has twice as many pages as the one before, up to [MaxFetch]. After the last page below an
// interior page, readAhead goes on with the first [MaxFetch] pages below the next interior
// page. Walks that share a page share its state: the order in which they read decides how much
// is asked for, never the result.
func (t *Tree) readAhead(ctx context.Context, path []frame) {
	n := len(path)
	if t.fetcher == nil || n == 0 {
		return
	}
	pace, p, i := t.fetcher.pages, path[n-1].p, path[n-1].i
	at := p.ahead.Load()
	from, to := int(at>>32), int(at&(1<<32-1)) // of the last request
	switch {
	case to == p.len() && i >= from && (i > from || to-from > pace.First):
		if n > 1 && path[n-2].i+1 < path[n-2].p.len() {
			next := path[n-2].p.childAt(path[n-2].i + 1)
			if q := t.cache.get(&next.Name); q != nil && q.is(&next) == nil {
				t.fetchBelow(ctx, q, 0, 0, min(pace.Most, q.len()))
			}
		}
		return
	case at == 0, i == 0 && from > 0, i < from-MaxFetch, i > to:
		if pace.First == 1 { // the walk reads it
			p.ahead.CompareAndSwap(at, uint64(i)<<32|uint64(i+1))
		} else {
			t.fetchBelow(ctx, p, at, i, min(i+pace.First, p.len()))
		}
		return
	case i < from, i == from && to-from <= pace.First, to == p.len():
		return
	}
	t.fetchBelow(ctx, p, at, to, min(to+pace.Next(to-from), p.len()))
}

// fetchBelow asks for pages from to end below an interior page whose state is at.
func (t *Tree) fetchBelow(ctx context.Context, p *page, at uint64, from, end int) {
	if !p.ahead.CompareAndSwap(at, uint64(from)<<32|uint64(end)) {
		return
	}
	roots := make([]Root, 0, end-from)
	for k := from; k < end; k++ {
		roots = append(roots, p.childAt(k))
	}
	t.Fetch(ctx, roots)
}
