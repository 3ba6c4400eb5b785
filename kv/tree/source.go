package tree

import (
	"encoding/binary"
	"math/bits"
)

// The sources of a page in the order in which its values first use them, each
// coded against the one before (the first against an empty one):
//
//	mmmmqpvw    w: Whole. v: same validator. p, q: as many bytes shared at the
//	            front, at the back, as last time (none the first time).
//	            mmmm: bytes between, 15 = 15 and a uvarint more
//	            [front (uvarint) unless p] [back (uvarint) unless q]
//	            [uvarint if mmmm is 15] · bytes between
//	            [unless v: bytes shared at the front (uvarint) ·
//	             length of the rest (uvarint) · rest of the validator]
//
// The next file of a numbered series costs two or three bytes.
const (
	sourceWhole = 1 << iota
	sourceValidator
	sourceFront
	sourceBack

	sourceMore = 15
)

// commonEnds returns how many bytes a and b share at the front, and at the back
// of the rest.
func commonEnds(a, b string) (front, back int) {
	n := min(len(a), len(b))
	for front+8 <= n {
		if x := word(a, front) ^ word(b, front); x != 0 {
			front += bits.TrailingZeros64(x) / 8
			break
		}
		front += 8
	}
	for front < n && a[front] == b[front] {
		front++
	}
	n -= front
	for back+8 <= n {
		if x := word(a, len(a)-8-back) ^ word(b, len(b)-8-back); x != 0 {
			return front, back + bits.LeadingZeros64(x)/8
		}
		back += 8
	}
	for back < n && a[len(a)-1-back] == b[len(b)-1-back] {
		back++
	}
	return front, back
}

// word is 8 bytes of s, the first one lowest.
func word(s string, at int) uint64 {
	s = s[at : at+8]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}

type sourceEncoder struct {
	buf         []byte
	list        []Source       // all, by number
	ids         map[Source]int // of them, from the first on whose URL was not the greatest
	front, back int            // that the last one shared
	hit         int            // that was looked up last
}

func (e *sourceEncoder) reset() {
	clear(e.list)
	clear(e.ids)
	*e = sourceEncoder{buf: e.buf[:0], list: e.list[:0], ids: e.ids}
}

// id returns the number of s, which it adds if it is new.
//
// Most values have the source of the value before, or one with a greater URL than
// all before, as the files of a series come in their order: then it is new, and
// nothing has to be looked up.
func (e *sourceEncoder) id(s *Source) int {
	n := len(e.list)
	if n == 0 {
		e.add(s, 0, 0)
		return 0
	}
	if *s == e.list[e.hit] {
		return e.hit
	}
	last := &e.list[n-1]
	if len(e.ids) == 0 {
		front, back := commonEnds(last.URL, s.URL)
		if front < len(s.URL) && (front == len(last.URL) || last.URL[front] < s.URL[front]) {
			e.hit = n
			e.add(s, front, back)
			return n
		}
		if e.ids == nil {
			e.ids = map[Source]int{}
		}
		for i, s := range e.list {
			e.ids[s] = i
		}
	}
	id, ok := e.ids[*s]
	if !ok {
		id = n
		e.ids[*s] = n
		front, back := commonEnds(last.URL, s.URL)
		e.add(s, front, back)
	}
	e.hit = id
	return id
}

// add appends a source, of which the URL shares these ends with the last one.
func (e *sourceEncoder) add(s *Source, front, back int) {
	var none Source
	last := &none
	if n := len(e.list); n > 0 {
		last = &e.list[n-1]
	}
	between := s.URL[front : len(s.URL)-back]
	h := min(len(between), sourceMore) << 4
	if s.Whole {
		h |= sourceWhole
	}
	if s.Validator == last.Validator {
		h |= sourceValidator
	}
	if front == e.front {
		h |= sourceFront
	}
	if back == e.back {
		h |= sourceBack
	}
	b := append(e.buf, byte(h))
	if front != e.front {
		b = binary.AppendUvarint(b, uint64(front))
	}
	if back != e.back {
		b = binary.AppendUvarint(b, uint64(back))
	}
	if len(between) >= sourceMore {
		b = binary.AppendUvarint(b, uint64(len(between)-sourceMore))
	}
	b = append(b, between...)
	if s.Validator != last.Validator {
		n, _ := commonEnds(last.Validator, s.Validator)
		b = binary.AppendUvarint(b, uint64(n))
		b = binary.AppendUvarint(b, uint64(len(s.Validator)-n))
		b = append(b, s.Validator[n:]...)
	}
	e.buf, e.front, e.back = b, front, back
	e.list = append(e.list, *s)
}
