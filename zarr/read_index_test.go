package zarr

import (
	"bytes"
	"slices"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
)

// Shards of different shapes may have the same bytes, here of an index that says that
// every inner chunk is missing, with bytes before it that are not read. Each shard is read with
// its own shape.
func TestSameBytesInShardsOfTwoShapes(t *testing.T) {
	ctx := t.Context()
	store := idStore{kv.NewMem()}
	doc := `{"zarr_format":3,"node_type":"array","shape":[12],"data_type":"uint8","fill_value":7,
		"chunk_grid":{"name":"rectilinear","configuration":{"kind":"inline","chunk_shapes":[[4,8]]}},
		"chunk_key_encoding":{"name":"default"},
		"codecs":[{"name":"sharding_indexed","configuration":{"chunk_shape":[2],"codecs":[{"name":"bytes"}],
			"index_codecs":[{"name":"bytes","configuration":{"endian":"little"}}],"index_location":"end"}}]}`
	must.Have(0, store.Set(ctx, "zarr.json", []byte(doc)))
	shard := bytes.Repeat([]byte{0xff}, 4*16) // 4 entries; 2 are half of it
	must.Have(0, store.Set(ctx, "c/0", shard))
	must.Have(0, store.Set(ctx, "c/1", shard))
	a := must.Have(OpenArray(ctx, store, "", nil))
	for _, i := range []int64{0, 5, 1, 11} {
		got, _, err := Read[uint8](ctx, a, Sel(At(i)))
		if err != nil || !slices.Equal(got, []uint8{7}) {
			t.Errorf("element %d: %v, %v", i, got, err)
		}
	}
}
