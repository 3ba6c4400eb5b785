package depot

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/s3kv"
)

// liar is a store that breaks a promise.
type liar struct {
	kv.Store
	set func(c kv.Conditional, ctx context.Context, key string, value []byte, want kv.Tag) (kv.Tag, error)
}

func (l *liar) GetTagged(ctx context.Context, key string, known kv.Tag, limit int64) (kv.Tagged, error) {
	return l.Store.(kv.Conditional).GetTagged(ctx, key, known, limit)
}

func (l *liar) SetTagged(ctx context.Context, key string, value []byte, want kv.Tag) (kv.Tag, error) {
	return l.set(l.Store.(kv.Conditional), ctx, key, value, want)
}

func done(c kv.Conditional, ctx context.Context, key string, value []byte) (kv.Tag, error) {
	return kv.TagOf(value), c.(kv.Store).Set(ctx, key, value)
}

// TestProbe passes stores that keep their promises, and refuses three that do not, before anything is
// written that is not the probe's.
func TestProbe(t *testing.T) {
	for name, store := range stores(t) {
		if err := Probe(bg, store, nil); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if keys, err := kv.Keys(bg, store, ""); err != nil || len(keys) > 0 {
			t.Errorf("%s: %q are left, %v", name, keys, err)
		}
	}
	for name, test := range map[string]struct {
		set  func(c kv.Conditional, ctx context.Context, key string, value []byte, want kv.Tag) (kv.Tag, error)
		want string
	}{
		"ignores conditions": {func(c kv.Conditional, ctx context.Context, key string, value []byte, _ kv.Tag) (kv.Tag, error) {
			return done(c, ctx, key, value)
		}, "makes an object that exists"},
		"loses races": {func(c kv.Conditional, ctx context.Context, key string, value []byte, want kv.Tag) (kv.Tag, error) {
			now, err := c.GetTagged(ctx, key, kv.NoValue, 1<<20)
			if err != nil && !errors.Is(err, kv.ErrNotFound) {
				return "", err
			}
			if now.Tag != want {
				return "", kv.ErrChanged
			}
			meet(ctx)
			return done(c, ctx, key, value)
		}, "writers"},
		"ignores If-Match without an object": {func(c kv.Conditional, ctx context.Context, key string, value []byte, want kv.Tag) (kv.Tag, error) {
			if _, err := c.GetTagged(ctx, key, kv.NoValue, 1<<20); errors.Is(err, kv.ErrNotFound) {
				return done(c, ctx, key, value)
			}
			return c.SetTagged(ctx, key, value, want)
		}, "does not exist"},
		"takes If-None-Match for If-Match": {func(c kv.Conditional, ctx context.Context, key string, value []byte, want kv.Tag) (kv.Tag, error) {
			if _, err := c.GetTagged(ctx, key, kv.NoValue, 1<<20); want == kv.NoValue && errors.Is(err, kv.ErrNotFound) {
				return "", kv.ErrChanged
			}
			return done(c, ctx, key, value)
		}, "where none is"},
		"refuses what it must not": {func(kv.Conditional, context.Context, string, []byte, kv.Tag) (kv.Tag, error) {
			return "", errors.New("501 not implemented")
		}, "501"},
	} {
		store := kv.NewMem()
		d, err := Create(bg, &liar{store, test.set}, nil)
		if d != nil || err == nil || !strings.Contains(err.Error(), test.want) || errors.Is(err, ErrUnfit) != (test.want != "501") {
			t.Errorf("%s: %v", name, err)
		}
		for _, key := range must.Get(kv.Keys(bg, store, ""))(t) {
			if !strings.HasPrefix(key, probePrefix) {
				t.Errorf("%s: %s was written", name, key)
			}
		}
	}
	var n atomic.Int64
	err := Probe(bg, &liar{kv.NewMem(), func(c kv.Conditional, ctx context.Context, key string, value []byte, want kv.Tag) (kv.Tag, error) {
		tag, err := c.SetTagged(ctx, key, value, want)
		if n.Add(1)%9 == 0 && n.Load() < 40 {
			return "", fmt.Errorf("%w: reset", kv.ErrUnknown)
		}
		return tag, err
	}}, nil)
	if err != nil {
		t.Errorf("with lost answers: %v", err)
	}
	ctx, cancel := context.WithCancel(bg)
	n.Store(0)
	err = Probe(ctx, &liar{kv.NewMem(), func(kv.Conditional, context.Context, string, []byte, kv.Tag) (kv.Tag, error) {
		n.Add(1)
		cancel()
		return "", fmt.Errorf("%w: canceled", kv.ErrUnknown)
	}}, nil)
	if err == nil || n.Load() != 1 {
		t.Errorf("canceled: %v, after %d writes", err, n.Load())
	}
	if _, err := Create(bg, deaf{kv.NewMem()}, nil); err != nil {
		t.Errorf("without FORMAT, and with what the probe left: %v", err)
	}
	if _, err := Open(bg, struct{ kv.Store }{kv.NewMem()}, nil); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("without conditional writes: %v", err)
	}
}

// TestProbeRaces refuses a server that looks at conditions when a request begins, and writes when it has the value:
// one by one, that is right.
func TestProbeRaces(t *testing.T) {
	backend := s3mem.New()
	must.Do(t, backend.CreateBucket("bucket"))
	right := gofakes3.New(backend).Server()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if want, none := r.Header.Get("If-Match"), r.Header.Get("If-None-Match"); r.Method == http.MethodPut && want+none != "" {
			look := httptest.NewRecorder()
			right.ServeHTTP(look, httptest.NewRequest(http.MethodHead, r.URL.String(), nil))
			if exists := look.Code == http.StatusOK; exists && none != "" || want != "" && (!exists || look.Header().Get("ETag") != want) {
				w.WriteHeader(http.StatusPreconditionFailed)
				return
			}
			r.Header.Del("If-Match")
			r.Header.Del("If-None-Match")
		}
		right.ServeHTTP(w, r)
	}))
	defer srv.Close()
	bucket := must.Get(s3kv.Open("bucket", &s3kv.Options{Endpoint: srv.URL, Anonymous: true}))(t)
	if err := Probe(bg, bucket, nil); !errors.Is(err, ErrUnfit) || !strings.Contains(err.Error(), "of 8 writers of which each makes one object") {
		t.Errorf("%v", err)
	}
}

// deaf refuses writes without a condition, and deletions, as a key that may not delete and an object lock do.
type deaf struct{ *kv.Mem }

func (deaf) Delete(context.Context, string) error { return errors.New("refused") }

func (deaf) Set(context.Context, string, []byte) error { return errors.New("refused") }

// meet lets other goroutines come to the same place.
func meet(context.Context) {
	for range 100 {
		runtime.Gosched()
	}
}
