package n5

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/zarr/dtype"
	"github.com/zarrdb/zarrdb/zarr/meta"
)

// The xxHash of lengths that take each of its parts. Values are those of the
// reference implementation.
func TestXXH32(t *testing.T) {
	for text, want := range map[string]uint32{
		"":    0x02cc5d05,
		"a":   0x550d7456,
		"abc": 0x32d153ff,
		"Nobody inspects the spammish repetition": 0xe2293b2f,
	} {
		if got := xxh32([]byte(text), 0); got != want {
			t.Errorf("%q: %#x, want %#x", text, got, want)
		}
	}
}

// Whatever attributes say, the document is one that the parser of Zarr takes or
// refuses, and what is listed can be looked up.
func FuzzAttributes(f *testing.F) {
	f.Add([]byte(dataset3x2))
	f.Add([]byte(`{"n5":"4.0.0","a":[1,{"b":null}]}`))
	f.Add([]byte(`{"dimensions":[9,8],"blockSize":[4,4],"dataType":"string","compression":{"type":"xz","preset":3},"axes":["x","y"]}`))
	f.Add([]byte(`{"dimensions":[9],"blockSize":[4],"dataType":"float64","compression":{"type":"blosc","cname":"zstd","shuffle":-1}}`))
	f.Add([]byte(`{"dimensions":[9],"blockSize":[4],"dataType":"int8","compression":{"type":"lz4","acceleration":2}}`))
	f.Add([]byte(`{"dimensions":[9],"blockSize":[4],"dataType":"int8","compressionType":"bzip2"}`))
	f.Add([]byte(`{"dimensions":[9],"blockSize":[4,1],"dataType":"object","compression":{"type":"zstd","level":-7}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		n := parseNode(text, true)
		m, err := meta.ParseV3(n.doc, registry())
		if err == nil && m.Array != (n.counts != nil) {
			t.Fatalf("an array: %v", m.Array)
		}
		memberNames(text)
	})
}

// An imported array can be written: what is encoded is decoded to the same.
func TestEncode(t *testing.T) {
	numbers := codecs.Rep{Type: dtype.NewUint(8), Shape: []int{20, 15}}
	texts := codecs.Rep{Type: dtype.NewString(), Shape: []int{3, 2}}
	w := must.Get(dtype.NewBuilder(nil, 6))(t)
	for _, item := range []string{"a", "", "ä", "bcd", "e", ""} {
		must.Do(t, w.Append([]byte(item)))
	}
	items := must.Get(w.Finish())(t)
	for list, tt := range map[string]struct {
		rep   codecs.Rep
		chunk []byte
	}{
		`["bytes",{"name":"zarrdb.lz4block"}]`:                                                          {numbers, []byte(strings.Repeat("abcdefghij", 30))},
		`["bytes",{"name":"zarrdb.lz4block","configuration":{"block_size":64}}]`:                        {numbers, []byte(strings.Repeat("abc", 100))},
		`[{"name":"zarrdb.n5_string","configuration":{"codecs":["bytes"]}}]`:                            {texts, items},
		`[{"name":"zarrdb.n5_string","configuration":{"codecs":["bytes",{"name":"zarrdb.lz4block"}]}}]`: {texts, items},
	} {
		b := must.Get(must.Get(registry().ParseV3([]byte(list)))(t).Bind(tt.rep))(t)
		block := must.Get(b.Encode(nil, tt.chunk))(t)
		if got := must.Get(b.Decode(nil, block))(t); !bytes.Equal(got, tt.chunk) {
			t.Errorf("%s: %q, want %q", list, got, tt.chunk)
		}
	}
}

// Damaged blocks give an error or elements, and take bounded memory.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(block(1, []uint32{2, 2}, 8, "a\x00b\x00c\x00d\x00")), true)
	f.Add([]byte("LZ4Block\x16\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"), false)
	reg := registry()
	bind := func(list string, rep codecs.Rep) *codecs.Bound {
		c := must.Get(reg.ParseV3([]byte(list)))(f)
		b := must.Get(c.Bind(rep))(f)
		return b
	}
	text := bind(`[{"name":"zarrdb.n5_string","configuration":{"codecs":["bytes"]}}]`, codecs.Rep{Type: dtype.NewString(), Shape: []int{3, 2}})
	packed := bind(`["bytes",{"name":"zarrdb.lz4block"}]`, codecs.Rep{Type: dtype.NewUint(8), Shape: []int{300}})
	r := rand.New(rand.NewPCG(1, 2))
	chunk := make([]byte, 300)
	for i := range chunk {
		chunk[i] = byte(r.IntN(3))
	}
	good := must.Get(packed.Encode(nil, chunk))(f)
	f.Add(good, false)
	f.Fuzz(func(t *testing.T, data []byte, strings bool) {
		b := packed
		if strings {
			b = text
		}
		if out, err := b.Decode(nil, data); err == nil && !strings && len(out) != 300 {
			t.Fatalf("%d bytes", len(out))
		}
	})
}
