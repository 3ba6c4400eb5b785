package inflate

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"sync"
)

var (
	// errCorrupt marks a stream that breaks the format, ends too early or has
	// a wrong checksum. The errors of this package wrap it or errTooLarge.
	errCorrupt = errors.New("inflate: corrupt stream")

	// errTooLarge means that the stream holds more bytes than it may.
	errTooLarge = errors.New("inflate: more bytes than allowed")
)

// Inflate decodes the raw deflate stream (RFC 1951) at the start of src and
// appends its contents, at most max bytes, to dst. It returns the extended slice
// and how many bytes of src the stream took; it ignores bytes after the stream.
// An error wraps errCorrupt or errTooLarge; the slice is then dst as it was.
//
// In any case up to max bytes of dst's capacity may be overwritten, never more,
// so that a part of a larger buffer can be filled in place. Memory is reserved
// as the output grows: a stream can make it reserve about three times the sum of
// its length and its output, and a dst with room for the result is never copied.
// src is not kept.
func Inflate(dst, src []byte, max int64) (out []byte, consumed int, err error) {
	d := decoderPool.Get().(*decoder)
	d.start(dst, src, max)
	err = d.run()
	out, consumed = d.out[:d.at], d.pos
	d.src, d.out = nil, nil
	decoderPool.Put(d)
	if err != nil {
		return dst, 0, err
	}
	return out, consumed, nil
}

// decoder is the state of one stream.
type decoder struct {
	src []byte
	pos int // next byte of src that is not in word

	// The next count bits of the stream, lowest first. Above them word may
	// already hold the first bits of src[pos]; adding that byte again does not
	// change them.
	word  uint64
	count uint64

	out   []byte // output, its length the room there is
	at    int    // next byte of out
	base  int    // where the output of this stream begins
	limit int    // where it must end

	// The fast loop goes on while pos <= lastIn and at <= lastOut.
	lastIn, lastOut int

	haveFixed bool // the tables hold the fixed code
	lit       [litSize]uint32
	dist      [distSize]uint32
	clen      [1 << clenBits]uint32
	lens      [maxLit + maxDist]uint8
}

// Some 25 KiB a decoder, nothing of which needs to be cleared.
var decoderPool = sync.Pool{New: func() any { return new(decoder) }}

func (d *decoder) start(dst, src []byte, limit int64) {
	d.src, d.pos, d.word, d.count = src, 0, 0, 0
	d.out, d.at, d.base = dst[:cap(dst)], len(dst), len(dst)
	d.limit = math.MaxInt
	if limit = max(limit, 0); limit < int64(math.MaxInt-d.base) {
		d.limit = d.base + int(limit)
	}
	d.out = d.out[:min(len(d.out), d.limit)]
	d.haveFixed = false
}

func (d *decoder) run() error {
	for {
		d.refill()
		if d.count < 3 {
			return d.truncated()
		}
		final, kind := d.word&1, d.word>>1&3
		d.skip(3)
		var err error
		switch kind {
		case 0:
			err = d.stored()
		case 1:
			d.fixedCode()
			err = d.block()
		case 2:
			if err = d.dynamicCode(); err == nil {
				err = d.block()
			}
		default:
			err = d.corrupt("a block of type 3")
		}
		if err != nil {
			return err
		}
		if final == 1 {
			// Whole bytes that were read ahead are not ours.
			d.pos -= int(d.count / 8)
			return nil
		}
	}
}

// refill makes count at least 56, or as many bits as there are.
func (d *decoder) refill() {
	if d.pos+8 <= len(d.src) {
		d.word |= binary.LittleEndian.Uint64(d.src[d.pos:]) << (d.count & 63)
		d.pos += int((63 - d.count) >> 3)
		d.count |= 56
		return
	}
	for d.count < 56 && d.pos < len(d.src) {
		d.word |= uint64(d.src[d.pos]) << (d.count & 63)
		d.pos++
		d.count += 8
	}
}

// skip drops n of the bits in word.
func (d *decoder) skip(n uint64) {
	d.word >>= n & 63
	d.count -= n
}

// grow makes room for n more bytes, of which there may be many more to come.
func (d *decoder) grow(n int) error {
	if d.limit-d.at < n {
		return fmt.Errorf("%w: over %d", errTooLarge, d.limit-d.base)
	}
	if len(d.out)-d.at >= n {
		return nil
	}
	// Twice this stream's bytes, or the likely output of the rest of the input;
	// and a share of all bytes, so that a row of short streams does not copy
	// them repeatedly.
	more := max(n, d.at-d.base, d.at/4, 2*min(len(d.src)-d.pos, 1<<20))
	size := d.limit
	if more < size-d.at {
		size = d.at + more
	}
	grown := make([]byte, size)
	copy(grown, d.out[:d.at])
	d.out = grown
	return nil
}

func (d *decoder) corrupt(what string) error {
	return fmt.Errorf("%w: %s, before byte %d", errCorrupt, what, d.pos-int(d.count/8))
}

func (d *decoder) truncated() error {
	return fmt.Errorf("%w: it ends early, after %d bytes", errCorrupt, len(d.src))
}

// stored copies an uncompressed block.
func (d *decoder) stored() error {
	d.pos -= int(d.count / 8)
	d.word, d.count = 0, 0
	if len(d.src)-d.pos < 4 {
		return d.truncated()
	}
	n := int(binary.LittleEndian.Uint16(d.src[d.pos:]))
	if n^int(binary.LittleEndian.Uint16(d.src[d.pos+2:])) != 0xffff {
		return d.corrupt("a stored block whose two lengths differ")
	}
	d.pos += 4
	if len(d.src)-d.pos < n {
		return d.truncated()
	}
	if err := d.grow(n); err != nil {
		return err
	}
	copy(d.out[d.at:], d.src[d.pos:d.pos+n])
	d.pos += n
	d.at += n
	return nil
}

// fixedCode makes the tables of RFC 1951 section 3.2.6.
func (d *decoder) fixedCode() {
	if d.haveFixed {
		return
	}
	d.haveFixed = true
	lens := &d.lens
	for s := range maxLit {
		switch {
		case s < 144:
			lens[s] = 8
		case s < 256:
			lens[s] = 9
		case s < 280:
			lens[s] = 7
		default:
			lens[s] = 8
		}
	}
	for s := range maxDist {
		lens[maxLit+s] = 5
	}
	build(d.lit[:], litBits, lens[:maxLit], litEntry[:])
	build(d.dist[:], distBits, lens[maxLit:], distEntry[:])
}

// dynamicCode reads the code lengths of a block (RFC 1951 section 3.2.7) and
// makes the tables.
func (d *decoder) dynamicCode() error {
	d.haveFixed = false
	d.refill()
	if d.count < 14 {
		return d.truncated()
	}
	lits, dists, clens := int(d.word&31)+257, int(d.word>>5&31)+1, int(d.word>>10&15)+4
	d.skip(14)
	if lits > usableLit || dists > usableDis {
		return d.corrupt("a code of too many symbols")
	}
	var clen [maxClen]uint8
	for i := range clens {
		d.refill()
		if d.count < 3 {
			return d.truncated()
		}
		clen[clenOrder[i]] = uint8(d.word & 7)
		d.skip(3)
	}
	if !build(d.clen[:], clenBits, clen[:], clenEntry[:]) {
		return d.corrupt("code lengths whose own code is not complete")
	}
	if err := d.readLens(lits + dists); err != nil {
		return err
	}
	if !build(d.lit[:], litBits, d.lens[:lits], litEntry[:]) {
		return d.corrupt("a literal code that is not complete")
	}
	if !build(d.dist[:], distBits, d.lens[lits:lits+dists], distEntry[:]) {
		return d.corrupt("a distance code that is not complete")
	}
	return nil
}

// readLens reads n code lengths, run-length coded.
func (d *decoder) readLens(n int) error {
	for i := 0; i < n; {
		d.refill()
		e := d.clen[d.word&(1<<clenBits-1)]
		take := uint64(e & takeMask)
		if e&special != 0 {
			return d.corrupt("a code length of no code")
		}
		// The run's own bits, which the longest of all needs.
		var run int
		var extra uint64
		var value uint8
		switch s := e >> 16; s {
		case 16:
			if i == 0 {
				return d.corrupt("a repeated code length with none before")
			}
			run, extra, value = 3, 2, d.lens[i-1]
		case 17:
			run, extra = 3, 3
		case 18:
			run, extra = 11, 7
		default:
			run, value = 1, uint8(s)
		}
		if d.count < take+extra {
			return d.truncated()
		}
		d.skip(take)
		run += int(d.word & (1<<extra - 1))
		d.skip(extra)
		if run > n-i {
			return d.corrupt("more code lengths than symbols")
		}
		for range run {
			d.lens[i] = value
			i++
		}
	}
	return nil
}
