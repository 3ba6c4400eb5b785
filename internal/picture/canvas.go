package picture

import (
	"encoding/base64"
	"encoding/xml"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"io"
	"math"
	"strings"
	"unicode/utf8"

	"golang.org/x/image/font"
	"golang.org/x/image/font/gofont/goregular"
	"golang.org/x/image/font/opentype"
	"golang.org/x/image/math/fixed"
)

// canvas is the surface for figures: pixels or SVG. Places are in pixels from the top
// left corner.
type canvas interface {
	line(c color.NRGBA, points ...[2]float64) // connects points
	fill(c color.NRGBA, x, y, width, height float64)
	// text puts a text on a base line: anchor tells which point of the text lies at x: -1 the beginning, 0 the middle, 1 the end.
	text(x, y float64, anchor int, s string)
	// picture stretches an image, with hard edges.
	picture(img image.Image, x, y, width, height int)
}

const (
	fontSize   = 13
	lineHeight = 18
)

var (
	ink   = color.NRGBA{0x20, 0x24, 0x2c, 255}
	faint = color.NRGBA{0xc8, 0xcc, 0xd4, 255}
	paper = color.NRGBA{255, 255, 255, 255}
	blue  = color.NRGBA{0x1f, 0x5c, 0x9c, 255}
	blank = color.NRGBA{0x8c, 0x8c, 0x8c, 255} // of missing values, far from the ends of maps
)

// textWidth is about the width of a text.
func textWidth(s string) float64 { return 7 * float64(utf8.RuneCountInString(s)) }

// raster draws pixels.
type raster struct {
	img  *image.NRGBA
	face font.Face
}

func newRaster(width, height int) (*raster, error) {
	f, err := opentype.Parse(goregular.TTF)
	if err != nil {
		return nil, err
	}
	face, err := opentype.NewFace(f, &opentype.FaceOptions{Size: fontSize, DPI: 72, Hinting: font.HintingFull})
	if err != nil {
		return nil, err
	}
	r := &raster{image.NewNRGBA(image.Rect(0, 0, width, height)), face}
	r.fill(paper, 0, 0, float64(width), float64(height))
	return r, nil
}

func (r *raster) line(c color.NRGBA, points ...[2]float64) {
	for i := 1; i < len(points); i++ {
		a, b := points[i-1], points[i]
		n := math.Ceil(max(math.Abs(b[0]-a[0]), math.Abs(b[1]-a[1]), 1))
		for k := range int(n) + 1 {
			f := float64(k) / n
			r.img.SetNRGBA(int(math.Round(a[0]+(b[0]-a[0])*f)), int(math.Round(a[1]+(b[1]-a[1])*f)), c)
		}
	}
}

func (r *raster) fill(c color.NRGBA, x, y, width, height float64) {
	box := image.Rect(int(math.Round(x)), int(math.Round(y)), int(math.Round(x+width)), int(math.Round(y+height)))
	draw.Draw(r.img, box, image.NewUniform(c), image.Point{}, draw.Src)
}

func (r *raster) text(x, y float64, anchor int, s string) {
	d := font.Drawer{Dst: r.img, Src: image.NewUniform(ink), Face: r.face}
	d.Dot = fixed.P(int(x), int(y))
	d.Dot.X -= d.MeasureString(s) * fixed.Int26_6(anchor+1) / 2
	d.DrawString(s)
}

func (r *raster) picture(img image.Image, x, y, width, height int) {
	size := img.Bounds()
	for j := range height {
		for i := range width {
			c := img.At(size.Min.X+i*size.Dx()/width, size.Min.Y+j*size.Dy()/height)
			if _, _, _, a := c.RGBA(); a != 0 {
				r.img.Set(x+i, y+j, c)
			}
		}
	}
}

// svg draws SVG; its error is an error of writing.
type svg struct {
	strings.Builder
	err error
}

func newSVG(width, height int) *svg {
	s := &svg{}
	fmt.Fprintf(s, `<svg xmlns="http://www.w3.org/2000/svg" width="%[1]d" height="%[2]d" viewBox="0 0 %[1]d %[2]d" font-family="sans-serif" font-size="%[3]d">`+"\n", width, height, fontSize)
	s.fill(paper, 0, 0, float64(width), float64(height))
	return s
}

func hex(c color.NRGBA) string { return fmt.Sprintf("#%02x%02x%02x", c.R, c.G, c.B) }

func (s *svg) line(c color.NRGBA, points ...[2]float64) {
	fmt.Fprintf(s, `<polyline fill="none" stroke="%s" points="`, hex(c))
	for _, p := range points {
		fmt.Fprintf(s, "%.2f,%.2f ", p[0], p[1])
	}
	s.WriteString("\"/>\n")
}

func (s *svg) fill(c color.NRGBA, x, y, width, height float64) {
	fmt.Fprintf(s, `<rect fill="%s" x="%.2f" y="%.2f" width="%.2f" height="%.2f"/>`+"\n", hex(c), x, y, width, height)
}

func (s *svg) text(x, y float64, anchor int, text string) {
	fmt.Fprintf(s, `<text fill="%s" x="%.2f" y="%.2f" text-anchor="%s">`, hex(ink), x, y, [...]string{"start", "middle", "end"}[anchor+1])
	_ = xml.EscapeText(s, []byte(text)) // a Builder does not fail
	s.WriteString("</text>\n")
}

func (s *svg) picture(img image.Image, x, y, width, height int) {
	fmt.Fprintf(s, `<image x="%d" y="%d" width="%d" height="%d" preserveAspectRatio="none" style="image-rendering:pixelated" href="data:image/png;base64,`, x, y, width, height)
	w := base64.NewEncoder(base64.StdEncoding, s)
	s.err = png.Encode(w, img)
	w.Close()
	s.WriteString("\"/>\n")
}

func (s *svg) writeTo(w io.Writer) error {
	s.WriteString("</svg>\n")
	if s.err != nil {
		return s.err
	}
	_, err := io.WriteString(w, s.String())
	return err
}
