package filter

import (
	"encoding/binary"
	"encoding/json"
	"math"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/zarr/dtype"
)

// astypeCodec is numcodecs' "astype": the same numbers in another type, as
// numpy converts them.
type astypeCodec struct {
	decoded, encoded dtype.Type
	from, to         number
}

func parseAsType(c codecs.Config) (codecs.Codec, error) {
	f := c.Fields()
	f.Require("encode_dtype", "decode_dtype")
	a := &astypeCodec{}
	a.decoded, a.from = numpyType(f, "decode_dtype", dtype.Type{})
	a.encoded, a.to = numpyType(f, "encode_dtype", dtype.Type{})
	return a, f.Err()
}

func (a *astypeCodec) Config() json.RawMessage {
	return codecs.Object("encode_dtype", printNumpy(a.encoded), "decode_dtype", printNumpy(a.decoded))
}

func (a *astypeCodec) Bind(in codecs.Rep) (codecs.Stage, codecs.Rep, error) {
	return bindElements("astype", in, a.decoded, a.encoded, a)
}

func (a *astypeCodec) encode(dst, src []byte) error {
	convert(dst, src, a.to, a.from)
	return nil
}

func (a *astypeCodec) decode(dst, src []byte) error {
	convert(dst, src, a.from, a.to)
	return nil
}

// convert converts elements of type from to the type to as C does.
func convert(dst, src []byte, to, from number) {
	switch {
	case to == from:
		copy(dst, src)
	case from == uint64s && to == float32s:
		// By way of float64 it would be rounded twice.
		for ; len(src) >= 8; dst, src = dst[4:], src[8:] {
			v := float32(binary.LittleEndian.Uint64(src))
			binary.LittleEndian.PutUint32(dst, math.Float32bits(v))
		}
	case from.isFloat() || from == uint64s && to.isFloat():
		eachFloats(dst, src, to, from, func([]float64) {})
	default:
		eachInts(dst, src, to, from, func([]int64) {})
	}
}
