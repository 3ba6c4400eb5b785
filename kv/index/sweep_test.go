package index

import (
	"errors"
	"fmt"
	"iter"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/digest"
)

func pageOf(i int) (digest.Sum, []byte) {
	b := fmt.Appendf(nil, "page %d", i)
	return digest.Of(b), b
}

func putPages(t *testing.T, x *Index, from, to int) {
	t.Helper()
	b := x.NewBatch()
	defer b.Close()
	for i := from; i < to; i++ {
		b.PutPage(pageOf(i))
	}
	if err := b.Commit(true); err != nil {
		t.Error(err)
	}
}

func hasPage(t *testing.T, x *Index, i int) bool {
	t.Helper()
	name, _ := pageOf(i)
	_, err := x.GetPage(t.Context(), name)
	if err != nil && !errors.Is(err, ErrNotFound) {
		t.Fatal(err)
	}
	return err == nil
}

// What is put while a sweep runs stays, by a batch or an ingest; everything
// else that it is told to delete goes, also after reopening.
func TestSweepSparesWhatIsPut(t *testing.T) {
	mem := vfs.NewMem()
	o := &Options{FS: mem, Create: true}
	x := must.Get(Open("x", o))(t)
	putPages(t, x, 0, 30)
	w := must.Get(x.Sweep())(t)
	if _, err := x.Sweep(); !errors.Is(err, errSweeping) {
		t.Errorf("second sweep: %v", err)
	}
	putPages(t, x, 0, 10)
	var again []Page
	for i := 10; i < 12; i++ {
		name, b := pageOf(i)
		again = append(again, Page{name, b})
	}
	if string(again[0].Name[:]) > string(again[1].Name[:]) {
		again[0], again[1] = again[1], again[0]
	}
	var pages iter.Seq2[Page, error] = func(yield func(Page, error) bool) {
		_ = yield(again[0], nil) && yield(again[1], nil)
	}
	must.Do(t, x.Ingest(pages))
	var all []digest.Sum
	for i := range 25 {
		name, _ := pageOf(i)
		all = append(all, name)
	}
	n, err := w.Delete(all)
	if err != nil || n != 13 {
		t.Errorf("deleted %d, %v; want 13", n, err)
	}
	w.Close()
	if err := x.Tidy(t.Context(), 0); err != nil {
		t.Error(err)
	}
	for range 2 {
		for i := range 30 {
			if got, want := hasPage(t, x, i), i < 12 || i >= 25; got != want {
				t.Errorf("page %d: %v", i, got)
			}
		}
		must.Do(t, x.Close())
		x = must.Get(Open("x", o))(t)
	}
	must.Do(t, x.Close())
	if _, err := x.Sweep(); !errors.Is(err, kv.ErrClosed) {
		t.Errorf("sweep of a closed index: %v", err)
	}
}

// Writers that put the same pages again and again never miss one.
func TestSweepBesideWriters(t *testing.T) {
	x := must.Get(Open("x", &Options{FS: vfs.NewMem(), Create: true}))(t)
	var wg sync.WaitGroup
	done := make(chan struct{})
	for range 2 {
		wg.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-done:
					return
				default:
				}
				putPages(t, x, i%7, i%7+3)
			}
		})
	}
	var all []digest.Sum
	for i := range 10 {
		name, _ := pageOf(i)
		all = append(all, name)
	}
	for range 30 {
		w := must.Get(x.Sweep())(t)
		putPages(t, x, 4, 6)
		for range 3 {
			must.Get(w.Delete(all))(t)
		}
		if !hasPage(t, x, 4) || !hasPage(t, x, 5) {
			t.Fatal("a page that was put during the sweep is gone")
		}
		w.Close()
	}
	close(done)
	wg.Wait()
	must.Do(t, x.Close())
}
