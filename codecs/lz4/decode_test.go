package lz4

import (
	"bytes"
	"encoding/binary"
	"io"
	"math/rand/v2"
	"testing"
	"testing/iotest"

	library "github.com/pierrec/lz4/v4"
)

// agree decodes a block in all ways and compares the results. Nothing may be written behind
// the room.
func agree(t testing.TB, src []byte, room int) {
	t.Helper()
	src = src[:len(src):len(src)]
	want := make([]byte, room)
	n, err := library.UncompressBlock(src, want)
	if err != nil {
		n = 0
	}
	out, e := io.ReadAll(io.LimitReader(NewReader(iotest.OneByteReader(bytes.NewReader(src))), int64(room)+1))
	if ok := e == nil && len(out) <= room; ok != (err == nil) || ok && !bytes.Equal(out, want[:n]) {
		t.Fatalf("NewReader: a block of %d bytes in %d: %d bytes, %v; should be %d bytes, %v; or they differ", len(src), room, len(out), e, n, err)
	}
	for name, decode := range map[string]func(dst, src []byte) (int, error){
		"Decode":   Decode,
		"plain Go": func(dst, src []byte) (int, error) { return sequences(dst, src, false) },
	} {
		buf := bytes.Repeat([]byte{0xaa}, room+96)
		m, e := decode(buf[:room:room], src)
		if m != n || (e == nil) != (err == nil) || !bytes.Equal(buf[:n], want[:n]) {
			t.Fatalf("%s: a block of %d bytes in %d: %d bytes, %v; should be %d bytes, %v; or they differ", name, len(src), room, m, e, n, err)
		}
		if !bytes.Equal(buf[room:], bytes.Repeat([]byte{0xaa}, 96)) {
			t.Fatalf("%s: a block of %d bytes in %d: wrote behind it", name, len(src), room)
		}
	}
}

// sequence appends a sequence to a block.
func sequence(block, literals []byte, distance, match int) []byte {
	nibble := func(n int) byte { return byte(min(n, 15)) }
	rest := func(n int) {
		if n -= 15; n >= 0 {
			for ; n >= 255; n -= 255 {
				block = append(block, 255)
			}
			block = append(block, byte(n))
		}
	}
	block = append(block, nibble(len(literals))<<4|nibble(match-minMatch))
	rest(len(literals))
	block = append(block, literals...)
	block = binary.LittleEndian.AppendUint16(block, uint16(distance))
	rest(match - minMatch)
	return block
}

// Every distance with every length of a match, behind literals of every length.
func TestDecodeMatches(t *testing.T) {
	r := rand.New(rand.NewPCG(21, 22))
	noise := make([]byte, 70<<10)
	for i := range noise {
		noise[i] = byte(r.Uint32())
	}
	for distance := range 40 {
		for match := minMatch; match < 600; match++ {
			lits := noise[:distance+r.IntN(300)]
			block := sequence(nil, lits, distance, match)
			size := len(lits) + match
			for range 30 {
				n, m := r.IntN(40), minMatch+r.IntN(40)
				block = sequence(block, noise[:n], 1+r.IntN(size), m)
				size += n + m
			}
			block = append(block, 5<<4, 1, 2, 3, 4, 5)
			agree(t, block, size+5)
			if match%50 == 0 {
				agree(t, block, size+4)
				agree(t, block, size+200)
			}
		}
	}
	for n := range len(noise) {
		if n > 600 && n%997 != 0 {
			continue
		}
		block := sequence(nil, noise[:n], max(1, min(n, 65535)), 20)
		block = sequence(block, noise[:200], 1, 70000)
		block = append(sequence(block, nil, 65535, 300), 0)
		agree(t, block, n+20+200+70000+300)
	}
}

// Blocks of real data, whole, cut short and damaged.
func TestDecodeDamaged(t *testing.T) {
	r := rand.New(rand.NewPCG(23, 24))
	var e Encoder
	for i := range 3000 {
		src := mixed(r, r.IntN(3000))
		block := make([]byte, Bound(len(src)))
		block = block[:e.Encode(block, src, 1)]
		agree(t, block, len(src))
		agree(t, block, r.IntN(len(src)+100))
		agree(t, block[:r.IntN(len(block)+1)], len(src))
		for range 1 + i%3 {
			if len(block) > 0 {
				block[r.IntN(len(block))] = byte(r.Uint32())
			}
		}
		agree(t, block, len(src))
		agree(t, block, 2*len(src)+300)
	}
	agree(t, nil, 0)
	agree(t, nil, 10)
}

// Output that is longer than what the assembly may do without a pause.
func TestDecodeLong(t *testing.T) {
	r := rand.New(rand.NewPCG(25, 26))
	src := mixed(r, 9<<20)
	var e Encoder
	block := make([]byte, Bound(len(src)))
	block = block[:e.Encode(block, src, 1)]
	agree(t, block, len(src))
}

func FuzzDecode(f *testing.F) {
	r := rand.New(rand.NewPCG(27, 28))
	var e Encoder
	for _, n := range []int{0, 1, 20, 300, 5000} {
		block := make([]byte, Bound(n))
		f.Add(block[:e.Encode(block, mixed(r, n), 1)], uint16(n))
	}
	f.Fuzz(func(t *testing.T, block []byte, room uint16) { agree(t, block, int(room)) })
}

// Many blocks in turn: a processor learns the branches of one that is repeated.
func BenchmarkDecode(b *testing.B) {
	const size, count = 16 << 10, 2048
	r := rand.New(rand.NewPCG(29, 30))
	var e Encoder
	var blocks [count][]byte
	for k := range blocks {
		src := make([]byte, size)
		for i := range src {
			// A byte of a smooth field with noise below.
			src[i] = byte(i>>9) + byte(r.Uint32()>>r.IntN(8)&3)
		}
		blocks[k] = make([]byte, Bound(size))
		blocks[k] = blocks[k][:e.Encode(blocks[k], src, 5)]
	}
	dst := make([]byte, size)
	for _, who := range []struct {
		name   string
		decode func(src []byte) (int, error)
	}{
		{"own", func(src []byte) (int, error) { return Decode(dst, src) }},
		{"generic", func(src []byte) (int, error) { return sequences(dst, src, false) }},
		{"library", func(src []byte) (int, error) { return library.UncompressBlock(src, dst) }},
	} {
		b.Run(who.name, func(b *testing.B) {
			b.SetBytes(size * count)
			b.ReportAllocs()
			for b.Loop() {
				for _, block := range blocks {
					if n, err := who.decode(block); n != size || err != nil {
						b.Fatal(n, err)
					}
				}
			}
		})
	}
}
