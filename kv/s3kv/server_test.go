package s3kv

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/minio/minio-go/v7/pkg/signer"

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
	if err := kv.DeletePrefix(bg, view, ""); err != nil {
		t.Fatal(err)
	}
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

// TestServerSignatures has every kind of request refused that is not signed as
// who may send it.
func TestServerSignatures(t *testing.T) {
	o := server(t)
	view := emptied(t, o)
	// Keys and values that a signature could stumble over.
	for _, key := range []string{"plain", "a b+c/ü&=?#%41;,~*'()", "dir/.zarray"} {
		if err := view.Set(bg, key, []byte("value of "+key)); err != nil {
			t.Fatal(err)
		}
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
	if err := view.Set(bg, "a/b c", []byte("inside")); err != nil {
		t.Fatal(err)
	}
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
	if err := view.Set(bg, "k", []byte("public")); err != nil {
		t.Fatal(err)
	}
	policy := []byte(`{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":"*","Action":["s3:GetObject","s3:ListBucket"],"Resource":["arn:aws:s3:::bucket","arn:aws:s3:::bucket/*"]}]}`)
	setPolicy := func(method string, body []byte) {
		t.Helper()
		req, err := http.NewRequestWithContext(bg, method, o.Endpoint+"/bucket?policy=", bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(body)
		req.Header.Set("X-Amz-Content-Sha256", hex.EncodeToString(sum[:]))
		resp, err := http.DefaultClient.Do(signer.SignV4(*req, os.Getenv("ZARRDB_S3_KEY"), os.Getenv("ZARRDB_S3_SECRET"), "", defaultRegion))
		if err != nil {
			t.Fatal(err)
		}
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

// TestServerChanged reads an object that is replaced meanwhile.
func TestServerChanged(t *testing.T) {
	view := emptied(t, server(t))
	long := bytes.Repeat([]byte("0123456789"), 100_000)
	if err := view.Set(bg, "k", long); err != nil {
		t.Fatal(err)
	}
	v, b, err := kv.LocateRange(bg, view, "k", kv.Span(10, 20), 0)
	if err != nil || v.Size() != int64(len(long)) || !bytes.Equal(b, long[10:30]) {
		t.Fatalf("%d bytes, %v", len(b), err)
	}
	if b, err := kv.ReadValue(bg, v, kv.Last(5)); err != nil || string(b) != "56789" {
		t.Errorf("%q, %v", b, err)
	}
	if err := view.Set(bg, "k", bytes.ToUpper(append(long, 'x'))); err != nil {
		t.Fatal(err)
	}
	if _, err := kv.ReadValue(bg, v, kv.Span(0, 5)); !errors.Is(err, kv.ErrChanged) {
		t.Errorf("replaced: %v", err)
	}
	if err := view.Delete(bg, "k"); err != nil {
		t.Fatal(err)
	}
	if _, err := kv.ReadValue(bg, v, kv.Span(0, 5)); !errors.Is(err, kv.ErrChanged) {
		t.Errorf("deleted: %v", err)
	}
}
