package tree

import "encoding/binary"

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
