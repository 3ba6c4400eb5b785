package pco

import (
	"math"
)

// chunk is the header of a chunk.
type chunk struct {
	typ  Type
	mode modeKind
	base uint64   // of intMult and floatMult, a latent
	k    uint     // of floatQuant
	dict []uint64 // latents

	delta     deltaKind
	order     int  // of consecutive and conv1
	window    uint // log of the furthest that lookback reaches
	stored    uint // log of the number of latents that lookback begins with
	secondary bool // whether the secondary latents are predicted too
	quant     uint
	bias      int64
	weights   [maxConvOrder]int64
}

// readChunk reads the metadata of a chunk of c.typ, and sets up the variables.
func (d *decoder) readChunk() error {
	if err := d.readMode(); err != nil {
		return err
	}
	if err := d.readDelta(); err != nil {
		return err
	}
	c, width := &d.chunk, d.typ.bits()
	d.extra.use(c.delta == lookback, 32)
	primary := width
	if c.mode == dictionary {
		primary = 32
	}
	d.primary.use(true, primary)
	d.secondary.use(c.mode != classic && c.mode != dictionary, width)
	for _, v := range d.variables() {
		if v.used {
			if err := v.readBins(&d.r); err != nil {
				return err
			}
		}
	}
	if err := d.r.align(); err != nil {
		return err
	}
	d.primary.delta, d.primary.stored = c.delta, c.deltaState()
	if c.secondary {
		d.secondary.delta, d.secondary.stored = c.delta, c.deltaState()
	}
	if c.delta == conv1 {
		return c.checkConv(primary)
	}
	return nil
}

// deltaState returns the number of latents that a page begins with.
func (c *chunk) deltaState() int {
	switch c.delta {
	case consecutive, conv1:
		return c.order
	case lookback:
		return 1 << c.stored
	}
	return 0
}

// readMode reads the mode, and whether the type can have it.
func (d *decoder) readMode() error {
	r, c, width := &d.r, &d.chunk, d.typ.bits()
	c.mode = modeKind(r.bits(4))
	switch {
	case c.mode == classic:
	case c.mode == intMult && !c.typ.float():
		if d.major == 0 {
			return corrupt("the retired mode 1 of version 0")
		}
		if c.base = r.bits(width); c.base == 0 {
			return corrupt("a base of 0")
		}
	case c.mode == floatMult && c.typ.float():
		c.base = r.bits(width)
		if v := c.typ.value(fromOrdered(c.base, c.typ)); v == 0 || v-v != 0 {
			return corrupt("a base of %v", v)
		}
	case c.mode == floatQuant && c.typ.float():
		c.k = uint(r.bits(8))
		if c.k == 0 || c.k > c.typ.explicitBits() {
			return corrupt("%d lower bits of %v apart", c.k, c.typ)
		}
	case c.mode == dictionary:
		n := r.bits(25)
		if err := r.align(); err != nil {
			return err
		}
		if n*uint64(width) > r.left() {
			return errShort
		}
		c.dict = resize(c.dict, int(n))
		for i := range c.dict {
			c.dict[i] = r.bits(width)
		}
	default:
		return corrupt("mode %d of %v", c.mode, c.typ)
	}
	return r.check()
}

// readDelta reads the delta encoding.
func (d *decoder) readDelta() error {
	r, c := &d.r, &d.chunk
	c.secondary = false
	if d.major < 3 {
		c.delta, c.order = noDelta, int(r.bits(3))
		if c.order > 0 {
			c.delta = consecutive
		}
		return r.check()
	}
	c.delta = deltaKind(r.bits(4))
	switch c.delta {
	case noDelta:
	case consecutive:
		if c.order = int(r.bits(3)); c.order == 0 {
			return corrupt("differences of order 0")
		}
		c.secondary = r.bits(1) != 0
	case lookback:
		c.window = 1 + uint(r.bits(5))
		c.stored = uint(r.bits(4))
		if c.window > maxWindowLog || c.stored > c.window {
			return corrupt("2^%d latents in a window of 2^%d", c.stored, c.window)
		}
		c.secondary = r.bits(1) != 0
	case conv1:
		c.quant = uint(r.bits(5))
		c.bias = int64(r.bits(64) ^ 1<<63)
		c.order = 1 + int(r.bits(5))
		for i := range c.weights[:c.order] {
			c.weights[i] = int64(int32(uint32(r.bits(32)) ^ 1<<31))
		}
	default:
		return corrupt("delta encoding %d", c.delta)
	}
	return r.check()
}

// checkConv makes sure that no sum overflows the type that writers compute in,
// which is twice as wide as the latents; nor then int64.
func (c *chunk) checkConv(width uint) error {
	if width > 32 {
		return corrupt("weighted sums of %d bits", width)
	}
	if c.quant > 2*width-1 {
		return corrupt("weights scaled by 2^%d", c.quant)
	}
	most := math.Abs(float64(c.bias))
	for _, w := range c.weights[:c.order] {
		most += math.Ldexp(math.Abs(float64(w)), int(width))
	}
	if most >= math.Ldexp(1, int(2*width-1)) {
		return corrupt("weighted sums of up to %g", most)
	}
	return nil
}

// resize returns s with length n, its elements of no matter.
func resize[E any](s []E, n int) []E {
	if cap(s) < n {
		return make([]E, n)
	}
	return s[:n]
}
