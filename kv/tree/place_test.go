package tree

import (
	"context"
	"errors"
	"fmt"
	"github.com/zarrdb/zarrdb/internal/must"
	"slices"
	"testing"
)

// Page by page one sees what Scan shows, and a damaged page hides only what is
// below it.
func TestPlaces(t *testing.T) {
	ctx := context.Background()
	pages := NewMemPages()
	tr := New(pages, &Options{CacheBytes: -1})
	b := tr.NewBuilder(ctx)
	var want []string
	for i := range 3000 {
		key := fmt.Sprintf("key %06d", i)
		want = append(want, key)
		must.Do(t, b.Add(&Entry{Key: []byte(key), Value: Value{Inline: []byte(key)}}))
	}
	root := must.Get(b.Finish())(t)
	walk := func() (keys []string, bad []Name) {
		stack := []Place{root.Place()}
		for len(stack) > 0 {
			at := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			var below []Place
			err := tr.Open(ctx, at, func(c Place) error {
				below = append(below, c)
				return nil
			}, func(e Entry) error {
				keys = append(keys, string(e.Key))
				return nil
			})
			if err != nil {
				if !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrMissing) {
					t.Fatal(err)
				}
				bad = append(bad, at.Page().Name)
			}
			slices.Reverse(below)
			stack = append(stack, below...)
		}
		return keys, bad
	}
	if got, bad := walk(); !slices.Equal(got, want) || len(bad) > 0 {
		t.Fatalf("%d keys, damaged %v", len(got), bad)
	}
	var leaf Name
	must.Do(t, tr.Walk(ctx, root, func(name Name, height uint8, _ int) (bool, error) {
		if height == 0 {
			leaf = name
		}
		return height > 0, nil
	}))
	page := must.Get(pages.GetPage(ctx, leaf))(t)
	page[len(page)/2] ^= 1
	got, bad := walk()
	if !slices.Equal(bad, []Name{leaf}) {
		t.Errorf("damaged %v, want %v", bad, leaf)
	}
	if len(got) == 0 || len(got) >= len(want) || !slices.Equal(got, want[:len(got)]) {
		t.Errorf("%d of %d keys are left, which are not the first ones", len(got), len(want))
	}
	if err := tr.Open(ctx, Root{}.Place(), nil, nil); err != nil {
		t.Errorf("empty map: %v", err)
	}
}
