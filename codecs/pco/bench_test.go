package pco

import (
	"encoding/binary"
	"fmt"
	"github.com/zarrdb/zarrdb/internal/must"
	"math"
	"math/rand/v2"
	"testing"
)

// waves are floats rounded to three decimals, or whole numbers of the same
// shape.
func waves(n int, t Type) []byte {
	r := rand.New(rand.NewPCG(7, 7))
	var out []byte
	for i := range n {
		v := 280 + 15*math.Sin(float64(i)/500) + 3*math.Cos(float64(i)/37) + r.NormFloat64()*0.2
		switch t {
		case Float32:
			out = binary.LittleEndian.AppendUint32(out, math.Float32bits(float32(math.Round(v*1000)/1000)))
		case Float64:
			out = binary.LittleEndian.AppendUint64(out, math.Float64bits(math.Round(v*1000)/1000))
		case Int32:
			out = binary.LittleEndian.AppendUint32(out, uint32(int32(v*100)))
		case Uint16:
			out = binary.LittleEndian.AppendUint16(out, uint16(v*100))
		}
	}
	return out
}

func BenchmarkDecode(b *testing.B) {
	for _, t := range []Type{Uint16, Int32, Float32, Float64} {
		src := waves(1<<18, t)
		for _, delta := range []int{0, 1} {
			enc, err := Encode(nil, src, t, Params{Level: 8, Delta: delta})
			must.Do(b, err)
			b.Run(fmt.Sprintf("%v/delta=%d", t, delta), func(b *testing.B) {
				b.SetBytes(int64(len(src)))
				b.ReportAllocs()
				out := make([]byte, 0, len(src))
				for b.Loop() {
					if _, err := Decode(out, enc, t, int64(len(src))); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(len(src))/float64(len(enc)), "ratio")
			})
		}
	}
}

func BenchmarkEncode(b *testing.B) {
	for _, t := range []Type{Uint16, Int32, Float32, Float64} {
		src := waves(1<<18, t)
		b.Run(t.String(), func(b *testing.B) {
			b.SetBytes(int64(len(src)))
			b.ReportAllocs()
			var out []byte
			for b.Loop() {
				out, _ = Encode(out[:0], src, t, Params{Level: 8, Delta: Auto})
			}
			b.ReportMetric(float64(len(src))/float64(len(out)), "ratio")
		})
	}
}
