package web

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/serve"
	"github.com/zarrdb/zarrdb/txn"
	"github.com/zarrdb/zarrdb/zarr"
	"github.com/zarrdb/zarrdb/zarr/dtype"
)

var bg = context.Background()

// site is a served database with an array "t" of 4 × 6 uint8 and some bare keys.
type site struct {
	t     *testing.T
	db    *engine.DB
	table *serve.Table
	h     http.Handler
	first txn.CommitID
	big   []byte
}

var reader = &serve.Principal{Name: "reader"}

func newSite(t *testing.T, o Options) *site {
	t.Helper()
	db, err := engine.Open(bg, "db", &engine.Options{FS: vfs.NewMem(), Author: "tester", Create: true})
	must.Do(t, err)
	s := &site{t: t, db: db, table: serve.New(serve.Options{Log: o.Log})}
	t.Cleanup(func() {
		if err := s.table.Close(bg); err != nil {
			t.Error(err)
		}
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	for i := range 3 << 20 {
		s.big = append(s.big, byte(i*i>>7))
	}
	must.Get(db.Update(bg, "main", "first", func(e *engine.Session) error {
		typ, err := dtype.ParseV3(json.RawMessage(`"uint8"`))
		if err != nil {
			return err
		}
		a, err := e.CreateArray(bg, "t", zarr.Spec{Shape: []int64{4, 6}, Chunks: []int64{2, 6}, Type: typ, DimensionNames: []string{"y", "x"}})
		if err != nil {
			return err
		}
		data := make([]uint8, 24)
		for i := range data {
			data[i] = uint8(i)
		}
		if err := zarr.Write(bg, a, zarr.Sel(), data); err != nil {
			return err
		}
		for key, value := range map[string][]byte{
			"keys/small": []byte("0123456789"), "keys/big": s.big, "keys/empty": {}, "keys/a:b <&>%2F": []byte("odd"), "keys/dir/x": []byte("x"), "keys/dir": []byte("both"),
		} {
			if err := e.Set(bg, key, value); err != nil {
				return err
			}
		}
		return nil
	}))(t)
	if s.first, err = db.Head(bg, "main"); err != nil {
		t.Fatal(err)
	}
	must.Do(t, db.Versions().CreateBranch(bg, "feature/one", s.first))
	must.Do(t, s.table.AddDatabase("w", db))
	if o.Authenticate == nil && o.Anonymous == nil {
		o.Anonymous = reader
	}
	s.h = New(s.table, o)
	return s
}

// do sends a request. Headers come as "Name: value".
func (s *site) do(method, path string, headers ...string) *http.Response {
	s.t.Helper()
	return s.send(method, path, nil, headers...)
}

func (s *site) send(method, path string, body io.Reader, headers ...string) *http.Response {
	s.t.Helper()
	r := httptest.NewRequest(method, "http://localhost/", body)
	u, err := url.ParseRequestURI(path)
	if err != nil {
		s.t.Fatal(err)
	}
	r.URL = u
	for _, line := range headers {
		name, value, _ := strings.Cut(line, ": ")
		if name == "Host" {
			r.Host = value
			continue
		}
		r.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	s.h.ServeHTTP(w, r)
	return w.Result()
}

func body(t *testing.T, r *http.Response) string {
	t.Helper()
	b := must.Get(io.ReadAll(r.Body))(t)
	return string(b)
}

func TestValues(t *testing.T) {
	s := newSite(t, Options{})
	tag := s.do("GET", "/w/v/main/keys/small").Header.Get("ETag")
	bigTag := s.do("HEAD", "/w/v/main/keys/big").Header.Get("ETag")
	if len(tag) != 42 || tag == bigTag || bigTag == "" {
		t.Fatalf("ETags %q and %q", tag, bigTag)
	}
	for _, c := range []struct {
		method, path, headers string
		status                int
		body, header          string
	}{
		{"GET", "/w/v/main/keys/small", "", 200, "0123456789", "Content-Length: 10"},
		{"GET", "/w/v/main/keys/small", "", 200, "0123456789", "Cache-Control: no-cache"},
		{"GET", "/w/v/main/keys/small", "", 200, "0123456789", "Zarrdb-Commit: " + s.first.String()},
		{"GET", "/w/v/" + s.first.String() + "/keys/small", "", 200, "0123456789", "Cache-Control: private, max-age=31536000, immutable"},
		{"GET", "/w/v/" + s.first.Short() + "/keys/small", "", 200, "0123456789", "Cache-Control: no-cache"},
		{"GET", "/w/v/main%7E0/keys/small", "", 200, "0123456789", ""},
		{"GET", "/w/v/main~0/keys/small", "", 200, "0123456789", ""},
		{"GET", "/w/v/main@%7B0%7D/keys/small", "", 200, "0123456789", ""},
		{"GET", "/w/v/feature%2Fone/keys/small", "", 200, "0123456789", ""},
		{"GET", "/w/v/feature:one/keys/small", "", 200, "0123456789", ""},
		{"GET", "/w/v/feature%3Aone~0/keys/small", "", 200, "0123456789", ""},
		{"GET", "/w/v/feature:one@{2100-01-31T10:00:00Z}/keys/small", "", 200, "0123456789", ""},
		{"HEAD", "/w/v/main/keys/small", "", 200, "", "Content-Length: 10"},
		{"GET", "/w/v/main/keys/empty", "", 200, "", "Content-Length: 0"},
		{"GET", "/w/v/main/keys/a:b%20%3C&%3E%252F", "", 200, "odd", ""},
		{"GET", "/w/v/main/t/zarr.json", "", 200, "*", "Content-Type: application/json"},
		{"GET", "/w/v/main/t/c/0/0", "", 200, "*", "Content-Type: application/octet-stream"},

		{"GET", "/w/v/main/keys/small", "Range: bytes=2-4", 206, "234", "Content-Range: bytes 2-4/10"},
		{"GET", "/w/v/main/keys/small", "Range: bytes=-3", 206, "789", "Content-Range: bytes 7-9/10"},
		{"GET", "/w/v/main/keys/small", "Range: bytes=8-", 206, "89", ""},
		{"HEAD", "/w/v/main/keys/small", "Range: bytes=2-4", 206, "", "Content-Length: 3"},
		{"GET", "/w/v/main/keys/small", "Range: bytes=10-", 416, "*", "Content-Range: bytes */10"},
		{"GET", "/w/v/main/keys/small", "Range: bytes=4-4611686018427387904", 206, "456789", ""},
		{"GET", "/w/v/main/keys/small", "Range: bytes=4611686018427387904-", 416, "*", ""},
		{"GET", "/w/v/main/keys/small", "Range: bytes=99999999999999999999-", 416, "*", ""},
		{"GET", "/w/v/main/keys/small", "Range: lines=1-2", 200, "0123456789", ""},
		{"GET", "/w/v/main/keys/small", "Range: bytes=0-0" + strings.Repeat(",0-0", 1000), 200, "0123456789", ""},
		{"GET", "/w/v/main/keys/big", "Range: bytes=1048570-1048580", 206, string(s.big[1048570:1048581]), ""},
		{"GET", "/w/v/main/keys/big", "", 200, string(s.big), ""},

		{"GET", "/w/v/main/keys/small", "If-None-Match: " + tag, 304, "", "ETag: " + tag},
		{"GET", "/w/v/main/keys/small", "If-None-Match: *", 304, "", ""},
		{"GET", "/w/v/main/keys/small", "If-None-Match: " + bigTag, 200, "0123456789", ""},
		{"GET", "/w/v/main/keys/small", "If-Match: " + bigTag, 412, "*", ""},
		{"GET", "/w/v/main/keys/small", "If-Match: " + tag + "|Range: bytes=0-1", 206, "01", ""},
		{"GET", "/w/v/main/keys/small", "If-Range: " + bigTag + "|Range: bytes=0-1", 200, "0123456789", ""},

		{"GET", "/w/v/main/keys/none", "", 404, "*", ""},
		{"GET", "/w/v/main/t/c/9/9", "", 404, "*", ""},
		{"GET", "/w/v/nowhere/keys/small", "", 404, "*", ""},
		{"GET", "/none/v/main/keys/small", "", 404, "*", ""},
		{"GET", "/w/x/main/keys/small", "", 404, "*", ""},
		{"GET", "/w/v/main/../keys", "", 400, "*", ""},
		{"GET", "/w/v/main/%2e%2e/keys", "", 400, "*", ""},
		{"GET", "/w/v/main/a%2F..%2F..%2Fb", "", 400, "*", ""},
		{"GET", "/w/v/main//etc/passwd", "", 404, "*", ""},
		{"GET", "/w//v/main///keys//small", "", 200, "0123456789", ""},
		{"GET", "/w/v/main/keys%2F%2Fsmall", "", 200, "0123456789", ""},
		{"GET", "/w/v/main/a%00b", "", 400, "*", ""},
		{"GET", "/w/v/main/a%ffb", "", 400, "*", ""},
		{"GET", "//w/v/main", "", 301, "", "Location: main/"},
		{"GET", "/w/v/main//keys?x=%2F", "", 301, "", "Location: keys/?x=%2F"},
		{"GET", "/w/v/feature:one", "", 301, "", "Location: feature%3Aone/"},
		{"GET", "/-", "", 301, "", "Location: -/"},
		{"GET", "/w/v/feature%2Fone/t", "", 301, "", "Location: /w/v/feature%2Fone/t/"},
		{"GET", "/w/v/feature%2Fone/t?x", "X-Forwarded-Prefix: /data/", 301, "", "Location: /data/w/v/feature%2Fone/t/?x"},
		{"GET", "/w/v/feature%2Fone/t", "X-Forwarded-Prefix: //other.example", 301, "", "Location: /other.example/w/v/feature%2Fone/t/"},
		{"GET", "/w/v/feature%2Fone/t", "X-Forwarded-Prefix: /\\other.example", 301, "", "Location: /%5Cother.example/w/v/feature%2Fone/t/"},
		{"GET", "/w/v/feature%2Fone/t", "X-Forwarded-Prefix: http://other.example/", 301, "", "Location: /w/v/feature%2Fone/t/"},
		{"GET", "//-//api//names", "", 200, "[\"w\"]\n", ""},
		{"GET", "/w/v/main/" + strings.Repeat("a/", 3000) + "a", "", 400, "*", ""},
		{"GET", "/w/v/" + strings.Repeat("a", 5000) + "/x", "", 404, "*", ""},
		{"POST", "/w/v/main/keys/small", "", 405, "*", ""},
		{"TRACE", "/w/v/main/keys/small", "", 405, "*", ""},
	} {
		t.Run(serve.Clip(c.method+" "+c.path+" "+c.headers), func(t *testing.T) {
			var headers []string
			if c.headers != "" {
				headers = strings.Split(c.headers, "|")
			}
			r := s.do(c.method, c.path, headers...)
			got := body(t, r)
			if r.StatusCode != c.status {
				t.Fatalf("status %d, want %d: %s", r.StatusCode, c.status, serve.Clip(got))
			}
			if c.body != "*" && got != c.body {
				t.Errorf("body of %d bytes %q, want %q", len(got), serve.Clip(got), serve.Clip(c.body))
			}
			if name, value, _ := strings.Cut(c.header, ": "); r.Header.Get(name) != value {
				t.Errorf("%s: %q, want %q", name, r.Header.Get(name), value)
			}
		})
	}
}

func TestManyRanges(t *testing.T) {
	s := newSite(t, Options{})
	r := s.do("GET", "/w/v/main/keys/big", "Range: bytes=0-9,1000000-1000099,-5")
	_, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || r.StatusCode != 206 {
		t.Fatalf("status %d, %v", r.StatusCode, err)
	}
	parts := multipart.NewReader(r.Body, params["boundary"])
	for _, want := range [][]byte{s.big[:10], s.big[1000000:1000100], s.big[len(s.big)-5:]} {
		p := must.Get(parts.NextPart())(t)
		if b, err := io.ReadAll(p); err != nil || !bytes.Equal(b, want) {
			t.Errorf("a part of %d bytes, %v; want %d", len(b), err, len(want))
		}
	}
}

// broken is a value that cannot be read.
type broken struct{ kv.Bytes }

func (broken) View(context.Context, kv.Range, func([]byte) error) error { return kv.ErrCorrupt }

// A value that cannot be read is an error, not a body that is short.
func TestBrokenValue(t *testing.T) {
	w := httptest.NewRecorder()
	w.Header().Set("ETag", `"x"`)
	err := serveValue(w, httptest.NewRequest("GET", "/", nil), broken{kv.Bytes("abc")})
	if err == nil || w.Body.Len() > 0 || w.Header().Get("Content-Length") != "" || w.Header().Get("ETag") != "" {
		t.Errorf("%v, headers %v, body %q", err, w.Header(), w.Body)
	}
}

func TestListings(t *testing.T) {
	s := newSite(t, Options{})
	names := func(path string) (out []string, next string) {
		t.Helper()
		r := s.do("GET", path, "Accept: application/json")
		var l listing
		if err := json.Unmarshal([]byte(body(t, r)), &l); err != nil || r.StatusCode != 200 {
			t.Fatalf("%s: status %d, %v", path, r.StatusCode, err)
		}
		for _, e := range l.Entries {
			out = append(out, e.Name)
		}
		return out, l.Next
	}
	for path, want := range map[string]string{
		"/":                         "[w/]",
		"/w/":                       "[v/ v2/ v3/]",
		"/w/v/":                     "[feature:one/ main/]",
		"/w/v/main/":                "[keys/ t/ zarr.json]",
		"/w/v/main/keys/":           "[a:b <&>%2F big dir dir/ empty small]",
		"/w/v/main/t/?recursive":    "[c/0/0 c/1/0 zarr.json]",
		"/w/v/feature%2Fone/t/c/":   "[0/ 1/]",
		"/w/v/main/keys/?after=dir": "[dir/ empty small]",
	} {
		if got, _ := names(path); fmt.Sprint(got) != want {
			t.Errorf("%s: %v, want %s", path, got, want)
		}
	}
	// Pages of every size give the same.
	for _, base := range []string{"/w/v/main/keys/?x", "/w/v/main/?recursive"} {
		all, _ := names(base + "&limit=100")
		for limit := 1; limit <= len(all); limit++ {
			var got []string
			for after, pages := "", 0; ; pages++ {
				page, next := names(fmt.Sprintf("%s&limit=%d&after=%s", base, limit, url.QueryEscape(after)))
				got = append(got, page...)
				if after = next; after == "" || pages > len(all) {
					break
				}
			}
			if fmt.Sprint(got) != fmt.Sprint(all) {
				t.Errorf("%s in pages of %d: %v, want %v", base, limit, got, all)
			}
		}
	}
	for path, status := range map[string]int{
		"/w/v/main/none/": 404, "/w/v/main/keys/?limit=0": 400, "/w/v/main/keys/?limit=x": 400, "/none/v/": 404, "/w/v/main": 301, "/w": 301, "/w/v": 301,
		"/w/v/main/keys/dir": 200, "/w/v/main/keys/none": 404, "/w/v/main?x=1&y=%2F": 301, "/w/v/main/keys?recursive": 301,
	} {
		before, query, _ := strings.Cut(path, "?")
		want := before[strings.LastIndexByte(before, '/')+1:] + "/"
		if query != "" {
			want += "?" + query
		}
		if r := s.do("GET", path); r.StatusCode != status || status == 301 && r.Header.Get("Location") != want {
			t.Errorf("%s: status %d, want %d; %q", path, r.StatusCode, status, r.Header.Get("Location"))
		}
	}
	page := body(t, s.do("GET", "/w/v/main/keys/"))
	for _, want := range []string{`<a href="a%3Ab%20%3C%26%3E%252F">a:b &lt;&amp;&gt;%2F</a>`, `<a href="dir/">dir/</a>`, `<a href="small">small</a>`} {
		if !strings.Contains(page, want) {
			t.Errorf("the index has no %s: %s", want, page)
		}
	}
	if page := body(t, s.do("GET", "/w/v/")); !strings.Contains(page, `href="feature%3Aone/"`) {
		t.Errorf("the index of versions: %s", page)
	}
}

func TestPropfind(t *testing.T) {
	s := newSite(t, Options{})
	for _, c := range []struct {
		path, depth string
		status      int
		want        string
	}{
		{"/w/v/main", "1", 207, "/w/v/main/:dir /w/v/main/keys/:dir /w/v/main/t/:dir /w/v/main/zarr.json:"},
		{"/w/v/main/t", "0", 207, "/w/v/main/t/:dir"},
		{"/w/v/main/t/c", "infinity", 207, "/w/v/main/t/c/:dir /w/v/main/t/c/0/0: /w/v/main/t/c/1/0:"},
		{"/w/v/main/keys/small", "1", 207, "/w/v/main/keys/small:10"},
		{"/w/v/feature%2Fone/keys/", "1", 207, "/w/v/feature%3Aone/keys/a%3Ab%20%3C%26%3E%252F:3"},
		{"/", "1", 207, "/:dir /w/:dir"},
		{"/w/v", "1", 207, "/w/v/:dir /w/v/feature%3Aone/:dir /w/v/main/:dir"},
		{"/w/v/main/none", "1", 404, ""},
		{"/w/v/main/t", "2", 400, ""},
		{"/w/v/main/..", "1", 400, ""},
	} {
		r := s.do("PROPFIND", c.path, "Depth: "+c.depth)
		text := body(t, r)
		if r.StatusCode != c.status {
			t.Errorf("%s: status %d, want %d: %s", c.path, r.StatusCode, c.status, text)
			continue
		}
		var got struct {
			Responses []struct {
				Href string `xml:"DAV: href"`
				Prop struct {
					Length     string    `xml:"DAV: getcontentlength"`
					Modified   string    `xml:"DAV: getlastmodified"`
					Collection *struct{} `xml:"DAV: resourcetype>collection"`
				} `xml:"DAV: propstat>prop"`
				Status string `xml:"DAV: propstat>status"`
			} `xml:"DAV: response"`
		}
		if c.status != 207 {
			continue
		}
		if strings.Count(text, "<resourcetype>") != strings.Count(text, "<response>") {
			t.Errorf("%s: a response has no resource type: %s", c.path, text)
		}
		if err := xml.Unmarshal([]byte(text), &got); err != nil {
			t.Fatalf("%s: %v: %s", c.path, err, text)
		}
		var list []string
		for _, e := range got.Responses {
			kind := e.Prop.Length
			if e.Prop.Collection != nil {
				kind = "dir"
			}
			if _, err := http.ParseTime(e.Prop.Modified); err != nil || !strings.Contains(e.Status, " 200 ") {
				t.Errorf("%s: %v, status %q", e.Href, err, e.Status)
			}
			list = append(list, e.Href+":"+kind)
		}
		have := strings.Join(list, " ") + " "
		for want := range strings.SplitSeq(c.want, " ") {
			if !strings.Contains(have, want) {
				t.Errorf("%s: %s\nhas no %s", c.path, have, want)
			}
		}
	}
}

// Consolidated metadata that keys set by hand have left behind is made again.
func TestServedCopiesAreTrue(t *testing.T) {
	s := newSite(t, Options{})
	must.Get(s.db.Update(bg, "main", "stale", func(e *engine.Session) error {
		if err := zarr.Consolidate(bg, e, "", nil); err != nil {
			return err
		}
		doc, err := kv.Get(bg, e, "t/zarr.json")
		if err != nil {
			return err
		}
		return e.Set(bg, "t/zarr.json", bytes.Replace(doc, []byte("4"), []byte("40"), 1))
	}))(t)
	for range 2 { // the second answer is remembered
		r := s.do("GET", "/w/v/main/zarr.json")
		doc := body(t, r)
		if !strings.Contains(doc, "consolidated_metadata") || !strings.Contains(doc, "40") {
			t.Errorf("a stale copy is served: %s", doc)
		}
		if again := s.do("GET", "/w/v/main/zarr.json", "If-None-Match: "+r.Header.Get("ETag")); again.StatusCode != 304 {
			t.Errorf("status %d with its own ETag", again.StatusCode)
		}
	}
}

// keysWithAnonymous authenticates as a key file does that lets readers in without a key.
func keysWithAnonymous(*http.Request) (*serve.Principal, error) { return reader, nil }

func TestOrigins(t *testing.T) {
	for _, c := range []struct {
		o      Options
		origin string
		want   string
	}{
		{Options{Anonymous: reader}, "https://example.org", "*"},
		{Options{Anonymous: reader, Local: true}, "https://example.org", ""},
		{Options{Anonymous: reader, Local: true}, "http://localhost:3000", "http://localhost:3000"},
		{Options{Authenticate: keysWithAnonymous, Local: true}, "https://example.org", ""},
		{Options{Anonymous: reader, Local: true}, "http://localhost.evil.example", ""},
		{Options{Anonymous: reader, Local: true, Origins: []string{"https://example.org"}}, "https://example.org", "https://example.org"},
		{Options{Anonymous: reader, Origins: []string{"https://example.org"}}, "https://other.example", ""},
		{Options{Anonymous: reader, Origins: []string{"*"}}, "https://other.example", "*"},
	} {
		s := newSite(t, c.o)
		for _, method := range []string{"GET", "OPTIONS"} {
			r := s.do(method, "/w/v/main/keys/small", "Origin: "+c.origin)
			if got := r.Header.Get("Access-Control-Allow-Origin"); got != c.want {
				t.Errorf("%s from %s with %+v: %q, want %q", method, c.origin, c.o, got, c.want)
			}
			if got := r.Header.Get("Access-Control-Allow-Private-Network") == "true"; got != (c.want != "" && method == "OPTIONS") {
				t.Errorf("%s from %s with %+v: access to private networks is %v", method, c.origin, c.o, got)
			}
			if expose := r.Header.Get("Access-Control-Expose-Headers"); (c.want != "") != strings.Contains(expose, "Content-Range") {
				t.Errorf("exposed headers %q", expose)
			}
		}
		for _, path := range []string{"/w/v/main/keys/small", "/w/v/main/", "/w/v/main/?limit=1"} {
			vary := s.do("GET", path, "Origin: "+c.origin).Header.Values("Vary")
			if c.want != "*" && !slices.Contains(vary, "Origin") {
				t.Errorf("%s: caches take it for the answer to other origins too: Vary is %q", path, vary)
			}
		}
	}
}

// A page elsewhere cannot reach a local server under a name of its own.
func TestLocalHosts(t *testing.T) {
	s := newSite(t, Options{Anonymous: reader, Local: true})
	for host, status := range map[string]int{
		"localhost:8080": 200, "127.0.0.1": 200, "[::1]:80": 200, "a.localhost:80": 200, "evil.example:8080": 421, "127.0.0.1.evil.example": 421, "10.0.0.1": 421,
	} {
		if r := s.do("GET", "/w/v/main/keys/small", "Host: "+host); r.StatusCode != status {
			t.Errorf("Host %s: status %d, want %d", host, r.StatusCode, status)
		} else if status == 421 && !strings.Contains(body(t, r), "--behind-tls-proxy") {
			t.Errorf("Host %s: the error names no flag", host)
		}
	}
}

func TestGzipIsForReports(t *testing.T) {
	s := newSite(t, Options{})
	for i := range 200 {
		must.Do(t, s.db.Versions().CreateBranch(bg, fmt.Sprintf("branch-%d", i), s.first))
	}
	r := s.do("GET", "/w/v/", "Accept-Encoding: gzip", "Accept: application/json")
	if r.Header.Get("Content-Encoding") != "gzip" {
		t.Fatalf("headers %v", r.Header)
	}
	z := must.Get(gzip.NewReader(r.Body))(t)
	if b, err := io.ReadAll(z); err != nil || !json.Valid(b) {
		t.Errorf("%v: %s", err, b)
	}
	if r := s.do("GET", "/w/v/", "Accept-Encoding: gzip;q=0"); r.Header.Get("Content-Encoding") != "" {
		t.Error("compressed for a client that refuses it")
	}
	if r := s.do("GET", "/w/v/main/keys/big", "Accept-Encoding: gzip"); r.Header.Get("Content-Encoding") != "" || r.ContentLength != int64(len(s.big)) {
		t.Errorf("a value: headers %v", r.Header)
	}
}

func TestKeysAreNeeded(t *testing.T) {
	s := newSite(t, Options{Authenticate: func(r *http.Request) (*serve.Principal, error) {
		switch r.Header.Get("Authorization") {
		case "Bearer good":
			return reader, nil
		case "":
			return nil, nil
		}
		return nil, fmt.Errorf("the key is not known")
	}})
	for auth, status := range map[string]int{"Bearer good": 200, "Bearer bad": 401, "": 401} {
		r := s.do("GET", "/w/v/main/keys/small", "Authorization: "+auth)
		if r.StatusCode != status || (status == 401) != (len(r.Header.Values("WWW-Authenticate")) == 2) {
			t.Errorf("%q: status %d, want %d; %v", auth, r.StatusCode, status, r.Header)
		}
	}
	if r := s.do("GET", "/-/health"); r.StatusCode != 200 {
		t.Errorf("health: status %d", r.StatusCode)
	}
}

func FuzzPath(f *testing.F) {
	for _, s := range []string{"/", "/w", "/w/v/main/a/b", "/w/v/a%2Fb/c%20d/", "/a%2Fb/v/a:b@{1:0%2F1}~1/x", "//w/./v/main/.//x/.", "/w/v/%2E", "/w/v2/x/%2e%2e/y", "//", "/w/v/%ff/"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := parsePath(text)
		if err != nil {
			return
		}
		if strings.HasPrefix(p.key, "/") || p.key != "" && kv.ValidKey(p.key) != nil {
			t.Fatalf("%q has the key %q", text, p.key)
		}
		for name := range strings.SplitSeq(p.key, "/") {
			if name == ".." || name == "." {
				t.Fatalf("%q has the key %q", text, p.key)
			}
		}
		if p.rev == "" {
			return
		}
		again := "/" + serve.EscapeSegment(p.db) + "/" + p.form + "/" + serve.EscapeSegment(swapInNames(p.rev, "/", ":")) + "/" + serve.EscapePath(p.key)
		if p.key == "" && !p.dir {
			again = strings.TrimSuffix(again, "/")
		} else if p.key != "" && p.dir {
			again += "/"
		}
		if q, err := parsePath(again); err != nil || q != p {
			t.Fatalf("%q is %+v, printed %q, which is %+v, %v", text, p, again, q, err)
		}
	})
}

// Arrays are read in the other format without a copy.
func TestFormats(t *testing.T) {
	s := newSite(t, Options{})
	must.Get(s.db.Update(bg, "main", "sharded", func(e *engine.Session) error {
		typ, err := dtype.ParseV3(json.RawMessage(`"int16"`))
		if err != nil {
			return err
		}
		_, err = e.CreateArray(bg, "sharded", zarr.Spec{Shape: []int64{4}, Chunks: []int64{2}, Shards: []int64{4}, Type: typ})
		return err
	}))(t)
	chunk := body(t, s.do("GET", "/w/v/main/t/c/1/0"))
	tag := s.do("GET", "/w/v/main/t/c/1/0").Header.Get("ETag")
	for _, c := range []struct {
		path   string
		status int
		want   string
	}{
		{"/w/v2/main/t/1.0", 200, chunk},
		{"/w/v3/main/t/c/1/0", 200, chunk},
		{"/w/v2/main/t/.zarray", 200, `"zarr_format": 2`},
		{"/w/v2/main/t", 301, ""},
		{"/w/v2/main/.zgroup", 200, `"zarr_format": 2`},
		{"/w/v2/main/t/.zattrs", 200, "_ARRAY_DIMENSIONS"},
		{"/w/v3/main/t/zarr.json", 200, "node_type"},
		{"/w/v2/main/t/zarr.json", 404, ""},
		{"/w/v2/main/t/c/1/0", 404, ""},
		{"/w/v2/main/t/9.0", 404, ""},
		{"/w/v2/main/keys/small", 404, ""},
		{"/w/v2/main/sharded/.zarray", 406, "sharding"},
		{"/w/v2/main/sharded/0", 406, ""},
		{"/w/v2/main/", 200, `href="t/"`},
		{"/w/v2/main/t/", 200, `href="1.0"`},
		{"/w/v3/main/t/c/", 200, `href="1/"`},
	} {
		r := s.do("GET", c.path)
		if text := body(t, r); r.StatusCode != c.status || !strings.Contains(text, c.want) {
			t.Errorf("%s: status %d, %s; want %d, %s", c.path, r.StatusCode, text, c.status, c.want)
		}
	}
	if r := s.do("GET", "/w/v2/main/t/1.0"); r.Header.Get("ETag") != tag {
		t.Errorf("ETag %s, want %s", r.Header.Get("ETag"), tag)
	}
	if r := s.send("PUT", "/w/v2/main/t/1.0?commit=x", strings.NewReader("x")); r.StatusCode != 403 {
		t.Errorf("a write: status %d", r.StatusCode)
	}
}

// Readiness is that of each database, also of one that cannot be opened. Names and reasons are for those who may read.
func TestReady(t *testing.T) {
	s := newSite(t, Options{Anonymous: reader})
	get := func(path string) (int, string) {
		t.Helper()
		r := s.do("GET", path)
		return r.StatusCode, string(must.Get(io.ReadAll(r.Body))(t))
	}
	if status, body := get("/-/ready"); status != 200 || body != "w: ok\n" {
		t.Errorf("%d, %s", status, body)
	}
	found := map[string]serve.Opener{"broken": func(context.Context) (db *engine.DB, lacks, err error) { return nil, nil, errors.New("/secret/path") }}
	table := serve.New(serve.Options{Look: func() map[string]serve.Opener { return found }})
	must.Do(t, table.AddDatabase("w", s.db))
	defer table.Close(bg)
	s.h = New(table, Options{Anonymous: reader})
	if status, body := get("/-/ready"); status != 503 || !strings.Contains(body, "w: ok\n") || !strings.Contains(body, "broken: ") || strings.Contains(body, "secret") {
		t.Errorf("%d, %s", status, body)
	}
	if status, body := get("/-/ready?db=w"); status != 200 {
		t.Errorf("%d, %s", status, body)
	}
	if status, body := get("/-/ready?db=nope"); status != 503 || body != "nope: there is no database of that name\n" {
		t.Errorf("%d, %s", status, body)
	}
	if status, body := get("/broken/v/main/"); status != 503 || strings.Contains(body, "secret") {
		t.Errorf("%d, %s", status, body)
	}
	if status, _ := get("/-/health"); status != 200 {
		t.Errorf("health: %d", status)
	}
	s.h = New(table, Options{})
	if status, body := get("/-/ready"); status != 503 || body != "not ready\n" {
		t.Errorf("without a key: %d, %s", status, body)
	}
}
