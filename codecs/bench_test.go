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

// BenchmarkParseV3 parses a list of codecs, as each array that is opened does.
func BenchmarkParseV3(b *testing.B) {
	r := builtin.Registry()
	list := []byte(`[{"name":"bytes","configuration":{"endian":"little"}},{"name":"zstd","configuration":{"level":1}}]`)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := r.ParseV3(list); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDecode(b *testing.B) {
	for _, c := range benchChains {
		b.Run(c.name, func(b *testing.B) {
			bound, elems, stored := benchChunk(b, c.v3)
			b.SetBytes(int64(len(elems)))
			b.ReportAllocs()
			for b.Loop() {
				var err error
				if elems, err = bound.Decode(elems[:0], stored); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(len(elems))/float64(len(stored)), "ratio")
		})
	}
}

// Into a larger array, as reading does it.
func BenchmarkDecodeInto(b *testing.B) {
	for _, c := range benchChains {
		b.Run(c.name, func(b *testing.B) {
			bound, elems, stored := benchChunk(b, c.v3)
			dst := codecs.Dst{Data: make([]byte, 2*len(elems)), Offset: 4096, Strides: []int{8192, 4}}
			box := codecs.Box{Start: []int{0, 0}, Count: benchShape}
			b.SetBytes(int64(len(elems)))
			b.ReportAllocs()
			for b.Loop() {
				must.Do(b, bound.DecodeInto(stored, box, dst))
			}
		})
	}
}

// One row and one column of a chunk.
func BenchmarkDecodeBox(b *testing.B) {
	for _, c := range benchChains {
		b.Run(c.name, func(b *testing.B) {
			bound, elems, stored := benchChunk(b, c.v3)
			src := codecs.Bytes(stored)
			var source codecs.Source = &src
			row := codecs.Box{Start: []int{100, 0}, Count: []int{1, 1024}}
			column := codecs.Box{Start: []int{0, 100}, Count: []int{512, 1}}
			b.ReportAllocs()
			for b.Loop() {
				must.Do(b, bound.DecodeBox(t0, source, row, codecs.Dst{Data: elems, Strides: []int{4096, 4}}))
				must.Do(b, bound.DecodeBox(t0, source, column, codecs.Dst{Data: elems, Strides: []int{4, 4}}))
			}
		})
	}
}

func BenchmarkEncode(b *testing.B) {
	for _, c := range benchChains {
		b.Run(c.name, func(b *testing.B) {
			bound, elems, stored := benchChunk(b, c.v3)
			b.SetBytes(int64(len(elems)))
			b.ReportAllocs()
			for b.Loop() {
				var err error
				if stored, err = bound.Encode(stored[:0], elems); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
