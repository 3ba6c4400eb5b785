package s3kv

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/iotest"
	"time"

	"github.com/minio/minio-go/v7/pkg/signer"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/kvtest"
	"github.com/zarrdb/zarrdb/kv/remote"
)

// server is a real one, which checks signatures, at ZARRDB_S3_ENDPOINT: with a
// bucket "bucket" that belongs to ZARRDB_S3_KEY and ZARRDB_S3_SECRET, and hosts
// below ZARRDB_S3_DOMAIN. scripts/s3.sh starts one.
func server(t *testing.T) Options {
	t.Helper()
	alone(t)
	o := Options{Endpoint: os.Getenv("ZARRDB_S3_ENDPOINT")}
	if o.Endpoint == "" {
		t.Skip("ZARRDB_S3_ENDPOINT names no server")
	}
	t.Setenv("AWS_ACCESS_KEY_ID", os.Getenv("ZARRDB_S3_KEY"))
	t.Setenv("AWS_SECRET_ACCESS_KEY", os.Getenv("ZARRDB_S3_SECRET"))
	return o
}

// emptied opens the bucket and deletes what is in it.
func emptied(t *testing.T, o Options) *View {
	t.Helper()
	view := open(t, o)
	must.Do(t, kv.DeletePrefix(bg, view, ""))
	return view
}

func TestServerConformance(t *testing.T) {
	o := server(t)
	emptied(t, o)
	n := 0
	kvtest.Run(t, func(t *testing.T) kv.Reader {
		n++
		view := kv.Sub(open(t, o), fmt.Sprintf("t%d", n))
		// That server keeps objects in directories, and takes "a//b" for "a/b".
		return kvtest.Hook(view, func(op kvtest.Op, key string) error {
			switch {
			case !strings.Contains(key, "//"), op == kvtest.OpList, op == kvtest.OpListDir, op == kvtest.OpDeletePrefix:
				return nil
			}
			return kv.ErrInvalidKey
		})
	}, kvtest.Options{
		Tree:    true,
		Invalid: []string{"..", "../a", "a/..", "a/./b", "."},
		Holds: func(key string) bool {
			if testing.Short() && strings.HasPrefix(key, "many") {
				return false
			}
			// It lists without escapes, and XML has none for control characters.
			return validKey(key) == nil && !strings.ContainsFunc(key, func(r rune) bool { return r < ' ' || r == 0x7f })
		},
		Steps: 60,
	})
}

// TestServerSignatures checks that every kind of request is refused without a
// valid signature.
func TestServerSignatures(t *testing.T) {
	o := server(t)
	view := emptied(t, o)
	// Keys and values that a signature could stumble over.
	for _, key := range []string{"plain", "a b+c/ü&=?#%41;,~*'()", "dir/.zarray"} {
		must.Do(t, view.Set(bg, key, []byte("value of "+key)))
		if b, err := view.Get(bg, key, kv.Span(6, 2)); err != nil || string(b) != "of" {
			t.Errorf("%q: %q, %v", key, b, err)
		}
	}
	for _, c := range []struct {
		name, key, secret string
		status            int
		code              string
	}{
		{"wrong secret", os.Getenv("ZARRDB_S3_KEY"), "not the secret", http.StatusForbidden, "SignatureDoesNotMatch"},
		{"wrong key", "stranger", os.Getenv("ZARRDB_S3_SECRET"), http.StatusNotFound, "XAdminUserNotFound"}, // as that server says it
		{"nobody", "", "", http.StatusForbidden, "AccessDenied"},
	} {
		t.Setenv("AWS_ACCESS_KEY_ID", c.key)
		t.Setenv("AWS_SECRET_ACCESS_KEY", c.secret)
		view := open(t, o)
		_, get := view.Get(bg, "plain", kv.All())
		_, part := view.Get(bg, "plain", kv.Span(0, 1))
		_, list := kv.Keys(bg, view, "")
		for op, err := range map[string]error{"get": get, "part": part, "list": list, "set": view.Set(bg, "plain", []byte("x")), "delete": view.Delete(bg, "plain")} {
			var e *remote.Error
			if !errors.As(err, &e) || e.Status != c.status || e.Code != c.code || strings.Contains(err.Error(), "not the secret") {
				t.Errorf("%s, %s: %v, want %d %s", c.name, op, err, c.status, c.code)
			}
		}
		if _, err := view.Locate(bg, "plain"); err == nil {
			t.Errorf("%s: located", c.name)
		}
	}
	if b, err := view.Get(bg, "plain", kv.All()); err != nil || string(b) != "value of plain" {
		t.Errorf("afterwards: %q, %v", b, err)
	}
}

// TestServerVirtualHost asks for the bucket as a host of its own.
func TestServerVirtualHost(t *testing.T) {
	o := server(t)
	emptied(t, o)
	domain := os.Getenv("ZARRDB_S3_DOMAIN")
	at, err := url.Parse(o.Endpoint)
	if domain == "" || err != nil {
		t.Skip("ZARRDB_S3_DOMAIN names no domain of the server")
	}
	var hosts []string
	o.Endpoint, o.VirtualHost = "http://"+domain+":"+at.Port(), true
	o.Remote.Transport = &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		hosts = append(hosts, address)
		return new(net.Dialer).DialContext(ctx, network, at.Host)
	}}
	view := open(t, o)
	must.Do(t, view.Set(bg, "a/b c", []byte("inside")))
	keys, err := kv.Keys(bg, view, "")
	if b, gerr := view.Get(bg, "a/b c", kv.From(2)); gerr != nil || string(b) != "side" || err != nil || len(keys) != 1 {
		t.Errorf("%q, %v; %q, %v", b, gerr, keys, err)
	}
	if len(hosts) == 0 || hosts[0] != "bucket."+domain+":"+at.Port() {
		t.Errorf("connected to %q", hosts)
	}
}

// TestServerAnonymous reads, and does not write, a bucket that is public.
func TestServerAnonymous(t *testing.T) {
	o := server(t)
	view := emptied(t, o)
	must.Do(t, view.Set(bg, "k", []byte("public")))
	policy := []byte(`{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":"*","Action":["s3:GetObject","s3:ListBucket"],"Resource":["arn:aws:s3:::bucket","arn:aws:s3:::bucket/*"]}]}`)
	setPolicy := func(method string, body []byte) {
		t.Helper()
		req := must.Get(http.NewRequestWithContext(bg, method, o.Endpoint+"/bucket?policy=", bytes.NewReader(body)))(t)
		sum := sha256.Sum256(body)
		req.Header.Set("X-Amz-Content-Sha256", hex.EncodeToString(sum[:]))
		resp := must.Get(http.DefaultClient.Do(signer.SignV4(*req, os.Getenv("ZARRDB_S3_KEY"), os.Getenv("ZARRDB_S3_SECRET"), "", defaultRegion)))(t)
		_ = resp.Body.Close()
		if resp.StatusCode >= 300 {
			t.Fatalf("policy: %s", resp.Status)
		}
	}
	setPolicy(http.MethodPut, policy)
	defer setPolicy(http.MethodDelete, nil)
	public := o
	public.Anonymous = true
	anyone := open(t, public)
	keys, err := kv.Keys(bg, anyone, "")
	if b, gerr := anyone.Get(bg, "k", kv.Last(3)); gerr != nil || string(b) != "lic" || err != nil || len(keys) != 1 {
		t.Errorf("%q, %v; %q, %v", b, gerr, keys, err)
	}
	var e *remote.Error
	if err := anyone.Set(bg, "k", nil); !errors.As(err, &e) || e.Status != http.StatusForbidden {
		t.Errorf("anybody writes: %v", err)
	}
}

// TestServerLarge writes and reads an object that is longer than a batch of
// requests reads at once, and one that somebody uploaded in parts, whose entity
// tag is that of the parts.
func TestServerLarge(t *testing.T) {
	o := server(t)
	o.Remote.MaxMerged = 1 << 20
	view := emptied(t, o)
	value := make([]byte, 24<<20)
	rnd := rand.New(rand.NewPCG(1, 2))
	for i := range value {
		value[i] = byte(rnd.Uint32())
	}
	must.Do(t, view.Set(bg, "at once", value))
	inParts(t, o, "in parts", value[:16<<20], value[16<<20:])
	for _, key := range []string{"at once", "in parts"} {
		b, err := view.Get(bg, key, kv.All())
		if err != nil || !bytes.Equal(b, value) {
			t.Fatalf("%s: %d bytes, %v", key, len(b), err)
		}
		v, err := view.Locate(bg, key)
		if err != nil || v.Size() != int64(len(value)) {
			t.Fatal(err)
		}
		var reqs []kv.Request
		for range 50 {
			off := rnd.Int64N(int64(len(value)))
			reqs = append(reqs, kv.Request{Key: key, Range: kv.Span(off, rnd.Int64N(min(int64(len(value))-off, 2<<20)))})
		}
		reqs = append(reqs, kv.Request{Key: key, Range: kv.Span(16<<20-5, 10)}, kv.Request{Key: key, Range: kv.Last(7)})
		got := must.Get(kv.GetMany(bg, view, reqs))(t)
		for i, q := range reqs {
			off, n, _ := q.Range.Resolve(int64(len(value)))
			if b, err := kv.ReadValue(bg, v, q.Range); err != nil || !bytes.Equal(b, value[off:off+n]) || !bytes.Equal(got[i], b) {
				t.Errorf("%s, %v: other bytes, %v", key, q.Range, err)
			}
		}
		for _, rng := range []kv.Range{kv.Span(int64(len(value))-1, 2), kv.From(int64(len(value)) + 1)} {
			if _, err := view.Get(bg, key, rng); !errors.Is(err, kv.ErrRange) {
				t.Errorf("%s, %v: %v", key, rng, err)
			}
		}
	}
}

// inParts uploads an object in parts.
func inParts(t *testing.T, o Options, key string, parts ...[]byte) {
	t.Helper()
	send := func(method, query string, body []byte) (http.Header, []byte) {
		t.Helper()
		req := must.Get(http.NewRequestWithContext(bg, method, o.Endpoint+"/bucket/"+url.PathEscape(key)+"?"+query, bytes.NewReader(body)))(t)
		sum := sha256.Sum256(body)
		req.Header.Set("X-Amz-Content-Sha256", hex.EncodeToString(sum[:]))
		resp := must.Get(http.DefaultClient.Do(signer.SignV4(*req, os.Getenv("ZARRDB_S3_KEY"), os.Getenv("ZARRDB_S3_SECRET"), "", defaultRegion)))(t)
		defer resp.Body.Close()
		answer, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode >= 300 {
			t.Fatalf("%s ?%s: %s, %s, %v", method, query, resp.Status, answer, err)
		}
		return resp.Header, answer
	}
	var begun struct{ UploadId string }
	if _, answer := send(http.MethodPost, "uploads=", nil); xml.Unmarshal(answer, &begun) != nil || begun.UploadId == "" {
		t.Fatalf("no upload: %s", answer)
	}
	list := "<CompleteMultipartUpload>"
	for i, part := range parts {
		h, _ := send(http.MethodPut, fmt.Sprintf("partNumber=%d&uploadId=%s", i+1, url.QueryEscape(begun.UploadId)), part)
		list += fmt.Sprintf("<Part><PartNumber>%d</PartNumber><ETag>%s</ETag></Part>", i+1, h.Get("ETag"))
	}
	send(http.MethodPost, "uploadId="+url.QueryEscape(begun.UploadId), []byte(list+"</CompleteMultipartUpload>"))
}

// flaky fails requests before and after the server has seen them.
type flaky struct {
	mu    sync.Mutex
	n     int
	codes []int
}

func (f *flaky) RoundTrip(req *http.Request) (*http.Response, error) {
	f.mu.Lock()
	f.n++
	n := f.n
	f.mu.Unlock()
	switch n % 4 {
	case 1:
		if req.Body != nil {
			_ = req.Body.Close()
		}
		return &http.Response{StatusCode: f.codes[n%len(f.codes)], Header: http.Header{}, Request: req, Body: http.NoBody}, nil
	case 2:
		resp, err := http.DefaultTransport.RoundTrip(req)
		if err == nil {
			_ = resp.Body.Close()
			err = syscall.ECONNRESET
		}
		return nil, err
	case 3:
		resp, err := http.DefaultTransport.RoundTrip(req)
		if err == nil { // half of it
			resp.Body = struct {
				io.Reader
				io.Closer
			}{io.MultiReader(io.LimitReader(resp.Body, max(resp.ContentLength/2, 0)), iotest.ErrReader(io.ErrUnexpectedEOF)), resp.Body}
		}
		return resp, err
	}
	return http.DefaultTransport.RoundTrip(req)
}

// TestServerFlaky gets through a network that fails most requests.
func TestServerFlaky(t *testing.T) {
	o := server(t)
	emptied(t, o)
	f := &flaky{codes: []int{500, 503, 502, 429}}
	o.Remote = remote.Options{Transport: f, Tries: 50, Sleep: func(ctx context.Context, _ time.Duration) error { return ctx.Err() }}
	view := open(t, o)
	want := map[string]string{}
	for i := range 30 {
		key, value := fmt.Sprintf("d%d/%d", i%3, i), strings.Repeat(fmt.Sprint(i), 100)
		must.Do(t, view.Set(bg, key, []byte(value)))
		want[key] = value
	}
	must.Do(t, view.Delete(bg, "d0/0"))
	delete(want, "d0/0")
	keys, err := kv.Keys(bg, view, "")
	if err != nil || !slices.Equal(keys, slices.Sorted(maps.Keys(want))) {
		t.Fatalf("%q, %v", keys, err)
	}
	for key, value := range want {
		if b, err := view.Get(bg, key, kv.Span(1, 50)); err != nil || string(b) != value[1:51] {
			t.Errorf("%s: %q, %v", key, b, err)
		}
	}
}

// TestServerChanged reads an object that is replaced meanwhile.
func TestServerChanged(t *testing.T) {
	view := emptied(t, server(t))
	long := bytes.Repeat([]byte("0123456789"), 100_000)
	must.Do(t, view.Set(bg, "k", long))
	v, b, err := kv.LocateRange(bg, view, "k", kv.Span(10, 20), 0)
	if err != nil || v.Size() != int64(len(long)) || !bytes.Equal(b, long[10:30]) {
		t.Fatalf("%d bytes, %v", len(b), err)
	}
	if b, err := kv.ReadValue(bg, v, kv.Last(5)); err != nil || string(b) != "56789" {
		t.Errorf("%q, %v", b, err)
	}
	must.Do(t, view.Set(bg, "k", bytes.ToUpper(append(long, 'x'))))
	if _, err := kv.ReadValue(bg, v, kv.Span(0, 5)); !errors.Is(err, kv.ErrChanged) {
		t.Errorf("replaced: %v", err)
	}
	must.Do(t, view.Delete(bg, "k"))
	if _, err := kv.ReadValue(bg, v, kv.Span(0, 5)); !errors.Is(err, kv.ErrChanged) {
		t.Errorf("deleted: %v", err)
	}
}
