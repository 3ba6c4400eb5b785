package source

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/remote"
)

// TestReferenceRedirects follows a redirect within a host, and for what a
// reference leads to none to another, whoever allows what.
func TestReferenceRedirects(t *testing.T) {
	inner := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("secret")) }))
	defer inner.Close()
	outer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/away":
			http.Redirect(w, r, inner.URL+"/x", http.StatusFound)
		case "/near":
			http.Redirect(w, r, "/here", http.StatusFound)
		default:
			_, _ = w.Write([]byte("here"))
		}
	}))
	defer outer.Close()
	adapters := NewAdapters()
	for scheme, root := range RemoteRoots(&RemoteOptions{Requests: remote.Options{Redirect: func(*url.URL) error { return nil }}}) {
		adapters.RegisterRoot(scheme, root)
	}
	e := &Env{Adapters: adapters}
	defer e.Close()
	if v, _, err := e.reference(bg, outer.URL+"/", "near", kv.Span(0, 0), 0); err != nil {
		t.Error(err)
	} else if b, err := kv.ReadValue(bg, v, kv.All()); err != nil || string(b) != "here" {
		t.Errorf("%q, %v", b, err)
	}
	if _, _, err := e.reference(bg, outer.URL+"/", "away", kv.Span(0, 0), 0); !errors.Is(err, remote.ErrRedirect) {
		t.Errorf("a reference to another host: %v", err)
	}
}
