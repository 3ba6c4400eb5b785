package web

import (
	"crypto/rand"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/serve"
)

// BenchmarkChunks fetches chunks over one connection: from a version, from the same
// files through Go's file server, and from the server at ZARRDB_BENCH_URL, which has the
// files of ZARRDB_BENCH_FILES, such as nginx.
func BenchmarkChunks(b *testing.B) {
	const chunks = 32
	files := os.Getenv("ZARRDB_BENCH_FILES")
	if files == "" {
		files = b.TempDir()
	}
	db, err := engine.Open(bg, filepath.Join(b.TempDir(), "w.zdb"), &engine.Options{Create: true})
	must.Do(b, err)
	defer db.Close()
	sizes := []int{100, 64 << 10, 2 << 20}
	_, err = db.Update(bg, "main", "chunks", func(s *engine.Session) error {
		for _, size := range sizes {
			for i := range chunks {
				value := make([]byte, size)
				_, _ = rand.Read(value) // it never fails
				key := fmt.Sprintf("%d-%d", size, i)
				if err := s.Set(bg, key, value); err != nil {
					return err
				}
				if err := os.WriteFile(filepath.Join(files, key), value, 0o644); err != nil {
					return err
				}
			}
		}
		return nil
	})
	must.Do(b, err)
	table := serve.New(serve.Options{})
	defer table.Close(bg)
	must.Do(b, table.AddDatabase("w", db))
	ours := httptest.NewUnstartedServer(nil)
	ours.Config = Server(New(table, Options{Anonymous: reader}), nil)
	ours.Listener = Listener(ours.Listener)
	ours.Start()
	defer ours.Close()
	plain := httptest.NewServer(http.FileServer(http.Dir(files)))
	defer plain.Close()
	servers := []struct{ name, url string }{{"zarrdb", ours.URL + "/w/v/main/"}, {"files", plain.URL + "/"}}
	if url := os.Getenv("ZARRDB_BENCH_URL"); url != "" {
		servers = append(servers, struct{ name, url string }{"other", url})
	}
	buf := make([]byte, 256<<10)
	for _, size := range sizes {
		for _, s := range servers {
			b.Run(fmt.Sprintf("%d/%s", size, s.name), func(b *testing.B) {
				b.SetBytes(int64(size))
				for i := range b.N {
					r, err := http.Get(fmt.Sprintf("%s%d-%d", s.url, size, i%chunks))
					must.Do(b, err)
					n, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{r.Body}, buf)
					if err != nil || n != int64(size) || r.StatusCode != 200 {
						b.Fatalf("%d bytes, %v, status %d", n, err, r.StatusCode)
					}
					r.Body.Close()
				}
			})
		}
	}
}
