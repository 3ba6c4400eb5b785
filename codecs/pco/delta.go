package pco

import "math/bits"

// undo turns the residuals of a batch into n latents. known is the number of
// residuals; at the end of a page they are fewer than n, because the page begins
// with some latents. looks are the distances of lookback.
func (v *variable) undo(c *chunk, looks []uint64, known, n int) error {
	switch v.delta {
	case consecutive:
		v.undoConsecutive(known, n)
	case lookback:
		return v.undoLookback(c, looks, known, n)
	case conv1:
		v.undoConv(c, known, n)
	}
	return nil
}

// center is the offset of residuals, which makes small negative ones small.
func (v *variable) center() uint64 { return 1 << (v.bits - 1) }

func (v *variable) undoConsecutive(known, n int) {
	center := v.center()
	for i := range v.latents[:known] {
		v.latents[i] ^= center
	}
	clear(v.latents[known:n])
	for o := len(v.past) - 1; o >= 0; o-- {
		sum := v.past[o]
		for i, d := range v.latents[:n] {
			v.latents[i] = sum
			sum += d
		}
		v.past[o] = sum
	}
}

// undoConv predicts a latent by a weighted sum of the ones before.
func (v *variable) undoConv(c *chunk, known, n int) {
	var all [maxConvOrder + batchSize]uint64
	order, center, mask := c.order, v.center(), low(v.bits)
	copy(all[:order], v.past)
	for i, d := range v.latents[:known] {
		sum := c.bias
		before := all[i : i+order]
		for j, w := range c.weights[:len(before)] {
			sum += w * int64(before[j])
		}
		all[i+order] = (d ^ center + uint64(max(sum, 0)>>c.quant)) & mask
	}
	copy(v.latents[:n], all[:n])
	copy(v.past, all[n:n+order])
}

// startRing makes room for the latents that lookback reaches. Lookback beyond the first latent
// of a page finds zeros.
func (v *variable) startRing(c *chunk, n int) {
	// A ring of all latents of the page overwrites nothing, so a larger window needs no more.
	// The ring has room for at least one latent more: the oldest stays until it is returned.
	reach := min(1<<c.window, n) + v.stored
	v.past = resize(v.past, 1<<bits.Len(uint(reach)))
	clear(v.past)
}

// undoLookback predicts a latent by an earlier one.
func (v *variable) undoLookback(c *chunk, looks []uint64, known, n int) error {
	center, window := v.center(), uint64(1)<<c.window
	ring, head, mask := v.past, v.head, len(v.past)-1
	for i := range v.latents[:n] {
		if i < known {
			back := looks[i] & low(32)
			if back == 0 || back > window {
				return corrupt("a lookback of %d in a window of %d", back, window)
			}
			d := v.latents[i] ^ center
			if back < uint64(len(ring)) {
				d += ring[(head-int(back))&mask]
			}
			ring[head&mask] = d
		}
		v.latents[i] = ring[(head-v.stored)&mask]
		head++
	}
	v.head = head
	return nil
}
