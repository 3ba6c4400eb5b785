package local

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/serve/wire"
	"github.com/zarrdb/zarrdb/txn"
	"github.com/zarrdb/zarrdb/zarr"
)

// countingIn counts the requests that servers get.
func countingIn(t *testing.T) *atomic.Int64 {
	n := &atomic.Int64{}
	around(t, func(_ wire.Op, h handler) handler {
		return func(c *conn, ctx context.Context, f *wire.Frame) error {
			n.Add(1)
			return h(c, ctx, f)
		}
	})
	return n
}

// A peer that alone writes to a session reads the session without requests.
func TestOwnSessionIsReadHere(t *testing.T) {
	if !canShare {
		t.Skip("memory cannot be shared")
	}
	n := countingIn(t)
	_, c := served(t, nil, nil)
	s := must.Get(beginOn(c))(t)
	defer s.Abort()
	want := map[string][]byte{"a/large": random(1, 5000)}
	for i := range 20 {
		want[fmt.Sprintf("a/%02d", i)] = []byte(fmt.Sprint(i))
	}
	for key, value := range want {
		must.Do(t, s.Set(bg, key, value))
	}
	read := func() {
		t.Helper()
		for key, value := range want {
			wantValue(t, s, key, value)
		}
		if _, err := kv.Get(bg, s, "a/none"); !errors.Is(err, kv.ErrNotFound) {
			t.Errorf("a key without a value: %v", err)
		}
	}
	costs := func(what string, most int64, fn func()) {
		t.Helper()
		before := n.Load()
		fn()
		if got := n.Load() - before; got > most {
			t.Errorf("%s: %d requests, want at most %d", what, got, most)
		}
	}
	read()
	costs("reads", 0, read)
	costs("writes of two keys", 2, func() {
		want["a/01"], want["b/c/new"] = []byte("other"), []byte("new")
		must.Do(t, s.Set(bg, "a/01", want["a/01"]))
		must.Do(t, s.Set(bg, "b/c/new", want["b/c/new"]))
	})
	costs("reads after writes", 0, read)
	costs("a listing beside what was written", 0, func() {
		if got := must.Get(kv.Any(bg, s, "c/"))(t); got {
			t.Error("there are keys where none was written")
		}
	})
	must.Do(t, s.Set(bg, "a/large", random(2, 5000)))
	want["a/large"] = random(2, 5000)
	read()
	costs("a large value that was read", 0, read)
	must.Do(t, s.Delete(bg, "a/02"))
	delete(want, "a/02")
	costs("a deleted key", 0, func() {
		if _, err := kv.Get(bg, s, "a/02"); !errors.Is(err, kv.ErrNotFound) {
			t.Errorf("a deleted key: %v", err)
		}
	})
	costs("arrays", 30*4, func() {
		for i := range 30 {
			must.Get(s.CreateArray(bg, fmt.Sprintf("g/array%d", i), zarr.Spec{Shape: []int64{4}, Chunks: []int64{2}, DataType: "int8"}))(t)
		}
	})
}

// Whatever others write to a session, and however they do it, is read after it was
// acknowledged: from two clients and the server itself, with reads of the own state between.
func TestSharedSessionIsReadRight(t *testing.T) {
	h, c := served(t, nil, nil)
	one := must.Get(beginOn(c))(t)
	two := must.Get(resumeOn(join(t, h, nil), one.ID()))(t)
	here := must.Get(h.db.Resume(bg, one.ID()))(t)
	actors := []*engine.Session{one.Session, two.Session, here}
	want := map[string][]byte{}
	rng := rand.New(rand.NewPCG(1, 2))
	keys := make([]string, 0, 18)
	for _, dir := range []string{"", "a/", "a/b/"} {
		for i := range 6 {
			keys = append(keys, dir+fmt.Sprint("k", i))
		}
	}
	read := func(s *engine.Session, key string) {
		t.Helper()
		got, err := kv.Get(bg, s, key)
		value, ok := want[key]
		if !ok && !errors.Is(err, kv.ErrNotFound) || ok && (err != nil || !bytes.Equal(got, value)) {
			t.Fatalf("%s: %d bytes, %v, want %d bytes, there: %v", key, len(got), err, len(value), ok)
		}
	}
	list := func(s *engine.Session, prefix string) {
		t.Helper()
		var got, all []string
		for key, err := range s.List(bg, kv.ListOptions{Prefix: prefix}) {
			must.Do(t, err)
			got = append(got, key)
		}
		for _, key := range slices.Sorted(maps.Keys(want)) {
			if strings.HasPrefix(key, prefix) {
				all = append(all, key)
			}
		}
		if !slices.Equal(got, all) {
			t.Fatalf("list %q: %q, want %q", prefix, got, all)
		}
	}
	set := func(s *engine.Session, key string, value []byte) {
		for {
			var err error
			if value == nil {
				err = s.Delete(bg, key)
			} else {
				err = s.Set(bg, key, value)
			}
			if err == nil {
				break
			}
			if !errors.Is(err, txn.ErrConflict) { // it was read before another wrote it
				t.Fatal(err)
			}
			read(s, key)
		}
		if delete(want, key); value != nil {
			want[key] = value
		}
	}
	steps := 3000
	if testing.Short() {
		steps = 600
	}
	for i := range steps {
		s, key := actors[rng.IntN(len(actors))], keys[rng.IntN(len(keys))]
		if rng.IntN(3) > 0 { // mostly one of them for a while
			s = actors[i/50%len(actors)]
		}
		switch op := rng.IntN(40); {
		case op < 8:
			set(s, key, random(rng.Uint64(), 1+rng.IntN(20)))
		case op < 10:
			set(s, key, random(rng.Uint64(), 3000))
		case op < 12:
			set(s, key, nil)
		case op < 13 && want[key] != nil:
			set(s, key, want[key])
		case op < 14:
			must.Do(t, s.DeletePrefix(bg, "a/b/"))
			maps.DeleteFunc(want, func(key string, _ []byte) bool { return strings.HasPrefix(key, "a/b/") })
		case op < 15:
			b := must.Get(s.Bulk(bg, "a/b", true))(t)
			value := random(rng.Uint64(), 2000)
			must.Do(t, errors.Join(b.Set(bg, "k1", value), b.Finish(bg)))
			want["a/b/k1"] = value
		case op < 16:
			must.Do(t, s.Savepoint(bg))
		case op < 17:
			h.s.recall()
		case op < 18:
			f := must.Get(s.Fork(bg))(t)
			value := random(rng.Uint64(), 9)
			must.Do(t, errors.Join(f.Set(bg, "forked", value), s.Join(bg, f, nil)))
			want["forked"] = value
		case op < 21:
			list(s, []string{"", "a/", "a/b/", "none/"}[rng.IntN(4)])
		default:
			read(s, key)
		}
	}
	for _, s := range actors {
		list(s, "")
		for _, key := range keys {
			read(s, key)
		}
	}
	must.Get(one.Commit(bg, txn.CommitOptions{}))(t)
	for _, s := range actors[:2] {
		if _, err := kv.Get(bg, s, "k1"); !errors.Is(err, txn.ErrSessionClosed) {
			t.Errorf("a key of a session that was committed: %v", err)
		}
	}
}

// A request to count writes names eight bytes of a block at a multiple of eight.
func TestWatchRefuses(t *testing.T) {
	if !canShare {
		t.Skip("memory cannot be shared")
	}
	_, c := served(t, nil, nil)
	s := must.Get(beginOn(c))(t)
	defer s.Abort()
	tx := s.Versions().Tx().(*Session)
	must.Get(tx.Watch(bg))(t) // the block is known
	for _, at := range []int64{-8, 4, counterBytes - 4, counterBytes, 1 << 62} {
		in := wire.Watch{Handle: wire.Handle{View: tx.handle}, Destination: wire.Destination{At: at}}
		if err := tx.l.sendWatch(bg, &in, nil); !errors.Is(err, ErrRequest) {
			t.Errorf("a counter at %d: %v", at, err)
		}
	}
	in := wire.Watch{Handle: wire.Handle{View: tx.handle}, Destination: wire.Destination{Block: 7}}
	if _, err := tx.l.call(bg, &wire.Frame{Op: wire.OpWatch, Meta: must.Get(json.Marshal(in))(t)}, false); !errors.Is(err, ErrRequest) {
		t.Errorf("a block that is not known: %v", err)
	}
}

// A server that does not answer holds up no read longer than the context of that read.
func TestReadsBesideARequestWithoutAnswer(t *testing.T) {
	began, wait := make(chan struct{}), make(chan struct{})
	var once sync.Once
	around(t, func(op wire.Op, h handler) handler {
		return func(c *conn, ctx context.Context, f *wire.Frame) error {
			if op == wire.OpWatch || op == wire.OpRoots {
				once.Do(func() { close(began) })
				<-wait
			}
			return h(c, ctx, f)
		}
	})
	_, c := served(t, nil, nil)
	s := must.Get(beginOn(c))(t)
	must.Do(t, s.Set(bg, "k", []byte("1")))
	done := make(chan struct{})
	go func() { // reads until it asks for the roots, and waits
		defer close(done)
		for range 4 {
			wantValue(t, s, "k", []byte("1"))
		}
	}()
	<-began
	for range 4 { // with a deadline: each read ends
		ctx, cancel := context.WithTimeout(bg, 50*time.Millisecond)
		got, err := kv.Get(ctx, s, "k")
		if err == nil && string(got) != "1" || err != nil && !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a read beside a request without an answer: %q, %v", got, err)
		}
		cancel()
	}
	close(wait)
	<-done
	wantValue(t, s, "k", []byte("1"))
	must.Do(t, s.Abort())
}
