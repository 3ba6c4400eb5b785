//go:build unix

package pace

import (
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

// A response of a mapped file that is cut meanwhile ends the response and not the process.
func TestUnreadablePage(t *testing.T) {
	f := must.Get(os.Create(filepath.Join(t.TempDir(), "f")))(t)
	defer f.Close()
	must.Do(t, f.Truncate(1<<20))
	b := must.Get(mmap.File(f.Fd(), 1<<20))(t)
	defer func() { _ = mmap.Unmap(b) }()
	must.Do(t, f.Truncate(1))
	for major := 1; major <= 2; major++ {
		errs := make(chan error, 1)
		s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.ProtoMajor != major {
				t.Errorf("HTTP/%d", r.ProtoMajor)
			}
			errs <- mmap.Catch(func() error { _, err := NewWriter(w, r).Write(b); return err })
			panic(http.ErrAbortHandler)
		}))
		s.EnableHTTP2 = major == 2
		s.StartTLS()
		res, err := s.Client().Get(s.URL)
		if err == nil {
			_, err = io.Copy(io.Discard, res.Body)
			_ = res.Body.Close()
		}
		if got := <-errs; !errors.Is(got, mmap.ErrFault) || err == nil {
			t.Errorf("HTTP/%d: %v, and the client gets %v", major, got, err)
		}
		s.Close()
	}
}
