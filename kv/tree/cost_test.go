package tree

import (
	"context"
	"errors"
	"fmt"
	"github.com/zarrdb/zarrdb/internal/must"
	"math/rand/v2"
	"testing"
)

// TestCost checks that what changes little costs little: different pages read,
// and pages written, among 300 thousand entries in some two thousand pages.
func TestCost(t *testing.T) {
	const n = 300_000
	ctx := context.Background()
	warm, root, m := benchTree(t, n, natives())
	height := int(root.Height)
	c := &countPages{Pages: m}
	tr := warm.With(c)
	edit := func(key []byte) Root {
		t.Helper()
		v := Value{Kind: KindNative, Length: 1}
		r := must.Get(warm.Apply(ctx, root, []Edit{{Key: key, Value: v}}))(t)
		return r
	}
	one, two := edit(chunkKey(nil, n/3)), edit(chunkKey(nil, n/2))
	large := must.Get(warm.DeleteRange(ctx, root, Span{From: chunkKey(nil, n/4), To: chunkKey(nil, n/4*3)}))(t)
	noConflict := func([]byte, *Value, *Value, *Value) (*Value, error) { return nil, errors.New("no conflict here") }
	span := Span{From: chunkKey(nil, n/5), To: chunkKey(nil, n/5*4)}

	for _, test := range []struct {
		name         string
		gets, writes int // at most
		run          func() error
	}{
		{"Get", height + 1, 0, func() error {
			_, ok, err := tr.Get(ctx, root, chunkKey(nil, n/2))
			if !ok {
				return fmt.Errorf("not found: %w", err)
			}
			return err
		}},
		{"Diff of one change", 2 * (height + 1), 0, func() error {
			changes := 0
			for _, err := range tr.Diff(ctx, root, one, Span{}) {
				if err != nil {
					return err
				}
				changes++
			}
			if changes != 1 {
				return fmt.Errorf("%d changes", changes)
			}
			return nil
		}},
		{"Diff before the change", 2, 0, func() error {
			for c, err := range tr.Diff(ctx, root, one, Span{To: chunkKey(nil, 7)}) {
				return fmt.Errorf("change %v, %w", c, err)
			}
			return nil
		}},
		{"Diff behind the change", 2 * (height + 1), 0, func() error {
			for c, err := range tr.Diff(ctx, root, one, Span{From: chunkKey(nil, n/2)}) {
				return fmt.Errorf("change %v, %w", c, err)
			}
			return nil
		}},
		{"Merge of one change with one", 4 * (height + 1), 2 * (height + 1), func() error {
			_, err := tr.Merge(ctx, root, one, two, noConflict)
			return err
		}},
		{"Merge of one change with many", 4 * (height + 1), 2 * (height + 1), func() error {
			_, err := tr.Merge(ctx, root, large, edit(chunkKey(nil, n/5)), noConflict)
			return err
		}},
		{"Merge of many changes with one", 4 * (height + 1), 2 * (height + 1), func() error {
			_, err := tr.Merge(ctx, root, edit(chunkKey(nil, n/5)), large, noConflict)
			return err
		}},
		{"DeleteRange", 3 * (height + 1), 3 * (height + 1), func() error {
			_, err := tr.DeleteRange(ctx, root, span)
			return err
		}},
		{"DeleteRange to the end", 3 * (height + 1), 3 * (height + 1), func() error {
			_, err := tr.DeleteRange(ctx, root, Span{From: span.From})
			return err
		}},
		{"DeleteRange of nothing", height + 1, 0, func() error {
			got, err := tr.DeleteRange(ctx, root, Span{From: append(chunkKey(nil, 7), 1), To: append(chunkKey(nil, 7), 2)})
			if got != root {
				return errors.New("root has changed")
			}
			return err
		}},
		{"Apply of one edit", 2 * (height + 1), 2 * (height + 1), func() error {
			_, err := tr.Apply(ctx, root, []Edit{{Key: chunkKey(nil, n/2), Value: Value{Kind: KindNative, Length: 2}}})
			return err
		}},
		{"Apply of nothing new", 2 * (height + 1), 0, func() error {
			v, _, err := warm.Get(ctx, root, chunkKey(nil, n/2))
			if err != nil {
				return err
			}
			_, err = tr.Apply(ctx, root, []Edit{{Key: chunkKey(nil, n/2), Value: v}, {Key: []byte{0xff}, Delete: true}})
			return err
		}},
		{"Walk of pages only", 0, 0, func() error {
			return tr.Walk(ctx, root, func(_ Name, height uint8, _ int) (bool, error) { return height == 0, nil })
		}},
		{"Scan of a short span", height + 2, 0, func() (err error) {
			for _, err = range tr.Scan(ctx, root, Span{From: chunkKey(nil, n/2), To: chunkKey(nil, n/2+9)}) {
			}
			return err
		}},
		{"Scan of ten", height + 2, 0, func() error {
			i := 0
			for _, err := range tr.Scan(ctx, root, Span{From: span.From}) {
				if i++; i == 10 || err != nil {
					return err
				}
			}
			return errors.New("too short")
		}},
	} {
		c.gets, c.puts = 0, 0
		tr.cache = NewCache(16 << 20) // an empty one: each page is read once
		if err := test.run(); err != nil {
			t.Errorf("%s: %v", test.name, err)
		}
		t.Logf("%-32s %3d pages read, %2d written", test.name, c.gets, c.puts)
		if c.gets > test.gets || c.puts > test.writes {
			t.Errorf("%s: %d pages read, at most %d expected; %d written, at most %d",
				test.name, c.gets, test.gets, c.puts, test.writes)
		}
	}
}

// TestCostOfHeights compares maps that differ by one entry and by their heights.
func TestCostOfHeights(t *testing.T) {
	ctx := context.Background()
	m := NewMemPages()
	c := &countPages{Pages: m}
	tr := New(c, &Options{shape: tinyShape})
	var root Root
	for i := 0; root.Height < 4; i++ {
		next := must.Get(tr.Apply(ctx, root, []Edit{{Key: chunkKey(nil, i), Value: Value{Kind: KindNative}}}))(t)
		if next.Height != root.Height && root.Height > 1 {
			pages := 0
			count := func(Name, uint8, int) (bool, error) { pages++; return true, nil }
			must.Do(t, tr.Walk(ctx, next, count))
			// Only pages on the right edge differ, and most levels have two there.
			limit := 3 * int(next.Height+1)
			for _, pair := range [][2]Root{{root, next}, {next, root}} {
				c.gets = 0
				tr.cache = NewCache(1 << 20)
				changes := 0
				for _, err := range tr.Diff(ctx, pair[0], pair[1], Span{}) {
					if changes++; err != nil {
						t.Error(err)
					}
				}
				if c.gets > limit || changes != 1 {
					t.Errorf("diff of heights %d and %d: %d changes, %d of %d pages read, at most %d",
						pair[0].Height, pair[1].Height, changes, c.gets, pages, limit)
				}
			}
		}
		root = next
	}
}

// putNames notes the names of pages that are put.
type putNames struct {
	Pages
	names map[Name]int
}

func (p putNames) PutPage(ctx context.Context, name Name, page []byte) error {
	p.names[name]++
	return p.Pages.PutPage(ctx, name, page)
}

// TestPutsAreReachable checks that edits store no page that the new map does not
// have.
func TestPutsAreReachable(t *testing.T) {
	ctx := context.Background()
	for seed := range uint64(40) {
		w := newWorld(t, seed)
		m := model{}
		root := Root{}
		for range 20 {
			p := putNames{w.t.pages, map[Name]int{}}
			var err error
			if w.IntN(4) == 0 {
				root, err = w.t.With(p).DeleteRange(ctx, root, w.span())
			} else {
				root, err = w.t.With(p).Apply(ctx, root, w.edits(m, 1+w.IntN(100)))
			}
			must.Do(t, err)
			for name, times := range p.names {
				if times > 1 {
					t.Errorf("seed %d: page %v is put %d times", seed, name, times)
				}
			}
			err = w.t.Walk(ctx, root, func(name Name, _ uint8, _ int) (bool, error) {
				_, err := w.t.pages.GetPage(ctx, name)
				delete(p.names, name)
				return err == nil, nil
			})
			if err != nil || len(p.names) > 0 {
				t.Errorf("seed %d: %d pages are put for nothing, %v", seed, len(p.names), err)
			}
		}
	}
}

// TestBudgets holds the sizes that the storage design promises.
func TestBudgets(t *testing.T) {
	const n = 40_000
	for name, limit := range map[string]float64{"native": 26, "virtual8": 6, "virtual1": 16, "virtual1000": 6} {
		for _, k := range kindsOfMaps {
			if k.name != name {
				continue
			}
			_, _, m := benchTree(t, n, k.make())
			if _, size := m.Size(); float64(size)/n > limit {
				t.Errorf("%s: %.2f bytes per entry, at most %v", name, float64(size)/n, limit)
			}
		}
	}
	// One edit among many writes three pages, 12 KiB.
	tr, root, m := benchTree(t, 3*n, natives())
	r := rand.New(rand.NewPCG(1, 1))
	var sizes []int
	for range 200 {
		c := &countPages{Pages: m}
		must.Get(tr.With(c).Apply(context.Background(), root, randomEdits(r, 3*n, 1)))(t)
		if c.puts > 3 {
			t.Errorf("one edit writes %d pages", c.puts)
		}
		sizes = append(sizes, c.bytes)
	}
	if got := mean(sizes); got > 12<<10 {
		t.Errorf("one edit writes %.0f bytes, at most 12 KiB", got)
	}
}
