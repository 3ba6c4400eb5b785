package tree

import (
	"encoding/binary"
	"math/bits"
	"slices"
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

// commonEnds returns how many bytes a and b share at the front, and of what
// remains at the back.
func commonEnds[T string | []byte](a, b T) (front, back int) {
	n := min(len(a), len(b))
	for front < n && a[front] == b[front] {
		front++
	}
	n -= front
	for back < n && a[len(a)-1-back] == b[len(b)-1-back] {
		back++
	}
	return front, back
}

type sourceEncoder struct {
	buf         []byte
	ids         map[Source]int
	last        Source // that was coded
	front, back int
	hit         Source // that was looked up last
	hitID       int
}

func (e *sourceEncoder) reset() {
	if e.ids == nil {
		e.ids = map[Source]int{}
	}
	clear(e.ids)
	*e = sourceEncoder{buf: e.buf[:0], ids: e.ids}
}

// id returns the number of s, which it adds if it is new.
func (e *sourceEncoder) id(s Source) int {
	if len(e.ids) > 0 && s == e.hit {
		return e.hitID
	}
	id, ok := e.ids[s]
	if !ok {
		id = len(e.ids)
		e.ids[s] = id
		e.add(s)
	}
	e.hit, e.hitID = s, id
	return id
}

func (e *sourceEncoder) add(s Source) {
	front, back := commonEnds(e.last.URL, s.URL)
	between := s.URL[front : len(s.URL)-back]
	h := min(len(between), sourceMore) << 4
	if s.Whole {
		h |= sourceWhole
	}
	if s.Validator == e.last.Validator {
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
	if s.Validator != e.last.Validator {
		n, _ := commonEnds(e.last.Validator, s.Validator)
		b = binary.AppendUvarint(b, uint64(n))
		b = binary.AppendUvarint(b, uint64(len(s.Validator)-n))
		b = append(b, s.Validator[n:]...)
	}
	e.buf, e.last, e.front, e.back = b, s, front, back
}

// sourceList is the decoded dictionary. The strings are whole, so that a value
// is read without building one.
type sourceList struct {
	text string
	list []sourceRef
}

type sourceRef struct {
	url, urlEnd             int32 // in text
	validator, validatorEnd int32
	whole                   bool
}

func (l *sourceList) get(i int) Source {
	r := &l.list[i]
	return Source{URL: l.text[r.url:r.urlEnd], Validator: l.text[r.validator:r.validatorEnd], Whole: r.whole}
}

// sources reads a dictionary of n sources.
func (d *decoder) sources(n int) *sourceList {
	var (
		text        = d.s.text[:0]
		list        = d.s.list[:0]
		last        sourceRef
		front, back int
		ascending   = true
	)
	for range n {
		h := int(d.byte())
		wasFront, wasBack := front, back
		if h&sourceFront == 0 {
			front = d.size(MaxURL)
		}
		if h&sourceBack == 0 {
			back = d.size(MaxURL)
		}
		between := h >> 4
		if between == sourceMore {
			between += d.size(MaxURL)
		}
		mid := d.bytes(between)
		if old := int(last.urlEnd - last.url); front+back > old || front+back+between > MaxURL {
			d.fail("source with a bad length")
		}
		if d.err != "" {
			return nil
		}
		r := sourceRef{url: int32(len(text)), whole: h&sourceWhole != 0, validator: last.validator, validatorEnd: last.validatorEnd}
		text = append(text, text[last.url:int(last.url)+front]...)
		text = append(text, mid...)
		text = append(text, text[int(last.urlEnd)-back:last.urlEnd]...)
		r.urlEnd = int32(len(text))
		if h&sourceValidator == 0 {
			if text = d.validator(text, &last, &r); d.err != "" {
				return nil
			}
		}
		// They share these ends; what commonEnds finds is not more.
		before, url := text[last.url:last.urlEnd], text[r.url:r.urlEnd]
		if short := min(len(before), len(url)); front < short && before[front] == url[front] ||
			front+back < short && before[len(before)-1-back] == url[len(url)-1-back] ||
			h&sourceFront == 0 && front == wasFront || h&sourceBack == 0 && back == wasBack {
			d.fail("source is not coded tightly")
		}
		ascending = ascending && front < len(url) && (front == len(before) || before[front] < url[front])
		list = append(list, r)
		last = r
	}
	d.s.text, d.s.list = text, list
	l := &sourceList{text: string(text), list: slices.Clone(list)}
	if !ascending { // as the files of a series do
		d.checkUnique(l)
	}
	return l
}

// validator reads the validator of r, which is not that of the source before.
func (d *decoder) validator(text []byte, last, r *sourceRef) []byte {
	front, rest := d.size(MaxValidator), d.size(MaxValidator)
	tail := d.bytes(rest)
	if old := int(last.validatorEnd - last.validator); front > old || front+rest > MaxValidator {
		d.fail("validator with a bad length")
	}
	if d.err != "" {
		return text
	}
	r.validator = int32(len(text))
	text = append(text, text[last.validator:int(last.validator)+front]...)
	text = append(text, tail...)
	r.validatorEnd = int32(len(text))
	old, val := text[last.validator:last.validatorEnd], text[r.validator:r.validatorEnd]
	if same, _ := commonEnds(old, val); same != front || len(old) == same && rest == 0 {
		d.fail("validator is not coded tightly")
	}
	return text
}

// checkUnique refuses a source that is in the dictionary twice.
func (d *decoder) checkUnique(l *sourceList) {
	// A hash table of list indices plus one, at most half full.
	size := 1 << bits.Len(uint(2*len(l.list)))
	if cap(d.s.table) < size {
		d.s.table = make([]uint16, size)
	}
	table := d.s.table[:size]
	clear(table)
	for i := range l.list {
		r := &l.list[i]
		h := xxh64(d.s.text[r.url:r.urlEnd], uint64(r.validatorEnd-r.validator))
		for ; table[int(h)&(size-1)] != 0; h++ {
			if l.get(int(table[int(h)&(size-1)])-1) == l.get(i) {
				d.fail("source is listed twice")
				return
			}
		}
		table[int(h)&(size-1)] = uint16(i + 1)
	}
}
