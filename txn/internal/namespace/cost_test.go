package namespace

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv/tree"
)

// countingPages counts what goes in and out of a page store.
type countingPages struct {
	tree.Pages
	reads, writes, written atomic.Int64
}

func (p *countingPages) GetPage(ctx context.Context, name tree.Name) ([]byte, error) {
	p.reads.Add(1)
	return p.Pages.GetPage(ctx, name)
}

func (p *countingPages) PutPage(ctx context.Context, name tree.Name, page []byte) error {
	p.writes.Add(1)
	p.written.Add(int64(len(page)))
	return p.Pages.PutPage(ctx, name, page)
}

// bigSpace has a hierarchy with one array of many chunks, g/big, and a group
// with many small arrays, many/….
type bigSpace struct {
	pages *countingPages
	root  tree.Root
}

func native(n int) tree.Value {
	v := tree.Value{Kind: tree.KindNative, Offset: uint64(n) << 16, Length: uint64(50000 + n*7919%4096)}
	for i := range v.Sum {
		v.Sum[i] = byte(uint64(n+1) * 0x9e3779b97f4a7c15 >> (i % 8 * 8))
	}
	return v
}

// chunkEdits makes sorted puts of the chunks of a square grid, in key order.
func gridEdits(dir string, side int) []Edit {
	edits := make([]Edit, 0, side*side)
	digits := make([]string, 0, side)
	var add func(n int)
	add = func(n int) {
		if n < side {
			digits = append(digits, fmt.Sprint(n))
			for d := range 10 {
				if n > 0 || d > 0 {
					add(n*10 + d)
				}
			}
		}
	}
	digits = append(digits, "0")
	for d := 1; d < 10; d++ {
		add(d)
	}
	for i, a := range digits {
		for j, b := range digits {
			edits = append(edits, Edit{Key: dir + "c/" + a + "/" + b, Value: native(i*side + j)})
		}
	}
	return edits
}

const bigDoc = "array f=c/:/:2 k=x g=99999,99999"

func newBigSpace(t testing.TB, side, arrays int) *bigSpace {
	b := &bigSpace{pages: &countingPages{Pages: newMemPages()}}
	s := b.space()
	edits := gridEdits("g/big/", side)
	edits = append(edits, Edit{Key: "g/big/zarr.json", Value: inline(bigDoc)}, Edit{Key: "g/zarr.json", Value: inline("group")})
	for i := range arrays {
		path := fmt.Sprintf("many/%05d/", i)
		edits = append(edits, Edit{Key: path + "c/0/0", Value: native(i)}, Edit{Key: path + "zarr.json", Value: inline(bigDoc)})
	}
	edits = append(edits, Edit{Key: "many/zarr.json", Value: inline("group")})
	b.root = s.mustApply(t, tree.Root{}, edits)
	return b
}

// space returns a space over the pages with nothing in its caches.
func (b *bigSpace) space() toySpace {
	s := newToySpace(1)
	s.Space.Tree = tree.New(b.pages, nil)
	return s
}

// cost runs fn with cold caches and returns the pages read and written.
func (b *bigSpace) cost(fn func(s toySpace) error) (reads, writes, bytes int64, err error) {
	b.pages.reads.Store(0)
	b.pages.writes.Store(0)
	b.pages.written.Store(0)
	err = fn(b.space())
	return b.pages.reads.Load(), b.pages.writes.Load(), b.pages.written.Load(), err
}

// TestCosts counts pages: what touches a handful of keys touches a handful of
// pages, whatever the number of chunks and arrays.
func TestCosts(t *testing.T) {
	ctx := context.Background()
	b := newBigSpace(t, 300, 2000)
	var total int64
	must.Do(t, b.space().Space.Tree.Walk(ctx, b.root, func(tree.Name, uint8, int) (bool, error) { total++; return true, nil }))
	if total < 1500 {
		t.Fatalf("only %d pages: the test shows nothing", total)
	}
	change := func(s toySpace, kv map[string]string) tree.Root { return s.mustApply(t, b.root, puts(kv)) }
	ours := change(b.space(), map[string]string{
		"g/big/c/0/0": "o", "g/big/c/7/250": "o", "g/big/c/150/3": "", "g/big/c/400/400": "o", "many/00100/c/0/0": "o", "many/00900/c/0/7": "o",
	})
	theirs := change(b.space(), map[string]string{
		"g/big/c/1/0": "t", "g/big/c/8/250": "t", "g/big/c/150/5": "", "g/big/c/401/400": "t", "many/00101/c/0/0": "t", "many/01900/c/0/7": "t",
	})
	one := change(b.space(), map[string]string{"g/big/c/7/250": "o"})
	moved := must.Get(b.space().Move(ctx, b.root, "g/big", "many/x"))(t)
	for _, c := range []struct {
		what          string
		fn            func(s toySpace) error
		reads, writes int64
	}{
		{"put one chunk", func(s toySpace) error {
			_, err := s.Apply(ctx, b.root, []Edit{{Key: "g/big/c/7/250", Value: inline("x")}})
			return err
		}, 9, 7},
		{"get one chunk", func(s toySpace) error {
			_, _, err := s.Get(ctx, b.root, "g/big/c/7/250")
			return err
		}, 8, 0},
		{"move the array", func(s toySpace) error { _, err := s.Move(ctx, b.root, "g/big", "many/x"); return err }, 10, 7},
		{"copy the array", func(s toySpace) error {
			_, err := s.Copy(ctx, b.root, b.root, "g/big", "many/x", s.NewID)
			return err
		}, 9, 5},
		{"move a group", func(s toySpace) error { _, err := s.Move(ctx, b.root, "many", "g/many"); return err }, 8, 5},
		{"delete the array", func(s toySpace) error { _, err := s.DeletePrefix(ctx, b.root, "g/big/"); return err }, 4, 3},
		{"delete its chunks", func(s toySpace) error { _, err := s.DeletePrefix(ctx, b.root, "g/big/c/"); return err }, 10, 4},
		{"delete a row", func(s toySpace) error { _, err := s.DeletePrefix(ctx, b.root, "g/big/c/7/"); return err }, 12, 9},
		{"change its metadata", func(s toySpace) error {
			_, err := s.Apply(ctx, b.root, []Edit{{Key: "g/big/zarr.json", Value: inline("array f=:.:2 k=y")}})
			return err
		}, 5, 4},
		{"first ten keys", func(s toySpace) error {
			n := 0
			for _, err := range s.List(ctx, b.root, "g/big/c/299", "") {
				if n++; n == 10 || err != nil {
					return err
				}
			}
			return nil
		}, 12, 0},
		{"children of a group", func(s toySpace) error {
			for _, err := range s.ListDir(ctx, b.root, "many/") {
				if err != nil {
					return err
				}
			}
			return nil
		}, 28, 0},
		{"diff of one chunk", func(s toySpace) error {
			for _, err := range s.Diff(ctx, b.root, one, "") {
				if err != nil {
					return err
				}
			}
			return nil
		}, 18, 0},
		{"diff of a move", func(s toySpace) error {
			_, err := s.Renames(ctx, b.root, moved)
			return err
		}, 15, 0},
		{"merge of 6 and 6 changes", func(s toySpace) error {
			_, conflicts, err := s.Merge(ctx, b.root, ours, theirs, MergeOptions{})
			if len(conflicts) > 0 {
				t.Errorf("conflicts %v", conflicts)
			}
			return err
		}, 85, 20},
		{"merge of a move and 6 changes", func(s toySpace) error {
			_, conflicts, err := s.Merge(ctx, b.root, moved, theirs, MergeOptions{})
			if len(conflicts) > 0 {
				t.Errorf("conflicts %v", conflicts)
			}
			return err
		}, 35, 15},
	} {
		reads, writes, bytes, err := b.cost(c.fn)
		if err != nil {
			t.Errorf("%s: %v", c.what, err)
		}
		t.Logf("%-30s %4d pages read, %3d written (%d bytes)", c.what, reads, writes, bytes)
		if reads > c.reads || writes > c.writes {
			t.Errorf("%s: %d pages read, %d written; at most %d and %d of %d", c.what, reads, writes, c.reads, c.writes, total)
		}
	}
}

// TestGetAllocs: a cached get does not allocate.
func TestGetAllocs(t *testing.T) {
	ctx := context.Background()
	s := newToySpace(1)
	root := s.mustApply(t, tree.Root{}, append(gridEdits("g/big/", 60), Edit{Key: "g/big/zarr.json", Value: inline(bigDoc)}))
	for _, key := range []string{"g/big/c/7/25", "g/big/zarr.json", "g/big/c/61/0", "g/nothing"} {
		allocs := testing.AllocsPerRun(100, func() {
			if _, _, err := s.Get(ctx, root, key); err != nil {
				t.Fatal(err)
			}
		})
		if allocs > 0 {
			t.Errorf("get %s: %v allocations", key, allocs)
		}
	}
}
