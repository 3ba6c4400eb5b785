package web

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"html"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/internal/must"
)

// oddKeys are keys whose names clients or servers could take for syntax.
var oddKeys = func() map[string][]byte {
	keys := map[string][]byte{}
	for _, name := range []string{
		"a b", "100%", "%2F", "%252F", "%41", "what?", "x?y=1", "#1", "a&b", "a&amp;b", "a+b", "a=b", "ä", "a\u0308", "日本", "😀", ".zattrs", "..x", "...", "~x",
		"'q'", `"q"`, "<b>", "a:b", "http:", "a;b", "a,b", "a@b", "$x", "(x)", "!x", "*", "[x]", "{x}", "|", "^", "`", `a\b`, "tab\tx", "line\nx", "-", "zarr.json",
	} {
		keys[name+"/"+name] = []byte(name)
		keys["d/"+name] = []byte("d " + name)
	}
	return keys
}()

// addOdd writes oddKeys below "odd", in branches of both kinds of name.
func (s *site) addOdd() {
	s.t.Helper()
	for _, branch := range []string{"main", "feature/one"} {
		_, err := s.db.Update(bg, branch, "odd", func(e *engine.Session) error {
			for key, value := range oddKeys {
				if err := e.Set(bg, "odd/"+key, value); err != nil {
					return err
				}
			}
			// Keys that no path names are not listed, so that no client runs in circles.
			for _, key := range []string{"odd/../x", "odd/./x", "odd/a//b"} {
				if err := e.Set(bg, key, nil); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			s.t.Fatal(err)
		}
	}
}

var linkOf = regexp.MustCompile(`<a href="([^"]*)">`)

// crawl reads all files below a URL as clients do that follow links. Directories are
// asked for without a slash, as fsspec does. get returns a body and the URL after
// redirects.
func crawl(t *testing.T, get func(at string) ([]byte, *url.URL, string), root string) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	var walk func(at, name string)
	walk = func(at, name string) {
		page, final, kind := get(strings.TrimSuffix(at, "/"))
		if !strings.HasPrefix(kind, "text/html") || !strings.HasSuffix(final.Path, "/") {
			t.Fatalf("%s is not a listing: %s, %s", at, final, kind)
		}
		for _, m := range linkOf.FindAllSubmatch(page, -1) {
			href := html.UnescapeString(string(m[1]))
			ref, err := url.Parse(href)
			if err != nil || ref.IsAbs() || strings.HasPrefix(href, "/") || strings.Contains(href, "..//") {
				t.Fatalf("%s: link %q, %v", at, href, err)
			}
			to := final.ResolveReference(ref)
			if !strings.HasPrefix(to.Path, final.Path) || to.Path == final.Path || to.RawQuery != "" || to.Fragment != "" {
				t.Fatalf("%s: link %q leads to %s", at, href, to)
			}
			child := path.Join(name, path.Base(to.Path))
			if strings.HasSuffix(href, "/") {
				walk(to.String(), child)
				continue
			}
			b, _, _ := get(to.String())
			files[child] = b
		}
	}
	walk(root, "")
	return files
}

// decodingProxy serves a server below a prefix, as nginx does: it decodes the path, %2F
// too, merges slashes and escapes the result again.
func decodingProxy(t *testing.T, to, prefix string) *httptest.Server {
	target := must.Get(url.Parse(to))(t)
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		below, ok := strings.CutPrefix(r.In.URL.Path, prefix)
		if !ok {
			t.Errorf("%s leads out of the prefix of the proxy", r.In.URL)
		}
		r.SetURL(target)
		r.Out.URL.Path, r.Out.URL.RawPath = mergeSlashes("/"+below), ""
		r.Out.Header.Set("X-Forwarded-Prefix", prefix)
	}}
	server := httptest.NewServer(proxy)
	t.Cleanup(server.Close)
	return server
}

// Clients that follow links find what Go's file server shows of the same tree, directly
// and behind a proxy with a prefix.
func TestOddNames(t *testing.T) {
	s := newSite(t, Options{})
	s.addOdd()
	dir := t.TempDir()
	for key, value := range oddKeys {
		file := filepath.Join(dir, "odd", filepath.FromSlash(key))
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o777), os.WriteFile(file, value, 0o666)); err != nil {
			t.Skipf("this file system cannot have the names: %v", err)
		}
	}
	server := s.listen(nil)
	proxy := decodingProxy(t, server.URL, "/data/x")
	get := func(at string) ([]byte, *url.URL, string) {
		r := must.Get(http.Get(at))(t)
		defer r.Body.Close()
		b, err := io.ReadAll(r.Body)
		if err != nil || r.StatusCode != 200 {
			t.Fatalf("%s: %s, %v: %s", at, r.Status, err, b)
		}
		return b, r.Request.URL, r.Header.Get("Content-Type")
	}
	for _, root := range []string{
		server.URL + "/w/v/main/odd", server.URL + "/w/v/main//odd", server.URL + "/w/v/feature%2Fone/odd", server.URL + "/w/v/feature:one/odd",
		proxy.URL + "/data/x/w/v/main/odd", proxy.URL + "/data/x/w/v/feature:one/odd",
	} {
		got := crawl(t, get, root)
		for key, value := range oddKeys {
			if b, ok := got[key]; !ok || !bytes.Equal(b, value) {
				t.Errorf("%s: %q is %q, %v", root, key, b, ok)
			}
		}
		if len(got) != len(oddKeys) {
			t.Errorf("%s: %d files, want %d: %q", root, len(got), len(oddKeys), slices.Sorted(maps.Keys(got)))
		}
	}

	files := httptest.NewServer(http.FileServer(http.Dir(dir)))
	defer files.Close()
	ampersand := func(name string) bool { return strings.HasPrefix(name, "a&") } // Go's file server does not escape it for HTML
	theirs := slices.DeleteFunc(crawlNames(t, files.URL+"/odd/d/"), ampersand)
	if ours := slices.DeleteFunc(crawlNames(t, server.URL+"/w/v/main/odd/d/"), ampersand); !slices.Equal(theirs, ours) {
		t.Errorf("Go's file server lists %q\nwe list %q", theirs, ours)
	}
	versions := crawlNames(t, proxy.URL+"/data/x/w/v/")
	if !slices.Equal(versions, []string{"feature:one/", "main/"}) {
		t.Errorf("versions behind the proxy: %q", versions)
	}
}

// crawlNames returns the decoded links of a page.
func crawlNames(t *testing.T, at string) (names []string) {
	t.Helper()
	r := must.Get(http.Get(at))(t)
	defer r.Body.Close()
	page, err := io.ReadAll(r.Body)
	if err != nil || r.StatusCode != 200 {
		t.Fatalf("%s: %s, %v", at, r.Status, err)
	}
	for _, m := range linkOf.FindAllSubmatch(page, -1) {
		ref := must.Get(url.Parse(html.UnescapeString(string(m[1]))))(t)
		names = append(names, strings.TrimPrefix(ref.Path, "./"))
	}
	slices.Sort(names)
	return names
}

// WebDAV clients find the same keys by PROPFIND, below the prefix of a proxy.
func TestOddNamesOfPropfind(t *testing.T) {
	s := newSite(t, Options{})
	s.addOdd()
	proxy := decodingProxy(t, s.listen(nil).URL, "/data")
	found := map[string]bool{}
	var walk func(at string)
	walk = func(at string) {
		r := must.Get(http.NewRequest("PROPFIND", proxy.URL+at, nil))(t)
		r.Header.Set("Depth", "1")
		res := must.Get(http.DefaultClient.Do(r))(t)
		defer res.Body.Close()
		var all struct {
			Responses []struct {
				Href string    `xml:"DAV: href"`
				Dir  *struct{} `xml:"DAV: propstat>prop>resourcetype>collection"`
			} `xml:"DAV: response"`
		}
		if err := xml.NewDecoder(res.Body).Decode(&all); err != nil || res.StatusCode != 207 {
			t.Fatalf("%s: %s, %v", at, res.Status, err)
		}
		for i, e := range all.Responses {
			switch u, err := url.Parse(e.Href); {
			case err != nil:
				t.Fatal(err)
			case i == 0 && e.Href != at:
				t.Errorf("PROPFIND of %s is about %s", at, e.Href)
			case i > 0 && e.Dir != nil:
				walk(e.Href)
			case i > 0:
				found[strings.TrimPrefix(u.Path, "/data/w/v/feature:one/odd/")] = true
			}
		}
	}
	walk("/data/w/v/feature%3Aone/odd/")
	if want := slices.Sorted(maps.Keys(oddKeys)); !slices.Equal(slices.Sorted(maps.Keys(found)), want) {
		t.Errorf("%q\nwant %q", slices.Sorted(maps.Keys(found)), want)
	}
}

// A group of a target redirects too: clients would take it for empty.
func TestTargetGroups(t *testing.T) {
	s := newSite(t, Options{})
	dir := t.TempDir()
	must.Do(t, os.MkdirAll(filepath.Join(dir, "g", "h"), 0o777))
	for _, name := range []string{"zarr.json", "g/zarr.json", "g/h/zarr.json"} {
		must.Do(t, os.WriteFile(filepath.Join(dir, name), []byte(`{"zarr_format":3,"node_type":"group"}`), 0o666))
	}
	src := must.Get(engine.OpenSource(bg, dir, nil))(t)
	defer src.Close()
	must.Do(t, s.table.AddTarget("files", src))
	for at, want := range map[string]string{"/files/v/main/g": "301 g/", "/files/v/main/g/h": "301 h/", "/files/v3/main/g": "301 g/", "/files/v/main/g/": "200 ", "/files/v/main/x": "404 "} {
		if r := s.do("GET", at); fmt.Sprint(r.StatusCode, " ", r.Header.Get("Location")) != want {
			t.Errorf("%s: %d %q, want %s", at, r.StatusCode, r.Header.Get("Location"), want)
		}
	}
}

// HEAD has the status and the headers of GET, for every kind of path.
func TestHeadIsGet(t *testing.T) {
	s := newSite(t, Options{Authenticate: named, Anonymous: reader})
	s.addOdd()
	server := s.listen(nil)
	for _, at := range []string{
		"/", "/w", "/w/", "/w/v", "/w/v/", "/w/x/", "/none", "/none/v/main/", "/favicon.ico", "/w/v/none/", "/w/v/main", "/w/v/main/", "/w/v/main//", "/w/v/main/keys", "/w/v/main/keys/",
		"/w/v/main/keys/?limit=2", "/w/v/main/keys/?limit=0", "/w/v/main/?recursive", "/w/v/main/keys/small", "/w/v/main/keys/small/", "/w/v/main/keys/big", "/w/v/main/keys/empty",
		"/w/v/main/keys/dir", "/w/v/main/keys/dir/", "/w/v/main/keys/none", "/w/v/main/none/", "/w/v/main/..", "/w/v/main/%ff", "/w/v/main/zarr.json", "/w/v2/main/t/.zarray",
		"/w/v2/main/t", "/w/v2/main/", "/w/v/main/odd/", "/w/v/" + s.first.String() + "/keys/small", "/w/v/~0000000000000000/x",
		"/-", "/-/", "/-/none", "/-/health", "/-/api/names", "/-/api/log?db=w", "/-/api/log?db=none", "/-/api/read?db=w&path=t", "/-/api/read?db=w&path=t&format=png",
		"/-/api/read?db=w&path=t&format=npy", "/-/api/read?db=w&path=none", "/-/api/sessions?db=w", "/-/api/sessions/w/x", "/-//api//names",
	} {
		for _, header := range []string{"", "Accept-Encoding: gzip", "Accept: application/json", "Range: bytes=0-1", "Range: bytes=99999999-", "If-None-Match: *", "Authorization: Bearer writer"} {
			answer := func(method string) string {
				r := must.Get(http.NewRequest(method, server.URL+at, nil))(t)
				r.Header.Set("Accept-Encoding", "identity")
				if name, value, ok := strings.Cut(header, ": "); ok {
					r.Header.Set(name, value)
				}
				res, err := http.DefaultTransport.RoundTrip(r)
				if err != nil {
					t.Fatalf("%s %s: %v", method, at, err)
				}
				defer res.Body.Close()
				_, _ = io.Copy(io.Discard, res.Body)
				res.Header.Del("Date")
				return fmt.Sprint(res.Status, " ", res.Header)
			}
			if get, head := answer("GET"), answer("HEAD"); get != head {
				t.Errorf("%s with %q:\nGET  %s\nHEAD %s", at, header, get, head)
			}
		}
	}
}

// pieces counts what a handler writes.
type pieces struct {
	http.ResponseWriter
	longest, links int
}

func (p *pieces) Write(b []byte) (int, error) {
	p.longest = max(p.longest, len(b))
	p.links += bytes.Count(b, []byte("<a href=")) + bytes.Count(b, []byte("<response>"))
	return len(b), nil
}

// Listings of any length are answered, in pieces of bounded size.
func TestLongListings(t *testing.T) {
	if testing.Short() {
		t.Skip("the work of one goroutine, many times")
	}
	s := newSite(t, Options{})
	const count = 110_000
	must.Get(s.db.Update(bg, "main", "many", func(e *engine.Session) error {
		for i := range count {
			if err := e.Set(bg, fmt.Sprintf("many/%06d", i), nil); err != nil {
				return err
			}
		}
		return nil
	}))(t)
	for _, c := range []struct {
		method, header, value string
		status, links         int
	}{
		{"GET", "Accept", "text/html", 200, count},
		{"HEAD", "Accept", "text/html", 200, 0},
		{"PROPFIND", "Depth", "1", 207, count + 1},
		{"PROPFIND", "Depth", "infinity", 207, count + 1},
	} {
		w := httptest.NewRecorder()
		p := &pieces{ResponseWriter: w}
		r := httptest.NewRequest(c.method, "http://localhost/w/v/main/many/", nil)
		r.Header.Set(c.header, c.value)
		s.h.ServeHTTP(p, r)
		if w.Code != c.status || p.links != c.links || p.longest > wholeBytes+1000 {
			t.Errorf("%s: status %d, %d entries, %d bytes at a time", c.method, w.Code, p.links, p.longest)
		}
	}
}

// An error after the first piece ends the connection; before, it is the answer.
func TestBrokenListing(t *testing.T) {
	for _, sent := range []int{0, 10, 3 * wholeBytes / 1000} {
		w := httptest.NewRecorder()
		var err error
		panicked := func() (v any) {
			defer func() { v = recover() }()
			err = writeLong(w, httptest.NewRequest("GET", "/", nil), "text/plain", func(yield func([]byte, error) bool) {
				for range sent {
					if !yield(make([]byte, 1000), nil) {
						return
					}
				}
				yield(nil, io.ErrUnexpectedEOF)
			})
			return nil
		}()
		if long := sent > 10; long != (panicked == http.ErrAbortHandler) || long == (err != nil) || long != (w.Body.Len() > 0) {
			t.Errorf("after %d parts: %v, %v, %d bytes sent", sent, panicked, err, w.Body.Len())
		}
	}
}
