package kvtest

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
)

// testHistory applies random operations to a store and to a map, and compares
// them.
func (s *suite) testHistory(t *testing.T) {
	st := s.store(t)
	h := history{suite: s, t: t, st: st, want: model{}, rnd: rand.New(rand.NewPCG(must.Seed(t), 1))}
	for range s.Steps {
		h.step()
		if t.Failed() {
			t.Fatalf("history:\n%s", strings.Join(h.log, "\n"))
		}
	}
	keys, err := kv.Keys(bg, st, "")
	equalKeys(t, "keys at the end", keys, h.want.keys(), err)
	for key, value := range h.want {
		wantValue(t, st, key, value)
	}
}

type history struct {
	*suite
	t    *testing.T
	st   kv.Store
	want model
	rnd  *rand.Rand
	log  []string
}

func (h *history) logf(format string, args ...any) {
	h.log = append(h.log, fmt.Sprintf(format, args...))
}

// key returns one of few keys, so that steps meet. In a tree, "f…" is always a
// file and "d…" never.
func (h *history) key() string {
	var b strings.Builder
	for h.rnd.IntN(3) > 0 && b.Len() < 20 {
		b.WriteString("d" + []string{"", "-", "0", "é"}[h.rnd.IntN(4)] + "/")
	}
	b.WriteString("f" + []string{"", "!", "-x", ".y", "0", "~"}[h.rnd.IntN(6)])
	if key := b.String(); h.holds(key) {
		return key
	}
	return "f"
}

func (h *history) prefix() string {
	key := h.key()
	return key[:h.rnd.IntN(len(key)+1)]
}

func (h *history) step() {
	st := h.st
	if h.rnd.IntN(2) == 0 {
		st = plain(st)
	}
	switch n := h.rnd.IntN(100); {
	case n < 35:
		h.set(st)
	case n < 45:
		key := h.key()
		h.logf("delete %q", key)
		h.noError(st.Delete(bg, key))
		delete(h.want, key)
	case n < 48:
		prefix := h.prefix()
		if prefix == "" && h.rnd.IntN(4) > 0 {
			return
		}
		h.logf("delete prefix %q", prefix)
		h.noError(kv.DeletePrefix(bg, st, prefix))
		maps.DeleteFunc(h.want, func(key string, _ []byte) bool { return strings.HasPrefix(key, prefix) })
	case n < 52:
		keys := []string{h.key(), h.key(), h.key()}
		h.logf("delete all %q", keys)
		h.noError(kv.DeleteAll(bg, st, keys))
		maps.DeleteFunc(h.want, func(key string, _ []byte) bool { return slices.Contains(keys, key) })
	case n < 60:
		h.setRange(st)
	case n < 85:
		h.get(st)
	case n < 93:
		opts := kv.ListOptions{Prefix: h.prefix(), After: h.prefix()}
		h.logf("list %+v", opts)
		got, err := listAll(st, opts)
		equalKeys(h.t, "List", got, h.want.list(opts), err)
	default:
		prefix := h.prefix()
		prefix = prefix[:strings.LastIndexByte(prefix, '/')+1]
		h.logf("list dir %q", prefix)
		got, err := listDirAll(st, prefix)
		if want := h.want.listDir(prefix); err != nil || !slices.Equal(got, want) {
			h.t.Errorf("ListDir(%q): %v\n got %v\nwant %v", prefix, err, got, want)
		}
	}
}

func (h *history) noError(err error) {
	h.t.Helper()
	if err != nil {
		h.t.Errorf("%s: %v", h.log[len(h.log)-1], err)
	}
}

func (h *history) set(st kv.Store) {
	key := h.key()
	value := pattern(h.rnd.IntN(50), byte(h.rnd.Uint32()))
	if h.rnd.IntN(8) == 0 {
		value = pattern(h.rnd.IntN(200_000), byte(h.rnd.Uint32()))
	}
	h.logf("set %q, %d bytes", key, len(value))
	h.noError(st.Set(bg, key, value))
	h.want[key] = value
}

func (h *history) setRange(st kv.Store) {
	key := h.key()
	old, ok := h.want[key]
	off, p := h.rnd.IntN(len(old)+4)-1, pattern(h.rnd.IntN(30), 7)
	h.logf("set range %q at %d of %d, %d bytes", key, off, len(old), len(p))
	err := kv.SetRange(bg, st, key, int64(off), p)
	switch {
	case !ok:
		if !errors.Is(err, kv.ErrNotFound) {
			h.t.Errorf("SetRange of a missing key: %v", err)
		}
	case off < 0 || off > len(old):
		if !errors.Is(err, kv.ErrRange) {
			h.t.Errorf("SetRange at %d of %d: %v", off, len(old), err)
		}
	default:
		h.noError(err)
		end := min(off+len(p), len(old))
		h.want[key] = slices.Concat(old[:off], p, old[end:])
	}
}

func (h *history) get(st kv.Store) {
	key := h.key()
	value, ok := h.want[key]
	ranges := rangesOf(int64(len(value)))
	rng := ranges[h.rnd.IntN(len(ranges))]
	h.logf("get %q, %v of %d", key, rng, len(value))
	off, n, rangeErr := rng.Resolve(int64(len(value)))
	got, err := st.Get(bg, key, rng)
	switch {
	case !ok:
		if err != kv.ErrNotFound {
			h.t.Errorf("Get of a missing key: %v", err)
		}
	case rangeErr != nil:
		if !errors.Is(err, kindOf(rangeErr)) {
			h.t.Errorf("Get outside the value: %v, want %v", err, rangeErr)
		}
	case err != nil || !bytes.Equal(got, value[off:off+n]):
		h.t.Errorf("Get: %d bytes, %v, want %d bytes", len(got), err, n)
	default:
		v, err := kv.Locate(bg, st, key)
		if err == nil {
			err = checkView(v, rng, value)
		}
		h.noError(err)
	}
}
