package pco

import "math"

// form is how numbers are split into latents, for writing.
type form struct {
	typ  Type
	mode modeKind
	base uint64 // of floatMult, a latent
	inv  float64
}

// powers are the most decimal places for which numbers are tried as multiples.
const powers = 12

// choose chooses the split and the order of differences from a sample of
// e.latents.
func (e *encoder) choose(p Params) (form, int) {
	classicForm := form{typ: e.typ}
	f := form{}
	if !p.Classic {
		f = e.decimals()
	}
	if f.mode == classic && p.Delta != Auto {
		return classicForm, p.Delta
	}
	const pieces, piece = 4, 2048
	e.sample = e.sample[:0]
	size := len(e.latents)
	if size <= pieces*piece {
		e.sample = append(e.sample, e.latents...)
	} else {
		size = piece
		for i := range pieces {
			at := i * (len(e.latents) - piece) / (pieces - 1)
			e.sample = append(e.sample, e.latents[at:at+piece]...)
		}
	}
	level := min(p.Level, 8)
	cost, order := e.primary.guess(e.sample, size, p.Delta, level)
	if f.mode == classic {
		return classicForm, order
	}
	e.split = resize(e.split, len(e.sample))
	f.split(e.sample, e.split)
	multCost, multOrder := e.primary.guess(e.sample, size, p.Delta, level)
	secondCost, _ := e.primary.guess(e.split, len(e.split), 0, level)
	// A sample underestimates the size of two variables, and two are slower to
	// decode.
	if multCost+secondCost < 0.95*cost {
		return f, multOrder
	}
	return classicForm, order
}

// decimals returns a form with a power of ten if most numbers are nearly its
// multiples, else one with mode classic.
func (e *encoder) decimals() form {
	none := form{}
	if e.typ != Float32 && e.typ != Float64 || len(e.latents) == 0 {
		return none
	}
	const sample = 256
	f := form{typ: e.typ, mode: floatMult, inv: 1}
	for range powers + 1 {
		f.setBase()
		step := max(len(e.latents)/sample, 1)
		tried, good := 0, 0
		for i := 0; i < len(e.latents); i += step {
			l, s := f.splitOne(e.latents[i])
			center := uint64(1) << (e.typ.bits() - 1)
			tried++
			// A few units in the last place off; 0 gives no evidence.
			if off := int64(s - center); off >= -4 && off <= 4 && l != center {
				good++
			} else if off == 0 {
				tried--
			}
		}
		if good > 0 && good >= tried-tried/16 {
			return f
		}
		f.inv *= 10
	}
	return none
}

// setBase sets f.base and its inverse f.inv.
func (f *form) setBase() {
	if f.typ == Float32 {
		f.base = toOrdered(uint64(math.Float32bits(1/float32(f.inv))), Float32)
	} else {
		f.base = toOrdered(math.Float64bits(1/f.inv), Float64)
	}
}

// split turns the latents of numbers into primary ones, and sets the secondary
// ones; see joinFloatMult.
func (f *form) split(latents, seconds []uint64) {
	for i, l := range latents {
		latents[i], seconds[i] = f.splitOne(l)
	}
}

func (f *form) splitOne(l uint64) (primary, secondary uint64) {
	width := f.typ.bits()
	center, mask := uint64(1)<<(width-1), low(width)
	first := float64(uint64(1) << (f.typ.explicitBits() + 1))
	b := fromOrdered(l, f.typ)
	var mult float64
	var near uint64 // the latent of mult × base
	if f.typ == Float32 {
		mult = math.Round(float64(math.Float32frombits(uint32(b)) * float32(f.inv)))
		if !(math.Abs(mult) < first) {
			mult = 0 // and all is left to the secondary latent
		}
		base := math.Float32frombits(uint32(fromOrdered(f.base, Float32)))
		near = toOrdered(uint64(math.Float32bits(float32(mult)*base)), Float32)
	} else {
		mult = math.Round(math.Float64frombits(b) * f.inv)
		if !(math.Abs(mult) < first) {
			mult = 0
		}
		near = toOrdered(math.Float64bits(mult*math.Float64frombits(fromOrdered(f.base, Float64))), Float64)
	}
	primary = center + uint64(math.Abs(mult))
	if math.Signbit(mult) {
		primary = center - 1 - uint64(math.Abs(mult))
	}
	return primary, (l - near ^ center) & mask
}
