package formats_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/zarrdb/zarrdb/formats"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/refs"
)

func sample() (t *formats.Tree, keys []string) {
	t = formats.NewTree()
	for _, key := range []string{"zarr.json", "a/zarr.json", "b/zarr.json", "b/c/zarr.json"} {
		t.Put(key, []byte(key))
		keys = append(keys, key)
	}
	array := func(prefix string, sep byte, counts ...int64) {
		chunk := func(_ context.Context, c []int64) (refs.Reference, error) {
			if (c[0]+c[len(c)-1])%5 == 3 {
				return refs.Reference{}, kv.ErrNotFound
			}
			return refs.Reference{URL: "f", Offset: c[0], Length: c[len(c)-1]}, nil
		}
		t.Add(formats.Array{Prefix: prefix, Separator: sep, Counts: counts, Chunk: chunk})
		for i := range counts[0] {
			if len(counts) == 1 {
				if (i+i)%5 != 3 {
					keys = append(keys, fmt.Sprintf("%s%d", prefix, i))
				}
				continue
			}
			for j := range counts[1] {
				if (i+j)%5 != 3 {
					keys = append(keys, fmt.Sprintf("%s%d%c%d", prefix, i, sep, j))
				}
			}
		}
	}
	array("a/c/", '/', 112, 12)
	array("b/", '.', 13, 3)
	array("b/c/c/", '/', 101)
	slices.Sort(keys)
	return t, keys
}

// A tree lists its keys in byte order, from anywhere, and each can be looked up.
func TestTreeList(t *testing.T) {
	set, keys := sample()
	rnd := rand.New(rand.NewPCG(1, 2))
	try := func(o kv.ListOptions) {
		t.Helper()
		var got, want []string
		for key, err := range set.List(t.Context(), o) {
			must.Do(t, err)
			got = append(got, key)
		}
		for _, key := range keys {
			if strings.HasPrefix(key, o.Prefix) && key > o.After {
				want = append(want, key)
			}
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%+v: %d keys, want %d", o, len(got), len(want))
		}
	}
	try(kv.ListOptions{})
	for range 300 {
		key := keys[rnd.IntN(len(keys))]
		try(kv.ListOptions{Prefix: key[:rnd.IntN(len(key)+1)]})
		try(kv.ListOptions{After: key[:rnd.IntN(len(key)+1)]})
		try(kv.ListOptions{Prefix: key[:2], After: keys[rnd.IntN(len(keys))]})
	}
	seen := map[string]bool{}
	for e, err := range set.Entries(t.Context()) {
		if err != nil || seen[e.Key] {
			t.Fatal(e.Key, err)
		}
		seen[e.Key] = true
		if _, err := set.Lookup(t.Context(), e.Key); err != nil {
			t.Fatal(e.Key, err)
		}
	}
	if len(seen) != len(keys) {
		t.Fatalf("%d entries of %d", len(seen), len(keys))
	}
}

// Only the one spelling of a chunk's key has a value.
func TestTreeLookup(t *testing.T) {
	set, _ := sample()
	for _, key := range []string{"a/c/0", "a/c/00/0", "a/c/+1/0", "a/c/-1/0", "a/c/112/0", "a/c/1/0/0", "a/c/1/", "a/c/", "b/1", "b/1.", "c/0/0", "", "a/c/99999999999999999999/0"} {
		if _, err := set.Lookup(t.Context(), key); err != kv.ErrNotFound {
			t.Errorf("%q: %v", key, err)
		}
	}
}

// A value that is made is made once, also for many readers, and never for a list. The error
// of a server is not kept; that of a damaged file is.
func TestTreeLazy(t *testing.T) {
	set := formats.NewTree()
	var made atomic.Int64
	fail := errors.New("the server is busy")
	set.PutLazy("b", func(context.Context) ([]byte, error) {
		if made.Add(1) == 1 {
			return nil, fail
		}
		return []byte("text"), nil
	})
	set.PutLazy("c", func(context.Context) ([]byte, error) {
		made.Add(1)
		return nil, formats.Invalid("odd")
	})
	set.Put("a", nil)
	if keys := must.Get(kv.Keys(t.Context(), set, ""))(t); !slices.Equal(keys, []string{"a", "b", "c"}) || made.Load() != 0 {
		t.Fatal(keys, made.Load())
	}
	if _, err := set.Lookup(t.Context(), "b"); !errors.Is(err, fail) {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			ref, err := set.Lookup(t.Context(), "b")
			if err != nil || string(ref.Data) != "text" {
				t.Error(string(ref.Data), err)
			}
			if _, err := set.Lookup(t.Context(), "c"); !errors.Is(err, formats.ErrFormat) {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if made.Load() != 3 {
		t.Error("made", made.Load(), "times, want 3")
	}
	var last error
	for e, err := range set.Entries(t.Context()) {
		if last = err; e.Key == "b" && string(e.Data) != "text" {
			t.Error(string(e.Data))
		}
	}
	if !errors.Is(last, formats.ErrFormat) {
		t.Error(last)
	}
}
