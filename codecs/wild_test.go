package codecs_test

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/codecs/builtin"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/zarr/dtype"
)

// TestConfigurationsOfWriters has configurations that writers store and that are
// printed in another form here.
func TestConfigurationsOfWriters(t *testing.T) {
	reg := builtin.Registry()
	for _, c := range []struct {
		v2, v3 string
		want   string // the configuration that is printed
	}{
		{`{"id":"zstd","level":50}`, `{"name":"zstd","configuration":{"level":50,"checksum":false}}`, `{"level":22,"checksum":false}`},
		{`{"id":"zstd","level":-200000}`, `{"name":"zstd","configuration":{"level":-200000,"checksum":false}}`, `{"level":-131072,"checksum":false}`},
		{`{"id":"pcodec","level":8,"delta_spec":"no_op"}`, `{"name":"numcodecs.pcodec","configuration":{"level":8,"delta_spec":"no_op"}}`,
			`{"level":8,"delta_spec":"none"}`},
	} {
		i4 := dtype.NewInt(32).WithOrder(dtype.Little)
		old, err := reg.ParseV2(codecs.V2{Type: i4, Order: "C", Rank: 1, Compressor: json.RawMessage(c.v2)})
		if err != nil {
			t.Errorf("%s: %v", c.v2, err)
			continue
		}
		list := `[` + c.v3 + `]`
		if !bytes.Contains([]byte(c.v3), []byte("pcodec")) {
			list = `[` + little + `,` + c.v3 + `]`
		}
		chain, err := reg.ParseV3(json.RawMessage(list))
		if err != nil {
			t.Errorf("%s: %v", list, err)
			continue
		}
		for _, chain := range []codecs.Chain{old, chain} {
			all := chain.Codecs()
			if got := all[len(all)-1].Config(); string(got) != c.want {
				t.Errorf("%s: printed as %s, want %s", c.v3, got, c.want)
			}
			b, err := chain.Bind(codecs.Rep{Type: i4, Shape: []int{4}})
			if err != nil {
				t.Errorf("%s: %v", c.v3, err)
				continue
			}
			elems := []byte{1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4, 0, 0, 0}
			stored, err := b.Encode(nil, elems)
			if err != nil {
				t.Errorf("%s: %v", c.v3, err)
			}
			if got, err := b.Decode(nil, stored); err != nil || !bytes.Equal(got, elems) {
				t.Errorf("%s: %v, %v", c.v3, got, err)
			}
		}
	}
}

// TestObjectFiltersOfElements has what numcodecs stores where a filter for objects is
// given numbers, truth values or texts.
func TestObjectFiltersOfElements(t *testing.T) {
	reg := builtin.Registry()
	for _, c := range []struct {
		dtype, json, pack string // pack in hexadecimal digits
		elems             string // of three, in memory layout
	}{
		{"<i4", `[1,-2,3,"<i4",[3]]`, "9501fe03a33c69349103", "01000000feffffff03000000"},
		{"<f8", `[1.5,NaN,-Infinity,"<f8",[3]]`, "95cb3ff8000000000000cb7ff8000000000000cbfff0000000000000a33c66389103",
			"000000000000f83f000000000000f87f000000000000f0ff"},
		{"|b1", `[true,false,true,"|b1",[3]]`, "95c3c2c3a37c62319103", "010001"},
		{"<U2", `["a","b\u00e9","","<U2",[3]]`, "95a161a362c3a9a0a33c55329103", "610000000000000062000000e90000000000000000000000"},
		{"<M8[ns]", `[1,null,2,"<M8[ns]",[3]]`, "9501c002a73c4d385b6e735d9103", "010000000000000000000000000000800200000000000000"},
	} {
		typ := must.Get(dtype.ParseV2(json.RawMessage(`"`+c.dtype+`"`), dtype.Type{}))(t)
		want, packed := unhex(c.elems), unhex(c.pack)
		for filter, stored := range map[string][]byte{
			`{"id":"json2"}`: []byte(c.json), `{"id":"json"}`: []byte(c.json[:len(c.json)-5] + "]"), `{"id":"msgpack2"}`: packed,
		} {
			chain := must.Get(reg.ParseV2(codecs.V2{Type: typ, Order: "C", Rank: 1, Filters: json.RawMessage(`[` + filter + `]`)}))(t)
			b, err := chain.Bind(codecs.Rep{Type: typ, Shape: []int{3}})
			if err != nil {
				t.Errorf("%s, %s: %v", c.dtype, filter, err)
				continue
			}
			if got, err := b.Decode(nil, stored); err != nil || !bytes.Equal(got, want) {
				t.Errorf("%s, %s: %x, %v", c.dtype, filter, got, err)
			}
			again, err := b.Encode(nil, want)
			if err != nil {
				t.Errorf("%s, %s: %v", c.dtype, filter, err)
			}
			if filter == `{"id":"msgpack2"}` && !bytes.Equal(again, stored) {
				t.Errorf("%s, %s: written as %x", c.dtype, filter, again)
			}
			if got, err := b.Decode(nil, again); err != nil || !bytes.Equal(got, want) {
				t.Errorf("%s, %s: %x, %v of %s", c.dtype, filter, got, err, again)
			}
			if _, err := b.Decode(nil, bytes.Replace(stored, []byte("1"), []byte(`{}`), 1)); filter != `{"id":"msgpack2"}` && c.dtype == "<i4" && err == nil {
				t.Errorf("%s, %s: an object is a number", c.dtype, filter)
			}
		}
	}
}

// TestImageCodecs has what imagecodecs stores, which tifffile names in reference sets
// of TIFF files.
func TestImageCodecs(t *testing.T) {
	reg := builtin.Registry()
	for name, c := range map[string]struct {
		dtype               string
		shape               []int
		filters, compressor string
		stored, elems       string // in hexadecimal digits
		same                bool   // written as imagecodecs does
	}{
		"lzw":             {"|u1", []int{15}, "", `{"id":"imagecodecs_lzw"}`, "8001e0407040260704048040403808", "070707070809070707070809010203", true},
		"packbits":        {"|u1", []int{15}, "", `{"id":"imagecodecs_packbits"}`, "fd07010809fd07040809010203", "070707070809070707070809010203", true},
		"bitorder":        {"|u1", []int{5}, "", `{"id":"imagecodecs_bitorder"}`, "00800ff2ff", "0001f04fff", true},
		"deflate":         {"|u1", []int{15}, "", `{"id":"imagecodecs_deflate","level":1,"raw":false}`, "7801010f00f0ff07070707080907070707080901020303630061", "070707070809070707070809010203", false},
		"deflate raw":     {"|u1", []int{15}, "", `{"id":"imagecodecs_deflate","level":null,"raw":true}`, "010f00f0ff070707070809070707070809010203", "070707070809070707070809010203", false},
		"delta >u2":       {">u2", []int{3, 4}, `{"id":"imagecodecs_delta","axis":-1,"dist":1,"shape":[3,4],"dtype":">u2"}`, "", "00000007001500230070003fff52005b00c5ff7c0085ff98", "000007001c003f007000af0001005c00c5004100c6005e00", true},
		"delta <u2":       {"<u2", []int{3, 4}, `{"id":"imagecodecs_delta","axis":-1,"dist":1,"shape":[3,4],"dtype":"<u2"}`, "", "000007001500230070003f0052ff5b00c5007cff850098ff", "000007001c003f007000af0001005c00c5004100c6005e00", true},
		"delta RGB":       {"|u1", []int{2, 4, 3}, `{"id":"imagecodecs_delta","axis":-2,"dist":1,"shape":[2,4,3],"dtype":"|u1"}`, "", "00254a6f6f6f6f6f6f6f6f6fbce1066f6f6f6f6f6f6f6f6f", "00254a6f94b9de03284d7297bce1062b50759abfe4092e53", true},
		"delta <f4":       {"<f4", []int{2, 3}, `{"id":"imagecodecs_delta","axis":-1,"dist":1,"shape":[2,3],"dtype":"<f4"}`, "", "0000c03f000050807684cf90000000000000803fdb0fc900", "0000c03f000010c07684df50000000000000803fdb0f4940", true},
		"floatpred <f4":   {"<f4", []int{2, 3}, `{"id":"imagecodecs_floatpred","axis":-1,"dist":1,"shape":[2,3],"dtype":"<f4"}`, "", "3f81907050cf2100847c0076003f01c080c9b7000ff100db", "0000c03f000010c07684df50000000000000803fdb0f4940", true},
		"floatpred >f4":   {">f4", []int{2, 3}, `{"id":"imagecodecs_floatpred","axis":-1,"dist":1,"shape":[2,3],"dtype":">f4"}`, "", "3f81907050cf2100847c0076003f01c080c9b7000ff100db", "0000c03f000010c07684df50000000000000803fdb0f4940", true},
		"floatpred pairs": {"<f4", []int{2, 3, 2}, `{"id":"imagecodecs_floatpred","axis":-2,"dist":1,"shape":[2,3,2],"dtype":"<f4"}`, "", "003f40010000c06020d08058603800000000000000000000404101000000afcb30282828b8a400000000000000000000", "000000000000a03f000020400000704000" + "00a0400000c8400000f04000000c4100002041000034410000484100005c41", true},
		"floatpred <f8":   {"<f8", []int{1, 3}, `{"id":"imagecodecs_floatpred","axis":-1,"dist":1,"shape":[1,3],"dtype":"<f8"}`, "", "3f8194a40ac935006e9200837d00b848005fa10025db003b", "000000000000f83f00000000000002c03b2500" + "5fb8836e54", true},
	} {
		if name == "floatpred <f8" {
			c.elems = "000000000000f83f00000000000002c0" + hex.EncodeToString(binary.LittleEndian.AppendUint64(nil, math.Float64bits(3e100)))
		}
		typ := must.Get(dtype.ParseV2(json.RawMessage(`"`+c.dtype+`"`), dtype.Type{}))(t)
		v2 := codecs.V2{Type: typ, Order: "C", Rank: len(c.shape)}
		if c.filters != "" {
			v2.Filters = json.RawMessage(`[` + c.filters + `]`)
		}
		if c.compressor != "" {
			v2.Compressor = json.RawMessage(c.compressor)
		}
		chain, err := reg.ParseV2(v2)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		b, err := chain.Bind(codecs.Rep{Type: typ, Shape: c.shape})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		want, stored := unhex(c.elems), unhex(c.stored)
		if got, err := b.Decode(nil, stored); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %x, %v, want %x", name, got, err, want)
		}
		again, err := b.Encode(nil, want)
		if err != nil || c.same && !bytes.Equal(again, stored) {
			t.Errorf("%s: written as %x, %v", name, again, err)
		}
		if got, err := b.Decode(nil, again); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %x of what is written, %v", name, got, err)
		}
		for i := range stored { // no panic, and never more than the chunk
			damaged := bytes.Clone(stored)
			damaged[i] ^= 0x5a
			for _, text := range [][]byte{damaged, stored[:i]} {
				if got, err := b.Decode(nil, text); err == nil && len(got) != len(want) {
					t.Errorf("%s: %d bytes", name, len(got))
				}
			}
		}
	}
	// Tables that fill up, in data of every kind.
	rnd := rand.New(rand.NewPCG(1, 2))
	for _, id := range []string{"imagecodecs_lzw", "imagecodecs_packbits"} {
		chain := must.Get(reg.ParseV2(codecs.V2{Type: dtype.NewUint(8), Order: "C", Rank: 1, Compressor: json.RawMessage(`{"id":"` + id + `"}`)}))(t)
		for _, letters := range []int{1, 2, 5, 256} {
			for _, n := range []int{0, 1, 2, 3, 253, 254, 255, 256, 257, 1000, 3836, 3837, 3838, 20000} {
				b := must.Get(chain.Bind(codecs.Rep{Type: dtype.NewUint(8), Shape: []int{n}}))(t)
				elems := make([]byte, n)
				for i := range elems {
					elems[i] = byte(rnd.IntN(letters))
				}
				stored := must.Get(b.Encode(nil, elems))(t)
				if got, err := b.Decode(nil, stored); err != nil || !bytes.Equal(got, elems) {
					t.Errorf("%s of %d bytes of %d letters: %d bytes, %v", id, n, letters, len(got), err)
				}
			}
		}
	}
}

// TestImageCodecsV3 has the codecs that are configured otherwise in v3: the elements are
// those of the array, and the predictor of floats makes bytes. The chunks are those of
// TestImageCodecs.
func TestImageCodecsV3(t *testing.T) {
	for name, c := range map[string]struct {
		typ             dtype.Type
		shape           []int
		codecs          string
		stored, decoded string
	}{
		"delta big": {dtype.NewUint(16), []int{3, 4}, `[{"name":"imagecodecs_delta","configuration":{"axis":1,"dist":1}},{"name":"bytes","configuration":{"endian":"big"}},"imagecodecs_lzw"]`, "", "000007001c003f007000af0001005c00c5004100c6005e00"},
		"delta RGB": {dtype.NewUint(8), []int{2, 4, 3}, `[{"name":"imagecodecs_delta","configuration":{"axis":-2}},"bytes"]`, "00254a6f6f6f6f6f6f6f6f6fbce1066f6f6f6f6f6f6f6f6f", "00254a6f94b9de03284d7297bce1062b50759abfe4092e53"},
		"floatpred": {dtype.NewFloat(32), []int{2, 3}, `["imagecodecs_floatpred"]`, "3f81907050cf2100847c0076003f01c080c9b7000ff100db", "0000c03f000010c07684df50000000000000803fdb0f4940"},
		"packed":    {dtype.NewFloat(32), []int{2, 3}, `["imagecodecs_floatpred","imagecodecs_packbits",{"name":"imagecodecs_deflate","configuration":{"level":1}}]`, "", "0000c03f000010c07684df50000000000000803fdb0f4940"},
	} {
		b := bind(t, c.codecs, c.typ, c.shape, nil)
		want := unhex(c.decoded)
		stored, err := b.Encode(nil, want)
		if err != nil || c.stored != "" && !bytes.Equal(stored, unhex(c.stored)) {
			t.Errorf("%s: encoded %x, %v", name, stored, err)
		}
		if got, err := b.Decode(nil, stored); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: decoded %x, %v", name, got, err)
		}
	}
	for _, bad := range []string{`["imagecodecs_floatpred"]`, `[{"name":"imagecodecs_delta","configuration":{"axis":1}},"bytes"]`, `[{"name":"imagecodecs_delta","configuration":{"dist":2}},"bytes"]`} {
		chain, err := builtin.Registry().ParseV3(json.RawMessage(bad))
		if err == nil {
			_, err = chain.Bind(codecs.Rep{Type: dtype.NewUint(8), Shape: []int{4}})
		}
		if !errors.Is(err, codecs.ErrConfig) {
			t.Errorf("%s: %v", bad, err)
		}
	}
}
