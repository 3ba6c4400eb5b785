package precomputed

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	stdjpeg "image/jpeg"
	stdpng "image/png"
	"io"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/formats"
)

// imageCodec returns the name of the codec of chunks that are images, "jpeg" or "png".
// The rows of the image one after the other are the pixels of a chunk [z, y, x, channel]
// in C order; its width and height may be any that have as many pixels.
func imageCodec(encoding string) string { return "zarrdb.precomputed_" + encoding }

// imageEntry makes that codec of the one of the format of images.
func imageEntry(encoding string, f formats.Format) codecs.Entry {
	header := map[string]func(io.Reader) (image.Config, error){"jpeg": stdjpeg.DecodeConfig, "png": stdpng.DecodeConfig}[encoding]
	return codecs.Entry{V3: []string{imageCodec(encoding)}, Kind: codecs.ArrayToBytes, Parse: func(c codecs.Config) (codecs.Codec, error) {
		if err := c.Fields().Err(); err != nil {
			return nil, err
		}
		pixels, err := f.Codecs[0].Parse(codecs.Config{Name: f.Codecs[0].V3[0], Registry: c.Registry})
		if err != nil {
			return nil, err
		}
		return &images{imageCodec(encoding), pixels, header}, nil
	}}
}

type images struct {
	name   string
	pixels codecs.Codec // of an image [height, width, channel]
	header func(io.Reader) (image.Config, error)
}

func (*images) Config() json.RawMessage { return nil }

func (c *images) Bind(in codecs.Rep) (codecs.Stage, codecs.Rep, error) {
	if len(in.Shape) != 4 {
		return nil, codecs.Rep{}, codecs.BadField("", "%d dimensions, not 4", len(in.Shape))
	}
	// Try one element: an image cannot hold every data type.
	one := in
	one.Shape = []int{1, 1, in.Shape[3]}
	one.Size, one.Max = int64(in.Type.Size()*in.Shape[3]), int64(in.Type.Size()*in.Shape[3])
	_, out, err := c.pixels.Bind(one)
	if err != nil {
		return nil, codecs.Rep{}, err
	}
	grown := in.Grown()
	grown.Max = max(grown.Max, out.Max)
	return &imageStage{c, in}, grown, nil
}

type imageStage struct {
	codec *images
	in    codecs.Rep
}

// Encode implements [codecs.Stage]. Images are not written.
func (s *imageStage) Encode(dst, _ []byte) ([]byte, error) {
	return dst, fmt.Errorf("%s: images are only read: %w", s.codec.name, errors.ErrUnsupported)
}

func (s *imageStage) Decode(dst, src []byte) ([]byte, error) {
	h, err := s.codec.header(bytes.NewReader(src))
	if err != nil {
		return dst, codecs.Corruptf(s.codec.name, "%w", err)
	}
	want := int64(s.in.Shape[0]) * int64(s.in.Shape[1]) * int64(s.in.Shape[2])
	if h.Width < 1 || h.Height < 1 || int64(h.Width)*int64(h.Height) != want {
		return dst, codecs.Corruptf(s.codec.name, "an image of %d×%d for a chunk of %d pixels", h.Width, h.Height, want)
	}
	of := s.in
	of.Shape = []int{h.Height, h.Width, s.in.Shape[3]}
	stage, _, err := s.codec.pixels.Bind(of)
	if err != nil {
		return dst, codecs.Corruptf(s.codec.name, "%w", err)
	}
	return stage.Decode(dst, src)
}
