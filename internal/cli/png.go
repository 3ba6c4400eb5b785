package cli

import (
	"context"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io"

	"github.com/zarrdb/zarrdb/zarr/dtype"
)

// png writes a picture: 2 dimensions of bool, uint8 or uint16 as grey, a third
// of length 3 or 4 as colour.
func (r *reading) png(ctx context.Context, w io.Writer) error {
	t := r.a.Type()
	grey8 := t.Kind() == dtype.Uint && t.Bits() == 8 || t.Kind() == dtype.Bool
	grey16 := t.Kind() == dtype.Uint && t.Bits() == 16
	colours := len(r.shape) == 3 && (r.shape[2] == 3 || r.shape[2] == 4) && grey8 && t.Kind() != dtype.Bool
	if len(r.shape) != 2 && !colours || !grey8 && !grey16 {
		return fmt.Errorf("a picture needs (height, width) of bool, uint8 or uint16, or (height, width, 3 or 4) of uint8, not %v of %v", r.shape, t)
	}
	const most = 1 << 15
	if r.shape[0] > most || r.shape[1] > most {
		return fmt.Errorf("a picture of %d × %d is too large: use --select", r.shape[0], r.shape[1])
	}
	b, err := r.bytes(ctx)
	if err != nil {
		return err
	}
	width := int(r.shape[1])
	box := image.Rect(0, 0, width, int(r.shape[0]))
	switch {
	case colours:
		img, n := image.NewNRGBA(box), int(r.shape[2])
		for i := range len(b) / n {
			c := color.NRGBA{b[n*i], b[n*i+1], b[n*i+2], 255}
			if n == 4 {
				c.A = b[n*i+3]
			}
			img.SetNRGBA(i%width, i/width, c)
		}
		return png.Encode(w, img)
	case grey16:
		img := image.NewGray16(box)
		for i := range len(b) / 2 {
			img.SetGray16(i%width, i/width, color.Gray16{Y: uint16(b[2*i]) | uint16(b[2*i+1])<<8})
		}
		return png.Encode(w, img)
	}
	img := image.NewGray(box)
	copy(img.Pix, b)
	if t.Kind() == dtype.Bool {
		for i, v := range img.Pix {
			img.Pix[i] = -min(v, 1) // 0 or 255
		}
	}
	return png.Encode(w, img)
}
