package codecs_test

import (
	"compress/gzip"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"hash/crc32"
	"maps"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/codecs/builtin"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/internal/race"
	"github.com/zarrdb/zarrdb/zarr/dtype"
)

// bomb is a codec that is given more than a chunk holds.
type bomb struct {
	// v3 is a list of codecs; or v2 a filter, or a compressor.
	v3, v2 string
	typ    dtype.Type
	// lies are encoded chunks that claim to hold more than they do, or too
	// much in themselves.
	lies [][]byte
}

const (
	// bombElements are in a chunk, and many more in the bomb.
	bombElements = 256
	bombSize     = 16 << 20
	// bombLimit bounds the memory for refusing a bomb: the tables of a decoder, and nothing that
	// grows with the bomb.
	bombLimit = 4 << 20
)

func unhex(s string) []byte {
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		panic(err)
	}
	return b
}

// bombRows has an entry for every registered codec whose encoded form can say
// how much comes out, by the name it has first. The others change arrays of a
// known shape.
func bombRows(t *testing.T) map[string][]bomb {
	u8, i2 := dtype.NewUint(8), dtype.NewInt(16)
	ragged := must.Get(dtype.NewRagged(dtype.NewInt(32)))(t)
	after := func(codec string) string { return `["bytes",` + codec + `]` }
	named := func(name string) []bomb {
		return []bomb{{v3: after(`{"name":"` + name + `","configuration":{}}`), typ: u8}}
	}
	// What items of variable length begin with: their number, and the length of
	// the first.
	items := [][]byte{unhex("00010000 ffffffff"), unhex("ffffffff"), unhex("00010000 ffffff7f 00"), append(unhex("00010000"), make([]byte, 3*bombElements)...)}
	deepJSON := [][]byte{[]byte(strings.Repeat("[", 1<<16)), []byte(strings.Repeat(`{"a":`, 1<<16))}
	deepPack := [][]byte{unhex("dd ffffffff"), unhex("df ffffffff"), unhex("c6 ffffffff"), []byte(strings.Repeat("\x91", 1<<16)), []byte(strings.Repeat("\x81\xa0", 1<<16))}
	inner := stdGzip(t, make([]byte, bombSize), gzip.Header{})
	return map[string][]bomb{
		"bytes":            {{v3: `["bytes"]`, typ: u8}},
		"packbits":         {{v3: `["packbits"]`, typ: u8}},
		"vlen-utf8":        {{v3: `["vlen-utf8"]`, typ: dtype.NewString(), lies: items}},
		"vlen-bytes":       {{v3: `["vlen-bytes"]`, typ: dtype.NewBytes(), lies: items}},
		"vlen-array":       {{v2: `{"id":"vlen-array","dtype":"<i4"}`, typ: ragged, lies: items}},
		"fill_hdf_strings": {{v2: `{"id":"fill_hdf_strings","dtype":"S1","id_map":{"":"","a":"b"}}`, typ: dtype.NewString(), lies: [][]byte{[]byte(strings.Repeat("b", bombElements))}}},
		"json":             {{v2: `{"id":"json"}`, typ: dtype.NewJSON(), lies: deepJSON}},
		"json2":            {{v2: `{"id":"json2"}`, typ: dtype.NewJSON(), lies: deepJSON}},
		"msgpack":          {{v2: `{"id":"msgpack"}`, typ: dtype.NewJSON(), lies: deepPack}},
		"msgpack2":         {{v2: `{"id":"msgpack2"}`, typ: dtype.NewJSON(), lies: deepPack}},
		"n5_default":       {{v3: `[{"name":"n5_default","configuration":{"codecs":[{"name":"transpose","configuration":{"order":[0]}},{"name":"bytes","configuration":{"endian":"big"}},` + gzip5 + `]}}]`, typ: i2, lies: [][]byte{unhex("0000 0001 7fffffff"), append(unhex("0000 0001 00000100"), inner...), unhex("0000 ffff")}}},
		"conditional":      {{v3: after(`{"name":"conditional","configuration":{"codecs":[` + gzip5 + `]}}`), typ: u8, lies: [][]byte{append([]byte{1}, inner...)}}},
		"sharding_indexed": {{v3: `[` + shard(`[128]`, `"bytes",`+gzip5, indexCRC, "end") + `]`, typ: u8, lies: [][]byte{
			shardOf(inner, 0, uint64(len(inner))), shardOf(nil, 0, 1<<63), shardOf(nil, 1<<63, 1<<62), shardOf(inner, 1<<64-16, 32),
		}}},
		"numcodecs.pcodec": {{v3: `["numcodecs.pcodec"]`, typ: i2}},
		"gzip":             {{v3: after(gzip5), typ: u8, lies: [][]byte{unhex("1f8b0804 00000000 00ff ffff")}}},
		"numcodecs.zlib":   {{v3: after(`{"name":"numcodecs.zlib","configuration":{"level":1}}`), typ: u8, lies: [][]byte{unhex("789c 01ffff0000")}}},
		"zstd": {{v3: after(zstd3), typ: u8, lies: [][]byte{
			unhex("28b52ffd e0 ffffffffffffff7f 030010 00"),                                       // a frame of 2⁶³ bytes
			unhex("28b52ffd 00 ff 030010 00"),                                                     // the widest window
			append(unhex("28b52ffd 00 58"), []byte(strings.Repeat("\x02\x00\x10\x00", 1<<10))...), // a thousand blocks of 128 KiB in a run
		}}},
		"blosc": {{v3: after(blosc("lz4", "shuffle", 1, 0)), typ: u8, lies: [][]byte{
			unhex("02010101 ffffff7f ffffff7f 10000000"), // 2 GiB in one block
			unhex("02010101 ffffff7f 01000000 10000000"), // in 2³¹ blocks
			unhex("02010201 ffffff7f 00010000 10000000"), // stored as it is
		}}},
		"numcodecs.lz4": {{v3: after(`{"name":"numcodecs.lz4","configuration":{}}`), typ: u8, lies: [][]byte{
			unhex("ffffff7f 1f00"), unhex("ffffffff 1f00"), append(unhex("00010000 1f00 0100"), []byte(strings.Repeat("\xff", 1<<14))...),
		}}},
		"numcodecs.bz2": {{v3: after(`{"name":"numcodecs.bz2","configuration":{"level":1}}`), typ: u8}},
		"numcodecs.lzma": {
			{v3: after(`{"name":"numcodecs.lzma","configuration":{"preset":1}}`), typ: u8},
			{v3: after(`{"name":"numcodecs.lzma","configuration":{"format":2,"preset":1}}`), typ: u8, lies: [][]byte{
				unhex("5d ffffffff ffffffffffffff7f 0000000000"), // the largest dictionary
				unhex("5d ffffffff ffffffffffffffff 0000000000"), // of no known size
			}},
		},
		"numcodecs.shuffle":         named("numcodecs.shuffle"),
		"base64":                    {{v2: `{"id":"base64"}`, typ: u8}},
		"numcodecs.adler32":         named("numcodecs.adler32"),
		"numcodecs.crc32":           named("numcodecs.crc32"),
		"numcodecs.fletcher32":      named("numcodecs.fletcher32"),
		"numcodecs.jenkins_lookup3": named("numcodecs.jenkins_lookup3"),
		"crc32c":                    named("crc32c"),
		"imagecodecs_lzw":           {{v2: `{"id":"imagecodecs_lzw"}`, typ: u8, lies: [][]byte{unhex("80 3fff ffff"), unhex("ffff")}}},
		"imagecodecs_floatpred":     {{v3: `["imagecodecs_floatpred"]`, typ: dtype.NewFloat(32)}},
		"imagecodecs_packbits":      {{v2: `{"id":"imagecodecs_packbits"}`, typ: u8, lies: [][]byte{[]byte(strings.Repeat("\x81a", 1<<16))}}},
		"imagecodecs_bitorder":      {{v2: `{"id":"imagecodecs_bitorder"}`, typ: u8}},
		"imagecodecs_deflate":       {{v2: `{"id":"imagecodecs_deflate"}`, typ: u8}, {v2: `{"id":"imagecodecs_deflate","raw":true}`, typ: u8}},
		"imagecodecs_bz2":           {{v2: `{"id":"imagecodecs_bz2"}`, typ: u8}},
		"imagecodecs_lzf": {
			{v2: `{"id":"imagecodecs_lzf"}`, typ: u8, lies: [][]byte{unhex("ffffffff 0061"), unhex("00010000 e0ffff")}},
			{v2: `{"id":"imagecodecs_lzf","header":false}`, typ: u8, lies: [][]byte{append(unhex("0061"), []byte(strings.Repeat("\xe0\xff\x00", 1<<14))...)}},
		},
		"imagecodecs_lz4h5": {{v2: `{"id":"imagecodecs_lz4h5"}`, typ: u8, lies: [][]byte{
			unhex("7fffffffffffffff 40000000 00000004 10616161"), unhex("0000000000000100 40000000 ffffffff"), unhex("0000000000000100 00000000 00000000"),
		}}},
		"imagecodecs_bitshuffle": named("imagecodecs_bitshuffle"),
		"numcodecs.bshuf": {
			{v2: `{"id":"bshuf"}`, typ: u8, lies: [][]byte{
				unhex("7fffffffffffffff 00002000 00000004 10616161"), unhex("0000000000000100 ffffffff ffffffff"), unhex("0000000000000100 00000007 00000000"), unhex("0000000000000100 00000000"),
			}},
			{v2: `{"id":"bshuf","cname":"zstd"}`, typ: u8, lies: [][]byte{append(unhex("0000000000000100 00000100 0000000d"), unhex("28b52ffd e0 ffffffffffffff7f")...)}},
		},
		"imagecodecs_zstd": {{v2: `{"id":"imagecodecs_zstd"}`, typ: u8}},
	}
}

// shardOf is a shard of two inner chunks, whose index ends it and says where
// the first is; the second is missing.
func shardOf(data []byte, off, n uint64) []byte {
	var index []byte
	for _, v := range []uint64{off, n, 1<<64 - 1, 1<<64 - 1} {
		index = binary.LittleEndian.AppendUint64(index, v)
	}
	index = binary.LittleEndian.AppendUint32(index, crc32.Checksum(index, crc32.MakeTable(crc32.Castagnoli)))
	return append(slices.Clone(data), index...)
}

// bind binds the chain for n elements.
func (c bomb) bind(t *testing.T, n int) *codecs.Bound {
	t.Helper()
	if c.v3 != "" {
		return bind(t, c.v3, c.typ, []int{n}, nil)
	}
	chain := must.Get(builtin.Registry().ParseV2(codecs.V2{Type: c.typ, Order: "C", Rank: 1, Filters: json.RawMessage(`[` + c.v2 + `]`)}))(t)
	b := must.Get(chain.Bind(codecs.Rep{Type: c.typ, Shape: []int{n}}))(t)
	return b
}

// elements are n of them, all alike.
func (c bomb) elements(t *testing.T, n int) []byte {
	t.Helper()
	if !c.typ.Variable() {
		return make([]byte, n*c.typ.Size())
	}
	return variable(t, n, c.typ.Zero)
}

// TestEveryBomb: a chunk that holds, or claims to hold, far more than the
// metadata say is refused by every codec, before it takes memory.
func TestEveryBomb(t *testing.T) {
	if testing.Short() || race.Enabled {
		t.Skip("the race detector makes the largest encoders slow, and empties pools")
	}
	reg, rows := builtin.Registry(), bombRows(t)
	names2, names3 := reg.Names()
	for _, name := range append(names2, names3...) {
		for _, v2 := range []bool{false, true} {
			e, ok := reg.Lookup(name, v2)
			if ok && len(e.V3) > 0 {
				name = e.V3[0]
			}
			if ok && e.Kind != codecs.ArrayToArray && rows[name] == nil {
				t.Errorf("no bomb for %q", name)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(rows)) {
		for _, row := range rows[name] {
			t.Run(name, func(t *testing.T) { row.run(t) })
		}
	}
}

func (c bomb) run(t *testing.T) {
	many := bombSize
	if c.typ.Variable() {
		many /= 16 // an offset each, and what stands for nothing
	} else {
		many /= c.typ.Size()
	}
	stored, err := c.bind(t, many).Encode(nil, c.elements(t, many))
	must.Do(t, err)
	b := c.bind(t, bombElements)
	for i, stored := range append([][]byte{stored}, c.lies...) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := b.Decode(nil, stored)
		runtime.ReadMemStats(&after)
		if !errors.Is(err, codecs.ErrCorrupt) {
			t.Errorf("%d: %d bytes: %v", i, len(stored), err)
		}
		if n := after.TotalAlloc - before.TotalAlloc; n > bombLimit {
			t.Errorf("%d: %d bytes: allocated %d for %d elements", i, len(stored), n, bombElements)
		}
	}
}
