package pco

import "math/bits"

// bin is a range of latents.
type bin struct {
	lower  uint64
	weight uint32 // number of its states in the table
	width  uint8  // bits of an offset from lower
}

// node is a state of a tANS decoder: its bin, and its successor, which is next
// plus the value of the next bits.
type node struct {
	lower uint64
	next  uint16
	bits  uint8
	width uint8
}

// spread calls f for the states of a table of 1<<log with the number of the bin,
// in an order that spreads the states of a bin over the table.
func spread(binList []bin, log uint, f func(state uint32, bin int)) {
	size := uint32(1) << log
	stride := 3*size/5 | 1
	state := uint32(0)
	for i := range binList {
		for range binList[i].weight {
			f(state, i)
			state = (state + stride) & (size - 1)
		}
	}
}

// buildNodes makes the decoding table; the weights sum to 1<<log.
func buildNodes(nodes []node, binList []bin, log uint) []node {
	size := 1 << log
	if cap(nodes) < size {
		nodes = make([]node, size)
	}
	nodes = nodes[:size]
	spread(binList, log, func(state uint32, bin int) {
		nodes[state].next = uint16(bin)
	})
	// The states of a bin with weight w are, in ascending order, w, w+1, …,
	// 2w-1, extended by bits of the stream to the size of the table.
	for i := range nodes {
		b := &binList[nodes[i].next]
		x := b.weight
		b.weight++
		n := log + 1 - uint(bits.Len32(x))
		nodes[i] = node{lower: b.lower, next: uint16(x<<n - uint32(size)), bits: uint8(n), width: b.width}
	}
	return nodes
}

// readBins reads how the latents of a variable are coded.
func (v *variable) readBins(r *reader) error {
	v.log = uint(r.bits(4))
	n := int(r.bits(15))
	if err := r.check(); err != nil {
		return err
	}
	if v.log > maxLog || n > 1<<v.log || n <= 1 && v.log != 0 {
		return corrupt("%d bins and a table of 2^%d states", n, v.log)
	}
	widthBits := uint(bits.Len(v.bits))
	if uint64(n)*uint64(v.log+v.bits+widthBits) > r.left() {
		return errShort
	}
	v.bins, v.widest = v.bins[:0], 0
	sum := uint32(0)
	for range n {
		b := bin{weight: uint32(r.bits(v.log)) + 1, lower: r.bits(v.bits), width: uint8(r.bits(widthBits))}
		if uint(b.width) > v.bits {
			return corrupt("offsets of %d bits in a variable of %d", b.width, v.bits)
		}
		v.widest = max(v.widest, uint(b.width))
		sum += b.weight
		v.bins = append(v.bins, b)
	}
	if n == 0 {
		return nil
	}
	if sum != 1<<v.log {
		return corrupt("bins of weight %d for a table of 2^%d states", sum, v.log)
	}
	v.nodes = buildNodes(v.nodes, v.bins, v.log)
	return nil
}
