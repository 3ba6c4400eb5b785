package tree

import (
	"context"
	"sync"
)

// PageBatcher is what [Pages] may implement as well, where a read is a request to another
// process. A Tree with a cache then asks for pages that it is about to need before it needs
// them, several at once:
//
//	scan, diff      the next pages below an interior page, more with each that was needed
//	Tree.Fetch      pages that the caller names
//
// Look-ups of single keys read no page ahead.
type PageBatcher interface {
	// GetPages returns as many pages as it likes, and at least one, in the order of their
	// names. Errors are those of GetPage.
	GetPages(ctx context.Context, names []Name) ([][]byte, error)
}

// MaxFetch is the greatest number of pages in one request of a [PageBatcher].
const MaxFetch = 64

// fetcher knows the pages that are asked for.
type fetcher struct {
	from PageBatcher

	mu      sync.Mutex
	flights map[Name]chan struct{} // closed when the page is in the cache, or not to be had
}

func newFetcher(p Pages, c *cache) *fetcher {
	if from, ok := p.(PageBatcher); ok && c != nil {
		return &fetcher{from: from, flights: map[Name]chan struct{}{}}
	}
	return nil
}

// Batches reports whether Fetch does anything.
func (t *Tree) Batches() bool { return t.fetcher != nil }

// Fetch gets pages into the cache, [MaxFetch] with a request, if the store is a
// [PageBatcher]. It returns at once; whoever needs one of the pages waits for it. An error
// comes again when the page is read.
func (t *Tree) Fetch(ctx context.Context, roots []Root) {
	f := t.fetcher
	if f == nil {
		return
	}
	var names []Name
	landed := make(chan struct{})
	ask := func() {
		if len(names) > 0 {
			go func(names []Name, landed chan struct{}) {
				defer f.landed(names, landed)
				t.getMany(ctx, names)
			}(names, landed)
		}
		names, landed = nil, make(chan struct{})
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range roots {
		name := roots[i].Name
		if roots[i].Empty() || f.flights[name] != nil || t.cache.get(&name) != nil {
			continue
		}
		f.flights[name] = landed
		if names = append(names, name); len(names) == MaxFetch {
			ask()
		}
	}
	ask()
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

func (f *fetcher) landed(names []Name, landed chan struct{}) {
	f.mu.Lock()
	for _, name := range names {
		delete(f.flights, name)
	}
	f.mu.Unlock()
	close(landed)
}

// wait waits for a page that is asked for; false if it is not.
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

// readAhead is called before a walk reads page i below an interior page. Where the pages
// before it were read as well, the next ones are asked for:
//
//	| 0 | 1 | 2 | 3 | 4 | 5 | 6 | 7 | 8 | …
//	  ^   `---´   `-----------´   `----- …     requests for pages 0 | 1 2 | 3–6 | 7–14 | …
//
// A request leaves when the walk reaches the first page of the one before. Its pages double
// up to [MaxFetch].
func (t *Tree) readAhead(ctx context.Context, p *page, i int) {
	if t.fetcher == nil {
		return
	}
	at := p.ahead.Load()
	from, to := int(at>>32), int(at&(1<<32-1)) // of the last request
	switch {
	case at == 0, i == 0 && from > 0, i < from-MaxFetch, i > to:
		p.ahead.CompareAndSwap(at, uint64(i)<<32|uint64(i+1))
		return
	case i < from, i == from && to == from+1, to == p.len():
		return
	}
	end := min(to+min(2*(to-from), MaxFetch), p.len())
	if !p.ahead.CompareAndSwap(at, uint64(to)<<32|uint64(end)) {
		return
	}
	roots := make([]Root, 0, MaxFetch)
	for k := to; k < end; k++ {
		roots = append(roots, p.childAt(k))
	}
	t.Fetch(ctx, roots)
}
