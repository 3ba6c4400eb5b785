package local

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/tree"
	"github.com/zarrdb/zarrdb/serve/wire"
	"github.com/zarrdb/zarrdb/txn"
)

// cutter ends the connection at one request.
type cutter struct {
	left atomic.Int64 // requests until then
	done atomic.Bool  // the request takes place
}

// cutting lets connections end before a request, or before its answer.
func cutting(t *testing.T) *cutter {
	cut := &cutter{}
	around(t, func(op wire.Op, h handler) handler {
		return func(c *conn, ctx context.Context, f *wire.Frame) error {
			if op == wire.OpClose || cut.left.Add(-1) != 0 {
				return h(c, ctx, f)
			}
			_ = c.u.Close()
			if cut.done.Load() {
				return h(c, context.WithoutCancel(ctx), f)
			}
			return nil
		}
	})
	return cut
}

// around replaces all handlers until the test ends. It is called before a server starts.
func around(t *testing.T, replace func(op wire.Op, h handler) handler) {
	was := handlers
	must.Set(t, &handlers, map[wire.Op]handler{})
	for op, h := range was {
		handlers[op] = replace(op, h)
	}
}

// A session of a peer goes on when the connection ends before any request. If the connection
// ends before any answer, the session goes on too, or the error says that the outcome is not
// known; a commit has all or nothing.
func TestCutSessions(t *testing.T) {
	cut := cutting(t)
	h, _ := served(t, nil, nil)
	write := func(c *Client, branch string) error {
		s, err := sessionOn(c, func(db *engine.DB) (*engine.Session, error) { return db.Begin(bg, branch) })
		if err != nil {
			return err
		}
		steps := []func() error{
			func() error { _, err := kv.Get(bg, s, "a/k"); return notFound(err) },
			func() error { return s.Set(bg, "a/k", []byte("1")) },
			func() error { return s.Set(bg, "a/large", random(7, 100_000)) },
			func() error { return s.SetVirtual(bg, "a/v", tree.Source{URL: "file:///x"}, 1, 2) },
			func() error { return s.Move(bg, "a", "b") },
			func() error { _, err := kv.Get(bg, s, "c/k"); return notFound(err) },
			func() error { _, err := kv.Get(bg, s, "bulk/0"); return notFound(err) },
			func() error { return s.Copy(bg, nil, "b", "c") },
			func() error { return s.Set(bg, "c/k", []byte("3")) }, // it is known since the copy
			func() error { return s.Set(bg, "b/k", []byte("2")) },
			func() error {
				b, err := s.Bulk(bg, "bulk", true)
				for i := 0; i < 5 && err == nil; i++ {
					err = b.Set(bg, fmt.Sprint(i), random(uint64(i), 3000))
				}
				if err != nil {
					return err
				}
				return b.Finish(bg)
			},
			func() error { return s.Set(bg, "bulk/0", []byte("4")) }, // it is known since the bulk write
			func() error { return s.DeletePrefix(bg, "c/l") },
			func() error { return s.Savepoint(bg) },
			func() error {
				f, err := s.Fork(bg)
				if err != nil {
					return err
				}
				if err := f.Set(bg, "f", []byte("1")); err != nil {
					return err
				}
				return s.Join(bg, f, nil)
			},
			func() error { _, err := s.Commit(bg, txn.CommitOptions{}); return err },
		}
		for i, step := range steps {
			if err := step(); err != nil {
				return fmt.Errorf("step %d: %w", i, err)
			}
		}
		return nil
	}
	content := func(branch string) string {
		s := must.Get(h.db.At(bg, branch))(t)
		defer s.Close()
		var out strings.Builder
		for v, err := range s.Values(bg, "") {
			must.Do(t, err)
			fmt.Fprintf(&out, "%s %s %d;", v.Key, v.Kind, v.Length)
			if v.Kind != "virtual" {
				b := must.Get(s.Get(bg, v.Key, kv.All()))(t)
				fmt.Fprintf(&out, "%x\n", b)
			}
		}
		return out.String()
	}
	first := must.Get(h.db.Head(bg, ""))(t)
	empty, want := content(""), ""
	for _, done := range []bool{false, true} {
		for n := int64(0); ; n++ {
			branch := fmt.Sprintf("b-%v-%d", done, n)
			must.Do(t, h.db.Versions().CreateBranch(bg, branch, first))
			c := join(t, h, nil)
			cut.done.Store(done)
			cut.left.Store(n)
			err := write(c, branch)
			left := cut.left.Swap(0)
			leave(c)
			got := content(branch)
			switch {
			case n == 0 && err != nil: // nothing is cut
				t.Fatal(err)
			case want == "":
				want = got
			case err == nil && got != want:
				t.Fatalf("cut at request %d, done: %v: other content:\n%.3000s\nwant\n%.3000s", n, done, got, want)
			case err != nil && (!done || !errors.Is(err, ErrUnknown) && !errors.Is(err, txn.ErrLost)):
				t.Errorf("cut at request %d, done: %v: %v", n, done, err)
			case err != nil && got != want && got != empty:
				t.Errorf("cut at request %d: half of a commit", n)
			}
			if left > 0 {
				t.Logf("done: %v: %d requests", done, n-left)
				break
			}
		}
	}
}

// A conditional write that took place and was not answered succeeds when it is repeated. Where another client has written meanwhile, it
// is an [ErrUnknown].
func TestConditionalWritesThatWereNotAnswered(t *testing.T) {
	var meanwhile atomic.Pointer[func()] // before a session is opened again
	around(t, func(op wire.Op, serve handler) handler {
		return func(c *conn, ctx context.Context, f *wire.Frame) error {
			if fn := meanwhile.Load(); fn != nil && op == wire.OpOpen {
				(*fn)()
			}
			return serve(c, ctx, f)
		}
	})
	cut := cutting(t)
	h, c := served(t, nil, nil)
	s := must.Get(source{c}.Begin(bg, txn.BeginOptions{}))(t).(*Session)
	other := must.Get(h.db.Resume(bg, s.id))(t)
	large := random(3, 100_000)
	cut.done.Store(true)
	cut.left.Store(1)
	first := must.Get(s.SetIf(bg, "k", large, txn.Expect{Absent: true}))(t)
	cut.left.Store(1)
	second := must.Get(s.SetIf(bg, "k", []byte("2"), txn.Expect{ID: first}))(t)
	wantValue(t, other, "k", []byte("2"))
	cut.left.Store(1)
	must.Get(s.SetIf(bg, "k", nil, txn.Expect{ID: second}))(t)
	if _, err := kv.Get(bg, other, "k"); !errors.Is(err, kv.ErrNotFound) {
		t.Error(err)
	}
	write := func() { must.Do(t, other.Set(bg, "k", []byte("4"))) }
	meanwhile.Store(&write)
	cut.left.Store(1)
	if _, err := s.SetIf(bg, "k", []byte("3"), txn.Expect{Absent: true}); !errors.Is(err, ErrUnknown) {
		t.Error(err)
	}
}

// Peers and the holder write to sessions of their own and to a common one, at random, as a
// model says.
func TestRandomSessionsOfPeers(t *testing.T) {
	for seed := range uint64(4) {
		r := rand.New(rand.NewPCG(seed, 1))
		h, c := served(t, nil, nil)
		s := begin(t, c)
		held := must.Get(h.db.Resume(bg, s.ID()))(t)
		model := map[string]string{}
		key := func() string { return fmt.Sprintf("d%d/k%d", r.IntN(3), r.IntN(4)) }
		for step := range 150 {
			by := []*engine.Session{s.Session, held}[r.IntN(2)]
			k := key()
			var err error
			what := ""
			switch n := r.IntN(8); n {
			case 0, 1, 2:
				v := string(random(r.Uint64(), r.IntN(3000)))
				if _, err = kv.Get(bg, by, k); errors.Is(err, kv.ErrNotFound) {
					err = nil
				}
				if err == nil {
					err = by.Set(bg, k, []byte(v))
				}
				model[k], what = v, "set"
			case 3:
				if _, err = by.Get(bg, k, kv.All()); err == nil || errors.Is(err, kv.ErrNotFound) {
					err = by.Delete(bg, k)
				}
				delete(model, k)
				what = "delete"
			case 4:
				err = by.DeletePrefix(bg, k[:3])
				maps.DeleteFunc(model, func(key, _ string) bool { return strings.HasPrefix(key, k[:3]) })
				what = "delete all"
			case 5:
				from, to := k[:2], fmt.Sprint("m", step)
				if !slices.ContainsFunc(slices.Collect(maps.Keys(model)), func(key string) bool { return strings.HasPrefix(key, from+"/") }) {
					continue
				}
				move := r.IntN(2) > 0
				if what = "copy"; move {
					what, err = "move", by.Move(bg, from, to)
				} else {
					err = by.Copy(bg, nil, from, to)
				}
				for key, v := range maps.Clone(model) {
					if below, ok := strings.CutPrefix(key, from+"/"); ok {
						model[to+"/"+below] = v
						if move {
							delete(model, key)
						}
					}
				}
			case 6:
				b, failed := by.Bulk(bg, "", true)
				if err = failed; err == nil {
					for range 5 {
						k, v := key(), string(random(r.Uint64(), r.IntN(3000)))
						if err = b.Set(bg, k, []byte(v)); err != nil {
							break
						}
						model[k] = v
					}
					err = errors.Join(err, b.Finish(bg))
				}
				what = "bulk"
			case 7:
				err, what = by.Savepoint(bg), "savepoint"
			}
			if err != nil {
				t.Fatalf("seed %d, step %d: %s by the peer: %v: %v", seed, step, what, by == s.Session, err)
			}
			for _, other := range []*engine.Session{s.Session, held} {
				got := map[string]string{}
				for k, err := range other.List(bg, kv.ListOptions{}) {
					b, failed := kv.Get(bg, other, k)
					if err = errors.Join(err, failed); err != nil {
						t.Fatal(seed, step, what, k, err)
					}
					got[k] = string(b)
				}
				if !maps.Equal(got, model) {
					t.Fatalf("seed %d, step %d: after %s: %d keys in the peer: %v, want %d", seed, step, what, len(got), other == s.Session, len(model))
				}
			}
		}
		must.Get(s.Commit(bg, txn.CommitOptions{}))(t)
		if got := contents(t, h.db); !maps.Equal(got, model) {
			t.Errorf("seed %d: the commit has other values", seed)
		}
	}
}
