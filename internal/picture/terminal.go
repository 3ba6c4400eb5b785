package picture

import (
	"fmt"
	"image/color"
	"math"
	"strings"
	"unicode/utf8"
)

// Colours is the set of colours that a terminal shows.
type Colours uint8

// The kinds of terminals. NoColours writes no escape sequences at all, for files, pipes and
// NO_COLOR.
const (
	NoColours Colours = iota
	Colours256
	TrueColours
)

// Terminal draws a figure in lines of text: a plane in half blocks, two rows of it in a
// line, or in characters from "." to "@" without colours; a series in braille dots; a
// histogram in bars. It is at most width columns and height lines, apart from the lines
// that hold the title and the scale, which may be longer.
func (f *Figure) Terminal(width, height int, colours Colours) string {
	width, height = max(width, 8), max(height, 2)
	f = f.clipped()
	var b strings.Builder
	b.WriteString(f.Title + "\n")
	switch f.Kind {
	case Plane:
		f.blocks(&b, width, height, colours)
	case Series:
		f.braille(&b, width, height)
	case Bars:
		f.bars(&b, width, height)
	}
	return b.String()
}

// ramp are the characters for values from low to high, without colours.
const ramp = ".:-=+*#%@"

func (f *Figure) blocks(b *strings.Builder, width, height int, colours Colours) {
	w, h := f.fit(width, 2*height)
	h += h % 2
	win := f.Window
	img := win.Image(f.Map, f.Limits)
	row := func(y int) int { return f.Y.index((float64(y)+0.5)/float64(h), win.Y.Len) }
	col := func(x int) int { return f.X.index((float64(x)+0.5)/float64(w), win.X.Len) }
	for y := 0; y < h; y += 2 {
		if colours == NoColours {
			line := make([]byte, w)
			for x := range line {
				v := win.Values[row(y)*win.X.Len+col(x)]
				// A character has two rows: of a difference, the stronger one.
				if u := win.Values[row(y+1)*win.X.Len+col(x)]; f.Map.Diverging && (v != v || math.Abs(u) > math.Abs(v)) {
					v = u
				}
				line[x] = mark(f.Limits.place(v))
			}
			b.WriteString(strings.TrimRight(string(line), " ") + "\n")
			continue
		}
		p := pen{b: b, colours: colours}
		for x := range w {
			p.cell(img.NRGBAAt(col(x), row(y)), img.NRGBAAt(col(x), row(y+1)))
		}
		p.end()
	}
	const strip = 24
	if f.Map.Classes != nil {
		for _, c := range f.legend() {
			p := pen{b: b, colours: colours}
			if colours == NoColours {
				b.WriteByte(mark(f.Limits.place(c.Value))) // a space for other values
			} else {
				p.cell(c.Colour, c.Colour)
				p.reset()
			}
			b.WriteString(" " + f.className(c) + "   ")
		}
		fmt.Fprintf(b, "down: %s   across: %s\n", f.Y.Ends(f.Window.Y.Len), f.X.Ends(f.Window.X.Len))
		return
	}
	lo, hi := f.ends()
	b.WriteString(lo + " ")
	if p := (pen{b: b, colours: colours}); colours == NoColours {
		b.WriteString(ramp)
	} else {
		for i := range strip {
			c := f.Map.At(float64(i) / (strip - 1))
			p.cell(c, c)
		}
		p.reset()
	}
	fmt.Fprintf(b, " %s   down: %s   across: %s\n", hi, f.Y.Ends(f.Window.Y.Len), f.X.Ends(f.Window.X.Len))
}

// mark is the character for a place between the limits.
func mark(place float64) byte {
	if math.IsNaN(place) {
		return ' '
	}
	return ramp[min(int(place*float64(len(ramp))), len(ramp)-1)]
}

// pen writes cells of two colours with few escape sequences.
type pen struct {
	b          *strings.Builder
	colours    Colours
	text, back string // the present colours of the terminal
}

// cell writes a cell with an upper and a lower colour, each of which may be transparent.
func (p *pen) cell(upper, lower color.NRGBA) {
	char, text, back := "▀", p.code(38, upper), p.code(48, lower)
	switch {
	case upper.A == 0 && lower.A == 0:
		char, text = " ", p.text
	case upper.A == 0:
		char, text, back = "▄", p.code(38, lower), ""
	}
	if back == "" && p.back != "" {
		p.reset()
		if upper.A == 0 && lower.A == 0 {
			text = ""
		}
	}
	if text != p.text {
		p.b.WriteString("\x1b[" + text + "m")
	}
	if back != p.back {
		p.b.WriteString("\x1b[" + back + "m")
	}
	p.text, p.back = text, back
	p.b.WriteString(char)
}

func (p *pen) reset() {
	if p.text != "" || p.back != "" {
		p.b.WriteString("\x1b[0m")
		p.text, p.back = "", ""
	}
}

func (p *pen) end() {
	p.reset()
	p.b.WriteByte('\n')
}

// code sets the colour of the text (38) or of the background (48), if there is one.
func (p *pen) code(which int, c color.NRGBA) string {
	if c.A == 0 {
		return ""
	}
	if p.colours == TrueColours {
		return fmt.Sprintf("%d;2;%d;%d;%d", which, c.R, c.G, c.B)
	}
	return fmt.Sprintf("%d;5;%d", which, nearest256(c))
}

// nearest256 is the nearest of the 256 colours of terminals: 16 to 231 are a cube of six
// levels a side, and 232 to 255 greys.
func nearest256(c color.NRGBA) int {
	levels := [6]int{0, 95, 135, 175, 215, 255}
	best, least := 0, math.MaxInt
	try := func(n, r, g, b int) {
		dr, dg, db := r-int(c.R), g-int(c.G), b-int(c.B)
		if d := dr*dr + dg*dg + db*db; d < least {
			best, least = n, d
		}
	}
	for i := range 216 {
		try(16+i, levels[i/36], levels[i/6%6], levels[i%6])
	}
	for i := range 24 {
		try(232+i, 8+10*i, 8+10*i, 8+10*i)
	}
	return best
}

// braille draws a line in dots, two by four in a character.
func (f *Figure) braille(b *strings.Builder, width, height int) {
	lo, hi := f.ends()
	margin := max(len(hi), len(lo))
	w := max(width-margin-2, 4)
	cells := make([]rune, w*height)
	dot := func(x, y float64) {
		i, k := min(max(int(x), 0), 2*w-1), min(max(int(y), 0), 4*height-1)
		cells[k/4*w+i/2] |= [4][2]rune{{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}}[k%4][i%2]
	}
	for _, run := range f.runs(float64(2*w), float64(4*height-1)) {
		for i := 1; i < len(run); i++ {
			p, q := run[i-1], run[i]
			n := math.Ceil(max(math.Abs(q[0]-p[0]), math.Abs(q[1]-p[1]), 1))
			for k := range int(n) + 1 {
				at := float64(k) / n
				dot(p[0]+(q[0]-p[0])*at, math.Round(p[1]+(q[1]-p[1])*at))
			}
		}
	}
	for row := range height {
		label := ""
		switch row {
		case 0:
			label = hi
		case height - 1:
			label = lo
		}
		line := make([]rune, w)
		for i, c := range cells[row*w : (row+1)*w] {
			line[i] = ' '
			if c != 0 {
				line[i] = 0x2800 + c
			}
		}
		fmt.Fprintf(b, "%*s │%s\n", margin, label, strings.TrimRight(string(line), " "))
	}
	n := f.Window.X.Len
	first, last := f.X.Label(0), f.X.Label(n-1)
	gap := w - utf8.RuneCountInString(first) - utf8.RuneCountInString(last)
	fmt.Fprintf(b, "%*s  %s%s%s  %s\n", margin, "", first, strings.Repeat(" ", max(gap, 1)), last, f.X.Name)
}

// bars draws a histogram, a line for each bin.
func (f *Figure) bars(b *strings.Builder, width, height int) {
	n := min(height, bins)
	counts, most := f.counts(n)
	edge := func(i int) string {
		return f.number(f.Limits.at(float64(i) / float64(n)))
	}
	margin, digits := 0, len(fmt.Sprint(most))
	for i := range counts {
		margin = max(margin, len(edge(i)))
	}
	room := max(width-margin-digits-3, 4)
	for i, c := range counts {
		eighths := int(math.Round(float64(c) / float64(most) * float64(8*room)))
		bar := strings.Repeat("█", eighths/8)
		if part := eighths % 8; part > 0 {
			bar += string(rune('█' + 8 - part))
		}
		fmt.Fprintf(b, "%*s │%s %d\n", margin, edge(i), bar, c)
	}
	fmt.Fprintf(b, "%*s\n", margin, edge(n))
}
