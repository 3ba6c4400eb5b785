package blosc

import (
	"encoding/binary"
	"math/bits"
)

// A blosclz stream is a sequence of literal runs and matches, each of which
// begins with a control byte c:
//
//	c < 32   the next c+1 bytes are literals
//	else     a match, of (c>>5)+2 bytes; if c>>5 is 7, further bytes are
//	         added to the length, up to and including the first that is not
//	         255. Its distance less one is (c&31)<<8 plus the next byte; if
//	         that is 8191, two bytes follow, high byte first, and are added.
//
// The first control byte is always a literal run; its upper bits mark the
// version. The stream ends in a literal run: the C library ignores a match at
// the very end.
const (
	lzRun    = 32   // most literals of one control byte
	lzNear   = 8191 // distances up to here take one byte, longer ones three
	lzFar    = 65535 + lzNear + 1
	lzLong   = 9 // lengths from here on have further bytes
	lzMarker = 1 << 5
)

// decodeBlosclz decodes src into dst and returns the number of bytes, or false
// if src is malformed or decodes to more than fit.
func decodeBlosclz(dst, src []byte) (n int, ok bool) {
	if len(src) == 0 {
		return 0, true
	}
	at, pos := 0, 1
	c := int(src[0]) & 31
	for {
		if c < 32 {
			run := c + 1
			if run > len(src)-pos || run > len(dst)-at {
				return 0, false
			}
			if len(src)-pos >= lzRun && len(dst)-at >= lzRun {
				// Of a fixed size, this is two moves and no call.
				*(*[lzRun]byte)(dst[at:]) = [lzRun]byte(src[pos:])
			} else {
				copy(dst[at:], src[pos:pos+run])
			}
			at += run
			pos += run
		} else {
			length := c>>5 + 2
			dist := c & 31 << 8
			if length == lzLong {
				for {
					if pos >= len(src) {
						return 0, false
					}
					more := int(src[pos])
					pos++
					length += more
					if more != 255 {
						break
					}
				}
			}
			if pos >= len(src) {
				return 0, false
			}
			dist += int(src[pos]) + 1
			pos++
			if dist == lzNear+1 {
				if len(src)-pos < 2 {
					return 0, false
				}
				dist += int(binary.BigEndian.Uint16(src[pos:]))
				pos += 2
			}
			if dist > at || length > len(dst)-at {
				return 0, false
			}
			if dist >= 16 && length <= 16 && len(dst)-at >= 16 {
				*(*[16]byte)(dst[at:]) = [16]byte(dst[at-dist:])
			} else {
				copyMatch(dst, at, dist, length)
			}
			at += length
		}
		if pos >= len(src) {
			return at, true
		}
		c = int(src[pos])
		pos++
	}
}

// copyMatch copies length bytes from dist before at to at, where the two may
// overlap.
func copyMatch(dst []byte, at, dist, length int) {
	if dist >= 8 && length <= 64 && len(dst)-at >= 72 {
		// Words, the last of which may reach beyond the match, where nothing is
		// written yet.
		to, from := dst[at:at+72], dst[at-dist:]
		for i := 0; i < length; i += 8 {
			binary.LittleEndian.PutUint64(to[i:], binary.LittleEndian.Uint64(from[i:]))
		}
		return
	}
	if dist == 1 && length <= 64 && len(dst)-at >= 72 {
		to, w := dst[at:at+72], uint64(dst[at-1])*0x0101010101010101
		for i := 0; i < length; i += 8 {
			binary.LittleEndian.PutUint64(to[i:], w)
		}
		return
	}
	// Each copy doubles the period that is there.
	from := at - dist
	for length > 0 {
		n := copy(dst[at:at+length], dst[from:at])
		at += n
		length -= n
	}
}

// lzTable has the last position of each hash, plus one.
type lzTable [1 << lzHashBits]uint32

const lzHashBits = 14

// lzEncoder writes blosclz streams.
type lzEncoder struct {
	table  lzTable
	sample [lzSample]byte
}

const lzSample = 4096

// encode writes a stream for src to dst and returns its length, or 0 if it
// does not fit, or if src is too short or, for the level, too hard to compress.
func (e *lzEncoder) encode(dst, src []byte, level int) int {
	if len(src) < 16 {
		return 0
	}
	// A sample from behind the middle detects noise, which would cost as much to
	// decode as to encode. The C library requires the same gain.
	if n := len(src) / 4; n >= 64 {
		part := src[len(src)-n:]
		part = part[:min(n, lzSample)]
		gain := [...]int{0, 200, 150, 120, 120, 120, 120, 115, 110, 100}[level]
		m := e.match(e.sample[:min(len(e.sample), len(part)*100/gain)], part, 0)
		if m == 0 {
			return 0
		}
	}
	// How soon the search skips bytes without matches.
	return e.match(dst, src, [...]uint{0, 6, 5, 4, 4, 3, 2, 2, 1, 0}[level])
}

// match writes a stream for src to dst and returns its length, or 0 if it does
// not fit. The larger skip, the sooner it passes over bytes without matches; 0
// is most thorough.
func (e *lzEncoder) match(dst, src []byte, skip uint) int {
	table := &e.table
	// A short stream is not worth a large table to clear.
	shift := 32 - min(lzHashBits, bits.Len(uint(len(src)))-1)
	clear(table[:1<<(32-shift)])
	hash := func(w uint32) uint32 { return w * 2654435761 >> shift }
	// Matches end 5 bytes before the end, for literals at the end and loads of
	// four bytes.
	last := len(src) - 5
	out, anchor, pos := 0, 0, 1
	misses := uint(1) << (8 - skip)
	for pos < last-4 {
		w := binary.LittleEndian.Uint32(src[pos:])
		h := hash(w)
		from := int(table[h]) - 1
		table[h] = uint32(pos + 1)
		if from < 0 || pos-from > lzFar || binary.LittleEndian.Uint32(src[from:]) != w {
			pos += int(misses >> (8 - skip))
			misses++
			continue
		}
		length := 4 + matchLength(src[from+4:last], src[pos+4:last])
		if pos-from > lzNear && length < 6 {
			pos++
			continue
		}
		for pos > anchor && from > 0 && src[pos-1] == src[from-1] {
			pos--
			from--
			length++
		}
		if out = putLiterals(dst, out, src[anchor:pos]); out < 0 {
			return 0
		}
		if out = putMatch(dst, out, pos-from, length); out < 0 {
			return 0
		}
		pos += length
		anchor = pos
		misses = 1 << (8 - skip)
		if pos < last-4 {
			table[hash(binary.LittleEndian.Uint32(src[pos-2:]))] = uint32(pos - 1)
		}
	}
	if out = putLiterals(dst, out, src[anchor:]); out < 0 {
		return 0
	}
	dst[0] |= lzMarker
	return out
}

// matchLength returns how many bytes a and b have in common at their begin; b
// is the shorter one.
func matchLength(a, b []byte) int {
	n := 0
	for len(b)-n >= 8 {
		if x := binary.LittleEndian.Uint64(a[n:]) ^ binary.LittleEndian.Uint64(b[n:]); x != 0 {
			return n + bits.TrailingZeros64(x)/8
		}
		n += 8
	}
	for n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// putLiterals writes runs of literals at out and returns where they end, or -1
// if there is no room.
func putLiterals(dst []byte, out int, lits []byte) int {
	if need := len(lits) + (len(lits)+lzRun-1)/lzRun; need > len(dst)-out {
		return -1
	}
	for len(lits) > 0 {
		n := min(len(lits), lzRun)
		dst[out] = byte(n - 1)
		copy(dst[out+1:], lits[:n])
		out += 1 + n
		lits = lits[n:]
	}
	return out
}

// putMatch writes a match at out and returns where it ends, or -1 if there is
// no room.
func putMatch(dst []byte, out, dist, length int) int {
	if need := 5 + length/255; need > len(dst)-out {
		return -1
	}
	near, far := dist-1, 0
	if dist > lzNear {
		near, far = lzNear, dist-1-lzNear
	}
	first := out
	dst[out] = byte(near >> 8)
	out++
	if length < lzLong {
		dst[first] |= byte(length-2) << 5
	} else {
		dst[first] |= 7 << 5
		rest := length - lzLong
		for ; rest >= 255; rest -= 255 {
			dst[out] = 255
			out++
		}
		dst[out] = byte(rest)
		out++
	}
	dst[out] = byte(near)
	out++
	if dist > lzNear {
		binary.BigEndian.PutUint16(dst[out:], uint16(far))
		out += 2
	}
	return out
}
