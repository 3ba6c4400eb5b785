package picture

import (
	"image"
	"image/color"
	"math"
	"slices"
)

// Map is a scale of colours: the first belongs to the least value, the last to the
// greatest, and the rest lie at equal distances between them.
type Map struct {
	// Name is the name for users.
	Name string
	// Diverging maps have a neutral colour in the middle, which belongs to the value 0 of
	// differences; see [Symmetric].
	Diverging bool

	stops []uint32 // 0xRRGGBB
}

// maps are the scales, the default first. In dusk and sea the lightness grows evenly, so
// that equal steps of values look equal, also without colours and to most eyes that see
// few of them.
var maps = []Map{
	{"dusk", false, []uint32{0x0b0724, 0x2a1150, 0x4f1a66, 0x74266b, 0x983565, 0xb94a57, 0xd36546, 0xe58534, 0xefa92f, 0xf2cf4a, 0xf4f2a0}},
	{"sea", false, []uint32{0x0a0a2a, 0x131f52, 0x173875, 0x15528a, 0x166d93, 0x268894, 0x44a392, 0x6cbc8e, 0x9bd38d, 0xcde897, 0xf9f9b5}},
	{"balance", true, []uint32{0x12305e, 0x1f5c9c, 0x4f8fc4, 0x93bfdd, 0xcfdfe9, 0xf2f0ee, 0xf0d3c4, 0xe3a286, 0xcb6a52, 0xa23036, 0x66101f}},
	{"grey", false, []uint32{0x000000, 0xffffff}},
}

// Maps returns the names of all maps. The first is the default for values, "balance" for
// differences.
func Maps() []string {
	names := make([]string, len(maps))
	for i, m := range maps {
		names[i] = m.Name
	}
	return names
}

// MapByName returns a map; "" is the default. ok is false for an unknown name.
func MapByName(name string) (m Map, ok bool) {
	i := slices.IndexFunc(maps, func(m Map) bool { return m.Name == name || name == "" })
	if i < 0 {
		return Map{}, false
	}
	return maps[i], true
}

// At returns the colour at a place between 0 and 1; places outside have the colour of
// the end, and NaN is transparent.
func (m Map) At(f float64) color.NRGBA {
	if math.IsNaN(f) {
		return color.NRGBA{}
	}
	at := min(max(f, 0), 1) * float64(len(m.stops)-1)
	i := min(int(at), len(m.stops)-2)
	a, b, part := m.stops[i], m.stops[i+1], at-float64(i)
	mix := func(shift int) uint8 {
		x, y := float64(a>>shift&0xff), float64(b>>shift&0xff)
		return uint8(math.Round(x + (y-x)*part))
	}
	return color.NRGBA{mix(16), mix(8), mix(0), 255}
}

// Limits are the values at the ends of a map.
type Limits struct {
	Lo float64 `json:"lo"`
	Hi float64 `json:"hi"`
}

// place returns where a value lies between the limits, from 0 to 1. Where both are equal,
// they lie in the middle.
func (l Limits) place(v float64) float64 {
	switch {
	case math.IsNaN(v):
		return v
	case v < l.Lo || math.IsInf(v, -1):
		return 0
	case v > l.Hi || math.IsInf(v, 1):
		return 1
	case l.Lo == l.Hi:
		return 0.5
	}
	f := (v - l.Lo) / (l.Hi - l.Lo)
	if math.IsInf(l.Hi-l.Lo, 0) { // the difference of two float64 may be none
		f = (v/2 - l.Lo/2) / (l.Hi/2 - l.Lo/2)
	}
	if math.IsNaN(f) { // of endless limits
		return 0.5
	}
	return f
}

// Shade is a colour of a map of 255, from 1 to 255, and 0 for a missing value.
func (l Limits) Shade(v float64) uint8 {
	if v != v {
		return 0
	}
	return 1 + uint8(math.Round(l.place(v)*254))
}

// at is the value at a place between the limits, the inverse of place.
func (l Limits) at(f float64) float64 { return l.Lo*(1-f) + l.Hi*f }

// Percentiles returns the values below which so many percent of the finite values lie.
// Without a finite value, ok is false. The customary limits of a picture are 2 and 98: few
// outliers do not make all else one colour. Values that have one value in most places get
// the limits of all of them.
func Percentiles(values []float64, low, high float64) (l Limits, ok bool) {
	v := finite(values)
	if len(v) == 0 {
		return Limits{}, false
	}
	slices.Sort(v)
	at := func(p float64) float64 {
		return v[int(math.Round(min(max(p, 0), 100)/100*float64(len(v)-1)))]
	}
	if l = (Limits{at(low), at(high)}); l.Lo == l.Hi {
		l = Limits{v[0], v[len(v)-1]}
	}
	return l, true
}

// Symmetric returns limits of the same distance from 0 that include both given ones.
func (l Limits) Symmetric() Limits {
	m := max(math.Abs(l.Lo), math.Abs(l.Hi))
	return Limits{0 - m, m} // no negative 0
}

func finite(values []float64) []float64 {
	out := make([]float64, 0, len(values))
	for _, v := range values {
		if !math.IsNaN(v) && !math.IsInf(v, 0) {
			out = append(out, v)
		}
	}
	return out
}

// Histogram counts the values between the limits in bins of equal width; the last bin
// includes the upper limit.
func Histogram(values []float64, l Limits, bins int) []int64 {
	counts := make([]int64, bins)
	for _, v := range values {
		if v >= l.Lo && v <= l.Hi {
			counts[min(int(l.place(v)*float64(bins)), bins-1)]++
		}
	}
	return counts
}

// Image colours a window: one pixel for each of its values, in which missing values are
// transparent. An array of colours keeps its own.
func (w *Window) Image(m Map, l Limits) *image.NRGBA {
	img := image.NewNRGBA(image.Rect(0, 0, w.X.Len, w.Y.Len))
	if w.Pixels != nil {
		copy(img.Pix, w.Pixels)
		return img
	}
	for i, v := range w.Values {
		c := m.At(l.place(v))
		copy(img.Pix[4*i:], []uint8{c.R, c.G, c.B, c.A})
	}
	return img
}
