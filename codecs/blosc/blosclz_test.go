package blosc

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// naiveBlosclz decodes by the description of the format, byte by byte.
func naiveBlosclz(src []byte, limit int) ([]byte, bool) {
	var out []byte
	next := func() (int, bool) {
		if len(src) == 0 {
			return 0, false
		}
		b := src[0]
		src = src[1:]
		return int(b), true
	}
	for first := true; len(src) > 0; first = false {
		c, _ := next()
		if first {
			c &= 31
		}
		if c < 32 {
			for range c + 1 {
				b, ok := next()
				if !ok || len(out) == limit {
					return nil, false
				}
				out = append(out, byte(b))
			}
			continue
		}
		length, more := c>>5+2, 255
		for c>>5 == 7 && more == 255 {
			var ok bool
			if more, ok = next(); !ok {
				return nil, false
			}
			length += more
		}
		low, ok := next()
		if !ok {
			return nil, false
		}
		dist := c&31<<8 + low + 1
		if c&31 == 31 && low == 255 {
			h, _ := next()
			l, ok := next()
			if !ok {
				return nil, false
			}
			dist += h<<8 + l
		}
		if dist > len(out) || length > limit-len(out) {
			return nil, false
		}
		for range length {
			out = append(out, out[len(out)-dist])
		}
	}
	return out, true
}

func checkBlosclz(t *testing.T, stream []byte, room int) {
	t.Helper()
	want, wantOK := naiveBlosclz(stream, room)
	dst := bytes.Repeat([]byte{0xa5}, room+100)
	n, ok := decodeBlosclz(dst[:room:room], stream)
	if ok != wantOK || ok && !bytes.Equal(dst[:n], want) {
		t.Fatalf("room %d: %d bytes, %v; should be %d, %v, for %x", room, n, ok, len(want), wantOK, stream)
	}
	if !bytes.Equal(dst[room:], bytes.Repeat([]byte{0xa5}, 100)) {
		t.Fatal("wrote beyond the room")
	}
}

func TestBlosclz(t *testing.T) {
	var e lzEncoder
	r := rand.New(rand.NewPCG(1, 9))
	for _, data := range [][]byte{
		ramp(100), ramp(20_000), noise(3000), make([]byte, 100_000), bytes.Repeat([]byte{1, 2, 3}, 500),
		append(append(noise(900), make([]byte, 70_000)...), noise(900)...), // a match from far
		append(append(noise(900), make([]byte, 73_000)...), noise(900)...), // too far
	} {
		for level := 1; level <= 9; level++ {
			dst := make([]byte, len(data)+len(data)/16+100)
			n := e.match(dst, data, uint(level%7))
			if n == 0 {
				t.Fatalf("%d bytes: no stream", len(data))
			}
			checkBlosclz(t, dst[:n], len(data))
			checkBlosclz(t, dst[:n], len(data)-1)
			checkBlosclz(t, dst[:n], len(data)+500)
			if out, _ := naiveBlosclz(dst[:n], len(data)); !bytes.Equal(out, data) {
				t.Fatalf("%d bytes, level %d: decodes to something else", len(data), level)
			}
			for range 200 {
				bad := bytes.Clone(dst[:n])
				bad[r.IntN(n)] ^= 1 << r.IntN(8)
				checkBlosclz(t, bad[:1+r.IntN(n)], len(data))
			}
			// Any room is kept to.
			for room := 0; room < min(n, 40); room++ {
				if m := e.match(dst[:room:room], data, 0); m > room {
					t.Fatalf("%d bytes in a room of %d", m, room)
				}
			}
		}
	}
}

func FuzzBlosclz(f *testing.F) {
	var e lzEncoder
	dst := make([]byte, 10_000)
	f.Add(bytes.Clone(dst[:e.match(dst, ramp(3000), 0)]), 3000)
	f.Add([]byte{0x20, 1, 0xff, 255, 3, 255, 0, 0, 1, 2}, 400)
	f.Fuzz(func(t *testing.T, stream []byte, room int) {
		if room >= 0 && room < 1<<16 {
			checkBlosclz(t, stream, room)
		}
	})
}
