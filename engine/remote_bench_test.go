package engine

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv/remote"
	"github.com/zarrdb/zarrdb/zarr"
)

// BenchmarkRead reads an array of 256 chunks of 256 KiB from a directory, and
// from a web server on the loopback device that serves it.
func BenchmarkRead(b *testing.B) {
	const side, chunk = 4096, 256
	dir := b.TempDir()
	mem := Memory(b.Name())
	a, err := zarr.Create(bg, mem, "", zarr.Spec{
		Shape: []int64{side, side}, Chunks: []int64{chunk, chunk}, DataType: "float32", Codecs: []byte(`[{"name":"bytes","configuration":{"endian":"little"}}]`),
	}, nil)
	must.Do(b, err)
	data := make([]byte, 4*side*side)
	for i := range data {
		data[i] = byte(i * 7)
	}
	must.Do(b, a.WriteBytes(bg, zarr.Selection{}, data))
	if _, err := Export(bg, openURL(b, "memory:"+b.Name()), filepath.Join(dir, "a.zarr"), ExportOptions{}); err != nil {
		b.Fatal(err)
	}
	srv := httptest.NewServer(http.FileServer(http.Dir(dir)))
	defer srv.Close()
	for _, workers := range []int{1, 8} {
		for name, url := range map[string]string{"file": filepath.Join(dir, "a.zarr"), "http": srv.URL + "/a.zarr"} {
			b.Run(name+"/workers="+string(rune('0'+workers)), func(b *testing.B) {
				src, err := OpenSource(context.Background(), url, &SourceOptions{Workers: workers})
				must.Do(b, err)
				defer src.Close()
				n, err := src.Node(bg)
				must.Do(b, err)
				a, _ := n.Array()
				b.SetBytes(int64(len(data)))
				for b.Loop() {
					must.Do(b, a.ReadBytes(bg, zarr.Selection{}, data))
				}
			})
		}
	}
}

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
