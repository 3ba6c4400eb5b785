package jpeg

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"slices"

	"github.com/zarrdb/zarrdb/formats/raster"
)

// maxScans bounds the scans of a progressive image, each of which passes over all
// blocks. Encoders make some ten.
const maxScans = 500

func (c colours) decode(dst, src []byte, info raster.Info) ([]byte, error) {
	if n := bytes.Count(src, []byte{0xff, sos}); n > maxScans {
		return dst, fmt.Errorf("%d scans are more than %d", n, maxScans)
	}
	stream, err := c.spliced(src, info)
	if err != nil {
		return dst, err
	}
	img, err := jpeg.Decode(bytes.NewReader(stream))
	if err != nil {
		return dst, err
	}
	if b := img.Bounds(); b.Dx() != info.Width || b.Dy() != info.Height {
		return dst, fmt.Errorf("the pixels are %d×%d, the header says %d×%d", b.Dx(), b.Dy(), info.Width, info.Height)
	}
	switch m := img.(type) {
	case *image.YCbCr:
		return c.appendYCbCr(dst, m, info), nil
	case *image.CMYK:
		// The decoder has taken the complement, as Adobe's programs do.
		start, row := len(dst), 4*info.Width
		dst = slices.Grow(dst, row*info.Height)
		for y := range info.Height {
			dst = append(dst, m.Pix[y*m.Stride:][:row]...)
		}
		for i := range dst[start:] {
			dst[start+i] ^= 0xff
		}
		return dst, nil
	}
	return raster.Append(dst, img, info)
}

// appendYCbCr appends a decoded image as RGB, or unconverted if YCbCr is wanted.
func (c colours) appendYCbCr(dst []byte, m *image.YCbCr, info raster.Info) []byte {
	cb, cr := make([]byte, info.Width), make([]byte, info.Width)
	dst = slices.Grow(dst, 3*info.Width*info.Height)
	for y := range info.Height {
		cb = raster.Chroma(cb, m.Cb, m.CStride, m.SubsampleRatio, info.Width, info.Height, y)
		cr = raster.Chroma(cr, m.Cr, m.CStride, m.SubsampleRatio, info.Width, info.Height, y)
		for x, luma := range m.Y[y*m.YStride:][:info.Width] {
			if c.wanted == ycbcr {
				dst = append(dst, luma, cb[x], cr[x])
				continue
			}
			r, g, b := color.YCbCrToRGB(luma, cb[x], cr[x])
			dst = append(dst, r, g, b)
		}
	}
	return dst
}

// spliced returns the stream for a decoder that knows only markers: it inserts
// the tables and Adobe's marker with the colour space from the configuration.
func (c colours) spliced(src []byte, info raster.Info) ([]byte, error) {
	stored, adobe := c.stored, false
	r := bytes.NewReader(src)
	at := int64(len(src)) // of the first scan
	var drop []segment
	err := segments(r, 2, func(s segment) (bool, error) {
		switch {
		case s.marker == sos:
			at = s.off
		case s.marker == app14 && s.end-s.off >= 16 && bytes.HasPrefix(src[min(s.off+4, r.Size()):], []byte("Adobe")):
			adobe = true
			drop = append(drop, s)
		case s.marker == app0:
			drop = append(drop, s)
		}
		return true, nil
	})
	if err != nil {
		return nil, err
	}
	// Without a marker, four components are CMYK (libjpeg's guess too).
	if info.Channels == 4 && !adobe && stored == unknown {
		stored = cmyk
	}
	if c.tables == nil && stored == unknown {
		return src, nil
	}
	out := make([]byte, 0, len(src)+len(c.tables)+32)
	out = append(out, 0xff, soi)
	if stored == unknown {
		drop = nil
	} else if info.Channels > 1 {
		transform := byte(0) // RGB or CMYK
		if stored == ycbcr || stored == ycck {
			transform = 1 + byte(info.Channels)/4
		}
		out = append(out, 0xff, app14, 0, 14, 'A', 'd', 'o', 'b', 'e', 0, 100, 0, 0, 0, 0, transform)
	}
	if c.tables != nil {
		tables := bytes.NewReader(c.tables)
		if !bytes.HasPrefix(c.tables, []byte{0xff, soi}) {
			return nil, fmt.Errorf("tables that do not begin as JPEG streams do")
		}
		err := segments(tables, 2, func(s segment) (bool, error) {
			if s.end > tables.Size() {
				return false, fmt.Errorf("the tables are cut off")
			}
			if s.marker == dqt || s.marker == dht {
				out = append(out, c.tables[s.off:s.end]...)
			}
			return true, nil
		})
		if err != nil {
			return nil, err
		}
	}
	from := int64(2)
	for _, s := range drop {
		out = append(out, src[from:s.off]...)
		from = min(s.end, at)
	}
	return append(out, src[from:]...), nil
}
