package kvtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
)

func (s *suite) testMissing(t *testing.T) {
	view, want := s.filled(t, map[string][]byte{"a/b": nil, "c": {1}})
	for _, key := range []string{"x", "a", "a/bb", "a/b/c", "c/d", "C", "cc", "a/x/y", "x/y/z", "zarr.json"} {
		if _, ok := want[key]; ok || !s.holds(key) {
			continue
		}
		for _, rng := range []kv.Range{kv.All(), kv.Span(0, 0), kv.From(5), kv.Last(1), kv.AtMost(0)} {
			if b, err := view.Get(bg, key, rng); err != kv.ErrNotFound || b != nil {
				t.Errorf("Get(%q, %v) = %v, %v, want kv.ErrNotFound itself", key, rng, b, err)
			}
		}
		if v, err := kv.Locate(bg, view, key); err != kv.ErrNotFound || v != nil {
			t.Errorf("Locate(%q) = %v, %v, want kv.ErrNotFound itself", key, v, err)
		}
		if ok, err := kv.Exists(bg, view, key); ok || err != nil {
			t.Errorf("Exists(%q) = %v, %v", key, ok, err)
		}
	}
	for key := range want {
		if ok, err := kv.Exists(bg, view, key); !ok || err != nil {
			t.Errorf("Exists(%q) = %v, %v", key, ok, err)
		}
	}
}

// rangesOf returns ranges at all borders of a value of n bytes, good and bad.
func rangesOf(n int64) []kv.Range {
	at := []int64{0, 1, n / 2, n - 1, n, n + 1, -1, math.MaxInt64}
	out := []kv.Range{kv.All(), kv.AtMost(n), kv.AtMost(math.MaxInt64)}
	if n > 0 {
		out = append(out, kv.AtMost(n-1), kv.AtMost(0))
	}
	for _, off := range at {
		out = append(out, kv.From(off), kv.Last(off))
		for _, count := range append(at, n-off) {
			out = append(out, kv.Span(off, count))
		}
	}
	return out
}

// kindOf is the sentinel of an error of [kv.Range.Resolve].
func kindOf(err error) error {
	if errors.Is(err, kv.ErrTooLarge) {
		return kv.ErrTooLarge
	}
	return kv.ErrRange
}

// sizes are lengths of values around the limits of buffers and blocks.
var sizes = []int{0, 1, 2, 5, 511, 4096, 4097, 70_000, 1<<20 + 3}

func sized() map[string][]byte {
	content := map[string][]byte{}
	for i, n := range sizes {
		content[fmt.Sprintf("v/%d", n)] = pattern(n, byte(i))
	}
	return content
}

// testRanges reads ranges of values, with Get and through a located value.
func (s *suite) testRanges(t *testing.T) {
	view, want := s.filled(t, sized())
	for key, value := range want {
		v, err := kv.Locate(bg, view, key)
		if err != nil || v.Size() != int64(len(value)) {
			t.Errorf("Locate(%q): %v, %v, want %d bytes", key, v, err, len(value))
			continue
		}
		for _, rng := range rangesOf(int64(len(value))) {
			off, n, wantErr := rng.Resolve(int64(len(value)))
			got, err := view.Get(bg, key, rng)
			if wantErr != nil && !errors.Is(err, kindOf(wantErr)) || wantErr == nil && (err != nil || !bytes.Equal(got, value[off:off+n])) {
				t.Errorf("Get(%q, %v) = %d bytes, %v, want %d bytes, %v", key, rng, len(got), err, n, wantErr)
			}
			if err := checkView(v, rng, value); err != nil {
				t.Errorf("%q: %v", key, err)
			}
		}
		// A view inside a view must not share the buffer.
		err = v.View(bg, kv.All(), func(outer []byte) error {
			return v.View(bg, kv.From(int64(len(value)/2)), func(inner []byte) error {
				if !bytes.Equal(outer, value) || !bytes.Equal(inner, value[len(value)/2:]) {
					t.Errorf("%q: nested views disturb each other", key)
				}
				return nil
			})
		})
		if err != nil {
			t.Errorf("%q: nested view: %v", key, err)
		}
		back, err := io.ReadAll(io.NewSectionReader(kv.ReaderAt(bg, v), 0, v.Size()))
		if err != nil || !bytes.Equal(back, value) {
			t.Errorf("%q: through ReaderAt: %d bytes, %v", key, len(back), err)
		}
	}
}

// checkView views one range of a value that must be want.
func checkView(v kv.Value, rng kv.Range, want []byte) error {
	off, n, wantErr := rng.Resolve(int64(len(want)))
	mine := errors.New("mine")
	calls := 0
	err := v.View(bg, rng, func(b []byte) error {
		if calls++; wantErr == nil && !bytes.Equal(b, want[off:off+n]) {
			return fmt.Errorf("View(%v) shows %d other bytes", rng, len(b))
		}
		return mine
	})
	switch {
	case wantErr != nil && (!errors.Is(err, kindOf(wantErr)) || calls != 0):
		return fmt.Errorf("View(%v): %v after %d calls, want %v", rng, err, calls, kindOf(wantErr))
	case wantErr == nil && (err != mine || calls != 1):
		return fmt.Errorf("View(%v): %v after %d calls, want the callback's error after 1", rng, err, calls)
	}
	return nil
}

func (s *suite) testBatch(t *testing.T) {
	view, want := s.filled(t, sized())
	reqs := []kv.Request{
		{Key: "v/4096", Range: kv.Span(10, 20)}, {Key: "v/4096", Range: kv.AtMost(4096)}, {Key: "missing", Range: kv.Last(3)}, {Key: "v/4096", Range: kv.Last(1)},
		{Key: "v/0"}, {Key: "v/5", Range: kv.Span(5, 0)}, {Key: "v/70000", Range: kv.From(69_000)}, {Key: "missing"}, {Key: "missing", Range: kv.AtMost(1)},
	}
	reqs = slices.Repeat(reqs, 12) // so many are read on all processors
	for _, r := range []kv.Reader{view, readerOnly{view}} {
		got, err := kv.GetMany(bg, r, reqs)
		if err != nil || len(got) != len(reqs) {
			t.Fatalf("GetMany: %d values, %v", len(got), err)
		}
		for i, q := range reqs {
			value, ok := want[q.Key]
			if !ok {
				if got[i] != nil {
					t.Errorf("request %d: %d bytes of a missing key", i, len(got[i]))
				}
				continue
			}
			off, n, _ := q.Range.Resolve(int64(len(value)))
			if got[i] == nil || !bytes.Equal(got[i], value[off:off+n]) {
				t.Errorf("request %d (%q, %v): %d bytes, nil %v", i, q.Key, q.Range, len(got[i]), got[i] == nil)
			}
		}
		if _, err := kv.GetMany(bg, r, []kv.Request{{Key: "v/5"}, {Key: "v/5", Range: kv.From(6)}}); !errors.Is(err, kv.ErrRange) {
			t.Errorf("GetMany beyond the end: %v", err)
		}
		if _, err := kv.GetMany(bg, r, []kv.Request{{Key: "v/5"}, {Key: "v/511", Range: kv.AtMost(510)}}); !errors.Is(err, kv.ErrTooLarge) {
			t.Errorf("GetMany of a value over the limit: %v", err)
		}
	}
}

// testGather gathers values with different ranges read ahead: they equal the
// values located one by one.
func (s *suite) testGather(t *testing.T) {
	view, want := s.filled(t, sized())
	for _, r := range []kv.Reader{view, readerOnly{view}} {
		for _, ahead := range []kv.Range{kv.All(), kv.Span(0, 0), kv.Span(1, 3), kv.Span(2, 1<<40), kv.From(100), kv.Last(2)} {
			var wants []kv.Want
			for _, key := range append(want.keys(), "missing", "v/5", "v/5") {
				wants = append(wants, kv.Want{Key: key, Range: ahead, Limit: int64(len(wants)%3) * 300})
			}
			var mu sync.Mutex
			seen := make([]int, len(wants))
			err := kv.Gather(bg, r, wants, kv.Gathering{Take: func(ctx context.Context, i int, v kv.Value) error {
				mu.Lock()
				seen[i]++
				mu.Unlock()
				value, ok := want[wants[i].Key]
				if !ok || v == nil {
					if ok || v != nil {
						return fmt.Errorf("%q: there %v, found %v", wants[i].Key, ok, v != nil)
					}
					return nil
				}
				if v.Size() != int64(len(value)) {
					return fmt.Errorf("%q: size %d, want %d", wants[i].Key, v.Size(), len(value))
				}
				for _, rng := range []kv.Range{kv.All(), kv.Span(1, 2), kv.Last(2), kv.From(3), kv.Span(int64(len(value)), 1)} {
					if err := checkView(v, rng, value); err != nil {
						return fmt.Errorf("%q, %v ahead: %w", wants[i].Key, ahead, err)
					}
				}
				return nil
			}})
			must.Do(t, err)
			for i, n := range seen {
				if n != 1 {
					t.Errorf("%q was taken %d times", wants[i].Key, n)
				}
			}
		}
		mine := errors.New("mine")
		wants := []kv.Want{{Key: "v/5"}, {Key: "missing"}, {Key: "v/0"}}
		if err := kv.Gather(bg, r, wants, kv.Gathering{Take: func(context.Context, int, kv.Value) error { return mine }}); err != mine {
			t.Errorf("Gather: %v, want the callback's error", err)
		}
	}
}

func (s *suite) testOddKeys(t *testing.T) {
	content := trickyKeys(0)
	for _, key := range []string{
		" ", " a ", "a b/c d", "%20", "a%2Fb", "a?b#c", "a|b", "a:b", "c:/x", `a"b'c`, "a\nb", "a\tb", "\x01", "\x7f", "*", "$HOME", "~", "~/x", "-rf",
		"NUL", "con.txt", "e\u0301", "é", "\u202e", "a&b=c+d", "@v1/x", ".hidden", "..hidden", "...", "a/..b", "a.", "\ufeffbom",
		strings.Repeat("n", 200), strings.Repeat("deep/", 40) + "x", "A", "UPPER", "Upper",
	} {
		content[key] = []byte("odd " + key)
	}
	view, want := s.filled(t, content)
	for key, value := range want {
		got, err := view.Get(bg, key, kv.All())
		if err != nil || !bytes.Equal(got, value) {
			t.Errorf("Get(%q) = %q, %v, want %q", key, got, err, value)
		}
	}
	if l, ok := view.(kv.Lister); ok {
		got, err := kv.Keys(bg, l, "")
		equalKeys(t, "keys", got, want.keys(), err)
	}
}

func (s *suite) testInvalidKeys(t *testing.T) {
	view, _ := s.filled(t, map[string][]byte{"a/b": {1}})
	w, isWriter := view.(kv.Writer)
	l, isLister := view.(kv.Lister)
	invalid := append([]string{"", "/", "/a", "a/", "a/b/", "a\x00b", "\x00", "\xff", "a/\xc3("}, s.Invalid...)
	if s.Tree {
		invalid = append(invalid, "..", ".", "../a", "a/..", "a/./b", "./a", "a//b", "a/../../x", "a/b/../../../x")
	}
	for _, key := range invalid {
		if b, err := view.Get(bg, key, kv.All()); err == nil || !errors.Is(err, kv.ErrNotFound) && !errors.Is(err, kv.ErrInvalidKey) {
			t.Errorf("Get(%q) = %q, %v, want ErrNotFound or ErrInvalidKey", key, b, err)
		}
		if _, err := kv.Locate(bg, view, key); err == nil || !errors.Is(err, kv.ErrNotFound) && !errors.Is(err, kv.ErrInvalidKey) {
			t.Errorf("Locate(%q): %v, want ErrNotFound or ErrInvalidKey", key, err)
		}
		if !isWriter {
			continue
		}
		if err := w.Set(bg, key, []byte("x")); !errors.Is(err, kv.ErrInvalidKey) {
			t.Errorf("Set(%q): %v, want ErrInvalidKey", key, err)
		}
		if err := w.Delete(bg, key); err != nil && !errors.Is(err, kv.ErrInvalidKey) {
			t.Errorf("Delete(%q): %v, want nothing or ErrInvalidKey", key, err)
		}
	}
	if isLister {
		got, err := kv.Keys(bg, l, "")
		equalKeys(t, "keys afterwards", got, []string{"a/b"}, err)
	}
}

func (s *suite) testOwnedSlices(t *testing.T) {
	value := pattern(5000, 1)
	view, _ := s.filled(t, map[string][]byte{"k": bytes.Clone(value)})
	for _, rng := range []kv.Range{kv.All(), kv.Span(0, 5000), kv.From(1)} {
		b, err := view.Get(bg, "k", rng)
		must.Do(t, err)
		clear(b)
		if b = append(b, 0); b[len(b)-1] != 0 {
			t.Fatal("unreachable")
		}
	}
	if b, err := view.Get(bg, "k", kv.All()); err != nil || !bytes.Equal(b, value) {
		t.Errorf("a change of what Get returned changed the view (%v)", err)
	}
	w, ok := view.(kv.Writer)
	if !ok {
		return
	}
	mine := bytes.Clone(value)
	must.Do(t, w.Set(bg, "mine", mine))
	clear(mine)
	if b, err := view.Get(bg, "mine", kv.All()); err != nil || !bytes.Equal(b, value) {
		t.Errorf("a change of what Set was given changed the view (%v)", err)
	}
}

func (s *suite) testCanceled(t *testing.T) {
	content := map[string][]byte{}
	for i := range 600 {
		content[fmt.Sprintf("d/%d", i)] = nil
	}
	view, want := s.filled(t, content)
	ctx, cancel := context.WithCancel(bg)
	defer cancel()

	if l, ok := view.(kv.Lister); ok {
		n := 0
		var last error
		for _, err := range l.List(ctx, kv.ListOptions{}) {
			if n++; n == 1 {
				cancel()
			}
			last = err
		}
		if !errors.Is(last, context.Canceled) {
			t.Errorf("a listing that was canceled after its first key gave %d of %d keys and ended with %v", n, len(want), last)
		}
	}
	cancel()
	wantCanceled := func(what string, err error) {
		t.Helper()
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s under a canceled context: %v", what, err)
		}
	}
	_, err := view.Get(ctx, "d/1", kv.All())
	wantCanceled("Get", err)
	if l, ok := view.(kv.Lister); ok {
		_, err = kv.Keys(ctx, l, "")
		wantCanceled("List", err)
	}
	w, ok := view.(kv.Writer)
	if !ok {
		return
	}
	wantCanceled("Set", w.Set(ctx, "new", []byte{1}))
	wantCanceled("Delete", w.Delete(ctx, "d/1"))
	wantCanceled("DeletePrefix", kv.DeletePrefix(ctx, w, "d/"))
	if _, err := view.Get(bg, "new", kv.All()); err != kv.ErrNotFound {
		t.Errorf("Set under a canceled context: Get gives %v", err)
	}
	if _, err := view.Get(bg, "d/1", kv.All()); err != nil {
		t.Errorf("Delete under a canceled context: Get gives %v", err)
	}
}

// readerOnly hides all but Get, so that functions of package kv fall back.
type readerOnly struct{ r kv.Reader }

func (r readerOnly) Get(ctx context.Context, key string, rng kv.Range) ([]byte, error) {
	return r.r.Get(ctx, key, rng)
}
