package inflate

import (
	"bytes"
	"compress/flate"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"testing"

	kpflate "github.com/klauspost/compress/flate"
	"github.com/zarrdb/zarrdb/internal/must"
)

// waves is float32 data as measurements are: smooth with noise, rounded to
// three decimals; with shuffle true its bytes are shuffled.
func waves(n int, shuffle bool) []byte {
	r := rand.New(rand.NewPCG(1, 2))
	out := make([]byte, 4*n)
	for i := range n {
		v := 10*math.Sin(float64(i)/300) + 5*math.Sin(float64(i)/37) + 0.05*r.NormFloat64()
		w := math.Float32bits(float32(math.Round(v*1000) / 1000))
		for k := range 4 {
			if shuffle {
				out[k*n+i] = byte(w >> (8 * k))
			} else {
				out[4*i+k] = byte(w >> (8 * k))
			}
		}
	}
	return out
}

// steps is a random walk of int32, which compresses well.
func steps(n int) []byte {
	r := rand.New(rand.NewPCG(3, 4))
	out := make([]byte, 4*n)
	v := uint32(0)
	for i := range n {
		v += uint32(r.IntN(5) - 2)
		for k := range 4 {
			out[4*i+k] = byte(v >> (8 * k))
		}
	}
	return out
}

func noise(n int) []byte {
	r := rand.New(rand.NewPCG(5, 6))
	out := make([]byte, n)
	for i := range out {
		out[i] = byte(r.Uint32())
	}
	return out
}

// classes has few values, most of them rare: short codes, joined literals.
func classes(n int) []byte {
	r := rand.New(rand.NewPCG(7, 8))
	out := make([]byte, n)
	for i := range out {
		out[i] = byte(min(r.ExpFloat64()*2, 200))
	}
	return out
}

type sample struct {
	name string
	data []byte
}

func samples(n int) []sample {
	return []sample{
		{"empty", nil},
		{"one", []byte{7}},
		{"waves", waves(n/4, false)},
		{"shuffled", waves(n/4, true)},
		{"steps", steps(n / 4)},
		{"noise", noise(n)},
		{"classes", classes(n)},
		{"zeros", make([]byte, n)},
		{"period 3", bytes.Repeat([]byte{1, 2, 3}, n/3)},
		{"period 7", bytes.Repeat([]byte{1, 2, 3, 4, 5, 6, 7}, n/7)},
		{"period 11", bytes.Repeat([]byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, n/11)},
		{"far", append(append(noise(1000), make([]byte, 31_000)...), noise(1000)...)},
	}
}

// deflate compresses with the standard library, or with klauspost's for levels
// from 100 on, which divides blocks in other ways.
func deflate(t testing.TB, data []byte, level int) []byte {
	t.Helper()
	var b bytes.Buffer
	var w io.WriteCloser
	var err error
	if level >= 100 {
		w, err = kpflate.NewWriter(&b, level-100)
	} else {
		w, err = flate.NewWriter(&b, level)
	}
	if err == nil {
		_, err = w.Write(data)
	}
	if err == nil {
		err = w.Close()
	}
	must.Do(t, err)
	return b.Bytes()
}

var levels = []int{flate.HuffmanOnly, 0, 1, 5, 101, 107}

func TestInflate(t *testing.T) {
	eachArch(func(arch string) {
		for _, s := range samples(60_000) {
			for _, level := range levels {
				checkInflate(t, fmt.Sprintf("%s, %s, level %d", arch, s.name, level), s.data, deflate(t, s.data, level))
			}
		}
	})
}

// checkInflate decodes into slices of different room.
func checkInflate(t *testing.T, name string, data, packed []byte) {
	t.Helper()
	want := append([]byte("before"), data...)
	for _, room := range []int{0, 1000, len(data), len(data) + 5000} {
		dst := append(make([]byte, 0, room+6), "before"...)
		behind := bytes.Repeat([]byte{0xa5}, cap(dst)-len(dst))
		copy(dst[len(dst):cap(dst)], behind)
		out, n, err := Inflate(dst, append(bytes.Clone(packed), "behind"...), int64(len(data)))
		if err != nil || n != len(packed) || !bytes.Equal(out, want) {
			t.Fatalf("%s, room %d: %d bytes from %d of %d, error %v; or the bytes are wrong", name, room, len(out), n, len(packed), err)
		}
		if room > len(data) && !bytes.Equal(out[len(want):cap(out)], behind[len(data):]) {
			t.Fatalf("%s, room %d: bytes beyond the allowed ones were touched", name, room)
		}
		if room >= len(data) && &out[0] != &dst[0] {
			t.Fatalf("%s, room %d: moved though there was room", name, room)
		}
	}
	if len(data) == 0 {
		return
	}
	dst := []byte("before")
	if out, _, err := Inflate(dst, packed, int64(len(data)-1)); !errors.Is(err, errTooLarge) || !bytes.Equal(out, dst) {
		t.Fatalf("%s, one byte too little: %v", name, err)
	}
}

// TestTruncated cuts streams at every byte.
func TestTruncated(t *testing.T) {
	for _, s := range samples(1500) {
		for _, level := range levels {
			packed := deflate(t, s.data, level)
			for n := range packed {
				if _, _, err := Inflate(nil, packed[:n], 1<<20); !errors.Is(err, errCorrupt) {
					t.Fatalf("%s, level %d, %d of %d bytes: %v", s.name, level, n, len(packed), err)
				}
			}
		}
	}
}

// compare decodes with every loop, with and without room for the output, and
// with the standard library.
func compare(t *testing.T, packed []byte) {
	t.Helper()
	const limit = 1 << 16
	r := bytes.NewReader(packed)
	want, wantErr := io.ReadAll(io.LimitReader(flate.NewReader(r), limit+1))
	consumed := len(packed) - r.Len()
	eachArch(func(arch string) {
		for _, room := range []int{0, len(want), limit} {
			out, n, err := Inflate(make([]byte, 0, room), packed, limit)
			switch {
			case len(want) > limit:
				if err == nil {
					t.Fatalf("%s: more than %d bytes without an error", arch, limit)
				}
			case (err == nil) != (wantErr == nil):
				t.Fatalf("%s, room %d: error %v, the standard library's %v, for %x", arch, room, err, wantErr, packed)
			case err == nil && (!bytes.Equal(out, want) || n != consumed):
				t.Fatalf("%s, room %d: %d bytes from %d, the standard library %d from %d, or they differ, for %x", arch, room, len(out), n, len(want), consumed, packed)
			}
		}
	})
}

func TestDamaged(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	for _, s := range samples(2000) {
		for _, level := range levels {
			packed := deflate(t, s.data, level)
			for range 30 {
				bad := bytes.Clone(packed)
				for range 1 + r.IntN(3) {
					bad[r.IntN(len(bad))] ^= 1 << r.IntN(8)
				}
				compare(t, bad)
			}
		}
	}
}

// TestOddCodes decodes streams such as no encoder writes: random codes with
// lengths up to 15 bits, incomplete ones, symbols that do not exist.
func TestOddCodes(t *testing.T) {
	for seed := range uint64(400) {
		compare(t, oddStream(seed))
	}
}

func FuzzInflate(f *testing.F) {
	for _, s := range samples(400) {
		for _, level := range levels {
			f.Add(deflate(f, s.data, level))
		}
	}
	for seed := range uint64(20) {
		f.Add(oddStream(seed))
	}
	f.Fuzz(compare)
}

func BenchmarkInflate(b *testing.B) {
	for _, s := range []sample{{"waves", waves(1<<19, false)}, {"shuffled", waves(1<<19, true)}, {"steps", steps(1 << 19)}, {"classes", classes(2 << 20)}, {"zeros", make([]byte, 2<<20)}} {
		packed := deflate(b, s.data, 5)
		dst := make([]byte, 0, len(s.data))
		run := func(name string, f func()) {
			b.Run(s.name+"/"+name, func(b *testing.B) {
				b.SetBytes(int64(len(s.data)))
				b.ReportAllocs()
				for b.Loop() {
					f()
				}
			})
		}
		eachArch(func(arch string) {
			run(arch, func() {
				if _, _, err := Inflate(dst, packed, int64(len(s.data))); err != nil {
					b.Fatal(err)
				}
			})
		})
		in := bytes.NewReader(packed)
		out := bytes.NewBuffer(dst)
		kp := kpflate.NewReader(in)
		run("klauspost", func() {
			in.Reset(packed)
			out.Reset()
			must.Do(b, kp.(kpflate.Resetter).Reset(in, nil))
			if _, err := io.Copy(out, kp); err != nil {
				b.Fatal(err)
			}
		})
	}
}
