package inflate

import "encoding/binary"

// fastGeneric decodes symbols until the block ends or fastIn or fastOut bytes
// from the end of the input or of the room for the output.
func fastGeneric(d *decoder) (end int) {
	src, out := d.src, d.out
	pos, at, base := d.pos, d.at, d.base
	word, count := d.word, d.count
	lastIn, lastOut := d.lastIn, d.lastOut

	// e is the entry of the next bits, which a refill does not change. Looking
	// up before refilling keeps the refill out of the dependency chain from one
	// entry to the next, which bounds the speed.
	e := d.lit[word&(1<<litBits-1)]
	for pos <= lastIn && at <= lastOut {
		word |= binary.LittleEndian.Uint64(src[pos:]) << (count & 63)
		pos += int((63 - count) >> 3)
		count |= 56

		// Of 56 bits three lookups of literals take at most 33, two and a
		// length 42 with its extra bits: there is always enough for the lookup
		// that follows.
		if e&literal != 0 {
			out[at] = byte(e >> 8)
			at++
			word >>= e & takeMask
			count -= uint64(e & takeMask)
			e = d.lit[word&(1<<litBits-1)]
			if e&literal != 0 {
				out[at] = byte(e >> 8)
				at++
				word >>= e & takeMask
				count -= uint64(e & takeMask)
				e = d.lit[word&(1<<litBits-1)]
				if e&literal != 0 {
					out[at] = byte(e >> 8)
					at++
					word >>= e & takeMask
					count -= uint64(e & takeMask)
					e = d.lit[word&(1<<litBits-1)]
					continue
				}
			}
		}
		if e&special != 0 {
			if start, mask := subtable(e); mask != 0 {
				word >>= litBits
				count -= litBits
				e = d.lit[start+word&mask]
				if e&literal != 0 {
					out[at] = byte(e >> 8)
					at++
					word >>= e & takeMask
					count -= uint64(e & takeMask)
					e = d.lit[word&(1<<litBits-1)]
					continue
				}
			}
			if e&special != 0 {
				end = badLength
				if e&^takeMask == endOfBlock {
					word >>= e & takeMask
					count -= uint64(e & takeMask)
					end = blockEnd
				}
				break
			}
		}
		length := value(e, word)
		word >>= e & takeMask
		count -= uint64(e & takeMask)
		e = d.dist[word&(1<<distBits-1)]

		word |= binary.LittleEndian.Uint64(src[pos:]) << (count & 63)
		pos += int((63 - count) >> 3)
		count |= 56
		if e&special != 0 {
			if start, mask := subtable(e); mask != 0 {
				word >>= distBits
				count -= distBits
				e = d.dist[start+word&mask]
			}
			if e&special != 0 {
				end = badDist
				break
			}
		}
		dist := value(e, word)
		word >>= e & takeMask
		count -= uint64(e & takeMask)
		e = d.lit[word&(1<<litBits-1)]
		if dist > at-base {
			end = farDist
			break
		}
		wildCopy(out, at, dist, length)
		at += length
	}
	d.pos, d.at, d.word, d.count = pos, at, word, count
	return end
}

// wildCopy copies length bytes from dist before at to at, in words: up to 15
// bytes more are overwritten.
func wildCopy(out []byte, at, dist, length int) {
	from, end := at-dist, at+length
	if dist >= 8 {
		for {
			binary.LittleEndian.PutUint64(out[at:], binary.LittleEndian.Uint64(out[from:]))
			at += 8
			from += 8
			if at >= end {
				return
			}
		}
	}
	if dist == 1 {
		w := uint64(out[from]) * 0x0101010101010101
		for {
			binary.LittleEndian.PutUint64(out[at:], w)
			at += 8
			if at >= end {
				return
			}
		}
	}
	// Only the first dist bytes of each word are right; the next word repairs
	// the other bytes.
	for at < end {
		binary.LittleEndian.PutUint64(out[at:], binary.LittleEndian.Uint64(out[from:]))
		at += dist
		from += dist
	}
}
