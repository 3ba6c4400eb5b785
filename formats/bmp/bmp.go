// Package bmp reads BMP images: 1, 2, 4, 8, 24 and 32 bits for a pixel, not compressed.
//
//	palette of greys [y, x, 1]   other palettes, 24 bits [y, x, 3]   32 bits [y, x, 3 or 4]
//
// It is the example of docs/extend.md, and so uses no shared helpers.
package bmp

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/color"
	"io"
	"slices"

	"golang.org/x/image/bmp"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/formats"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/refs"
	"github.com/zarrdb/zarrdb/zarr/dtype"
)

// codecName is the name of the codec, which the Python package imagecodecs has too.
const codecName = "imagecodecs_bmp"

// Format returns the line of the table of formats.
func Format() formats.Format {
	return formats.Format{
		Scheme: "bmp",
		Open:   open,
		Head:   headBytes,
		Detect: detect,
		Codecs: []codecs.Entry{{V2: codecName, V3: []string{codecName}, Kind: codecs.ArrayToBytes, Parse: parse}},
	}
}

// detect checks the magic number, and two fields that are 0.
func detect(e formats.Evidence) bool {
	return len(e.Head) >= 10 && string(e.Head[:2]) == "BM" && string(e.Head[6:10]) == "\x00\x00\x00\x00"
}

// headBytes are the longest header: of the file, of the image, and a palette.
const headBytes = 14 + 124 + 4*256

// open reads the header. The array has one chunk, which is the file.
func open(ctx context.Context, base formats.Base, _ formats.Options) (refs.Set, error) {
	head, err := kv.ReadValue(ctx, base.File, kv.Span(0, min(headBytes, base.File.Size())))
	if err != nil {
		return nil, err
	}
	shape, err := shapeOf(head, base.File.Size())
	if err != nil {
		return nil, err
	}
	document, err := json.Marshal(map[string]any{
		"zarr_format":        3,
		"node_type":          "array",
		"shape":              shape,
		"data_type":          "uint8",
		"chunk_grid":         map[string]any{"name": "regular", "configuration": map[string]any{"chunk_shape": shape}},
		"chunk_key_encoding": map[string]any{"name": "default", "configuration": map[string]any{"separator": "/"}},
		"fill_value":         0,
		"codecs":             []any{map[string]any{"name": codecName}},
		"dimension_names":    []string{"y", "x", "channel"},
	})
	if err != nil {
		return nil, err
	}
	t := formats.NewTree()
	t.Put("zarr.json", document)
	file := refs.Reference{URL: base.Name, Length: refs.WholeFile}
	t.Add(formats.Array{
		Prefix: "c/", Separator: '/', Counts: []int64{1, 1, 1},
		Chunk: func(context.Context, []int64) (refs.Reference, error) { return file, nil },
	})
	return t, nil
}

// shapeOf returns height, width and channels of an image of size bytes that
// begins with head. A file that is too short for its pixels is refused here,
// before memory is reserved.
func shapeOf(head []byte, size int64) ([3]int, error) {
	if len(head) >= 2 && string(head[:2]) != "BM" {
		return [3]int{}, formats.Other("BMP")
	}
	c, err := bmp.DecodeConfig(bytes.NewReader(head))
	switch {
	case errors.Is(err, bmp.ErrUnsupported):
		return [3]int{}, formats.Unsupported("bmp: compressed pixels, colours of 16 bits, or a header of OS/2")
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return [3]int{}, formats.Invalid("bmp: the file ends inside its header")
	case err != nil:
		return [3]int{}, formats.Invalid("%v", err)
	}
	bits := int64(binary.LittleEndian.Uint16(head[28:]))
	row := (int64(c.Width)*bits + 31) / 32 * 4
	if row == 0 || int64(c.Height) > size/row {
		return [3]int{}, formats.Invalid("bmp: %d bytes cannot hold an image of %d by %d pixels", size, c.Width, c.Height)
	}
	channels := 3
	switch palette, _ := c.ColorModel.(color.Palette); {
	case palette != nil && !slices.ContainsFunc(palette, coloured):
		channels = 1
	case bits == 32 && binary.LittleEndian.Uint32(head[14:]) > 40: // older headers have no alpha
		channels = 4
	}
	return [3]int{c.Height, c.Width, channels}, nil
}

func coloured(c color.Color) bool {
	r, g, b, _ := c.RGBA()
	return r != g || g != b
}

// bmpCodec is the codec before it is bound. Its configuration has only
// parameters of encoding, which are kept and not used.
type bmpCodec struct{ config json.RawMessage }

func parse(c codecs.Config) (codecs.Codec, error) {
	f := c.Fields()
	var members []any
	for _, name := range []string{"ppm", "asrgb", "squeeze"} {
		if raw := f.Raw(name); raw != nil {
			members = append(members, name, raw)
		}
	}
	if members == nil {
		return bmpCodec{}, f.Err()
	}
	return bmpCodec{codecs.Object(members...)}, f.Err()
}

// Config implements [codecs.Codec].
func (c bmpCodec) Config() json.RawMessage { return c.config }

// Bind implements [codecs.Codec]: the chunk has three dimensions and bytes.
func (c bmpCodec) Bind(in codecs.Rep) (codecs.Stage, codecs.Rep, error) {
	if !in.Array || len(in.Shape) != 3 || in.Type.Kind() != dtype.Uint || in.Type.Bits() != 8 {
		return nil, codecs.Rep{}, codecs.BadField("", "an image has three dimensions and elements of type uint8")
	}
	return stage{[3]int(in.Shape)}, in.Grown(), nil
}

// stage decodes a chunk of a shape.
type stage struct{ shape [3]int }

// Encode implements [codecs.Stage]: images are only read.
func (stage) Encode(dst, _ []byte) ([]byte, error) {
	return dst, formats.Unsupported("codec %s decodes images and does not encode them", codecName)
}

// Decode implements [codecs.Stage]. Memory is reserved only for an image that has the
// shape of the chunk.
func (s stage) Decode(dst, src []byte) ([]byte, error) {
	shape, err := shapeOf(src, int64(len(src)))
	if err == nil && shape != s.shape {
		err = fmt.Errorf("an image of shape %v, where the array has %v", shape, s.shape)
	}
	if err != nil {
		return dst, codecs.Corruptf(codecName, "%w", err)
	}
	img, err := bmp.Decode(bytes.NewReader(src))
	if err != nil {
		return dst, codecs.Corruptf(codecName, "%w", err)
	}
	return appendPixels(dst, img, shape), nil
}

// appendPixels appends the first channels of each pixel. Palettes are expanded; alpha
// is straight.
func appendPixels(dst []byte, img image.Image, shape [3]int) []byte {
	height, width, channels := shape[0], shape[1], shape[2]
	dst = slices.Grow(dst, height*width*channels)
	rows := func(pix []byte, stride int) {
		for y := range height {
			for x := range width {
				dst = append(dst, pix[y*stride+4*x:][:channels]...)
			}
		}
	}
	switch m := img.(type) {
	case *image.RGBA: // of 24 bits, which have no alpha
		rows(m.Pix, m.Stride)
	case *image.NRGBA:
		rows(m.Pix, m.Stride)
	case *image.Paletted:
		palette := make([]color.NRGBA, len(m.Palette))
		for i, c := range m.Palette {
			palette[i] = color.NRGBAModel.Convert(c).(color.NRGBA)
		}
		for y := range height {
			for _, i := range m.Pix[y*m.Stride:][:width] {
				c := palette[i]
				dst = append(dst, []byte{c.R, c.G, c.B}[:channels]...)
			}
		}
	}
	return dst
}
