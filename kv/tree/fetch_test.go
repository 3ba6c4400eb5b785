package tree

import (
	"context"
	"github.com/zarrdb/zarrdb/internal/must"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

// batchPages counts requests for pages.
type batchPages struct {
	*MemPages
	mu      sync.Mutex
	single  int
	batches []int // pages that were asked for in each
	sent    int   // pages in answers
	fail    bool  // batches fail
	wrong   bool  // pages on the way to a key are damaged
}

func (p *batchPages) GetPage(ctx context.Context, name Name) ([]byte, error) {
	p.mu.Lock()
	p.single++
	p.sent++
	p.mu.Unlock()
	return p.MemPages.GetPage(ctx, name)
}

func (p *batchPages) GetPages(ctx context.Context, names []Name) (pages [][]byte, err error) {
	p.mu.Lock()
	p.batches = append(p.batches, len(names))
	fail := p.fail && len(p.batches)%2 == 0
	p.mu.Unlock()
	if fail {
		return nil, errStore
	}
	for i, name := range names {
		b, err := p.MemPages.GetPage(ctx, name)
		if err != nil || i > 0 && i == 40 { // fewer than asked for
			return pages, err
		}
		pages = append(pages, b)
		p.mu.Lock()
		p.sent++
		p.mu.Unlock()
	}
	return pages, nil
}

func (p *batchPages) GetPath(ctx context.Context, name Name, key []byte) (pages [][]byte, err error) {
	b, err := p.GetPage(ctx, name)
	for ok := err == nil; ok && len(pages) < 3; b, err = p.MemPages.GetPage(ctx, name) { // fewer than there are
		if pages = append(pages, b); p.wrong {
			pages[len(pages)-1] = slices.Concat(b[:len(b)-1], []byte{b[len(b)-1] + 1})
		}
		if name, ok, err = Below(b, key); !ok || err != nil {
			return pages, err
		}
	}
	return pages, err
}

// requests returns how often pages were asked for.
func (p *batchPages) requests() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.single + len(p.batches)
}

// distantPages are batchPages of which a request takes long.
type distantPages struct{ *batchPages }

func (distantPages) Far() int { return 1000 }

// A scan of pages that are far asks for many at a time: 16, eight times as many, and so on.
func TestFetchFar(t *testing.T) {
	pages, a, _ := twoMaps(t, 3, true)
	p := &batchPages{MemPages: pages}
	tr := New(distantPages{p}, &Options{shape: aheadShape})
	n := 0
	for _, err := range tr.Scan(context.Background(), a, Span{}) {
		must.Do(t, err)
		n++
	}
	near := &batchPages{MemPages: pages}
	for _, err := range New(near, &Options{shape: aheadShape}).Scan(context.Background(), a, Span{}) {
		must.Do(t, err)
	}
	if uint64(n) != a.Entries || p.requests() >= near.requests() || p.sent != near.sent {
		t.Errorf("%d entries of %d with %d requests, and near %d", n, a.Entries, p.requests(), near.requests())
	}
	if pace := tr.Pace(); pace.Next(pace.First) <= MaxFetch || New(near, nil).Pace().First != 1 || New(pages, nil).Pace() != (Pace{}) {
		t.Errorf("pace %+v", pace)
	}
}

// Walks ask for pages with few requests, read what others read, and read each page once.
// Batches that fail make no difference.
func TestFetch(t *testing.T) {
	ctx := context.Background()
	for _, fail := range []bool{false, true} {
		pages, a, b := twoMaps(t, 3, true)
		count := 0
		for range pagesOf(t, pages, a) {
			count++
		}
		plain := New(pages, &Options{shape: aheadShape})
		p := &batchPages{MemPages: pages, fail: fail}
		fresh := func() *Tree {
			p.single, p.sent, p.batches = 0, 0, nil
			return New(p, &Options{shape: aheadShape})
		}
		check := func(what string, need, most int) {
			t.Helper()
			n := p.requests()
			if slices.ContainsFunc(p.batches, func(n int) bool { return n > MaxFetch }) {
				t.Errorf("%s: requests of %v pages", what, p.batches)
			}
			if !fail && (n > most || p.sent > need) {
				t.Errorf("%s: %d requests for %d pages, of which %d are needed: %d at once", what, n, p.sent, need, p.batches)
			}
		}

		tr, n := fresh(), 0
		for e, err := range tr.Scan(ctx, a, Span{}) {
			must.Do(t, err)
			if v, ok, err := plain.Get(ctx, a, e.Key); err != nil || !ok || !equalValues(&v, &e.Value) {
				t.Fatal(e, v, ok, err)
			}
			n++
		}
		if uint64(n) != a.Entries {
			t.Fatalf("%d entries of %d", n, a.Entries)
		}
		check("scan", count, count/6)

		tr = fresh()
		var want []Change
		for c, err := range plain.Diff(ctx, a, b, Span{}) {
			must.Do(t, err)
			want = append(want, c)
		}
		n = 0
		for c, err := range tr.Diff(ctx, a, b, Span{}) {
			if err != nil || !sameChange(c, want[n]) {
				t.Fatal(n, c, err)
			}
			n++
		}
		if n != len(want) {
			t.Fatalf("%d changes, want %d", n, len(want))
		}
		check("diff", 2*count, count/4)

		tr = fresh()
		for i := range 200 {
			if _, _, err := tr.Get(ctx, a, chunkKey(nil, i*13%4000)); err != nil {
				t.Fatal(err)
			}
		}
		if len(p.batches) > 0 {
			t.Errorf("look-ups asked for %v pages at once", p.batches)
		}

		// One request brings the pages on the way to a key; damaged ones are read again.
		for _, p.wrong = range []bool{false, true} {
			tr = fresh()
			key := chunkKey(nil, 1234)
			v, ok, err := tr.Get(ctx, a, key)
			if want, _, _ := plain.Get(ctx, a, key); err != nil || !ok || !equalValues(&v, &want) {
				t.Errorf("damaged %v: %v, %v, %v, want %v", p.wrong, v, ok, err, want)
			}
			if n := p.requests(); !p.wrong && n > 1+int(a.Height)/3 {
				t.Errorf("%d requests for a key below %d pages", n, a.Height)
			}
		}
		p.wrong = false

		tr = fresh()
		for range tr.Scan(ctx, a, Span{}) {
			break
		}
		if len(p.batches) > 0 {
			t.Errorf("a scan of one entry asked for %v pages ahead", p.batches)
		}
	}
}

// pagesOf yields the pages of a map.
func pagesOf(t *testing.T, p Pages, root Root) func(func(Name, int) bool) {
	return func(yield func(Name, int) bool) {
		must.Do(t, New(p, &Options{shape: aheadShape}).Walk(context.Background(), root, func(name Name, _ uint8, size int) (bool, error) {
			yield(name, size)
			return true, nil
		}))
	}
}

// waitingPages answers no request before open is closed.
type waitingPages struct {
	batchPages
	open   chan struct{}
	asking atomic.Int64
}

func (p *waitingPages) GetPages(ctx context.Context, names []Name) ([][]byte, error) {
	p.asking.Add(1)
	<-p.open
	return p.batchPages.GetPages(ctx, names)
}

// However many pages are asked for, few requests are under way.
func TestFetchBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &waitingPages{batchPages: batchPages{MemPages: NewMemPages()}, open: make(chan struct{})}
		var roots []Root
		for i := range 100 * MaxFetch {
			roots = append(roots, Root{Name: Name{byte(i), byte(i >> 8), 1}})
		}
		u := New(p, &Options{CacheBytes: 1 << 20})
		u.Fetch(t.Context(), roots)
		synctest.Wait()
		if n := p.asking.Load(); n != maxRequests {
			t.Errorf("%d requests at once", n)
		}
		close(p.open)
		synctest.Wait()
		if n := p.asking.Load(); n != 100 || len(u.fetcher.flights) > 0 {
			t.Errorf("%d requests in all, %d pages did not land", n, len(u.fetcher.flights))
		}
	})
}
