package object

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"unicode/utf8"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/codecs/internal/scratch"
	"github.com/zarrdb/zarrdb/zarr/dtype"
)

// vlen is "vlen-utf8" and "vlen-bytes" of numcodecs, in v2 a filter and in v3
// the array-to-bytes codec of string and bytes:
//
//	count │ length │ bytes │ length │ bytes │ …     (uint32, little-endian)
type vlen struct {
	name string
	kind dtype.Kind
}

func parseVlen(name string, kind dtype.Kind) func(codecs.Config) (codecs.Codec, error) {
	return func(c codecs.Config) (codecs.Codec, error) {
		return vlen{name, kind}, c.Fields().Err()
	}
}

func (v vlen) Config() json.RawMessage { return nil }

func (v vlen) Bind(in codecs.Rep) (codecs.Stage, codecs.Rep, error) {
	if in.Type.Kind() != v.kind {
		return nil, codecs.Rep{}, codecs.BadField("", "does not encode the data type %v", in.Type)
	}
	n := in.Count()
	return &vlenStage{vlen: v, n: n, max: in.Max}, codecs.ItemsRep(n, in.Max), nil
}

type vlenStage struct {
	vlen
	n   int
	max int64
}

func (s *vlenStage) Encode(dst, src []byte) ([]byte, error) {
	v, err := dtype.OpenVariable(src, s.n)
	if err != nil {
		return dst, err
	}
	dst = scratch.Grow(dst, int64(len(src)))
	dst = binary.LittleEndian.AppendUint32(dst, uint32(s.n))
	for i := range s.n {
		item := v.At(i)
		if len(item) > math.MaxInt32 {
			return dst, codecs.BadField("", "element %d has %d bytes, more than a length can say", i, len(item))
		}
		dst = binary.LittleEndian.AppendUint32(dst, uint32(len(item)))
		dst = append(dst, item...)
	}
	return dst, nil
}

func (s *vlenStage) Decode(dst, src []byte) ([]byte, error) {
	if len(src) < 4 {
		return dst, codecs.Corruptf(s.name, "%d bytes have no room for a count", len(src))
	}
	if n := binary.LittleEndian.Uint32(src); int64(n) != int64(s.n) {
		return dst, codecs.Corruptf(s.name, "%d elements in a chunk of %d", n, s.n)
	}
	src = src[4:]
	// Checked before the offsets are allocated: every length takes 4 bytes.
	if int64(len(src)) < 4*int64(s.n) {
		return dst, codecs.Corruptf(s.name, "%d bytes are too short for %d elements", len(src), s.n)
	}
	if int64(len(src)) > s.max {
		return dst, codecs.Corruptf(s.name, "more than the %d bytes that a chunk may have", s.max)
	}
	w, err := dtype.NewBuilder(scratch.Grow(dst, int64(len(src))+4), s.n)
	if err != nil {
		return dst, err
	}
	for i := range s.n {
		if len(src) < 4 {
			return dst, codecs.Corruptf(s.name, "element %d of %d is cut off", i, s.n)
		}
		n := binary.LittleEndian.Uint32(src)
		src = src[4:]
		if uint64(n) > uint64(len(src)) {
			return dst, codecs.Corruptf(s.name, "element %d of %d bytes has %d left", i, n, len(src))
		}
		item := src[:n]
		src = src[n:]
		if s.kind == dtype.String && !utf8.Valid(item) {
			return dst, codecs.Corruptf(s.name, "element %d is not UTF-8", i)
		}
		if err := w.Append(item); err != nil {
			return dst, err
		}
	}
	if len(src) > 0 {
		return dst, codecs.Corruptf(s.name, "%d bytes behind the last element", len(src))
	}
	return w.Finish()
}
