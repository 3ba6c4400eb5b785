package raster

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/formats"
	"github.com/zarrdb/zarrdb/zarr/dtype"
)

// Entry returns the codec of k for the registry, under the same name in v2 and v3.
func (k Kind) Entry() codecs.Entry {
	return codecs.Entry{V2: k.Codec, V3: []string{k.Codec}, Kind: codecs.ArrayToBytes, Parse: func(c codecs.Config) (codecs.Codec, error) {
		f := c.Fields()
		config := Members(f, k.Members...)
		return NewCodec(k, config), f.Err()
	}}
}

// NewCodec returns the codec of k as it is parsed from a configuration, which may be nil.
func NewCodec(k Kind, config json.RawMessage) codecs.Codec { return codecs.NewCodec(config, k.bind) }

// Members returns an object of the named members that a configuration has; nil
// without any.
func Members(f *codecs.Fields, names ...string) json.RawMessage {
	var list []any
	for _, name := range names {
		if raw := f.Raw(name); raw != nil {
			list = append(list, name, raw)
		}
	}
	if list == nil {
		return nil
	}
	return codecs.Object(list...)
}

// extra bounds the bytes of an image beyond its pixels: profiles, thumbnails and
// other data that is not decoded.
const extra = 64 << 20

func (k Kind) bind(in codecs.Rep) (codecs.Stage, codecs.Rep, error) {
	bits := in.Type.Bits()
	if !in.Array || in.Type.Kind() != dtype.Uint || bits != 8 && bits != 16 {
		return nil, codecs.Rep{}, codecs.BadField("", "an image has elements of type uint8 or uint16")
	}
	return &stage{k, squeeze(in.Shape), bits}, codecs.BytesRep(-1, in.Grown().Max+extra), nil
}

// squeeze leaves out dimensions of length 1, as imagecodecs does: an image of one
// channel may be a chunk of two dimensions.
func squeeze(shape []int) []int {
	return slices.DeleteFunc(slices.Clone(shape), func(n int) bool { return n == 1 })
}

type stage struct {
	kind  Kind
	shape []int // squeezed
	bits  int
}

// Encode implements [codecs.Stage]: images are only read.
func (s *stage) Encode(dst, _ []byte) ([]byte, error) {
	return dst, formats.Unsupported("codec %s decodes images and does not encode them", s.kind.Codec)
}

func (s *stage) Decode(dst, src []byte) (out []byte, err error) {
	start := len(dst)
	info, err := s.kind.header(bytes.NewReader(src), int64(len(src)))
	if err != nil {
		return dst, codecs.Corruptf(s.kind.Codec, "%w", err)
	}
	if got := squeeze([]int{info.Height, info.Width, info.Channels}); !slices.Equal(got, s.shape) || info.Bits != s.bits {
		return dst, codecs.Corruptf(s.kind.Codec, "an image of %d×%d pixels with %d channels of %d bits, which does not fit the array",
			info.Width, info.Height, info.Channels, info.Bits)
	}
	// A decoder of another project that fails on damaged data may do so with a panic.
	defer func() {
		if r := recover(); r != nil {
			out, err = dst[:start], codecs.Corruptf(s.kind.Codec, "the decoder failed: %v", r)
		}
	}()
	out, err = s.kind.Decode(dst, src, info)
	if err != nil {
		return dst[:start], codecs.Corruptf(s.kind.Codec, "%w", err)
	}
	return out, nil
}
