package zstd

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	library "github.com/klauspost/compress/zstd"

	"github.com/zarrdb/zarrdb/codecs/internal/bytestest"
	"github.com/zarrdb/zarrdb/internal/must"
)

// mixed returns n bytes, some of which can be encoded shorter.
func mixed(r *rand.Rand, n int) []byte { return bytestest.Mixed(r, n, 16) }

// floats returns n measured values, rounded.
func floats(n int) []byte {
	r := rand.New(rand.NewPCG(7, 0))
	b := make([]byte, 0, 4*n)
	for i := range n {
		v := 20*math.Sin(float64(i)/700) + r.NormFloat64()*.05
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(math.Round(v*1000)/1000)))
	}
	return b
}

// planes returns the bytes of floats by significance, as they are shuffled.
func planes(b []byte) []byte {
	out := make([]byte, 0, len(b))
	for k := range 4 {
		for i := k; i < len(b); i += 4 {
			out = append(out, b[i])
		}
	}
	return out
}

func decoder(t testing.TB) *library.Decoder {
	d := must.Get(library.NewReader(nil, library.WithDecoderConcurrency(1), library.WithDecoderMaxMemory(MaxBytes)))(t)
	t.Cleanup(d.Close)
	return d
}

// check encodes with an encoder that was used before and with a new one, and
// decodes.
func check(t testing.TB, d *library.Decoder, e *Encoder, src []byte) {
	t.Helper()
	out := e.Encode([]byte("before"), src)
	if !bytes.HasPrefix(out, []byte("before")) {
		t.Fatal("what was there is gone")
	}
	out = out[len("before"):]
	// The twin in plain Go, and no tables that were used before.
	if fresh := (&Encoder{plain: true}).Encode(nil, src); !bytes.Equal(fresh, out) {
		t.Fatalf("%d bytes: a new encoder in plain Go makes %d bytes, a used one %d; or they differ", len(src), len(fresh), len(out))
	}
	if most := len(src) + 9 + blockHeader*(1+len(src)/blockBytes); len(out) > most {
		t.Fatalf("%d bytes become %d, more than %d", len(src), len(out), most)
	}
	var h library.Header
	if err := h.Decode(out); err != nil || !h.HasFCS || h.FrameContentSize != uint64(len(src)) || h.HasCheckSum || !h.SingleSegment {
		t.Fatalf("%d bytes: header %+v, error %v", len(src), h, err)
	}
	got, err := d.DecodeAll(out, nil)
	if err != nil || !bytes.Equal(got, src) {
		t.Fatalf("%d bytes, encoded %d, decode to %d, error %v; or they differ", len(src), len(out), len(got), err)
	}
}

func TestEncode(t *testing.T) {
	var e Encoder
	d := decoder(t)
	r := rand.New(rand.NewPCG(1, 2))
	for n := range 300 {
		check(t, d, &e, mixed(r, n))
	}
	for _, n := range []int{
		511, 512, 1 << 12, 256 + 1<<16 - 1, 256 + 1<<16,
		blockBytes - 1, blockBytes, blockBytes + 1, blockBytes + blockTail, 3*blockBytes + 5, 1 << 20,
	} {
		check(t, d, &e, mixed(r, n))
		noise := make([]byte, n)
		for i := range noise {
			noise[i] = byte(r.Uint32())
		}
		check(t, d, &e, noise)
		check(t, d, &e, make([]byte, n))
		check(t, d, &e, planes(floats(n/4)))
	}
	// The longest runs of literals and matches that codes can tell, in a block
	// that is not all the same.
	long := make([]byte, 2*blockBytes)
	for i := range blockBytes {
		long[i] = byte(r.Uint32())
	}
	long[len(long)-1] = 1
	check(t, d, &e, long)
	check(t, d, &e, append(long[blockBytes:], long...))
}

// Two blocks of noise with the same distance between their matches: what a block
// that is stored as it is used lately is not known to the next.
func TestStoredBlockKeepsDistances(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	src := make([]byte, 3*blockBytes)
	for i := range src {
		src[i] = byte(r.Uint32())
	}
	for b := range 3 {
		for i := range 40 {
			at := b*blockBytes + 1000 + 3000*i
			copy(src[at:at+5+i%3], src[at-700:])
		}
	}
	var e Encoder
	d := decoder(t)
	check(t, d, &e, src)
	copy(src[blockBytes:], bytes.Repeat(src[:600], blockBytes/600))
	check(t, d, &e, src)
}

// As many sequences in a block as there can be: their number has three forms.
func TestManySequences(t *testing.T) {
	var e Encoder
	d := decoder(t)
	r := rand.New(rand.NewPCG(8, 9))
	words := make([][4]byte, 512)
	for i := range words {
		binary.LittleEndian.PutUint32(words[i][:], r.Uint32())
	}
	src := make([]byte, 0, blockBytes)
	for len(src) < blockBytes {
		w := words[r.IntN(len(words))]
		src = append(src, w[:]...)
	}
	check(t, d, &e, src)
	if len(e.seqs) < 0x7f00/2 {
		t.Errorf("only %d sequences", len(e.seqs))
	}
	for _, n := range []int{700, 3000, 20000} {
		check(t, d, &e, src[:n])
	}
}

// The sums are exact, no symbol that occurs is lost, and the sizes are what they
// cost.
func TestNormalize(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 20000 {
		kinds := 2 + r.IntN(maxSymbols-2)
		counts := make([]uint32, maxSymbols)
		total := 0
		for _, s := range r.Perm(maxSymbols)[:kinds] {
			counts[s] = 1 + uint32(r.IntN(1<<r.IntN(15)))
			total += int(counts[s])
		}
		norm := make([]int16, maxSymbols)
		log := uint(7 + r.IntN(3))
		normalize(norm, counts, total, log)
		sum := 0
		for s, n := range norm {
			if (n > 0) != (counts[s] > 0) {
				t.Fatalf("symbol %d of %d: %d in %d states", s, counts[s], n, 1<<log)
			}
			sum += int(n)
		}
		if sum != 1<<log {
			t.Fatalf("%v: sum %d, should be %d", counts, sum, 1<<log)
		}
	}
}

// TestRatio compares with the library that does the other levels.
func TestRatio(t *testing.T) {
	raw := floats(1 << 18)
	for _, c := range []struct {
		name  string
		data  []byte
		times float64
	}{{"floats", raw, 1}, {"shuffled floats", planes(raw), 1}, {"shuffled block", planes(raw[:blockBytes]), 1}} {
		own, theirs := len(new(Encoder).Encode(nil, c.data)), len(libraryEncoder(t).EncodeAll(c.data, nil))
		if float64(own) > c.times*float64(theirs) {
			t.Errorf("%s: %d bytes, the library makes %d", c.name, own, theirs)
		}
	}
}

func libraryEncoder(t testing.TB) *library.Encoder {
	e := must.Get(library.NewWriter(nil, library.WithEncoderConcurrency(1), library.WithEncoderCRC(false),
		library.WithAllLitEntropyCompression(true), library.WithSingleSegment(true), library.WithLowerEncoderMem(true)))(t)
	return e
}

func FuzzEncode(f *testing.F) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, n := range []int{0, 1, 31, 32, 255, 256, 5000, 70000} {
		f.Add(mixed(r, n), uint16(0))
	}
	f.Add(mixed(r, 3000), uint16(40))
	d := decoder(f)
	var e Encoder
	f.Fuzz(func(t *testing.T, part []byte, times uint16) {
		// Longer input than a fuzzer makes, at other distances.
		src := bytes.Clone(part)
		for i := 0; i < int(times) && len(part) > 0 && len(src) < 300<<10; i++ {
			src = append(src, part[i%len(part):]...)
		}
		check(t, d, &e, src)
	})
}

func BenchmarkEncode(b *testing.B) {
	raw := floats(1 << 19)
	for _, c := range []struct {
		name string
		data []byte
	}{{"floats", raw}, {"shuffled", planes(raw[:blockBytes])}} {
		var e Encoder
		plain := Encoder{plain: true}
		l := libraryEncoder(b)
		for _, who := range []struct {
			name   string
			encode func(dst []byte) []byte
		}{
			{"own", func(dst []byte) []byte { return e.Encode(dst, c.data) }},
			{"generic", func(dst []byte) []byte { return plain.Encode(dst, c.data) }},
			{"library", func(dst []byte) []byte { return l.EncodeAll(c.data, dst) }},
		} {
			b.Run(fmt.Sprintf("%s/%s", c.name, who.name), func(b *testing.B) {
				var dst []byte
				b.SetBytes(int64(len(c.data)))
				b.ReportAllocs()
				for b.Loop() {
					dst = who.encode(dst[:0])
				}
				b.ReportMetric(float64(len(c.data))/float64(len(dst)), "ratio")
			})
		}
	}
}
