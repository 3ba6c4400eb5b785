package codecs_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/codecs/builtin"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/zarr/dtype"
)

// What v2 says, v3 can say too, and chunks written by one are read by the
// other.
func TestConvert(t *testing.T) {
	reg := builtin.Registry()
	for _, c := range []struct {
		name                       string
		typ                        dtype.Type
		order, filters, compressor string
		want                       string // v3
	}{
		{"nothing", dtype.NewUint(8), "C", `null`, `null`, `[{"name":"bytes"}]`},
		{"little", dtype.NewInt(16).WithOrder(dtype.Little), "C", `null`, `null`, `[` + little + `]`},
		{"big, F", dtype.NewInt(16).WithOrder(dtype.Big), "F", `null`, `null`, `[` + transpose(`[2,1,0]`) + `,` + big + `]`},
		{"zlib", dtype.NewUint(8), "C", `null`, `{"id":"zlib","level":3}`,
			`[{"name":"bytes"},{"name":"numcodecs.zlib","configuration":{"level":3}}]`},
		{"zstd", dtype.NewUint(8), "C", `null`, `{"id":"zstd","level":3}`,
			`[{"name":"bytes"},{"name":"zstd","configuration":{"level":3,"checksum":false}}]`},
		{"bitround", dtype.NewFloat(32).WithOrder(dtype.Little), "C", `[{"id":"bitround","keepbits":23}]`, `null`,
			`[{"name":"numcodecs.bitround","configuration":{"keepbits":23}},` + little + `]`},
		{"blosc", dtype.NewFloat(32).WithOrder(dtype.Little), "C", `null`, `{"id":"blosc","cname":"lz4","clevel":5,"shuffle":1,"blocksize":0}`,
			`[` + little + `,` + blosc("lz4", "shuffle", 4, 0) + `]`},
		{"blosc auto", dtype.NewUint(8), "C", `null`, `{"id":"blosc","cname":"zstd","clevel":5,"shuffle":-1}`,
			`[{"name":"bytes"},` + blosc("zstd", "bitshuffle", 1, 0) + `]`},
		{"filter", dtype.NewFloat(32).WithOrder(dtype.Big), "C", `[{"id":"crc32"}]`, `{"id":"gzip","level":1}`,
			`[` + big + `,{"name":"numcodecs.crc32","configuration":{}},{"name":"gzip","configuration":{"level":1}}]`},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := codecs.V2{Type: c.typ, Order: c.order, Rank: 3, Filters: json.RawMessage(c.filters), Compressor: json.RawMessage(c.compressor)}
			old := must.Get(reg.ParseV2(v))(t)
			list, err := old.PrintV3()
			if err != nil || string(list) != c.want {
				t.Fatalf("got  %s (%v)\nwant %s", list, err, c.want)
			}
			new := must.Get(reg.ParseV3(list))(t)
			rep := codecs.Rep{Type: c.typ, Shape: []int{2, 3, 4}}
			b2 := must.Get(old.Bind(rep))(t)
			rep.Type = c.typ.WithOrder(dtype.None)
			b3 := must.Get(new.Bind(rep))(t)
			elems := ramp(24)[:24*c.typ.Size()]
			stored := must.Get(b2.Encode(nil, elems))(t)
			if got, err := b3.Decode(nil, stored); err != nil || !bytes.Equal(got, elems) {
				t.Errorf("v3 reads other elements (%v)", err)
			}
			// And back.
			back := must.Get(new.V2())(t)
			back.Type, back.Rank = c.typ.WithOrder(new.Endian()), 3
			again := must.Get(reg.ParseV2(back))(t)
			if list, err = again.PrintV3(); err != nil || string(list) != c.want {
				t.Errorf("got  %s (%v)\nwant %s", list, err, c.want)
			}
		})
	}
}

// Readers of v2 refuse the member checksum of zstd, whatever it is.
func TestConvertZstdToV2(t *testing.T) {
	for _, checksum := range []string{"true", "false"} {
		c := must.Get(builtin.Registry().ParseV3(json.RawMessage(`[` + little + `,{"name":"zstd","configuration":{"level":3,"checksum":` + checksum + `}}]`)))(t)
		if v, err := c.V2(); err != nil || string(v.Compressor) != `{"id":"zstd","level":3}` {
			t.Errorf("checksum %s: compressor %s (%v)", checksum, v.Compressor, err)
		}
	}
}

func TestConvertNoForm(t *testing.T) {
	reg := builtin.Registry()
	for _, list := range []string{
		`[` + transpose(`[1,0,2]`) + `,` + little + `]`,
		`[` + shard(`[1,1,1]`, little, indexCRC, "end") + `]`,
		`[` + little + `,{"name":"mystery","must_understand":false}]`,
		`[` + little + `,{"name":"crc32c"}]`,
		`[` + little + `,{"name":"zstd","configuration":{"level":3,"checksum":false}},{"name":"numcodecs.crc32c"}]`,
	} {
		c := must.Get(reg.ParseV3(json.RawMessage(list)))(t)
		if v, err := c.V2(); !errors.Is(err, codecs.ErrNoForm) {
			t.Errorf("%s: %+v (%v)", list, v, err)
		}
	}
	mixed := must.Get(dtype.NewStruct([]dtype.Field{
		{Name: "a", Type: dtype.NewInt(16).WithOrder(dtype.Little)}, {Name: "b", Type: dtype.NewInt(16).WithOrder(dtype.Big)},
	}))(t)
	c := must.Get(reg.ParseV2(codecs.V2{Type: mixed, Order: "C", Rank: 1}))(t)
	if list, err := c.PrintV3(); !errors.Is(err, codecs.ErrNoForm) {
		t.Errorf("fields of both byte orders: %s (%v)", list, err)
	}
}
