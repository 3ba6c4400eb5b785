package codecs

import "math/bits"

// imageBitorder is imagecodecs' "imagecodecs_bitorder". It reverses the bits of each byte,
// for TIFF files with FillOrder 2.
type imageBitorder struct{}

func parseImageBitorder(c Config) (Codec, error) {
	return NewCodec(nil, func(in Rep) (Stage, Rep, error) { return imageBitorder{}, in, nil }), c.Fields().Err()
}

func (imageBitorder) Decode(dst, src []byte) ([]byte, error) {
	for _, b := range src {
		dst = append(dst, bits.Reverse8(b))
	}
	return dst, nil
}

func (c imageBitorder) Encode(dst, src []byte) ([]byte, error) { return c.Decode(dst, src) }
