// Package png reads PNG images: images of 16 bits as uint16, all other images as
// uint8, with palettes and short grey levels expanded, and alpha straight.
//
//	grey [y, x, 1]   grey and alpha [y, x, 2]   RGB [y, x, 3]   RGB and alpha [y, x, 4]
//
// A colour or palette that is declared transparent makes an alpha channel.
package png

import (
	"bytes"
	"encoding/binary"
	"image/png"
	"io"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/formats"
	"github.com/zarrdb/zarrdb/formats/raster"
)

var kind = raster.Kind{
	Scheme:  "png",
	Codec:   "imagecodecs_png",
	Members: []string{"level", "strategy", "filter", "primaries", "transfer", "matrix", "squeeze"},
	Header:  readHeader,
	Decode:  decode,
}

// Format returns the line of the table of formats.
func Format() formats.Format {
	return formats.Format{
		Scheme: "png",
		Open:   kind.Open,
		Head:   raster.HeadBytes,
		Detect: func(e formats.Evidence) bool { return bytes.HasPrefix(e.Head, []byte(signature)) },
		Codecs: []codecs.Entry{kind.Entry()},
	}
}

const signature = "\x89PNG\r\n\x1a\n"

// maxChunks bounds the chunks before the pixels.
const maxChunks = 1 << 12

// readHeader reads IHDR and searches tRNS, which comes before the pixels (PNG,
// third edition, 11.2 and 11.3).
//
//	signature 8 │ length 4 │ "IHDR" │ width 4 │ height 4 │ bits │ colour │ … │ CRC 4 │ length 4 │ …
func readHeader(r io.ReaderAt, size int64) (raster.Info, error) {
	var head [33]byte
	if _, err := r.ReadAt(head[:], 0); err != nil {
		return raster.Info{}, raster.Cut(err, "png")
	}
	be := binary.BigEndian
	if string(head[:8]) != signature {
		return raster.Info{}, formats.Other("PNG")
	}
	if string(head[12:16]) != "IHDR" {
		return raster.Info{}, formats.Invalid("png: the first chunk is not IHDR")
	}
	width, height := be.Uint32(head[16:]), be.Uint32(head[20:])
	bits, colour := int(head[24]), head[25]
	if width > 1<<31-1 || height > 1<<31-1 {
		return raster.Info{}, formats.Invalid("png: an image of %d by %d pixels", width, height)
	}
	info := raster.Info{Width: int(width), Height: int(height), Bits: max(8, bits)}
	samples := 1 // stored of a pixel
	switch colour {
	case 0:
		info.Channels = 1
	case 2:
		info.Channels, samples = 3, 3
	case 3:
		info.Channels = 3
	case 4:
		info.Channels, samples = 2, 2
	case 6:
		info.Channels, samples = 4, 4
	default:
		return raster.Info{}, formats.Invalid("png: colour type %d", colour)
	}
	if !allowed(bits, colour) {
		return raster.Info{}, formats.Invalid("png: %d bits with colour type %d", bits, colour)
	}
	// Deflate makes at most 1032 bytes of one. Rows have a byte more.
	most := 1032 * (size + 1)
	if row := (int64(width)*int64(samples*bits)+7)/8 + 1; row > most/max(1, int64(height)) {
		return raster.Info{}, formats.Invalid("png: %d bytes cannot hold an image of %d by %d pixels", size, width, height)
	}
	info.MaxBytes = most * 32 // of a palette of one bit
	transparent, err := hasTransparency(r, int64(len(head)))
	if transparent && colour <= 3 {
		info.Channels++
	}
	return info, err
}

// allowed reports whether a colour type may have so many bits (11.2.1, table 12).
func allowed(bits int, colour byte) bool {
	switch bits {
	case 1, 2, 4:
		return colour == 0 || colour == 3
	case 8:
		return true
	case 16:
		return colour != 3
	}
	return false
}

// hasTransparency reports whether there is a chunk tRNS between off and the pixels.
func hasTransparency(r io.ReaderAt, off int64) (bool, error) {
	for range maxChunks {
		var head [8]byte
		if _, err := r.ReadAt(head[:], off); err != nil {
			return false, raster.Cut(err, "png")
		}
		switch string(head[4:]) {
		case "tRNS":
			return true, nil
		case "IDAT", "IEND":
			return false, nil
		}
		off += 12 + int64(binary.BigEndian.Uint32(head[:]))
	}
	return false, formats.Invalid("png: more than %d chunks before the pixels", maxChunks)
}

func decode(dst, src []byte, info raster.Info) ([]byte, error) {
	img, err := png.Decode(bytes.NewReader(src))
	if err != nil {
		return dst, err
	}
	return raster.Append(dst, img, info)
}
