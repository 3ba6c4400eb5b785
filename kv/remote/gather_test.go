package remote

import (
	"bytes"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zarrdb/zarrdb/kv"
)

// TestLocateRange finds values and parts of them in one request, of servers of
// several kinds.
func TestLocateRange(t *testing.T) {
	value := []byte("0123456789")
	serveAll := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"a"`)
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(value))
	}
	unranged := func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(value) }
	unsized := func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodHead {
			return
		}
		_, _ = w.Write(value[:5])
		w.(http.Flusher).Flush()
		_, _ = w.Write(value[5:])
	}
	noTotal := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"a"`)
		var from, to int
		if _, err := fmt.Sscanf(r.Header.Get("Range"), "bytes=%d-%d", &from, &to); err != nil {
			http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(value))
			return
		}
		w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/*", from, to))
		w.WriteHeader(http.StatusPartialContent)
		_, _ = w.Write(value[from : to+1])
	}
	for _, test := range []struct {
		name    string
		handler http.HandlerFunc
		rng     kv.Range
		limit   int64
		want    string
		none    bool // no bytes
		asked   []string
	}{
		{"whole", serveAll, kv.All(), 0, "0123456789", false, []string{"GET "}},
		{"whole at the limit", serveAll, kv.All(), 10, "0123456789", false, []string{"GET "}},
		{"whole beyond the limit", serveAll, kv.All(), 9, "", true, []string{"GET "}},
		{"part", serveAll, kv.Span(2, 3), 0, "234", false, []string{"GET bytes=2-4"}},
		{"part to the end", serveAll, kv.From(8), 0, "89", false, []string{"GET bytes=8-"}},
		{"part across the end", serveAll, kv.Span(8, 100), 0, "89", false, []string{"GET bytes=8-107"}},
		{"part behind the end", serveAll, kv.Span(10, 5), 0, "", true, []string{"GET bytes=10-14"}},
		{"last", serveAll, kv.Last(2), 0, "89", false, []string{"GET bytes=-2"}},
		{"nothing", serveAll, kv.Span(4, 0), 0, "", true, []string{"HEAD "}},
		{"ranges ignored", unranged, kv.Span(2, 3), 0, "234", false, []string{"GET bytes=2-4"}},
		{"ranges ignored, too long", unranged, kv.All(), 3, "", true, []string{"GET "}},
		{"length unknown", unsized, kv.All(), 0, "0123456789", false, []string{"GET "}},
		{"whole length unknown", noTotal, kv.Span(2, 3), 0, "234", false, []string{"GET bytes=2-4", "HEAD "}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var mu sync.Mutex
			var asked []string
			o, _ := serve(t, Options{}, func(w http.ResponseWriter, r *http.Request) {
				mu.Lock()
				asked = append(asked, r.Method+" "+r.Header.Get("Range"))
				mu.Unlock()
				test.handler(w, r)
			})
			v, b, err := o.LocateRange(bg, "k", test.rng, test.limit)
			if err != nil || string(b) != test.want || test.none && len(b) > 0 || v.Size() != 10 {
				t.Errorf("%q, %v", b, err)
			}
			if !slices.Equal(asked, test.asked) {
				t.Errorf("asked %q, want %q", asked, test.asked)
			}
			if err == nil {
				if b, err := kv.ReadValue(bg, v, kv.Span(1, 2)); err != nil || string(b) != "12" {
					t.Errorf("read afterwards: %q, %v", b, err)
				}
			}
		})
	}
	o, _ := serve(t, Options{}, http.NotFound)
	if _, _, err := o.LocateRange(bg, "k", kv.Span(0, 1), 0); err != kv.ErrNotFound {
		t.Error(err)
	}
	// A value of unknown length that is too long is measured.
	o, _ = serve(t, Options{}, func(w http.ResponseWriter, _ *http.Request) {
		w.(http.Flusher).Flush()
		_, _ = w.Write([]byte(strings.Repeat("x", 100)))
	})
	if v, b, err := o.LocateRange(bg, "k", kv.All(), 50); err != nil || b != nil || v.Size() != 100 {
		t.Errorf("%v, %q, %v", v, b, err)
	}
}
