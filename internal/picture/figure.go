package picture

import (
	"fmt"
	"image"
	"image/png"
	"io"
	"math"
	"slices"
	"strconv"
)

// Kind is the kind of a figure.
type Kind uint8

// The kinds.
const (
	Plane  Kind = iota // colours of rows and columns
	Series             // a line through the values of one row
	Bars               // how many values lie where: a histogram
)

// Figure is a window with a title, axes and a scale. Make it with the fields set; methods
// do not change it.
type Figure struct {
	Kind   Kind
	Title  string
	Window *Window
	Map    Map
	Limits Limits
	// Y and X name rows and columns.
	Y, X Scale
	// Text prints a value; nil prints values as numbers.
	Text func(v float64) string
}

// number prints a value of the figure.
func (f *Figure) number(v float64) string {
	if f.Text != nil {
		return f.Text(v)
	}
	return f.Limits.Number(v, f.Window.Type)
}

// ends prints the limits.
func (f *Figure) ends() (lo, hi string) { return f.Ends(f.Limits) }

// Ends prints the ends of a range of values, integers with all digits.
func (f *Figure) Ends(l Limits) (lo, hi string) {
	if f.Text != nil {
		return f.Text(l.Lo), f.Text(l.Hi)
	}
	lo, hi = l.Number(l.Lo, f.Window.Type), l.Number(l.Hi, f.Window.Type)
	if text, ok := f.Window.Integer(l.Lo, false); ok {
		lo = text
	}
	if text, ok := f.Window.Integer(l.Hi, true); ok {
		hi = text
	}
	return lo, hi
}

// Scale names the places along an axis.
type Scale struct {
	// Name of the axis.
	Name string
	// Label is the text of the k-th row or column.
	Label func(k int) string
	// Value is the number of the k-th row or column; numbers ascend or descend. nil means
	// that labels are no such numbers. Least is the least distance of ticks.
	Value func(k int) float64
	Least float64
}

// Ends is a text with the name and the first and last label of n.
func (s Scale) Ends(n int) string {
	switch {
	case s.Label == nil || n == 0:
		return s.Name
	case n == 1:
		return s.Name + " " + s.Label(0)
	}
	return fmt.Sprintf("%s %s … %s", s.Name, s.Label(0), s.Label(n-1))
}

// bins is the number of bars of a histogram.
const bins = 32

// PNG writes the figure as an image whose drawing is that many pixels wide.
func (f *Figure) PNG(w io.Writer, width int) error {
	l := f.layout(width)
	r, err := newRaster(l.width(), l.height())
	if err != nil {
		return err
	}
	f.draw(r, l)
	return png.Encode(w, r.img)
}

// SVG is PNG in the form of SVG. A plane is an image in it, lines and texts are drawn.
func (f *Figure) SVG(w io.Writer, width int) error {
	l := f.layout(width)
	s := newSVG(l.width(), l.height())
	f.draw(s, l)
	return s.writeTo(w)
}

// layout is where the drawing lies.
type layout struct {
	box                      image.Rectangle
	left, right, top, bottom int
}

func (l layout) width() int  { return l.box.Max.X + l.right }
func (l layout) height() int { return l.box.Max.Y + l.bottom }

// fit returns the size of the drawing of a plane in at most width × height, with its own
// proportions unless the drawing would be narrow.
func (f *Figure) fit(width, height int) (int, int) {
	y, x := f.Window.Y, f.Window.X
	aspect := float64(int64(y.Len)*y.Skip) / float64(int64(x.Len)*x.Skip)
	aspect = min(max(aspect, 0.2), 1.5)
	h := int(math.Round(float64(width) * aspect))
	if h > height {
		return max(int(math.Round(float64(height)/aspect)), 1), height
	}
	return width, max(h, 1)
}

func (f *Figure) layout(width int) layout {
	l := layout{left: 20, right: 30, top: 2*lineHeight + 6, bottom: 3 * lineHeight}
	w, h := width, max(width/2, 60)
	if f.Kind == Plane {
		w, h = f.fit(width, 2*width)
		l.bottom += 2 * lineHeight
	}
	for _, t := range f.yTicks() {
		l.left = max(l.left, int(textWidth(t.text))+14)
	}
	if f.Kind != Bars { // half a label may stand at each end
		for _, t := range f.X.ticks(f.Window.X.Len, mostTicks) {
			l.left, l.right = max(l.left, int(textWidth(t.text)/2)+4), max(l.right, int(textWidth(t.text)/2)+4)
		}
	}
	l.right = max(l.right, int(textWidth(f.Title))-l.left-w+10)
	l.box = image.Rect(l.left, l.top, l.left+w, l.top+h)
	return l
}

// mostTicks is the most ticks of an axis.
const mostTicks = 6

// tick is a label at a place along an axis, from 0 to 1.
type tick struct {
	at   float64
	text string
}

// ticks of an axis of n rows or columns: at round values where places have numbers, else at
// equal distances. Labels stand at the centres of rows and columns.
func (s Scale) ticks(n, most int) (out []tick) {
	if s.Label == nil {
		return nil
	}
	if out = s.roundTicks(n, most); len(out) > 1 {
		return out
	}
	out = nil
	for k, by := 0, (n-2)/max(most-1, 1)+1; k < n; k += max(by, 1) {
		out = append(out, tick{(float64(k) + 0.5) / float64(n), s.Label(k)})
	}
	return out
}

// roundTicks are at round values between neighbours whose values are on both sides.
func (s Scale) roundTicks(n, most int) (out []tick) {
	if s.Value == nil || n < 2 {
		return nil
	}
	lo, hi, k := s.Value(0), s.Value(n-1), 0
	values := rounds(min(lo, hi), max(lo, hi), s.Least, most)
	rise := 1.0
	if lo > hi {
		rise = -1
		slices.Reverse(values)
	}
	texts := tickTexts(values)
	for i, v := range values {
		for k < n-2 && (s.Value(k+1)-v)*rise <= 0 {
			k++
		}
		a, b := s.Value(k), s.Value(k+1)
		part := 0.0
		if a != b {
			part = min(max((v-a)/(b-a), 0), 1)
		}
		out = append(out, tick{(float64(k) + 0.5 + part) / float64(n), texts[i]})
	}
	return out
}

// valueTicks are ticks at round values, or at quarters of the scale where values have texts.
func (f *Figure) valueTicks(reverse bool) (out []tick) {
	l := f.Limits
	if f.Text == nil {
		values := rounds(l.Lo, l.Hi, 0, mostTicks)
		for i, text := range tickTexts(values) {
			out = append(out, tick{l.place(values[i]), text})
		}
	}
	if len(out) < 2 {
		out = nil
		for i := range 5 {
			at := float64(i) / 4
			if text := f.number(l.at(at)); len(out) == 0 || text != out[len(out)-1].text {
				out = append(out, tick{at, text})
			}
		}
	}
	if reverse {
		for i := range out {
			out[i].at = 1 - out[i].at
		}
	}
	return out
}

func (f *Figure) yTicks() []tick {
	switch f.Kind {
	case Plane:
		return f.Y.ticks(f.Window.Y.Len, mostTicks)
	case Series:
		return f.valueTicks(true)
	}
	_, most := f.counts(bins)
	return []tick{{0, strconv.FormatInt(most, 10)}, {1, "0"}}
}

// counts returns a histogram and its largest count, at least 1.
func (f *Figure) counts(n int) (counts []int64, most int64) {
	most = 1
	for _, c := range Histogram(f.Window.Values, f.Limits, n) {
		counts, most = append(counts, c), max(most, c)
	}
	return counts, most
}

func (f *Figure) draw(c canvas, l layout) {
	x0, y0 := float64(l.box.Min.X), float64(l.box.Min.Y)
	w, h := float64(l.box.Dx()), float64(l.box.Dy())
	c.text(10, lineHeight, -1, f.Title)
	c.line(faint, [2]float64{x0, y0}, [2]float64{x0 + w, y0}, [2]float64{x0 + w, y0 + h}, [2]float64{x0, y0 + h}, [2]float64{x0, y0})
	xTicks := f.valueTicks(false)
	if f.Kind != Bars {
		widest := 1.0
		for _, t := range f.X.ticks(f.Window.X.Len, mostTicks) {
			widest = max(widest, textWidth(t.text)+20)
		}
		xTicks = f.X.ticks(f.Window.X.Len, min(int(w/widest), mostTicks))
	}
	for _, t := range f.yTicks() {
		c.line(ink, [2]float64{x0 - 4, y0 + t.at*h}, [2]float64{x0, y0 + t.at*h})
		c.text(x0-8, y0+t.at*h+4, 1, t.text)
	}
	for _, t := range xTicks {
		c.line(ink, [2]float64{x0 + t.at*w, y0 + h}, [2]float64{x0 + t.at*w, y0 + h + 4})
		c.text(x0+t.at*w, y0+h+lineHeight, 0, t.text)
	}
	c.text(x0+w/2, y0+h+2*lineHeight, 0, f.X.Name)
	if f.Kind == Plane {
		c.text(x0, y0-6, 0, f.Y.Name)
	}
	switch f.Kind {
	case Plane:
		c.picture(f.Window.Image(f.Map, f.Limits), l.box.Min.X, l.box.Min.Y, l.box.Dx(), l.box.Dy())
		if f.Window.Pixels != nil { // colours of their own have no scale
			return
		}
		bar := image.NewNRGBA(image.Rect(0, 0, 256, 1))
		for i := range 256 {
			bar.SetNRGBA(i, 0, f.Map.At(float64(i)/255))
		}
		y := y0 + h + 3*lineHeight
		c.picture(bar, l.box.Min.X, int(y)-8, l.box.Dx(), 10)
		lo, hi := f.ends()
		c.text(x0, y+lineHeight, -1, lo)
		c.text(x0+w, y+lineHeight, 1, hi)
	case Series:
		for _, run := range f.runs(w, h) {
			for i := range run {
				run[i] = [2]float64{x0 + run[i][0], y0 + run[i][1]}
			}
			c.line(blue, run...)
		}
	case Bars:
		counts, most := f.counts(bins)
		for i, n := range counts {
			tall := h * float64(n) / float64(most)
			c.fill(blue, x0+w*float64(i)/bins+1, y0+h-tall, w/bins-1, tall)
		}
	}
}

// runs returns the line of a series in a box: a part for each run without missing values.
// A value alone is a short line.
func (f *Figure) runs(width, height float64) (out [][][2]float64) {
	values := f.Window.Values
	var run [][2]float64
	for i := range len(values) + 1 {
		if i < len(values) && !math.IsNaN(values[i]) {
			x := (float64(i) + 0.5) / float64(len(values)) * width
			run = append(run, [2]float64{x, (1 - f.Limits.place(values[i])) * height})
			continue
		}
		if len(run) == 1 {
			run = append(run, run[0])
		}
		if len(run) > 0 {
			out, run = append(out, run), nil
		}
	}
	return out
}
