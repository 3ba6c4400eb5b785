package picture

import "math"

// Labels are red, green, blue and opacity of elements that are identifiers: the colours of those that
// have one, by their digits, and others of neighbouring numbers that differ much. 0 is no label.
func (w *Window) Labels(colours map[string][4]uint8) []uint8 {
	out := make([]uint8, 0, 4*len(w.Values))
	known := map[uint64][4]uint8{0: colours["0"]} // nothing, but for a background with a colour
	for k, v := range w.Values {
		id := uint64(int64(v))
		if w.words != nil {
			id = w.words[k]
		}
		if v != v {
			id = 0
		}
		c, ok := known[id]
		if !ok {
			text, exact := w.IntegerAt(k)
			if !exact {
				text = Number(v, 0, 64)
			}
			if c, ok = colours[text]; !ok {
				c = labelColour(id)
			}
			if len(known) < 1<<16 {
				known[id] = c
			}
		}
		out = append(out, c[:]...)
	}
	return out
}

// labelColour is a colour for an identifier, whose hue is far from those of its neighbours.
func labelColour(id uint64) (c [4]uint8) {
	hue := math.Mod(float64(id%1_000_003)*0.6180339887, 1) * 6
	strong := 0.55 + 0.15*float64(id%3)
	for k, at := range []float64{5, 3, 1} {
		f := math.Mod(at+hue, 6)
		c[k] = uint8(255 * (1 - strong*max(0, min(f, 4-f, 1))))
	}
	c[3] = 255
	return c
}
