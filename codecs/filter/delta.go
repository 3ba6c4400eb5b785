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
		var block floatBlock
		last := 0.0
		eachBlock(dst, src, d.to, d.from, func(dst, src []byte, n int) {
			d.from.loadFloats(block[:n], src)
			for i, v := range block[:n] {
				block[i] = d.from.round(v - last)
				last = v
			}
			d.to.storeFloats(dst, block[:n])
		})
		return nil
	}
	var block intBlock
	last := int64(0)
	eachBlock(dst, src, d.to, d.from, func(dst, src []byte, n int) {
		d.from.loadInts(block[:n], src)
		for i, v := range block[:n] {
			block[i] = d.from.wrap(v - last)
			last = v
		}
		d.to.storeInts(dst, block[:n])
	})
	return nil
}

func (d *deltaCodec) decode(dst, src []byte) error {
	if d.from.isFloat() {
		var block floatBlock
		sum, wide := 0.0, d.wider()
		eachBlock(dst, src, d.from, d.to, func(dst, src []byte, n int) {
			d.to.loadFloats(block[:n], src)
			for i, v := range block[:n] {
				sum = wide.round(sum + v)
				block[i] = sum
			}
			d.from.storeFloats(dst, block[:n])
		})
		return nil
	}
	var block intBlock
	sum := int64(0)
	eachBlock(dst, src, d.from, d.to, func(dst, src []byte, n int) {
		d.to.loadWhole(block[:n], src)
		for i, v := range block[:n] {
			sum += v
			block[i] = sum
		}
		d.from.storeInts(dst, block[:n])
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

// eachBlock calls fn for blocks of elements of dst, of type to, and src, of type
// from.
func eachBlock(dst, src []byte, to, from number, fn func(dst, src []byte, n int)) {
	for len(src) > 0 {
		n := min(len(src)/from.size(), numberBlock)
		fn(dst, src, n)
		dst, src = dst[n*to.size():], src[n*from.size():]
	}
}

// loadWhole loads numbers of any type as whole ones.
func (k number) loadWhole(dst []int64, src []byte) {
	if !k.isFloat() {
		k.loadInts(dst, src)
		return
	}
	var floats floatBlock
	k.loadFloats(floats[:len(dst)], src)
	for i, v := range floats[:len(dst)] {
		dst[i] = truncated(v)
	}
}
