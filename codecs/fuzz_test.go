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

// fuzzChain is a chain whose decoders are fed any bytes.
type fuzzChain struct {
	list string
	typ  dtype.Type
}

var decodeChains = []fuzzChain{
	{`[` + big + `,` + gzip5 + `]`, dtype.NewInt(16)},
	{`[` + little + `,{"name":"numcodecs.zlib","configuration":{}}]`, dtype.NewInt(16)},
	{`[` + little + `,` + zstd3 + `]`, dtype.NewInt(16)},
	{`[` + little + `,"crc32c"]`, dtype.NewInt(16)},
	{`[` + transpose(`[1,0]`) + `,` + little + `,` + zstd3 + `,"crc32c"]`, dtype.NewInt(16)},
	{`[` + little + `,` + blosc("lz4", "shuffle", 2, 0) + `]`, dtype.NewInt(16)},
	{`["vlen-utf8"]`, dtype.NewString()},
	{`["vlen-bytes"]`, dtype.NewBytes()},
	{`["vlen-utf8",` + zstd3 + `]`, dtype.NewString()},
	{`[` + shard(`[2,3]`, little+`,`+zstd3, indexCRC, "end") + `]`, dtype.NewInt(16)},
	{`[` + shard(`[2,3]`, shard(`[1,3]`, big, `[`+big+`]`, "start"), `[`+little+`]`, "end") + `]`, dtype.NewInt(16)},
	{`[` + shard(`[2,3]`, `"vlen-utf8"`, `[`+little+`]`, "start") + `]`, dtype.NewString()},
}

// FuzzDecode feeds any bytes to every decoder. What comes out has the size of
// a chunk, the fast path into an array agrees with it, and what was decoded is
// encoded and decoded to the same.
func FuzzDecode(f *testing.F) {
	var bound []*codecs.Bound
	for i, c := range decodeChains {
		b := bind(f, c.list, c.typ, []int{4, 3}, nil)
		bound = append(bound, b)
		elems := ramp(6)
		if c.typ.Variable() {
			w, err := dtype.NewBuilder(nil, 12)
			for i := 0; err == nil && i < 12; i++ {
				err = w.AppendString("añ漢"[:[]int{0, 1, 3, 6}[i%4]])
			}
			must.Do(f, err)
			elems = must.Get(w.Finish())(f)
		}
		stored := must.Get(b.Encode(nil, elems))(f)
		f.Add(byte(i), stored)
		f.Add(byte(i), stored[:len(stored)/2])
	}
	f.Fuzz(func(t *testing.T, which byte, stored []byte) {
		b := bound[int(which)%len(bound)]
		got, err := b.Decode(nil, stored)
		if err != nil && !errors.Is(err, codecs.ErrCorrupt) {
			t.Fatal(err)
		}
		if !b.Rep().Type.Variable() {
			into := make([]byte, 24)
			box := codecs.Box{Start: []int{0, 0}, Count: []int{4, 3}}
			// Columns, so that nothing can be decoded in place.
			err2 := b.DecodeInto(stored, box, codecs.Dst{Data: into, Strides: []int{2, 8}})
			if (err == nil) != (err2 == nil) {
				t.Fatalf("Decode: %v, DecodeInto: %v", err, err2)
			}
			for i := range 12 {
				if err == nil && !bytes.Equal(got[2*i:2*i+2], into[i%3*8+i/3*2:][:2]) {
					t.Fatal("DecodeInto gave other elements")
				}
			}
		}
		if err != nil {
			return
		}
		again := must.Get(b.Encode(nil, got))(t)
		if again, err = b.Decode(nil, again); err != nil || !bytes.Equal(again, got) {
			t.Fatalf("a second round gave other elements (%v)", err)
		}
	})
}

// FuzzParseV3: no panic, and what is printed is parsed to what prints the same
// and binds the same.
func FuzzParseV3(f *testing.F) {
	for _, s := range []string{
		`["bytes"]`, `[` + big + `,` + zstd3 + `,` + gzip5 + `,"crc32c"]`, `[` + transpose(`[1,0]`) + `,` + little + `]`,
		`[` + shard(`[1,2]`, shard(`[1,1]`, big, indexCRC, "start"), indexCRC, "end") + `]`,
		`[{"name":"x","must_understand":false},"vlen-utf8"]`, `[{}]`, `null`, `[[[[`,
	} {
		f.Add([]byte(s))
	}
	reg := builtin.Registry()
	f.Fuzz(func(t *testing.T, list []byte) {
		c, err := reg.ParseV3(list)
		if err != nil {
			if !errors.Is(err, codecs.ErrConfig) && !errors.Is(err, codecs.ErrUnknown) {
				t.Fatal(err)
			}
			return
		}
		printed := must.Get(c.PrintV3())(t)
		again, err := reg.ParseV3(printed)
		if err != nil {
			t.Fatalf("%s: %v", printed, err)
		}
		if second, err := again.PrintV3(); err != nil || !bytes.Equal(printed, second) {
			t.Fatalf("%s, then %s (%v)", printed, second, err)
		}
		rep := codecs.Rep{Type: dtype.NewInt(16), Shape: []int{4, 4}}
		_, err = c.Bind(rep)
		_, err2 := again.Bind(rep)
		if (err == nil) != (err2 == nil) {
			t.Fatalf("bound: %v, then: %v", err, err2)
		}
		if _, err := c.V2(); err != nil && !errors.Is(err, codecs.ErrNoForm) {
			t.Fatal(err)
		}
	})
}

// FuzzParseV2 is the same for v2, by way of v3 where that can say it.
func FuzzParseV2(f *testing.F) {
	f.Add([]byte(`null`), []byte(`{"id":"zlib","level":1}`), true)
	f.Add([]byte(`[{"id":"crc32c"}]`), []byte(`null`), false)
	f.Add([]byte(`[{"id":"vlen-utf8"}]`), []byte(`{"id":"zstd"}`), false)
	f.Add([]byte(`null`), []byte(`{"id":"lzma","format":3,"check":0,"preset":null,"filters":[{"id":3,"dist":2},{"id":33,"dict_size":65536,"lc":0,"lp":1,"pb":2}]}`), false)
	reg := builtin.Registry()
	f.Fuzz(func(t *testing.T, filters, compressor []byte, fortran bool) {
		v := codecs.V2{Type: dtype.NewInt(16).WithOrder(dtype.Big), Order: "C", Rank: 2, Filters: filters, Compressor: compressor}
		if fortran {
			v.Order = "F"
		}
		c, err := reg.ParseV2(v)
		if err != nil {
			if !errors.Is(err, codecs.ErrConfig) && !errors.Is(err, codecs.ErrUnknown) {
				t.Fatal(err)
			}
			return
		}
		rep := codecs.Rep{Type: v.Type, Shape: []int{2, 3}}
		b, err := c.Bind(rep)
		if err != nil {
			if !errors.Is(err, codecs.ErrConfig) {
				t.Fatal(err)
			}
			return
		}
		stored, err := b.Encode(nil, ramp(3))
		if err != nil {
			return // a filter may refuse these elements
		}
		list, err := c.PrintV3()
		if err != nil {
			if !errors.Is(err, codecs.ErrNoForm) {
				t.Fatal(err)
			}
			return
		}
		v3, err := reg.ParseV3(json.RawMessage(list))
		if err != nil {
			t.Fatalf("%s: %v", list, err)
		}
		rep.Type = rep.Type.WithOrder(dtype.None)
		b3, err := v3.Bind(rep)
		if err != nil {
			t.Fatalf("%s: %v", list, err)
		}
		want, err := b.Decode(nil, stored)
		got, err3 := b3.Decode(nil, stored)
		if (err == nil) != (err3 == nil) || !bytes.Equal(got, want) {
			t.Fatalf("%s decodes to %v (%v), v2 to %v (%v)", list, got, err3, want, err)
		}
	})
}
