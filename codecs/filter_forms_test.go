package codecs_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/codecs/builtin"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/zarr/dtype"
)

// TestFilterConfigs: what is refused, and where the error says it is.
func TestFilterConfigs(t *testing.T) {
	f4, i4, text := dtype.NewFloat(32), dtype.NewInt(32), dtype.NewString()
	reg := builtin.Registry()
	check := func(name string, chain codecs.Chain, err error, rep codecs.Rep, field string) {
		t.Helper()
		if err == nil {
			_, err = chain.Bind(rep)
		}
		if !errors.Is(err, codecs.ErrConfig) || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v, want an error about %q", name, err, field)
		}
	}
	for _, c := range []struct {
		typ           dtype.Type
		filter, field string
	}{
		{i4, `{"id":"delta"}`, "dtype"},
		{i4, `{"id":"delta","dtype":"<x4"}`, "dtype"},
		{i4, `{"id":"delta","dtype":"<U4"}`, "dtype"},
		{i4, `{"id":"delta","dtype":"|b1"}`, "dtype"},
		{i4, `{"id":"delta","dtype":"<i8"}`, "dtype"}, // 3 · 4 bytes
		{text, `{"id":"delta","dtype":"<i4"}`, "size"},
		{i4, `{"id":"astype","encode_dtype":"<i4"}`, "decode_dtype"},
		{i4, `{"id":"astype","encode_dtype":"<c8","decode_dtype":"<i4"}`, "encode_dtype"},
		{f4, `{"id":"fixedscaleoffset","offset":1,"dtype":"<f4"}`, "scale"},
		{f4, `{"id":"fixedscaleoffset","offset":1,"scale":0,"dtype":"<f4"}`, "scale"},
		{f4, `{"id":"fixedscaleoffset","offset":"a","scale":1,"dtype":"<f4"}`, "offset"},
		{f4, `{"id":"quantize","digits":2,"dtype":"<i4"}`, "dtype"},
		{f4, `{"id":"quantize","dtype":"<f4"}`, "digits"},
		{i4, `{"id":"bitround","keepbits":3}`, "floats"},
		{f4, `{"id":"bitround","keepbits":24}`, "keepbits"},
		{f4, `{"id":"bitround","keepbits":-1}`, "keepbits"},
		{i4, `{"id":"packbits"}`, "one byte"},
		{text, `{"id":"categorize","labels":["a"],"dtype":"<U1"}`, "dtype"},
		{text, `{"id":"categorize","labels":[1],"dtype":"|O"}`, "labels"},
		{text, `{"id":"categorize","labels":["a"],"dtype":"|O","astype":"<f4"}`, "astype"},
		{i4, `{"id":"imagecodecs_bitshuffle","itemsize":5}`, "itemsize"},
		{i4, `{"id":"bshuf","itemsize":4,"blocksize":9}`, "blocksize"},
		{i4, `{"id":"bshuf","itemsize":4,"cname":"snappy"}`, "cname"},
		{i4, `{"id":"imagecodecs_lz4h5","blocksize":0}`, "blocksize"},
		{i4, `{"id":"pcodec","level":13}`, "level"},
		{i4, `{"id":"pcodec","mode_spec":"try_dict"}`, "mode_spec"},
		{i4, `{"id":"pcodec","delta_spec":"none","delta_encoding_order":1}`, "delta_encoding_order"},
		{i4.WithOrder(dtype.Big), `{"id":"pcodec"}`, "int32"},
		{text, `{"id":"pcodec"}`, "string"},
		{i4, `{"id":"crc32","location":"middle"}`, "location"},
		{i4, `{"id":"jenkins_lookup3","initval":-1}`, "initval"},
		{i4, `{"id":"jenkins_lookup3","prefix":[256]}`, "prefix"},
		{i4, `{"id":"lzma","format":3}`, "filters"},
		{i4, `{"id":"lzma","format":3,"filters":[{"id":4},{"id":33}]}`, "0x4"},
		{i4, `{"id":"lzma","format":1,"filters":[{"id":4611686018427387905}]}`, "filters"},
		{i4, `{"id":"lzma","preset":10}`, "preset"},
		{i4, `{"id":"lzma","preset":1,"filters":[{"id":33}]}`, "preset"},
		{i4, `{"id":"lzma","filters":[{"id":3,"dist":257},{"id":33}]}`, "dist"},
		{i4, `{"id":"lzma","filters":[{"id":33,"lc":4,"lp":1}]}`, "lc"},
		{i4, `{"id":"bz2","level":0}`, "level"},
		{i4, `{"id":"lz4","acceleration":"fast"}`, "acceleration"},
		{dtype.NewComplex(64), `{"id":"json2"}`, "data type"},
		{dtype.NewComplex(64), `{"id":"msgpack2"}`, "data type"},
		{dtype.NewJSON(), `{"id":"msgpack2","use_bin_type":false}`, "use_bin_type"},
		{dtype.NewJSON(), `{"id":"json2","encoding":"utf-16"}`, "encoding"},
		{dtype.NewJSON(), `{"id":"vlen-array","dtype":"<i4"}`, "dtype"},
	} {
		chain, err := reg.ParseV2(codecs.V2{Type: c.typ, Order: "C", Rank: 1, Filters: json.RawMessage(`[` + c.filter + `]`)})
		check(c.filter, chain, err, codecs.Rep{Type: c.typ, Shape: []int{3}}, c.field)
	}
	for _, c := range []struct {
		typ          dtype.Type
		codec, field string
	}{
		{i4, `{"name":"bitround","configuration":{"keepbits":0}}`, "keepbits"},
		{i4, `{"name":"bitround","configuration":{"keepbits":1,"more":1}}`, "more"},
		{dtype.NewBool(), `{"name":"bitround","configuration":{"keepbits":1}}`, "bool"},
		{i4, `{"name":"packbits","configuration":{"first_bit":4,"last_bit":3}}`, "last_bit"},
		{i4, `{"name":"packbits","configuration":{"last_bit":32}}`, "last_bit"},
		{i4, `{"name":"packbits","configuration":{"padding_encoding":"middle"}}`, "padding_encoding"},
		{i4, `{"name":"cast_value","configuration":{}}`, "data_type"},
		{i4, `{"name":"cast_value","configuration":{"data_type":"string"}}`, "data_type"},
		{i4, `{"name":"cast_value","configuration":{"data_type":"int8","rounding":"up"}}`, "rounding"},
		{i4, `{"name":"cast_value","configuration":{"data_type":"float32","out_of_range":"wrap"}}`, "out_of_range"},
		{i4, `{"name":"cast_value","configuration":{"data_type":"int8","scalar_map":{"encode":[[1]],"x":2}}}`, "scalar_map"},
		{i4, `{"name":"cast_value","configuration":{"data_type":"int8","scalar_map":{"encode":[["NaN",1]]}}}`, "scalar_map"},
		{i4, `{"name":"scale_offset","configuration":{"scale":0}}`, "scale"},
		{i4, `{"name":"scale_offset","configuration":{"offset":1.5}}`, "offset"},
		{i4, `{"name":"scale_offset","configuration":{"offset":-2147483648}}`, "fill value"},
		{text, `{"name":"scale_offset","configuration":{"scale":1}}`, "string"},
		{i4, `{"name":"reshape","configuration":{"shape":[5]}}`, "shape"},
		{i4, `{"name":"reshape","configuration":{"shape":[-1,-1]}}`, "-1"},
		{i4, `{"name":"reshape","configuration":{"shape":[0]}}`, "shape"},
		{i4, `{"name":"reshape","configuration":{"shape":[[1],[0]]}}`, "order"},
		{i4, `{"name":"reshape","configuration":{"shape":[[0],[2]]}}`, "no dimension 2"},
		{i4, `{"name":"reshape","configuration":{"shape":[[1],2]}}`, "dimension 0"},
		{i4, `{"name":"reshape","configuration":{"shape":[4294967296,4294967296]}}`, "shape"},
	} {
		list := `[` + c.codec + `,` + little + `]`
		if strings.Contains(c.codec, "packbits") {
			list = `[` + c.codec + `]`
		}
		chain, err := reg.ParseV3(json.RawMessage(list))
		check(c.codec, chain, err, codecs.Rep{Type: c.typ, Shape: []int{2, 6}}, c.field)
	}
	for _, c := range [][2]string{
		{`[]`, "no array"}, {`[` + transpose(`[0,1]`) + `,` + big + `]`, "order"},
		{`[` + big + `]`, "transpose"}, {`[` + transpose(`[1,0]`) + `,` + little + `]`, "big"},
		{`[` + transpose(`[1,0]`) + `,` + big + `,` + zstd3 + `,` + gzip5 + `]`, "at most"},
	} {
		chain, err := reg.ParseV3(json.RawMessage(`[{"name":"n5_default","configuration":{"codecs":` + c[0] + `}}]`))
		check(c[0], chain, err, codecs.Rep{Type: i4, Shape: []int{2, 6}}, c[1])
	}
	// Pickles are refused by name, under every id.
	for _, id := range []string{"pickle", "numcodecs.pickle"} {
		_, err := reg.ParseV2(codecs.V2{Type: text, Order: "C", Filters: json.RawMessage(`[{"id":"` + id + `","protocol":4}]`)})
		if !errors.Is(err, codecs.ErrUnknown) || !strings.Contains(err.Error(), "refused") {
			t.Errorf("%s: %v", id, err)
		}
	}
}

// TestBitround is the example of the specification.
func TestBitround(t *testing.T) {
	b := bind(t, `[{"name":"bitround","configuration":{"keepbits":3}},"bytes"]`, dtype.NewUint(8), []int{10}, nil)
	got, err := b.Encode(nil, []byte{0, 1, 10, 11, 100, 123, 200, 208, 209, 255})
	if err != nil || !bytes.Equal(got, []byte{0, 1, 10, 12, 96, 128, 192, 192, 224, 224}) {
		t.Errorf("%d (%v)", got, err)
	}
	b = bind(t, `[{"name":"bitround","configuration":{"keepbits":1}},"bytes"]`, dtype.NewInt(8), []int{6}, nil)
	got, err = b.Encode(nil, []byte{127, 0x80, 0xff, 0xfd, 96, 0x9f})
	if err != nil || !bytes.Equal(got, []byte{64, 0x80, 0xff, 0xfc, 64, 0x80}) {
		t.Errorf("% x (%v)", got, err)
	}
}

// TestN5Blocks: a block at the border of an array is smaller, or padded.
func TestN5Blocks(t *testing.T) {
	b := bind(t, `[`+n5(`[1,0]`, ``)+`]`, dtype.NewInt(16), []int{3, 2}, []byte{9, 0})
	header := func(mode uint16, shape ...uint32) []byte {
		h := binary.BigEndian.AppendUint16(nil, mode)
		h = binary.BigEndian.AppendUint16(h, uint16(len(shape)))
		for _, n := range shape {
			h = binary.BigEndian.AppendUint32(h, n)
		}
		return h
	}
	elements := func(n int) []byte {
		var out []byte
		for i := range n {
			out = append(out, 0, byte(i))
		}
		return out
	}
	for name, c := range map[string]struct {
		stored []byte
		want   []byte // low bytes
	}{
		"full":      {append(header(0, 3, 2), elements(6)...), []byte{0, 3, 1, 4, 2, 5}},
		"smaller":   {append(header(0, 2, 1), elements(2)...), []byte{0, 9, 1, 9, 9, 9}},
		"larger":    {append(header(0, 4, 3), elements(12)...), []byte{0, 4, 1, 5, 2, 6}},
		"empty":     {header(0, 0, 2), []byte{9, 9, 9, 9, 9, 9}},
		"mode":      {append(header(1, 3, 2), elements(6)...), nil},
		"rank":      {append(header(0, 6), elements(6)...), nil},
		"short":     {append(header(0, 3, 2), elements(5)...), nil},
		"long":      {append(header(0, 3, 2), elements(7)...), nil},
		"no header": {header(0, 3, 2)[:11], nil},
		"huge":      {append(header(0, 1<<31, 1<<31), elements(6)...), nil},
		"large":     {append(header(0, 1<<12, 1<<10), elements(6)...), nil},
	} {
		got, err := b.Decode(nil, c.stored)
		if c.want == nil {
			if !errors.Is(err, codecs.ErrCorrupt) {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		var low []byte
		for i := 0; i < len(got); i += 2 {
			low = append(low, got[i])
		}
		if err != nil || !bytes.Equal(low, c.want) {
			t.Errorf("%s: %d (%v), want %d", name, low, err, c.want)
		}
	}
}

// filterChain binds a v2 chain of one filter.
func filterChain(t testing.TB, typ dtype.Type, filter string, shape ...int) *codecs.Bound {
	t.Helper()
	c := must.Get(builtin.Registry().ParseV2(codecs.V2{Type: typ, Order: "C", Rank: len(shape), Filters: json.RawMessage(`[` + filter + `]`)}))(t)
	b := must.Get(c.Bind(codecs.Rep{Type: typ, Shape: shape, Max: 1 << 20}))(t)
	return b
}

var filterChains = []fuzzChain{
	{`[` + little + `,` + numcodec("lz4", ``) + `]`, dtype.NewInt(16)},
	{`[` + little + `,` + numcodec("bz2", ``) + `]`, dtype.NewInt(16)},
	{`[` + little + `,` + numcodec("lzma", ``) + `]`, dtype.NewInt(16)},
	{`[` + little + `,` + numcodec("adler32", ``) + `]`, dtype.NewInt(16)},
	{`[` + little + `,` + numcodec("crc32", ``) + `]`, dtype.NewInt(16)},
	{`[` + little + `,` + numcodec("fletcher32", ``) + `]`, dtype.NewInt(16)},
	{`[` + little + `,` + numcodec("jenkins_lookup3", ``) + `]`, dtype.NewInt(16)},
	{`[` + little + `,{"name":"imagecodecs_lzf","configuration":{"header":false}}]`, dtype.NewInt(16)},
	{`[` + little + `,{"name":"imagecodecs_lz4h5","configuration":{"blocksize":10}}]`, dtype.NewInt(16)},
	{`[` + little + `,"imagecodecs_bitshuffle","imagecodecs_bz2"]`, dtype.NewInt(16)},
	{`[` + little + `,` + numcodec("bshuf", `"itemsize":2,"blocksize":8`) + `,"numcodecs.fletcher32",` + numcodec("shuffle", `"elementsize":8`) + `]`, dtype.NewInt(16)},
	{`[` + little + `,` + numcodec("bshuf", `"itemsize":1,"cname":"zstd"`) + `]`, dtype.NewInt(16)},
	{`[` + numcodec("delta", `"dtype":"<i2","astype":"|u1"`) + `,"bytes"]`, dtype.NewInt(16)},
	{`[` + numcodec("delta", `"dtype":"<i2","astype":"<i2"`) + `,` + transpose(`[1,0]`) + `,` + little + `]`, dtype.NewInt(16)},
	{`[` + numcodec("astype", `"encode_dtype":"<f8","decode_dtype":"<i2"`) + `,` + big + `]`, dtype.NewInt(16)},
	{`[` + numcodec("packbits", ``) + `,"bytes"]`, dtype.NewBool()},
	{`["packbits"]`, dtype.NewBool()},
	{`[` + numcodec("pcodec", ``) + `]`, dtype.NewInt(16)},
	{`[{"name":"packbits","configuration":{"padding_encoding":"first_byte","first_bit":2,"last_bit":12}}]`, dtype.NewInt(16)},
	{`[{"name":"cast_value","configuration":{"data_type":"float32"}},` + little + `]`, dtype.NewInt(16)},
	{`[{"name":"scale_offset","configuration":{"offset":5,"scale":-3}},` + little + `]`, dtype.NewInt(16)},
	{`[` + n5(`[1,0]`, `,`+zstd3) + `]`, dtype.NewInt(16)},
	{`[` + little + `,` + conditional(numcodec("shuffle", `"elementsize":2`)+`,`+gzip5+`,"crc32c"`) + `]`, dtype.NewInt(16)},
	{`[{"name":"reshape","configuration":{"shape":[-1]}},{"name":"bitround","configuration":{"keepbits":3}},` + little + `]`, dtype.NewInt(16)},
	{`[` + numcodec("fixedscaleoffset", `"scale":1,"offset":2,"dtype":"<i2","astype":"<i2"`) + `,` + little + `]`, dtype.NewInt(16)},
	{`[` + numcodec("quantize", `"digits":1,"dtype":"<f2"`) + `,` + little + `]`, dtype.NewFloat(16)},
}

var objectFilters = []string{`{"id":"json2"}`, `{"id":"json"}`, `{"id":"msgpack2"}`, `{"id":"msgpack"}`}

// imageFilters are v2 filters of numbers of two bytes.
var imageFilters = []string{
	`{"id":"imagecodecs_delta","shape":[4,3],"dtype":"<u2","axis":0}`, `{"id":"imagecodecs_floatpred","shape":[4,3],"dtype":"<f2"}`,
	`{"id":"imagecodecs_lzw"}`, `{"id":"imagecodecs_packbits"}`, `{"id":"imagecodecs_deflate"}`, `{"id":"imagecodecs_zstd"}`, `{"id":"imagecodecs_bitorder"}`,
	`{"id":"imagecodecs_deflate","raw":true}`, `{"id":"json2","encoding":"utf-8"}`,
}

// TestFuzzCoverage: every registered codec is in one of the chains that are
// fuzzed.
func TestFuzzCoverage(t *testing.T) {
	text := strings.Join(objectFilters, " ") + strings.Join(imageFilters, " ") + strings.Join(moreFilters, " ")
	for _, list := range [][]fuzzChain{decodeChains, filterChains} {
		for _, c := range list {
			text += c.list
		}
	}
	reg := builtin.Registry()
	ids, names := reg.Names()
	for _, name := range append(ids, names...) {
		if !strings.Contains(text, `"`+name+`"`) && !strings.Contains(text, `"numcodecs.`+name+`"`) && !aliased(reg, name, text) {
			t.Errorf("%s is not fuzzed", name)
		}
	}
}

// aliased reports whether a codec is in text under another of its names.
func aliased(reg *codecs.Registry, name, text string) bool {
	for _, v2 := range []bool{false, true} {
		if e, ok := reg.Lookup(name, v2); ok {
			for _, other := range append([]string{e.V2}, e.V3...) {
				if strings.Contains(text, `"`+other+`"`) {
					return true
				}
			}
		}
	}
	return false
}

// moreFilters are v2 filters whose elements have a type of their own.
var moreFilters = []string{
	`{"id":"vlen-array","dtype":"<i2"}`, `{"id":"categorize","labels":["é","b"],"dtype":"|O","astype":"|u1"}`,
	`{"id":"fill_hdf_strings","dtype":"S2","id_map":{"a":"","b\u0000c":"x","bc":"é","d":"b\u0000","e":"é"}}`,
	`{"id":"vlen-utf8"},{"id":"base64"}`, `{"id":"vlen-bytes"},{"id":"zlib"}`,
}

// FuzzObjects feeds any bytes to the v2 filters of objects and text.
func FuzzObjects(f *testing.F) {
	var all []*codecs.Bound
	for i, filter := range moreFilters {
		var list []json.RawMessage
		must.Do(f, json.Unmarshal([]byte(`[`+filter+`]`), &list))
		typ, ok := dtype.ObjectV2(list[0])
		if !ok {
			f.Fatal(filter)
		}
		c := must.Get(builtin.Registry().ParseV2(codecs.V2{Type: typ, Order: "C", Rank: 1, Filters: json.RawMessage(`[` + filter + `]`)}))(f)
		b := must.Get(c.Bind(codecs.Rep{Type: typ, Shape: []int{3}, Max: 1 << 20}))(f)
		w, err := dtype.NewBuilder(nil, 3)
		for _, s := range []string{"", "é", "b\x00"} {
			if err == nil {
				err = w.AppendString(s)
			}
		}
		must.Do(f, err)
		elems := must.Get(w.Finish())(f)
		stored := must.Get(b.Encode(nil, elems))(f)
		f.Add(byte(i), stored)
		f.Add(byte(i), stored[:len(stored)-1])
		all = append(all, b)
	}
	f.Fuzz(func(t *testing.T, which byte, stored []byte) {
		b := all[int(which)%len(all)]
		got, err := b.Decode(nil, stored)
		if err != nil {
			if !errors.Is(err, codecs.ErrCorrupt) {
				t.Fatal(err)
			}
			return
		}
		again := must.Get(b.Encode(nil, got))(t)
		if back, err := b.Decode(nil, again); err != nil || !bytes.Equal(back, got) {
			t.Fatalf("% x comes back as % x (%v)", got, back, err)
		}
	})
}

// FuzzFilters feeds any bytes to the decoders of filters. What is accepted has
// the size of a chunk, and encodes and decodes to the same again.
func FuzzFilters(f *testing.F) {
	type target struct {
		b *codecs.Bound
		n int
	}
	var all []target
	for _, c := range filterChains {
		all = append(all, target{bind(f, c.list, c.typ, []int{4, 3}, nil), 12})
	}
	for _, filter := range objectFilters {
		all = append(all, target{filterChain(f, dtype.NewJSON(), filter, 4, 3), 12})
	}
	for _, filter := range imageFilters {
		all = append(all, target{filterChain(f, dtype.NewUint(16).WithOrder(dtype.Little), filter, 4, 3), 12})
	}
	for i, c := range all {
		elems := make([]byte, 24)
		if c.b.Rep().Type.Kind() == dtype.Bool {
			elems = elems[:12]
		}
		if c.b.Rep().Type.Variable() {
			w, err := dtype.NewBuilder(nil, 12)
			for range 12 {
				if err == nil {
					err = w.AppendString(`{"a":[1,"é"]}`)
				}
			}
			if err == nil {
				elems, err = w.Finish()
			}
			must.Do(f, err)
		}
		stored, err := c.b.Encode(nil, elems)
		if err != nil {
			f.Fatal(i, err)
		}
		f.Add(byte(i), stored)
		f.Add(byte(i), stored[:len(stored)-1])
	}
	f.Fuzz(func(t *testing.T, which byte, stored []byte) {
		c := all[int(which)%len(all)]
		got, err := c.b.Decode(nil, stored)
		if err != nil {
			if !errors.Is(err, codecs.ErrCorrupt) {
				t.Fatal(err)
			}
			return
		}
		again, err := c.b.Encode(nil, got)
		if err != nil {
			if errors.Is(err, codecs.ErrConfig) {
				return // what scale_offset cannot say
			}
			t.Fatal(err)
		}
		back := must.Get(c.b.Decode(nil, again))(t)
		if third, err := c.b.Encode(nil, back); err != nil || !bytes.Equal(third, again) {
			t.Fatalf("encodes to %x, then %x (%v)", again, third, err)
		}
	})
}
