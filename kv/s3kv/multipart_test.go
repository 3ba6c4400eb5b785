package s3kv

import (
	"bytes"
	"context"
	"crypto/md5"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/remote"
)

// uploads is a server that notes what is done with uploads in parts.
type uploads struct {
	next http.Handler
	// before, if not nil, answers itself and returns true; n counts requests like
	// this one from 1.
	before func(w http.ResponseWriter, r *http.Request, what string, n int) bool

	mu    sync.Mutex
	count map[string]int
	open  map[string]bool // uploads that were begun and not ended
}

func kindOf(r *http.Request) string {
	q := r.URL.Query()
	switch {
	case q.Has("uploads"):
		return "begin"
	case q.Has("partNumber"):
		return "part " + q.Get("partNumber")
	case q.Has("uploadId") && r.Method == http.MethodPost:
		return "complete"
	case q.Has("uploadId"):
		return "abort"
	}
	return r.Method
}

func (u *uploads) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	what := kindOf(r)
	u.mu.Lock()
	u.count[what]++
	n := u.count[what]
	u.mu.Unlock()
	if u.before != nil && u.before(w, r, what, n) {
		return
	}
	id := r.URL.Query().Get("uploadId")
	rec := httptest.NewRecorder()
	u.next.ServeHTTP(rec, r)
	u.mu.Lock()
	switch text := rec.Body.String(); {
	case rec.Code >= 300:
	case what == "begin":
		_, id, _ = strings.Cut(text, "<UploadId>")
		id, _, _ = strings.Cut(id, "</UploadId>")
		u.open[id] = true
	case what == "complete", what == "abort":
		delete(u.open, id)
	}
	u.mu.Unlock()
	for name, values := range rec.Header() {
		w.Header()[name] = values
	}
	w.WriteHeader(rec.Code)
	_, _ = w.Write(rec.Body.Bytes())
}

// times is how often there was such a request. Those that were canceled may still
// arrive.
func (u *uploads) times(what string) int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.count[what]
}

// left is how many uploads were begun and not ended.
func (u *uploads) left() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return len(u.open)
}

// openParts opens a bucket in which values over 100 bytes go in parts of 40.
func openParts(t *testing.T) (*uploads, *View) {
	t.Helper()
	alone(t)
	backend := s3mem.New()
	must.Do(t, backend.CreateBucket("bucket"))
	u := &uploads{next: gofakes3.New(backend).Server(), count: map[string]int{}, open: map[string]bool{}}
	srv := httptest.NewServer(u)
	t.Cleanup(srv.Close)
	view := open(t, Options{Endpoint: srv.URL, Anonymous: true, Remote: remote.Options{
		Tries: 3, Sleep: func(ctx context.Context, _ time.Duration) error { return ctx.Err() },
	}})
	view.b.long, view.b.part = 100, 40
	return u, view
}

func TestParts(t *testing.T) {
	fail := func(w http.ResponseWriter, status int, code string) bool {
		w.WriteHeader(status)
		fmt.Fprintf(w, "<Error><Code>%s</Code></Error>", code)
		return true
	}
	value := make([]byte, 210) // five parts and a quarter
	for i := range value {
		value[i] = byte(i)
	}
	for _, test := range []struct {
		name   string
		before func(w http.ResponseWriter, r *http.Request, what string, n int) bool
		code   string // of the error; "" for none
		aborts int
	}{
		{name: "fine"},
		{name: "each part fails once", before: func(w http.ResponseWriter, r *http.Request, what string, n int) bool {
			return strings.HasPrefix(what, "part") && n == 1 && fail(w, 503, "SlowDown")
		}},
		{name: "a part is never taken", code: "InternalError", aborts: 1, before: func(w http.ResponseWriter, r *http.Request, what string, _ int) bool {
			return what == "part 4" && fail(w, 500, "InternalError")
		}},
		{name: "a part is refused", code: "AccessDenied", aborts: 1, before: func(w http.ResponseWriter, r *http.Request, what string, _ int) bool {
			return what == "part 6" && fail(w, 403, "AccessDenied")
		}},
		{name: "no upload begins", code: "AccessDenied", before: func(w http.ResponseWriter, r *http.Request, what string, _ int) bool {
			return what == "begin" && fail(w, 403, "AccessDenied")
		}},
		{name: "it fails at the end", code: "InternalError", aborts: 1, before: func(w http.ResponseWriter, r *http.Request, what string, _ int) bool {
			return what == "complete" && fail(w, 200, "InternalError") // as S3 does
		}},
		{name: "it fails once at the end", before: func(w http.ResponseWriter, r *http.Request, what string, n int) bool {
			return what == "complete" && n == 1 && fail(w, 503, "SlowDown")
		}},
		{name: "aborting is tried again", code: "AccessDenied", aborts: 2, before: func(w http.ResponseWriter, r *http.Request, what string, n int) bool {
			return what == "part 1" && fail(w, 403, "AccessDenied") || what == "abort" && n == 1 && fail(w, 503, "SlowDown")
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			u, view := openParts(t)
			must.Do(t, view.Set(bg, "k", []byte("old")))
			u.before = test.before
			err := view.Set(bg, "k", value)
			var e *remote.Error
			if test.code == "" && err != nil || test.code != "" && !(errors.As(err, &e) && e.Code == test.code || errors.Is(err, remote.ErrAnswer) && strings.Contains(err.Error(), test.code)) {
				t.Errorf("%v", err)
			}
			want := value
			if test.code != "" {
				want = []byte("old")
			}
			if b, err := view.Get(bg, "k", kv.All()); err != nil || !bytes.Equal(b, want) {
				t.Errorf("afterwards: %d bytes, %v", len(b), err)
			}
			if u.times("abort") != test.aborts || u.left() > 0 {
				t.Errorf("%d times aborted, %d are left", u.times("abort"), u.left())
			}
			if u.times("PUT") != 1 {
				t.Errorf("%d single requests", u.times("PUT"))
			}
		})
	}
}

// Short values go in one request, and no number of parts is too large.
func TestPartSizes(t *testing.T) {
	for n, parts := range map[int]int{0: 0, 100: 0, 101: 3, 120: 3, 121: 4} {
		u, view := openParts(t)
		value := bytes.Repeat([]byte{7}, n)
		must.Do(t, view.Set(bg, "k", value))
		got := 0
		for u.times(fmt.Sprintf("part %d", got+1)) == 1 {
			got++
		}
		if b, err := view.Get(bg, "k", kv.All()); got != parts || err != nil || !bytes.Equal(b, value) {
			t.Errorf("%d bytes: %d parts, %d bytes come back, %v", n, got, len(b), err)
		}
	}
	for _, c := range [][3]int64{{partsFrom, partBytes, partBytes}, {5 << 40, partBytes, (5<<40 + 9999) / 10000}, {1, 40, 40}} {
		if got := partSize(c[0], c[1]); got != c[2] || (c[0]+got-1)/got > maxParts {
			t.Errorf("parts of %d for %d bytes, want %d", got, c[0], c[2])
		}
	}
}

// The answer to the last request may be lost: the value is there all the same, or
// it is not, if the key has another one.
func TestPartsAnswerLost(t *testing.T) {
	value := bytes.Repeat([]byte{7}, 130)
	for _, other := range []bool{false, true} {
		u, view := openParts(t)
		u.before = func(w http.ResponseWriter, r *http.Request, what string, n int) bool {
			switch {
			case what == "HEAD" && !other: // the server in the process makes other tags
				w.Header().Set("ETag", tagOf(value, 40))
				w.Header().Set("Content-Length", strconv.Itoa(len(value)))
				return true
			case what != "complete":
				return false
			case n > 1:
				w.WriteHeader(http.StatusNotFound)
				_, _ = io.WriteString(w, "<Error><Code>NoSuchUpload</Code></Error>")
				return true
			}
			if !other {
				u.next.ServeHTTP(httptest.NewRecorder(), r)
			}
			w.WriteHeader(http.StatusBadGateway)
			return true
		}
		err := view.Set(bg, "k", value)
		if (err != nil) != other {
			t.Errorf("other %v: %v", other, err)
		}
	}
}

// tagOf is the entity tag that S3 gives a value that came in parts.
func tagOf(value []byte, part int) string {
	all := md5.New()
	n := 0
	for p := range slices.Chunk(value, part) {
		sum := md5.Sum(p)
		all.Write(sum[:])
		n++
	}
	return fmt.Sprintf(`"%x-%d"`, all.Sum(nil), n)
}

// TestPartsStopped aborts what its context ends.
func TestPartsStopped(t *testing.T) {
	u, view := openParts(t)
	ctx, cancel := context.WithCancel(bg)
	u.before = func(w http.ResponseWriter, r *http.Request, what string, _ int) bool {
		if what == "part 2" {
			_, _ = io.Copy(io.Discard, r.Body) // or the end of the context is not seen
			cancel()
			<-r.Context().Done()
			return true
		}
		return false
	}
	if err := view.Set(ctx, "k", make([]byte, 210)); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if _, err := view.Get(bg, "k", kv.All()); !errors.Is(err, kv.ErrNotFound) {
		t.Error(err)
	}
	if u.times("abort") != 1 || u.left() > 0 {
		t.Errorf("%d times aborted, %d are left", u.times("abort"), u.left())
	}
}

// TestServerParts uploads to a server that checks signatures and the lengths of
// parts, and has it list what is left of uploads.
func TestServerParts(t *testing.T) {
	o := server(t)
	view := emptied(t, o)
	view.b.long, view.b.part = 6<<20, 5<<20
	value := make([]byte, 13<<20)
	for i := range value {
		value[i] = byte(i >> 8)
	}
	must.Do(t, view.Set(bg, "a b/ü", value))
	if b, err := view.Get(bg, "a b/ü", kv.All()); err != nil || !bytes.Equal(b, value) {
		t.Errorf("%d bytes, %v", len(b), err)
	}
	if info, err := view.Stat(bg, "a b/ü"); err != nil || string(info.Version) != "etag:"+tagOf(value, 5<<20) {
		t.Errorf("%+v, %v", info, err)
	}
	left := func() string {
		req, err := view.b.request(bg, http.MethodGet, "", map[string][]string{"uploads": {""}}, nil)
		must.Do(t, err)
		text := ""
		err = view.b.c.Do(bg, func(ctx context.Context) (*http.Request, error) { return req.Clone(ctx), nil }, func(resp *http.Response) error {
			b, err := io.ReadAll(resp.Body)
			text = string(b)
			return err
		})
		if err != nil || !strings.Contains(text, "ListMultipartUploadsResult") {
			t.Fatalf("%q, %v", text, err)
		}
		return text
	}
	view.b.part = 1 << 20 // which it refuses, when all of them are there
	if err := view.Set(bg, "short", value); err == nil {
		t.Error("short parts were taken")
	}
	if _, err := view.Get(bg, "short", kv.All()); !errors.Is(err, kv.ErrNotFound) {
		t.Error(err)
	}
	if text := left(); strings.Contains(text, "<Upload>") {
		t.Errorf("left are %s", text)
	}
	if keys, err := kv.Keys(bg, view, ""); err != nil || !slices.Equal(keys, []string{"a b/ü"}) {
		t.Errorf("%q, %v", keys, err)
	}
}
