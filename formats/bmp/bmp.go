// Package bmp reads BMP images: 1, 2, 4, 8, 24 and 32 bits for a pixel, not compressed.
//
//	palette of greys [y, x, 1]   other palettes, 24 bits [y, x, 3]   32 bits [y, x, 3 or 4]
//
// docs/extend.md walks through it.
package bmp

import (
	"bytes"
	"encoding/binary"
	"errors"
	"image/color"
	"io"
	"slices"

	"golang.org/x/image/bmp"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/formats"
	"github.com/zarrdb/zarrdb/formats/raster"
)

// kind has the name of the codec and its parameters of encoding from the Python
// package imagecodecs.
var kind = raster.Kind{
	Scheme:  "bmp",
	Codec:   "imagecodecs_bmp",
	Members: []string{"ppm", "asrgb", "squeeze"},
	Header:  readHeader,
	Decode:  decode,
}

// Format returns the line of the table of formats.
func Format() formats.Format {
	return formats.Format{
		Scheme: "bmp",
		Open:   kind.Open,
		Head:   raster.HeadBytes,
		Detect: detect,
		Codecs: []codecs.Entry{kind.Entry()},
	}
}

// detect checks the magic number, and two fields that are 0.
func detect(e formats.Evidence) bool {
	return len(e.Head) >= 10 && string(e.Head[:2]) == "BM" && string(e.Head[6:10]) == "\x00\x00\x00\x00"
}

// headBytes are the longest header: of the file, of the image, and a palette.
const headBytes = 14 + 124 + 4*256

// readHeader refuses a file that is too short for its pixels.
func readHeader(r io.ReaderAt, size int64) (raster.Info, error) {
	info := raster.Info{Channels: 3, Bits: 8}
	head := make([]byte, min(headBytes, size))
	if _, err := r.ReadAt(head, 0); err != nil {
		return info, raster.Cut(err, "bmp")
	}
	if len(head) >= 2 && string(head[:2]) != "BM" {
		return info, formats.Other("BMP")
	}
	c, err := bmp.DecodeConfig(bytes.NewReader(head))
	switch {
	case errors.Is(err, bmp.ErrUnsupported):
		return info, formats.Unsupported("bmp: compressed pixels, colours of 16 bits, or a header of OS/2")
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return info, raster.Cut(io.EOF, "bmp")
	case err != nil:
		return info, formats.Invalid("%v", err)
	}
	bits := int64(binary.LittleEndian.Uint16(head[28:]))
	row := (int64(c.Width)*bits + 31) / 32 * 4
	if row == 0 || int64(c.Height) > size/row {
		return info, formats.Invalid("bmp: %d bytes cannot hold an image of %d by %d pixels", size, c.Width, c.Height)
	}
	info.Width, info.Height = c.Width, c.Height
	switch palette, _ := c.ColorModel.(color.Palette); {
	case palette != nil && !slices.ContainsFunc(palette, coloured):
		info.Channels = 1
	case bits == 32 && binary.LittleEndian.Uint32(head[14:]) > 40: // older headers have no alpha
		info.Channels = 4
	}
	return info, nil
}

func coloured(c color.Color) bool {
	r, g, b, _ := c.RGBA()
	return r != g || g != b
}

func decode(dst, src []byte, info raster.Info) ([]byte, error) {
	img, err := bmp.Decode(bytes.NewReader(src))
	if err != nil {
		return dst, err
	}
	return raster.Append(dst, img, info)
}
