package pco

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"github.com/zarrdb/zarrdb/internal/must"
	"math"
	"math/rand/v2"
	"testing"
)

// numbers are n of them, of a kind.
var kinds = map[string]func(r *rand.Rand, n int) []int64{
	"constant": func(r *rand.Rand, n int) []int64 {
		s := make([]int64, n)
		c := r.Int64()
		for i := range s {
			s[i] = c
		}
		return s
	},
	"random": func(r *rand.Rand, n int) []int64 {
		s := make([]int64, n)
		for i := range s {
			s[i] = int64(r.Uint64())
		}
		return s
	},
	"walk": func(r *rand.Rand, n int) []int64 {
		s := make([]int64, n)
		at := int64(-50)
		for i := range s {
			at += r.Int64N(21) - 10
			s[i] = at
		}
		return s
	},
	"few": func(r *rand.Rand, n int) []int64 {
		s := make([]int64, n)
		for i := range s {
			s[i] = []int64{0, 0, 0, -1, 77, math.MinInt64, math.MaxInt64}[r.IntN(7)]
		}
		return s
	},
	"outliers": func(r *rand.Rand, n int) []int64 {
		s := make([]int64, n)
		for i := range s {
			s[i] = int64(r.NormFloat64() * 100)
			if r.IntN(200) == 0 {
				s[i] = int64(r.Uint64())
			}
		}
		return s
	},
}

// pack makes little-endian numbers of the lowest bytes.
func pack(s []int64, t Type) []byte {
	var out []byte
	for _, v := range s {
		out = append(out, binary.LittleEndian.AppendUint64(nil, uint64(v))[:t.Size()]...)
	}
	return out
}

// TestRoundTrip encodes all kinds of numbers in all ways.
func TestRoundTrip(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	for typ := Uint32; typ <= Int8; typ++ {
		for kind, make := range kinds {
			for _, n := range []int{0, 1, 2, 7, 8, 255, 256, 257, 1500, 9001} {
				p := Params{Level: r.IntN(13), Delta: r.IntN(9) - 1, PageSize: []int{0, 0, 1, 300, 4000}[r.IntN(5)]}
				if n > 2000 && p.PageSize == 1 {
					p.PageSize = 0
				}
				src := pack(make(r, n), typ)
				name := fmt.Sprintf("%v, %d %s numbers, %+v", typ, n, kind, p)
				enc, err := Encode([]byte("x"), src, typ, p)
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				if most := MaxSize(int64(len(src)), typ, p); int64(len(enc)-1) > most {
					t.Errorf("%s: %d bytes, more than %d", name, len(enc)-1, most)
				}
				got, err := Decode(nil, enc[1:], typ, int64(len(src)))
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				if !bytes.Equal(got, src) {
					t.Fatalf("%s: comes back as other numbers", name)
				}
			}
		}
	}
}

// TestRatio makes sure that what compresses well does.
func TestRatio(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	const n = 1 << 16
	for _, c := range []struct {
		kind string
		bits float64 // per number, at most
	}{
		{"constant", 0.01},
		{"walk", 4.5},      // log2(21) is 4.39
		{"few", 2.9},       // the entropy is 2.13
		{"outliers", 9.3},  // a normal distribution of that width has 8.69, and 64 / 200 more
		{"random", 64.004}, // and no more than a header
	} {
		src := pack(kinds[c.kind](r, n), Int64)
		enc := must.Get(Encode(nil, src, Int64, Params{Level: 8, Delta: Auto}))(t)
		if got := 8 * float64(len(enc)) / n; got > c.bits {
			t.Errorf("%s: %.3f bits per number, want %.3f", c.kind, got, c.bits)
		}
	}
}

// TestParams: nothing out of range is taken.
func TestParams(t *testing.T) {
	for _, p := range []Params{{Level: -1}, {Level: 13}, {Delta: -2}, {Delta: 8}} {
		if out, err := Encode([]byte("x"), make([]byte, 8), Int32, p); err == nil || string(out) != "x" {
			t.Errorf("%+v: %q, %v", p, out, err)
		}
	}
	if _, err := Encode(nil, make([]byte, 7), Int32, Params{}); err == nil {
		t.Error("7 bytes are encoded as int32")
	}
}

// TestSort compares with what sorting means.
func TestSort(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 6))
	for _, n := range []int{0, 1, 100, 512, 5000} {
		for _, mask := range []uint64{0, 0xff, 0xff00ff, math.MaxUint64} {
			a := make([]uint64, n)
			count := map[uint64]int{}
			for i := range a {
				a[i] = r.Uint64()&mask | 1<<40
				count[a[i]]++
			}
			sortUint64(a, make([]uint64, n))
			for i, v := range a {
				count[v]--
				if i > 0 && a[i-1] > v {
					t.Fatalf("%d numbers, mask %x: %d before %d", n, mask, a[i-1], v)
				}
			}
			for v, c := range count {
				if c != 0 {
					t.Fatalf("%d numbers, mask %x: %d of %d left", n, mask, c, v)
				}
			}
		}
	}
}

// TestDecimals: decimal floats are split, and whatever else is among them comes
// back bit by bit.
func TestDecimals(t *testing.T) {
	r := rand.New(rand.NewPCG(12, 12))
	odd := []float64{0, math.Copysign(0, -1), math.NaN(), math.Inf(1), math.Inf(-1), 1e300, -1e300, 1e-300, 5e-324, 0.1 + 0.2, 1 << 60}
	for _, typ := range []Type{Float32, Float64} {
		for places := range 4 {
			var src []byte
			for i := range 20000 {
				v := math.Round((50+r.NormFloat64())*math.Pow10(places)) / math.Pow10(places)
				switch {
				case i%97 == 0:
					v = odd[r.IntN(len(odd))]
				case i%2 == 0:
					v = -v
				}
				if b := math.Float64bits(v); typ == Float64 {
					src = binary.LittleEndian.AppendUint64(src, b|b>>52&0x7ff/0x7ff*uint64(i))
				} else {
					src = binary.LittleEndian.AppendUint32(src, math.Float32bits(float32(v)))
				}
			}
			var size [2]int
			for i, only := range []bool{false, true} {
				enc := must.Get(Encode(nil, src, typ, Params{Level: 8, Delta: Auto, Classic: only}))(t)
				if got, err := Decode(nil, enc, typ, int64(len(src))); err != nil || !bytes.Equal(got, src) {
					t.Fatalf("%v, %d places: comes back as other numbers: %v", typ, places, err)
				}
				size[i] = len(enc)
			}
			// Of numbers without places, or with one, there are so few that bins
			// know each; then the guess may be off a little.
			if size[0]*100 > size[1]*102 || places > 1 && size[0]*10 > size[1]*9 {
				t.Errorf("%v, %d places: %d bytes, classic %d", typ, places, size[0], size[1])
			}
		}
	}
}
