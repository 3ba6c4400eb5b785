package convert

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/zarrdb/zarrdb/codecs/builtin"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/zarr"
)

// counting counts the keys that are listed.
type counting struct {
	*kv.Mem
	keys int
}

func (c *counting) List(ctx context.Context, o kv.ListOptions) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for key, err := range c.Mem.List(ctx, o) {
			if c.keys++; !yield(key, err) {
				return
			}
		}
	}
}

// Whether keys lie below a missing chunk is known without a listing of the other chunks: web
// servers ask it for each.
func TestViewBelowChunk(t *testing.T) {
	store := &counting{Mem: kv.NewMem()}
	a := must.Get(zarr.Create(t.Context(), store, "a", zarr.Spec{Version: zarr.V2, Shape: []int64{200, 2}, Chunks: []int64{1, 1}, DataType: "int8"}, nil))(t)
	must.Do(t, zarr.Write(t.Context(), a, zarr.Sel(zarr.Slice(0, 100, 1)), slices.Repeat([]int8{5}, 200)))
	v := NewView(store, &zarr.OpenOptions{Registry: builtin.Registry()}, zarr.V3, true)
	for key, want := range map[string]bool{"a/c/150/0/": false, "a/c/7/0/": false, "a/c/7/0/x": false, "a/c/7/": true, "a/c/7/0": true, "a/c/150/": false, "a/c/200/": false} {
		store.keys = 0
		if found, err := kv.Any(t.Context(), v, key); err != nil || found != want {
			t.Errorf("%s: %v, %v, want %v", key, found, err, want)
		}
		if strings.Contains(key, "/0/") && store.keys > 0 {
			t.Errorf("%s: %d keys were listed", key, store.keys)
		}
	}
	must.Get(zarr.Create(t.Context(), store, "0", zarr.Spec{Shape: []int64{1}, Chunks: []int64{1}, DataType: "int8"}, nil))(t)
	v = NewView(store, &zarr.OpenOptions{Registry: builtin.Registry()}, zarr.V2, true)
	if found, err := kv.Any(t.Context(), v, "0/"); err != nil || !found {
		t.Errorf("an array named like a chunk has keys: %v, %v", found, err)
	}
}

// A chunk of fill values is made when a missing chunk is read, and kept if it is small.
// If it cannot be made, that chunk alone is an error.
func TestViewMissingChunk(t *testing.T) {
	for _, c := range []struct {
		chunk int64
		kept  bool
	}{{2, true}, {1 << 20, false}} {
		store := kv.NewMem()
		a := must.Get(zarr.Create(t.Context(), store, "a", zarr.Spec{Shape: []int64{2 * c.chunk}, Chunks: []int64{c.chunk},
			DataType: "int32", DimensionNames: []string{"x"}, Codecs: json.RawMessage(`[{"name":"bytes","configuration":{"endian":"little"}}]`)}, nil))(t)
		must.Do(t, zarr.Write(t.Context(), a, zarr.Sel(zarr.At(0)), []int32{5}))
		v := NewView(store, &zarr.OpenOptions{Registry: builtin.Registry()}, zarr.V2, true)
		made := func() bool {
			n, err := v.node(t.Context(), "a")
			if err != nil || n == nil || n.err != nil {
				t.Fatal(n, err)
			}
			return n.fill != nil
		}
		for _, key := range []string{"a/.zarray", "a/0"} {
			if _, err := v.Locate(t.Context(), key); err != nil || made() {
				t.Errorf("%s: %v, a chunk of fill values is made: %v", key, err, made())
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := v.Locate(ctx, "a/1"); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		for range 2 {
			if chunk, err := v.Locate(t.Context(), "a/1"); err != nil || chunk.Size() != 4*c.chunk || made() != c.kept {
				t.Errorf("%v, kept: %v", err, made())
			}
		}
	}
}
