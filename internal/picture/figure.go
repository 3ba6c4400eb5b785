package picture

import (
	"cmp"
	"fmt"
	"image"
	"image/png"
	"io"
	"math"
	"slices"
	"sort"
	"strconv"

	"github.com/zarrdb/zarrdb/zarr/dtype"
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
	// Free says that rows and columns are of different kinds, so that the drawing has no proportions of its own.
	Free bool
	// Size is that of a column of an image, in a unit of length, for a scale bar; 0 is not known.
	Size float64
	Unit string
	// Coast are lines over a plane, in elements; see [Coast].
	Coast [][]float64
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
	// Name of the axis, and Title with units.
	Name, Title string
	// Label is the text of the k-th row or column.
	Label func(k int) string
	// Ticks are at most so many labels; nil has some at equal distances.
	Ticks func(most int) []tick
	// Edges are the places of the edges of all rows or columns, from 0 to 1, where sizes
	// differ; nil means that they are equal.
	Edges []float64
}

// part is where a place in rows lies, from 0 to 1.
func (s Scale) part(at float64, n int) float64 {
	if s.Edges == nil {
		return at / float64(n)
	}
	i := min(max(int(at), 0), n-1)
	return s.Edges[i] + (at-float64(i))*(s.Edges[i+1]-s.Edges[i])
}

// index is the row at a place from 0 to 1.
func (s Scale) index(at float64, n int) int {
	if s.Edges == nil {
		return min(int(at*float64(n)), n-1)
	}
	return min(max(sort.SearchFloat64s(s.Edges, math.Nextafter(at, 2))-1, 0), n-1)
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
	f = f.clipped()
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
	f = f.clipped()
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
	if aspect = min(max(aspect, 0.2), 1.5); f.Free {
		aspect = min(max(aspect, 0.5), 1)
	}
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
		if n := len(f.legend()); n > 0 {
			l.bottom += (n-1)/f.classColumns(w)*lineHeight - lineHeight
		} else if f.Window.Pixels == nil {
			for _, t := range f.barTicks(w) {
				half := textWidth(t.text) / 2
				l.left, l.right = max(l.left, int(half-t.at*float64(w))+4), max(l.right, int(half-(1-t.at)*float64(w))+4)
			}
		}
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

// ticks of an axis of n rows or columns, at equal distances if it has no others. Labels stand at
// the centres of rows and columns.
func (s Scale) ticks(n, most int) (out []tick) {
	if s.Label == nil {
		return nil
	}
	if s.Ticks != nil {
		if out = s.Ticks(most); len(out) > 0 {
			return out
		}
	}
	for k, by := 0, (n-2)/max(most-1, 1)+1; k < n; k += max(by, 1) {
		out = append(out, tick{s.part(float64(k)+0.5, n), s.Label(k)})
	}
	return out
}

// Ticks are at most so many values at round numbers, or at parts of the scale where values have
// texts or there are no round numbers between the limits.
func (l Limits) Ticks(most int, t dtype.Type, text func(float64) string) (out []Tick) {
	if text == nil || t.Kind() == dtype.Timedelta { // a round count of a unit is a round span
		least := 0.0
		if k := t.Kind(); k == dtype.Bool || k == dtype.Int || k == dtype.Uint {
			least = 1
		}
		values := l.rounds(most, least)
		texts := tickTexts(values)
		for i, v := range values {
			if text != nil {
				texts[i] = text(v)
			} else if l.Log && l.Hi >= 2*l.Lo { // else values are at equal distances
				texts[i] = Number(v, 3, 64)
			}
			out = append(out, Tick{v, v, texts[i]})
		}
	}
	if text == nil {
		text = func(v float64) string { return l.Number(v, t) }
	}
	if len(out) > 1 {
		return out
	}
	out = nil
	for i := range min(most, 5) {
		v := l.at(float64(i) / float64(max(min(most, 5)-1, 1)))
		if s := text(v); len(out) == 0 || s != out[len(out)-1].Text {
			out = append(out, Tick{v, v, s})
		}
	}
	return out
}

// barTicks are those of the bar of colours, as many as have room.
func (f *Figure) barTicks(width int) (out []tick) {
	for most := mostTicks; most > 1; most-- {
		wide := 0.0
		out = f.valueTicks(false, most)
		for _, t := range out {
			wide += textWidth(t.text) + 10
		}
		if wide <= float64(width) {
			break
		}
	}
	return out
}

func (f *Figure) valueTicks(reverse bool, most int) (out []tick) {
	for _, t := range f.Limits.Ticks(most, f.Window.Type, f.Text) {
		at := f.Limits.place(t.Value)
		if reverse {
			at = 1 - at
		}
		out = append(out, tick{at, t.Text})
	}
	return out
}

func (f *Figure) yTicks() []tick {
	switch f.Kind {
	case Plane:
		return f.Y.ticks(f.Window.Y.Len, mostTicks)
	case Series:
		return f.valueTicks(true, mostTicks)
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
	xTicks := f.barTicks(l.box.Dx())
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
	c.text(x0+w/2, y0+h+2*lineHeight, 0, cmp.Or(f.X.Title, f.X.Name))
	if f.Kind == Plane {
		c.text(x0, y0-6, 0, cmp.Or(f.Y.Title, f.Y.Name))
	}
	switch f.Kind {
	case Plane:
		if f.Window.Pixels == nil && slices.ContainsFunc(f.Window.Values, math.IsNaN) {
			c.fill(blank, x0, y0, w, h)
		}
		c.picture(f.image(l.box.Dx(), l.box.Dy()), l.box.Min.X, l.box.Min.Y, l.box.Dx(), l.box.Dy())
		f.coast(c, x0, y0, w, h)
		f.scaleBar(c, x0+w, y0+h, w)
		if f.Window.Pixels != nil { // colours of their own have no scale
			return
		}
		y := y0 + h + 3*lineHeight
		if classes := f.legend(); classes != nil {
			columns := f.classColumns(l.box.Dx())
			for i, k := range classes {
				x, y := x0+w*float64(i%columns)/float64(columns), y+float64(i/columns*lineHeight)
				c.fill(k.Colour, x, y-8, 12, 12)
				c.text(x+16, y+3, -1, clip(f.className(k), classWidth/7))
			}
			return
		}
		bar := image.NewNRGBA(image.Rect(0, 0, 256, 1))
		for i := range 256 {
			bar.SetNRGBA(i, 0, f.Map.At(float64(i)/255))
		}
		c.picture(bar, l.box.Min.X, int(y)-8, l.box.Dx(), 10)
		under, over := f.Limits.Beyond(f.Window.Values)
		for _, end := range []struct {
			n     int
			x, by float64
			f     float64
		}{{under, x0, -1, 0}, {over, x0 + w, 1, 1}} { // a point where values lie beyond
			for i := range 9 {
				if at := float64(i); end.n > 0 {
					c.line(f.Map.At(end.f), [2]float64{end.x + end.by*(at+1), y - 8 + at/2}, [2]float64{end.x + end.by*(at+1), y + 1 - at/2})
				}
			}
		}
		for _, t := range f.barTicks(l.box.Dx()) {
			c.line(ink, [2]float64{x0 + t.at*w, y + 2}, [2]float64{x0 + t.at*w, y + 5})
			c.text(x0+t.at*w, y+lineHeight, 0, t.text)
		}
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

// scaleBar draws a bar of a round length, at most a fifth of the width, in the lower right corner.
func (f *Figure) scaleBar(c canvas, right, bottom, w float64) {
	total := f.Size * float64(f.Window.X.Len)
	if f.Unit == "" || !(total > 0) || math.IsInf(total, 0) {
		return
	}
	size := math.Pow(10, math.Floor(math.Log10(total/5)))
	for _, m := range []float64{5, 2} {
		if m*size <= total/5 {
			size *= m
			break
		}
	}
	unit, long := f.Unit, size/total*w
	if short := map[string]string{"micrometer": "µm", "nanometer": "nm", "millimeter": "mm"}[unit]; short != "" {
		unit = short
	}
	text := Number(size, 2, 64) + " " + unit
	wide := max(long, textWidth(text)) + 12
	c.fill(paper, right-wide-6, bottom-28, wide, 22)
	c.fill(ink, right-wide/2-6-long/2, bottom-12, long, 3)
	c.text(right-wide/2-6, bottom-16, 0, text)
}

// legend lists the classes, and an entry for values that belong to no class.
func (f *Figure) legend() []Class {
	all := f.Map.Classes
	if all == nil {
		return nil
	}
	shade := ClassShades(all)
	if slices.ContainsFunc(f.Window.Values, func(v float64) bool { return shade(v) == 255 }) {
		all = append(slices.Clip(all), Class{Value: math.NaN(), Text: "other values", Colour: otherClass})
	}
	return all
}

func (f *Figure) className(c Class) string {
	if c.Value != c.Value {
		return c.Text
	}
	return Number(c.Value, 0, 64) + " " + c.Text
}

// classWidth is the room for the text of a class.
const classWidth = 210

// classColumns is how many classes stand in a line of a width.
func (f *Figure) classColumns(width int) int { return max(width/classWidth, 1) }

// image colours the window, with rows and columns of their sizes.
func (f *Figure) image(width, height int) image.Image {
	img, w := f.Window.Image(f.Map, f.Limits), f.Window
	if f.Y.Edges == nil && f.X.Edges == nil {
		return img
	}
	out := image.NewNRGBA(image.Rect(0, 0, width, height))
	for y := range height {
		j := f.Y.index((float64(y)+0.5)/float64(height), w.Y.Len)
		for x := range width {
			out.SetNRGBA(x, y, img.NRGBAAt(f.X.index((float64(x)+0.5)/float64(width), w.X.Len), j))
		}
	}
	return out
}

// runs returns the line of a series in a box: a part for each run without missing values.
// A value alone is a short line.
func (f *Figure) runs(width, height float64) (out [][][2]float64) {
	values := f.Window.Values
	var run [][2]float64
	for i := range len(values) + 1 {
		if i < len(values) && !math.IsNaN(values[i]) {
			x := f.X.part(float64(i)+0.5, len(values)) * width
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
