package lz4

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	library "github.com/pierrec/lz4/v4"

	"github.com/zarrdb/zarrdb/codecs/internal/bytestest"
	"github.com/zarrdb/zarrdb/internal/must"
)

// same compares a block with that of another implementation of the C library's
// algorithm, and decodes it. Nothing may be written behind the room.
func same(t testing.TB, e *Encoder, src []byte, room, acceleration int) {
	t.Helper()
	c := library.CompressorCCompat{Acceleration: acceleration}
	want := make([]byte, room)
	n := must.Get(c.CompressBlock(src, want))(t)
	buf := bytes.Repeat([]byte{0xaa}, room+64)
	got := buf[:room:room]
	m := e.Encode(got, src, acceleration)
	if m != n || !bytes.Equal(got[:m], want[:n]) {
		t.Fatalf("%d bytes with room %d, acceleration %d: %d bytes, should be %d; or they differ", len(src), room, acceleration, m, n)
	}
	twin := bytes.Repeat([]byte{0xaa}, room+64)
	if k := e.block(twin[:room:room], src, acceleration, false); k != n || !bytes.Equal(twin[:k], want[:n]) {
		t.Fatalf("%d bytes with room %d, acceleration %d: plain Go makes %d bytes, should be %d; or they differ", len(src), room, acceleration, k, n)
	}
	for _, b := range [][]byte{buf, twin} {
		if !bytes.Equal(b[room:], bytes.Repeat([]byte{0xaa}, 64)) {
			t.Fatalf("%d bytes with room %d: wrote behind it", len(src), room)
		}
	}
	if m == 0 {
		return
	}
	out := make([]byte, len(src))
	if k, err := library.UncompressBlock(got[:m], out); err != nil || !bytes.Equal(out[:k], src) {
		t.Fatalf("%d bytes decode to %d, error %v; or they differ", len(src), k, err)
	}
}

// mixed returns n bytes, some of which can be encoded shorter.
func mixed(r *rand.Rand, n int) []byte { return bytestest.Mixed(r, n, 14) }

func TestSameBlocks(t *testing.T) {
	var e Encoder
	r := rand.New(rand.NewPCG(1, 2))
	for n := range 80 {
		src := mixed(r, n)
		for room := range Bound(n) + 1 {
			same(t, &e, src, room, 1)
		}
	}
	for _, n := range []int{smallFrom - 1, smallFrom, 16 << 10, 128 << 10, 300 << 10} {
		for range 8 {
			src := mixed(r, n)
			for _, acceleration := range []int{-1, 1, 5, 9, maxAccel + 1} {
				for _, room := range []int{Bound(n), n - 1, n / 2, n / 10} {
					same(t, &e, src, room, acceleration)
				}
			}
		}
	}
}

// Too much to be held is refused before it is read.
func TestTooMuch(t *testing.T) {
	var e Encoder
	if n := e.Encode(nil, nil, 1); n != 0 {
		t.Errorf("no room: %d", n)
	}
	if n := e.Encode(nil, []byte{1}, 1); n != 0 {
		t.Errorf("no room for a byte: %d", n)
	}
}

func FuzzEncode(f *testing.F) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, n := range []int{0, 1, 12, 13, 14, 100, 5000} {
		f.Add(mixed(r, n), uint16(n), int16(1), uint16(0))
	}
	f.Add(mixed(r, 3000), uint16(2000), int16(5), uint16(40))
	f.Fuzz(func(t *testing.T, src []byte, room uint16, acceleration int16, times uint16) {
		// Longer input than a fuzzer makes, at other distances.
		part := src
		src = bytes.Clone(src)
		for i := 0; i < int(times) && len(part) > 0 && len(src) < 200<<10; i++ {
			src = append(src, part[i%len(part):]...)
		}
		var e Encoder
		same(t, &e, src, min(int(room)*4, Bound(len(src))), int(acceleration))
		same(t, &e, src, Bound(len(src)), int(acceleration))
	})
}

func BenchmarkEncode(b *testing.B) {
	r := rand.New(rand.NewPCG(5, 6))
	for _, n := range []int{16 << 10, 128 << 10} {
		src := make([]byte, n)
		for i := range src {
			// A byte of a smooth field with noise below.
			src[i] = byte(i>>9) + byte(r.Uint32()>>r.IntN(8)&3)
		}
		dst := make([]byte, n)
		var e Encoder
		c := library.CompressorCCompat{Acceleration: 5}
		for _, who := range []struct {
			name   string
			encode func()
		}{
			{"own", func() { e.Encode(dst, src, 5) }},
			{"generic", func() { e.block(dst, src, 5, false) }},
			{"library", func() { _, _ = c.CompressBlock(src, dst) }},
		} {
			b.Run(fmt.Sprintf("%d/%s", n, who.name), func(b *testing.B) {
				b.SetBytes(int64(n))
				b.ReportAllocs()
				for b.Loop() {
					who.encode()
				}
			})
		}
	}
}
