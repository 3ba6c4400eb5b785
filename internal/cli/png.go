package cli

import (
	"context"
	"fmt"
	"image/png"
	"io"

	"github.com/zarrdb/zarrdb/internal/picture"
)

// png writes a picture with a pixel for each element: grey or colours where elements are
// some (see [picture.Check]), and else numbers in the colours of plot.
func (r *reading) png(ctx context.Context, w io.Writer) error {
	const most, mostNumbers = 1 << 15, 1 << 26
	own := picture.Check(r.typ(), r.shape) == nil
	if !own && len(r.shape) != 2 {
		return fmt.Errorf("read /%s: a picture needs (height, width) of numbers, or (height, width, 3 or 4) of uint8, not %v of %v: use --select", r.a.Path(), r.shape, r.typ())
	}
	if r.shape[0] > most || r.shape[1] > most || !own && r.shape[0]*r.shape[1] > mostNumbers {
		return fmt.Errorf("a picture of %d × %d is too large: use --select, or \"zarrdb plot\", which leaves elements out", r.shape[0], r.shape[1])
	}
	if own {
		b, err := r.bytes(ctx)
		if err != nil {
			return err
		}
		return png.Encode(w, picture.Of(r.typ(), r.shape, b))
	}
	win, err := picture.Read(ctx, r.a, picture.Request{Select: r.sel, Decoder: r.dec, Height: int(r.shape[0]), Width: int(r.shape[1]), Chunks: -1})
	if err != nil {
		return err
	}
	limits, _ := picture.Percentiles(win.Values, 2, 98)
	m, _ := picture.MapByName("")
	return png.Encode(w, win.Image(m, limits))
}
