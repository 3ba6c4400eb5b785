package pco

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
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
