package s3

import (
	"bufio"
	"context"
	"crypto/md5"
	"encoding/base64"
	"encoding/hex"
	"encoding/xml"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/serve"
	"github.com/zarrdb/zarrdb/txn"
)

// botocore waits for 100 Continue before an empty body too. It keeps the status of an answer
// that comes instead for later answers of the connection.
func TestContinueOfEmptyBodies(t *testing.T) {
	s := newSite(t, nil)
	for _, test := range []struct{ head, want string }{
		{"Expect: 100-continue\r\n", "HTTP/1.1 100 Continue"},
		{"", "HTTP/1.1 403 Forbidden"},
	} {
		c := must.Get(net.Dial("tcp", strings.TrimPrefix(s.url, "http://")))(t)
		defer c.Close()
		must.Get(io.WriteString(c, "PUT /w/~id/key HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n"+test.head+"\r\n"))(t)
		line, err := bufio.NewReader(c).ReadString('\n')
		if err != nil || strings.TrimSpace(line) != test.want {
			t.Errorf("%q: %q, %v", test.head, line, err)
		}
	}
}

// A program that synchronizes uploads consolidated metadata before the tree below it has
// changed, and compares what it uploaded. The committed version has true metadata.
func TestConsolidatedMetadataOfSessions(t *testing.T) {
	s := newSite(t, nil)
	session, id := s.begin()
	c := s.client("writer", writerSecret)
	doc := `{"zarr_format":3,"node_type":"group","consolidated_metadata":{"kind":"inline","must_understand":false,"metadata":{"later":{}}}}`
	put := c.do("PUT", id+"zarr.json", "", doc)
	get := c.do("GET", id+"zarr.json", "", "")
	if tag := put.head.Get("ETag"); get.body != doc || tag == "" || get.head.Get("ETag") != tag {
		t.Errorf("put %+v, got %+v", put, get)
	}
	if a := c.do("GET", "", "list-type=2&prefix="+id+"zarr.json", ""); !strings.Contains(a.body, fmt.Sprintf("<Size>%d</Size>", len(doc))) {
		t.Errorf("the listing: %s", a.body)
	}
	must.Get(session.Commit(bg, txn.CommitOptions{Message: "m"}))(t)
	if a := c.do("GET", "main/zarr.json", "", ""); a.status != 200 || strings.Contains(a.body, "later") {
		t.Errorf("the version: %+v", a)
	}
}

// rclone cleanup lists uploads under way, and aborts old ones. Clients that cannot write the
// session do not see its uploads.
func TestListUploads(t *testing.T) {
	s := newSite(t, nil)
	_, in := s.begin()
	writer, reader := s.client("writer", writerSecret), s.client("reader", readerSecret)
	id := writer.uploadID(in + "x")
	want := "<Key>" + in + "x</Key><UploadId>" + id + "</UploadId><Initiated>"
	for _, test := range []struct {
		c     *client
		query string
		seen  bool
	}{{writer, "uploads", true}, {writer, "uploads&prefix=" + in + "x", true}, {writer, "uploads&prefix=" + in + "y", false}, {reader, "uploads", false}} {
		if a := test.c.do("GET", "", test.query, ""); a.status != 200 || strings.Contains(a.body, want) != test.seen || strings.Contains(a.body, id) != test.seen {
			t.Errorf("%s: %+v, want %t", test.query, a, test.seen)
		}
	}
	if a := writer.do("DELETE", in+"x", "uploadId="+id, ""); a.status != 204 {
		t.Errorf("%+v", a)
	}
	if a := writer.do("GET", "", "uploads", ""); a.status != 200 || strings.Contains(a.body, "<Upload>") {
		t.Errorf("after the abort: %+v", a)
	}
}

// oddSite has keys whose order depends on each byte, and names that are keys and
// directories.
func oddSite(t *testing.T) (*site, []string) {
	s := newSite(t, nil)
	keys := []string{"a", "a b", "a!x/y", "a-b/c", "a-b/d/e", "a.b", "a/b", "a/b/c", "a0", "b//"[:1], "dir/%2F", "dir/ü/x", "dir/漢", "z+z", "zarr.json", "a/zarr.json", "a/c/0/0", "a/c/0/1", "a-b/zarr.json", "empty"}
	must.Get(s.db.Update(bg, "main", "odd", func(e *engine.Session) error {
		for _, key := range keys {
			if err := e.Set(bg, key, []byte(key)); err != nil {
				return err
			}
		}
		return nil
	}))(t)
	var all []string
	for _, rev := range []string{"main", "feature/one"} {
		v := must.Get(s.db.At(bg, rev))(t)
		have := must.Get(kv.Keys(bg, v, ""))(t)
		for _, key := range have {
			all = append(all, url.PathEscape(rev)+"/"+key)
		}
		must.Do(t, v.Close())
	}
	slices.Sort(all)
	return s, all
}

// A listing of every prefix, delimiter, beginning and size of page is what S3 would answer,
// in the order of bytes.
func TestListingsOfEveryKind(t *testing.T) {
	s, all := oddSite(t)
	c := s.client("reader", readerSecret)
	rnd := rand.New(rand.NewPCG(1, 2))
	pick := func(list ...string) string { return list[rnd.IntN(len(list))] }
	for range 400 {
		name := all[rnd.IntN(len(all))]
		prefix := pick("", "main/", "main/a", "main/a/", "main/dir/", "m", "main", "none/", name[:rnd.IntN(len(name)+1)])
		delim := pick("", "/", "/", "a", "-", "in/", "ü", "/a", "n/a")
		after := pick("", "", "main/a", "main/a-b/", "main/a/", "main/a/b", "m", "zzz", all[rnd.IntN(len(all))])
		size := 1 + rnd.IntN(7)
		var want []string
		seen := map[string]bool{}
		for _, full := range all {
			rest, ok := strings.CutPrefix(full, prefix)
			if !ok || after != "" && full <= after {
				continue
			}
			if i := strings.Index(rest, delim); delim != "" && i >= 0 {
				full = prefix + rest[:i+len(delim)]
				if full == after { // S3 leaves out a common prefix that the listing begins behind
					continue
				}
			}
			if !seen[full] {
				seen[full] = true
				want = append(want, full)
			}
		}
		// At the root tags are listed too, where a delimiter makes one entry of each.
		if first, _, below := strings.Cut(prefix, "/"); !below && strings.HasPrefix("v1", first) && delim != "" {
			base := "v1/"
			if i := strings.Index(base[len(prefix):], delim); i >= 0 {
				if cp := base[:len(prefix)+i+len(delim)]; base > after && cp != after && !seen[cp] {
					want = append(want, cp)
				}
			}
		}
		slices.Sort(want)
		for _, version := range []string{"1", "2"} {
			what := fmt.Sprintf("version %s, prefix %q, delimiter %q, after %q, pages of %d", version, prefix, delim, after, size)
			q := url.Values{"prefix": {prefix}, "delimiter": {delim}, "max-keys": {fmt.Sprint(size)}, "encoding-type": {"url"}}
			if version == "2" {
				q.Set("list-type", "2")
				q.Set("start-after", after)
			} else {
				q.Set("marker", after)
			}
			var got []string
			for {
				a := c.do("GET", "", q.Encode(), "")
				var page struct {
					listing
					KeyCount *int
				}
				if err := xml.Unmarshal([]byte(a.body), &page); err != nil || a.status != 200 {
					t.Fatalf("%s: %+v, %v", what, a, err)
				}
				var names []string
				for _, o := range page.Contents {
					names = append(names, o.Key)
				}
				for _, p := range page.CommonPrefixes {
					names = append(names, p.Prefix)
				}
				for i, name := range names {
					text := must.Get(url.PathUnescape(name))(t)
					names[i] = text
				}
				slices.Sort(names)
				if version == "2" && (page.KeyCount == nil || *page.KeyCount != len(names)) {
					t.Fatalf("%s: KeyCount %v of %d", what, page.KeyCount, len(names))
				}
				if len(got) > 0 && len(names) > 0 && names[0] <= got[len(got)-1] || len(names) > size || page.IsTruncated && len(names) < size {
					t.Fatalf("%s: %q after %q", what, names, got)
				}
				got = append(got, names...)
				if !page.IsTruncated {
					break
				}
				q.Set("continuation-token", page.NextContinuationToken)
				marker, _ := url.PathUnescape(page.NextMarker)
				q.Set("marker", marker)
			}
			if !slices.Equal(got, want) {
				t.Fatalf("%s:\n got %q\nwant %q", what, got, want)
			}
		}
	}
	for query, want := range map[string]string{"list-type=2&max-keys=0": "<KeyCount>0</KeyCount>", "list-type=2&prefix=main/none/": "<KeyCount>0</KeyCount>"} {
		if a := c.do("GET", "", query, ""); !strings.Contains(a.body, want) || strings.Contains(a.body, "<IsTruncated>true") {
			t.Errorf("%s: %+v", query, a)
		}
	}
	for _, query := range []string{"max-keys=-1", "max-keys=x", "encoding-type=x", "list-type=2&continuation-token=!"} {
		if a := c.do("GET", "", query, ""); a.code != "InvalidArgument" {
			t.Errorf("%s: %+v", query, a)
		}
	}
}

// The keys below a common prefix are not read, however many they are.
func TestListingSkipsBelowPrefixes(t *testing.T) {
	s := newSite(t, nil)
	must.Get(s.db.Update(bg, "main", "many", func(e *engine.Session) error {
		for i := range 3 * maxSkip {
			if err := e.Set(bg, fmt.Sprintf("many/%05d", i), []byte("x")); err != nil {
				return err
			}
		}
		return e.Set(bg, "n", []byte("x"))
	}))(t)
	for _, size := range []int{1, 1000} {
		got := s.client("reader", readerSecret).list("v2", "main/", "/", size)
		if want := []string{"main/a-b/", "main/a/", "main/empty", "main/many/", "main/n", "main/zarr.json"}; !slices.Equal(got, want) {
			t.Errorf("%q", got)
		}
	}
}

// The time of an object moves with its value: it is that of the commit that gave the key
// its value, whatever other commits did since.
func TestTimesOfVersions(t *testing.T) {
	s := newSite(t, nil)
	c := s.client("writer", writerSecret)
	at := func(rev, key string) string {
		t.Helper()
		return c.do("HEAD", rev+"/"+key, "", "").head.Get("Last-Modified")
	}
	first := must.Get(s.db.Versions().Lookup(bg, s.first))(t)
	for first.Time.Unix() == time.Now().Unix() {
		time.Sleep(20 * time.Millisecond)
	}
	second := must.Get(s.db.Update(bg, "main", "second", func(e *engine.Session) error { return e.Set(bg, "a/c/0/0", []byte("VALUE of a/c/0/0")) }))(t)
	_, in := s.begin()
	for _, rev := range []string{"main", strings.TrimSuffix(in, "/")} {
		if got, want := at(rev, "a/c/0/0"), second.Time.UTC().Format(http.TimeFormat); got != want {
			t.Errorf("%s, a value that changed: %s, want %s", rev, got, want)
		}
		for _, key := range []string{"a/c/0/1", "a/zarr.json", "empty"} {
			if got, want := at(rev, key), first.Time.UTC().Format(http.TimeFormat); got != want {
				t.Errorf("%s, %s, which did not change: %s, want %s", rev, key, got, want)
			}
		}
	}
	if at("v1", "a/c/0/0") == at("main", "a/c/0/0") {
		t.Error("two values have the same time")
	}
	// Conditions on times decide where the time tells values apart.
	since := at("main", "a/c/0/0")
	old := first.Time.UTC().Format(http.TimeFormat)
	for _, test := range []struct {
		key, header string
		status      int
	}{
		{"main/a/c/0/0", "If-Modified-Since: " + since, 304},
		{"main/a/c/0/0", "If-Modified-Since: " + old, 200},
		{"main/a/c/0/1", "If-Modified-Since: " + old, 304},
		{"main/a/c/0/0", "If-Unmodified-Since: " + since, 200},
		{"main/a/c/0/0", "If-Unmodified-Since: " + old, 412},
		{"main/a/c/0/1", "If-Unmodified-Since: " + old, 200},
		{in + "a/c/0/0", "If-Modified-Since: " + since, 304},
		{"main/a/c/0/0", "If-Modified-Since: yesterday", 200},
	} {
		for _, method := range []string{"GET", "HEAD"} {
			if a := c.do(method, test.key, "", "", test.header); a.status != test.status {
				t.Errorf("%s %s with %s: %d, want %d", method, test.key, test.header, a.status, test.status)
			}
		}
	}
	for header, want := range map[string]int{
		"X-Amz-Copy-Source-If-Unmodified-Since: " + old: 412, "X-Amz-Copy-Source-If-Modified-Since: " + since: 412,
		"X-Amz-Copy-Source-If-None-Match: *": 412, "X-Amz-Copy-Source-If-Match: x": 412, "X-Amz-Copy-Source-If-Match: *": 200,
	} {
		c.change = nil
		r := c.doCopy(in+"copy", "/w/main/a/c/0/0", header)
		if r.status != want {
			t.Errorf("copy with %s: %+v, want %d", header, r, want)
		}
	}
	for _, test := range []struct {
		method, header string
		status         int
	}{
		{"PUT", "If-Unmodified-Since: " + old, 412},
		{"DELETE", "If-Unmodified-Since: " + old, 412},
		{"DELETE", "If-Match: \"0-1\"", 412},
		{"PUT", "If-None-Match: \"0-1\"", 501},
		{"PUT", "If-Unmodified-Since: " + since, 200},
	} {
		if a := c.do(test.method, in+"a/c/0/0", "", "", test.header); a.status != test.status {
			t.Errorf("%s with %s: %+v, want %d", test.method, test.header, a, test.status)
		}
	}
}

// doCopy copies an object under a condition.
func (c *client) doCopy(to, from, condition string) answer {
	return c.do("PUT", to, "", "", "X-Amz-Copy-Source: "+from, condition)
}

// Programs make markers of directories first, in sessions and their parents. None is stored.
func TestMarkers(t *testing.T) {
	s := newSite(t, nil)
	session, in := s.begin()
	c := s.client("writer", writerSecret)
	for _, key := range []string{"", "d/", "d/e/", "a/"} {
		if a := c.do("PUT", in+key, "", ""); a.status != 200 || a.head.Get("ETag") == "" {
			t.Errorf("%q: %+v", key, a)
		}
	}
	if a := c.do("PUT", in+"d/", "", "x"); a.code != "InvalidURI" {
		t.Errorf("a marker with bytes: %+v", a)
	}
	if a := s.client("reader", readerSecret).do("PUT", in+"d/", "", ""); a.code != "AccessDenied" {
		t.Errorf("by a reader: %+v", a)
	}
	if a := c.do("PUT", "main/d/", "", ""); a.code != "AccessDenied" {
		t.Errorf("in a version: %+v", a)
	}
	if keys, err := kv.Keys(bg, session.Engine(), "d"); len(keys) > 0 || err != nil {
		t.Errorf("%q, %v", keys, err)
	}
}

// Bodies come without Content-Length, and with checksums at their end, in every request
// that has a body.
func TestBodiesWithoutLength(t *testing.T) {
	s := newSite(t, nil)
	session, in := s.begin()
	c := s.client("writer", writerSecret)
	stream := func(body, sum string) func(r *http.Request) {
		return func(r *http.Request) {
			text := fmt.Sprintf("%x\r\n%s\r\n0\r\nx-amz-checksum-crc32:%s\r\n\r\n", len(body), body, sum)
			r.Body, r.ContentLength = io.NopCloser(strings.NewReader(text)), -1
		}
	}
	sum := func(body string) string {
		h := checksums["crc32"]()
		h.Write([]byte(body))
		return base64.StdEncoding.EncodeToString(h.Sum(nil))
	}
	headers := []string{"X-Amz-Content-Sha256: " + unsignedTrailer, "X-Amz-Trailer: x-amz-checksum-crc32"}
	send := func(method, object, query, body, sum string) answer {
		c.change = stream(body, sum)
		defer func() { c.change = nil }()
		return c.do(method, object, query, "", headers...)
	}
	if a := send("PUT", in+"x", "", "hello", sum("hello")); a.status != 200 || a.head.Get("X-Amz-Checksum-Crc32") != sum("hello") {
		t.Errorf("put: %+v", a)
	}
	if a := send("PUT", in+"bad", "", "hello", sum("hellO")); a.code != "BadDigest" {
		t.Errorf("another checksum: %+v", a)
	}
	if a := send("PUT", in+"bad", "", "hello", ""); a.code != "MalformedTrailerError" {
		t.Errorf("no checksum: %+v", a)
	}
	id := c.uploadID(in + "y")
	a := send("PUT", in+"y", "partNumber=1&uploadId="+id, "part", sum("part"))
	if a.status != 200 {
		t.Errorf("part: %+v", a)
	}
	body := "<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>" + a.head.Get("ETag") + "</ETag></Part></CompleteMultipartUpload>"
	if a := send("POST", in+"y", "uploadId="+id, body, sum(body)); a.status != 200 {
		t.Errorf("complete: %+v", a)
	}
	body = "<Delete><Object><Key>" + in + "a/c/0/0</Key></Object></Delete>"
	if a := send("POST", "", "delete=", body, sum(body+" ")); a.code != "BadDigest" {
		t.Errorf("delete with another checksum: %+v", a)
	}
	if a := send("POST", "", "delete=", body, sum(body)); a.status != 200 {
		t.Errorf("delete: %+v", a)
	}
	keys, err := kv.Keys(bg, session.Engine(), "")
	if want := []string{"a-b/zarr.json", "a/c/0/1", "a/zarr.json", "empty", "x", "y", "zarr.json"}; !slices.Equal(keys, want) || err != nil {
		t.Errorf("%q, %v", keys, err)
	}
}

// The five checksums are compared, and repeated in the answer.
func TestChecksums(t *testing.T) {
	s := newSite(t, nil)
	_, in := s.begin()
	c := s.client("writer", writerSecret)
	for name, want := range map[string]string{"crc32": "cbf43926", "crc32c": "e3069283", "crc64nvme": "ae8b14860a799888", "sha1": "f7c3bc1d808e04732adf679965ccc34ca7ae3441",
		"sha256": "15e2b0d3c33891ebb0f1ef609ec419420c20e320ce94c65fbc8c3312448eb225"} {
		sum := must.Get(hex.DecodeString(want))(t)
		header := "X-Amz-Checksum-" + name + ": "
		if a := c.do("PUT", in+"k", "", "123456789", header+base64.StdEncoding.EncodeToString(sum)); a.status != 200 || a.head.Get("X-Amz-Checksum-"+name) == "" {
			t.Errorf("%s: %+v", name, a)
		}
		if a := c.do("PUT", in+"k", "", "123456780", header+base64.StdEncoding.EncodeToString(sum)); a.code != "BadDigest" {
			t.Errorf("%s of another body: %+v", name, a)
		}
		if a := c.do("PUT", in+"k", "", "123456789", header+"AAAA"); a.code != "InvalidDigest" && name != "crc32" {
			t.Errorf("%s with too few bytes: %+v", name, a)
		}
	}
}

// What a client decides by before it writes: whether the bucket exists, whether the
// signature can be made otherwise.
func TestAnswersThatClientsKnow(t *testing.T) {
	s := newSite(t, nil)
	c := s.client("writer", writerSecret)
	if a := c.do("PUT", "", "", ""); a.status != 409 || a.code != "BucketAlreadyOwnedByYou" {
		t.Errorf("%+v", a)
	}
	c.bucket = "none"
	if a := c.do("PUT", "", "", ""); a.code != "AccessDenied" {
		t.Errorf("%+v", a)
	}
	if a := c.do("HEAD", "", "", ""); a.status != 404 {
		t.Errorf("%+v", a)
	}
	if a := c.do("GET", "", "list-type=2", ""); a.code != "NoSuchBucket" {
		t.Errorf("%+v", a)
	}
	for _, query := range []string{"AWSAccessKeyId=reader&Signature=x&Expires=4000000000", "Signature=x"} {
		r, _ := http.NewRequest("GET", s.url+"/w/main/zarr.json?"+query, nil)
		if a := send(t, r); a.status != 400 || !strings.Contains(a.body, "signature_version s3v4") {
			t.Errorf("%s: %+v", query, a)
		}
	}
	r, _ := http.NewRequest("GET", s.url+"/w/main/zarr.json", nil)
	r.Header.Set("Authorization", "AWS reader:x")
	if a := send(t, r); a.status != 400 || !strings.Contains(a.body, "signature_version s3v4") {
		t.Errorf("%+v", a)
	}
	for _, query := range []string{"acl=", "policy=", "cors=", "lifecycle="} {
		c.bucket = "w"
		if a := c.do("GET", "", query, ""); a.code != "NotImplemented" {
			t.Errorf("%s: %+v", query, a)
		}
	}
}

// A request without a signature from a web page, or for another host name on a server of
// this machine, is refused, with a key file or without.
func TestPagesWithKeys(t *testing.T) {
	for _, keys := range []bool{true, false} {
		s := newSite(t, func(o *Options) {
			o.Local = true
			if !keys {
				o.Keys, o.Anonymous = nil, &serve.Principal{Name: "anonymous"}
			}
		})
		if keys {
			writeKeys(t, s, "anonymous read -\nreader read "+readerSecret+"\n")
		}
		for header, want := range map[string]int{"": 200, "Origin: https://evil.example": 403, "Host: evil.example": 403} {
			r, _ := http.NewRequest("GET", s.url+"/w/main/zarr.json", nil)
			if name, value, ok := strings.Cut(header, ": "); ok && name == "Host" {
				r.Host = value
			} else if ok {
				r.Header.Set(name, value)
			}
			if a := send(t, r); a.status != want {
				t.Errorf("keys %v, %s: %+v", keys, header, a)
			}
		}
	}
}

// Programs that synchronize by MD5 find it among the metadata.
func TestMD5OfSyncPrograms(t *testing.T) {
	s := newSite(t, nil)
	c := s.client("reader", readerSecret)
	sum := md5.Sum([]byte("value of a/c/0/0"))
	for agent, want := range map[string]string{"rclone/v1.60.1": base64.StdEncoding.EncodeToString(sum[:]), "": "md5:" + hex.EncodeToString(sum[:]), "Boto3/1.43": ""} {
		c.change = func(r *http.Request) { r.Header["User-Agent"] = []string{agent} }
		a := c.do("HEAD", "main/a/c/0/0", "", "")
		if got := a.head.Get("X-Amz-Meta-Md5chksum") + a.head.Get("X-Amz-Meta-S3cmd-Attrs"); got != want {
			t.Errorf("%q: %q, want %q", agent, got, want)
		}
	}
}

// A copy of an object to itself, by which programs set metadata, writes nothing.
func TestCopyToItself(t *testing.T) {
	s := newSite(t, nil)
	_, in := s.begin()
	c := s.client("writer", writerSecret)
	before := c.do("HEAD", in+"a/c/0/0", "", "").head.Get("Last-Modified")
	log := s.log.String()
	if a := c.do("PUT", in+"a/c/0/0", "", "", "X-Amz-Copy-Source: w/"+in+"a/c/0/0"); a.status != 200 {
		t.Errorf("%+v", a)
	}
	if after := c.do("HEAD", in+"a/c/0/0", "", "").head.Get("Last-Modified"); after != before || s.log.String() != log {
		t.Errorf("%s, then %s", before, after)
	}
}

// An administrator of a directory of databases makes them as buckets. They are not deleted
// over S3.
func TestCreateBucket(t *testing.T) {
	s := newSite(t, nil)
	writeKeys(t, s, "ops admin "+writerSecret+"\nreader read "+readerSecret+"\n")
	ops, reader := s.client("ops", writerSecret), s.client("reader", readerSecret)
	ops.bucket, reader.bucket = "new", "new"
	if a := ops.do("PUT", "", "", ""); a.code != "AccessDenied" || !strings.Contains(a.body, "zarrdb init") {
		t.Errorf("a server of single databases: %+v", a)
	}
	disk := vfs.NewMem()
	made := map[string]serve.Opener{}
	table := serve.New(serve.Options{
		Create: func(_ context.Context, name string) error {
			if name == "bad" {
				return fmt.Errorf("%w: x", serve.ErrName)
			}
			made[name] = func(context.Context) (db *engine.DB, lacks, err error) {
				db, err = engine.Open(bg, name, &engine.Options{FS: disk, Create: true})
				return db, nil, err
			}
			return nil
		},
		Look: func() map[string]serve.Opener { return made },
	})
	s.h.t = table
	t.Cleanup(func() {
		if err := table.Close(bg); err != nil {
			t.Error(err)
		}
	})
	if a := reader.do("PUT", "", "", ""); a.code != "AccessDenied" {
		t.Errorf("a reader: %+v", a)
	}
	region := "<CreateBucketConfiguration><LocationConstraint>eu-west-1</LocationConstraint></CreateBucketConfiguration>"
	for _, want := range []string{"", "BucketAlreadyOwnedByYou"} {
		if a := ops.do("PUT", "", "", region); a.code != want || (a.status == 200) != (want == "") {
			t.Errorf("%+v, want %q", a, want)
		}
	}
	if names := ops.list("v2", "", "/", 10); !slices.Equal(names, []string{"main/"}) {
		t.Errorf("%q", names)
	}
	if a := ops.do("DELETE", "", "", ""); a.code != "BucketNotEmpty" {
		t.Errorf("%+v", a)
	}
	ops.bucket = "bad"
	if a := ops.do("PUT", "", "", ""); a.code != "InvalidBucketName" {
		t.Errorf("%+v", a)
	}
}
