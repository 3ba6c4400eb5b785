package zarr

import (
	"bytes"
	"context"
	"fmt"
	"runtime"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/internal/race"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/zarr/dtype"
)

// A part of the elements of a large chunk or shard takes memory for a strip, and not for the chunk.
func TestStridedReadOfLargeChunk(t *testing.T) {
	defer smallTuning()()
	tune.large = 256 << 10
	const n, step = 4096, 8
	for _, codecs := range []string{
		`{"name":"bytes"}`, `{"name":"bytes"},{"name":"zstd","configuration":{"level":1,"checksum":true}}`, `{"name":"bytes"},{"name":"gzip","configuration":{"level":1}}`,
		`{"name":"bytes"},{"name":"numcodecs.lz4","configuration":{"acceleration":1}}`,
		`{"name":"bytes"},{"name":"blosc","configuration":{"cname":"lz4","clevel":1,"shuffle":"noshuffle","typesize":1,"blocksize":65536}}`,
		`{"name":"transpose","configuration":{"order":[1,0]}},{"name":"bytes"},{"name":"zstd","configuration":{"level":1,"checksum":false}}`,
		`{"name":"sharding_indexed","configuration":{"chunk_shape":[64,64],"codecs":[{"name":"bytes"}],"index_codecs":[{"name":"bytes","configuration":{"endian":"little"}}],"index_location":"end"}}`,
	} {
		store := kv.NewMem()
		meta := fmt.Sprintf(`{"zarr_format":3,"node_type":"array","shape":[%d,%d],"data_type":"uint8","chunk_grid":{"name":"regular","configuration":{"chunk_shape":[%d,%d]}},"chunk_key_encoding":{"name":"default"},"fill_value":0,"codecs":[%s]}`, n, n, n, n, codecs)
		must.Do(t, store.Set(t.Context(), "a/zarr.json", []byte(meta)))
		a := must.Get(OpenArray(t.Context(), store, "a", nil))(t)
		if !a.Type().Equal(dtype.NewUint(8)) {
			t.Fatal(a.Type())
		}
		all := make([]byte, n*n)
		for i := range all {
			all[i] = byte(i*7 + i/n*3)
		}
		must.Do(t, a.WriteBytes(t.Context(), Sel(), all))
		got, want := make([]byte, n*n/step/step), []byte{}
		for y := n - 1; y >= 0; y -= step {
			for x := 0; x < n; x += step {
				want = append(want, all[y*n+x])
			}
		}
		runtime.GC()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		must.Do(t, a.ReadBytes(context.Background(), Sel(Slice(n-1, None, -step), Slice(0, n, step)), got))
		runtime.ReadMemStats(&after)
		if !bytes.Equal(got, want) {
			t.Errorf("%s: wrong elements", codecs)
		}
		if took := after.TotalAlloc - before.TotalAlloc; took > n*n*3/4 && !race.Enabled { // with it on pools forget
			t.Errorf("%s: a read of some of %d bytes took %d", codecs, n*n, took)
		}
	}
}
