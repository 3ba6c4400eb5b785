package kv_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
)

// gatherer is a view that gathers, and notes the keys.
type gatherer struct {
	*kv.Mem
	asked []string
}

func (g *gatherer) Gathers(_ context.Context, key string) bool {
	g.asked = append(g.asked, "gathers "+key)
	return true
}

func (g *gatherer) Gather(ctx context.Context, wants []kv.Want, how kv.Gathering) error {
	for i, w := range wants {
		g.asked = append(g.asked, fmt.Sprintf("%s %v %d", w.Key, w.Range, w.Limit))
		v, b, err := kv.LocateRange(ctx, g, w.Key, w.Range, w.Limit)
		if err != nil && !errors.Is(err, kv.ErrNotFound) {
			return err
		}
		if v != nil && b != nil {
			v = kv.Held(v, 0, b)
		}
		if err := how.Take(ctx, i, v); err != nil {
			return err
		}
	}
	return nil
}

func (g *gatherer) LocateRange(ctx context.Context, key string, rng kv.Range, limit int64) (kv.Value, []byte, error) {
	g.asked = append(g.asked, fmt.Sprintf("locate %s %v %d", key, rng, limit))
	v, err := kv.Locate(ctx, g.Mem, key)
	return v, []byte("held"), err
}

func (g *gatherer) Spacing() (gap, most int64) { return 1, 2 }

func TestGather(t *testing.T) {
	bg := context.Background()
	mem := kv.NewMem()
	for _, key := range []string{"a/b/x", "a/b/y"} {
		must.Do(t, mem.Set(bg, key, []byte("value of "+key)))
	}
	wants := []kv.Want{{Key: "x", Limit: 7}, {Key: "none"}, {Key: "y", Range: kv.Last(1)}}
	for name, test := range map[string]struct {
		view kv.Reader
		want []string
		read string
	}{
		"fall-back": {kv.Sub(mem, "a/b"), nil, "value of a/b/x"},
		"own":       {kv.Sub(kv.SubLister(&gatherer{Mem: mem}, "a"), "b"), []string{"a/b/x [0, end) 7", "locate a/b/x [0, end) 7", "a/b/none [0, end) 0", "locate a/b/none [0, end) 0", "a/b/y [end-1, end) 0", "locate a/b/y [end-1, end) 0"}, "held"},
	} {
		var order []int
		err := kv.Gather(bg, test.view, wants, kv.Gathering{Take: func(ctx context.Context, i int, v kv.Value) error {
			order = append(order, i)
			if (v == nil) != (i == 1) {
				t.Errorf("%s: value %d is %v", name, i, v)
			}
			if i == 0 {
				b, err := kv.ReadValue(ctx, v, kv.Span(0, 4))
				if string(b) != test.read[:4] || err != nil {
					t.Errorf("%s: %q, %v", name, b, err)
				}
			}
			return nil
		}})
		if err != nil || !slices.Equal(order, []int{0, 1, 2}) {
			t.Errorf("%s: %v, %v", name, order, err)
		}
		boom := errors.New("boom")
		if err := kv.Gather(bg, test.view, wants, kv.Gathering{Take: func(context.Context, int, kv.Value) error { return boom }}); err != boom {
			t.Errorf("%s: %v", name, err)
		}
	}
	g := &gatherer{Mem: mem}
	view := kv.Sub(g, "a/b")
	if !kv.Gathers(bg, view, "x") || kv.Gathers(bg, mem, "x") || !slices.Equal(g.asked, []string{"gathers a/b/x"}) {
		t.Errorf("%q", g.asked)
	}
	if v, b, err := kv.LocateRange(bg, mem, "a/b/x", kv.Span(0, 1), 0); err != nil || b != nil || v.Size() != 14 {
		t.Errorf("%v, %q, %v", v, b, err)
	}
	if _, _, err := kv.LocateRange(bg, mem, "none", kv.Span(0, 1), 0); err != kv.ErrNotFound {
		t.Error(err)
	}
}

func TestHeld(t *testing.T) {
	bg := context.Background()
	value := []byte("0123456789")
	v := kv.Held(kv.Bytes(value), 3, []byte("DEFG"))
	for _, test := range []struct {
		rng  kv.Range
		want string
	}{
		{kv.Span(3, 4), "DEFG"}, {kv.Span(4, 2), "EF"}, {kv.Span(7, 0), ""}, {kv.Span(2, 3), "234"}, {kv.Span(5, 3), "567"}, {kv.All(), "0123456789"}, {kv.Last(7), "3456789"},
	} {
		if b, err := kv.ReadValue(bg, v, test.rng); err != nil || !bytes.Equal(b, []byte(test.want)) {
			t.Errorf("%v: %q, %v", test.rng, b, err)
		}
	}
	if _, err := kv.ReadValue(bg, v, kv.Span(8, 3)); !errors.Is(err, kv.ErrRange) {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(bg)
	cancel()
	if _, err := kv.ReadValue(ctx, v, kv.Span(3, 1)); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if gap, most := kv.Spacing(v); gap <= 0 || most < gap {
		t.Errorf("%d, %d", gap, most)
	}
	if gap, _ := kv.Spacing(&gatherer{}); gap != 1 {
		t.Errorf("%d", gap)
	}
}

// many is a value that reads several parts at a time, backwards.
type many struct {
	kv.Bytes
	asked int
	size  int64 // that was announced
}

func (m *many) Spread() kv.Spread {
	return func(ctx context.Context, n int, size int64, fn func(context.Context, int) error) error {
		m.size = size
		for i := n - 1; i >= 0; i-- {
			if err := fn(ctx, i); err != nil {
				return err
			}
		}
		return nil
	}
}

func (m *many) View(ctx context.Context, rng kv.Range, fn func([]byte) error) error {
	m.asked++
	return m.Bytes.View(ctx, rng, fn)
}

func TestViewRanges(t *testing.T) {
	bg := context.Background()
	value := kv.Bytes("0123456789")
	parts := []kv.Range{kv.Span(5, 2), kv.Span(0, 1), kv.Span(3, 4), kv.Last(1)}
	m := &many{Bytes: value}
	for _, test := range []struct {
		name  string
		v     kv.Value
		far   bool
		asked int
	}{
		{"plain", value, false, 0},
		{"several at a time", m, true, 4},
		{"held", kv.Held(value, 2, []byte("23456")), false, 0},
		{"several, some of them held", kv.Held(m, 2, []byte("23456")), true, 2},
		{"all held", kv.Held(m, 0, value), true, 0},
	} {
		if kv.ViewsRanges(test.v) != test.far {
			t.Errorf("%s: far is %v", test.name, !test.far)
		}
		m.asked = 0
		got := make([]string, len(parts))
		if err := kv.ViewRanges(bg, test.v, parts, func(i int, b []byte) error {
			got[i] += string(b)
			return nil
		}); err != nil || strings.Join(got, " ") != "56 0 3456 9" {
			t.Errorf("%s: %q, %v", test.name, got, err)
		}
		if test.far && (m.asked != test.asked || m.size != 4) {
			t.Errorf("%s: %d asked for, of %d bytes", test.name, m.asked, m.size)
		}
		boom := errors.New("boom")
		if err := kv.ViewRanges(bg, test.v, parts, func(int, []byte) error { return boom }); err != boom {
			t.Errorf("%s: %v", test.name, err)
		}
		if err := kv.ViewRanges(bg, test.v, []kv.Range{kv.Span(0, 1), kv.Span(8, 3)}, func(int, []byte) error { return nil }); !errors.Is(err, kv.ErrRange) {
			t.Errorf("%s: beyond the end: %v", test.name, err)
		}
	}
}
