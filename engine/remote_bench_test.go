package engine

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv/remote"
	"github.com/zarrdb/zarrdb/zarr"
)

// BenchmarkVirtual reads 1000 virtual chunks of 16 KiB, every second one of a
// file, from a web server on the loopback device that answers after 20 ms, as
// one far away does.
func BenchmarkVirtual(b *testing.B) {
	const chunk, n = 16 << 10, 1000
	file := make([]byte, 2*chunk*n)
	var requests atomic.Int64
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		time.Sleep(20 * time.Millisecond)
		w.Header().Set("ETag", `"1"`)
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(file))
	}))
	defer srv.Close()
	var refs []string
	for i := range n {
		refs = append(refs, fmt.Sprintf(`["%s/a",%d,%d]`, srv.URL, 2*i*chunk, chunk))
	}
	for _, o := range []remote.Options{{Gap: -1, MaxMerged: 1}, {Gap: 256 << 10, MaxMerged: 256 << 10}, {Gap: 256 << 10, MaxMerged: 1 << 20}, {Gap: 256 << 10, MaxMerged: 4 << 20}, {}, {MaxMerged: 64 << 20}} {
		b.Run(fmt.Sprintf("gap=%dK,most=%dK", o.Gap>>10, o.MaxMerged>>10), func(b *testing.B) {
			opts := memOptions()
			opts.Adapters, opts.Follow, opts.CacheBytes = hasty(o), Follow{Allow: []string{srv.URL + "/"}}, -1
			db := openDB(b, opts)
			src, err := OpenSource(bg, folder(b, map[string]string{"refs.json": tiles(chunk, "null", refs)})+"/refs.json", nil)
			must.Do(b, err)
			defer src.Close()
			if _, err := db.Import(bg, src, ImportOptions{Link: true}); err != nil {
				b.Fatal(err)
			}
			a := array(b, at(b, db, ""), "t")
			dst := make([]byte, chunk*n)
			b.SetBytes(chunk * n)
			requests.Store(0)
			for b.Loop() {
				must.Do(b, a.ReadBytes(bg, zarr.Sel(), dst))
			}
			b.ReportMetric(float64(requests.Load())/float64(b.N), "requests")
		})
	}
}
