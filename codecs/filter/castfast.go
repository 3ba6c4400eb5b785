package filter

import (
	"math"
)

// blockCast casts whole blocks of the common types. It is caster without the
// rare cases: if one occurs in a block, caster converts the block.
type blockCast struct {
	from, to number
	rule     func(float64) float64
	wrap     bool
	clamp    bool
	// least and most bound a whole result, largest is the largest finite float.
	least, most int64
	largest     float64
	keys        []blockKey
}

// blockKey is an entry of the scalar map.
type blockKey struct {
	i      int64
	f      float64 // NaN is NaN
	stored []byte  // the result
}

// newBlockCast returns nil if the types or the map are beyond it.
func newBlockCast(c *caster) *blockCast {
	b := &blockCast{from: numberOf(c.from.typ), to: numberOf(c.to.typ), rule: c.rule, wrap: c.outOfRange == "wrap", clamp: c.outOfRange == "clamp"}
	wide := func(k number) bool { return k == notANumber || k == boolean || k == uint64s }
	if wide(b.from) || wide(b.to) || len(c.scalars) > 8 {
		return nil
	}
	if c.to.whole {
		least, most := c.to.limits()
		b.least, b.most = -int64(least), int64(most)
	} else {
		b.largest = c.to.info.Max
		// Conversions round to nearest; other rules matter if they round at all.
		exact := c.from.whole && c.from.bits <= c.to.info.Mantissa+1 || !c.from.whole && c.from.info.Mantissa <= c.to.info.Mantissa
		if !exact && c.rounding != "nearest-even" {
			return nil
		}
	}
	key := func(k, v real) {
		stored := make([]byte, c.to.size)
		c.to.store(stored, v)
		i := int64(k.mag)
		if k.negative {
			i = -i
		}
		b.keys = append(b.keys, blockKey{i: i, f: k.f, stored: stored})
	}
	for k, v := range c.scalars {
		key(k, v)
	}
	if c.nan != nil {
		key(real{f: math.NaN()}, *c.nan)
	}
	return b
}

// cast casts n elements, at most a block, and reports whether it could.
func (b *blockCast) cast(dst, src []byte, n int) bool {
	var mapped [numberBlock]uint8 // which key, from 1 on
	hits := 0
	if b.from.isFloat() {
		var block floatBlock
		v := block[:n]
		b.from.loadFloats(v, src)
		for k, key := range b.keys {
			for i := range v {
				if mapped[i] == 0 && (v[i] == key.f || v[i] != v[i] && key.f != key.f) {
					v[i], mapped[i] = 0, uint8(k+1)
					hits++
				}
			}
		}
		if b.to.isFloat() && !b.floats(dst, v) || !b.to.isFloat() && !b.whole(dst, v) {
			return false
		}
	} else {
		var block intBlock
		v := block[:n]
		b.from.loadInts(v, src)
		for k, key := range b.keys {
			for i := range v {
				if v[i] == key.i && mapped[i] == 0 {
					v[i], mapped[i] = 0, uint8(k+1)
					hits++
				}
			}
		}
		if !b.ints(dst, v) {
			return false
		}
	}
	if hits > 0 {
		size := b.to.size()
		for i, k := range mapped[:n] {
			if k != 0 {
				copy(dst[i*size:], b.keys[k-1].stored)
			}
		}
	}
	return true
}

// floats stores floats as floats.
func (b *blockCast) floats(dst []byte, v []float64) bool {
	if b.to < b.from {
		for _, x := range v {
			if math.Abs(x) > b.largest && !math.IsInf(x, 0) {
				return false
			}
		}
	}
	b.to.storeFloats(dst, v)
	return true
}

// whole stores floats as whole numbers.
func (b *blockCast) whole(dst []byte, v []float64) bool {
	var ints intBlock
	least, most := float64(b.least), float64(b.most)
	if b.to == int64s {
		most = math.Nextafter(1<<63, 0)
	}
	for i, x := range v {
		x = b.rule(x)
		if !(x >= least && x <= most) {
			if !b.clamp || math.IsNaN(x) || math.IsInf(x, 0) || b.to == int64s {
				return false
			}
			x = max(least, min(x, most))
		}
		ints[i] = int64(x)
	}
	b.to.storeInts(dst, ints[:len(v)])
	return true
}

// ints stores whole numbers.
func (b *blockCast) ints(dst []byte, v []int64) bool {
	switch {
	case b.to.isFloat():
		if b.to == float16s && b.from.size() > 1 {
			for _, x := range v {
				if x > 65504 || x < -65504 {
					return false
				}
			}
		}
	case b.clamp:
		for i, x := range v {
			v[i] = max(b.least, min(x, b.most))
		}
	case !b.wrap:
		for _, x := range v {
			if x < b.least || x > b.most {
				return false
			}
		}
	}
	b.to.storeInts(dst, v)
	return true
}

// blockScale is scaleOp for the common types.
type blockScale struct {
	k             number
	offset, scale int64
	f             struct{ offset, scale float64 }
}

func newBlockScale(o *scaleOp) *blockScale {
	b := &blockScale{k: numberOf(o.t.typ)}
	if b.k == notANumber || b.k == int64s || b.k == uint64s {
		return nil
	}
	whole := func(v real) int64 {
		if v.negative {
			return -int64(v.mag)
		}
		return int64(v.mag)
	}
	b.offset, b.scale = whole(o.offset), whole(o.scale)
	b.f.offset, b.f.scale = o.offset.f, o.scale.f
	return b
}

// run computes n elements, at most a block, and reports whether the type
// represents every result.
func (b *blockScale) run(dst, src []byte, n int, decode bool) bool {
	ok := true
	if b.k.isFloat() {
		var block floatBlock
		v := block[:n]
		b.k.loadFloats(v, src)
		for i, x := range v {
			var y, z float64
			if decode {
				y = b.k.round(x / b.f.scale)
				z = b.k.round(y + b.f.offset)
			} else {
				y = b.k.round(x - b.f.offset)
				z = b.k.round(y * b.f.scale)
			}
			// Only the infinite gives the infinite.
			ok = ok && (!math.IsInf(y, 0) && !math.IsInf(z, 0) || math.IsInf(x, 0))
			v[i] = z
		}
		if ok {
			b.k.storeFloats(dst, v)
		}
		return ok
	}
	var block intBlock
	v := block[:n]
	b.k.loadInts(v, src)
	for i, x := range v {
		var y, z int64
		if decode {
			y = x / b.scale
			z = y + b.offset
			ok = ok && y*b.scale == x
		} else {
			y = x - b.offset
			z = y * b.scale
		}
		ok = ok && b.k.wrap(y) == y && b.k.wrap(z) == z
		v[i] = z
	}
	if ok {
		b.k.storeInts(dst, v)
	}
	return ok
}
