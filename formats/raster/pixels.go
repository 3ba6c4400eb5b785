package raster

import (
	"fmt"
	"image"
	"image/color"
	"slices"
)

// Append appends the pixels of an image, row by row, in the layout of info. Alpha is straight, not
// premultiplied; elements of 16 bits are little-endian. Colours that info has no
// channel for are left out: the second of two channels is alpha, the fourth of four as
// well, unless the image is CMYK.
func Append(dst []byte, img image.Image, info Info) ([]byte, error) {
	if b := img.Bounds(); b.Dx() != info.Width || b.Dy() != info.Height {
		return dst, fmt.Errorf("the pixels are %d×%d, the header says %d×%d", b.Dx(), b.Dy(), info.Width, info.Height)
	}
	start, row := len(dst), info.Width*info.Channels*info.Bits/8
	dst = slices.Grow(dst, row*info.Height)[:start+row*info.Height]
	line := func(y int) []byte { return dst[start+y*row : start+(y+1)*row] }
	at := channels[info.Channels]
	switch m := img.(type) {
	case *image.Gray:
		return dst, each(info, 8, 1, m.Pix, m.Stride, line, at)
	case *image.Gray16:
		return dst, each(info, 16, 1, m.Pix, m.Stride, line, at)
	case *image.RGBA: // of decoders without alpha
		return dst, each(info, 8, 4, m.Pix, m.Stride, line, at)
	case *image.NRGBA:
		return dst, each(info, 8, 4, m.Pix, m.Stride, line, at)
	case *image.RGBA64:
		return dst, each(info, 16, 4, m.Pix, m.Stride, line, at)
	case *image.NRGBA64:
		return dst, each(info, 16, 4, m.Pix, m.Stride, line, at)
	case *image.Paletted:
		if info.Bits != 8 {
			break
		}
		var palette [256][4]byte
		for i, c := range m.Palette {
			n := color.NRGBAModel.Convert(c).(color.NRGBA)
			palette[i] = [4]byte{n.R, n.G, n.B, n.A}
		}
		for y := range info.Height {
			out := line(y)
			for x, i := range m.Pix[y*m.Stride : y*m.Stride+info.Width] {
				for c := range at {
					out[x*len(at)+c] = palette[i][at[c]]
				}
			}
		}
		return dst, nil
	}
	return dst[:start], fmt.Errorf("pixels of type %T, which are not %d channels of %d bits", img, info.Channels, info.Bits)
}

// channels returns the indices, in a pixel of four channels, that are used for
// fewer channels.
var channels = [5][]int{1: {0}, 2: {0, 3}, 3: {0, 1, 2}, 4: {0, 1, 2, 3}}

// each copies pixels of n elements, of which the elements at are wanted. Elements of
// 16 bits are big-endian in images.
func each(info Info, bits, n int, pix []byte, stride int, line func(int) []byte, at []int) error {
	if info.Bits != bits || at[len(at)-1] >= n {
		return fmt.Errorf("pixels of %d elements of %d bits, where %d of %d bits are wanted", n, bits, info.Channels, info.Bits)
	}
	for y := range info.Height {
		in, out := pix[y*stride:], line(y)
		switch {
		case bits == 16:
			for x := range info.Width {
				for c, from := range at {
					to, from := 2*(x*len(at)+c), 2*(x*n+from)
					out[to], out[to+1] = in[from+1], in[from]
				}
			}
		case len(at) == n:
			copy(out, in)
		default:
			for x := range info.Width {
				for c, from := range at {
					out[x*len(at)+c] = in[x*n+from]
				}
			}
		}
	}
	return nil
}
