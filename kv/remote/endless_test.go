package remote

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
)

// The length of a value that the server does not tell is measured up to a bound, without
// holding the bytes.
func TestMeasure(t *testing.T) {
	piece := make([]byte, 1<<20)
	var pieces atomic.Int64 // how many the server sends; 0 means no end
	o, _ := serve(t, Options{Tries: 1, MaxUnsized: 32 << 20}, func(w http.ResponseWriter, r *http.Request) {
		w.(http.Flusher).Flush() // chunked
		if r.Method == http.MethodHead {
			return
		}
		for i := int64(0); pieces.Load() == 0 || i < pieces.Load(); i++ {
			if _, err := w.Write(piece); err != nil {
				return
			}
		}
	})
	allocated := func() uint64 {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.TotalAlloc
	}
	before := allocated()
	if _, err := o.Locate(bg, "k"); !errors.Is(err, ErrAnswer) {
		t.Errorf("an endless value: %v", err)
	}
	pieces.Store(20)
	if v, err := o.Locate(bg, "k"); err != nil || v.Size() != 20<<20 {
		t.Errorf("a value without a length: %v, %v", v, err)
	}
	if n := allocated() - before; n > 8<<20 {
		t.Errorf("%d bytes were allocated to measure", n)
	}
}

// A listing of a directory that repeats its pages, or has no end, is an error.
func TestEndlessDirectory(t *testing.T) {
	must.Set(t, &maxDir, 1000)
	requests := 0
	l := Listing{Name: "s", Valid: func(string) error { return nil }}
	list := func() (err error) {
		requests = 0
		for _, e := range l.ListDir(bg, "d/") {
			err = e
		}
		return err
	}
	l.Page = func(_ context.Context, q Query) (*Page, error) {
		requests++
		return &Page{Keys: []string{"d/a", "d/b"}, Prefixes: []string{"d/c/"}, Next: fmt.Sprint(requests % 2)}, nil
	}
	if err := list(); !errors.Is(err, ErrAnswer) || requests > 3 {
		t.Errorf("pages that come again: %v after %d requests", err, requests)
	}
	l.Page = func(_ context.Context, q Query) (*Page, error) {
		requests++
		return &Page{Prefixes: []string{fmt.Sprintf("d/%09d/", requests)}, Next: fmt.Sprint(requests)}, nil
	}
	if err := list(); !errors.Is(err, kv.ErrTooLarge) || requests > maxDir+2 {
		t.Errorf("a directory without an end: %v after %d requests", err, requests)
	}
}
