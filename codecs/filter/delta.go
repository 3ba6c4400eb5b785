package filter

import (
	"encoding/json"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/zarr/dtype"
)

// deltaCodec is numcodecs' "delta": the first element, then the difference of
// each to the one before it, computed as dtype and stored as astype.
type deltaCodec struct {
	dtype, astype dtype.Type
	from, to      number
}

func parseDelta(c codecs.Config) (codecs.Codec, error) {
	f := c.Fields()
	f.Require("dtype")
	d := &deltaCodec{}
	d.dtype, d.from = numpyType(f, "dtype", dtype.Type{})
	d.astype, d.to = numpyType(f, "astype", d.dtype)
	if d.from == boolean {
		f.Fail("dtype", "truth values do not differ by numbers")
	}
	return d, f.Err()
}

func (d *deltaCodec) Config() json.RawMessage {
	return codecs.Object("dtype", printNumpy(d.dtype), "astype", printNumpy(d.astype))
}

func (d *deltaCodec) Bind(in codecs.Rep) (codecs.Stage, codecs.Rep, error) {
	return bindElements("delta", in, d.dtype, d.astype, d)
}

func (d *deltaCodec) encode(dst, src []byte) error {
	if d.from.isFloat() {
		last := 0.0
		eachFloats(dst, src, d.to, d.from, func(block []float64) {
			for i, v := range block {
				block[i] = d.from.round(v - last)
				last = v
			}
		})
		return nil
	}
	last := int64(0)
	eachInts(dst, src, d.to, d.from, func(block []int64) {
		for i, v := range block {
			block[i] = d.from.wrap(v - last)
			last = v
		}
	})
	return nil
}

func (d *deltaCodec) decode(dst, src []byte) error {
	if d.from.isFloat() {
		sum, wide := 0.0, d.wider()
		eachFloats(dst, src, d.from, d.to, func(block []float64) {
			for i, v := range block {
				sum = wide.round(sum + v)
				block[i] = sum
			}
		})
		return nil
	}
	sum := int64(0)
	eachInts(dst, src, d.from, d.to, func(block []int64) {
		for i, v := range block {
			sum += v
			block[i] = sum
		}
	})
	return nil
}

// wider returns the float type in which numpy computes sums: one that represents
// the numbers of both types.
func (d *deltaCodec) wider() number {
	if d.to.isFloat() {
		return max(d.from, d.to)
	}
	return max(d.from, map[int]number{1: float16s, 2: float32s, 4: float64s, 8: float64s}[d.to.size()])
}
