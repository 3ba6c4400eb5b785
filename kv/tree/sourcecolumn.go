package tree

import (
	"encoding/binary"
	"math/bits"
	"slices"
	"strings"
)

// sourceEvery is how many sources lie between two marks.
const sourceEvery = 64

// sourceColumn is the way into the dictionary of sources, which stays in its
// coded form: the URLs of a page with a file for each value have ten times the
// bytes of the page, and most look-ups want one of them. It is part of
// page.index:
//
//	marks  16 bytes each, before every sourceEvery-th source: where its token
//	       is in the page, where the URL and then the validator of the source
//	       before it end below (they begin where the ones before end), and as
//	       many bytes as that one shared: front · back<<16
//	texts  these URLs and validators
type sourceColumn struct {
	marks, texts int32 // where they are
	n            int32 // sources
}

const sourceMarkSize = 16

// sourceReader goes over the sources of a page.
type sourceReader struct {
	page        []byte
	pos         int // of the next token
	front, back int // bytes that the last source shared
	whole       bool
}

// sourceText is the text of the source before the reader's position, in buffers
// that the next step changes. It is not a part of the reader, so that the
// buffers can be on the stack.
type sourceText struct{ url, validator []byte }

// enterSource returns a reader that stands before source i, which must exist,
// and what next needs. The buffers of t are used.
func (p *page) enterSource(i int, t sourceText) (sourceReader, sourceText) {
	c := &p.sources
	m := i / sourceEvery
	marks := p.index[int(c.marks)+m*sourceMarkSize:]
	field := func(n int) int { return int(binary.LittleEndian.Uint32(marks[4*n:])) }
	begin := 0
	if m > 0 {
		begin = int(binary.LittleEndian.Uint32(p.index[int(c.marks)+(m-1)*sourceMarkSize+8:]))
	}
	texts := p.index[c.texts:]
	t.url = append(t.url[:0], texts[begin:field(1)]...)
	t.validator = append(t.validator[:0], texts[field(1):field(2)]...)
	r := sourceReader{page: p.raw, pos: field(0), front: field(3) & 0xffff, back: field(3) >> 16}
	for left := i - m*sourceEvery; left > 0; {
		times, _ := r.series(t.url, left)
		if times == 0 {
			times, t = 1, r.next(t)
		}
		left -= times
	}
	return r, t
}

// next goes behind the next source, which must exist, of a validated page. t is
// the text of the one before.
func (r *sourceReader) next(t sourceText) sourceText {
	h := int(r.page[r.pos])
	r.pos++
	if h&sourceFront == 0 {
		r.front = r.uvarint()
	}
	if h&sourceBack == 0 {
		r.back = r.uvarint()
	}
	between := h >> 4
	if between == sourceMore {
		between += r.uvarint()
	}
	t.url = changeMiddle(t.url, r.page[r.pos:r.pos+between], r.front, r.back)
	r.pos += between
	r.whole = h&sourceWhole != 0
	if h&sourceValidator == 0 {
		front, rest := r.uvarint(), r.uvarint()
		t.validator = append(t.validator[:front], r.page[r.pos:r.pos+rest]...)
		r.pos += rest
	}
	return t
}

func (r *sourceReader) uvarint() int {
	v, n := binary.Uvarint(r.page[r.pos:])
	r.pos += n
	return int(v)
}

// changeMiddle replaces the bytes between the ends of b, in place if there is
// room.
func changeMiddle(b, mid []byte, front, back int) []byte {
	was, size := len(b), front+len(mid)+back
	if size != was {
		if size > cap(b) {
			b = slices.Grow(b, size-was)
		}
		b = b[:max(size, was)]
		copy(b[front+len(mid):size], b[was-back:was])
		b = b[:size]
	}
	copy(b[front:], mid)
	return b
}

// sourceAt returns source i. Its texts are new.
func (p *page) sourceAt(i int) Source {
	var url [256]byte
	var validator [128]byte
	r, t := p.enterSource(i, sourceText{url[:], validator[:]})
	t = r.next(t)
	s := Source{Whole: r.whole}
	if len(t.validator) == 0 {
		s.URL = string(t.url)
		return s
	}
	n := len(t.url)
	text := string(append(t.url, t.validator...))
	s.URL, s.Validator = text[:n], text[n:]
	return s
}

// sourceCursor returns the sources of values that are read in order. It makes
// each source once, and the texts of many in one allocation.
type sourceCursor struct {
	r      sourceReader
	t      sourceText
	source Source   // the last one that was made
	id     int      // its number
	list   []Source // all that were made, unless the page is ordered
	text   strings.Builder
}

// Texts are allocated in pieces, the first of which may be the last one that is
// needed.
const (
	firstPiece   = 1 << 10
	largestPiece = 16 << 10
)

// get returns a source of p, which is the page of all calls.
func (c *sourceCursor) get(p *page, id int) Source {
	switch {
	case c.r.page == nil:
		c.r, c.t = p.enterSource(id, sourceText{url: make([]byte, 0, 128)})
		c.id = id - 1
	case id == c.id:
		return c.source
	case id < c.id:
		if at := len(c.list) - 1 - (c.id - id); at >= 0 {
			return c.list[at]
		}
		return p.sourceAt(id) // came before the first that was asked for
	}
	for c.id < id {
		c.next(p)
	}
	return c.source
}

func (c *sourceCursor) next(p *page) {
	c.t = c.r.next(c.t)
	c.id++
	c.source.URL, c.source.Whole = c.keep(c.t.url, p), c.r.whole
	if string(c.t.validator) != c.source.Validator {
		c.source.Validator = c.keep(c.t.validator, p)
	}
	if !p.virtual.ordered {
		c.list = append(c.list, c.source)
	}
}

// keep makes a text that stays.
func (c *sourceCursor) keep(b []byte, p *page) string {
	if len(b) > c.text.Cap()-c.text.Len() {
		size := min(max(4*c.text.Cap(), firstPiece), largestPiece, len(b)*(int(p.sources.n)-c.id))
		c.text = strings.Builder{}
		c.text.Grow(max(len(b), size))
	}
	n := c.text.Len()
	c.text.Write(b)
	return c.text.String()[n:]
}

// sources reads a dictionary of n sources.
func (d *decoder) sources(p *page, n int) {
	r, t := sourceReader{page: d.b, pos: d.pos}, sourceText{d.s.url[:0], d.s.validator[:0]}
	marks, texts := d.s.sourceMarks[:0], d.s.text[:0]
	ascending := true
	for i := 0; i < n && d.err == ""; {
		if i%sourceEvery == 0 {
			texts = append(texts, t.url...)
			url := len(texts)
			texts = append(texts, t.validator...)
			for _, v := range [...]int{r.pos, url, len(texts), r.front | r.back<<16} {
				marks = binary.LittleEndian.AppendUint32(marks, uint32(v))
			}
		}
		times, above := r.series(t.url, min(n, i-i%sourceEvery+sourceEvery)-i)
		if times == 0 {
			times = 1
			t, above = d.source(&r, t)
		}
		ascending = ascending && above
		i += times
	}
	d.s.url, d.s.validator, d.s.sourceMarks, d.s.text = t.url, t.validator, marks, texts
	if d.err != "" {
		return
	}
	d.pos = r.pos
	p.sources = sourceColumn{marks: int32(len(d.s.index)), texts: int32(len(d.s.index) + len(marks)), n: int32(n)}
	d.s.index = append(append(d.s.index, marks...), texts...)
	if !ascending { // as the files of a series do
		d.checkUnique(p)
	}
}

// series goes over at most limit sources of the usual kinds: as many other bytes
// where the one before, whose URL this was, had some, or, as after a carry, from
// another place on up to where they ended, and all else alike. It returns how
// many there are, and whether their URLs ascend. It stops before a source that is
// not coded tightly, or that ends too early.
func (r *sourceReader) series(url []byte, limit int) (times int, above bool) {
	const (
		carry = sourceValidator | sourceBack
		usual = carry | sourceFront
	)
	b, front, end := r.page[r.pos:], r.front, len(url)-r.back
	above = true
	for times < limit && len(b) > 1 {
		h, at, skip := b[0], front, 1
		if h&usual != usual {
			if at, skip = int(b[1]), 2; h&usual != carry || at == front || at >= 0x80 {
				break
			}
		}
		n := int(h >> 4)
		if n == 0 || n == sourceMore || at+n != end || len(b) < skip+n {
			break
		}
		old, mid := url[at:end], b[skip:skip+n]
		if mid[0] == old[0] || mid[n-1] == old[n-1] {
			break
		}
		above = above && mid[0] > old[0]
		b, front = b[skip+n:], at
		times++
		if n > 1 {
			copy(old, mid)
			continue
		}
		// One digit, and again: nine of ten steps of a numbered series, four at
		// a time where each is the next digit.
		last := mid[0]
		const again = 1<<4 | usual
		for times+4 <= limit && last <= 0xff-4 && len(b) >= 8 &&
			binary.LittleEndian.Uint64(b) == again*0x0001_0001_0001_0001+uint64(last)*0x0100_0100_0100_0100+0x0400_0300_0200_0100 {
			last, times, b = last+4, times+4, b[8:]
		}
		for ; times < limit && len(b) > 1 && b[0]&^sourceWhole == again && b[1] != last; times++ {
			above = above && b[1] > last
			last, b = b[1], b[2:]
		}
		old[0] = last
	}
	r.pos, r.front = len(r.page)-len(b), front
	return times, above
}

// source checks the next source and moves behind it. t is the text of the one
// before; above reports that the URL is greater than that.
func (d *decoder) source(r *sourceReader, t sourceText) (_ sourceText, above bool) {
	d.pos = r.pos
	h := int(d.byte())
	front, back := r.front, r.back
	if h&sourceFront == 0 {
		front = d.size(maxURL)
	}
	if h&sourceBack == 0 {
		back = d.size(maxURL)
	}
	between := h >> 4
	if between == sourceMore {
		between += d.size(maxURL)
	}
	mid := d.bytes(between)
	was, size := len(t.url), front+between+back
	if front+back > was || size > maxURL {
		d.fail("source with a bad length")
	}
	if d.err != "" {
		return t, false
	}
	// They share these ends; what commonEnds finds is not more.
	after := mid // behind the shared front
	if between == 0 {
		after = t.url[was-back:]
	}
	short := min(was, size)
	if front < short && t.url[front] == after[0] ||
		front+back < short && t.url[was-1-back] == mid[between-1] ||
		h&sourceFront == 0 && front == r.front || h&sourceBack == 0 && back == r.back {
		d.fail("source is not coded tightly")
		return t, false
	}
	above = front < size && (front == was || t.url[front] < after[0])
	r.front, r.back = front, back
	t.url = changeMiddle(t.url, mid, front, back)
	if h&sourceValidator == 0 {
		t.validator = d.validator(t.validator)
	}
	r.pos = d.pos
	return t, above
}

// validator reads the validator of a source, which differs from the validator
// before, was.
func (d *decoder) validator(was []byte) []byte {
	front, rest := d.size(maxValidator), d.size(maxValidator)
	tail := d.bytes(rest)
	if front > len(was) || front+rest > maxValidator {
		d.fail("validator with a bad length")
	}
	if d.err != "" {
		return was
	}
	if front == len(was) && rest == 0 || front < len(was) && rest > 0 && was[front] == tail[0] {
		d.fail("validator is not coded tightly")
	}
	return append(was[:front], tail...)
}

// checkUnique refuses a source that is in the dictionary of p twice.
func (d *decoder) checkUnique(p *page) {
	n := int(p.sources.n)
	list, text := d.s.list[:0], d.s.text[:0]
	r := sourceReader{page: d.b, pos: int(binary.LittleEndian.Uint32(d.s.index[p.sources.marks:]))}
	t := sourceText{d.s.url[:0], d.s.validator[:0]}
	for range n {
		t = r.next(t)
		x := sourcePlace{begin: len(text), validator: len(text) + len(t.url), whole: r.whole}
		text = append(append(text, t.url...), t.validator...)
		x.end = len(text)
		list = append(list, x)
	}
	d.s.list, d.s.text, d.s.url, d.s.validator = list, text, t.url, t.validator
	// A hash table of list indices plus one, at most half full.
	size := 1 << bits.Len(uint(2*n))
	if cap(d.s.table) < size {
		d.s.table = make([]uint16, size)
	}
	table := d.s.table[:size]
	clear(table)
	for i := range list {
		x := &list[i]
		h := xxh64(text[x.begin:x.validator], uint64(x.end-x.validator))
		for ; table[int(h)&(size-1)] != 0; h++ {
			y := &list[table[int(h)&(size-1)]-1]
			if x.whole == y.whole && string(text[x.begin:x.validator]) == string(text[y.begin:y.validator]) &&
				string(text[x.validator:x.end]) == string(text[y.validator:y.end]) {
				d.fail("source is listed twice")
				return
			}
		}
		table[int(h)&(size-1)] = uint16(i + 1)
	}
}

// sourcePlace is where the texts of a source are while all are compared: the URL
// up to the validator, and that.
type sourcePlace struct {
	begin, validator, end int
	whole                 bool
}
