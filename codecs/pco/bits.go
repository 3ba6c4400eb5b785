package pco

import "encoding/binary"

// reserve is more than the bytes of the bins or the offsets of one batch, with
// the few that are loaded beyond them.
const reserve = batchSize*8 + 32

// reader reads bits. It may read zeros past the end of the data, up to one step;
// then check fails.
type reader struct {
	src []byte
	pos uint64 // in bits
	end uint64 // of the data, in bits
	// tail is a copy of the last bytes with zeros behind.
	tail [2 * reserve]byte
}

func (r *reader) reset(src []byte) {
	r.src, r.pos, r.end = src, 0, 8*uint64(len(src))
}

// ensure makes n bytes from the current one on readable, n ≤ reserve.
func (r *reader) ensure(n int) {
	if at := int(r.pos >> 3); len(r.src)-at < n {
		rest := r.tail[:copy(r.tail[:reserve], r.src[min(at, len(r.src)):])]
		clear(r.tail[len(rest):])
		r.src = r.tail[:]
		r.end -= 8 * uint64(at)
		r.pos &= 7
	}
}

// check fails if more bits were taken than there are.
func (r *reader) check() error {
	if r.pos > r.end {
		return errShort
	}
	return nil
}

// left returns the number of remaining bits.
func (r *reader) left() uint64 { return r.end - min(r.pos, r.end) }

// bits reads n bits, n ≤ 64; past the end they are zeros.
func (r *reader) bits(n uint) uint64 {
	if r.pos > r.end {
		return 0
	}
	r.ensure(16)
	v := loadBits(r.src, r.pos) & low(n)
	r.pos += uint64(n)
	return v
}

// loadBits returns the 64 bits from pos on.
func loadBits(src []byte, pos uint64) uint64 {
	b := src[pos>>3:]
	_ = b[8]
	return binary.LittleEndian.Uint64(b)>>(pos&7) | uint64(b[8])<<(64-pos&7)
}

// align goes to the next byte; the bits before it must be 0.
func (r *reader) align() error {
	if r.bits(uint(-r.pos&7)) != 0 {
		return corrupt("padding that is not 0")
	}
	return r.check()
}

// writer appends bits.
type writer struct {
	dst  []byte
	bits uint64
	n    uint // number of pending bits, < 64
}

// put appends the lowest n bits of v, n ≤ 64; the other bits of v are 0.
func (w *writer) put(v uint64, n uint) {
	w.bits |= v << w.n
	if w.n+n >= 64 {
		w.dst = binary.LittleEndian.AppendUint64(w.dst, w.bits)
		w.bits = v >> (64 - w.n)
		w.n += n - 64
		return
	}
	w.n += n
}

// align fills the last byte with zeros.
func (w *writer) align() {
	for ; w.n > 0; w.n -= min(w.n, 8) {
		w.dst = append(w.dst, byte(w.bits))
		w.bits >>= 8
	}
}
