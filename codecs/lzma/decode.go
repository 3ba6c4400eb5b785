package lzma

import (
	"errors"
	"fmt"
	"math"
	"sync"
)

var (
	// ErrCorrupt marks data that break the format.
	ErrCorrupt = errors.New("lzma: corrupt data")

	// ErrTooLarge means that the data hold more bytes than they may.
	ErrTooLarge = errors.New("lzma: more bytes than allowed")

	// ErrUnsupported means a filter that is not known here.
	ErrUnsupported = errors.New("lzma: unsupported filter")
)

func corrupt(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrCorrupt}, args...)...)
}

// decoder is the state of one stream.
type decoder struct {
	rangeDecoder
	model
	out   []byte // the result; its capacity is the room there is
	base  int    // where it begins
	limit int    // where it must end
	dict  int    // where the dictionary begins
}

// Some 28 KiB a decoder, most of it models that are reset before use.
var decoderPool = sync.Pool{New: func() any { return new(decoder) }}

// with runs f on a decoder that appends to dst, and returns what dst has become,
// or dst as it was if f fails.
func with(dst []byte, limit int64, f func(d *decoder) error) ([]byte, error) {
	d := decoderPool.Get().(*decoder)
	d.out, d.base, d.dict, d.limit = dst, len(dst), len(dst), math.MaxInt
	if limit = max(limit, 0); limit < int64(math.MaxInt-len(dst)) {
		d.limit = len(dst) + int(limit)
	}
	err := f(d)
	out := d.out
	d.out, d.src = nil, nil
	decoderPool.Put(d)
	if err != nil {
		return dst, err
	}
	return out, nil
}

// room makes sure that n more bytes fit, and is not asked again for each byte
// of many.
func (d *decoder) room(n int) error {
	if n > d.limit-len(d.out) {
		return fmt.Errorf("%w: over %d", ErrTooLarge, d.limit-d.base)
	}
	if n > cap(d.out)-len(d.out) {
		size := d.limit
		if more := max(n, 4096, len(d.out)); more < size-len(d.out) {
			size = len(d.out) + more
		}
		grown := make([]byte, len(d.out), size)
		copy(grown, d.out)
		d.out = grown
	}
	return nil
}

// DecodeRaw appends what an LZMA stream without header holds, at most max
// bytes, to dst. The stream must end with an end marker. Errors wrap
// ErrCorrupt or ErrTooLarge; the slice is then dst as it was, but bytes up to
// its capacity may be overwritten.
func DecodeRaw(dst, src []byte, p Props, max int64) ([]byte, error) {
	return with(dst, max, func(d *decoder) error {
		d.model.reset(p)
		_, err := d.stream(src, -1)
		return err
	})
}

// stream decodes an LZMA stream of size bytes, or up to an end marker if size
// is -1, and returns how long it is. A stream whose size is known may have an
// end marker too.
func (d *decoder) stream(src []byte, size int64) (int, error) {
	if !d.init(src) {
		return 0, corrupt("no LZMA stream")
	}
	end := -1
	if size >= 0 {
		if size > int64(d.limit-len(d.out)) {
			return 0, fmt.Errorf("%w: %d", ErrTooLarge, size)
		}
		end = len(d.out) + int(size)
	}
	marker, err := d.symbols(end)
	d.normalize()
	if err == nil && !marker && d.code != 0 {
		// What is left can only be an end marker.
		if marker, err = d.symbol(end); err == nil && !marker {
			err = corrupt("more than the %d bytes that it should be", size)
		}
		d.normalize()
	}
	switch {
	case d.over:
		return 0, corrupt("it ends early")
	case err != nil:
		return 0, err
	case d.code != 0 || end >= 0 && len(d.out) != end:
		return 0, corrupt("an end marker in the wrong place")
	}
	return d.pos, nil
}

// symbols decodes until the result reaches end, or up to an end marker, and
// reports whether there was one.
func (d *decoder) symbols(end int) (marker bool, err error) {
	for len(d.out) != end {
		if marker, err = d.symbol(end); marker || err != nil {
			return marker, err
		}
	}
	return false, nil
}

// symbol decodes a literal or a match. end is where the result must end, -1 if
// that is not known.
func (d *decoder) symbol(end int) (marker bool, err error) {
	if d.over {
		return false, corrupt("it ends early")
	}
	pos := (len(d.out) - d.dict) & (1<<d.props.PB - 1)
	s := d.state
	if d.bit(&d.isMatch[s][pos]) == 0 {
		if len(d.out) == end {
			return false, corrupt("more than it should be")
		}
		return false, d.literalByte()
	}
	length := 0
	if d.bit(&d.isRep[s]) == 0 {
		length = d.length.decode(&d.rangeDecoder, pos)
		d.rep[3], d.rep[2], d.rep[1] = d.rep[2], d.rep[1], d.rep[0]
		d.rep[0] = d.distance(length)
		d.state = 10
		if s < 7 {
			d.state = 7
		}
		if d.rep[0] == math.MaxUint32 {
			return true, nil
		}
	} else if short := d.repeat(s, pos); short {
		length = 1
	} else {
		length = d.repLength.decode(&d.rangeDecoder, pos)
		d.state = 11
		if s < 7 {
			d.state = 8
		}
	}
	return false, d.match(length, end)
}

// repeat picks one of the last distances, and reports whether the match is a
// single byte.
func (d *decoder) repeat(s, pos int) (short bool) {
	if d.bit(&d.isRep0[s]) == 0 {
		if d.bit(&d.isRep0Long[s][pos]) == 0 {
			d.state = 11
			if s < 7 {
				d.state = 9
			}
			return true
		}
		return false
	}
	i := 1
	if d.bit(&d.isRep1[s]) != 0 {
		i = 2 + int(d.bit(&d.isRep2[s]))
	}
	dist := d.rep[i]
	copy(d.rep[1:i+1], d.rep[:i])
	d.rep[0] = dist
	return false
}

// literalByte decodes a literal.
func (d *decoder) literalByte() error {
	at := len(d.out)
	if at == cap(d.out) || at == d.limit {
		if err := d.room(1); err != nil {
			return err
		}
	}
	prev := byte(0)
	if at > d.dict {
		prev = d.out[at-1]
	}
	p := d.props
	i := (at-d.dict)&(1<<p.LP-1)<<p.LC + int(prev)>>(8-p.LC)
	models := (*[0x300]uint16)(d.model.literal[0x300*i:])
	v := uint32(1)
	if d.state >= 7 {
		// Behind a match, the byte that would have continued it is what this
		// one is not.
		dist := int(d.rep[0]) + 1
		if dist > at-d.dict {
			return corrupt("a distance beyond the start")
		}
		m := uint32(d.out[at-dist])
		for v < 0x100 {
			m <<= 1
			b := d.bit(&models[0x100+m&0x100+v])
			v = v<<1 | b
			if m>>8&1 != b {
				break
			}
		}
	}
	for v < 0x100 {
		v = v<<1 | d.bit(&models[v])
	}
	d.out = append(d.out, byte(v))
	switch {
	case d.state < 4:
		d.state = 0
	case d.state < 10:
		d.state -= 3
	default:
		d.state -= 6
	}
	return nil
}

// decode returns the length of a match.
func (l *lengths) decode(r *rangeDecoder, pos int) int {
	if r.bit(&l.choice[0]) == 0 {
		return firstLen + int(r.tree(l.low[pos][:], 3))
	}
	if r.bit(&l.choice[1]) == 0 {
		return firstLen + 8 + int(r.tree(l.mid[pos][:], 3))
	}
	return firstLen + 16 + int(r.tree(l.high[:], 8))
}

// distance returns the distance of a match, less one.
func (d *decoder) distance(length int) uint32 {
	slot := d.tree(d.slot[min(length-firstLen, lenStates-1)][:], 6)
	if slot < 4 {
		return slot
	}
	n := int(slot>>1) - 1
	dist := (2 | slot&1) << n
	if slot < endSlots {
		// The models of a slot follow those of the slots before it.
		return dist + d.reverse(d.special[dist-slot:], n)
	}
	dist += d.direct(n-alignBits) << alignBits
	return dist + d.reverse(d.align[:], alignBits)
}

// match copies length bytes from where the first of the last distances says.
func (d *decoder) match(length, end int) error {
	at := len(d.out)
	if uint64(d.rep[0]) >= uint64(at-d.dict) {
		return corrupt("a distance beyond the start")
	}
	if end >= 0 && length > end-at {
		return corrupt("more than it should be")
	}
	if err := d.room(length); err != nil {
		return err
	}
	from := at - int(d.rep[0]) - 1
	d.out = d.out[:at+length]
	for at < len(d.out) {
		// What is there repeats itself.
		at += copy(d.out[at:], d.out[from:at])
	}
	return nil
}
