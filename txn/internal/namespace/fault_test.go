package namespace

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/tree"
)

// faultyPages fails from the k-th call on.
type faultyPages struct {
	tree.Pages
	left atomic.Int64
}

var errFault = errors.New("fault")

func (p *faultyPages) GetPage(ctx context.Context, name tree.Name) ([]byte, error) {
	if p.left.Add(-1) < 0 {
		return nil, errFault
	}
	return p.Pages.GetPage(ctx, name)
}

func (p *faultyPages) PutPage(ctx context.Context, name tree.Name, page []byte) error {
	if p.left.Add(-1) < 0 {
		return errFault
	}
	return p.Pages.PutPage(ctx, name, page)
}

// everyOperation runs each operation of a space on three roots, by name.
func everyOperation(s *Space, base, ours, theirs tree.Root) map[string]func(ctx context.Context) error {
	return map[string]func(ctx context.Context) error{
		"get": func(ctx context.Context) error { _, _, err := s.Get(ctx, ours, "a/c/1/2"); return err },
		"any": func(ctx context.Context) error { _, err := s.Any(ctx, ours, "a/c/1/"); return err },
		"apply": func(ctx context.Context) error {
			_, err := s.Apply(ctx, base, puts(map[string]string{"a/c/1/2": "n", "b/x": "n", "new/zarr.json": nestedDoc, "new/c/0/0": "n"}))
			return err
		},
		"rehome": func(ctx context.Context) error {
			_, err := s.Apply(ctx, base, puts(map[string]string{"b/zarr.json": "array f=:/:1", "a/c/1/zarr.json": "array f=:/:1"}))
			return err
		},
		"deletePrefix": func(ctx context.Context) error { _, err := s.DeletePrefix(ctx, base, "a/c/1"); return err },
		"move":         func(ctx context.Context) error { _, err := s.Move(ctx, base, "b", "a/c/77"); return err },
		"copy": func(ctx context.Context) error {
			_, err := s.Copy(ctx, base, ours, "a", "z/a", s.NewID)
			return err
		},
		"list": func(ctx context.Context) error {
			for _, err := range s.List(ctx, ours, "", "a/c/1") {
				if err != nil {
					return err
				}
			}
			return nil
		},
		"listDir": func(ctx context.Context) error {
			for _, err := range s.ListDir(ctx, ours, "a/c/") {
				if err != nil {
					return err
				}
			}
			return nil
		},
		"scan": func(ctx context.Context) error {
			for _, err := range s.Scan(ctx, ours, "") {
				if err != nil {
					return err
				}
			}
			return nil
		},
		"diff": func(ctx context.Context) error {
			for _, err := range s.Diff(ctx, ours, theirs, "") {
				if err != nil {
					return err
				}
			}
			return nil
		},
		"renames": func(ctx context.Context) error { _, err := s.Renames(ctx, base, theirs); return err },
		"merge": func(ctx context.Context) error {
			_, _, err := s.Merge(ctx, base, ours, theirs, MergeOptions{Guards: []string{"q", "a/none"}})
			return err
		},
		"verify": func(ctx context.Context) error { return s.Verify(ctx, ours) },
	}
}

const nestedDoc = "array f=c/:/:2 k=x g=99,99"

// threeRoots makes a base and two changes of it that merge.
func threeRoots(t *testing.T, s toySpace) (base, ours, theirs tree.Root) {
	set := map[string]string{"a/zarr.json": nestedDoc, "zarr.json": "group", "b/c/7": "doc", "b/7": "doc"}
	for i := range 40 {
		for j := range 40 {
			set[fmt.Sprintf("a/c/%d/%d", i, j)] = "x"
		}
		set[fmt.Sprintf("g/%d/zarr.json", i)] = nestedDoc
	}
	base = s.mustApply(t, tree.Root{}, puts(set))
	ours = s.mustApply(t, base, puts(map[string]string{"a/c/1/2": "o", "g/7/c/1/1": "o", "b/zarr.json": "array f=:/:1"}))
	theirs = s.mustApply(t, base, puts(map[string]string{"a/c/2/2": "t", "b/8": "t"}))
	theirs = must.Get(s.Move(context.Background(), theirs, "g/7", "h/7"))(t)
	return base, ours, theirs
}

// TestFaults fails the page store at its k-th call, for every k until an
// operation gets through: each time the error comes out and nothing panics.
func TestFaults(t *testing.T) {
	if testing.Short() {
		t.Skip("the work of one goroutine, many times")
	}
	ctx := context.Background()
	made := newToySpace(2)
	base, ours, theirs := threeRoots(t, made)
	for name := range everyOperation(made.Space, base, ours, theirs) {
		for k := int64(0); ; k++ {
			pages := &faultyPages{Pages: made.pages}
			pages.left.Store(k)
			s := newToySpace(2)
			s.packs.docs = made.packs.docs
			s.Space.Tree = tree.New(pages, nil)
			err := everyOperation(s.Space, base, ours, theirs)[name](ctx)
			failed := pages.left.Load() < 0
			if failed != errors.Is(err, errFault) || !failed && err != nil {
				t.Fatalf("%s: fault at call %d: %v", name, k, err)
			}
			if !failed {
				break
			}
			if k == 2000 {
				t.Fatalf("%s: no end", name)
			}
		}
	}
}

// TestCancelled: a cancelled context ends every operation that reads much, even
// if all pages are cached.
func TestCancelled(t *testing.T) {
	s := newToySpace(2)
	base, ours, theirs := threeRoots(t, s)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	ops := everyOperation(s.Space, base, ours, theirs)
	for _, name := range []string{"apply", "rehome", "copy", "list", "listDir", "scan", "diff", "renames", "merge", "verify"} {
		if err := ops[name](ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestHostileDirectories: directories that this package never makes are errors, not
// panics.
func TestHostileDirectories(t *testing.T) {
	ctx := context.Background()
	s := newToySpace(1)
	base, _, _ := threeRoots(t, s)
	child := func(r tree.Root) tree.Value { return tree.Value{Kind: tree.KindChild, Child: r} }
	one, err := s.Space.Tree.Apply(ctx, tree.Root{}, []tree.Edit{{Key: []byte("\xff"), Value: inline("x")}})
	must.Do(t, err)
	form := string(mapKey(Form{"c/", '/', 2}))
	for name, e := range map[string]tree.Edit{
		"sub-directory is a document":  {Key: []byte("x/"), Value: inline("x")},
		"document is a sub-directory":  {Key: []byte("x"), Value: child(one)},
		"empty sub-directory":          {Key: []byte("x/"), Value: child(tree.Root{})},
		"identity is short":            {Key: []byte("/i"), Value: inline("123")},
		"identity has a name":          {Key: []byte("/ix"), Value: inline("0123456789012345")},
		"identity is a child":          {Key: []byte("/i"), Value: child(one)},
		"unknown reserved entry":       {Key: []byte("/q"), Value: inline("x")},
		"form without separator":       {Key: []byte("/c\x02"), Value: child(one)},
		"form of rank 0":               {Key: []byte("/c\x00/c"), Value: child(one)},
		"form of rank 99":              {Key: []byte("/c\x63/c"), Value: child(one)},
		"form with a strange spelling": {Key: []byte("/c\x01.c"), Value: child(one)},
		"form with digits":             {Key: []byte("/c\x02/c1"), Value: child(one)},
		"chunk map is a document":      {Key: []byte(form), Value: inline("x")},
		"chunks of another rank":       {Key: []byte(form), Value: child(one)},
		"empty node entry":             {Key: []byte("/nzarr.json"), Value: inline("")},
		"node entry cut off":           {Key: []byte("/nzarr.json"), Value: inline("\x01\x02/\x09c/")},
		"node entry for nothing":       {Key: []byte("/n.zgroup"), Value: inline("\x00")},
	} {
		bad, err := s.Space.Tree.Apply(ctx, base, []tree.Edit{e})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		root := must.Get(s.Space.Tree.Apply(ctx, base, []tree.Edit{{Key: []byte("bad/"), Value: child(bad)}}))(t)
		if err := s.Verify(ctx, root); !errors.Is(err, kv.ErrCorrupt) {
			t.Errorf("%s: verify says %v", name, err)
		}
		for op, fn := range everyOperation(s.Space, base, root, bad) {
			if err := fn(ctx); err != nil && !errors.Is(err, kv.ErrCorrupt) && !errors.Is(err, ErrExists) {
				t.Errorf("%s: %s: %v", name, op, err)
			}
		}
	}
	// Directories in one another, deeper than keys can be.
	deep := one
	for range MaxKey {
		if deep, err = s.Space.Tree.Apply(ctx, tree.Root{}, []tree.Edit{{Key: []byte("d/"), Value: child(deep)}}); err != nil {
			t.Fatal(err)
		}
	}
	for op, fn := range everyOperation(s.Space, base, deep, base) {
		err := fn(ctx)
		switch op {
		case "list", "scan", "verify", "diff", "copy":
			if err == nil {
				t.Errorf("deep: %s finds nothing wrong", op)
			}
		}
		if err != nil && !errors.Is(err, kv.ErrCorrupt) && !errors.Is(err, kv.ErrNotFound) {
			t.Errorf("deep: %s: %v", op, err)
		}
	}
}

// TestConcurrentReads: readers and writers of a space share its caches.
func TestConcurrentReads(t *testing.T) {
	s := newToySpace(1)
	s.Space.dirs = newDirCache(1 << 12) // so that generations turn over
	base, ours, theirs := threeRoots(t, s)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for name, fn := range everyOperation(s.With(s.pages), base, ours, theirs) {
				if name == "copy" || name == "apply" || name == "rehome" {
					continue // identities come from a counter
				}
				for range 3 {
					if err := fn(context.Background()); err != nil {
						t.Errorf("%s: %v", name, err)
					}
				}
			}
		})
	}
	wg.Wait()
}
