package kernels

import (
	"bytes"
	"fmt"
	"hash/adler32"
	"math/rand/v2"
	"testing"
)

var sizes = []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 15, 16, 17, 20, 24, 31, 32, 33, 64, 100, 255}

// counts are numbers of elements around every step that a loop takes.
var counts = []int{0, 1, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 255, 256, 257, 511, 512, 513, 520, 767, 1023, 1024, 1100}

func random(seed uint64, n int) []byte {
	r := rand.New(rand.NewPCG(seed, 1))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

// The definitions, one byte and one bit at a time.

func shuffleByDefinition(src []byte, size int) []byte {
	out := bytes.Clone(src)
	n := len(src) / size
	for i := range n {
		for j := range size {
			out[j*n+i] = src[i*size+j]
		}
	}
	return out
}

func bitShuffleByDefinition(src []byte, size int) []byte {
	out := bytes.Clone(src)
	n := len(src) / size / 8 * 8
	clear(out[:n*size])
	for i := range n {
		for j := range size {
			for k := range 8 {
				if src[i*size+j]>>k&1 != 0 {
					out[(8*j+k)*(n/8)+i/8] |= 1 << (i % 8)
				}
			}
		}
	}
	return out
}

// guarded returns a slice of n bytes with a zone behind it, and a function
// that reports whether the zone is untouched.
func guarded(n int) ([]byte, func() bool) {
	b := bytes.Repeat([]byte{0xa5}, n+64)
	return b[:n], func() bool { return bytes.Equal(b[n:n+64], bytes.Repeat([]byte{0xa5}, 64)) }
}

func checkTransform(t *testing.T, arch, name string, src []byte, size int, want []byte, forward, back func(dst, src []byte, size int)) {
	t.Helper()
	got, intact := guarded(len(src))
	forward(got, src, size)
	if !bytes.Equal(got, want) || !intact() {
		t.Fatalf("%s: %s of %d bytes, size %d: wrong (intact %v)", arch, name, len(src), size, intact())
	}
	undone, intact := guarded(len(src))
	back(undone, want, size)
	if !bytes.Equal(undone, src) || !intact() {
		t.Fatalf("%s: un%s of %d bytes, size %d: wrong (intact %v)", arch, name, len(src), size, intact())
	}
}

func TestShuffle(t *testing.T) {
	eachArch(func(arch string) {
		for _, size := range sizes {
			for _, n := range counts {
				src := random(uint64(n), n*size+(n+size)%size)
				checkTransform(t, arch, "shuffle", src, size, shuffleByDefinition(src, size), Shuffle, Unshuffle)
				checkTransform(t, arch, "bitshuffle", src, size, bitShuffleByDefinition(src, size), BitShuffle, BitUnshuffle)
			}
		}
	})
}

func FuzzShuffle(f *testing.F) {
	f.Add([]byte{}, 1)
	f.Add(random(1, 700), 4)
	f.Add(random(2, 5000), 16)
	f.Add(random(3, 999), 12)
	f.Fuzz(func(t *testing.T, src []byte, size int) {
		if size < 1 || size > 300 {
			return
		}
		eachArch(func(arch string) {
			checkTransform(t, arch, "shuffle", src, size, shuffleByDefinition(src, size), Shuffle, Unshuffle)
			checkTransform(t, arch, "bitshuffle", src, size, bitShuffleByDefinition(src, size), BitShuffle, BitUnshuffle)
		})
	})
}

func TestSwap(t *testing.T) {
	eachArch(func(arch string) {
		for _, size := range []int{1, 2, 4, 8} {
			for n := range 300 {
				src := random(uint64(n), n)
				want := bytes.Clone(src)
				for i := 0; i+size <= n; i += size {
					for j := range size {
						want[i+j] = src[i+size-1-j]
					}
				}
				got, intact := guarded(n)
				Swap(got, src, size)
				if !bytes.Equal(got, want) || !intact() {
					t.Fatalf(arch+": swap of %d bytes, size %d: wrong", n, size)
				}
				Swap(src, src, size)
				if !bytes.Equal(src, want) {
					t.Fatalf(arch+": swap in place of %d bytes, size %d: wrong", n, size)
				}
			}
		}
	})
}

func TestAdler32(t *testing.T) {
	eachArch(func(arch string) {
		for _, n := range []int{0, 1, 31, 32, 33, 1000, adlerRun - 1, adlerRun, adlerRun + 1, 5552, 100_000} {
			for _, p := range [][]byte{random(uint64(n), n), bytes.Repeat([]byte{255}, n)} {
				if got, want := Adler32(1, p), adler32.Checksum(p); got != want {
					t.Fatalf(arch+": adler32 of %d bytes: %08x, want %08x", n, got, want)
				}
				half := Adler32(Adler32(1, p[:n/3]), p[n/3:])
				if want := adler32.Checksum(p); half != want {
					t.Fatalf(arch+": adler32 of %d bytes in two parts: %08x, want %08x", n, half, want)
				}
				// The worst sums to start from.
				worst := uint32(adlerMod-1)<<16 | (adlerMod - 1)
				a, b := uint64(adlerMod-1), uint64(adlerMod-1)
				for _, c := range p {
					a = (a + uint64(c)) % adlerMod
					b = (b + a) % adlerMod
				}
				if got, want := Adler32(worst, p), uint32(b<<16|a); got != want {
					t.Fatalf(arch+": adler32 of %d bytes from the largest sums: %08x, want %08x", n, got, want)
				}
			}
		}
	})
}

func TestIsRepeat(t *testing.T) {
	for _, n := range []int{0, 1, 2, 3, 4, 5, 63, 64, 65, 200, 1000} {
		for _, pattern := range [][]byte{{}, {0}, {1, 2}, {1, 2, 3}, {0, 0, 0, 9}, random(5, 70)} {
			b := make([]byte, n)
			for i := range b {
				if len(pattern) > 0 {
					b[i] = pattern[i%len(pattern)]
				}
			}
			if got, want := IsRepeat(b, pattern), n == 0 || len(pattern) > 0; got != want {
				t.Errorf("IsRepeat of %d bytes, pattern of %d: %v", n, len(pattern), got)
			}
			for i := range b {
				b[i] ^= 0x80
				if IsRepeat(b, pattern) {
					t.Errorf("IsRepeat of %d bytes, pattern of %d, byte %d changed: true", n, len(pattern), i)
				}
				b[i] ^= 0x80
			}
		}
	}
}

func TestMisuse(t *testing.T) {
	for name, f := range map[string]func(){
		"size 0":    func() { Shuffle(nil, nil, 0) },
		"short dst": func() { Unshuffle(make([]byte, 7), make([]byte, 8), 2) },
		"bits":      func() { BitShuffle(make([]byte, 8), make([]byte, 8), -1) },
		"swap 3":    func() { Swap(make([]byte, 9), make([]byte, 9), 3) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			f()
		})
	}
}

func BenchmarkKernels(b *testing.B) {
	type kernel struct {
		name string
		f    func(dst, src []byte, size int)
	}
	for _, length := range []int{128 << 10, 2 << 20} {
		src, dst := random(1, length), make([]byte, length)
		for _, k := range []kernel{{"Shuffle", Shuffle}, {"Unshuffle", Unshuffle}, {"BitShuffle", BitShuffle}, {"BitUnshuffle", BitUnshuffle}} {
			for _, size := range []int{2, 4, 8, 16, 12} {
				b.Run(fmt.Sprintf("%s/size=%d/%dK", k.name, size, length>>10), func(b *testing.B) {
					b.SetBytes(int64(length))
					b.ReportAllocs()
					for b.Loop() {
						k.f(dst, src, size)
					}
				})
			}
		}
		b.Run(fmt.Sprintf("Swap/size=4/%dK", length>>10), func(b *testing.B) {
			b.SetBytes(int64(length))
			for b.Loop() {
				Swap(dst, src, 4)
			}
		})
		b.Run(fmt.Sprintf("Adler32/%dK", length>>10), func(b *testing.B) {
			b.SetBytes(int64(length))
			for b.Loop() {
				Adler32(1, src)
			}
		})
		zero := make([]byte, length)
		b.Run(fmt.Sprintf("IsRepeat/%dK", length>>10), func(b *testing.B) {
			b.SetBytes(int64(length))
			for b.Loop() {
				if !IsRepeat(zero, zero[:4]) {
					b.Fatal()
				}
			}
		})
	}
}
