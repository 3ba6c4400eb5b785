package codecs_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
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

// TestHDF5Chunks decodes what filters of HDF5 wrote, and what it encodes itself; see
// testdata/hdf5/generate.py.
func TestHDF5Chunks(t *testing.T) {
	if testing.Short() {
		t.Skip("the work of one goroutine, many times")
	}
	raw := must.Get(os.ReadFile("testdata/hdf5/chunks.json"))(t)
	var file struct {
		Cases []struct {
			Codecs               []json.RawMessage
			Dtype, Data, Encoded string
		}
	}
	if err := json.Unmarshal(raw, &file); err != nil || len(file.Cases) < 30 {
		t.Fatal(err)
	}
	for _, c := range file.Cases {
		list := must.Get(json.Marshal(append([]json.RawMessage{json.RawMessage(little)}, c.Codecs...)))(t)
		typ := must.Get(dtype.ParseV3(json.RawMessage(`"` + c.Dtype + `"`)))(t)
		data, encoded := must.Get(hex.DecodeString(c.Data))(t), must.Get(hex.DecodeString(c.Encoded))(t)
		b := bind(t, string(list), typ, []int{len(data) / typ.Size()}, nil)
		for _, stored := range [][]byte{encoded, must.Get(b.Encode(nil, data))(t)} {
			if got, err := b.Decode(nil, stored); err != nil || !bytes.Equal(got, data) {
				t.Errorf("%s of %s: % x, want % x (%v)", list, c.Dtype, got[:min(len(got), 32)], data[:32], err)
			}
		}
		for i := range encoded { // a checksum tells all, the others end
			if bad := bytes.Clone(encoded); len(c.Codecs) == 1 && bytes.Contains(c.Codecs[0], []byte("fletcher")) {
				bad[i] ^= 1
				if _, err := b.Decode(nil, bad); !errors.Is(err, codecs.ErrCorrupt) {
					t.Fatalf("%s: byte %d is wrong: %v", list, i, err)
				}
			} else if _, err := b.Decode(nil, encoded[:i]); err != nil && !errors.Is(err, codecs.ErrCorrupt) {
				t.Fatalf("%s: %d bytes: %v", list, i, err)
			}
		}
	}
	// HDF5 before 1.6.3 swapped the bytes of both halves.
	b := bind(t, `[`+little+`,"numcodecs.fletcher32"]`, dtype.NewUint(8), []int{4}, nil)
	sum := must.Get(b.Encode(nil, []byte("abcd")))(t)
	sum[4], sum[5], sum[6], sum[7] = sum[5], sum[4], sum[7], sum[6]
	if got, err := b.Decode(nil, sum); string(got) != "abcd" {
		t.Errorf("%q, %v", got, err)
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
