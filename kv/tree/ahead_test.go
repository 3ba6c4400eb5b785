package tree

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
)

// aheadShape makes pages of some twenty leaves.
var aheadShape = shape{scale: 9, min: 40, max: 2000}

// watchedPages counts reads, and may fail one.
type watchedPages struct {
	Pages
	mu     sync.Mutex
	more   sync.Cond
	reads  int
	within int // that have not returned
	failAt int
}

func watchPages(p Pages, failAt int) *watchedPages {
	w := &watchedPages{Pages: p, failAt: failAt}
	w.more.L = &w.mu
	return w
}

func (w *watchedPages) GetPage(ctx context.Context, name Name) ([]byte, error) {
	w.mu.Lock()
	w.reads++
	fails := w.reads == w.failAt
	w.within++
	w.more.Broadcast()
	w.mu.Unlock()
	defer func() {
		w.mu.Lock()
		w.within--
		w.mu.Unlock()
	}()
	if fails {
		return nil, errStore
	}
	return w.Pages.GetPage(ctx, name)
}

// waitFor returns when there were n reads.
func (w *watchedPages) waitFor(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.reads < n {
		w.more.Wait()
	}
}

func (w *watchedPages) counts() (reads, within int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.reads, w.within
}

// twoMaps are maps with many differences, all of kinds.
func twoMaps(t *testing.T, seed uint64, overwrites bool) (pages *MemPages, a, b Root) {
	r := newRand(seed)
	m := model{}
	for i := range 4000 {
		var v Value
		randomNative(r, &v)
		m[string(chunkKey(nil, i))] = v
	}
	pages = NewMemPages()
	tr := New(pages, &Options{shape: aheadShape})
	a = must.Get(tr.Build(context.Background(), m.entries()))(t)
	var edits []Edit
	if overwrites {
		for i := range 4000 {
			e := Edit{Key: chunkKey(nil, i)}
			randomNative(r, &e.Value)
			edits = append(edits, e)
		}
	} else {
		edits = clusteredEdits(r, m, 2000)
	}
	b = must.Get(tr.Apply(context.Background(), a, edits))(t)
	return pages, a, b
}

// plainDiff compares without reading ahead, and returns how many pages were read
// for each change.
func plainDiff(t *testing.T, p Pages, a, b Root) (changes []Change, reads []int) {
	w := watchPages(p, 0)
	d := New(w, &Options{shape: aheadShape, CacheBytes: -1}).newDiffer(context.Background(), a, b, &Span{})
	for {
		c, ok, err := d.next()
		must.Do(t, err)
		if !ok {
			return changes, reads
		}
		changes = append(changes, c.copy())
		n, _ := w.counts()
		reads = append(reads, n)
	}
}

func sameChange(x, y Change) bool {
	return string(x.Key) == string(y.Key) && equalValues(x.Old, y.Old) && equalValues(x.New, y.New)
}

// While a change is looked at, pages that come later are read; afterwards nothing
// reads any more.
func TestDiffReadsAhead(t *testing.T) {
	pages, a, b := twoMaps(t, 1, true)
	changes, reads := plainDiff(t, pages, a, b)
	w := watchPages(pages, 0)
	d := New(w, &Options{shape: aheadShape, CacheBytes: -1}).newDiffer(context.Background(), a, b, &Span{})
	d.lookAhead()
	for i := 0; len(d.ahead.pairs) == 0; i++ {
		c, ok, err := d.next()
		if !ok || err != nil || !sameChange(c.copy(), changes[i]) {
			t.Fatalf("change %d of %d is %+v, %v; want %+v", i, len(changes), c, err, changes[i])
		}
		n, _ := w.counts()
		if len(d.ahead.pairs) > 0 {
			w.waitFor(reads[i] + 2)
		} else if n != reads[i] {
			t.Fatalf("%d pages are read for change %d, which takes %d", n, i, reads[i])
		}
	}
	d.close()
	if _, within := w.counts(); within != 0 {
		t.Errorf("%d reads go on after the end", within)
	}
}

// A comparison that reads ahead finds what one finds that does not, up to an
// error.
func TestDiffAheadIsDiff(t *testing.T) {
	for seed := range uint64(6) {
		pages, a, b := twoMaps(t, seed, seed == 0)
		want, reads := plainDiff(t, pages, a, b)
		if len(want) < 500 {
			t.Fatal(len(want))
		}
		r := newRand(seed)
		for try := range 12 {
			failAt := 0
			if try > 0 {
				failAt = 1 + r.IntN(reads[len(reads)-1])
			}
			opts := &Options{shape: aheadShape, CacheBytes: []int64{-1, 64 << 10, 0}[try%3]}
			var got []Change
			var failed error
			for c, err := range New(watchPages(pages, failAt), opts).Diff(context.Background(), a, b, Span{}) {
				if failed = err; err == nil {
					got = append(got, c)
				}
			}
			if failed == nil && len(got) != len(want) || failed != nil && !errors.Is(failed, errStore) || try == 0 && failed != nil {
				t.Fatalf("seed %d, read %d fails: %d changes of %d, %v", seed, failAt, len(got), len(want), failed)
			}
			if !slices.EqualFunc(got, want[:len(got)], sameChange) {
				t.Fatalf("seed %d, read %d fails: other changes", seed, failAt)
			}
		}
	}
}
