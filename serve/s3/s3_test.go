package s3

import (
	"bytes"
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/minio/minio-go/v7/pkg/signer"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/serve"
	"github.com/zarrdb/zarrdb/serve/auth"
	"github.com/zarrdb/zarrdb/txn"
)

var bg = context.Background()

const (
	writerSecret = "the-secret-of-the-writer"
	oldSecret    = "the-older-secret-of-the-writer"
	readerSecret = "the-secret-of-the-reader"
)

// site is a served database.
type site struct {
	t     *testing.T
	db    *engine.DB
	table *serve.Table
	h     *Handler
	url   string
	first txn.CommitID
	log   syncBuffer
	keys  string // the key file
}

// writeKeys replaces the key file.
func writeKeys(t *testing.T, s *site, text string) {
	t.Helper()
	must.Do(t, os.WriteFile(s.keys, []byte(text), 0o600))
	keys := must.Get(auth.Load(s.keys, nil))(t)
	s.h.o.Keys = keys
}

type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

func newSite(t *testing.T, change func(*Options)) *site {
	t.Helper()
	db, err := engine.Open(bg, "db", &engine.Options{FS: vfs.NewMem(), Author: "tester", Create: true})
	must.Do(t, err)
	must.Get(db.Update(bg, "main", "first", func(e *engine.Session) error {
		for _, key := range []string{"zarr.json", "a/zarr.json", "a/c/0/0", "a/c/0/1", "a-b/zarr.json", "empty"} {
			value := []byte("value of " + key)
			if key == "empty" {
				value = nil
			}
			if err := e.Set(bg, key, value); err != nil {
				return err
			}
		}
		return nil
	}))(t)
	s := &site{t: t, db: db}
	s.first = must.Get(db.Head(bg, "main"))(t)
	must.Do(t, errors.Join(db.Versions().CreateBranch(bg, "feature/one", s.first), db.Versions().CreateTag(bg, "v1", s.first)))
	file := filepath.Join(t.TempDir(), "keys")
	keys := "writer write:main " + oldSecret + "\nwriter write:main " + writerSecret + "\nreader read " + readerSecret + "\n"
	must.Do(t, os.WriteFile(file, []byte(keys), 0o600))
	s.keys = file
	o := Options{SpoolDir: t.TempDir(), Log: slog.New(slog.NewTextHandler(&s.log, nil))}
	o.Keys = must.Get(auth.Load(file, nil))(t)
	if change != nil {
		change(&o)
	}
	s.table = serve.New(serve.Options{Log: o.Log})
	must.Do(t, s.table.AddDatabase("w", db))
	s.h = New(s.table, o)
	server := httptest.NewServer(s.h)
	s.url = server.URL
	t.Cleanup(func() {
		server.Close()
		left, _ := filepath.Glob(filepath.Join(o.SpoolDir, "*"))
		if err := s.h.Close(); err != nil {
			t.Error(err)
		}
		if again, _ := filepath.Glob(filepath.Join(o.SpoolDir, "*")); len(again) > 0 {
			t.Errorf("temporary files stay: %d of %d", len(again), len(left))
		}
		if err := errors.Join(s.table.Close(bg), db.Close()); err != nil {
			t.Error(err)
		}
	})
	return s
}

// client signs requests.
type client struct {
	s            *site
	name, secret string
	bucket       string              // default w
	change       func(*http.Request) // after it was signed
}

func (s *site) client(name, secret string) *client {
	return &client{s: s, name: name, secret: secret}
}

// answer is what a request gets: a code of S3 if it failed.
type answer struct {
	status     int
	code, body string
	head       http.Header
}

// do sends a request about an object. Headers come as "Name: value".
func (c *client) do(method, object, query, body string, headers ...string) answer {
	c.s.t.Helper()
	r, err := http.NewRequest(method, c.s.url, strings.NewReader(body))
	if err != nil {
		c.s.t.Fatal(err)
	}
	r.URL.Path, r.URL.RawQuery = "/"+cmp.Or(c.bucket, "w"), query
	if object != "" {
		r.URL.Path += "/" + object
	}
	sum := sha256.Sum256([]byte(body))
	r.Header.Set("X-Amz-Content-Sha256", hex.EncodeToString(sum[:]))
	for _, line := range headers {
		if name, value, ok := strings.Cut(line, ": "); ok {
			r.Header.Set(name, value)
		}
	}
	r = signer.SignV4(*r, c.name, c.secret, "", "us-east-1")
	if c.change != nil {
		c.change(r)
	}
	return send(c.s.t, r)
}

func send(t *testing.T, r *http.Request) answer {
	t.Helper()
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return answer{code: serve.Clip(err.Error())}
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		return answer{code: err.Error()}
	}
	out := answer{status: res.StatusCode, body: string(b), head: res.Header}
	var failed struct{ Code string }
	if res.StatusCode >= 300 && xml.Unmarshal(b, &failed) == nil {
		out.code = failed.Code
	}
	return out
}

// listing is a page of objects.
type listing struct {
	Contents []struct {
		Key, ETag string
		Size      int64
	}
	CommonPrefixes                    []struct{ Prefix string }
	IsTruncated                       bool
	NextMarker, NextContinuationToken string
}

// list returns all names of a listing, in pages.
func (c *client) list(version, prefix, delimiter string, limit int) (names []string) {
	c.s.t.Helper()
	q := url.Values{"prefix": {prefix}, "max-keys": {fmt.Sprint(limit)}}
	if delimiter != "" {
		q.Set("delimiter", delimiter)
	}
	if version == "v2" {
		q.Set("list-type", "2")
	}
	for range 50 {
		a := c.do("GET", "", q.Encode(), "")
		var page listing
		if err := xml.Unmarshal([]byte(a.body), &page); err != nil || a.status != 200 {
			c.s.t.Fatalf("list %v: status %d, %v: %s", q, a.status, err, a.body)
		}
		last := page.NextMarker
		for _, o := range page.Contents {
			names = append(names, o.Key)
			if page.NextMarker == "" {
				last = o.Key
			}
		}
		for _, p := range page.CommonPrefixes {
			names = append(names, p.Prefix)
		}
		switch {
		case !page.IsTruncated:
			slices.Sort(names)
			return names
		case version == "v2":
			q.Set("continuation-token", page.NextContinuationToken)
		default:
			q.Set("marker", last)
		}
	}
	c.s.t.Fatalf("list %v: it does not end", q)
	return nil
}

// begin opens a session of the writer and returns where it is.
func (s *site) begin() (*serve.Session, string) {
	s.t.Helper()
	session, err := s.table.Begin(bg, &serve.Principal{Name: "writer", Write: []string{"main"}}, "w", serve.BeginOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	return session, "~" + session.Engine().ID().String() + "/"
}

func TestReading(t *testing.T) {
	s := newSite(t, nil)
	c := s.client("reader", readerSecret)
	tag := ""
	for _, rev := range []string{"main", "v1", "feature%2Fone", s.first.String(), "main~0", "main@{0}"} {
		a := c.do("GET", rev+"/a/c/0/0", "", "")
		if a.status != 200 || a.body != "value of a/c/0/0" {
			t.Errorf("%s: %+v", rev, a)
		}
		tag = a.head.Get("ETag")
	}
	if len(tag) != 44 || !strings.HasSuffix(tag, `-1"`) {
		t.Errorf("ETag %s", tag)
	}
	for _, test := range []struct {
		method, key, header string
		status              int
		want                string // the body, or the code
	}{
		{"GET", "main/a/c/0/0", "Range: bytes=0-4", 206, "value"},
		{"GET", "main/a/c/0/0", "Range: bytes=9-", 206, "a/c/0/0"},
		{"GET", "main/a/c/0/0", "Range: bytes=-3", 206, "0/0"},
		{"GET", "main/a/c/0/0", "Range: bytes=-100", 206, "value of a/c/0/0"},
		{"GET", "main/a/c/0/0", "Range: bytes=9-9223372036854775807", 206, "a/c/0/0"},
		{"GET", "main/a/c/0/0", "Range: bytes=16-", 416, "InvalidRange"},
		{"GET", "main/a/c/0/0", "Range: bytes=4611686018427387904-", 416, "InvalidRange"},
		{"GET", "main/a/c/0/0", "Range: bytes=0-1,3-4", 200, "value of a/c/0/0"}, // S3 has no answers of several ranges
		{"GET", "main/a/c/0/0", "Range: bytes=5-2", 200, "value of a/c/0/0"},
		{"GET", "main/a/c/0/0", "Range: bytes=-0", 416, "InvalidRange"},
		{"GET", "main/a/c/0/0", "Range: lines=0-1", 200, "value of a/c/0/0"},
		{"GET", "main/empty", "Range: bytes=0-", 416, "InvalidRange"},
		{"GET", "main/a/c/0/0", "If-Match: " + tag, 200, "value of a/c/0/0"},
		{"GET", "main/a/c/0/0", "If-Match: \"0\"", 412, "PreconditionFailed"},
		{"GET", "main/a/c/0/0", "If-None-Match: " + tag, 304, ""},
		{"GET", "main/empty", "", 200, ""},
		{"HEAD", "main/a/c/0/0", "", 200, ""},
		{"HEAD", "main/none", "", 404, ""},
		{"GET", "main/none", "", 404, "NoSuchKey"},
		{"GET", "none/a", "", 404, "NoSuchKey"},
		{"GET", "main", "", 404, "NoSuchKey"},
		{"HEAD", "main/", "", 404, ""},
		{"HEAD", "main/a/", "", 404, ""},
		{"GET", "main/a//b", "", 404, "NoSuchKey"},
		{"GET", "%zz/a", "", 400, "InvalidURI"},
		{"GET", "main/" + strings.Repeat("k", 5000), "", 400, "KeyTooLongError"},
	} {
		a := c.do(test.method, test.key, "", "", test.header)
		got := a.body
		if a.code != "" {
			got = a.code
		}
		if a.status != test.status || got != test.want {
			t.Errorf("%s %s with %s: status %d, %q; want %d, %q", test.method, serve.Clip(test.key), test.header, a.status, got, test.status, test.want)
		}
	}
	a := c.do("HEAD", "main/a/c/0/0", "", "")
	if a.head.Get("Content-Length") != "16" || a.head.Get("ETag") != tag || a.head.Get("Last-Modified") == "" {
		t.Errorf("%v", a.head)
	}
	if a := c.do("GET", "", "versions=", ""); a.status != 200 {
		t.Errorf("versions: %+v", a)
	}
	if a := c.do("GET", "", "versioning=", ""); a.status != 200 {
		t.Errorf("versioning: %+v", a)
	}
}

func TestListing(t *testing.T) {
	s := newSite(t, nil)
	_, in := s.begin()
	for _, test := range []struct{ prefix, delimiter, want string }{
		{"", "/", "feature%2Fone/ main/ v1/"},
		{"m", "/", "main/"},
		{s.first.String(), "/", s.first.String() + "/"},
		{"none", "/", ""},
		{"main/", "/", "main/a-b/ main/a/ main/empty main/zarr.json"},
		{"main/a", "/", "main/a-b/ main/a/"},
		{"main/a/", "/", "main/a/c/ main/a/zarr.json"},
		{"main/none/", "/", ""},
		{"none/", "/", ""},
		{"feature%2Fone/a/c/", "", "feature%2Fone/a/c/0/0 feature%2Fone/a/c/0/1"},
		{"v1/a", "", "v1/a-b/zarr.json v1/a/c/0/0 v1/a/c/0/1 v1/a/zarr.json"},
		{in + "a/", "/", in + "a/c/ " + in + "a/zarr.json"},
	} {
		c := s.client("reader", readerSecret)
		if strings.HasPrefix(test.prefix, "~") {
			c = s.client("writer", writerSecret)
		}
		for _, limit := range []int{1, 2, 3, 1000} {
			for _, version := range []string{"v1", "v2"} {
				if got := strings.Join(c.list(version, test.prefix, test.delimiter, limit), " "); got != test.want {
					t.Errorf("%s of %q, %q in pages of %d: %s, want %s", version, test.prefix, test.delimiter, limit, got, test.want)
				}
			}
		}
	}
	// Without a delimiter everything of every branch is listed.
	if names := s.client("reader", readerSecret).list("v2", "", "", 5); len(names) != 12 {
		t.Errorf("objects of all branches: %q", names)
	}
}

// An object of a session has the time of the base until it is written, and then that of
// the write, in listings too. Programs that copy what is newer rely on both.
func TestTimesOfSessions(t *testing.T) {
	s := newSite(t, nil)
	c := s.client("writer", writerSecret)
	_, in := s.begin()
	base := must.Get(s.db.Versions().Lookup(bg, s.first))(t)
	at := func(key string) (at time.Time) {
		t.Helper()
		at = must.Get(time.Parse(http.TimeFormat, c.do("HEAD", in+key, "", "").head.Get("Last-Modified")))(t)
		_, text, ok := strings.Cut(c.do("GET", "", "list-type=2&prefix="+url.QueryEscape(in+key), "").body, "<LastModified>")
		text, _, _ = strings.Cut(text, "<")
		if listed, err := time.Parse(time.RFC3339, text); !ok || err != nil || !listed.Truncate(time.Second).Equal(at) {
			t.Errorf("%s: %v, listed %s, %v", key, at, text, err)
		}
		return at
	}
	unchanged := base.Time.Truncate(time.Second)
	for _, key := range []string{"a/zarr.json", "a/c/0/0", "empty"} {
		if got := at(key); !got.Equal(unchanged) {
			t.Errorf("%s, which was not written: %v, want %v", key, got, unchanged)
		}
	}
	for _, value := range []string{"value of a/c/0/0", "other", "value of a/c/0/0"} { // the first is what the base has
		before := time.Now().Truncate(time.Second)
		c.do("PUT", in+"a/c/0/0", "", value)
		first := at("a/c/0/0")
		if first.Before(before) || first.After(time.Now()) {
			t.Errorf("%q was written at %v, not before %v", value, first, before)
		}
		c.do("PUT", in+"a/c/0/1", "", value+value)
		if again := at("a/c/0/0"); !again.Equal(first) {
			t.Errorf("the time of %q changed from %v to %v", value, first, again)
		}
	}
	if got := at("a/zarr.json"); !got.Equal(unchanged) {
		t.Errorf("after writes of others: %v", got)
	}
}

func TestWriting(t *testing.T) {
	s := newSite(t, nil)
	c := s.client("writer", writerSecret)
	session, in := s.begin()
	a := c.do("PUT", in+"new", "", "one")
	tag := a.head.Get("ETag")
	if head := c.do("HEAD", in+"new", "", ""); a.status != 200 || head.head.Get("ETag") != tag {
		t.Fatalf("%+v, then %+v", a, head)
	}
	if a := c.do("PUT", in+"new", "", "two", "If-Match: "+tag); a.status != 200 {
		t.Fatalf("%+v", a)
	}
	for _, test := range []struct{ method, key, query, header, want string }{
		{"PUT", in + "new", "", "If-Match: " + tag, "PreconditionFailed"},
		{"PUT", in + "new", "", "If-None-Match: *", "PreconditionFailed"},
		{"PUT", in + "none", "", "If-Match: " + tag, "NoSuchKey"},
		{"PUT", in + "fresh", "", "If-None-Match: *", ""},
		{"PUT", "main/new", "", "", "AccessDenied"},
		{"PUT", "v1/new", "", "", "AccessDenied"},
		{"PUT", in + "a/../b", "", "", "InvalidURI"},
		{"PUT", in + "a//b", "", "", "InvalidURI"},
		{"PUT", in + "fresh", "", "Content-Md5: AAAAAAAAAAAAAAAAAAAAAA==", "BadDigest"},
		{"PUT", in + "fresh", "tagging=", "", "AccessDenied"},
		{"PUT", "", "", "", "BucketAlreadyOwnedByYou"},
		{"DELETE", "", "", "", "AccessDenied"},
		{"POST", "", "", "", "AccessDenied"},
		{"DELETE", "main/empty", "", "", "AccessDenied"},
		{"DELETE", in + "zarr.json", "", "", ""},
		{"DELETE", in + "none", "", "", ""},
		{"DELETE", in + "dir/", "", "", ""},
		{"PUT", in + "copy", "", "X-Amz-Copy-Source: /w/" + in + "new", ""},
		{"PUT", in + "copied", "", "X-Amz-Copy-Source: w/v1/a/c/0/0", ""},
		{"PUT", in + "copy", "", "X-Amz-Copy-Source: w/v1/none", "NoSuchKey"},
	} {
		a := c.do(test.method, test.key, test.query, "x", test.header)
		if test.header != "" && strings.HasPrefix(test.header, "X-Amz-Copy") || test.method == "DELETE" {
			a = c.do(test.method, test.key, test.query, "", test.header)
		}
		if a.code != test.want || (a.status < 300) != (test.want == "") {
			t.Errorf("%s %s with %s: %+v, want %q", test.method, test.key, test.header, a, test.want)
		}
	}
	// By time alone a value of a session is never an old one.
	since := c.do("GET", in+"new", "", "").head.Get("Last-Modified")
	c.do("PUT", in+"new", "", "tow")
	if a := c.do("GET", in+"new", "", "", "If-Modified-Since: "+since); a.status != 200 || a.body != "tow" {
		t.Errorf("changed in the same second: %+v", a)
	}
	c.do("PUT", in+"new", "", "two")
	big := strings.Repeat("0123456789abcdef", 3<<16)
	if a := c.do("PUT", in+"big", "", big); a.status != 200 {
		t.Errorf("a long value: %+v", a)
	}
	many := "<Delete><Object><Key>" + in + "a/c/0/0</Key></Object><Object><Key>" + in + "gone</Key></Object><Object><Key>main/empty</Key></Object></Delete>"
	if a := c.do("POST", "", "delete=", many); a.status != 200 || strings.Count(a.body, "<Deleted>") != 2 || !strings.Contains(strings.Join(strings.Fields(a.body), ""), "<Key>main/empty</Key><Code>AccessDenied</Code>") {
		t.Errorf("%+v", a)
	}
	commit, err := session.Commit(bg, txn.CommitOptions{Message: "by S3"})
	if err != nil || commit.Author != "writer" {
		t.Fatalf("%+v, %v", commit, err)
	}
	v := must.Get(s.db.At(bg, "main"))(t)
	defer v.Close()
	keys, err := kv.Keys(bg, v, "")
	if fmt.Sprint(keys) != "[a-b/zarr.json a/c/0/1 a/zarr.json big copied copy empty fresh new]" || err != nil {
		t.Errorf("keys %v, %v", keys, err)
	}
	for key, want := range map[string]string{"big": big, "copy": "two", "new": "two", "copied": "value of a/c/0/0"} {
		if b, err := kv.Get(bg, v, key); err != nil || string(b) != want {
			t.Errorf("%s: %d bytes, %v", key, len(b), err)
		}
	}
	if !strings.Contains(s.log.String(), "msg=write method=PUT database=w who=writer object="+in+"new") {
		t.Errorf("log:\n%s", &s.log)
	}
	if a := c.do("PUT", in+"late", "", "x"); a.status < 400 {
		t.Errorf("a session that has ended was written: %+v", a)
	}
}

// uploadID begins an upload.
func (c *client) uploadID(object string) string {
	c.s.t.Helper()
	a := c.do("POST", object, "uploads=", "")
	var out struct {
		ID string `xml:"UploadId"`
	}
	if err := xml.Unmarshal([]byte(a.body), &out); err != nil || out.ID == "" {
		c.s.t.Fatalf("%+v, %v", a, err)
	}
	return out.ID
}

// Uploads that are given up leave nothing; another key's are not there.
func TestUploads(t *testing.T) {
	s := newSite(t, func(o *Options) { o.BodyBytes = 12 << 20 })
	c := s.client("writer", writerSecret)
	session, in := s.begin()
	id := c.uploadID(in + "x")
	bodies := []string{strings.Repeat("a", 5<<20), strings.Repeat("b", 5<<20), strings.Repeat("c", 3<<20), "d"}
	var tags []string
	for i, body := range bodies {
		a := c.do("PUT", in+"x", fmt.Sprintf("partNumber=%d&uploadId=%s", i+1, id), body)
		if a.status != 200 {
			t.Fatalf("%+v", a)
		}
		tags = append(tags, a.head.Get("ETag"))
	}
	complete := func(parts ...int) answer {
		var b strings.Builder
		for _, n := range parts {
			fmt.Fprintf(&b, "<Part><PartNumber>%d</PartNumber><ETag>%s</ETag></Part>", n, tags[n-1])
		}
		return c.do("POST", in+"x", "uploadId="+id, "<CompleteMultipartUpload>"+b.String()+"</CompleteMultipartUpload>")
	}
	if a := s.client("reader", readerSecret).do("PUT", in+"x", "partNumber=1&uploadId="+id, "x"); a.code != "AccessDenied" {
		t.Errorf("a part of somebody else: %+v", a)
	}
	if a := c.do("PUT", in+"y", "partNumber=1&uploadId="+id, "x"); a.code != "NoSuchUpload" {
		t.Errorf("a part of another object: %+v", a)
	}
	if a := complete(2, 1); a.code != "InvalidPartOrder" {
		t.Errorf("parts in another order: %+v", a)
	}
	if a := complete(1, 2, 3); a.code != "EntityTooLarge" {
		t.Errorf("parts that are too long together: %+v", a)
	}
	if a := complete(); a.status < 400 {
		t.Errorf("no parts: %+v", a)
	}
	tags = append(tags, `"0"`)
	if a := complete(5); a.code != "InvalidPart" {
		t.Errorf("a part that is not there: %+v", a)
	}
	if a := complete(1, 2, 4); a.status != 200 {
		t.Errorf("%+v", a)
	}
	if b, err := kv.Get(bg, session.Engine(), "x"); err != nil || string(b) != bodies[0]+bodies[1]+bodies[3] {
		t.Errorf("%d bytes, %v", len(b), err)
	}
	// Parts may be copied from other objects.
	id = c.uploadID(in + "z")
	tags = nil
	for i, source := range []string{"", "bytes=0-4", "bytes=6-7"} {
		a := c.do("PUT", in+"z", fmt.Sprintf("partNumber=%d&uploadId=%s", i+1, id), "", "X-Amz-Copy-Source: w/main/a/c/0/0", "X-Amz-Copy-Source-Range: "+source)
		_, tag, _ := strings.Cut(a.body, "<ETag>")
		tag, _, _ = strings.Cut(tag, "</ETag>")
		tags = append(tags, tag)
	}
	for _, source := range []string{"bytes=6-16", "bytes=16-17", "bytes=x"} {
		if a := c.do("PUT", in+"z", "partNumber=4&uploadId="+id, "", "X-Amz-Copy-Source: w/main/a/c/0/0", "X-Amz-Copy-Source-Range: "+source); a.code != "InvalidArgument" {
			t.Errorf("a part that is copied from %s: %+v", source, a)
		}
	}
	var body strings.Builder
	for i, tag := range tags {
		fmt.Fprintf(&body, "<Part><PartNumber>%d</PartNumber><ETag>%s</ETag></Part>", i+1, tag)
	}
	document := "<CompleteMultipartUpload>" + body.String() + "</CompleteMultipartUpload>"
	full := []string{"X-Amz-Checksum-Type: FULL_OBJECT", "X-Amz-Checksum-Crc32: AAAAAA=="}
	if a := c.do("POST", in+"z", "uploadId="+id, document, full...); a.code != "BadDigest" {
		t.Errorf("another checksum of the object: %+v", a)
	}
	if a := c.do("POST", in+"z", "uploadId="+id, document); a.status != 200 {
		t.Errorf("%+v", a)
	}
	if b, err := kv.Get(bg, session.Engine(), "z"); err != nil || string(b) != "value of a/c/0/0valueof" {
		t.Errorf("%q, %v", b, err)
	}
	id = c.uploadID(in + "x")
	c.do("PUT", in+"x", "partNumber=1&uploadId="+id, bodies[0])
	if a := c.do("DELETE", in+"x", "uploadId="+id, ""); a.status != 204 {
		t.Errorf("%+v", a)
	}
	if used := s.h.spool.used.Load(); used != 0 {
		t.Errorf("%d bytes are spooled", used)
	}
	// What is left when the server ends is removed.
	id = c.uploadID(in + "y")
	c.do("PUT", in+"y", "partNumber=1&uploadId="+id, bodies[0])
}

func TestSpoolIsBounded(t *testing.T) {
	s := newSite(t, func(o *Options) { o.SpoolBytes = 2 << 20 })
	_, in := s.begin()
	if a := s.client("writer", writerSecret).do("PUT", in+"x", "", string(make([]byte, 3<<20))); a.code != "SlowDown" {
		t.Errorf("%+v", a)
	}
	if used := s.h.spool.used.Load(); used != 0 {
		t.Errorf("%d bytes are spooled", used)
	}
}

func TestSignatures(t *testing.T) {
	s := newSite(t, nil)
	for _, c := range []struct{ name, secret, want string }{
		{"writer", writerSecret, ""},
		{"writer", oldSecret, ""},
		{"writer", readerSecret, "SignatureDoesNotMatch"},
		{"writer", "", "AccessDenied"}, // it is not signed then
		{"nobody", writerSecret, "InvalidAccessKeyId"},
	} {
		if a := s.client(c.name, c.secret).do("GET", "main/zarr.json", "", ""); a.code != c.want {
			t.Errorf("%s: %+v, want %q", c.name, a, c.want)
		}
	}
	reader := s.client("reader", readerSecret)
	_, in := s.begin()
	if a := reader.do("PUT", in+"x", "", "x"); a.code != "AccessDenied" {
		t.Errorf("a reader writes: %+v", a)
	}
	if a := reader.do("GET", "", "list-type=2&prefix="+url.QueryEscape(in), ""); a.status < 400 {
		t.Errorf("a reader lists a session: %+v", a)
	}
	// A link with a signature in it.
	link := func(change func(url.Values)) answer {
		r := must.Get(http.NewRequest("GET", s.url+"/w/main/zarr.json", nil))(t)
		r = signer.PreSignV4(*r, "reader", readerSecret, "", "us-east-1", 60)
		q := r.URL.Query()
		change(q)
		r.URL.RawQuery = q.Encode()
		return send(t, r)
	}
	if a := link(func(url.Values) {}); a.status != 200 || a.body != "value of zarr.json" {
		t.Errorf("presigned: %+v", a)
	}
	for what, change := range map[string]func(url.Values){
		"for longer than signed": func(q url.Values) { q.Set("X-Amz-Expires", "600") },
		"long ago":               func(q url.Values) { q.Set("X-Amz-Date", "20200101T000000Z") },
		"by another": func(q url.Values) {
			q.Set("X-Amz-Credential", strings.Replace(q.Get("X-Amz-Credential"), "reader", "writer", 1))
		},
	} {
		if a := link(change); a.status != 403 {
			t.Errorf("presigned %s: %+v", what, a)
		}
	}
	for _, secret := range []string{writerSecret, oldSecret, readerSecret} {
		if strings.Contains(s.log.String(), secret) {
			t.Error("the log has a secret")
		}
	}
}

// What was changed after it was signed is refused, as are requests of another time.
func TestTampering(t *testing.T) {
	s := newSite(t, nil)
	session, in := s.begin()
	for what, change := range map[string]func(*http.Request){
		"nothing": func(*http.Request) {},
		"body":    func(r *http.Request) { r.Body = io.NopCloser(strings.NewReader("evil")) },
		"hash":    func(r *http.Request) { r.Header.Set("X-Amz-Content-Sha256", "UNSIGNED-PAYLOAD") },
		"path":    func(r *http.Request) { r.URL.Path += "x" },
		"query":   func(r *http.Request) { r.URL.RawQuery = "uploads=" },
		"date":    func(r *http.Request) { r.Header.Set("X-Amz-Date", "20200101T000000Z") },
		"end":     func(r *http.Request) { r.Body, r.ContentLength = io.NopCloser(strings.NewReader("goo")), 3 },
		"no key":  func(r *http.Request) { r.Header.Del("Authorization") },
	} {
		c := s.client("writer", writerSecret)
		c.change = change
		if a := c.do("PUT", in+"key", "", "good"); (a.status == 200) != (what == "nothing") {
			t.Errorf("%s changed: %+v", what, a)
		}
	}
	if b, err := kv.Get(bg, session.Engine(), "key"); err != nil || string(b) != "good" {
		t.Errorf("%q, %v", b, err)
	}
}

// A body whose chunks cannot be read is the fault of the client.
func TestBadChunks(t *testing.T) {
	s := newSite(t, nil)
	session, in := s.begin()
	for _, body := range []string{"3;chunk-signature=0\r\nhel\r\nzz\r\nlo", "no length\r\nhello", "-5\r\nhello\r\n", "ffffffffffffffffff\r\nhello", strings.Repeat("5", 9000), ""} {
		for _, length := range []string{"5", "2000000"} {
			a := s.client("writer", writerSecret).do("PUT", in+"key", "", body,
				"X-Amz-Content-Sha256: STREAMING-AWS4-HMAC-SHA256-PAYLOAD", "X-Amz-Decoded-Content-Length: "+length)
			if a.status < 400 || a.status >= 500 {
				t.Errorf("%.20q of %s bytes: %d %s", body, length, a.status, a.code)
			}
		}
	}
	if _, err := kv.Get(bg, session.Engine(), "key"); !errors.Is(err, kv.ErrNotFound) {
		t.Errorf("something was stored: %v", err)
	}
}

// A deletion in a session that is not there is an error, not one of a missing key. So is
// one by a client that may not see the session.
func TestDeletingInNoSession(t *testing.T) {
	s := newSite(t, nil)
	session, in := s.begin()
	id := session.Engine().ID().String()
	writer, reader := s.client("writer", writerSecret), s.client("reader", readerSecret)
	for _, object := range []string{"~/", "~/x", "~0000000000000000/", "~0000000000000000/x", "~zz/x/"} {
		if a := writer.do("DELETE", object, "", ""); a.status < 400 {
			t.Errorf("%s: %+v", object, a)
		}
	}
	for _, object := range []string{"~" + id + "/", "~" + id + "/x/", "~" + id + "/x"} {
		if a := reader.do("DELETE", object, "", ""); a.status != 403 {
			t.Errorf("%s by a reader: %+v", object, a)
		}
	}
	for _, object := range []string{in + "none", in + "marker/"} {
		if a := writer.do("DELETE", object, "", ""); a.status != 204 {
			t.Errorf("%s: %+v", object, a)
		}
	}
}

// The key that is derived from a secret for one day signs requests of that day alone.
func TestSigningKeyOfAnotherDay(t *testing.T) {
	s := newSite(t, nil)
	now := time.Now().UTC()
	hash := func(key []byte, text string) []byte {
		h := hmac.New(sha256.New, key)
		h.Write([]byte(text))
		return h.Sum(nil)
	}
	for _, header := range []string{"X-Amz-Date", "Date"} {
		for ago, want := range map[int]int{0: 200, 1: 403, 400: 403, -1: 403} {
			r := must.Get(http.NewRequest("GET", s.url+"/w/main/zarr.json", nil))(t)
			at, day := now.Format("20060102T150405Z"), now.AddDate(0, 0, -ago).Format("20060102")
			r.Header.Set(header, at)
			if header == "Date" {
				r.Header.Set(header, now.Format(http.TimeFormat))
			}
			r.Header.Set("X-Amz-Content-Sha256", "UNSIGNED-PAYLOAD")
			name := strings.ToLower(header)
			lines := []string{"host:" + r.URL.Host, "x-amz-content-sha256:UNSIGNED-PAYLOAD", name + ":" + r.Header.Get(header)}
			slices.Sort(lines)
			signed := []string{"host", "x-amz-content-sha256", name}
			slices.Sort(signed)
			request := sha256.Sum256([]byte("GET\n/w/main/zarr.json\n\n" + strings.Join(lines, "\n") + "\n\n" + strings.Join(signed, ";") + "\nUNSIGNED-PAYLOAD"))
			scope := day + "/us-east-1/s3/aws4_request"
			key := []byte("AWS4" + readerSecret)
			for _, part := range strings.Split(scope, "/") {
				key = hash(key, part)
			}
			signature := hex.EncodeToString(hash(key, "AWS4-HMAC-SHA256\n"+at+"\n"+scope+"\n"+hex.EncodeToString(request[:])))
			r.Header.Set("Authorization", fmt.Sprintf("AWS4-HMAC-SHA256 Credential=reader/%s, SignedHeaders=%s, Signature=%s", scope, strings.Join(signed, ";"), signature))
			if a := send(t, r); a.status != want {
				t.Errorf("%s, key of %d days ago: %+v, want %d", header, ago, a, want)
			}
		}
	}
}

// Without keys only this machine reads, and no web page.
func TestAnonymous(t *testing.T) {
	s := newSite(t, func(o *Options) { o.Keys, o.Anonymous = nil, &serve.Principal{Name: "anonymous"} })
	for headers, want := range map[string]int{"": 200, "Origin: https://evil.example": 403, "Host: evil.example": 403, "Authorization: AWS4-HMAC-SHA256 x": 403} {
		r, _ := http.NewRequest("GET", s.url+"/w/main/zarr.json", nil)
		if name, value, ok := strings.Cut(headers, ": "); ok && name == "Host" {
			r.Host = value
		} else if ok {
			r.Header.Set(name, value)
		}
		res := must.Get(http.DefaultClient.Do(r))(t)
		res.Body.Close()
		if res.StatusCode != want || res.Header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s: status %d, want %d; %v", headers, res.StatusCode, want, res.Header)
		}
	}
	r, _ := http.NewRequest("PUT", s.url+"/w/main/zarr.json", strings.NewReader("x"))
	if res, err := http.DefaultClient.Do(r); err != nil || res.StatusCode != 403 {
		t.Errorf("a write: %v, %v", res.StatusCode, err)
	}
}

func TestReadOnly(t *testing.T) {
	s := newSite(t, func(o *Options) { o.ReadOnly = true })
	_, in := s.begin()
	for _, method := range []string{"PUT", "DELETE", "POST"} {
		if a := s.client("writer", writerSecret).do(method, in+"x", "", ""); a.code != "AccessDenied" {
			t.Errorf("%s: %+v", method, a)
		}
	}
}
