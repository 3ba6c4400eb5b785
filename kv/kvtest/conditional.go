package kvtest

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
)

// conditional returns an empty store with conditional writes, or skips the test.
func (s *suite) conditional(t *testing.T) (kv.Store, kv.Conditional) {
	t.Helper()
	st := s.store(t)
	c, ok := st.(kv.Conditional)
	if ok {
		_, err := c.GetTagged(bg, "never", kv.NoValue, 10)
		ok = !errors.Is(err, errors.ErrUnsupported)
	}
	if !ok {
		t.Skipf("%T has no conditional writes", st)
	}
	return st, c
}

// testConditional sets keys by tags that fit and by tags that do not.
func (s *suite) testConditional(t *testing.T) {
	st, c := s.conditional(t)
	if _, err := c.GetTagged(bg, "d/k", kv.NoValue, 10); !errors.Is(err, kv.ErrNotFound) {
		t.Errorf("get of a missing key: %v", err)
	}
	set := func(what, key, value string, want kv.Tag, fits bool) kv.Tag {
		t.Helper()
		tag, err := c.SetTagged(bg, key, []byte(value), want)
		if fits && (err != nil || tag == kv.NoValue) || !fits && (!errors.Is(err, kv.ErrChanged) || errors.Is(err, kv.ErrUnknown)) {
			t.Fatalf("%s: tag %q, %v", what, tag, err)
		}
		return tag
	}
	one := set("create", "d/k", "one", kv.NoValue, true)
	set("create again", "d/k", "again", kv.NoValue, false)
	two := set("replace", "d/k", "two", one, true)
	set("replace by an old tag", "d/k", "old", one, false)
	set("replace what is missing", "d/other", "x", two, false)
	wantValue(t, st, "d/k", []byte("two"))
	if _, err := st.Get(bg, "d/other", kv.All()); err != kv.ErrNotFound {
		t.Errorf("a refused write left something: %v", err)
	}
	for _, known := range []kv.Tag{kv.NoValue, one, two} {
		got, err := c.GetTagged(bg, "d/k", known, 3)
		if err != nil || got.Tag != two || known != two && string(got.Value) != "two" || known == two && got.Value != nil {
			t.Errorf("get, known %q: %q with tag %q, %v", known, got.Value, got.Tag, err)
		}
	}
	if _, err := c.GetTagged(bg, "d/k", kv.NoValue, 2); !errors.Is(err, kv.ErrTooLarge) {
		t.Errorf("get above the limit: %v", err)
	}
	must.Do(t, st.Set(bg, "d/k", []byte("three")))
	set("replace what was set without a condition", "d/k", "x", two, false)
	must.Do(t, st.Delete(bg, "d/k"))
	set("replace what was deleted", "d/k", "x", two, false)
	set("create what was deleted", "d/k", "", kv.NoValue, true)
	wantValue(t, st, "d/k", []byte{})
}

// testConditionalRaces counts with a key that several writers increase: no increment is lost.
func (s *suite) testConditionalRaces(t *testing.T) {
	_, c := s.conditional(t)
	var done, created atomic.Int64
	var wg sync.WaitGroup
	for g := range 6 {
		wg.Go(func() {
			if _, err := c.SetTagged(bg, "made", []byte{byte(g)}, kv.NoValue); err == nil {
				created.Add(1)
			} else if !errors.Is(err, kv.ErrChanged) {
				t.Errorf("create: %v", err)
			}
			for range 8 {
				for {
					now, err := c.GetTagged(bg, "n", kv.NoValue, 1000)
					if err != nil && !errors.Is(err, kv.ErrNotFound) {
						t.Errorf("get: %v", err)
						return
					}
					n, _ := strconv.Atoi(string(now.Value))
					if _, err = c.SetTagged(bg, "n", fmt.Append(nil, n+1), now.Tag); err == nil {
						done.Add(1)
						break
					} else if !errors.Is(err, kv.ErrChanged) {
						t.Errorf("set: %v", err)
						return
					}
				}
			}
		})
	}
	wg.Wait()
	now, err := c.GetTagged(bg, "n", kv.NoValue, 1000)
	if err != nil || string(now.Value) != fmt.Sprint(done.Load()) || done.Load() != 48 || created.Load() != 1 {
		t.Errorf("%d increments gave %q, %v; %d created one key", done.Load(), now.Value, err, created.Load())
	}
}

// testSetValue sets keys to values that are not in memory.
func (s *suite) testSetValue(t *testing.T) {
	st := s.store(t)
	for _, n := range []int{0, 1, 300_000} {
		b := pattern(n, 7)
		must.Do(t, kv.SetValue(bg, st, "d/v", kv.FromReaderAt(bytes.NewReader(b), int64(n), kv.ID{})))
		wantValue(t, st, "d/v", b)
	}
	if err := kv.SetValue(bg, st, "d/v", kv.FromReaderAt(bytes.NewReader([]byte("short")), 10, kv.ID{})); err == nil {
		t.Error("a value that ends early was set")
	}
	wantValue(t, st, "d/v", pattern(300_000, 7))
}
