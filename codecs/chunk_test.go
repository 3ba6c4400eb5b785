package codecs_test

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/codecs/builtin"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/zarr/dtype"
)

// benchShape is a chunk of 2 MiB of float32.
var benchShape = []int{512, 1024}

// waves returns float32 elements that look measured: waves and noise, rounded
// to three decimals.
func waves(n int) []byte {
	r := rand.New(rand.NewPCG(7, 0))
	b := make([]byte, 0, 4*n)
	for i := range n {
		x := float64(i)
		v := 20*math.Sin(x/700) + 5*math.Cos(x/31) + r.NormFloat64()*.05
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(math.Round(v*1000)/1000)))
	}
	return b
}

// benchChains are the chains that are measured. Sharded ones have inner chunks
// of 64 KiB.
var benchChains = []struct{ name, v3 string }{
	{"raw", `[` + little + `]`},
	{"big", `[` + big + `]`},
	{"crc32c", `[` + little + `,"crc32c"]`},
	{"transpose", `[` + transpose(`[1,0]`) + `,` + little + `]`},
	{"gzip5", `[` + little + `,` + gzip5 + `]`},
	{"zstd3", `[` + little + `,` + zstd3 + `]`},
	{"zstd3_crc32c", `[` + little + `,` + zstd3 + `,"crc32c"]`},
	{"blosc_lz4", `[` + little + `,` + blosc("lz4", "shuffle", 4, 0) + `]`},
	{"blosc_zstd", `[` + little + `,` + blosc("zstd", "shuffle", 4, 0) + `]`},
	{"shard_raw", `[` + shard(`[128,128]`, little, indexCRC, "end") + `]`},
	{"shard_zstd3", `[` + shard(`[128,128]`, little+`,`+zstd3, indexCRC, "end") + `]`},
	{"shard_blosc_lz4", `[` + shard(`[128,128]`, little+`,`+blosc("lz4", "shuffle", 4, 0), indexCRC, "end") + `]`},
}

func bind(t testing.TB, v3 string, typ dtype.Type, shape []int, fill []byte) *codecs.Bound {
	t.Helper()
	c := must.Get(builtin.Registry().ParseV3([]byte(v3)))(t)
	b := must.Get(c.Bind(codecs.Rep{Type: typ, Shape: shape, Fill: fill}))(t)
	return b
}

func benchChunk(t testing.TB, v3 string) (b *codecs.Bound, elems, stored []byte) {
	t.Helper()
	elems = waves(product(benchShape))
	b = bind(t, v3, dtype.NewFloat(32), benchShape, nil)
	stored = must.Get(b.Encode(nil, elems))(t)
	return b, elems, stored
}
