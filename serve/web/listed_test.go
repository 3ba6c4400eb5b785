package web

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/httpkv"
	"github.com/zarrdb/zarrdb/kv/kvtest"
	"github.com/zarrdb/zarrdb/kv/remote"
	"github.com/zarrdb/zarrdb/serve"
)

// TestListed reads and lists a served version as a view of httpkv.
func TestListed(t *testing.T) {
	kvtest.Run(t, nil, kvtest.Options{
		Fill: func(t *testing.T, content map[string][]byte) kv.Reader {
			s := newSite(t, Options{})
			must.Get(s.db.Update(bg, "main", "content", func(e *engine.Session) error {
				if err := kv.DeletePrefix(bg, e, ""); err != nil {
					return err
				}
				for key, value := range content {
					if err := e.Set(bg, key, value); err != nil {
						return err
					}
				}
				return nil
			}))(t)
			return s.listed(t, "/w/v/main/")
		},
		Invalid: []string{"..", "../a", "a/..", "a/./b", "."},
		Holds: func(key string) bool {
			return serve.InPath(strings.Split(key, "/")...) && strings.ToValidUTF8(key, "") == key
		},
	})
}

// listed is a path of the site as a view that lists.
func (s *site) listed(t *testing.T, path string) *httpkv.Listed {
	t.Helper()
	srv := httptest.NewServer(s.h)
	t.Cleanup(srv.Close)
	view := must.Get(httpkv.Open(srv.URL+path, nil))(t)
	l := must.Get(view.Listed(bg))(t)
	if l == nil {
		t.Fatal("the server lists no keys")
	}
	return l
}

// TestListedInPages lists more keys than a page has.
func TestListedInPages(t *testing.T) {
	s := newSite(t, Options{})
	want := map[string]bool{}
	must.Get(s.db.Update(bg, "main", "many", func(e *engine.Session) error {
		for i := range 10_050 {
			want[fmt.Sprintf("many/%d-x", i)] = true
			if i%1000 == 0 {
				want[fmt.Sprintf("many/%d/y", i)] = true
			}
		}
		for key := range want {
			if err := e.Set(bg, key, []byte("1")); err != nil {
				return err
			}
		}
		return nil
	}))(t)
	l := s.listed(t, "/w/v/")
	if got := must.Get(kv.Keys(bg, l, "main/many/"))(t); len(got) != len(want) || !slices.IsSorted(got) {
		t.Errorf("%d keys, want %d in order", len(got), len(want))
	}
	n, last := 0, ""
	for e, err := range l.ListDir(bg, "main/many/") {
		must.Do(t, err)
		if n++; e.Name <= last {
			t.Fatalf("%s after %s", e.Name, last)
		}
		last = e.Name
	}
	if n != len(want) {
		t.Errorf("%d entries, want %d", n, len(want))
	}
	var some []string
	for key, err := range l.List(bg, kv.ListOptions{Prefix: "main/many/99", After: "main/many/9998-x"}) {
		must.Do(t, err)
		some = append(some, key)
	}
	if fmt.Sprint(some) != "[main/many/9999-x]" {
		t.Errorf("keys %q", some)
	}
}

// TestListedOfOthers asks servers that do not list, or not as they should.
func TestListedOfOthers(t *testing.T) {
	for name, c := range map[string]struct {
		kind, answer string
		status       int
		lists        bool
	}{
		"a page of links":      {"text/html", `<a href="x">`, 200, false},
		"other JSON":           {"application/json", `{"entries": 3}`, 200, false},
		"nothing":              {"text/plain", "", 404, false},
		"forbidden":            {"text/plain", "", 403, false},
		"again and again":      {"application/json", `{"path": "", "entries": [{"name": "a"}], "next": "a"}`, 200, true},
		"announced, not there": {"application/json", `{"path": "", "entries": [], "next": "a"}`, 200, true},
	} {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", c.kind)
			w.WriteHeader(c.status)
			_, _ = w.Write([]byte(c.answer))
		}))
		view := must.Get(httpkv.Open(srv.URL+"/x/v/main/", nil))(t)
		l, err := view.Listed(bg)
		if err != nil || (l != nil) != c.lists {
			t.Errorf("%s: %v, %v", name, l, err)
		}
		if l != nil {
			_, err = kv.Keys(bg, l, "")
			var derr error
			for _, derr = range l.ListDir(bg, "") {
			}
			if !errors.Is(err, remote.ErrAnswer) || !errors.Is(derr, remote.ErrAnswer) {
				t.Errorf("%s: %v, %v", name, err, derr)
			}
		}
		srv.Close()
	}
}
