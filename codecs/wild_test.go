package codecs_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/zarr/dtype"
)

// TestConfigurationsOfWriters has configurations that writers store and that are
// printed in another form here.
func TestConfigurationsOfWriters(t *testing.T) {
	reg := codecs.Default()
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
	reg := codecs.Default()
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
		typ, err := dtype.ParseV2(json.RawMessage(`"`+c.dtype+`"`), dtype.Type{})
		if err != nil {
			t.Fatal(err)
		}
		want, packed := unhex(c.elems), unhex(c.pack)
		for filter, stored := range map[string][]byte{
			`{"id":"json2"}`: []byte(c.json), `{"id":"json"}`: []byte(c.json[:len(c.json)-5] + "]"), `{"id":"msgpack2"}`: packed,
		} {
			chain, err := reg.ParseV2(codecs.V2{Type: typ, Order: "C", Rank: 1, Filters: json.RawMessage(`[` + filter + `]`)})
			if err != nil {
				t.Fatal(err)
			}
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
