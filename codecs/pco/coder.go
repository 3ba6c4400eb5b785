package pco

import "math/bits"

// coder encodes numbers of bins with tANS, from the last to the first. A decoder then reads the
// first number first.
type coder struct {
	state [states]uint32 // where a decoder begins
	// The bits that a decoder reads after each number.
	values []uint16
	sizes  []uint8

	next []uint16 // for each bin its states in ascending order
	bins []codedBin
}

type codedBin struct {
	weight uint32
	start  uint32 // in next
	bits   uint8  // that the states from least on give; lower states give one less
	least  uint32
}

// encode encodes numbers of bins, in turns with each of the states.
func (c *coder) encode(numbers []uint16, binList []bin, log uint) {
	c.state = [states]uint32{}
	if len(binList) <= 1 {
		return
	}
	c.build(binList, log)
	c.values, c.sizes = resize(c.values, len(numbers)), resize(c.sizes, len(numbers))
	size := uint32(1) << log
	state := [states]uint32{size, size, size, size}
	for i := len(numbers) - 1; i >= 0; i-- {
		b := &c.bins[numbers[i]]
		x, n := state[i%states], b.bits
		if x < b.least {
			n--
		}
		c.values[i] = uint16(x & (1<<n - 1))
		c.sizes[i] = n
		state[i%states] = size + uint32(c.next[b.start+x>>n-b.weight])
	}
	for i, x := range state {
		c.state[i] = x - size
	}
}

// build makes the coding table.
func (c *coder) build(binList []bin, log uint) {
	size := 1 << log
	nodes := make([]uint16, size)
	spread(binList, log, func(state uint32, bin int) { nodes[state] = uint16(bin) })
	c.next, c.bins = resize(c.next, size), resize(c.bins, len(binList))
	start := uint32(0)
	for i, b := range binList {
		n := log + 1 - uint(bits.Len32(b.weight))
		c.bins[i] = codedBin{weight: b.weight, start: start, bits: uint8(n), least: b.weight << n}
		start += b.weight
	}
	filled := make([]uint32, len(binList))
	for state, b := range nodes {
		c.next[c.bins[b].start+filled[b]] = uint16(state)
		filled[b]++
	}
}
