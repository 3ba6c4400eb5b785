package tree

import (
	"bytes"
	"encoding/binary"
)

// Keys of a page, each coded against the one before:
//
//	first key     length (uvarint) · bytes
//	0dddaaaa      drop ddd bytes at the end of the key before, then add aaaa
//	              bytes, which follow. ddd = 7: 7 and a uvarint more; aaaa = 15:
//	              15 and a uvarint more. The uvarints come first, drop then add
//	1pprrrrr      the next rrrrr+1 keys are the key before with its byte at
//	              pp from the end one greater each time
//
// Consecutive coordinates cost one byte per 32 keys, and the step from the end of
// one row to the start of the next three or four.

// stepLimit is the greatest distance from the end at which runs count.
const stepLimit = 3

// step returns the length of the common prefix of two keys and, if the second
// is the first with one byte incremented near the end, the distance of that
// byte from the end, else -1.
func step(prev, key []byte) (common, dist int) {
	n := min(len(prev), len(key))
	for common < n && prev[common] == key[common] {
		common++
	}
	if len(prev) != len(key) || common == n || key[common] != prev[common]+1 || key[common] == 0 {
		return common, -1
	}
	dist = n - 1 - common
	if dist > stepLimit || !bytes.Equal(prev[common+1:], key[common+1:]) {
		return common, -1
	}
	return common, dist
}

type keyEncoder struct {
	buf  []byte
	last []byte
	n    int
	run  int // position of the open run token; 0 without one
}

func (e *keyEncoder) reset() {
	e.buf, e.last, e.n, e.run = e.buf[:0], e.last[:0], 0, 0
}

// add codes the next key; false if it is not greater than the one before.
func (e *keyEncoder) add(key []byte) bool {
	if e.n == 0 {
		e.buf = binary.AppendUvarint(e.buf, uint64(len(key)))
		e.buf = append(e.buf, key...)
		e.last = append(e.last[:0], key...)
		e.n = 1
		return true
	}
	common, dist := step(e.last, key)
	if common == len(key) || common < len(e.last) && key[common] < e.last[common] {
		return false
	}
	e.n++
	if dist >= 0 {
		token := byte(0x80 | dist<<5)
		if e.run > 0 && e.buf[e.run]&0xe0 == token && e.buf[e.run]&31 < 31 {
			e.buf[e.run]++
		} else {
			e.run = len(e.buf)
			e.buf = append(e.buf, token)
		}
		e.last[common]++
		return true
	}
	drop, add := len(e.last)-common, len(key)-common
	e.buf = append(e.buf, byte(min(drop, 7)<<4|min(add, 15)))
	if drop >= 7 {
		e.buf = binary.AppendUvarint(e.buf, uint64(drop-7))
	}
	if add >= 15 {
		e.buf = binary.AppendUvarint(e.buf, uint64(add-15))
	}
	e.buf = append(e.buf, key[common:]...)
	e.last = append(e.last[:common], key[common:]...)
	e.run = 0
	return true
}

// markEvery is how many keys at least lie between two marks.
const markEvery = 16

// keyColumn is the way into the keys of a page, which are searched in their
// coded form. It is part of page.index:
//
//	heads   8 bytes for each mark, a place where the keys can be entered: the
//	        key there, after the bytes that all keys share, cut or filled up
//	marks   12 bytes each: number of the key, where the token after it is in
//	        the page, where the key ends below (it begins where the one before
//	        ends)
//	keys    those at the marks
type keyColumn struct {
	n       int32 // keys
	common  int32 // bytes that all keys share
	marks   int32 // how many
	longest int32 // bytes of the longest key
	total   int32 // bytes of all keys
}

const (
	headSize = 8
	markSize = 12
)

func (p *page) head(m int) uint64 { return binary.LittleEndian.Uint64(p.index[m*headSize:]) }

// mark returns field 0, 1 or 2 of a mark.
func (p *page) mark(m, field int) int {
	return int(int32(binary.LittleEndian.Uint32(p.index[int(p.keys.marks)*headSize+m*markSize+4*field:])))
}

func (p *page) markItem(m int) int { return p.mark(m, 0) }

func (p *page) markKey(m int) []byte {
	begin, end := 0, p.mark(m, 2)
	if m > 0 {
		begin = p.mark(m-1, 2)
	}
	keys := p.index[int(p.keys.marks)*(headSize+markSize):]
	return keys[begin:end:end]
}

// headOf returns the head of a key that begins with the common bytes. For other
// keys the result has no meaning.
func (c *keyColumn) headOf(key []byte) uint64 {
	key = key[min(len(key), int(c.common)):]
	if len(key) >= 8 {
		return binary.BigEndian.Uint64(key)
	}
	var h uint64
	for i, b := range key {
		h |= uint64(b) << (56 - 8*i)
	}
	return h
}

// keyReader walks over coded keys. key is the current one, in a buffer that the
// next step changes.
type keyReader struct {
	page []byte
	key  []byte
	pos  int32
	left int32 // keys left in the run
	at   int32 // index in key of the byte that the run increments
}

// enter goes to a mark. The key is copied into buf.
func (p *page) enter(m int, buf []byte) keyReader {
	return keyReader{page: p.raw, key: append(buf[:0], p.markKey(m)...), pos: int32(p.mark(m, 1))}
}

// next goes to the next key, which must exist.
func (r *keyReader) next() {
	if r.left > 0 {
		r.left--
		r.key[r.at]++
		return
	}
	drop, add := r.token()
	if add < 0 {
		r.at = int32(len(r.key) - 1 - drop)
		r.left = int32(-add - 1)
		r.key[r.at]++
		return
	}
	r.key = append(r.key[:len(r.key)-drop], r.page[r.pos:int(r.pos)+add]...)
	r.pos += int32(add)
}

// token reads a token of a validated page. add < 0 stands for a run of -add
// keys at the distance drop.
func (r *keyReader) token() (drop, add int) {
	t := r.page[r.pos]
	r.pos++
	if t >= 0x80 {
		return int(t >> 5 & 3), -int(t&31) - 1
	}
	drop, add = int(t>>4), int(t&15)
	if drop == 7 {
		v, n := binary.Uvarint(r.page[r.pos:])
		drop += int(v)
		r.pos += int32(n)
	}
	if add == 15 {
		v, n := binary.Uvarint(r.page[r.pos:])
		add += int(v)
		r.pos += int32(n)
	}
	return drop, add
}

// find returns the index of the first key that is not less than key, p.len() if
// all are less, and whether it equals key. buf is scratch space; if it holds the
// longest key, nothing is allocated.
func (p *page) find(key, buf []byte) (item int, exact bool) {
	m, before := p.findMark(key)
	if before {
		return 0, false
	}
	if m == int(p.keys.marks) {
		return p.len(), false
	}
	r := p.enter(m, buf)
	item = p.markItem(m)
	same := commonLen(r.key, key) // bytes that r.key and key share
	if same == len(key) {
		return item, true // the key of the mark is not greater
	}
	// From here r.key < key: they differ at same, or r.key ends there.
	for {
		item++
		if item == p.len() {
			return item, false
		}
		drop, add := r.token()
		if add < 0 {
			runs := -add
			at := len(r.key) - 1 - drop
			if at < same {
				return item, false
			}
			if at == same {
				if steps := int(key[at]) - int(r.key[at]); steps <= runs {
					r.key[at] += byte(steps)
					item += steps - 1
					if rest := bytes.Compare(r.key[at:], key[at:]); rest >= 0 {
						return item, rest == 0
					}
					if steps < runs {
						return item + 1, false
					}
					same += commonLen(r.key[at:], key[at:])
					continue
				}
			}
			r.key[at] += byte(runs)
			item += runs - 1
			continue
		}
		keep := len(r.key) - drop
		text := r.page[r.pos : int(r.pos)+add]
		r.pos += int32(add)
		r.key = append(r.key[:keep], text...)
		if keep < same {
			return item, false
		}
		if keep == same {
			if rest := bytes.Compare(text, key[same:]); rest >= 0 {
				return item, rest == 0
			}
			same += commonLen(text, key[same:])
		}
	}
}

// findMark returns the last mark whose key is not greater than key. before means
// that key is less than every key. If key is greater than the common bytes of
// all keys, m is the number of marks.
func (p *page) findMark(key []byte) (m int, before bool) {
	head := p.keys.headOf(key)
	lo, hi := 0, int(p.keys.marks) // marks before lo are not greater, from hi on greater
	for lo < hi {
		mid := int(uint(lo+hi) / 2)
		if h := p.head(mid); h < head || h == head && bytes.Compare(p.markKey(mid), key) <= 0 {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	// The common bytes are compared last, with a key that is read anyway. If
	// they differ, the search above does not count.
	m = max(lo-1, 0)
	if common := int(p.keys.common); common > 0 {
		switch c := bytes.Compare(key[:min(len(key), common)], p.markKey(m)[:common]); {
		case c < 0:
			return 0, true
		case c > 0:
			return int(p.keys.marks), false
		}
	}
	return m, lo == 0
}

func commonLen(a, b []byte) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

// keyMark is a mark that the decoder has set.
type keyMark struct{ item, pos, end int }

// keys reads the keys of a page of n items into c, and begins its index.
func (d *decoder) keys(c *keyColumn, n int) {
	first := d.bytes(d.size(maxKey))
	if d.err != "" {
		return
	}
	e := keyChecker{key: append(d.s.key[:0], first...)}
	d.s.marks, d.s.arena = d.s.marks[:0], d.s.arena[:0]
	d.mark(0, e.key)
	common, total, longest := len(first), len(first), len(first)
	for item, marked := 1, 0; item < n; {
		if item-marked > markEvery {
			marked = item - 1 // e.key is that key
			d.mark(marked, e.key)
		}
		count := d.keyToken(&e, n-item)
		if d.err != "" {
			return
		}
		item += count
		total += count * len(e.key)
		longest = max(longest, len(e.key))
		common = min(common, e.keep)
	}
	d.s.key = e.key
	*c = keyColumn{n: int32(n), common: int32(common), marks: int32(len(d.s.marks)), longest: int32(longest), total: int32(total)}
	d.indexKeys(c)
}

// mark notes that key number item was read.
func (d *decoder) mark(item int, key []byte) {
	d.s.arena = append(d.s.arena, key...)
	d.s.marks = append(d.s.marks, keyMark{item, d.pos, len(d.s.arena)})
}

func (d *decoder) indexKeys(c *keyColumn) {
	index := d.s.index[:0]
	begin := 0
	for _, m := range d.s.marks {
		index = binary.LittleEndian.AppendUint64(index, c.headOf(d.s.arena[begin:m.end]))
		begin = m.end
	}
	for _, m := range d.s.marks {
		for _, v := range [...]int{m.item, m.pos, m.end} {
			index = binary.LittleEndian.AppendUint32(index, uint32(v))
		}
	}
	d.s.index = append(index, d.s.arena...)
}

// keyChecker is the decoder's state after the previous key.
type keyChecker struct {
	key  []byte
	keep int  // bytes that the last token left alone
	run  byte // the token before, if it was a run
}

// keyToken reads the next token and returns how many keys it makes, of which at
// most limit are expected.
func (d *decoder) keyToken(e *keyChecker, limit int) int {
	t := d.byte()
	if t >= 0x80 {
		dist, count := int(t>>5&3), int(t&31)+1
		at := len(e.key) - 1 - dist
		if at < 0 || count > limit || int(e.key[at])+count > 0xff {
			d.fail("bad run of keys")
			return 0
		}
		if e.run != 0 && e.run&0xe0 == t&0xe0 && e.run&31 != 31 {
			d.fail("runs of keys are not joined")
			return 0
		}
		e.key[at] += byte(count)
		e.keep, e.run = at, t
		return count
	}
	drop, add := int(t>>4), int(t&15)
	if drop == 7 {
		drop += d.size(maxKey)
	}
	if add == 15 {
		add += d.size(maxKey)
	}
	text := d.bytes(add)
	keep := len(e.key) - drop
	if d.err != "" {
		return 0
	}
	if keep < 0 || keep+add > maxKey || add == 0 || drop > 0 && text[0] <= e.key[keep] {
		d.fail("keys are not ascending")
		return 0
	}
	if drop == add && text[0] == e.key[keep]+1 && drop-1 <= stepLimit && bytes.Equal(text[1:], e.key[keep+1:]) {
		d.fail("run of keys is not coded as one")
		return 0
	}
	e.key = append(e.key[:keep], text...)
	e.keep, e.run = keep, 0
	return 1
}
