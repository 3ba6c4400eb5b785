package zarr

import (
	"context"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
)

// benchArray is a float32 array of 16 chunks of 2 MiB in memory.
func benchArray(b *testing.B, spec Spec, o *OpenOptions) *Array {
	b.Helper()
	ctx := context.Background()
	spec.DataType = "float32"
	if spec.Shape == nil {
		spec.Shape, spec.Chunks = []int64{2048, 4096}, []int64{512, 1024}
	}
	a := must.Have(Create(ctx, kv.NewMem(), "a", spec, o))
	data := make([]float32, 2048*4096)
	for i := range data {
		data[i] = float32(i % 1000)
	}
	must.Do(b, Write(ctx, a, Sel(), data))
	return a
}

const rawCodecs = `[{"name":"bytes","configuration":{"endian":"little"}}]`

// fullCache forgets nothing.
type fullCache struct{ mapCache }

func (c *fullCache) Add(id kv.ID, codec [16]byte, chunk []byte) {
	c.mapCache.adds = 0
	c.mapCache.Add(id, codec, chunk)
}

// BenchmarkReadStrided reads every second or hundredth row and column.
func BenchmarkReadStrided(b *testing.B) {
	for _, c := range []struct {
		name string
		sel  Selection
	}{
		{"rows/2", Sel(Slice(None, None, 2))},
		{"rows/100", Sel(Slice(None, None, 100))},
		{"columns/2", Sel(All(), Slice(None, None, 2))},
		{"flip", Sel(Slice(None, None, -1), Slice(None, None, -1))},
	} {
		b.Run(c.name, func(b *testing.B) {
			a := benchArray(b, Spec{Codecs: []byte(rawCodecs)}, nil)
			shape := must.Have(a.Resolve(c.sel))
			n, _ := elements(shape)
			dst := make([]float32, n)
			b.SetBytes(4 * n)
			b.ReportAllocs()
			for b.Loop() {
				must.Do(b, ReadInto(context.Background(), a, c.sel, dst))
			}
		})
	}
}
