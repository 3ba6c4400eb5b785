package convert

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/zarrdb/zarrdb/codecs/builtin"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/zarr"
)

// A chunk of fill values is made when a missing chunk is read, and kept if it is small.
// If it cannot be made, that chunk alone is an error.
func TestViewMissingChunk(t *testing.T) {
	for _, c := range []struct {
		chunk int64
		kept  bool
	}{{2, true}, {1 << 20, false}} {
		store := kv.NewMem()
		a, err := zarr.Create(t.Context(), store, "a", zarr.Spec{Shape: []int64{2 * c.chunk}, Chunks: []int64{c.chunk},
			DataType: "int32", DimensionNames: []string{"x"}, Codecs: json.RawMessage(`[{"name":"bytes","configuration":{"endian":"little"}}]`)}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := zarr.Write(t.Context(), a, zarr.Sel(zarr.At(0)), []int32{5}); err != nil {
			t.Fatal(err)
		}
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
