package codecs_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/codecs/builtin"
	n5format "github.com/zarrdb/zarrdb/formats/n5"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/zarr/dtype"
)

const (
	little   = `{"name":"bytes","configuration":{"endian":"little"}}`
	big      = `{"name":"bytes","configuration":{"endian":"big"}}`
	gzip5    = `{"name":"gzip","configuration":{"level":5}}`
	zstd3    = `{"name":"zstd","configuration":{"level":3}}`
	zstdSum  = `{"name":"zstd","configuration":{"level":1,"checksum":true}}`
	indexCRC = `[` + little + `,"crc32c"]`
)

// shard returns a sharding codec.
func shard(shape, inner, index, location string) string {
	return `{"name":"sharding_indexed","configuration":{"chunk_shape":` + shape + `,"codecs":[` + inner +
		`],"index_codecs":` + index + `,"index_location":"` + location + `"}}`
}

func blosc(cname, shuffle string, typeSize, blockSize int) string {
	return fmt.Sprintf(`{"name":"blosc","configuration":{"cname":%q,"clevel":5,"shuffle":%q,"typesize":%d,"blocksize":%d}}`,
		cname, shuffle, typeSize, blockSize)
}

func transpose(order string) string {
	return `{"name":"transpose","configuration":{"order":` + order + `}}`
}

func conditional(codecs string) string {
	return `{"name":"conditional","configuration":{"codecs":[` + codecs + `]}}`
}

// narrowRecord is a struct of scalars that have less than eight bits.
func narrowRecord(t testing.TB) dtype.Type {
	half := must.Get(dtype.NewNarrowComplex("float4_e2m1fn"))(t)
	rec := must.Get(dtype.NewStruct([]dtype.Field{{Name: "a", Type: dtype.NewInt(4)}, {Name: "b", Type: dtype.NewBool()}, {Name: "c", Type: half}, {Name: "d", Type: dtype.NewUint(2)}}))(t)
	return rec
}

// record is a struct with scalars of several widths, some of them not aligned.
func record(t testing.TB) dtype.Type {
	text := must.Get(dtype.NewFixedUTF32(2))(t)
	raw := must.Get(dtype.NewRaw(3))(t)
	rec := must.Get(dtype.NewStruct([]dtype.Field{
		{Name: "a", Type: dtype.NewInt(16)}, {Name: "b", Type: raw},
		{Name: "c", Type: dtype.NewComplex(128)}, {Name: "d", Type: text}, {Name: "e", Type: dtype.NewUint(8)},
	}))(t)
	return rec
}

func TestConformance(t *testing.T) {
	i1, i2, f4, f8 := dtype.NewInt(8), dtype.NewInt(16), dtype.NewFloat(32), dtype.NewFloat(64)
	c16 := dtype.NewComplex(128)
	two, four := []byte{7, 0}, []byte{0, 0, 0xc0, 0x7f}
	inner := little + `,` + zstd3
	for name, c := range map[string]Case{
		"bytes":           {V3: `["bytes"]`, Type: i1, Shape: []int{5, 7}},
		"bytes_little":    {V3: `[` + little + `]`, Type: f4, Shape: []int{5, 7}, Fill: four},
		"bytes_big":       {V3: `[` + big + `]`, Type: f8, Shape: []int{3, 4, 5}},
		"bytes_complex":   {V3: `[` + big + `]`, Type: c16, Shape: []int{9}},
		"bytes_record":    {V3: `[` + big + `]`, Type: record(t), Shape: []int{4, 3}},
		"bytes_old_name":  {V3: `[{"name":"endian","configuration":{"endian":"big"}}]`, Type: i2, Shape: []int{4, 3}},
		"scalar":          {V3: `[` + little + `]`, Type: i2, Shape: []int{}},
		"empty":           {V3: `[` + little + `,` + zstd3 + `]`, Type: i2, Shape: []int{0, 3}},
		"wide":            {V3: `[` + big + `]`, Type: i2, Shape: []int{3, 40, 11}},
		"crc32c":          {V3: `[` + little + `,"crc32c"]`, Type: i2, Shape: []int{6, 6}},
		"gzip":            {V3: `[` + little + `,` + gzip5 + `]`, Type: i2, Shape: []int{6, 6}, Fill: two},
		"gzip_big":        {V3: `[` + big + `,` + gzip5 + `,"crc32c"]`, Type: i2, Shape: []int{6, 6}},
		"zlib":            {V3: `[` + little + `,{"name":"numcodecs.zlib","configuration":{"level":9}}]`, Type: i2, Shape: []int{6, 6}},
		"zstd":            {V3: `[` + little + `,` + zstd3 + `]`, Type: f4, Shape: []int{30, 20}},
		"zstd_checksum":   {V3: `[` + big + `,` + zstdSum + `]`, Type: f4, Shape: []int{30, 20}},
		"zstd_negative":   {V3: `[` + little + `,{"name":"numcodecs.zstd","configuration":{"level":-5}}]`, Type: f4, Shape: []int{3, 2}},
		"three":           {V3: `[` + little + `,` + zstd3 + `,"crc32c",` + gzip5 + `]`, Type: f4, Shape: []int{8, 9}},
		"transpose":       {V3: `[` + transpose(`[2,0,1]`) + `,` + little + `]`, Type: i2, Shape: []int{3, 4, 5}},
		"transpose_zstd":  {V3: `[` + transpose(`[1,0]`) + `,` + big + `,` + zstd3 + `]`, Type: f8, Shape: []int{17, 9}},
		"transpose_twice": {V3: `[` + transpose(`[1,2,0]`) + `,` + transpose(`[0,2,1]`) + `,` + little + `,` + gzip5 + `]`, Type: i2, Shape: []int{3, 4, 5}},
		"transpose_back":  {V3: `[` + transpose(`[1,0]`) + `,` + transpose(`[1,0]`) + `,` + little + `]`, Type: i2, Shape: []int{3, 4}},
		"order_F":         {V2: &codecs.V2{Order: "F", Compressor: json.RawMessage(`{"id":"zlib","level":1}`)}, Type: f4.WithOrder(dtype.Big), Shape: []int{3, 4, 5}},
		"v2_filter":       {V2: &codecs.V2{Filters: json.RawMessage(`[{"id":"crc32c","location":"start"}]`)}, Type: f4, Shape: []int{5}},
		"v2_zstd":         {V2: &codecs.V2{Compressor: json.RawMessage(`{"id":"zstd","level":1}`)}, Type: f4.WithOrder(dtype.Little), Shape: []int{5}},
		"vlen":            {V3: `["vlen-utf8"]`, Type: dtype.NewString(), Shape: []int{4, 5}},
		"vlen_zstd":       {V3: `["vlen-utf8",` + zstd3 + `]`, Type: dtype.NewString(), Shape: []int{4, 5}, Fill: []byte("ab")},
		"vlen_bytes":      {V3: `["vlen-bytes",` + gzip5 + `]`, Type: dtype.NewBytes(), Shape: []int{3}},
		"vlen_transpose":  {V3: `[` + transpose(`[1,2,0]`) + `,"vlen-utf8"]`, Type: dtype.NewString(), Shape: []int{2, 3, 4}},
		"vlen_order_F":    {V2: &codecs.V2{Order: "F", Filters: json.RawMessage(`[{"id":"vlen-utf8"}]`)}, Type: dtype.NewString(), Shape: []int{3, 4}},

		"int4":              {V3: `["bytes",` + zstd3 + `]`, Type: dtype.NewInt(4), Shape: []int{7, 9}},
		"uint2_shard":       {V3: `[` + shard(`[2,5]`, `"bytes"`, indexCRC, "end") + `]`, Type: dtype.NewUint(2), Shape: []int{6, 10}},
		"narrow_record":     {V3: `["bytes"]`, Type: narrowRecord(t), Shape: []int{4, 5}},
		"conditional":       {V3: `[` + little + `,` + conditional(`{"name":"numcodecs.shuffle","configuration":{"elementsize":4}},`+zstd3+`,"crc32c"`) + `]`, Type: f4, Shape: []int{30, 20}},
		"conditional_empty": {V3: `[` + little + `,{"name":"conditional","configuration":{"codecs":[],"header_bits":16}},"crc32c"]`, Type: f4, Shape: []int{3, 2}},
		"conditional_inner": {V3: `[` + shard(`[2,2]`, little+`,`+conditional(conditional(gzip5)), indexCRC, "end") + `]`, Type: f4, Shape: []int{4, 6}},
		"conditional_text":  {V3: `["vlen-utf8",` + conditional(gzip5+`,`+zstd3) + `]`, Type: dtype.NewString(), Shape: []int{4, 5}},

		"blosc":           {V3: `[` + little + `,` + blosc("lz4", "shuffle", 4, 0) + `]`, Type: f4, Shape: []int{30, 50}},
		"blosc_blocks":    {V3: `[` + big + `,` + blosc("zstd", "bitshuffle", 2, 512) + `]`, Type: i2, Shape: []int{20, 9, 10}, Fill: two},
		"blosc_transpose": {V3: `[` + transpose(`[1,2,0]`) + `,` + little + `,` + blosc("blosclz", "noshuffle", 8, 1024) + `]`, Type: f8, Shape: []int{5, 9, 10}},
		"blosc_checksum":  {V3: `[` + little + `,` + blosc("zlib", "shuffle", 2, 256) + `,"crc32c"]`, Type: i2, Shape: []int{20, 30}},
		"blosc_v2":        {V2: &codecs.V2{Order: "F", Compressor: json.RawMessage(`{"id":"blosc","cname":"lz4hc","clevel":9,"shuffle":-1}`)}, Type: f4.WithOrder(dtype.Big), Shape: []int{7, 8, 9}},
		"blosc_text":      {V3: `["vlen-utf8",` + blosc("snappy", "shuffle", 1, 0) + `]`, Type: dtype.NewString(), Shape: []int{20}},
		"blosc_in_shard":  {V3: `[` + shard(`[10,10]`, little+`,`+blosc("lz4", "shuffle", 4, 128), indexCRC, "end") + `]`, Type: f4, Shape: []int{20, 30}},

		"shard":              {V3: `[` + shard(`[2,5]`, inner, indexCRC, "end") + `]`, Type: i2, Shape: []int{6, 10}, Fill: two},
		"shard_start":        {V3: `[` + shard(`[3,2]`, inner, indexCRC, "start") + `]`, Type: i2, Shape: []int{6, 10}},
		"shard_raw":          {V3: `[` + shard(`[3,2]`, little, `[`+big+`]`, "end") + `]`, Type: f4, Shape: []int{6, 10}, Fill: four},
		"shard_one":          {V3: `[` + shard(`[6,10]`, inner, indexCRC, "end") + `]`, Type: i2, Shape: []int{6, 10}},
		"shard_single":       {V3: `[` + shard(`[1,1]`, big, indexCRC, "start") + `]`, Type: i2, Shape: []int{4, 3}},
		"shard_scalar":       {V3: `[` + shard(`[]`, inner, indexCRC, "end") + `]`, Type: i2, Shape: []int{}},
		"shard_transposed":   {V3: `[` + transpose(`[1,0]`) + `,` + shard(`[5,2]`, transpose(`[1,0]`)+`,`+inner, indexCRC, "end") + `]`, Type: i2, Shape: []int{6, 10}, Fill: two},
		"shard_in_shard":     {V3: `[` + shard(`[6,4]`, shard(`[2,2]`, transpose(`[1,0]`)+`,`+big, indexCRC, "start"), indexCRC, "end") + `]`, Type: f4, Shape: []int{12, 12}},
		"shard_crc_outside":  {V3: `[` + shard(`[2,2]`, little, indexCRC, "end") + `,"crc32c"]`, Type: f4, Shape: []int{4, 4}},
		"shard_zstd_outside": {V3: `[` + shard(`[2,2]`, little, indexCRC, "start") + `,` + zstd3 + `]`, Type: f4, Shape: []int{4, 4}},
		"shard_index_order":  {V3: `[` + shard(`[2,2]`, little, `[`+transpose(`[2,0,1]`)+`,`+big+`,"crc32c"]`, "end") + `]`, Type: f4, Shape: []int{4, 6}},
		"shard_text":         {V3: `[` + shard(`[2,2]`, `"vlen-utf8",`+zstd3, indexCRC, "end") + `]`, Type: dtype.NewString(), Shape: []int{4, 6}, Fill: []byte("x")},
		"shard_text_deep":    {V3: `[` + shard(`[4,3]`, shard(`[2,3]`, `"vlen-utf8"`, indexCRC, "end"), indexCRC, "start") + `,"crc32c"]`, Type: dtype.NewString(), Shape: []int{4, 6}},
		"shard_record":       {V3: `[` + shard(`[2]`, big, indexCRC, "end") + `]`, Type: record(t), Shape: []int{6}},
	} {
		t.Run(name, func(t *testing.T) { Run(t, c) })
	}
}

// TestConformanceOfFormats runs the suite on codecs that come with a foreign format.
func TestConformanceOfFormats(t *testing.T) {
	registry := builtin.Registry()
	for _, e := range n5format.Format().Codecs {
		registry.Register(e)
	}
	for name, c := range map[string]Case{
		"n5_lz4":    {V3: `["bytes",{"name":"zarrdb.lz4block","configuration":{"block_size":100}}]`, Type: dtype.NewUint(8), Shape: []int{20, 30}},
		"n5_string": {V3: `[{"name":"zarrdb.n5_string","configuration":{"codecs":["bytes",` + gzip5 + `]}}]`, Type: dtype.NewString(), Shape: []int{3, 4, 2}, Fill: []byte{}},
	} {
		c.Registry = registry
		t.Run(name, func(t *testing.T) { Run(t, c) })
	}
}
