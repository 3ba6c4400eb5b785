package object

import (
	"encoding/binary"
	"encoding/json"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/codecs/internal/swap"
	"github.com/zarrdb/zarrdb/zarr/dtype"
)

// vlenArray is numcodecs' "vlen-array": one-dimensional arrays of any length,
// laid out as by vlen-bytes, their elements in the byte order of dtype.
type vlenArray struct{ dtype dtype.Type }

func parseVlenArray(c codecs.Config) (codecs.Codec, error) {
	f := c.Fields()
	f.Require("dtype")
	v := vlenArray{}
	if raw := f.Raw("dtype"); raw != nil {
		var err error
		if v.dtype, err = dtype.ParseNumPy(raw); err != nil {
			f.Fail("dtype", "%w", err)
		} else if v.dtype.Size() == 0 {
			f.Fail("dtype", "%v has no size", v.dtype)
		}
	}
	return v, f.Err()
}

func (v vlenArray) Config() json.RawMessage {
	raw, err := v.dtype.PrintV2()
	if err != nil {
		panic(err) // it was parsed from such text
	}
	return codecs.Object("dtype", raw)
}

func (v vlenArray) Bind(in codecs.Rep) (codecs.Stage, codecs.Rep, error) {
	elem, _ := in.Type.Elem()
	if in.Type.Kind() != dtype.Ragged || !elem.WithOrder(dtype.None).Equal(v.dtype.WithOrder(dtype.None)) {
		return nil, codecs.Rep{}, codecs.BadField("dtype", "the elements are %v, not arrays of %v", in.Type, v.dtype)
	}
	st, out, err := (vlen{"vlen-array", dtype.Ragged}).Bind(in)
	if err != nil {
		return nil, codecs.Rep{}, err
	}
	return &vlenArrayStage{vlenStage: st.(*vlenStage), size: v.dtype.Size(), swaps: swap.Stored(v.dtype)}, out, nil
}

type vlenArrayStage struct {
	*vlenStage
	size  int
	swaps swap.Words
}

func (s *vlenArrayStage) Encode(dst, src []byte) ([]byte, error) {
	start := len(dst)
	dst, err := s.vlenStage.Encode(dst, src)
	if err != nil {
		return dst, err
	}
	// Behind the count every array has its length in front.
	for b := dst[start+4:]; len(b) > 0; {
		n := binary.LittleEndian.Uint32(b)
		s.swaps.Swap(b[4 : 4+n])
		b = b[4+n:]
	}
	return dst, nil
}

func (s *vlenArrayStage) Decode(dst, src []byte) ([]byte, error) {
	start := len(dst)
	out, err := s.vlenStage.Decode(dst, src)
	if err != nil {
		return out, err
	}
	v, err := dtype.OpenVariable(out[start:], s.n)
	if err != nil {
		return dst, err
	}
	for i := range s.n {
		item := v.At(i)
		if len(item)%s.size != 0 {
			return dst, codecs.Corruptf("vlen-array", "element %d: %d bytes are not items of %d", i, len(item), s.size)
		}
		s.swaps.Swap(item)
	}
	return out, nil
}
