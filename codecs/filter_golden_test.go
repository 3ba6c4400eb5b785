package codecs_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"os"
	"testing"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/codecs/builtin"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/zarr/dtype"
)

// TestNumcodecs encodes and decodes as numcodecs does, to the bit; see
// testdata/filters/generate.py.
func TestNumcodecs(t *testing.T) {
	raw := must.Get(os.ReadFile("testdata/filters/numcodecs.json"))(t)
	var file struct {
		Cases []struct {
			Filter                 json.RawMessage
			Dtype                  string
			Data, Encoded, Decoded string
		}
	}
	if err := json.Unmarshal(raw, &file); err != nil || len(file.Cases) == 0 {
		t.Fatal(err)
	}
	reg := builtin.Registry()
	for _, c := range file.Cases {
		name := must.Get(json.Marshal(c.Dtype))(t)
		typ := must.Get(dtype.ParseV2(name, dtype.Type{}))(t)
		unhex := func(s string) []byte {
			b := must.Get(hex.DecodeString(s))(t)
			return b
		}
		data, encoded, decoded := unhex(c.Data), unhex(c.Encoded), unhex(c.Decoded)
		// The elements in memory are those that the array stores without a
		// filter.
		n := len(data) / typ.Size()
		plain := bindV2(t, reg, typ, n, nil)
		elems := must.Get(plain.Decode(nil, data))(t)
		b := bindV2(t, reg, typ, n, json.RawMessage(`[`+string(c.Filter)+`]`))
		got, err := b.Encode(nil, elems)
		if err != nil || !bytes.Equal(got, encoded) {
			t.Errorf("%s of %s: % x, want % x (%v)", c.Filter, c.Dtype, got, encoded, err)
		}
		back, err := b.Decode(nil, encoded)
		if err != nil {
			t.Errorf("%s of %s: %v", c.Filter, c.Dtype, err)
			continue
		}
		if back, err = plain.Encode(nil, back); err != nil || !bytes.Equal(back, decoded) {
			t.Errorf("%s of %s: decoded % x, want % x (%v)", c.Filter, c.Dtype, back, decoded, err)
		}
	}
}

func bindV2(t *testing.T, reg *codecs.Registry, typ dtype.Type, n int, filters json.RawMessage) *codecs.Bound {
	t.Helper()
	c, err := reg.ParseV2(codecs.V2{Type: typ, Order: "C", Rank: 1, Filters: filters})
	if err != nil {
		t.Fatal(string(filters), err)
	}
	b, err := c.Bind(codecs.Rep{Type: typ, Shape: []int{n}})
	if err != nil {
		t.Fatal(string(filters), err)
	}
	return b
}
