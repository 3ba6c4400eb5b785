package main

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/engine/source"
	"github.com/zarrdb/zarrdb/kv/remote"
	"github.com/zarrdb/zarrdb/zarr"
)

// BenchmarkVirtual reads 1000 virtual chunks of 16 KiB, every second one of a
// file, from a web server on the loopback device that answers after 20 ms, as
// one far away does.
func BenchmarkVirtual(b *testing.B) {
	const chunk, n = 16 << 10, 1000
	ctx := context.Background()
	file := make([]byte, 2*chunk*n)
	var requests atomic.Int64
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		time.Sleep(20 * time.Millisecond)
		w.Header().Set("ETag", `"1"`)
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(file))
	}))
	defer srv.Close()
	var set strings.Builder
	fmt.Fprintf(&set, `{".zgroup":{"zarr_format":2},"t/.zarray":{"zarr_format":2,"shape":[%d],"chunks":[%d],"dtype":"|i1","compressor":null,"filters":null,"fill_value":-1,"order":"C"}`, chunk*n, chunk)
	for i := range n {
		fmt.Fprintf(&set, `,"t/%d":["%s/a",%d,%d]`, i, srv.URL, 2*i*chunk, chunk)
	}
	refs := filepath.Join(b.TempDir(), "refs.json")
	check(os.WriteFile(refs, []byte(set.String()+"}"), 0o666))
	for _, o := range []remote.Options{{Gap: -1, MaxMerged: 1}, {Gap: 256 << 10, MaxMerged: 256 << 10}, {Gap: 256 << 10, MaxMerged: 1 << 20}, {Gap: 256 << 10, MaxMerged: 4 << 20}, {}, {MaxMerged: 64 << 20}} {
		b.Run(fmt.Sprintf("gap=%dK,most=%dK", o.Gap>>10, o.MaxMerged>>10), func(b *testing.B) {
			adapters := engine.DefaultAdapters()
			for scheme, root := range source.RemoteRoots(&source.RemoteOptions{Requests: o}) {
				adapters.ReplaceRoot(scheme, root)
			}
			db := must(engine.Create(ctx, filepath.Join(b.TempDir(), "v.zdb"), &engine.Options{
				Adapters: adapters, Follow: engine.Follow{Allow: []string{srv.URL + "/"}}, CacheBytes: -1, ConfigDir: b.TempDir(),
			}))
			defer db.Close()
			src := must(engine.OpenSource(ctx, refs, nil))
			defer src.Close()
			must(db.Import(ctx, src, engine.ImportOptions{Link: true}))
			snapshot := must(db.At(ctx, ""))
			defer snapshot.Close()
			a := must(snapshot.Array(ctx, "t"))
			dst := make([]byte, chunk*n)
			b.SetBytes(chunk * n)
			requests.Store(0)
			for b.Loop() {
				check(a.ReadBytes(ctx, zarr.Sel(), dst))
			}
			b.ReportMetric(float64(requests.Load())/float64(b.N), "requests")
		})
	}
}
