package namespace

import (
	"bytes"
	"context"
	"encoding/binary"
	"iter"
	"math"
	"slices"
	"strconv"

	"github.com/zarrdb/zarrdb/kv/tree"
)

// chunkLister yields the keys of a chunk map in byte order, which differs from
// the order of the map:
//
//	map      (2) (9) (10) (11) (100)          keys     10 100 11 2 9
//
// Separators come before digits, so 1/… comes before 10/… and numbers can be
// ordered as decimal strings; and numbers of the same count of digits have the
// same order as numbers and as strings. So a dimension is read through one
// cursor for each count of digits that occurs, and these are merged. Where all
// that is below one number fits a buffer, it is read and sorted; else the
// same happens for the next dimension.
type chunkLister struct {
	s      *Space
	ctx    context.Context
	dir    string // path of the directory
	form   *dirForm
	bounds listBounds // relative to dir; low "" once it is passed

	levels []listLevel
	out    []string // the next keys, full
	pos    int

	group   [][]byte // scratch
	text    []byte
	printed []printedChunk
	merged  []printedChunk
	runs    []int
	spare   [][][]byte // buffers of cursors that are done
}

// listLevel is a dimension that is being merged: all chunks that begin with
// lead.
type listLevel struct {
	dim     int
	lead    []byte // encoded coordinates before dim
	text    string // their full key, up to where number dim begins
	classes []numberCursor
}

// numberCursor reads the numbers of one count of digits.
type numberCursor struct {
	cur    keyCursor
	digits int
	num    uint64 // at the cursor
	ok     bool
}

// printedChunk is where a key is in text.
type printedChunk struct {
	head       uint64 // of what is not common to all, see headOf
	start, end int32
}

// more reports whether there is a next key.
func (c *chunkLister) more() bool { return c.pos < len(c.out) }

// head is the next key; there must be some.
func (c *chunkLister) head() string { return c.out[c.pos] }

// advance passes the head.
func (c *chunkLister) advance() error {
	if c.pos++; c.pos < len(c.out) {
		return nil
	}
	return c.fill()
}

// seek goes to the first key that is wanted and not less than low, which is
// relative to dir.
func (c *chunkLister) seek(low string) error {
	for len(c.levels) > 0 {
		c.pop()
	}
	c.bounds.low = low
	cut, ok := c.form.cut(c.bounds.prefix)
	if ok && c.form.root.Entries > 0 {
		text := []byte(c.dir + c.form.Prefix)
		for rest := cut.lead; len(rest) > 0; {
			var n uint64
			n, rest, _ = splitCoord(rest)
			text = append(strconv.AppendUint(text, n, 10), c.form.Sep)
		}
		if err := c.push(cut.dim, cut.lead, string(text), cut.digits); err != nil {
			return err
		}
	}
	return c.fill()
}

// push begins a dimension whose numbers begin with the given digits.
func (c *chunkLister) push(dim int, lead []byte, text, digits string) error {
	low, ok := lowBelow(c.bounds.low, text[len(c.dir):])
	if !ok {
		return nil
	}
	lv := listLevel{dim: dim, lead: lead, text: text}
	end := keyAfter(lead)
	for k := max(1, len(digits)); k <= maxDigits; k++ {
		lo, hi, ok := numberRange(digits, low, k)
		if !ok {
			continue
		}
		n := numberCursor{digits: k}
		n.cur = c.keys(tree.Span{From: appendCoord(clip(lead), lo), To: end})
		if last := len(c.spare) - 1; last >= 0 {
			n.cur.buf, c.spare = c.spare[last][:0], c.spare[:last]
		}
		if err := c.load(&lv, &n); err != nil {
			return err
		}
		if !n.ok {
			break // nothing greater either
		}
		if n.num <= hi {
			n.cur.limit(keyAfter(appendCoord(clip(lead), hi)))
			lv.classes = append(lv.classes, n)
		} else {
			k = max(k, countDigits(n.num)-1)
		}
	}
	if len(lv.classes) > 0 {
		c.levels = append(c.levels, lv)
	}
	return nil
}

// pop ends the innermost dimension.
func (c *chunkLister) pop() {
	lv := &c.levels[len(c.levels)-1]
	for i := range lv.classes {
		c.spare = append(c.spare, lv.classes[i].cur.buf)
	}
	c.levels = c.levels[:len(c.levels)-1]
}

// load reads the number at a cursor.
func (c *chunkLister) load(lv *listLevel, n *numberCursor) error {
	key, err := n.cur.head(c.s.Limits.Read)
	if n.ok = key != nil; err != nil || key == nil {
		return err
	}
	var ok bool
	if n.num, _, ok = splitCoord(key[len(lv.lead):]); !ok {
		return corrupt("chunk map of %q: coordinates %x", c.dir, key)
	}
	return nil
}

// fill makes the next keys.
func (c *chunkLister) fill() error {
	c.out, c.pos = c.out[:0], 0
	for len(c.out) == 0 && len(c.levels) > 0 {
		lv := &c.levels[len(c.levels)-1]
		n := lv.first()
		if n == nil {
			c.pop()
			continue
		}
		err := c.ctx.Err()
		if err != nil {
			return err
		}
		if lv.dim == c.form.Rank-1 {
			err = c.fillNumbers(lv)
		} else {
			err = c.fillGroup(lv, n)
		}
		if err != nil {
			return err
		}
	}
	if len(c.out) > 0 {
		c.bounds.low = "" // the rest is greater
	}
	return nil
}

// first is the cursor with the first number in the order of strings.
func (lv *listLevel) first() *numberCursor {
	var first *numberCursor
	for i := range lv.classes {
		n := &lv.classes[i]
		// The classes ascend, so n has more digits than first.
		if n.ok && (first == nil || n.num/pow10[n.digits-first.digits] < first.num) {
			first = n
		}
	}
	return first
}

// fillNumbers makes keys of the last dimension.
func (c *chunkLister) fillNumbers(lv *listLevel) error {
	c.text, c.printed = c.text[:0], c.printed[:0]
	for n := lv.first(); n != nil && len(c.printed) < c.s.Limits.Read; n = lv.first() {
		start := len(c.text)
		c.text = strconv.AppendUint(append(c.text, lv.text...), n.num, 10)
		c.printed = append(c.printed, printedChunk{start: int32(start), end: int32(len(c.text))})
		n.cur.pos++
		if err := c.load(lv, n); err != nil {
			return err
		}
	}
	c.emit()
	return nil
}

// emit hands out those of the printed keys that are wanted.
func (c *chunkLister) emit() {
	all, low := string(c.text), c.bounds.low
	for _, p := range c.printed {
		if key := all[p.start:p.end]; low == "" || key[len(c.dir):] >= low {
			c.out = append(c.out, key)
		}
	}
}

// fillGroup makes the keys below the number at a cursor, or begins the next
// dimension below it if they are many.
func (c *chunkLister) fillGroup(lv *listLevel, n *numberCursor) error {
	lead := appendCoord(clip(lv.lead), n.num)
	text := string(append(strconv.AppendUint([]byte(lv.text), n.num, 10), c.form.Sep))
	_, some := lowBelow(c.bounds.low, text[len(c.dir):])
	if some { // else all are less: pass them like many
		many, err := c.readGroup(lv, n, lead)
		if err != nil {
			return err
		}
		if !many {
			return c.emitGroup(len(lead), text, lv.dim+1)
		}
	}
	n.cur.seek(keyAfter(lead))
	if err := c.load(lv, n); err != nil {
		return err
	}
	return c.push(lv.dim+1, lead, text, "")
}

// readGroup reads the chunks at a cursor whose coordinates begin with lead, or
// stops where they are too many.
func (c *chunkLister) readGroup(lv *listLevel, n *numberCursor, lead []byte) (many bool, err error) {
	c.group = c.group[:0]
	for key := lead; bytes.HasPrefix(key, lead); {
		if len(c.group) == c.s.Limits.Group {
			return true, nil
		}
		c.group = append(c.group, n.cur.buf[n.cur.pos])
		n.cur.pos++
		if key, err = n.cur.head(c.s.Limits.Read); err != nil {
			return false, err
		}
	}
	return false, c.load(lv, n)
}

// emitGroup prints and sorts the chunks in group, whose coordinates before dim take
// lead bytes and whose keys begin with text.
func (c *chunkLister) emitGroup(lead int, text string, dim int) error {
	c.text, c.printed = c.text[:0], c.printed[:0]
	for _, coords := range c.group {
		start := len(c.text)
		var ok bool
		if c.text, ok = c.form.printFrom(append(c.text, text...), dim, coords[lead:]); !ok {
			return corrupt("chunk map of %q: coordinates %x", c.dir, coords)
		}
		head := headOf(c.text[start+len(text):])
		c.printed = append(c.printed, printedChunk{head, int32(start), int32(len(c.text))})
	}
	c.sort()
	c.emit()
	return nil
}

// headOf makes a number of the first bytes of a text without zeros. Texts have the
// order of their heads, if these differ.
func headOf(text []byte) uint64 {
	var head [8]byte
	copy(head[:], text)
	return binary.BigEndian.Uint64(head[:])
}

// less compares printed keys.
func (c *chunkLister) less(a, b *printedChunk) bool {
	if a.head != b.head {
		return a.head < b.head
	}
	return bytes.Compare(c.text[a.start:a.end], c.text[b.start:b.end]) < 0
}

// sort sorts the printed keys. In the order of numbers they ascend for long, up to
// the next count of digits, so these runs are merged.
func (c *chunkLister) sort() {
	n := len(c.printed)
	ends := c.runs[:0]
	for i := 1; i < n; i++ {
		if c.less(&c.printed[i], &c.printed[i-1]) {
			ends = append(ends, i)
		}
	}
	ends = append(ends, n)
	c.runs, c.merged = ends, slices.Grow(c.merged[:0], n)[:n]
	for len(ends) > 1 {
		start, left := 0, ends[:0]
		for i := 0; i < len(ends); i += 2 {
			mid, end := ends[i], ends[min(i+1, len(ends)-1)]
			c.merge(c.merged[start:end], c.printed[start:mid], c.printed[mid:end])
			left = append(left, end)
			start = end
		}
		ends = left
		c.printed, c.merged = c.merged, c.printed
	}
}

// merge fills dst from two sorted lists.
func (c *chunkLister) merge(dst, a, b []printedChunk) {
	for i := range dst {
		if len(b) == 0 || len(a) > 0 && c.less(&a[0], &b[0]) {
			dst[i], a = a[0], a[1:]
		} else {
			dst[i], b = b[0], b[1:]
		}
	}
}

// keyCursor reads the keys of a span of a chunk map.
type keyCursor struct{ cursor[[]byte] }

func (c *chunkLister) keys(span tree.Span) keyCursor {
	read := func(span tree.Span) iter.Seq2[[]byte, error] { return c.s.Tree.Keys(c.ctx, c.form.root, span) }
	return keyCursor{cursor[[]byte]{read: read, key: func(key []byte) []byte { return key }, span: span}}
}

// head returns the first key that is left, nil at the end.
func (c *keyCursor) head(most int) ([]byte, error) {
	if c.pos < len(c.buf) {
		return c.buf[c.pos], nil
	}
	key, err := c.peek(most)
	if key == nil {
		return nil, err
	}
	return *key, nil
}

// seek goes to the first key not less than from.
func (c *keyCursor) seek(from []byte) {
	c.span, c.buf, c.pos, c.size, c.end = tree.Span{From: from, To: c.span.To}, c.buf[:0], 0, 0, false
}

// limit makes the cursor end before to.
func (c *keyCursor) limit(to []byte) {
	c.span.To = to
	for i := c.pos; i < len(c.buf); i++ {
		if string(c.buf[i]) >= string(to) {
			c.buf, c.end = c.buf[:i], true
			return
		}
	}
}

var pow10 = func() (p [maxDigits + 1]uint64) {
	p[0] = 1
	for i := 1; i < len(p); i++ {
		p[i] = p[i-1] * 10
	}
	return p
}()

func countDigits(n uint64) int {
	k := 1
	for k < maxDigits && n >= pow10[k] {
		k++
	}
	return k
}

// numberRange returns the numbers of k digits that begin with the given digits
// and whose keys may be not less than low, as a range; keys go on with a byte
// less than any digit or end.
func numberRange(digits, low string, k int) (lo, hi uint64, ok bool) {
	lo, hi = pow10[k-1], pow10[k]-1
	if k == 1 {
		lo = 0
	}
	if digits != "" {
		d, _ := strconv.ParseUint(digits, 10, 64)
		if d == 0 && k > 1 {
			return 0, 0, false
		}
		scale := pow10[k-len(digits)]
		lo, hi = d*scale, d*scale+(scale-1)
	}
	hi = min(hi, maxCoord)
	j := 0 // digits that low begins with
	for j < k && j < len(low) && low[j]-'0' < 10 {
		j++
	}
	var n uint64
	if j > 0 {
		n, _ = strconv.ParseUint(low[:j], 10, 64)
	}
	if j < k {
		if j < len(low) && low[j] > '9' {
			if n++; j == 0 {
				return 0, 0, false
			}
		}
		if n *= pow10[k-j]; n > math.MaxInt64 {
			return 0, 0, false
		}
	}
	lo = max(lo, n)
	return lo, hi, lo <= hi
}
