//go:build unix

package remote

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/zarrdb/zarrdb/internal/mmap"
	"github.com/zarrdb/zarrdb/internal/must"
)

// An upload of a mapped file that is cut meanwhile is an error, which is not tried again.
func TestUploadOfUnreadablePage(t *testing.T) {
	f := must.Get(os.Create(filepath.Join(t.TempDir(), "f")))(t)
	defer f.Close()
	must.Do(t, f.Truncate(1<<20))
	b := must.Get(mmap.File(f.Fd(), 1<<20))(t)
	defer func() { _ = mmap.Unmap(b) }()
	must.Do(t, f.Truncate(1))
	for _, tls := range []bool{false, true} {
		s := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }))
		if s.EnableHTTP2 = tls; tls {
			s.StartTLS()
		} else {
			s.Start()
		}
		c := NewClient(&Options{Transport: s.Client().Transport})
		tries := 0
		for what, sum := range map[string]int{"body": 0, "signature": len(b)} {
			tries = 0
			err := c.Do(t.Context(), func(ctx context.Context) (*http.Request, error) {
				tries++
				_ = bytes.Count(b[:sum], []byte("x"))
				return http.NewRequestWithContext(ctx, http.MethodPut, s.URL, bytes.NewReader(b))
			}, func(*http.Response) error { return nil })
			if !errors.Is(err, mmap.ErrFault) || tries != 1 {
				t.Errorf("TLS %v, in the %s: %v after %d tries", tls, what, err, tries)
			}
		}
		s.Close()
	}
}
