package picture

import (
	"image"
	"image/color"
	"math"
	"slices"
	"strings"
)

// Map is a scale of colours: the first belongs to the least value, the last to the
// greatest, and the rest lie at equal distances between them.
type Map struct {
	// Name is the name for users.
	Name string
	// Diverging maps have a neutral colour in the middle, which belongs to the value 0 of
	// differences; see [Symmetric].
	Diverging bool
	// Cyclic maps end in the colour that they begin with.
	Cyclic bool
	// Classes have colours of their own, instead of those of the map.
	Classes []Class

	stops []uint32 // 0xRRGGBB
}

// maps are the scales, the default first. In all that are sequential but grey the lightness grows
// evenly, so that equal steps of values look equal, also without colours and to most eyes that see
// few of them. viridis and cividis are those of matplotlib (CC0). twilight is for angles and phases:
// both ends are one colour.
var maps = []Map{
	{Name: "dusk", stops: []uint32{0x0b0724, 0x2a1150, 0x4f1a66, 0x74266b, 0x983565, 0xb94a57, 0xd36546, 0xe58534, 0xefa92f, 0xf2cf4a, 0xf4f2a0}},
	{Name: "sea", stops: []uint32{0x0a0a2a, 0x131f52, 0x173875, 0x15528a, 0x166d93, 0x268894, 0x44a392, 0x6cbc8e, 0x9bd38d, 0xcde897, 0xf9f9b5}},
	{Name: "balance", Diverging: true, stops: []uint32{0x12305e, 0x1f5c9c, 0x4f8fc4, 0x93bfdd, 0xcfdfe9, 0xf2f0ee, 0xf0d3c4, 0xe3a286, 0xcb6a52, 0xa23036, 0x66101f}},
	{Name: "grey", stops: []uint32{0x000000, 0xffffff}},
	{Name: "viridis", stops: []uint32{0x440154, 0x482475, 0x414487, 0x355f8d, 0x2a788e, 0x21918c, 0x22a884, 0x44bf70, 0x7ad151, 0xbddf26, 0xfde725}},
	{Name: "cividis", stops: []uint32{0x00224e, 0x123570, 0x3b496c, 0x575d6d, 0x707173, 0x8a8678, 0xa59c74, 0xc3b369, 0xe1cc55, 0xfee838}},
	{Name: "twilight", Cyclic: true, stops: []uint32{0xe2d9e2, 0x9ebbc9, 0x6785be, 0x5e43a5, 0x421257, 0x471340, 0x8e2c50, 0xba6657, 0xceac94, 0xe2d9e2}},
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

// MapByName returns a map; "" is the default, and a name with "_r" behind it is turned around. ok is
// false for an unknown name.
func MapByName(name string) (m Map, ok bool) {
	name, turned := strings.CutSuffix(name, "_r")
	i := slices.IndexFunc(maps, func(m Map) bool { return m.Name == name || name == "" })
	if i < 0 {
		return Map{}, false
	}
	if m = maps[i]; turned {
		m.Name, m.stops = m.Name+"_r", slices.Clone(m.stops)
		slices.Reverse(m.stops)
	}
	return m, true
}

// colours returns the colour of a value.
func (m Map) colours(l Limits) func(v float64) color.NRGBA {
	if m.Classes == nil {
		return func(v float64) color.NRGBA { return m.At(l.place(v)) }
	}
	shade := ClassShades(m.Classes)
	return func(v float64) color.NRGBA {
		switch i := shade(v); i {
		case 0:
			return color.NRGBA{}
		case 255:
			return otherClass
		default:
			return m.Classes[i-1].Colour
		}
	}
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
	// Log puts equal ratios at equal distances. Lo is more than 0 then.
	Log bool `json:"log,omitempty"`
}

// Logarithmic are limits with equal ratios at equal distances. Lo is that of positive values; without
// them it is a thousandth of Hi, and never 0.
func (l Limits) Logarithmic() Limits {
	if l.Log = true; !(l.Hi > 0) {
		l.Hi = 1
	}
	if !(l.Lo > 0) || l.Lo > l.Hi {
		l.Lo = max(l.Hi/1000, math.SmallestNonzeroFloat64)
	}
	return l
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
	case l.Log:
		a, b := math.Log2(l.Lo), math.Log2(l.Hi) // Log is wrong for the least numbers on some machines
		return min(max((math.Log2(v)-a)/max(b-a, math.SmallestNonzeroFloat64), 0), 1)
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

// Place is where a value lies between the limits, from 0 to 1; NaN lies nowhere.
func (l Limits) Place(v float64) float64 { return l.place(v) }

// Shade is a colour of a map of 255, from 1 to 255, and 0 for a missing value.
func (l Limits) Shade(v float64) uint8 {
	if v != v {
		return 0
	}
	return 1 + uint8(math.Round(l.place(v)*254))
}

// at is the value at a place between the limits, the inverse of place.
func (l Limits) at(f float64) float64 {
	if l.Log {
		return math.Exp2(math.Log2(l.Lo)*(1-f) + math.Log2(l.Hi)*f)
	}
	return l.Lo*(1-f) + l.Hi*f
}

// Beyond counts the values that are less and more than the limits.
func (l Limits) Beyond(values []float64) (under, over int) {
	for _, v := range values {
		if v < l.Lo {
			under++
		} else if v > l.Hi {
			over++
		}
	}
	return under, over
}

// Percentiles returns the values below which so many percent of the finite values lie.
// Without a finite value, ok is false. The customary limits of a picture are 2 and 98: few
// outliers do not make all else one colour. Values that have one value in most places get
// the limits of all of them.
func Percentiles(values []float64, low, high float64) (l Limits, ok bool) {
	v := finite(values)
	if len(v) == 0 {
		return Limits{}, false
	}
	at := func(p float64) float64 {
		switch k := int(math.Round(min(max(p, 0), 100) / 100 * float64(len(v)-1))); k {
		case 0:
			return slices.Min(v)
		case len(v) - 1:
			return slices.Max(v)
		default:
			return nth(v, k)
		}
	}
	if l = (Limits{Lo: at(low), Hi: at(high)}); l.Lo == l.Hi {
		l = Limits{Lo: slices.Min(v), Hi: slices.Max(v)}
	}
	return l, true
}

// nth is the k-th of values in ascending order. It changes their order, in linear time on average,
// whatever they are: sorting all took most of the time of a window.
func nth(v []float64, k int) float64 {
	for seed := uint64(1); ; {
		seed = (seed*1664525 + 1013904223) & math.MaxUint32
		p := v[seed*uint64(len(v))>>32]
		less, same, more := 0, 0, len(v) // v[:less] < p, v[less:same] == p, v[more:] > p
		for same < more {
			switch x := v[same]; {
			case x < p:
				v[less], v[same] = x, v[less]
				less++
				same++
			case x > p:
				more--
				v[same], v[more] = v[more], x
			default:
				same++
			}
		}
		switch {
		case k < less:
			v = v[:less]
		case k >= more:
			v, k = v[more:], k-more
		default:
			return p
		}
	}
}

// Positive are the values that a scale of ratios has.
func Positive(values []float64) []float64 {
	return slices.DeleteFunc(slices.Clone(values), func(v float64) bool { return !(v > 0) })
}

// Symmetric returns limits of the same distance from 0 that include both given ones.
func (l Limits) Symmetric() Limits {
	m := max(math.Abs(l.Lo), math.Abs(l.Hi))
	return Limits{Lo: 0 - m, Hi: m} // no negative 0
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
	colour := m.colours(l)
	for i, v := range w.Values {
		c := colour(v)
		copy(img.Pix[4*i:], []uint8{c.R, c.G, c.B, c.A})
	}
	return img
}
