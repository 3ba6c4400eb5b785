package pco

import "encoding/binary"

// variable is one of up to three sequences of latents of a chunk: the primary
// and the secondary one, which make the numbers, and the distances of lookback.
type variable struct {
	used   bool
	bits   uint // of a latent
	log    uint // of the number of states
	widest uint // of the offsets
	bins   []bin
	nodes  []node
	delta  deltaKind
	stored int // number of latents that a page begins with

	// Of a page: the states of tANS and of prediction. For lookback that is a
	// ring of latents, the next at head.
	state [states]uint32
	past  []uint64
	head  int

	// Of a batch. Only the lowest bits of a latent mean anything.
	latents [batchSize]uint64
	widths  [batchSize]uint8
}

func (v *variable) use(used bool, bits uint) {
	v.used, v.bits, v.delta, v.stored = used, bits, noDelta, 0
}

// readPage reads the beginning of a page of n numbers.
func (v *variable) readPage(r *reader, c *chunk, n int) error {
	if uint64(v.stored)*uint64(v.bits) > r.left() {
		return errShort
	}
	if v.delta == lookback {
		v.startRing(c, n)
	} else {
		v.past = resize(v.past, v.stored)
	}
	for i := range v.stored {
		v.past[i] = r.bits(v.bits)
	}
	v.head = v.stored
	for i := range v.state {
		v.state[i] = uint32(r.bits(v.log))
	}
	return r.check()
}

// read reads the next n latents, or their residuals.
func (v *variable) read(r *reader, n int) error {
	if n == 0 {
		return nil
	}
	switch len(v.bins) {
	case 0:
		return corrupt("latents without bins")
	case 1:
		b := &v.bins[0]
		for i := range v.latents[:n] {
			v.latents[i], v.widths[i] = b.lower, b.width
		}
	default:
		v.readBinNumbers(r, n)
		if err := r.check(); err != nil {
			return err
		}
	}
	if v.widest > 0 {
		v.readOffsets(r, n)
	}
	return r.check()
}

// readBinNumbers reads the bins of the next n latents, and sets latents and
// widths from them.
func (v *variable) readBinNumbers(r *reader, n int) {
	r.ensure(reserve)
	src, pos, nodes := r.src, r.pos, v.nodes
	s0, s1, s2, s3 := v.state[0], v.state[1], v.state[2], v.state[3]
	i := 0
	for ; i+states <= n; i += states {
		// Four times 14 bits and 7 left over are less than 64.
		w := binary.LittleEndian.Uint64(src[pos>>3:]) >> (pos & 7)
		latents, widths := v.latents[i:i+4:i+4], v.widths[i:i+4:i+4]
		p := &nodes[s0]
		latents[0], widths[0] = p.lower, p.width
		s0 = uint32(p.next) + uint32(w)&(1<<(p.bits&15)-1)
		w >>= p.bits & 15
		used := uint64(p.bits)
		p = &nodes[s1]
		latents[1], widths[1] = p.lower, p.width
		s1 = uint32(p.next) + uint32(w)&(1<<(p.bits&15)-1)
		w >>= p.bits & 15
		used += uint64(p.bits)
		p = &nodes[s2]
		latents[2], widths[2] = p.lower, p.width
		s2 = uint32(p.next) + uint32(w)&(1<<(p.bits&15)-1)
		w >>= p.bits & 15
		used += uint64(p.bits)
		p = &nodes[s3]
		latents[3], widths[3] = p.lower, p.width
		s3 = uint32(p.next) + uint32(w)&(1<<(p.bits&15)-1)
		pos += used + uint64(p.bits)
	}
	v.state = [states]uint32{s0, s1, s2, s3}
	for ; i < n; i++ {
		p := &nodes[v.state[i%states]]
		v.latents[i], v.widths[i] = p.lower, p.width
		w := binary.LittleEndian.Uint64(src[pos>>3:]) >> (pos & 7)
		v.state[i%states] = uint32(p.next) + uint32(w)&(1<<p.bits-1)
		pos += uint64(p.bits)
	}
	r.pos = pos
}

// readOffsets adds the offsets of the next n latents.
func (v *variable) readOffsets(r *reader, n int) {
	r.ensure(reserve)
	src, pos := r.src, r.pos
	if v.widest <= 57 {
		for i := range v.latents[:n] {
			w := v.widths[i]
			v.latents[i] += binary.LittleEndian.Uint64(src[pos>>3:]) >> (pos & 7) & (1<<(w&63) - 1)
			pos += uint64(w)
		}
	} else {
		for i := range v.latents[:n] {
			w := v.widths[i]
			v.latents[i] += loadBits(src, pos) & low(uint(w))
			pos += uint64(w)
		}
	}
	r.pos = pos
}
