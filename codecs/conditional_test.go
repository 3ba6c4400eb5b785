package codecs_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/codecs/builtin"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/zarr/dtype"
)

// TestConditional: compressors are left out where they would not help, and the
// header says so.
func TestConditional(t *testing.T) {
	const list = `["bytes",{"name":"conditional","configuration":{"header_bits":16,"codecs":[
		{"name":"numcodecs.shuffle","configuration":{"elementsize":4}},{"name":"zstd","configuration":{"level":3}},"crc32c"]}}]`
	b := bind(t, list, dtype.NewUint(8), []int{4096}, nil)
	r := rand.New(rand.NewPCG(1, 2))
	noise := make([]byte, 4096)
	for i := range noise {
		noise[i] = byte(r.Uint32())
	}
	for _, c := range []struct {
		name string
		elem []byte
		mask byte
		max  int
	}{
		{"zeros", make([]byte, 4096), 0b111, 100},
		{"noise", noise, 0b101, 2 + 4096 + 4},
	} {
		stored, err := b.Encode(nil, c.elem)
		if err != nil || stored[0] != c.mask || stored[1] != 0 || len(stored) > c.max {
			t.Fatalf("%s: %d bytes, header % x (%v)", c.name, len(stored), stored[:2], err)
		}
		got, err := b.Decode(nil, stored)
		if err != nil || !bytes.Equal(got, c.elem) {
			t.Errorf("%s does not come back: %v", c.name, err)
		}
		stored[1] = 1
		if _, err := b.Decode(nil, stored); !errors.Is(err, codecs.ErrCorrupt) {
			t.Errorf("%s with a bit for a codec that is not there: %v", c.name, err)
		}
	}
	// No bit set: the bytes themselves.
	if got, err := b.Decode(nil, append([]byte{0, 0}, noise...)); err != nil || !bytes.Equal(got, noise) {
		t.Errorf("a chunk of others to which nothing was applied: %v", err)
	}
	for _, bad := range []string{
		`{"codecs":["bytes"]}`, `{"codecs":["crc32c"],"header_bits":0}`, `{"codecs":["crc32c"],"header_bits":12}`, `{}`,
		`{"codecs":[{"name":"what","must_understand":false}]}`, `{"codecs":["crc32c"],"bits":8}`,
	} {
		if _, err := builtin.Registry().ParseV3(json.RawMessage(`["bytes",{"name":"conditional","configuration":` + bad + `}]`)); err == nil {
			t.Errorf("%s is accepted", bad)
		}
	}
}

// TestNarrowBits: the bits above a narrow scalar mean nothing where it is stored
// and have one value in memory, however the chunk is read.
func TestNarrowBits(t *testing.T) {
	narrow := func(name string) dtype.Type {
		typ := must.Get(dtype.NewNarrowFloat(name))(t)
		return typ
	}
	for _, c := range []struct {
		typ          dtype.Type
		stored, want byte
	}{
		{dtype.NewInt(4), 0x79, 0xf9}, {dtype.NewInt(4), 0xf3, 0x03}, {dtype.NewInt(2), 0x0e, 0xfe}, {dtype.NewInt(2), 0xfd, 0x01},
		{dtype.NewUint(4), 0xf9, 0x09}, {dtype.NewUint(2), 0xff, 0x03},
		{narrow("float4_e2m1fn"), 0xff, 0x0f}, {narrow("float6_e2m3fn"), 0xff, 0x3f},
	} {
		for _, list := range []string{`["bytes"]`, `["bytes","crc32c"]`, `[{"name":"transpose","configuration":{"order":[1,0]}},"bytes"]`} {
			b := bind(t, list, c.typ, []int{2, 3}, nil)
			stored := must.Get(b.Encode(nil, bytes.Repeat([]byte{c.stored}, 6)))(t)
			want := bytes.Repeat([]byte{c.want}, 6)
			if got, err := b.Decode(nil, stored); err != nil || !bytes.Equal(got, want) {
				t.Errorf("%v, %s: %#x is read as % x (%v)", c.typ, list, c.stored, got, err)
			}
			got, err := b.AppendBox(t.Context(), nil, codecs.Bytes(stored), codecs.Box{Start: []int{1, 0}, Count: []int{1, 2}})
			if err != nil || !bytes.Equal(got, want[:2]) {
				t.Errorf("%v, %s: a part of it is read as % x (%v)", c.typ, list, got, err)
			}
		}
	}
}

// TestStructWithoutEndian: the bytes codec of the data type "structured" was
// written without a byte order and means little-endian.
func TestStructWithoutEndian(t *testing.T) {
	typ := must.Get(dtype.ParseV3(json.RawMessage(`{"name":"structured","configuration":{"fields":[["x","int16"],["y","uint8"]]}}`)))(t)
	b := bind(t, `["bytes"]`, typ, []int{1}, nil)
	if got, err := b.Decode(nil, []byte{1, 2, 3}); err != nil || !bytes.Equal(got, []byte{1, 2, 3}) {
		t.Errorf("% x (%v)", got, err)
	}
}
