package web

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/zarr"
	"github.com/zarrdb/zarrdb/zarr/cf"
)

// tableOf is a form of tables that writes so many bytes and then fails, if err is not nil.
func tableOf(n int, err error) Table {
	return Table{Type: "application/x-table", Write: func(ctx context.Context, w io.Writer, a *zarr.Array, sel zarr.Selection, dec *cf.Decoder, beside cf.Opener) error {
		shape, selErr := a.Resolve(sel)
		_, writeErr := fmt.Fprintf(w, "%v %s %v", shape, a.Path(), dec != nil)
		if writeErr == nil {
			_, writeErr = w.Write(make([]byte, n))
		}
		return errors.Join(selErr, writeErr, err)
	}}
}

// Tables are streamed. An early error has its status, a late one ends the connection.
func TestReadTable(t *testing.T) {
	s := newSite(t, Options{Tables: map[string]Table{
		"fine": tableOf(0, nil), "none": tableOf(10, fmt.Errorf("it is round: %w", errors.ErrUnsupported)), "late": tableOf(3<<20, errors.New("disk")),
	}})
	resp := s.do(http.MethodGet, "/-/api/read?db=w&path=t&select=1:3,::2&format=fine&decode=cf")
	if got := body(t, resp); got != "[2 3] t true" || resp.Header.Get("Content-Type") != "application/x-table" || resp.Header.Get("Zarrdb-Commit") == "" {
		t.Error(got, resp.Header)
	}
	if resp := s.do(http.MethodHead, "/-/api/read?db=w&path=t&format=late"); resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != "application/x-table" {
		t.Error(resp.Status)
	}
	for query, status := range map[string]int{
		"path=t&format=none":          http.StatusNotAcceptable,
		"path=t&format=other":         http.StatusBadRequest,
		"path=t&format=fine&select=9": http.StatusBadRequest,
		"path=&format=fine":           http.StatusBadRequest,
		"path=x&format=fine":          http.StatusNotFound,
	} {
		if resp := s.do(http.MethodGet, "/-/api/read?db=w&"+query); resp.StatusCode != status {
			t.Errorf("%s: %d %s", query, resp.StatusCode, body(t, resp))
		}
	}
	server := httptest.NewServer(s.h)
	defer server.Close()
	resp = must.Get(http.Get(server.URL + "/-/api/read?db=w&path=t&format=late"))(t)
	defer resp.Body.Close()
	if n, err := io.Copy(io.Discard, resp.Body); err == nil {
		t.Errorf("%d bytes, and no error", n)
	}
	h := s.h.(*handler)
	h.memory.left.Store(tableBytes) // which all requests gave back
	for _, want := range []int{http.StatusOK, http.StatusOK} {
		if resp := s.do(http.MethodGet, "/-/api/read?db=w&path=t&format=fine"); resp.StatusCode != want {
			t.Error(resp.Status)
		}
	}
	h.memory.left.Store(tableBytes - 1)
	if resp := s.do(http.MethodGet, "/-/api/read?db=w&path=t&format=fine"); resp.StatusCode != http.StatusServiceUnavailable {
		t.Error(resp.Status)
	}
}
