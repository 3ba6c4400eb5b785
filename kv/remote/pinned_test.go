package remote

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
)

// TestPinned reads values that are not what was located any more, from servers
// that say so in their own ways, or hardly.
func TestPinned(t *testing.T) {
	const located = "0123456789"
	unsized := func(w http.ResponseWriter, b string) {
		w.(http.Flusher).Flush() // so that no length is known
		_, _ = w.Write([]byte(b))
	}
	for _, test := range []struct {
		name, tag string
		rng       kv.Range
		answer    func(w http.ResponseWriter, r *http.Request)
		want      error
	}{
		{"no version any more", `"a"`, kv.Span(2, 3), func(w http.ResponseWriter, r *http.Request) {
			http.ServeContent(w, r, "", time.Time{}, strings.NewReader(located))
		}, kv.ErrChanged},
		{"a version at last", "", kv.Span(2, 3), func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("ETag", `"a"`)
			http.ServeContent(w, r, "", time.Time{}, strings.NewReader(located))
		}, nil},
		{"weak for strong", `"a"`, kv.All(), func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("ETag", `W/"a"`)
			_, _ = w.Write([]byte(located))
		}, kv.ErrChanged},
		{"longer", "", kv.Span(2, 3), func(w http.ResponseWriter, r *http.Request) {
			http.ServeContent(w, r, "", time.Time{}, strings.NewReader(located+"x"))
		}, kv.ErrChanged},
		{"longer, ranges ignored", "", kv.Span(2, 3), func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(located + "x")) }, kv.ErrChanged},
		{"longer, of unknown length", "", kv.All(), func(w http.ResponseWriter, _ *http.Request) { unsized(w, located+"x") }, kv.ErrChanged},
		{"longer, of unknown length, the end", "", kv.Span(7, 3), func(w http.ResponseWriter, _ *http.Request) { unsized(w, located+"x") }, kv.ErrChanged},
		{"shorter, of unknown length", "", kv.All(), func(w http.ResponseWriter, _ *http.Request) { unsized(w, located[:9]) }, kv.ErrChanged},
		{"shorter, of unknown length, a part", "", kv.Span(2, 7), func(w http.ResponseWriter, _ *http.Request) { unsized(w, located[:9]) }, kv.ErrChanged},
		{"of unknown length", "", kv.Span(2, 3), func(w http.ResponseWriter, _ *http.Request) { unsized(w, located) }, nil},
		{"empty", `"a"`, kv.Span(2, 3), func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("ETag", `"a"`)
			http.ServeContent(w, r, "", time.Time{}, strings.NewReader(""))
		}, kv.ErrChanged},
		{"encoded", `"a"`, kv.All(), func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("ETag", `"a"`)
			w.Header().Set("Content-Encoding", "br")
			_, _ = w.Write([]byte(located))
		}, ErrAnswer},
	} {
		t.Run(test.name, func(t *testing.T) {
			o, _ := serve(t, Options{}, func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodHead {
					if test.tag != "" {
						w.Header().Set("ETag", test.tag)
					}
					w.Header().Set("Content-Length", fmt.Sprint(len(located)))
					return
				}
				test.answer(w, r)
			})
			v := must.Get(o.Locate(bg, "k"))(t)
			off, n, err := test.rng.Resolve(v.Size())
			must.Do(t, err)
			b, err := kv.ReadValue(bg, v, test.rng)
			if !errors.Is(err, test.want) || err == nil && string(b) != located[off:off+n] {
				t.Errorf("%q, %v, want %v", b, err, test.want)
			}
			if errors.Is(err, kv.ErrNotFound) {
				t.Errorf("%v passes for a missing value", err)
			}
		})
	}
}

// TestLocatedEncoded locates a value whose length is that of other bytes.
func TestLocatedEncoded(t *testing.T) {
	o, _ := serve(t, Options{}, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		w.Header().Set("Content-Length", "3")
	})
	if v, err := o.Locate(bg, "k"); !errors.Is(err, ErrAnswer) {
		t.Errorf("%v, %v", v, err)
	}
}

// TestCutWithoutLength tries again after a body that ends as if it was complete.
func TestCutWithoutLength(t *testing.T) {
	n := 0
	o, waits := serve(t, Options{}, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Range", "bytes 2-5/10")
		w.WriteHeader(http.StatusPartialContent)
		w.(http.Flusher).Flush()
		if n++; n == 1 {
			_, _ = w.Write([]byte("23"))
			return
		}
		_, _ = w.Write([]byte("2345"))
	})
	if b, err := o.Get(bg, "k", kv.Span(2, 4)); err != nil || string(b) != "2345" || len(*waits) != 1 {
		t.Errorf("%q, %v after %d waits", b, err, len(*waits))
	}
}

// TestRequestHeaders is about what each request says of the bytes it wants.
func TestRequestHeaders(t *testing.T) {
	for tag, want := range map[string]string{`"a"`: `"a"`, `W/"a"`: "", "": ""} {
		var got http.Header
		o, _ := serve(t, Options{}, func(w http.ResponseWriter, r *http.Request) {
			got = r.Header.Clone()
			if tag != "" {
				w.Header().Set("ETag", tag)
			}
			if r.Header.Get("If-Match") == "" {
				http.ServeContent(w, r, "", time.Time{}, bytes.NewReader([]byte("0123456789")))
				return
			}
			w.Header().Set("Content-Range", "bytes 2-4/10")
			w.WriteHeader(http.StatusPartialContent)
			_, _ = w.Write([]byte("234"))
		})
		v, err := o.Locate(bg, "k")
		if err != nil || got.Get("If-Match") != "" || got.Get("Accept-Encoding") != "identity" {
			t.Fatalf("%v, %v", got, err)
		}
		if b, err := kv.ReadValue(bg, v, kv.Span(2, 3)); err != nil || string(b) != "234" {
			t.Errorf("%q, %v", b, err)
		}
		if got.Get("If-Match") != want || got.Get("Accept-Encoding") != "identity" || got.Get("Range") != "bytes=2-4" {
			t.Errorf("with the tag %q it asked %v", tag, got)
		}
	}
}

// TestLocateRangeInTwo gives no bytes of one version for a value of another, where
// a second request has to tell the length.
func TestLocateRangeInTwo(t *testing.T) {
	for _, tags := range [][2]string{{`"a"`, `"b"`}, {`"a"`, ""}, {"", `"b"`}, {"", ""}} {
		o, _ := serve(t, Options{}, func(w http.ResponseWriter, r *http.Request) {
			tag := tags[0]
			if r.Method == http.MethodHead {
				tag = tags[1]
				w.Header().Set("Content-Length", "10")
			}
			if tag != "" {
				w.Header().Set("ETag", tag)
			}
			w.Header().Set("Content-Range", "bytes 2-4/*")
			if r.Method == http.MethodGet {
				w.WriteHeader(http.StatusPartialContent)
				_, _ = w.Write([]byte("234"))
			}
		})
		v, b, err := o.LocateRange(bg, "k", kv.Span(2, 3), 0)
		if err != nil || b != nil || v.Size() != 10 || v.(*value).info.Version != VersionOf(http.Header{"Etag": {tags[1]}}) {
			t.Errorf("%q: %q of %+v, %v", tags, b, v, err)
		}
	}
}

// roundTrips answers requests without a network.
type roundTrips func(*http.Request) (*http.Response, error)

func (f roundTrips) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestRedirectToLess does not go on without encryption.
func TestRedirectToLess(t *testing.T) {
	for _, to := range []string{"http://a/y", "http://b/y"} {
		c := NewClient(&Options{Transport: roundTrips(func(r *http.Request) (*http.Response, error) {
			if r.URL.Scheme != "https" {
				t.Errorf("asked %s", r.URL)
			}
			return &http.Response{StatusCode: http.StatusFound, Header: http.Header{"Location": {to}}, Body: http.NoBody, Request: r}, nil
		})})
		_, err := NewObjects(c, plainWeb{"https://a/"}).Get(bg, "k", kv.All())
		if !errors.Is(err, ErrRedirect) || !strings.Contains(err.Error(), "from https to") {
			t.Errorf("to %s: %v", to, err)
		}
	}
}
