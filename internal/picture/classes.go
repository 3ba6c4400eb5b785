package picture

import (
	"encoding/json"
	"image/color"
	"math"
	"slices"
	"strings"

	"github.com/zarrdb/zarrdb/zarr"
	"github.com/zarrdb/zarrdb/zarr/cf"
	"github.com/zarrdb/zarrdb/zarr/dtype"
)

// Class is a value with a meaning, by the CF attributes flag_values and flag_meanings.
type Class struct {
	Value  float64
	Text   string
	Colour color.NRGBA
}

// mostClasses is the most classes that have shades of their own.
const mostClasses = 254

// classColours are told apart by most eyes (Okabe and Ito, then Tol); later classes have darker ones.
var classColours = []uint32{0xe69f00, 0x56b4e9, 0x009e73, 0xf0e442, 0x0072b2, 0xd55e00, 0xcc79a7, 0x332288, 0x999933, 0x882255, 0x44aa99, 0xddcc77}

// otherClass is the colour of values that are no class.
var otherClass = color.NRGBA{0xe4, 0xe4, 0xe4, 255}

// Classes are those of an array of integers whose values dec leaves as they are stored; nil of others.
func Classes(a *zarr.Array, dec *cf.Decoder) (all []Class) {
	if k := a.Type().Kind(); k != dtype.Int && k != dtype.Uint || dec != nil && isTime(dec.Type()) {
		return nil
	}
	attrs := a.Meta().Attributes
	for _, name := range []string{"scale_factor", "add_offset", "flag_masks"} {
		if _, ok := attrs.Get(name); ok {
			return nil
		}
	}
	raw, _ := attrs.Get("flag_values")
	var values []float64
	if json.Unmarshal(raw, &values) != nil {
		var text string // of a converter that knows no lists
		_ = json.Unmarshal(raw, &text)
		_ = json.Unmarshal([]byte("["+strings.Trim(text, "[] ")+"]"), &values)
	}
	meanings := strings.Fields(attribute(a.Meta(), "flag_meanings"))
	if len(meanings) != len(values) || len(values) > mostClasses {
		return nil
	}
	// Decoded elements have the sign that _Unsigned says, flags often that of the stored ones.
	unsigned, over := strings.ToLower(attribute(a.Meta(), "_Unsigned")), math.Ldexp(1, a.Type().Bits())
	for i, v := range values {
		switch {
		case dec == nil:
		case unsigned == "true" && v < 0:
			v += over
		case unsigned == "false" && v >= over/2:
			v -= over
		}
		c, dark := classColours[i%len(classColours)], uint32(i/len(classColours))
		part := func(shift int) uint8 { return uint8((c >> shift & 0xff) * 5 / (5 + 2*dark)) }
		all = append(all, Class{v, clip(strings.ReplaceAll(meanings[i], "_", " "), mostText), color.NRGBA{part(16), part(8), part(0), 255}})
	}
	return all
}

// ClassShades returns the number of the class of a value from 1, 0 for a missing value, and 255 for a
// value that is no class.
func ClassShades(all []Class) func(v float64) uint8 {
	shades := make(map[float64]uint8, len(all))
	for i, c := range slices.Backward(all) {
		shades[c.Value] = uint8(i + 1)
	}
	return func(v float64) uint8 {
		if shade, ok := shades[v]; ok || v != v {
			return shade
		}
		return 255
	}
}
