package codecs_test

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/zarr/dtype"
)

// numcodec returns a codec of numcodecs in v3.
func numcodec(name, config string) string {
	return `{"name":"numcodecs.` + name + `","configuration":{` + config + `}}`
}

func filters(list string) *codecs.V2 { return &codecs.V2{Filters: json.RawMessage(list)} }

func compressor(item string) *codecs.V2 { return &codecs.V2{Compressor: json.RawMessage(item)} }

// TestByteFilters runs the suite on what turns bytes into bytes.
func TestByteFilters(t *testing.T) {
	if testing.Short() {
		t.Skip("the work of one goroutine, many times")
	}
	i2, f4 := dtype.NewInt(16), dtype.NewFloat(32)
	v3 := func(codec string) string { return `[` + little + `,` + codec + `]` }
	for name, c := range map[string]Case{
		"lz4":               {V3: v3(numcodec("lz4", `"acceleration":3`)), Type: f4, Shape: []int{9, 40}},
		"lz4_empty":         {V2: compressor(`{"id":"lz4"}`), Type: i2, Shape: []int{0}},
		"lz4_text":          {V3: `["vlen-utf8",` + numcodec("lz4", `"acceleration":0`) + `]`, Type: dtype.NewString(), Shape: []int{30}},
		"bz2":               {V3: v3(numcodec("bz2", `"level":1`)), Type: i2, Shape: []int{40, 9}},
		"bz2_text":          {V3: `["vlen-bytes",` + numcodec("bz2", `"level":9`) + `]`, Type: dtype.NewBytes(), Shape: []int{30}},
		"lzma":              {V3: v3(numcodec("lzma", `"preset":1`)), Type: i2, Shape: []int{40, 9}},
		"lzma_text":         {V3: `["vlen-utf8",` + numcodec("lzma", ``) + `]`, Type: dtype.NewString(), Shape: []int{30}},
		"lzma_alone":        {V2: compressor(`{"id":"lzma","format":2,"preset":0}`), Type: i2, Shape: []int{20}},
		"lzma_raw":          {V2: compressor(`{"id":"lzma","format":3,"filters":[{"id":3,"dist":2},{"id":33,"preset":0}]}`), Type: i2, Shape: []int{20}},
		"lzma_raw1":         {V2: compressor(`{"id":"lzma","format":3,"filters":[{"id":3},{"id":4611686018427387905,"dict_size":4096,"lc":0,"lp":1,"pb":0}]}`), Type: i2, Shape: []int{20}},
		"lzma_xz_delta":     {V2: compressor(`{"id":"lzma","format":1,"check":10,"filters":[{"id":3,"dist":4},{"id":33}]}`), Type: f4, Shape: []int{20}},
		"shuffle":           {V3: v3(numcodec("shuffle", `"elementsize":2`)), Type: i2, Shape: []int{6, 7}},
		"shuffle_wide":      {V3: v3(numcodec("shuffle", `"elementsize":12`) + `,` + zstd3), Type: f4, Shape: []int{6, 7}},
		"shuffle_none":      {V2: filters(`[{"id":"shuffle","elementsize":0}]`), Type: i2, Shape: []int{6, 7}},
		"shuffle_rest":      {V3: v3(numcodec("fletcher32", ``) + `,` + numcodec("shuffle", `"elementsize":8`)), Type: i2, Shape: []int{6, 7}},
		"lzf":               {V3: v3(`{"name":"imagecodecs_lzf","configuration":{"header":false}}`), Type: i2, Shape: []int{60, 70}},
		"lzf_text":          {V3: `["vlen-utf8","imagecodecs_lzf"]`, Type: dtype.NewString(), Shape: []int{30}},
		"lz4h5":             {V3: v3(`{"name":"imagecodecs_lz4h5","configuration":{"blocksize":100}}`), Type: i2, Shape: []int{60, 70}},
		"lz4h5_text":        {V3: `["vlen-utf8",{"name":"imagecodecs_lz4h5","configuration":{"level":null,"blocksize":null}}]`, Type: dtype.NewString(), Shape: []int{30}},
		"bitshuffle":        {V3: v3(`{"name":"imagecodecs_bitshuffle","configuration":{"itemsize":4,"blocksize":16}}`), Type: f4, Shape: []int{9, 41}},
		"bshuf":             {V3: v3(numcodec("bshuf", `"itemsize":4`)), Type: f4, Shape: []int{90, 41}},
		"bshuf_zstd":        {V3: v3(numcodec("bshuf", `"itemsize":2,"blocksize":64,"cname":"zstd"`)), Type: i2, Shape: []int{9, 41}},
		"bshuf_empty":       {V2: compressor(`{"id":"bshuf"}`), Type: i2, Shape: []int{0}},
		"imagecodecs_bz2":   {V2: compressor(`{"id":"imagecodecs_bz2","level":null}`), Type: i2, Shape: []int{40, 9}},
		"base64":            {V2: filters(`[{"id":"base64"}]`), Type: i2, Shape: []int{6, 7}},
		"base64_text":       {V2: filters(`[{"id":"vlen-utf8"},{"id":"base64"}]`), Type: dtype.NewString(), Shape: []int{6, 7}},
		"adler32":           {V3: v3(numcodec("adler32", ``)), Type: i2, Shape: []int{6, 7}},
		"adler32_end":       {V2: filters(`[{"id":"adler32","location":"end"}]`), Type: i2, Shape: []int{6, 7}},
		"crc32":             {V3: v3(numcodec("crc32", `"location":"start"`)), Type: i2, Shape: []int{6, 7}},
		"fletcher32":        {V3: v3(numcodec("fletcher32", ``)), Type: dtype.NewInt(8), Shape: []int{31, 47}},
		"jenkins":           {V3: v3(numcodec("jenkins_lookup3", `"initval":7`)), Type: i2, Shape: []int{6, 7}},
		"jenkins_prefix":    {V2: filters(`[{"id":"jenkins_lookup3","initval":4294967295,"prefix":[1,2,255]}]`), Type: i2, Shape: []int{6, 7}},
		"jenkins_no_prefix": {V2: filters(`[{"id":"jenkins_lookup3","initval":0,"prefix":null}]`), Type: dtype.NewInt(8), Shape: []int{13}},
		"checksums":         {V2: filters(`[{"id":"crc32"},{"id":"adler32"},{"id":"fletcher32"},{"id":"jenkins_lookup3"},{"id":"crc32c"}]`), Type: i2, Shape: []int{6, 7}},
	} {
		t.Run(name, func(t *testing.T) { Run(t, c) })
	}
}

// n5 returns the codec of N5 blocks.
func n5(order, more string) string {
	return `{"name":"n5_default","configuration":{"codecs":[` + transpose(order) + `,` + big + more + `]}}`
}

// small appends whole numbers from 0 to 99 of a type of size bytes.
func small(size int) func(*rand.Rand, []byte, int) []byte {
	return func(r *rand.Rand, dst []byte, n int) []byte {
		for range n {
			dst = append(append(dst, byte(r.IntN(100))), make([]byte, size-1)...)
		}
		return dst
	}
}

// TestArrayFilters runs the suite on what turns arrays into arrays.
func TestArrayFilters(t *testing.T) {
	i1, i2, i4, u1, f4, f8 := dtype.NewInt(8), dtype.NewInt(16), dtype.NewInt(32), dtype.NewUint(8), dtype.NewFloat(32), dtype.NewFloat(64)
	text := must.Get(dtype.NewFixedUTF32(2))(t)
	bools := func(r *rand.Rand, dst []byte, n int) []byte {
		for range n {
			dst = append(dst, byte(r.IntN(2)))
		}
		return dst
	}
	labels := func(r *rand.Rand, dst []byte, n int) []byte {
		for range n {
			dst = append(dst, "a\x00\x00\x00\x00\x00\x00\x00"...)
			dst[len(dst)-8] += byte(r.IntN(3))
		}
		return dst
	}
	words := func(r *rand.Rand, dst []byte, n int) []byte {
		w, err := dtype.NewBuilder(dst, n)
		for range n {
			if err == nil {
				err = w.AppendString([]string{"", "yes", "no", "über"}[r.IntN(4)])
			}
		}
		if err != nil {
			panic(err)
		}
		dst, err = w.Finish()
		if err != nil {
			panic(err)
		}
		return dst
	}
	before := func(codec string) string { return `[` + codec + `,` + little + `]` }
	for name, c := range map[string]Case{
		"delta":            {V3: before(numcodec("delta", `"dtype":"<i2"`)), Type: i2, Shape: []int{7, 9}, Fill: []byte{7, 0}},
		"delta_wide":       {V3: before(numcodec("delta", `"dtype":"<i2","astype":"<i8"`)), Type: i2, Shape: []int{7, 90}},
		"delta_big":        {V2: filters(`[{"id":"delta","dtype":">i4"}]`), Type: i4.WithOrder(dtype.Big), Shape: []int{7, 9}},
		"delta_other":      {V2: filters(`[{"id":"delta","dtype":">i2","astype":"<i4"}]`), Type: f8.WithOrder(dtype.Big), Shape: []int{7, 9}},
		"delta_behind":     {V2: filters(`[{"id":"shuffle","elementsize":2},{"id":"delta","dtype":">i2","astype":">i4"},{"id":"crc32"}]`), Type: i2, Shape: []int{7, 10}},
		"delta_order_F":    {V2: &codecs.V2{Order: "F", Filters: json.RawMessage(`[{"id":"delta","dtype":"|i1"}]`)}, Type: i1, Shape: []int{7, 9}},
		"delta_shard":      {V3: `[` + numcodec("delta", `"dtype":"<i2"`) + `,` + shard(`[2,3]`, little, indexCRC, "end") + `]`, Type: i2, Shape: []int{4, 6}, Fill: []byte{3, 0}},
		"astype":           {V3: before(numcodec("astype", `"encode_dtype":"<f8","decode_dtype":"<i4"`)), Type: i4, Shape: []int{20, 30}},
		"astype_narrow":    {V3: before(numcodec("astype", `"encode_dtype":"|u1","decode_dtype":"<i4"`)), Type: i4, Shape: []int{9}, Elems: small(4)},
		"fixedscaleoffset": {V3: before(numcodec("fixedscaleoffset", `"offset":3,"scale":2,"dtype":"<i4","astype":"<i8"`)), Type: i4, Shape: []int{9, 40}, Elems: small(4)},
		"bitround":         {V3: before(`{"name":"bitround","configuration":{"keepbits":9}}`), Type: f4, Shape: []int{9, 40}, Lossy: true},
		"bitround_all":     {V3: before(numcodec("bitround", `"keepbits":23`)), Type: f4, Shape: []int{9, 4}},
		"bitround_many":    {V3: before(`{"name":"bitround","configuration":{"keepbits":99}}`), Type: f8, Shape: []int{9, 4}},
		"bitround_int":     {V3: before(`{"name":"bitround","configuration":{"keepbits":3}}`), Type: i2, Shape: []int{9, 40}, Lossy: true},
		"bitround_uint":    {V3: before(`{"name":"bitround","configuration":{"keepbits":1}}`), Type: dtype.NewUint(64), Shape: []int{9, 40}, Lossy: true},
		"bitround_complex": {V3: `[` + `{"name":"bitround","configuration":{"keepbits":5}},` + big + `,` + zstd3 + `]`, Type: dtype.NewComplex(64), Shape: []int{9, 4}, Lossy: true},
		"packbits_old":     {V3: `[` + numcodec("packbits", ``) + `,"bytes"]`, Type: dtype.NewBool(), Shape: []int{5, 7}, Elems: bools},
		"packbits_v2":      {V2: filters(`[{"id":"packbits"}]`), Type: dtype.NewBool(), Shape: []int{16}, Elems: bools},
		"packbits_bool":    {V3: `["packbits"]`, Type: dtype.NewBool(), Shape: []int{5, 7}, Elems: bools},
		"packbits_first":   {V3: `[{"name":"packbits","configuration":{"padding_encoding":"first_byte","last_bit":6}}]`, Type: u1, Shape: []int{5, 7}, Elems: small(1)},
		"packbits_last":    {V3: `[{"name":"packbits","configuration":{"padding_encoding":"last_byte","first_bit":null,"last_bit":8}}]`, Type: i2, Shape: []int{5, 7}, Elems: small(2)},
		"packbits_whole":   {V3: `[{"name":"packbits","configuration":{}}]`, Type: f8, Shape: []int{5, 7}},
		"packbits_low":     {V3: `[{"name":"packbits","configuration":{"first_bit":3,"last_bit":62}}]`, Type: dtype.NewInt(64), Shape: []int{5, 7}, Lossy: true},
		"pcodec":           {V3: `[` + numcodec("pcodec", `"level":8,"delta_encoding_order":null`) + `]`, Type: i4, Shape: []int{20, 30}},
		"pcodec_pages":     {V3: `[` + numcodec("pcodec", `"mode_spec":"classic","delta_spec":"try_consecutive","delta_encoding_order":3,"equal_pages_up_to":100`) + `,"crc32c"]`, Type: f8, Shape: []int{20, 31}},
		"pcodec_v2":        {V2: &codecs.V2{Order: "F", Compressor: json.RawMessage(`{"id":"pcodec","level":1,"delta_spec":"none"}`)}, Type: i2, Shape: []int{20, 30}},
		"pcodec_byte":      {V3: `[` + numcodec("pcodec", `"delta_spec":"try_lookback"`) + `]`, Type: u1, Shape: []int{20, 30}},
		"packbits_complex": {V3: `[{"name":"packbits","configuration":{"last_bit":20}},` + zstd3 + `]`, Type: dtype.NewComplex(64), Shape: []int{5, 7}, Lossy: true},
		"cast_exact":       {V3: before(`{"name":"cast_value","configuration":{"data_type":"float64"}}`), Type: i4, Shape: []int{5, 90}},
		"cast_whole":       {V3: before(`{"name":"cast_value","configuration":{"data_type":"uint8"}}`), Type: i4, Shape: []int{5, 9}, Elems: small(4)},
		"cast_lossy":       {V3: before(`{"name":"cast_value","configuration":{"data_type":"float16","rounding":"towards-zero","out_of_range":"clamp"}}`), Type: f8, Shape: []int{5, 9}, Lossy: true},
		"cast_map":         {V3: before(`{"name":"cast_value","configuration":{"data_type":"int16","out_of_range":"clamp","scalar_map":{"encode":[["NaN",-1],["+Infinity",-2],["-Infinity",-3]],"decode":[[-1,"NaN"],[-2,"Infinity"],[-3,"-Infinity"]]}}}`), Type: f4, Shape: []int{5, 9}, Lossy: true},
		"cast_shard":       {V3: `[{"name":"cast_value","configuration":{"data_type":"int64"}},` + shard(`[2,3]`, little, indexCRC, "end") + `]`, Type: i2, Shape: []int{4, 6}, Fill: []byte{3, 0}},
		"scale_offset":     {V3: before(`{"name":"scale_offset","configuration":{"offset":-3,"scale":2}}`), Type: i4, Shape: []int{5, 9}, Elems: small(4)},
		"scale_none":       {V3: before(`"scale_offset"`), Type: i4, Shape: []int{5, 9}},
		"reshape":          {V3: before(`{"name":"reshape","configuration":{"shape":[[0,1],3,-1]}}`), Type: i2, Shape: []int{2, 3, 6}},
		"reshape_moved":    {V3: `[` + transpose(`[1,0]`) + `,{"name":"reshape","configuration":{"shape":[-1]}},` + little + `,` + zstd3 + `]`, Type: i2, Shape: []int{6, 4}},
		"reshape_shard":    {V3: `[{"name":"reshape","configuration":{"shape":[[0],[1,2]]}},` + shard(`[1,6]`, little, indexCRC, "end") + `]`, Type: i2, Shape: []int{2, 3, 4}},
		"reshape_text":     {V3: `[{"name":"reshape","configuration":{"shape":[6]}},"vlen-utf8"]`, Type: dtype.NewString(), Shape: []int{2, 3}, Elems: words},
		"n5":               {V3: `[` + n5(`[1,0]`, ``) + `]`, Type: i2, Shape: []int{5, 7}, Fill: []byte{1, 0}},
		"n5_zstd":          {V3: `[` + n5(`[2,1,0]`, `,`+zstd3) + `,"crc32c"]`, Type: f4, Shape: []int{5, 7, 2}},
		"categorize":       {V2: filters(`[{"id":"categorize","labels":["a","b","c"],"dtype":"<U2","astype":">u2"}]`), Type: text, Shape: []int{5, 7}, Elems: labels},
		"categorize_text":  {V2: filters(`[{"id":"categorize","labels":["yes","no","über"],"dtype":"|O"}]`), Type: dtype.NewString(), Shape: []int{5, 7}, Elems: words},
	} {
		t.Run(name, func(t *testing.T) { Run(t, c) })
	}
}

// TestObjects runs the suite on what turns objects into bytes.
func TestObjects(t *testing.T) {
	values := []string{`1`, `"two"`, `null`, `{"three":[3.5,true],"":{}}`, `-7`, `[]`, `NaN`, `-Infinity`, `1e300`, `18446744073709551615`, `"\u00e9\n"`,
		`[1,[2,[3]],"` + strings.Repeat("x", 40) + `"]`, `"` + strings.Repeat("y", 300) + `"`, `-70000`, `300`, `false`, `[` + strings.Repeat("0,", 20) + `0]`}
	objects := func(r *rand.Rand, dst []byte, n int) []byte {
		w, err := dtype.NewBuilder(dst, n)
		for range n {
			if err == nil {
				err = w.AppendString(values[r.IntN(len(values))])
			}
		}
		if err != nil {
			panic(err)
		}
		dst, err = w.Finish()
		if err != nil {
			panic(err)
		}
		return dst
	}
	ragged := func(elem dtype.Type) dtype.Type {
		r := must.Get(dtype.NewRagged(elem))(t)
		return r
	}
	arrays := func(r *rand.Rand, dst []byte, n int) []byte {
		w, err := dtype.NewBuilder(dst, n)
		for range n {
			if err == nil {
				err = w.Append(bytes.Repeat([]byte{byte(r.Uint32()), 1, 2, 3}, r.IntN(5)))
			}
		}
		if err != nil {
			panic(err)
		}
		dst, err = w.Finish()
		if err != nil {
			panic(err)
		}
		return dst
	}
	for name, c := range map[string]Case{
		"json2":          {V2: filters(`[{"id":"json2","encoding":"utf-8"}]`), Type: dtype.NewJSON(), Shape: []int{30}, Elems: objects},
		"json2_2d":       {V2: &codecs.V2{Filters: json.RawMessage(`[{"id":"json2"}]`), Compressor: json.RawMessage(`{"id":"zlib"}`)}, Type: dtype.NewJSON(), Shape: []int{3, 4}, Elems: objects},
		"json":           {V2: filters(`[{"id":"json"}]`), Type: dtype.NewJSON(), Shape: []int{3, 4}, Elems: objects},
		"msgpack2":       {V2: filters(`[{"id":"msgpack2","use_bin_type":true}]`), Type: dtype.NewJSON(), Shape: []int{3, 40}, Elems: objects, Lossy: true},
		"msgpack":        {V2: filters(`[{"id":"msgpack"}]`), Type: dtype.NewJSON(), Shape: []int{30}, Elems: objects, Lossy: true},
		"vlen_array":     {V2: filters(`[{"id":"vlen-array","dtype":"<i4"}]`), Type: ragged(dtype.NewInt(32)), Shape: []int{30}, Elems: arrays},
		"vlen_array_big": {V2: filters(`[{"id":"vlen-array","dtype":">i2"}]`), Type: ragged(dtype.NewInt(16).WithOrder(dtype.Big)), Shape: []int{3, 5}, Elems: arrays},
	} {
		t.Run(name, func(t *testing.T) { Run(t, c) })
	}
}
