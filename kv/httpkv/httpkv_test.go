package httpkv

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/kvtest"
	"github.com/zarrdb/zarrdb/kv/remote"
)

var bg = context.Background()

// site is a web server whose manners can be chosen.
type site struct {
	mu      sync.Mutex
	content map[string][]byte

	tag      func(value []byte) string // ETag; nil gives a Last-Modified instead
	noRanges bool
	noHead   bool
	noLength bool
	log      []string
}

func (s *site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.log = append(s.log, r.Method+" "+r.RequestURI+" "+r.Header.Get("Range"))
	value, ok := s.content[strings.TrimPrefix(r.URL.Path, "/base/")]
	s.mu.Unlock()
	switch {
	case !ok:
		http.NotFound(w, r)
		return
	case s.noHead && r.Method == http.MethodHead:
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	at := time.Date(2020, 1, 2, 3, 4, 5, 0, time.UTC)
	w.Header().Set("Content-Type", "application/octet-stream")
	if s.tag != nil {
		w.Header().Set("ETag", s.tag(value))
		at = time.Time{}
	}
	switch {
	case s.noLength:
		if at != (time.Time{}) {
			w.Header().Set("Last-Modified", at.Format(http.TimeFormat))
		}
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush()
		_, _ = w.Write(value)
	case s.noRanges:
		w.Header().Set("Content-Length", fmt.Sprint(len(value)))
		_, _ = w.Write(value)
	default:
		http.ServeContent(w, r, "", at, bytes.NewReader(value))
	}
}

func (s *site) requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	log := s.log
	s.log = nil
	return log
}

func (s *site) view(t *testing.T, o *Options) *View {
	t.Helper()
	srv := httptest.NewServer(s)
	t.Cleanup(srv.Close)
	v := must.Get(Open(srv.URL+"/base", o))(t)
	return v
}

func sum(b []byte) string { return fmt.Sprintf("%q", fmt.Sprintf("%d-%x", len(b), b[:min(8, len(b))])) }

func TestConformance(t *testing.T) {
	for name, s := range map[string]*site{
		"etag":        {tag: sum},
		"weak etag":   {tag: func(b []byte) string { return "W/" + sum(b) }},
		"modified":    {},
		"no ranges":   {tag: sum, noRanges: true},
		"no head":     {tag: sum, noHead: true},
		"no length":   {tag: sum, noLength: true},
		"no anything": {noHead: true, noLength: true},
	} {
		t.Run(name, func(t *testing.T) {
			if testing.Short() && name != "etag" && name != "no anything" {
				t.Skip("thousands of requests")
			}
			kvtest.Run(t, nil, kvtest.Options{
				Fill: func(t *testing.T, c map[string][]byte) kv.Reader {
					own := &site{content: c, tag: s.tag, noRanges: s.noRanges, noHead: s.noHead, noLength: s.noLength}
					return own.view(t, nil)
				},
				Invalid: []string{"..", "../a", "a/..", "a/./b", "."},
				Holds:   func(key string) bool { return validKey(key) == nil },
			})
		})
	}
}

func TestRequests(t *testing.T) {
	s := &site{tag: sum, content: map[string][]byte{"a b/c+d": []byte("0123456789"), "x&y": []byte("z")}}
	view := s.view(t, nil)
	wants := func(want ...string) {
		t.Helper()
		if got := s.requests(); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("requests %q, want %q", got, want)
		}
	}
	_, err := view.Get(bg, "a b/c+d", kv.All())
	wants("GET /base/a%20b/c%2Bd ")
	_, err2 := view.Get(bg, "a b/c+d", kv.Span(2, 3))
	wants("GET /base/a%20b/c%2Bd bytes=2-4")
	_, err3 := view.Get(bg, "a b/c+d", kv.Last(3))
	wants("GET /base/a%20b/c%2Bd bytes=-3")
	v, err4 := view.Locate(bg, "x&y")
	wants("HEAD /base/x&y ")
	must.Do(t, errors.Join(err, err2, err3, err4))
	if got, want := v.(kv.Validator).Validator(), "etag:"+sum([]byte("z"))+" size:1"; got != want {
		t.Errorf("validator %q, want %q", got, want)
	}
	if got, want := kv.StampOf(v).ETag, sum([]byte("z")); got != want {
		t.Errorf("entity tag %s, want %s", got, want)
	}
	if v.ID() != (kv.ID{}) {
		t.Error("a value that others may change has an ID")
	}
}

func TestChanged(t *testing.T) {
	long := bytes.Repeat([]byte("a"), 20<<20) // beyond what View pools
	for name, s := range map[string]*site{"etag": {tag: sum}, "weak": {tag: func(b []byte) string { return "W/" + sum(b) }}, "modified": {}, "no ranges": {tag: sum, noRanges: true}} {
		for what, next := range map[string][]byte{"other": []byte("BBBBBBBBBB"), "longer": []byte("aaaaaaaaaaaa"), "shorter": []byte("aa"), "gone": nil} {
			if name == "modified" && what == "other" {
				continue // nothing tells
			}
			for _, before := range [][]byte{[]byte("aaaaaaaaaa"), long} {
				own := &site{tag: s.tag, noRanges: s.noRanges, content: map[string][]byte{"k": before}}
				view := own.view(t, nil)
				v := must.Get(view.Locate(bg, "k"))(t)
				own.mu.Lock()
				if own.content = map[string][]byte{"k": next}; next == nil {
					own.content = nil
				}
				own.mu.Unlock()
				for _, rng := range []kv.Range{kv.All(), kv.Span(1, 5), kv.Last(3)} {
					err := v.View(bg, rng, func([]byte) error { t.Errorf("%s, %s: View(%v) shows bytes", name, what, rng); return nil })
					if !errors.Is(err, kv.ErrChanged) {
						t.Errorf("%s, %s: View(%v): %v, want ErrChanged", name, what, rng, err)
					}
				}
			}
		}
	}
}

func TestForbidden(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }))
	defer srv.Close()
	for _, missing := range []bool{false, true} {
		view, err := Open(srv.URL, &Options{Forbidden: missing})
		must.Do(t, err)
		_, err = view.Get(bg, "k", kv.All())
		_, lerr := view.Locate(bg, "k")
		var status *remote.Error
		if missing && (err != kv.ErrNotFound || lerr != kv.ErrNotFound) || !missing && (!errors.As(err, &status) || status.Status != 403 || !errors.As(lerr, &status)) {
			t.Errorf("403 as missing %v: %v, %v", missing, err, lerr)
		}
	}
}

// TestSecrets makes sure that what gives access is sent, and never shown.
func TestSecrets(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		if user != "joe" || password != "hidden1" || r.URL.Query().Get("sig") != "hidden2" || r.URL.Path != "/p/k" {
			t.Errorf("%s %s came with user %q", r.Method, r.URL, user)
		}
		w.WriteHeader(http.StatusTeapot)
	}))
	view, err := Open("http://joe:hidden1@"+srv.Listener.Addr().String()+"/p?sig=hidden2", nil)
	must.Do(t, err)
	_, err = view.Get(bg, "k", kv.All())
	_, err2 := view.Locate(bg, "k")
	srv.Close()
	// Not where the server was: that port may be somebody else's by now.
	dead, err3 := Open("http://joe:hidden1@127.0.0.1:1/p?sig=hidden2", &Options{Remote: remote.Options{Tries: 1}})
	must.Do(t, err3)
	_, err3 = dead.Get(bg, "k", kv.All())
	_, err4 := Open("http://joe:hidden1@[::1", nil)
	_, err5 := Open("ftp://joe:hidden1@host/?hidden2", nil)
	for _, err := range []error{err, err2, err3, err4, err5} {
		if err == nil || strings.Contains(err.Error(), "hidden") || strings.Contains(err.Error(), "joe") {
			t.Errorf("error %v", err)
		}
	}
	if !strings.Contains(err.Error(), "/p/k?…: 418") {
		t.Errorf("error %v does not say what failed", err)
	}
}

func TestSpelled(t *testing.T) {
	s := &site{tag: sum, content: map[string][]byte{"a/b+c": []byte("x")}}
	view := s.view(t, &Options{Spelled: map[string]string{"a/b+c": "-", "a": "%61"}})
	if b, err := view.Get(bg, "a/b+c", kv.All()); err != nil || string(b) != "x" {
		t.Errorf("%q, %v", b, err)
	}
	if got := s.requests(); len(got) != 1 || got[0] != "GET /base/%61/b%2Bc " {
		t.Errorf("requests %q", got)
	}
}

// TestDirectoryPage reads a name for which the server shows the page of a
// directory: it has no value.
func TestDirectoryPage(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/d", "/moved":
			http.Redirect(w, r, "/real"+r.URL.Path+map[string]string{"/d": "/"}[r.URL.Path], http.StatusMovedPermanently)
		default:
			_, _ = w.Write([]byte("<html>"))
		}
	}))
	defer srv.Close()
	view := must.Get(Open(srv.URL, nil))(t)
	if _, err := view.Get(bg, "d", kv.All()); err != kv.ErrNotFound {
		t.Errorf("Get of a directory: %v", err)
	}
	if _, err := view.Locate(bg, "d"); err != kv.ErrNotFound {
		t.Errorf("Locate of a directory: %v", err)
	}
	if b, err := view.Get(bg, "moved", kv.All()); err != nil || string(b) != "<html>" {
		t.Errorf("%q, %v", b, err)
	}
}
