package picture

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"image/color"
	"image/color/palette"
	"image/gif"
	"io"

	"github.com/zarrdb/zarrdb/zarr"
)

// MostFrames is the most frames of an animation.
const MostFrames = 200

// frameDelay is how long a frame is shown, in hundredths of a second.
const frameDelay = 20

// Animate writes a GIF with a figure for each element of a dimension, which Select has several of, or
// for every n-th if they are more than MostFrames. All have the same limits. One frame is in memory
// at a time; turn, unless it is nil, is called to make each.
func (p Plot) Animate(ctx context.Context, w io.Writer, dim, width int, turn func(draw func() error) error) error {
	axes, at, err := p.Array.Axes(p.Select)
	if err != nil {
		return err
	}
	var along zarr.Axis
	for _, x := range axes {
		if x.Len > 1 && x.Dim == dim {
			along = x
		}
	}
	if along.Len == 0 {
		return fmt.Errorf("animation of /%s: %w: want several elements along the axis", p.Array.Path(), zarr.ErrSelection)
	}
	if p.Limits == nil {
		l, ok, err := Range(ctx, p.Array, p.Request)
		if err != nil {
			return err
		}
		if !ok {
			l = Limits{Lo: 0, Hi: 1}
		}
		if p.Map.Diverging {
			l = l.Symmetric()
		}
		p.Limits = &l
	}
	p.missing = true
	var l layout
	var colours color.Palette
	known := map[color.NRGBA]uint8{}
	frame := func(i int64) error {
		q := p
		at[dim] = zarr.At(along.Index(i))
		q.Select = zarr.Orthogonal(at...)
		f, err := q.Figure(ctx)
		if err != nil {
			return err
		}
		if f.Kind != Plane {
			return fmt.Errorf("animation of /%s: %w: want two axes beside the one that is stepped", p.Array.Path(), zarr.ErrSelection)
		}
		f = f.clipped()
		first := colours == nil
		if first {
			longest := *f
			longest.Title += "00000000" // titles differ
			colours, l = f.palette(), longest.layout(width)
		}
		r, err := newRaster(l.width(), l.height())
		if err != nil {
			return err
		}
		f.draw(r, l)
		img := image.NewPaletted(r.img.Rect, colours)
		for k := range img.Pix {
			c := color.NRGBA{r.img.Pix[4*k], r.img.Pix[4*k+1], r.img.Pix[4*k+2], 255}
			index, ok := known[c]
			if !ok {
				index = uint8(colours.Index(c))
				if len(known) < 1<<16 {
					known[c] = index
				}
			}
			img.Pix[k] = index
		}
		return writeFrame(w, img, first)
	}
	for i := int64(0); i < along.Len; i += (along.Len-1)/MostFrames + 1 {
		draw := func() error { return frame(i) }
		if turn == nil {
			err = draw()
		} else {
			err = turn(draw)
		}
		if err != nil {
			return err
		}
	}
	_, err = w.Write([]byte{0x3b}) // the end of a GIF
	return err
}

// writeFrame writes an image of 256 colours, and before the first one what a GIF begins with. Package
// gif needs all images at once.
func writeFrame(w io.Writer, img *image.Paletted, first bool) error {
	var b bytes.Buffer
	one := gif.GIF{Image: []*image.Paletted{img}, Delay: []int{frameDelay}, Config: image.Config{ColorModel: img.Palette, Width: img.Rect.Dx(), Height: img.Rect.Dy()}}
	if err := gif.EncodeAll(&b, &one); err != nil {
		return err
	}
	const head = 13 + 3*256 // with the table of colours
	out := b.Bytes()
	if first {
		forever := "\x21\xff\x0bNETSCAPE2.0\x03\x01\x00\x00\x00"
		if _, err := w.Write(append(out[:head:head], forever...)); err != nil {
			return err
		}
	}
	_, err := w.Write(out[head : len(out)-1])
	return err
}

// palette are 256 colours for all figures of an array.
func (f *Figure) palette() (out color.Palette) {
	if f.Window.Pixels != nil {
		return palette.Plan9
	}
	out = color.Palette{paper, ink, faint, blank, otherClass}
	for _, c := range f.Map.Classes {
		if len(out) < 200 {
			out = append(out, c.Colour)
		}
	}
	for i := range 32 { // of texts
		k := uint8(8 * i)
		out = append(out, color.NRGBA{k, k, k, 255})
	}
	for n, i := 256-len(out), 0; i < n; i++ {
		out = append(out, f.Map.At(float64(i)/float64(n-1)))
	}
	return out
}
