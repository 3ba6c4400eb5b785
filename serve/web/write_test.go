package web

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/internal/crashtest"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/serve"
)

// people have names for keys.
var people = map[string]*serve.Principal{
	"reader": {Name: "reader"},
	"writer": {Name: "writer", Write: []string{"main"}},
	"admin":  {Name: "admin", Admin: true},
}

// named authenticates by name, for tests.
func named(r *http.Request) (*serve.Principal, error) {
	return people[strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")], nil
}

const asWriter = "Authorization: Bearer writer"

// ask sends JSON and reads JSON.
func (s *site) ask(status int, method, path, in string, out any, headers ...string) *http.Response {
	s.t.Helper()
	r := s.send(method, path, strings.NewReader(in), append([]string{asWriter}, headers...)...)
	text := body(s.t, r)
	if r.StatusCode != status {
		s.t.Fatalf("%s %s: status %d, want %d: %s", method, path, r.StatusCode, status, text)
	}
	if out != nil {
		if err := json.Unmarshal([]byte(text), out); err != nil {
			s.t.Fatalf("%s %s: %v: %s", method, path, err, text)
		}
	}
	return r
}

func TestSessions(t *testing.T) {
	var log bytes.Buffer
	s := newSite(t, Options{Authenticate: named, Log: slog.New(slog.NewTextHandler(&log, nil))})
	var made sessionJSON
	r := s.ask(201, "POST", "/-/api/sessions", `{"db":"w","label":"load"}`, &made)
	at := "/-/api/sessions/w/" + made.ID
	if "/-/api/"+r.Header.Get("Location") != at || made.Branch != "main" || made.Base != s.first.String() || made.Label != "load" {
		t.Fatalf("%s: %+v", r.Header.Get("Location"), made)
	}
	key := "/w/v/~" + made.ID + "/keys/"
	put := func(status int, name, value string, headers ...string) string {
		t.Helper()
		return s.ask(status, "PUT", key+name, value, nil, headers...).Header.Get("ETag")
	}
	tag := put(201, "new", "one")
	put(412, "new", "two", "If-None-Match: *")
	second := put(204, "new", "two", "If-Match: "+tag)
	put(412, "new", "three", "If-Match: "+tag)
	put(412, "none", "x", `If-Match: *`)
	put(204, "new", "three", `If-Match: "other", `+second)
	put(201, "fresh", "x", "If-None-Match: *")
	put(501, "fresh", "x", `If-None-Match: "a"`)
	put(415, "fresh", "x", "Content-Encoding: gzip")
	put(400, "dir/", "x")
	s.ask(400, "DELETE", key+"/", "", nil) // as with an empty variable before the last slash
	s.ask(400, "DELETE", "/w/v/~"+made.ID+"//", "", nil)
	s.ask(400, "DELETE", "/w/v/~"+made.ID+"/.", "", nil)
	put(400, "../x", "x")
	if r := s.do("GET", key+"new", asWriter); body(t, r) != "three" || r.Header.Get("Cache-Control") != "no-cache" {
		t.Errorf("read in the session: headers %v", r.Header)
	}
	if r := s.do("GET", "/w/v/main/keys/new", asWriter); r.StatusCode != 404 {
		t.Errorf("before the commit: status %d", r.StatusCode)
	}
	s.ask(204, "DELETE", key+"small", "", nil)
	s.ask(204, "DELETE", key+"small", "", nil)
	s.ask(412, "DELETE", key+"big", "", nil, `If-Match: "x"`)
	s.ask(204, "DELETE", "/w/v/~"+made.ID+"/t/c/", "", nil)

	var status sessionJSON
	s.ask(200, "GET", at, "", &status)
	if got := fmt.Sprint(status.Changes.Chunks, status.Changes.Keys); got != "map[t:2] [keys/fresh keys/new keys/small]" {
		t.Errorf("status: %s", got)
	}
	var all []sessionJSON
	s.ask(200, "GET", "/-/api/sessions?db=w", "", &all)
	if len(all) != 1 || all[0].ID != made.ID || all[0].Label != "load" || all[0].User != "writer" || all[0].Program == "" {
		t.Errorf("sessions: %+v", all)
	}
	s.ask(204, "POST", at+"/savepoint", "", nil)
	var c commitJSON
	s.ask(200, "POST", at+"/commit", `{"message":"by HTTP","properties":{"a":"b"}}`, &c)
	if c.Author != "writer" || c.Message != "by HTTP" || c.Parents[0] != s.first.String() || c.Properties["a"] != "b" {
		t.Errorf("commit: %+v", c)
	}
	if r := s.do("GET", "/w/v/main/keys/new", asWriter); body(t, r) != "three" || r.Header.Get("Zarrdb-Commit") != c.ID {
		t.Errorf("after the commit: headers %v", r.Header)
	}
	s.ask(404, "POST", at+"/commit", `{}`, nil)
	s.ask(404, "PUT", key+"new", "late", nil)

	s.ask(201, "POST", "/-/api/sessions", `{"db":"w"}`, &made)
	s.ask(204, "DELETE", "/-/api/sessions/w/"+made.ID, "", nil)
	s.ask(404, "GET", "/-/api/sessions/w/"+made.ID, "", nil)
	s.ask(404, "DELETE", "/-/api/sessions/w/"+made.ID, "", nil)
	s.ask(201, "POST", "/-/api/sessions", `{"db":"w"}`, &made)
	for query, want := range map[string]int{"": 400, "&older_than=soon": 400, "&older_than=1h": 200} {
		s.ask(want, "DELETE", "/-/api/sessions?db=w"+query, "", nil)
	}
	s.ask(200, "GET", "/-/api/sessions/w/"+made.ID, "", nil)
	s.ask(200, "DELETE", "/-/api/sessions?db=w&older_than=0s", "", &all)
	if len(all) != 1 || all[0].ID != made.ID {
		t.Errorf("ended %+v", all)
	}
	s.ask(404, "GET", "/-/api/sessions/w/"+made.ID, "", nil)
	for _, want := range []string{"msg=begin", "msg=write method=PUT database=w who=writer", "msg=commit database=w who=writer branch=main commit=" + c.ID, "msg=discard"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log has no %q:\n%s", want, &log)
		}
	}
}

// A commit that meets another change says what it is.
func TestConflict(t *testing.T) {
	s := newSite(t, Options{Authenticate: named})
	var made sessionJSON
	s.ask(201, "POST", "/-/api/sessions", `{"db":"w","branch":"main"}`, &made)
	s.ask(204, "PUT", "/w/v/~"+made.ID+"/keys/small", "mine", nil)
	for _, other := range []string{"theirs", "mine"} { // an update to the same value would be lost too
		must.Get(s.db.Update(bg, "main", "other", func(e *engine.Session) error { return e.Set(bg, "keys/small", []byte(other)) }))(t)
		var report struct {
			Error     string
			Conflicts []struct {
				Kind, Path string
				Same       bool
			}
		}
		s.ask(409, "POST", "/-/api/sessions/w/"+made.ID+"/commit", `{"message":"mine"}`, &report)
		if c := report.Conflicts; report.Error == "" || len(c) != 1 || c[0].Kind != "document" || c[0].Path != "keys/small" || c[0].Same != (other == "mine") {
			t.Errorf("other %s: report %+v", other, report)
		}
	}
	s.ask(204, "DELETE", "/-/api/sessions/w/"+made.ID, "", nil)
}

func TestCommitOfOneWrite(t *testing.T) {
	s := newSite(t, Options{Authenticate: named})
	s.ask(403, "PUT", "/w/v/main/keys/one", "1", nil)
	r := s.ask(201, "PUT", "/w/v/main/keys/one?commit=one%20key", "1", nil)
	s.ask(204, "PUT", "/w/v/main/keys/one", "2", nil, "Zarrdb-Commit: again", "If-Match: "+r.Header.Get("ETag"))
	s.ask(412, "PUT", "/w/v/main/keys/one", "3", nil, "Zarrdb-Commit: again", "If-Match: "+r.Header.Get("ETag"))
	s.ask(403, "PUT", "/w/v/feature%2Fone/keys/one?commit=x", "1", nil)
	s.ask(403, "PUT", "/w/v/"+s.first.String()+"/keys/one?commit=x", "1", nil)
	head := must.Get(s.db.Head(bg, "main"))(t)
	c, err := s.db.Versions().Lookup(bg, head)
	if err != nil || c.Message != "again" || c.Author != "writer" {
		t.Errorf("%+v, %v", c, err)
	}
	if list, err := s.db.Sessions(bg); err != nil || len(list) != 0 {
		t.Errorf("sessions are left: %+v, %v", list, err)
	}
}

func TestWhoMayWrite(t *testing.T) {
	for _, readOnly := range []bool{false, true} {
		s := newSite(t, Options{Authenticate: named, ReadOnly: readOnly})
		for _, c := range []struct {
			who, method, path, body string
			status                  int
		}{
			{"reader", "POST", "/-/api/sessions", `{"db":"w"}`, 403},
			{"reader", "PUT", "/w/v/main/keys/x?commit=x", "x", 403},
			{"writer", "POST", "/-/api/sessions", `{"db":"w","branch":"feature/one"}`, 403},
			{"writer", "POST", "/-/api/sessions", `{"db":"w"}`, 201},
			{"writer", "POST", "/-/api/sessions", `{"db":"x"}`, 404},
			{"writer", "POST", "/-/api/sessions", `{"db":"w","no":1}`, 400},
			{"writer", "POST", "/-/api/sessions", `{"db":`, 400},
			{"admin", "PUT", "/w/v/feature%2Fone/keys/x?commit=x", "x", 201},
			{"admin", "PUT", "/w/v/feature:one/keys/y?commit=x", "x", 201},
			{"nobody", "PUT", "/w/v/main/keys/x?commit=x", "x", 401},
			{"writer", "GET", "/-/api/sessions/w/zz", "", 400},
			{"writer", "POST", "/-/api/nothing", "", 404},
		} {
			want := c.status
			if readOnly && want == 201 {
				want = 403
			}
			if readOnly && c.method == "POST" && c.path == "/-/api/sessions" {
				want = 403
			}
			r := s.send(c.method, c.path, strings.NewReader(c.body), "Authorization: Bearer "+c.who)
			if r.StatusCode != want {
				t.Errorf("read-only %v: %+v: status %d, want %d: %s", readOnly, c, r.StatusCode, want, body(t, r))
			} else if text := body(t, r); readOnly && want == 403 && !strings.Contains(text, "--keys") {
				t.Errorf("%+v: the error names no flag: %s", c, text)
			}
		}
	}
}

// A reader cannot use the session of a writer.
func TestSessionsAreNotForReaders(t *testing.T) {
	s := newSite(t, Options{Authenticate: named})
	var made sessionJSON
	s.ask(201, "POST", "/-/api/sessions", `{"db":"w"}`, &made)
	for _, path := range []string{"/w/v/~" + made.ID + "/keys/small", "/-/api/sessions/w/" + made.ID} {
		if r := s.do("GET", path, "Authorization: Bearer reader"); r.StatusCode != 403 {
			t.Errorf("%s: status %d", path, r.StatusCode)
		}
	}
	if text := body(t, s.do("GET", "/-/api/sessions?db=w", "Authorization: Bearer reader")); text != "[]\n" {
		t.Errorf("sessions: %s", text)
	}
}

// A page elsewhere cannot write with the password that a browser remembers.
func TestCrossSiteWrites(t *testing.T) {
	s := newSite(t, Options{Authenticate: func(*http.Request) (*serve.Principal, error) { return people["admin"], nil }})
	path := "/w/v/main/keys/x?commit=x"
	for _, c := range []struct {
		status  int
		headers []string
	}{
		{403, []string{"Authorization: Basic eDp5", "Sec-Fetch-Site: cross-site"}},
		{403, []string{"Authorization: Basic eDp5", "Origin: https://evil.example"}},
		{201, []string{"Authorization: Basic eDp5"}},
		{204, []string{"Authorization: Bearer xyz", "Origin: https://app.example", "Sec-Fetch-Site: cross-site"}},
	} {
		if r := s.send("PUT", path, strings.NewReader("x"), c.headers...); r.StatusCode != c.status {
			t.Errorf("%q: status %d, want %d", c.headers, r.StatusCode, c.status)
		} else if text := body(t, r); c.status == 403 && !strings.Contains(text, "Bearer token") {
			t.Errorf("%q: the error names no way: %s", c.headers, text)
		}
	}
}

// Consolidated metadata that was made again can be replaced by its ETag.
func TestIfMatchOfTrueCopies(t *testing.T) {
	s := newSite(t, Options{Authenticate: named})
	must.Get(s.db.Update(bg, "main", "stale", func(e *engine.Session) error {
		return e.Set(bg, "zarr.json", []byte(`{"zarr_format":3,"node_type":"group","consolidated_metadata":{"kind":"inline","must_understand":false,"metadata":{"gone":{}}}}`))
	}))(t)
	r := s.do("GET", "/w/v/main/zarr.json", asWriter)
	if doc := body(t, r); strings.Contains(doc, "gone") {
		t.Fatalf("a stale copy is served: %s", doc)
	}
	s.ask(412, "PUT", "/w/v/main/zarr.json?commit=x", `{"zarr_format":3,"node_type":"group"}`, nil, `If-Match: "x"`)
	s.ask(204, "PUT", "/w/v/main/zarr.json?commit=x", `{"zarr_format":3,"node_type":"group"}`, nil, "If-Match: "+r.Header.Get("ETag"))
}

func TestBodies(t *testing.T) {
	s := newSite(t, Options{Authenticate: named, BodyBytes: 3 << 20})
	path := "/w/v/main/keys/x?commit=x"
	send := func(b io.Reader, length int64) int {
		r := httptest.NewRequest("PUT", path, b)
		r.ContentLength = length
		r.Header.Set("Authorization", "Bearer writer")
		w := httptest.NewRecorder()
		s.h.ServeHTTP(w, r)
		return w.Code
	}
	big := s.big
	for _, c := range []struct {
		what   string
		b      io.Reader
		length int64
		status int
	}{
		{"all there is", bytes.NewReader(big), int64(len(big)), 201},
		{"of unknown length", bytes.NewReader(big), -1, 204},
		{"byte by byte", iotest.OneByteReader(bytes.NewReader(big[:5000])), 5000, 204},
		{"too long", io.MultiReader(bytes.NewReader(big), strings.NewReader("x")), -1, 413},
		{"announced too long", strings.NewReader("x"), 1 << 62, 413},
		{"ends early", iotest.ErrReader(io.ErrUnexpectedEOF), 10, 400},
		{"stalls", iotest.ErrReader(timeout{}), 10, 408},
	} {
		if got := send(c.b, c.length); got != c.status {
			t.Errorf("%s: status %d, want %d", c.what, got, c.status)
		}
	}
	if left := s.h.(*handler).memory.left.Load(); left != 6<<20 {
		t.Errorf("%d bytes of memory are left", left)
	}
	v := s.do("GET", "/w/v/main/keys/x", asWriter)
	if got := body(t, v); got != string(big[:5000]) {
		t.Errorf("a body of %d bytes", len(got))
	}
	s.h.(*handler).memory.left.Store(0)
	if got := send(strings.NewReader("x"), 1); got != 503 {
		t.Errorf("without memory: status %d", got)
	}
}

type timeout struct{}

func (timeout) Error() string { return "i/o timeout" }
func (timeout) Timeout() bool { return true }

// A write that fails leaves neither a session nor a commit.
func TestFailedCommitOfOne(t *testing.T) {
	s := newSite(t, Options{Authenticate: named})
	s.ask(400, "PUT", "/w/v/main/"+strings.Repeat("k", serve.MaxKey+1)+"?commit=x", "1", nil)
	s.ask(412, "PUT", "/w/v/main/keys/small?commit=x", "1", nil, "If-None-Match: *")
	if head, _ := s.db.Head(bg, "main"); head != s.first {
		t.Error("there is a commit")
	}
	if list, _ := s.db.Sessions(bg); len(list) != 0 {
		t.Errorf("sessions: %+v", list)
	}
	if v, err := s.db.At(bg, "main"); err != nil {
		t.Fatal(err)
	} else if b, _ := kv.Get(bg, v, "keys/small"); string(b) != "0123456789" {
		t.Errorf("value %q", b)
	}
}

// After a fault that passes, the first request may be one that discards a session.
func TestAbortAfterFault(t *testing.T) {
	fault := crashtest.Faults{Err: syscall.ENOSPC, Match: func(op errorfs.Op) bool { return crashtest.IsWrite(op) && filepath.Base(op.Path) != "LOCK" }}
	fault.Off.Store(true)
	fs := fault.Wrap(vfs.NewMem())
	table := serve.New(serve.Options{})
	must.Do(t, table.Open(bg, "w", func(ctx context.Context) (db *engine.DB, lacks, err error) {
		db, err = engine.Open(ctx, "w", &engine.Options{FS: fs, Create: true})
		return db, nil, err
	}))
	defer table.Close(bg)
	s := &site{t: t, h: New(table, Options{Authenticate: named})}
	var made sessionJSON
	s.ask(201, "POST", "/-/api/sessions", `{"db":"w"}`, &made)
	fault.Off.Store(false)
	s.ask(503, "POST", "/-/api/sessions", `{"db":"w"}`, nil)
	fault.Off.Store(true)
	s.ask(204, "DELETE", "/-/api/sessions/w/"+made.ID, "", nil)
}
