package lz4

import (
	"encoding/binary"
	"math/bits"
	"unsafe"
)

const (
	// MaxBytes is the most that one block can hold.
	MaxBytes = 0x7e000000

	minMatch  = 4
	lastBytes = 5  // literals at the end
	lastMatch = 12 // no match begins closer to the end
	minBytes  = 13 // shorter input has no match
	smallFrom = 64<<10 + 11
	maxAccel  = 65537
	// After so many misses (a power of two) the steps get longer by one.
	patience = 6
)

// Encoder has the tables of one encoding call after another. The zero value is
// ready; it is not safe for concurrent use. It has no pointers and 32 KiB.
type Encoder struct {
	// Where four bytes with some hash were seen last, if all positions fit in 16
	// bits.
	small [1 << 13]uint16
	// The same for five bytes of longer input.
	large [1 << 12]uint32
}

// Bound is the most that n bytes are encoded to.
func Bound(n int) int { return n + n/255 + 16 }

// Encode writes a block for src to dst and returns its length, or 0 if it does
// not fit; Bound(len(src)) bytes are always enough. A little more room than the
// block has may be needed, as in the C library. An acceleration above 1 is faster
// and gives more bytes; anything below counts as 1. src has at most MaxBytes and
// does not overlap dst.
func (e *Encoder) Encode(dst, src []byte, acceleration int) int {
	return e.block(dst, src, acceleration, true)
}

// block is Encode, in assembly where there is some, or in plain Go.
func (e *Encoder) block(dst, src []byte, acceleration int, arch bool) int {
	if len(src) == 0 || len(dst) == 0 || len(src) > MaxBytes {
		if len(src) > 0 || len(dst) == 0 {
			return 0
		}
		dst[0] = 0
		return 1
	}
	acceleration = min(max(acceleration, 1), maxAccel)
	w := writer{
		dst: unsafe.Pointer(unsafe.SliceData(dst)), room: len(dst),
		src: unsafe.Pointer(unsafe.SliceData(src)), size: len(src),
	}
	if len(src) < smallFrom {
		clear(e.small[:])
	} else {
		clear(e.large[:])
	}
	if len(src) >= minBytes && !e.sequences(&w, acceleration, arch) {
		return 0
	}
	return w.finish()
}

// sequences writes all sequences but the last. It reports false if they do not
// fit.
func (e *Encoder) sequences(w *writer, acceleration int, arch bool) bool {
	if arch {
		if done, ok := e.encodeArch(w, acceleration); done {
			return ok
		}
	}
	if w.size < smallFrom {
		return encode(w, e.small[:], acceleration)
	}
	return encode(w, e.large[:], acceleration)
}

// encode is sequences in plain Go. The compiler makes one for each table, without
// the conditions on its type.
func encode[P uint16 | uint32](w *writer, table []P, acceleration int) bool {
	src := w.src
	last := w.size - lastMatch + 1
	ip := 1 // position 0 is in the table, which is all zeros
	for {
		var m int
		next, step, tries := ip, 1, acceleration<<patience
		v := load64(src, next)
		h := hash[P](v)
		for {
			ip = next
			next += step
			step = tries >> patience
			tries++
			if next > last {
				return true
			}
			cur := v
			m = int(table[h])
			table[h] = P(ip)
			v = load64(src, next)
			h = hash[P](v)
			if unlike(src, ip, m, cur) == 0 {
				break
			}
		}
		back := w.backwards(ip, m)
		if ip = w.sequence(ip-back, m-back); ip < 0 {
			return false
		}
		// Matches that begin where the last one ended have no literals.
		for {
			if ip >= last {
				return true
			}
			table[hash[P](load64(src, ip-2))] = P(ip - 2)
			v := load64(src, ip)
			h := hash[P](v)
			m := int(table[h])
			table[h] = P(ip)
			if unlike(src, ip, m, v) != 0 {
				break
			}
			if ip = w.sequence(ip, m); ip < 0 {
				return false
			}
		}
		ip++
	}
}

// unlike is 0 if the bytes at m are the first four of v, which are the bytes at ip, and m is
// within the window, as it always is in a small table. One branch tests both: in 128 KiB of noise
// each alone is hard to predict.
func unlike(src unsafe.Pointer, ip, m int, v uint64) uint {
	return uint(load32(src, m)^uint32(v)) | uint(ip-m)>>16
}

func load32(p unsafe.Pointer, i int) uint32 {
	return binary.LittleEndian.Uint32((*[4]byte)(unsafe.Add(p, i))[:])
}

func load64(p unsafe.Pointer, i int) uint64 {
	return binary.LittleEndian.Uint64((*[8]byte)(unsafe.Add(p, i))[:])
}

// hash is the place of the first four of eight bytes in a small table, of the first
// five in a large one.
func hash[P uint16 | uint32](v uint64) uint32 {
	if unsafe.Sizeof(P(0)) == 2 {
		return uint32(v) * 2654435761 >> (32 - 13)
	}
	return uint32(v << 24 * 889523592379 >> (64 - 12))
}

// writer appends sequences to a block. The slices are pointers, because bounds
// checks that the compiler cannot remove cost a third of the time.
type writer struct {
	dst, src   unsafe.Pointer
	room, size int // of dst and src
	at         int // in dst
	anchor     int // first byte of src that is not in a sequence
}

// backwards returns by how many bytes a match of ip with m, which comes before
// ip, can be extended to the front.
func (w *writer) backwards(ip, m int) int {
	most := min(ip-w.anchor, m)
	if m < 8 {
		n := 0
		for n < most && *(*byte)(unsafe.Add(w.src, ip-n-1)) == *(*byte)(unsafe.Add(w.src, m-n-1)) {
			n++
		}
		return n
	}
	n := 0
	for {
		d := load64(w.src, ip-n-8) ^ load64(w.src, m-n-8)
		n += bits.LeadingZeros64(d) >> 3
		if d != 0 || n >= most || m-n < 8 {
			break
		}
	}
	if n < most && m-n < 8 {
		for n < most && *(*byte)(unsafe.Add(w.src, ip-n-1)) == *(*byte)(unsafe.Add(w.src, m-n-1)) {
			n++
		}
	}
	return min(n, most)
}

// sequence writes the literals up to ip and the match of ip with m, and returns
// the end of the match, or -1 if there is no room.
func (w *writer) sequence(ip, m int) int {
	d := w.dst
	token, at := w.at, w.at+1
	lits := ip - w.anchor
	if at+lits+(2+1+lastBytes)+lits/255 > w.room {
		return -1
	}
	high := lits
	if lits >= 15 {
		high = 15
		at = putLength(d, at, lits-15)
	}
	// Room is compared with the bytes copied, which may be more than the bytes
	// used.
	if lits <= 32 && at+32 <= w.room && w.anchor+32 <= w.size {
		*(*[32]byte)(unsafe.Add(d, at)) = *(*[32]byte)(unsafe.Add(w.src, w.anchor))
	} else {
		copy(unsafe.Slice((*byte)(unsafe.Add(d, at)), lits), unsafe.Slice((*byte)(unsafe.Add(w.src, w.anchor)), lits))
	}
	at += lits

	binary.LittleEndian.PutUint16((*[2]byte)(unsafe.Add(d, at))[:], uint16(ip-m))
	at += 2
	more := w.forwards(ip+minMatch, m+minMatch)
	if at+(1+lastBytes)+(more+240)/255 > w.room {
		return -1
	}
	low := more
	if more >= 15 {
		low = 15
		at = putLength(d, at, more-15)
	}
	*(*byte)(unsafe.Add(d, token)) = byte(high<<4 | low)
	w.at = at
	w.anchor = ip + minMatch + more
	return w.anchor
}

// forwards returns the length of the common bytes from ip and from m on.
func (w *writer) forwards(ip, m int) int {
	start, end := ip, w.size-lastBytes
	for ; ip+8 <= end; ip, m = ip+8, m+8 {
		if d := load64(w.src, ip) ^ load64(w.src, m); d != 0 {
			return ip - start + bits.TrailingZeros64(d)>>3
		}
	}
	for ip < end && *(*byte)(unsafe.Add(w.src, ip)) == *(*byte)(unsafe.Add(w.src, m)) {
		ip++
		m++
	}
	return ip - start
}

// putLength writes the rest of a length and returns the end offset.
func putLength(d unsafe.Pointer, at, n int) int {
	for ; n >= 255; n -= 255 {
		*(*byte)(unsafe.Add(d, at)) = 255
		at++
	}
	*(*byte)(unsafe.Add(d, at)) = byte(n)
	return at + 1
}

// finish writes the rest as literals and returns the length of the block, or 0
// without room.
func (w *writer) finish() int {
	lits := w.size - w.anchor
	if w.at+lits+1+(lits+255-15)/255 > w.room {
		return 0
	}
	at := w.at + 1
	high := lits
	if lits >= 15 {
		high = 15
		at = putLength(w.dst, at, lits-15)
	}
	*(*byte)(unsafe.Add(w.dst, w.at)) = byte(high << 4)
	copy(unsafe.Slice((*byte)(unsafe.Add(w.dst, at)), lits), unsafe.Slice((*byte)(unsafe.Add(w.src, w.anchor)), lits))
	return at + lits
}
