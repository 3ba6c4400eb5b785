// Package picture shows arrays: it reads a part that fits a screen, gives values colours,
// and draws.
//
//	array ─ Request ─▶ [Read] ─▶ Window ─ Map, Limits ─▶ Image
//	                   │         values, NaN where missing; where rows and columns lie
//	                   └ every n-th element, and a bounded number of chunks
//
// Elements that are a picture already keep their own colours ([Check], [Of]):
//
//	(height, width)           of bool, uint8 or uint16   grey
//	(height, width, 3 or 4)   of uint8                   colour
package picture

import (
	"fmt"
	"image"
	"image/color"

	"github.com/zarrdb/zarrdb/zarr/dtype"
)

// Check returns an error if elements of a type and shape are no picture.
func Check(t dtype.Type, shape []int64) error {
	grey := t.Kind() == dtype.Bool || t.Kind() == dtype.Uint && (t.Bits() == 8 || t.Bits() == 16)
	colour := t.Kind() == dtype.Uint && t.Bits() == 8
	if len(shape) == 2 && grey || len(shape) == 3 && (shape[2] == 3 || shape[2] == 4) && colour {
		return nil
	}
	return fmt.Errorf("a picture needs (height, width) of bool, uint8 or uint16, or (height, width, 3 or 4) of uint8, not %v of %v", shape, t)
}

// Of makes an image of elements in C order, little-endian, whose type and shape [Check]
// accepts: as many as the shape has. The image has memory of its own.
func Of(t dtype.Type, shape []int64, b []byte) image.Image {
	width := int(shape[1])
	box := image.Rect(0, 0, width, int(shape[0]))
	switch {
	case len(shape) == 3:
		img, n := image.NewNRGBA(box), int(shape[2])
		for i := range len(b) / n {
			c := color.NRGBA{b[n*i], b[n*i+1], b[n*i+2], 255}
			if n == 4 {
				c.A = b[n*i+3]
			}
			img.SetNRGBA(i%width, i/width, c)
		}
		return img
	case t.Bits() == 16:
		img := image.NewGray16(box)
		for i := range len(b) / 2 {
			img.SetGray16(i%width, i/width, color.Gray16{Y: uint16(b[2*i]) | uint16(b[2*i+1])<<8})
		}
		return img
	}
	img := image.NewGray(box)
	copy(img.Pix, b)
	if t.Kind() == dtype.Bool {
		for i, v := range img.Pix {
			img.Pix[i] = -min(v, 1) // 0 or 255
		}
	}
	return img
}
