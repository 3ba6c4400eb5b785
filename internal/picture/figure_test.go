package picture

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"github.com/zarrdb/zarrdb/internal/must"
	"image/color"
	"image/gif"
	"image/png"
	"io"
	"math"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/zarrdb/zarrdb/zarr"
	"github.com/zarrdb/zarrdb/zarr/cf"
	"github.com/zarrdb/zarrdb/zarr/dtype"
)

// figure is a plane of two rows and three columns with one missing value.
func figure() *Figure {
	grey, _ := MapByName("grey")
	label := func(k int) string { return fmt.Sprint("<", k, ">") }
	return &Figure{
		Title:  "t & u",
		Window: &Window{Values: []float64{0, 1, math.NaN(), 2, 3, 4}, Y: Line{Len: 2, Skip: 1}, X: Line{Dim: 1, Len: 3, Skip: 1}},
		Map:    grey, Limits: Limits{Lo: 0, Hi: 4},
		Y: Scale{Name: "lat", Label: label}, X: Scale{Name: "lon", Label: label},
	}
}

// Each value is a rectangle of its colour, and a missing one is grey.
func TestPNG(t *testing.T) {
	f := figure()
	var b bytes.Buffer
	must.Do(t, f.PNG(&b, 60))
	img := must.Get(png.Decode(&b))(t)
	box := f.layout(60).box
	if box.Dx() != 60 || box.Dy() != 40 {
		t.Fatalf("the drawing is %v", box)
	}
	for y := range 40 {
		for x := range 60 {
			v := f.Window.Values[y/20*3+x/20]
			want := blank
			if v == v {
				c := uint8(math.Round(v / 4 * 255))
				want = color.NRGBA{c, c, c, 255}
			} else if x == 59 || y == 0 {
				continue // the frame
			}
			if got := color.NRGBAModel.Convert(img.At(box.Min.X+x, box.Min.Y+y)); got != want {
				t.Fatalf("pixel %d, %d is %v, want %v", x, y, got, want)
			}
		}
	}
}

// Texts of a store that are very long take no more room than others.
func TestLongTexts(t *testing.T) {
	long := strings.Repeat("é", 1<<20)
	x := &Axis{Name: long, Len: 2, Units: clip(long, mostText), Labels: labels{numbers: []float64{1, 2}, texts: []string{long, long}}}
	for _, text := range []string{x.Label(0), x.Full(0), x.Title()} {
		if n := utf8.RuneCountInString(text); n > 4*mostText {
			t.Errorf("%d characters", n)
		}
	}
	for _, kind := range []Kind{Plane, Series, Bars} {
		f := figure()
		f.Kind, f.Title, f.X.Name, f.X.Label, f.Y.Label = kind, long, long, func(int) string { return long }, func(int) string { return long }
		if l := f.clipped().layout(60); l.width() > 4000 {
			t.Errorf("%d: %d pixels", kind, l.width())
		}
		must.Do(t, f.PNG(io.Discard, 60))
		must.Do(t, f.SVG(io.Discard, 60))
		if n := len(f.Terminal(20, 5, NoColours)); n > 4000 {
			t.Errorf("%d: %d bytes", kind, n)
		}
	}
}

// SVG is well formed whatever texts say, and has the values of a series as one line for
// each run.
func TestSVG(t *testing.T) {
	f := figure()
	f.Title = "</svg><script>\x00 & \u202e"
	for _, f.Kind = range []Kind{Plane, Series, Bars} {
		var b bytes.Buffer
		must.Do(t, f.SVG(&b, 100))
		if strings.Contains(b.String(), "<script") {
			t.Error("the title is markup")
		}
		lines := 0
		for d := xml.NewDecoder(&b); ; {
			tok, err := d.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			must.Do(t, err)
			if e, ok := tok.(xml.StartElement); ok && e.Name.Local == "polyline" && strings.Contains(fmt.Sprint(e.Attr), hex(blue)) {
				lines++
			}
		}
		if want := map[Kind]int{Series: 2}[f.Kind]; lines != want {
			t.Errorf("kind %d: %d lines, want %d", f.Kind, lines, want)
		}
	}
}

func TestTerminal(t *testing.T) {
	f := figure()
	for c, want := range map[Colours]string{
		NoColours: "t & u\n...---\n...---\n+++###@@@\n",
		// 0 and 2 of 4 are black and the middle grey; the last column has no upper half.
		TrueColours: "t & u\n\x1b[38;2;0;0;0m\x1b[48;2;128;128;128m▀\x1b[38;2;64;64;64m\x1b[48;2;191;191;191m▀\x1b[0m\x1b[38;2;255;255;255m▄\x1b[0m\n",
		Colours256:  "t & u\n\x1b[38;5;16m\x1b[48;5;244m▀\x1b[38;5;238m\x1b[48;5;250m▀\x1b[0m\x1b[38;5;231m▄\x1b[0m\n",
	} {
		width, height := 9, 4
		if c != NoColours {
			width, height = 3, 1
		}
		var b strings.Builder
		b.WriteString(f.Title + "\n")
		f.blocks(&b, width, height, c)
		if got := b.String(); !strings.HasPrefix(got, want) || !strings.Contains(got, "down: lat <0> … <1>   across: lon <0> … <2>\n") {
			t.Errorf("%d:\n%q, want\n%q", c, got, want)
		}
	}
	if text := f.Terminal(80, 20, NoColours); strings.Contains(text, "\x1b") {
		t.Errorf("escapes in %q", text)
	}
	f.Map.Classes = []Class{{Text: "sea\x1b[2J"}}
	if text := f.Escaped(func(s string) string { return strings.ReplaceAll(s, "\x1b", "?") }).Terminal(80, 20, NoColours); strings.Contains(text, "\x1b") {
		t.Errorf("escapes of a class in %q", text)
	}
}

// No drawing is wider or higher than asked, for any size of the terminal and of the window.
func TestTerminalSizes(t *testing.T) {
	f := figure()
	for _, f.Kind = range []Kind{Plane, Series, Bars} {
		for _, size := range [][2]int{{1, 1}, {8, 2}, {20, 5}, {80, 24}, {300, 10}, {31, 100}} {
			for _, values := range []int{1, 2, 100, 1000} {
				f.Window = &Window{Y: Line{Len: 1, Skip: 1}, X: Line{Len: values, Skip: 3}}
				for i := range values {
					f.Window.Values = append(f.Window.Values, float64(i%7))
				}
				lines := strings.Split(f.Terminal(size[0], size[1], NoColours), "\n")
				drawn := lines[1 : len(lines)-2]
				if f.Kind == Bars {
					drawn = lines[1 : len(lines)-1]
				}
				if n := len(drawn); n > max(size[1], 2)+1 {
					t.Errorf("kind %d of %d values in %v: %d lines", f.Kind, values, size, n)
				}
				for _, line := range drawn {
					if n := utf8.RuneCountInString(line); n > max(size[0], 20) {
						t.Errorf("kind %d of %d values in %v: a line of %d characters", f.Kind, values, size, n)
					}
				}
			}
		}
	}
}

// A difference in any row has a character in a pipe.
func TestTerminalShowsEachDifference(t *testing.T) {
	for row := range 40 {
		f := figure()
		f.Map, _ = MapByName("balance")
		f.Limits = Limits{Lo: -1, Hi: 1}
		f.Window = &Window{Values: make([]float64, 40*80), Y: Line{Len: 40, Skip: 1}, X: Line{Len: 80, Skip: 1}}
		f.Window.Values[row*80+7] = math.Inf(-1)
		if text := f.Terminal(80, 20, NoColours); strings.Count(text, ".") != 1+1 { // with that of the scale
			t.Errorf("row %d:\n%s", row, text)
		}
	}
}

// labels are those of a coordinate, for tests.
type labels struct {
	numbers []float64
	texts   []string
	times   bool
}

func (l labels) Len() int64             { return int64(len(l.numbers)) }
func (l labels) Order() int             { return int(math.Copysign(1, l.numbers[len(l.numbers)-1]-l.numbers[0])) }
func (l labels) Times() bool            { return l.times }
func (l labels) Number(i int64) float64 { return l.numbers[i] }
func (l labels) Text(i int64) string {
	if l.texts != nil {
		return l.texts[i]
	}
	return Number(l.numbers[i], 0, 64)
}

// Ticks are at round values, at the beginnings of parts of times, and at equal distances.
func TestTicks(t *testing.T) {
	step := func(n int, first, by float64) (out []float64) {
		for i := range n {
			out = append(out, first+float64(i)*by)
		}
		return out
	}
	dates := func(n int, year, month, every int, form string) labels {
		l := labels{numbers: step(n, 0, 1), times: true}
		for i := range n {
			l.texts = append(l.texts, fmt.Sprintf(form, year+(month+i*every)/12, (month+i*every)%12+1))
		}
		return l
	}
	days := labels{numbers: step(30, 50, 1), times: true}
	for i := 50; i < 80; i++ {
		days.texts = append(days.texts, fmt.Sprintf("2000-%02d-%02dT00:00:00", i/30+1, i%30+1))
	}
	for _, c := range []struct {
		l    labels
		most int
		want string
	}{
		{labels{numbers: []float64{-90, -45, 0, 45, 90}}, 5, "1.3889 -50|2.5 0|3.6111 50"},
		{labels{numbers: []float64{49.5, 49, 48.5, 48, 47.5}}, 5, "0.5 49.5|1.5 49|2.5 48.5|3.5 48|4.5 47.5"},
		{labels{numbers: step(50, 5400000.5, 1)}, 6, "10 5400010|20 5400020|30 5400030|40 5400040"},
		{labels{numbers: []float64{0, 10, 50, 100, 500, 1000, 5000}}, 3, "0.5 0|5.5556 2000|6.25 4000"},
		{labels{numbers: []float64{7, 7, 7}}, 5, "0.5 7|1.5 7|2.5 7"},
		{labels{numbers: []float64{math.NaN(), 1, 2}}, 5, "0.5 missing|1.5 1|2.5 2"},
		{labels{numbers: []float64{3}}, 5, "0.5 3"},
		{labels{numbers: []float64{1, 2, math.Inf(1)}}, 5, "0.5 1|1.5 2|2.5 ∞"}, {labels{numbers: []float64{-1.5e308, 0, 1.5e308}}, 5, "0.5 -1.5e+308|1.5 0|2.5 1.5e+308"},
		{labels{numbers: []float64{271.34, 271.36}}, 2, "0.5 271.34|1.5 271.36"},
		{dates(24, 50, 0, 1, "%04d-%02d-01T00:00:00"), 8, "0.5 Jan 50|3.5 Apr 50|6.5 Jul 50|9.5 Oct 50|12.5 Jan 51|15.5 Apr 51|18.5 Jul 51|21.5 Oct 51"},
		{dates(480, 1980, 0, 1, "%04d-%02d-15T12:00:00"), 6, "0.5 1980|120.5 1990|240.5 2000|360.5 2010"},
		{days, 8, "0.5 2000-02-21|5.5 2000-02-26|10.5 2000-03-01|15.5 2000-03-06|20.5 2000-03-11|25.5 2000-03-16"},
	} {
		x := &Axis{Len: c.l.Len(), Labels: c.l}
		var got []string
		for _, tick := range x.Ticks(0, x.Len, c.most) {
			got = append(got, fmt.Sprintf("%.5g %s", tick.At, tick.Text))
		}
		if text := strings.Join(got, "|"); text != c.want {
			t.Errorf("%v: %s, want %s", c.l.numbers[:min(3, len(c.l.numbers))], text, c.want)
		}
	}
	if got := tickTexts([]float64{271.35}); got[0] != "271.35" {
		t.Error(got)
	}
	for _, last := range []int64{math.MinInt64, 0, math.MaxInt64} {
		if n := len((&Axis{Len: 3}).Ticks(math.MinInt64, last, 5)); n > 0 != (last > 0) {
			t.Errorf("%d ticks up to %d", n, last)
		}
	}
	f := figure()
	f.Limits = Limits{Lo: -0.13, Hi: 1.02}
	if got := fmt.Sprint(f.valueTicks(false, mostTicks)); !strings.Contains(got, " 0} ") || strings.Count(got, "{") != 6 {
		t.Error(got)
	}
}

// Elements have the sizes of their distances, and each can be seen; labels stand where their
// values are, also in rows that are turned or left out.
func TestEdges(t *testing.T) {
	for _, c := range []struct {
		v    []float64
		want string
	}{
		{[]float64{0, 1, 2, 3}, "[]"},
		{[]float64{0, 1, 2, 10}, "[0 0.276 0.552 1.79 4]"},
		{[]float64{10, 2, 1, 0}, "[0 2.21 3.45 3.72 4]"},
		{[]float64{1000, 1, 0.5, 0}, "[0 2.37 3.56 3.78 4]"},
		{[]float64{1, 1, 2, 7}, "[]"},
		{[]float64{1, 2, 4, math.Inf(1)}, "[]"}, {[]float64{-1.7e308, 0, 1e308}, "[]"},
	} {
		x := &Axis{Len: int64(len(c.v)), Labels: labels{numbers: c.v}}
		text := []string{}
		for _, e := range x.Edges() {
			text = append(text, fmt.Sprintf("%.3g", e))
		}
		if got := fmt.Sprint(text); got != c.want {
			t.Errorf("%v: %s, want %s", c.v, got, c.want)
		}
	}
	x := &Axis{Len: 4, Labels: labels{numbers: []float64{0, 1, 2, 10}}}
	s := x.Scale(Line{Start: 3, Step: -1, Len: 4, Skip: 1})
	if got := []int{s.index(0.1, 4), s.index(0.59, 4), s.index(0.61, 4), s.index(0.99, 4)}; fmt.Sprint(got) != "[0 1 1 3]" {
		t.Error(got, s.Edges)
	}
}

// Numbers have the digits that tell neighbours apart, and exact ones are those that JavaScript
// prints.
func TestNumber(t *testing.T) {
	for _, c := range []struct {
		v            float64
		digits, bits int
		want         string
	}{
		{math.Pi, 0, 64, "3.141592653589793"}, {float64(float32(0.1)), 0, 32, "0.1"}, {101326.78, 0, 64, "101326.78"}, {math.Copysign(0, -1), 0, 64, "0"},
		{5400024.5, 8, 64, "5400024.5"}, {123456, 2, 64, "120000"}, {1.08004e-50, 4, 64, "1.08e-50"}, {4.92e300, 4, 64, "4.92e+300"},
		{2.5e-7, 0, 64, "2.5e-7"}, {math.MaxFloat64, 3, 64, "1.7976931348623157e+308"}, {math.NaN(), 3, 64, "missing"}, {math.Inf(-1), 3, 64, "-∞"},
		{5e-324, 0, 64, "5e-324"}, {1 << 60, 0, 64, "1152921504606847000"},
	} {
		if got := Number(c.v, c.digits, c.bits); got != c.want {
			t.Errorf("%g with %d digits of %d bits is %s, want %s", c.v, c.digits, c.bits, got, c.want)
		}
	}
	next := math.Nextafter(101325, 0)
	for _, c := range []struct {
		l    Limits
		v    float64
		bits int
		want string
	}{
		{Limits{Lo: 0, Hi: 1}, 0.12345, 64, "0.1235"}, {Limits{Lo: 1e5, Hi: 1e5 + 1}, 1e5 + 0.5, 64, "100000.5"}, {Limits{Lo: 3, Hi: 3}, 3, 64, "3"}, {Limits{Lo: math.Inf(-1), Hi: 0}, 0, 64, "0"},
		{Limits{Lo: next, Hi: 101325}, next, 64, "101324.99999999999"}, {Limits{Lo: 0, Hi: 1e5}, 12346, 64, "12350"}, {Limits{Lo: 0.1, Hi: 0.1}, float64(float32(0.1)), 32, "0.1"},
		{Limits{Lo: -math.MaxFloat64, Hi: math.MaxFloat64}, 1e308, 64, "1e+308"},
	} {
		if got := c.l.Number(c.v, dtype.NewFloat(c.bits)); got != c.want {
			t.Errorf("%g within %v is %s, want %s", c.v, c.l, got, c.want)
		}
	}
}

// Every range has ticks, at most so many and all different, however near its ends are or far apart.
func TestTicksOfEveryRange(t *testing.T) {
	if testing.Short() {
		t.Skip("the work of one goroutine, many times")
	}
	for _, lo := range []float64{0, 1, -1, 5e-324, 1e-310, 101325, 1 << 53, 1e20, 1e300, -math.MaxFloat64, math.Inf(-1), math.NaN()} {
		for _, hi := range []float64{math.Nextafter(lo, math.Inf(1)), math.Nextafter(math.Nextafter(lo, 9e307), 9e307), lo + 1, 2 * lo, math.MaxFloat64, math.Inf(1), math.NaN(), lo} {
			f := figure()
			f.Limits, f.Window.Values = Limits{Lo: lo, Hi: hi}, []float64{lo, hi, lo, hi, lo, hi}
			seen := map[string]bool{}
			for _, tick := range f.valueTicks(false, mostTicks) {
				if seen[tick.text] && lo < hi && !math.IsInf(hi, 0) {
					t.Errorf("%g to %g: %q twice", lo, hi, tick.text)
				}
				seen[tick.text] = true
			}
			if len(seen) > mostTicks+1 {
				t.Errorf("%g to %g: %v", lo, hi, seen)
			}
			for _, f.Kind = range []Kind{Plane, Series, Bars} {
				f.Terminal(40, 10, NoColours)
				must.Do(t, f.PNG(io.Discard, 50))
			}
		}
	}
}

// An animation has a frame for each element, at most MostFrames, of one size and with one scale, also
// where all values are missing. Its colours are near those of the figure.
func TestAnimate(t *testing.T) {
	for _, c := range []struct {
		n      int64
		sel    string
		frames int
		fails  string
	}{{3, "", 3, ""}, {401, "", 134, ""}, {3, "1:", 2, ""}, {3, "1", 0, "several elements"}, {3, ":,0", 0, "two axes"}} {
		a := array(t, []int64{c.n, 2, 2}, []int64{1, 2, 2}, `{"_FillValue":4}`)
		must.Do(t, zarr.Write(t.Context(), a, zarr.Sel(zarr.At(1)), []int32{4, 4, 4, 4}))
		p := Plot{Array: a, Request: Request{Select: selection(t, a, c.sel), Decoder: must.Get(cf.NewDecoder(a.Meta()))(t)}}
		p.Map, _ = MapByName("")
		var b bytes.Buffer
		turns := 0
		err := p.Animate(t.Context(), &b, 0, 100, func(draw func() error) error { turns++; return draw() })
		if c.fails != "" {
			if err == nil || !strings.Contains(err.Error(), c.fails) {
				t.Errorf("%+v: %v", c, err)
			}
			continue
		}
		must.Do(t, err)
		g := must.Get(gif.DecodeAll(&b))(t)
		if len(g.Image) != c.frames || turns != c.frames || g.Delay[0] != frameDelay || g.LoopCount != 0 {
			t.Errorf("%+v: %d frames, %d turns, %v", c, len(g.Image), turns, g.Delay[:1])
		}
		p.Limits, p.Note, b = &Limits{Lo: 0, Hi: 1}, "DAPI, GFP", bytes.Buffer{} // added channels
		p.Compose = func(ctx context.Context, r Request) (*Window, error) {
			w, err := Read(ctx, a, r)
			if err == nil {
				w.Pixels = bytes.Repeat([]byte{255, 0, 0, 255}, len(w.Values))
			}
			return w, err
		}
		must.Do(t, p.Animate(t.Context(), &b, 0, 100, nil))
		if n := len(must.Get(gif.DecodeAll(&b))(t).Image); n != c.frames {
			t.Errorf("%+v: %d frames of channels", c, n)
		}
		p.Select = zarr.Sel(zarr.At(0))
		if f := must.Get(p.Figure(t.Context()))(t); !strings.Contains(f.Title, "DAPI, GFP") {
			t.Errorf("%q", f.Title)
		}
		for i, img := range g.Image {
			if img.Rect != g.Image[0].Rect || len(img.Palette) != 256 {
				t.Errorf("%+v: frame %d is %v", c, i, img.Rect)
			}
		}
	}
}

// Ticks of whole numbers are whole, and those of spans round. Rows and columns of two kinds, such as depths
// along latitudes, have no proportions.
func TestBar(t *testing.T) {
	second := must.Get(dtype.NewTimedelta("s", 1))(t)
	for _, c := range []struct {
		l    Limits
		t    dtype.Type
		want string
	}{{Limits{Lo: 0, Hi: 1}, dtype.NewBool(), "0 1"}, {Limits{Lo: 1, Hi: 3}, dtype.NewInt(8), "1 2 3"}, {Limits{Lo: 0, Hi: 1}, dtype.NewFloat(32), "0 0.2 0.4 0.6 0.8 1"}, {Limits{Lo: 8793, Hi: 86953}, second, "20000 s 40000 s 60000 s 80000 s"}} {
		var got []string
		for _, tick := range c.l.Ticks(6, c.t, TextOf(c.t, nil)) {
			got = append(got, tick.Text)
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%v: %q, want %q", c.t, got, c.want)
		}
	}
	f := figure()
	f.Window.Y, f.Window.X = Line{Len: 19, Skip: 1}, Line{Len: 141, Skip: 1}
	for _, f.Free = range []bool{false, true} {
		if w, h := f.fit(800, 800); w != 800 || h >= 400 != f.Free {
			t.Errorf("%v: %d × %d", f.Free, w, h)
		}
	}
	f.Limits, f.Window.Type = Limits{Lo: 1 << 60, Hi: 1<<60 + 600}, dtype.NewInt(64)
	l := f.layout(400)
	for _, tick := range f.barTicks(400) { // none is cut
		if at, half := float64(l.box.Min.X)+400*tick.at, textWidth(tick.text)/2; at < half || at+half > float64(l.width()) {
			t.Errorf("%q at %v of %d", tick.text, at, l.width())
		}
	}
}
