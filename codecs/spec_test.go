package codecs_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/codecs/builtin"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/zarr/dtype"
)

// A byteRow is a rule of a codec's specification about stored bytes, with bytes
// that keep or break it. TestConfigV3 and TestFilterConfigs are the rules about
// configurations.
type byteRow struct {
	spec, rule string
	typ        string // a v3 name or object; in v2 a type string, or |O
	shape      []int
	codecs     string // a v3 list; a v2 object of filters and compressor
	elems      string // memory layout in hex; for text and bytes the items, quoted
	stored     string // hex
	how        how
}

type how int

const (
	both    how = iota // elems are stored so, and come back
	reads              // read as elems; other bytes may be written
	corrupt            // refused when reading
	refused            // elems are refused when writing, or the codecs when binding
	lossy              // elems are stored so, and do not come back
)

func cast(config string) string {
	return `[{"name":"cast_value","configuration":{` + config + `}},"bytes"]`
}

func packed(config string) string {
	return `[{"name":"packbits","configuration":{` + config + `}}]`
}

const (
	f64 = `{"name":"cast_value","configuration":{"data_type":"float64"}}`
	// plainIndex is the index of a shard without a checksum.
	plainIndex = `[` + little + `]`
	n5Row      = `[{"name":"n5_default","configuration":{"codecs":[{"name":"transpose","configuration":{"order":[0]}},` + big + `]}}]`
	structXF   = `{"name":"struct","configuration":{"fields":[{"name":"x","data_type":"int16"},{"name":"f","data_type":"uint8"}]}}`
	none       = "ffffffffffffffff ffffffffffffffff" // an inner chunk that is not there
	abcGzip    = "1f8b08000000000000ff 010300fcff616263 c2412435 03000000"
)

var byteRows = []byteRow{
	{"bytes", "bool is 0 or 1", `"bool"`, []int{3}, `["bytes"]`, "01 00 01", "01 00 01", both},
	{"bytes", "single bytes do not depend on endian", `"int8"`, []int{2}, `[` + big + `]`, "01 fe", "01 fe", both},
	{"bytes", "two's complement, little-endian", `"int32"`, []int{1}, `[` + little + `]`, "feffffff", "feffffff", both},
	{"bytes", "two's complement, big-endian", `"int32"`, []int{1}, `[` + big + `]`, "feffffff", "fffffffe", both},
	{"bytes", "uint64, big-endian", `"uint64"`, []int{1}, `[` + big + `]`, "0807060504030201", "0102030405060708", both},
	{"bytes", "float16 is binary16", `"float16"`, []int{1}, `[` + big + `]`, "003c", "3c00", both},
	{"bytes", "float32 keeps the bits of a NaN", `"float32"`, []int{1}, `[` + big + `]`, "0100a07f", "7fa00001", both},
	{"bytes", "complex: the real part first, each part swapped", `"complex64"`, []int{1}, `[` + big + `]`, "0000803f 00000040", "3f800000 40000000", both},
	{"bytes", "raw bits have no byte order", `"r24"`, []int{2}, `[` + big + `]`, "010203 040506", "010203 040506", both},
	{"bytes", "elements in lexicographical order", `"uint8"`, []int{2, 2}, `["bytes"]`, "01 02 03 04", "01020304", both},
	{"bytes", "a chunk has all its bytes", `"int16"`, []int{2}, `[` + little + `]`, "", "010203", corrupt},
	{"bytes", "and no more", `"int16"`, []int{1}, `[` + little + `]`, "", "010203", corrupt},
	{"bytes", "a 0-d chunk has one element", `"int16"`, []int{}, `[` + big + `]`, "0201", "0102", both},

	{"int4", "the upper bits are ignored, the sign is extended", `"int4"`, []int{3}, `["bytes"]`, "07 f8 ff", "f7 08 7f", reads},
	{"uint2", "the upper bits are ignored", `"uint2"`, []int{2}, `["bytes"]`, "03 01", "ff 05", reads},
	{"float6_e3m2fn", "the upper bits are ignored", `"float6_e3m2fn"`, []int{1}, `["bytes"]`, "3f", "ff", reads},
	{"complex_float4_e2m1fn", "two bytes, upper bits ignored", `"complex_float4_e2m1fn"`, []int{1}, `["bytes"]`, "01 0f", "f1 ff", reads},
	{"fixed_length_utf32", "every code unit in the byte order", `{"name":"fixed_length_utf32","configuration":{"length_bytes":12}}`, []int{1}, `[` + big + `]`, "48000000 69000000 00000000", "00000048 00000069 00000000", both},
	{"numpy.datetime64", "as int64", `{"name":"numpy.datetime64","configuration":{"unit":"s","scale_factor":10}}`, []int{1}, `[` + big + `]`, "0200000000000000", "0000000000000002", both},
	{"struct", "fields packed in order, each in the byte order", structXF, []int{2}, `[` + big + `]`, "0201 09 0403 08", "0102 09 0304 08", both},
	{"structured", "without endian it is little-endian", `{"name":"structured","configuration":{"fields":[["x","int16"],["f","uint8"]]}}`, []int{1}, `["bytes"]`, "0201 09", "0201 09", both},

	{"transpose", "B[i, j] = A[j, i]", `"uint8"`, []int{2, 3}, `[` + transpose(`[1,0]`) + `,"bytes"]`, "00 01 02 03 04 05", "00 03 01 04 02 05", both},
	{"transpose", "B_shape[i] = A_shape[order[i]]", `"uint8"`, []int{2, 1, 3}, `[` + transpose(`[2,0,1]`) + `,"bytes"]`, "00 01 02 03 04 05", "00 03 01 04 02 05", both},
	{"transpose", "applied one after the other", `"uint8"`, []int{2, 1, 3}, `[` + transpose(`[1,0,2]`) + `,` + transpose(`[2,1,0]`) + `,"bytes"]`, "00 01 02 03 04 05", "00 03 01 04 02 05", both},

	{"gzip", "RFC 1952", `"uint8"`, []int{3}, `["bytes",{"name":"gzip","configuration":{"level":0}}]`, "616263", abcGzip, reads},
	{"gzip", "members follow each other", `"uint8"`, []int{6}, `["bytes",` + gzip5 + `]`, "616263 616263", abcGzip + abcGzip, reads},
	{"gzip", "the checksum is checked", `"uint8"`, []int{3}, `["bytes",` + gzip5 + `]`, "", strings.Replace(abcGzip, "c2", "c3", 1), corrupt},
	{"gzip", "the length is checked", `"uint8"`, []int{3}, `["bytes",` + gzip5 + `]`, "", strings.Replace(abcGzip, "03000000", "04000000", 1), corrupt},
	{"gzip", "nothing else follows", `"uint8"`, []int{3}, `["bytes",` + gzip5 + `]`, "", abcGzip + "01", corrupt},
	{"gzip", "more than the chunk holds", `"uint8"`, []int{2}, `["bytes",` + gzip5 + `]`, "", abcGzip, corrupt},
	{"zlib", "RFC 1950", `"uint8"`, []int{3}, `["bytes","numcodecs.zlib"]`, "616263", "7801 010300fcff616263 024d0127", reads},
	{"zlib", "the checksum is checked", `"uint8"`, []int{3}, `["bytes","numcodecs.zlib"]`, "", "7801 010300fcff616263 024d0128", corrupt},
	{"zstd", "RFC 8878", `"uint8"`, []int{3}, `["bytes",` + zstd3 + `]`, "616263", "28b52ffd 20 03 190000 616263", reads},
	{"zstd", "a checksum is checked", `"uint8"`, []int{3}, `["bytes",` + zstd3 + `]`, "616263", "28b52ffd 24 03 190000 616263 990977ad", reads},
	{"zstd", "a checksum that is wrong", `"uint8"`, []int{3}, `["bytes",` + zstd3 + `]`, "", "28b52ffd 24 03 190000 616263 990977ae", corrupt},
	{"zstd", "skippable frames are skipped", `"uint8"`, []int{3}, `["bytes",` + zstd3 + `]`, "616263", "502a4d18 02000000 0102 28b52ffd 20 03 190000 616263", reads},
	{"blosc", "a chunk that is copied", `"uint8"`, []int{3}, `["bytes",` + blosc("lz4", "shuffle", 1, 0) + `]`, "616263", "02 01 03 01 03000000 03000000 13000000 616263", reads},
	{"blosc", "its length is that of the chunk", `"uint8"`, []int{4}, `["bytes",` + blosc("lz4", "shuffle", 1, 0) + `]`, "", "02 01 03 01 03000000 03000000 13000000 616263", corrupt},
	{"crc32c", "RFC 3720 B.4: 32 bytes of zeros, little-endian, appended", `"uint8"`, []int{32}, `["bytes","crc32c"]`, strings.Repeat("00", 32), strings.Repeat("00", 32) + "aa36918a", both},
	{"crc32c", "RFC 3720 B.4: 32 bytes of ones", `"uint8"`, []int{32}, `["bytes","crc32c"]`, strings.Repeat("ff", 32), strings.Repeat("ff", 32) + "43aba862", both},
	{"crc32c", "big-endian is wrong", `"uint8"`, []int{32}, `["bytes","crc32c"]`, "", strings.Repeat("00", 32) + "8a9136aa", corrupt},
	{"crc32c", "must be there", `"uint8"`, []int{3}, `["bytes","crc32c"]`, "", "616263", corrupt},

	{"vlen-utf8", "count, then each length and text", `"string"`, []int{3}, `["vlen-utf8"]`, `["a","","é"]`, "03000000 01000000 61 00000000 02000000 c3a9", both},
	{"vlen-utf8", "the count is that of the chunk", `"string"`, []int{2}, `["vlen-utf8"]`, "", "01000000 01000000 61", corrupt},
	{"vlen-utf8", "text is UTF-8", `"string"`, []int{1}, `["vlen-utf8"]`, "", "01000000 01000000 ff", corrupt},
	{"vlen-utf8", "lengths stay inside", `"string"`, []int{1}, `["vlen-utf8"]`, "", "01000000 02000000 61", corrupt},
	{"vlen-utf8", "nothing else follows", `"string"`, []int{1}, `["vlen-utf8"]`, "", "01000000 01000000 61 62", corrupt},
	{"vlen-bytes", "count, then each length and bytes", `"bytes"`, []int{2}, `["vlen-bytes"]`, `["\u0001","xy"]`, "02000000 01000000 01 02000000 7879", both},

	{"packbits", "element i is bit i, from the lowest", `"bool"`, []int{9}, packed(``), "01 00 01 01 00 00 00 00 01", "0d 01", both},
	{"packbits", "the padding in a byte before", `"bool"`, []int{9}, packed(`"padding_encoding":"first_byte"`), "01 00 01 01 00 00 00 00 01", "07 0d 01", both},
	{"packbits", "the padding in a byte after", `"bool"`, []int{9}, packed(`"padding_encoding":"last_byte"`), "01 00 01 01 00 00 00 00 01", "0d 01 07", both},
	{"packbits", "the padding must be right", `"bool"`, []int{9}, packed(`"padding_encoding":"last_byte"`), "", "0d 01 06", corrupt},
	{"packbits", "signed integers are sign-extended", `"int4"`, []int{3}, packed(``), "01 ff 02", "f1 02", both},
	{"packbits", "others are zero-extended", `"uint2"`, []int{4}, packed(``), "03 00 01 02", "93", both},
	{"packbits", "complex: two components", `"complex_float4_e2m1fn"`, []int{1}, packed(``), "01 0f", "f1", both},
	{"packbits", "bits from first_bit to last_bit", `"uint8"`, []int{4}, packed(`"first_bit":2,"last_bit":3`), "0c 00 04 08", "93", both},
	{"packbits", "a sign at last_bit is extended", `"int16"`, []int{2}, packed(`"last_bit":3`), "ffff 0100", "1f", both},
	{"packbits", "null is the default", `"uint8"`, []int{1}, packed(`"first_bit":null,"last_bit":null`), "a5", "a5", both},

	{"cast_value", "exactly representable", `"float64"`, []int{1}, cast(`"data_type":"uint8"`), "000000000000f03f", "01", both},
	{"cast_value", "out of range fails", `"float64"`, []int{1}, cast(`"data_type":"int8"`), "0000000000006040", "", refused},
	{"cast_value", "clamp", `"float64"`, []int{1}, cast(`"data_type":"int8","out_of_range":"clamp"`), "0000000000006040", "7f", lossy},
	{"cast_value", "wrap", `"float64"`, []int{1}, cast(`"data_type":"int8","out_of_range":"wrap"`), "0000000000006040", "80", lossy},
	{"cast_value", "NaN fails in a type without it", `"float64"`, []int{1}, cast(`"data_type":"int8","out_of_range":"clamp"`), "000000000000f87f", "", refused},
	{"cast_value", "unless it is mapped, and back", `"float64"`, []int{1}, cast(`"data_type":"uint8","scalar_map":{"encode":[["NaN",9],["NaN",8]],"decode":[[9,"NaN"]]}`), "000000000000f87f", "09", both},
	{"cast_value", "the decoding direction fails too", `"uint8"`, []int{1}, `[` + f64 + `,` + little + `]`, "", "0000000000007040", corrupt},
	{"cast_value", "signed zero stays", `"float64"`, []int{1}, `[{"name":"cast_value","configuration":{"data_type":"float16"}},` + little + `]`, "0000000000000080", "0080", both},
	{"scale_offset", "(x - offset) · scale", `"int16"`, []int{2}, `[{"name":"scale_offset","configuration":{"offset":1000,"scale":2}},` + little + `]`, "e903 e803", "0200 0000", both},
	{"scale_offset", "a result that the type cannot represent is an error", `"uint8"`, []int{1}, `[{"name":"scale_offset","configuration":{"offset":0,"scale":2}},"bytes"]`, "80", "", refused},
	{"scale_offset", "a rest is an error", `"uint8"`, []int{1}, `[{"name":"scale_offset","configuration":{"offset":0,"scale":2}},"bytes"]`, "", "03", corrupt},
	{"bitround", "the mantissa to nearest", `"float32"`, []int{1}, `[{"name":"bitround","configuration":{"keepbits":3}},` + little + `]`, "cdcc8c3f", "0000903f", lossy},
	{"bitround", "integers from the highest bit", `"uint8"`, []int{1}, `[{"name":"bitround","configuration":{"keepbits":3}},"bytes"]`, "b7", "c0", lossy},
	{"reshape", "keeps the order", `"uint8"`, []int{2, 3}, `[{"name":"reshape","configuration":{"shape":[[0,1]]}},"bytes"]`, "00 01 02 03 04 05", "00 01 02 03 04 05", both},
	{"reshape", "the size is that of the chunk", `"uint8"`, []int{2, 3}, `[{"name":"reshape","configuration":{"shape":[4]}},"bytes"]`, "", "", refused},

	{"sharding_indexed", "the index is at the end by default", `"uint8"`, []int{2}, `[{"name":"sharding_indexed","configuration":{"chunk_shape":[1],"codecs":["bytes"],"index_codecs":` + plainIndex + `}}]`, "00 07", "07" + none + "0000000000000000 0100000000000000", reads},
	{"sharding_indexed", "empty inner chunks have 2^64-1 twice", `"uint8"`, []int{2}, `[` + shard(`[1]`, `"bytes"`, plainIndex, "end") + `]`, "00 07", "07" + none + "0000000000000000 0100000000000000", both},
	{"sharding_indexed", "one of the two alone is wrong", `"uint8"`, []int{1}, `[` + shard(`[1]`, `"bytes"`, plainIndex, "end") + `]`, "", "07 0000000000000000 ffffffffffffffff", corrupt},
	{"sharding_indexed", "index first; offsets count from the start of the shard", `"uint8"`, []int{2}, `[` + shard(`[1]`, `"bytes"`, plainIndex, "start") + `]`, "08 07", "2000000000000000 0100000000000000 2100000000000000 0100000000000000 08 07", both},
	{"sharding_indexed", "any order, unused space between", `"uint8"`, []int{2}, `[` + shard(`[1]`, `"bytes"`, plainIndex, "end") + `]`, "08 07", "07 ee ee 08 0300000000000000 0100000000000000 0000000000000000 0100000000000000", reads},
	{"sharding_indexed", "the index has codecs of its own", `"uint8"`, []int{1}, `[` + shard(`[1]`, `"bytes"`, `[`+big+`]`, "end") + `]`, "07", "07 0000000000000000 0000000000000001", both},
	{"sharding_indexed", "inner chunks lie inside the shard", `"uint8"`, []int{1}, `[` + shard(`[1]`, `"bytes"`, plainIndex, "end") + `]`, "", "07 0100000000000000 0100000000000100", corrupt},
	{"sharding_indexed", "offset and length do not overflow", `"uint8"`, []int{1}, `[` + shard(`[1]`, `"bytes"`, plainIndex, "end") + `]`, "", "07 feffffffffffffff 0300000000000000", corrupt},
	{"sharding_indexed", "a checksum of the index is checked", `"uint8"`, []int{1}, `[` + shard(`[1]`, `"bytes"`, indexCRC, "end") + `]`, "", "07 0000000000000000 0100000000000000 00000000", corrupt},
	{"sharding_indexed", "the index has all inner chunks of the grid", `"uint8"`, []int{2, 2}, `[` + shard(`[2,1]`, `"bytes"`, plainIndex, "end") + `]`, "01 00 02 00", "01 02 0000000000000000 0200000000000000" + none, both},

	{"n5_default", "header, then big-endian elements", `"int16"`, []int{2}, n5Row, "0201 0403", "0000 0001 00000002 0102 0304", both},
	{"n5_default", "smaller blocks are filled up", `"int16"`, []int{2}, n5Row, "0201 0000", "0000 0001 00000001 0102", reads},
	{"n5_default", "larger ones are cut", `"int16"`, []int{1}, n5Row, "0201", "0000 0001 00000002 0102 0304", reads},
	{"n5_default", "mode 0", `"int16"`, []int{1}, n5Row, "", "0001 0001 00000001 0102", corrupt},
	{"n5_default", "as many dimensions as the array", `"int16"`, []int{1}, n5Row, "", "0000 0002 00000001 00000001 0102", corrupt},
	{"conditional", "bit 0 is the first codec", `"uint8"`, []int{32}, `["bytes",` + conditional(`"crc32c",`+gzip5) + `]`, strings.Repeat("00", 32), "01" + strings.Repeat("00", 32) + "aa36918a", reads},
	{"conditional", "reserved bits are 0", `"uint8"`, []int{1}, `["bytes",` + conditional(`"crc32c"`) + `]`, "", "02 01", corrupt},

	{"v2 dtype", "the byte order is that of the type", ">i2", []int{1}, `{}`, "0201", "0102", both},
	{"v2 order", "F: the first axis runs fastest", "|u1", []int{2, 3}, `{"order":"F"}`, "00 01 02 03 04 05", "00 03 01 04 02 05", both},
	{"v2 lz4", "size as uint32, then a block", "|u1", []int{3}, `{"compressor":{"id":"lz4"}}`, "616263", "03000000 30616263", both},
	{"v2 lz4", "the size is that of the chunk", "|u1", []int{4}, `{"compressor":{"id":"lz4"}}`, "", "03000000 30616263", corrupt},
	{"v2 delta", "the first, then differences", "<i2", []int{3}, `{"filters":[{"id":"delta","dtype":"<i2"}]}`, "0100 0300 0600", "0100 0200 0300", both},
	{"v2 packbits", "padding, then bits from the highest", "|b1", []int{3}, `{"filters":[{"id":"packbits"}]}`, "01 00 01", "05 a0", both},
	{"v2 shuffle", "first bytes first", "<u2", []int{2}, `{"filters":[{"id":"shuffle","elementsize":2}]}`, "0102 0304", "01 03 02 04", both},
	{"v2 base64", "text", "|u1", []int{3}, `{"filters":[{"id":"base64"}]}`, "616263", hex.EncodeToString([]byte("YWJj")), both},
	{"v2 crc32", "in front, little-endian", "|u1", []int{3}, `{"filters":[{"id":"crc32"}]}`, "616263", "c2412435 616263", both},
	{"v2 crc32", "location end", "|u1", []int{3}, `{"filters":[{"id":"crc32","location":"end"}]}`, "616263", "616263 c2412435", both},
	{"v2 adler32", "in front, little-endian", "|u1", []int{3}, `{"filters":[{"id":"adler32"}]}`, "616263", "27014d02 616263", both},
	{"v2 astype", "stored as encode_dtype", "<f8", []int{1}, `{"filters":[{"id":"astype","encode_dtype":"|u1","decode_dtype":"<f8"}]}`, "0000000000000840", "03", both},
	{"v2 fixedscaleoffset", "round((x - offset) · scale)", "<f8", []int{1}, `{"filters":[{"id":"fixedscaleoffset","offset":1,"scale":2,"dtype":"<f8","astype":"|u1"}]}`, "0000000000000440", "03", both},
	{"v2 categorize", "labels count from 1, others are 0", "|O", []int{3}, `{"filters":[{"id":"categorize","labels":["a","b"],"dtype":"|O","astype":"|u1"}]}`, `["b","a",""]`, "02 01 00", both},
	{"v2 fill_hdf_strings", "identifiers of texts, padded with zeros", "|O", []int{3}, `{"filters":[{"id":"fill_hdf_strings","dtype":"S2","id_map":{"b":"x","a\u0000c":"y","ac":"z"}}]}`, `["z","x","z"]`, "6163 6200 6163", both},
	{"v2 fill_hdf_strings", "one text for all", "|O", []int{2}, `{"filters":[{"id":"fill_hdf_strings","dtype":"S2","id_map":"all"}]}`, `["all","all"]`, "6163 6200", reads},
	{"v2 fill_hdf_strings", "no text", "|O", []int{2}, `{"filters":[{"id":"fill_hdf_strings","dtype":"|S2"}]}`, `["",""]`, "6163 6200", reads},
	{"v2 json2", "a list: the items, dtype and shape", "|O", []int{2}, `{"filters":[{"id":"json2"}]}`, `["1","null"]`, hex.EncodeToString([]byte(`[1,null,"|O",[2]]`)), reads},
	{"v2 vlen-array", "count, then each length in bytes and elements", "|O", []int{2}, `{"filters":[{"id":"vlen-array","dtype":"|u1"}]}`, `["","\u0001\u0002"]`, "02000000 00000000 02000000 0102", both},
}

func TestSpecBytes(t *testing.T) {
	for _, r := range byteRows {
		t.Run(r.spec+"/"+r.rule, func(t *testing.T) {
			b, err := r.bind(t)
			if err != nil {
				if r.how != refused || r.elems != "" {
					t.Fatal(err)
				}
				return
			}
			elems, stored := r.memory(t), unhexed(t, r.stored)
			if r.how == both || r.how == refused || r.how == lossy {
				got, err := b.Encode(nil, elems)
				if (err != nil) != (r.how == refused) || err == nil && !bytes.Equal(got, stored) {
					t.Errorf("stored as % x (%v), want % x", got, err, stored)
				}
			}
			switch r.how {
			case both, reads:
				got, err := b.Decode(nil, stored)
				if err != nil || !bytes.Equal(got, elems) {
					t.Errorf("read as % x (%v), want % x", got, err, elems)
				}
			case corrupt:
				if got, err := b.Decode(nil, stored); !errors.Is(err, codecs.ErrCorrupt) {
					t.Errorf("read as % x (%v)", got, err)
				}
			}
		})
	}
}

func unhexed(t *testing.T, s string) []byte {
	t.Helper()
	b := must.Get(hex.DecodeString(strings.ReplaceAll(s, " ", "")))(t)
	return b
}

func (r *byteRow) bind(t *testing.T) (*codecs.Bound, error) {
	t.Helper()
	reg := builtin.Registry()
	if r.codecs[0] == '[' {
		typ := must.Get(dtype.ParseV3(json.RawMessage(r.typ)))(t)
		c, err := reg.ParseV3(json.RawMessage(r.codecs))
		if err != nil {
			return nil, err
		}
		return c.Bind(codecs.Rep{Type: typ, Shape: r.shape})
	}
	v := codecs.V2{Order: "C", Rank: len(r.shape)}
	var said struct {
		Order               string
		Filters, Compressor json.RawMessage
	}
	must.Do(t, json.Unmarshal([]byte(r.codecs), &said))
	if v.Filters, v.Compressor = said.Filters, said.Compressor; said.Order != "" {
		v.Order = said.Order
	}
	object := dtype.Type{}
	if r.typ == "|O" {
		var filters []json.RawMessage
		must.Do(t, json.Unmarshal(v.Filters, &filters))
		object, _ = dtype.ObjectV2(filters[0])
	}
	name, err := json.Marshal(r.typ)
	if err == nil {
		v.Type, err = dtype.ParseV2(name, object)
	}
	must.Do(t, err)
	c, err := reg.ParseV2(v)
	if err != nil {
		return nil, err
	}
	return c.Bind(codecs.Rep{Type: v.Type, Shape: r.shape})
}

// memory returns the elements of a row.
func (r *byteRow) memory(t *testing.T) []byte {
	t.Helper()
	if !strings.HasPrefix(r.elems, "[") {
		return unhexed(t, r.elems)
	}
	var items []string
	must.Do(t, json.Unmarshal([]byte(r.elems), &items))
	return variable(t, len(items), func() []byte {
		next := []byte(items[0])
		items = items[1:]
		return next
	})
}
