package filter

import (
	"encoding/json"
	"fmt"
	"math"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/zarr/dtype"
)

// quantizeCodec is numcodecs' "quantize": floats rounded to as many binary
// digits behind the point as the decimal digits need, stored as astype.
type quantizeCodec struct {
	digits        int
	dtype, astype dtype.Type
	from, to      number
}

func parseQuantize(c codecs.Config) (codecs.Codec, error) {
	f := c.Fields()
	f.Require("digits", "dtype")
	q := &quantizeCodec{digits: int(f.Int("digits", 0, -300, 300))}
	q.dtype, q.from = numpyType(f, "dtype", dtype.Type{})
	q.astype, q.to = numpyType(f, "astype", q.dtype)
	switch {
	case !q.from.isFloat():
		f.Fail("dtype", "%v is not a float", q.dtype)
	case !q.to.isFloat():
		f.Fail("astype", "%v is not a float", q.astype)
	}
	return q, f.Err()
}

func (q *quantizeCodec) Config() json.RawMessage {
	return codecs.Object("digits", q.digits, "dtype", printNumpy(q.dtype), "astype", printNumpy(q.astype))
}

// ConfigV3 fails where the elements change their type: zarr-python reads the
// output of quantize as elements of dtype.
func (q *quantizeCodec) ConfigV3(codecs.Rep) (json.RawMessage, error) {
	if q.from != q.to {
		return nil, fmt.Errorf("%w: quantize to %v, which readers of v3 take for %v", codecs.ErrNoForm, q.astype, q.dtype)
	}
	return q.Config(), nil
}

var _ codecs.V3Printer = (*quantizeCodec)(nil)

func (q *quantizeCodec) Bind(in codecs.Rep) (codecs.Stage, codecs.Rep, error) {
	return bindElements("quantize", in, q.dtype, q.astype, q)
}

func (q *quantizeCodec) encode(dst, src []byte) error {
	bits := math.Ceil(math.Log2(math.Pow(10, float64(q.digits))))
	scale := q.from.round(math.Pow(2, bits))
	eachFloats(dst, src, q.to, q.from, func(block []float64) {
		for i, v := range block {
			w := q.from.round(math.RoundToEven(q.from.round(scale*v)) / scale)
			if w != w && v == v {
				// Where the scale is infinite. Processors differ in the sign of
				// such a NaN; this is amd64's, on which arrays are written.
				w = math.Copysign(math.NaN(), -1)
			}
			block[i] = w
		}
	})
	return nil
}

// decode only converts: rounding cannot be undone.
func (q *quantizeCodec) decode(dst, src []byte) error {
	convert(dst, src, q.from, q.to)
	return nil
}
