package picture

import (
	_ "embed"
	"encoding/binary"
	"math"
)

// coastline is the coastline of Natural Earth at 1:110 million, which is in the public domain
// (naturalearthdata.com): for each line the number of points, then longitude and latitude in hundredths
// of a degree, all in 16 bits, little-endian.
//
//go:embed coastline.bin
var coastline []byte

// Coast are the lines of coasts on a plane whose axes are latitudes and longitudes: across and down in
// elements, in turn. Lines end where the plane does. It is nil for other axes.
func Coast(y, x *Axis) (lines [][]float64) {
	lat, lon := y, x
	if y.Globe == "lon" {
		lat, lon = x, y
	}
	if lat.Globe != "lat" || lon.Globe != "lon" || !lat.Numbers() || !lon.Numbers() || lat.Len < 2 || lon.Len < 2 {
		return nil
	}
	centre := (lon.edge(0) + lon.edge(lon.Len)) / 2
	var line []float64
	end := func() {
		if len(line) > 2 {
			lines = append(lines, line)
		}
		line = nil
	}
	for b := coastline; len(b) > 2; {
		n := int(binary.LittleEndian.Uint16(b))
		b = b[2:]
		last := math.NaN()
		inside := true // of the last point
		for ; n > 0; n-- {
			u, v := float64(int16(binary.LittleEndian.Uint16(b)))/100, float64(int16(binary.LittleEndian.Uint16(b[2:])))/100
			b = b[4:]
			u -= 360 * math.Round((u-centre)/360)
			if math.Abs(u-last) > 180 { // over the edge of the plane
				end()
			}
			last = u
			i, in := lon.beyond(u)
			j, also := lat.beyond(v)
			in = in && also
			if !in && !inside { // both ends are outside
				end()
			}
			inside = in
			if lon == y {
				i, j = j, i
			}
			line = append(line, math.Round(i*1000)/1000, math.Round(j*1000)/1000)
		}
		end()
	}
	return lines
}

// beyond is where a value lies, in elements, also before the first and behind the last.
func (x *Axis) beyond(v float64) (at float64, inside bool) {
	rise, n := float64(x.Labels.Order()), float64(x.Len)
	if by := (x.edge(0) - v) * rise; by > 0 {
		return -by / math.Abs(x.edge(1)-x.edge(0)), false
	}
	if by := (v - x.edge(x.Len)) * rise; by > 0 {
		return n + by/math.Abs(x.edge(x.Len)-x.edge(x.Len-1)), false
	}
	return x.place(v), true
}

// coast draws the coast into a box, as far as it lies in it.
func (f *Figure) coast(c canvas, x0, y0, w, h float64) {
	in := func(s Scale, l Line, at float64) float64 {
		return s.part((at-0.5-float64(l.Start))/float64(l.Step)+0.5, l.Len)
	}
	inside := func(p [2]float64) bool { return p[0] >= x0 && p[0] <= x0+w && p[1] >= y0 && p[1] <= y0+h }
	for _, line := range f.Coast {
		var last [2]float64
		for i := 0; i+1 < len(line); i += 2 {
			p := [2]float64{x0 + in(f.X, f.Window.X, line[i])*w, y0 + in(f.Y, f.Window.Y, line[i+1])*h}
			if i > 0 && inside(p) && inside(last) {
				c.line(ink, last, p)
			}
			last = p
		}
	}
}
