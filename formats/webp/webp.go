// Package webp reads WebP images, lossy and lossless, as uint8: RGB [y, x, 3], or
// RGB and alpha [y, x, 4], alpha straight. Animations are refused.
package webp

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"image"
	"io"

	"golang.org/x/image/webp"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/formats"
	"github.com/zarrdb/zarrdb/formats/raster"
)

const name = "imagecodecs_webp"

// kind reads images with as many channels as they have, or so many if that is not 0:
// pixels without alpha are opaque.
func kind(channels int) raster.Kind {
	return raster.Kind{Scheme: "webp", Codec: name, Decode: decode, Header: func(r io.ReaderAt, size int64) (raster.Info, error) {
		info, err := readHeader(r, size)
		if channels != 0 {
			info.Channels = channels
		}
		return info, err
	}}
}

// parse reads the configuration of the codec.
func parse(c codecs.Config) (codecs.Codec, error) {
	f := c.Fields()
	config := raster.Members(f, "hasalpha", "level", "lossless", "method", "index", "numthreads", "delay", "squeeze")
	channels := 0
	switch raw := f.Raw("hasalpha"); string(raw) {
	case "", "null":
	case "true":
		channels = 4
	case "false":
		channels = 3
	default:
		f.Fail("hasalpha", "%.40s is not true or false", raw)
	}
	return raster.NewCodec(kind(channels), config), f.Err()
}

// Format returns the line of the table of formats.
func Format() formats.Format {
	return formats.Format{
		Scheme: "webp",
		Open:   kind(0).Open,
		Head:   raster.HeadBytes,
		Detect: func(e formats.Evidence) bool {
			return len(e.Head) >= 12 && string(e.Head[:4]) == "RIFF" && string(e.Head[8:12]) == "WEBP"
		},
		Codecs: []codecs.Entry{{V2: name, V3: []string{name}, Kind: codecs.ArrayToBytes, Parse: parse}},
	}
}

// readHeader reads the first chunk, of which there are three kinds (RFC 9649, 2.5 to
// 2.7, 3.4; RFC 6386, 9.1).
//
//	"RIFF" │ size 4 │ "WEBP" │ "VP8 " │ size 4 │ frame tag 3 │ 9d 01 2a │ width 2 │ height 2
//	                         │ "VP8L" │ size 4 │ 2f │ width-1, height-1: 14 bits │ alpha: 1 bit
//	                         │ "VP8X" │ size 4 │ flags │ 3 │ width-1: 3 │ height-1: 3
func readHeader(r io.ReaderAt, size int64) (raster.Info, error) {
	head := make([]byte, min(30, size))
	if _, err := r.ReadAt(head, 0); err != nil {
		return raster.Info{}, raster.Cut(err, "webp")
	}
	if len(head) < 25 {
		return raster.Info{}, raster.Cut(io.EOF, "webp")
	}
	head = append(head, make([]byte, 30-len(head))...)
	if string(head[:4]) != "RIFF" || string(head[8:12]) != "WEBP" {
		return raster.Info{}, formats.Other("WebP")
	}
	le := binary.LittleEndian
	info := raster.Info{Channels: 3, Bits: 8}
	switch string(head[12:16]) {
	case "VP8 ":
		if string(head[23:26]) != "\x9d\x01\x2a" {
			return info, formats.Invalid("webp: no start code of a VP8 frame")
		}
		info.Width, info.Height = int(le.Uint16(head[26:])&0x3fff), int(le.Uint16(head[28:])&0x3fff)
		// A macroblock of 256 pixels has two modes, each coded in at least 0.8
		// bits.
		info.MaxBytes = 3 * 256 * 8 * size
	case "VP8L":
		if head[20] != 0x2f {
			return info, formats.Invalid("webp: no signature of a VP8L stream")
		}
		bits := le.Uint32(head[21:])
		info.Width, info.Height = int(bits&0x3fff)+1, int(bits>>14&0x3fff)+1
		if bits>>28&1 != 0 {
			info.Channels = 4
		}
	case "VP8X":
		const animation, alpha = 2, 16
		if head[20]&animation != 0 {
			return info, formats.Unsupported("webp: an animation")
		}
		if head[20]&alpha != 0 {
			info.Channels = 4
		}
		info.Width = 1 + int(head[24]) + int(head[25])<<8 + int(head[26])<<16
		info.Height = 1 + int(head[27]) + int(head[28])<<8 + int(head[29])<<16
		if info.Width > 1<<14 || info.Height > 1<<14 {
			return info, formats.Invalid("webp: a canvas of %d by %d pixels, where an image has at most 16384", info.Width, info.Height)
		}
	default:
		return info, formats.Invalid("webp: chunk %q at the beginning", head[12:16])
	}
	return info, nil
}

func decode(dst, src []byte, info raster.Info) ([]byte, error) {
	img, err := webp.Decode(bytes.NewReader(src))
	if err != nil {
		return dst, err
	}
	if b := img.Bounds(); b.Dx() != info.Width || b.Dy() != info.Height {
		return dst, fmt.Errorf("the pixels are %d×%d, the header says %d×%d", b.Dx(), b.Dy(), info.Width, info.Height)
	}
	switch m := img.(type) {
	case *image.YCbCr:
		return appendLossy(dst, &image.NYCbCrA{YCbCr: *m}, info), nil
	case *image.NYCbCrA:
		return appendLossy(dst, m, info), nil
	}
	return raster.Append(dst, img, info)
}
