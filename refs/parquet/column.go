package parquet

import (
	"encoding/binary"
	"strings"

	"github.com/zarrdb/zarrdb/kv"
)

// column reads the values of one column chunk.
type column struct {
	name string
	field
	chunk
	src    source
	budget *int64 // bytes left of Options.MaxBytes

	unread int64  // values in pages not yet read
	left   int    // values of the page not yet decoded, nulls too
	page   []byte // the page without compression
	levels hybrid // of an optional column: 1 for a value, 0 for null

	numbered bool   // values are numbers of the dictionary
	plain    []byte // else the values
	index    hybrid

	dictPage  []byte
	dictInts  []int64
	dictBytes [][]byte
	dictTexts []string // of dictBytes, as far as they were used

	numbersBuf []uint32
	last       string // the text before
	texts      Arena
}

// Arena makes strings out of bytes with one allocation for many. A string that
// is kept also keeps about 16 KiB of neighbours in memory.
type Arena struct{ b strings.Builder }

// Text returns p as a string.
func (a *Arena) Text(p []byte) string {
	if a.b.Cap()-a.b.Len() < len(p) {
		a.b = strings.Builder{}
		a.b.Grow(max(1<<14, len(p)))
	}
	from := a.b.Len()
	a.b.Write(p)
	return a.b.String()[from:]
}

// reset prepares for a chunk of a row group; buffers are kept.
func (c *column) reset(f field, ch chunk) {
	c.field, c.chunk = f, ch
	c.unread, c.left = ch.values, 0
	c.src.at, c.src.likely = ch.start, min(ch.start+max(ch.size, 0), c.src.end)
	c.dictInts, c.dictBytes, c.dictTexts = c.dictInts[:0], c.dictBytes[:0], c.dictTexts[:0]
}

// grow returns a buffer of n bytes and charges its growth beyond b.
func (c *column) grow(b []byte, n int64) ([]byte, error) {
	if n <= int64(cap(b)) {
		return b[:n], nil
	}
	if err := c.charge(n - int64(cap(b))); err != nil {
		return nil, err
	}
	return make([]byte, n), nil
}

func (c *column) charge(n int64) error {
	if *c.budget -= n; *c.budget < 0 {
		return unsupported("column %q needs more memory than is allowed", c.name)
	}
	return nil
}

// load reads pages until there are values.
func (c *column) load() error {
	for c.left == 0 {
		if c.unread == 0 {
			return corrupt("column %q has no more values", c.name)
		}
		if c.src.at >= c.src.end {
			return corrupt("pages of column %q end early", c.name)
		}
		h, err := c.src.header()
		if err != nil {
			return err
		}
		if c.src.whole == nil {
			if err := c.charge(max(int64(h.size)-int64(cap(c.src.buf)), 0)); err != nil {
				return err
			}
		}
		body, err := c.src.body(h)
		if err != nil {
			return err
		}
		switch h.kind {
		case pageDictionary:
			err = c.dictionary(h, body)
		case pageData, pageDataV2:
			err = c.data(h, body)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// dictionary decodes the dictionary, whose entries the data pages refer to.
func (c *column) dictionary(h header, body []byte) error {
	var err error
	if c.dictPage, err = c.grow(c.dictPage, int64(h.raw)); err != nil {
		return err
	}
	if err := decompress(c.dictPage, body, c.codec); err != nil {
		return err
	}
	if h.encoding != encPlain && h.encoding != encPlainDictionary {
		return unsupported("dictionary encoding %d", h.encoding)
	}
	size := 4 // least bytes of an entry
	if c.typ == typeInt64 {
		size = 8
	}
	n := int(h.values)
	if n > len(c.dictPage)/size {
		return corrupt("dictionary of %d values in %d bytes", n, len(c.dictPage))
	}
	c.dictInts, c.dictBytes, c.dictTexts = c.dictInts[:0], c.dictBytes[:0], c.dictTexts[:0]
	if c.typ != typeByteArray {
		if c.typ == typeInt32 || c.typ == typeInt64 {
			if err := c.charge(8 * int64(max(n-cap(c.dictInts), 0))); err != nil {
				return err
			}
			c.dictInts = append(c.dictInts, make([]int64, n)...)
			plainInts(c.dictInts, c.dictPage, c.typ)
		}
		return nil
	}
	if err := c.charge(40 * int64(max(n-cap(c.dictBytes), 0))); err != nil {
		return err
	}
	rest := c.dictPage
	for range n {
		var v []byte
		if v, rest, err = plainBytes(rest); err != nil {
			return err
		}
		c.dictBytes = append(c.dictBytes, v)
	}
	return nil
}

// data prepares a data page for decoding.
func (c *column) data(h header, body []byte) error {
	if int64(h.values) > c.unread {
		return corrupt("column %q has more than %d values", c.name, c.values)
	}
	var levels []byte
	v2 := h.kind == pageDataV2
	raw := int64(h.raw)
	if v2 {
		before := int64(h.repBytes) + int64(h.defBytes)
		if before > int64(len(body)) || before > raw {
			return corrupt("levels of %d bytes in a page of %d", before, len(body))
		}
		levels, body, raw = body[h.repBytes:before], body[before:], raw-before
	}
	var err error
	if c.page, err = c.grow(c.page, raw); err != nil {
		return err
	}
	codec := c.codec
	if v2 && !h.compressed {
		codec = codecNone
	}
	if err := decompress(c.page, body, codec); err != nil {
		return err
	}
	values := c.page
	if c.optional {
		if !v2 {
			if h.levels != encRLE {
				return unsupported("encoding %d of levels", h.levels)
			}
			if len(values) < 4 {
				return corrupt("page without levels")
			}
			n := binary.LittleEndian.Uint32(values)
			if values = values[4:]; uint64(n) > uint64(len(values)) {
				return corrupt("levels of %d bytes in a page of %d", n, len(c.page))
			}
			levels, values = values[:n], values[n:]
		} else if len(levels) > 0 {
			// The levels lie in the window of the file, which moves on.
			levels = append([]byte(nil), levels...)
		}
		if c.levels, err = newHybrid(levels, 1); err != nil {
			return err
		}
	}
	c.unread -= int64(h.values)
	c.left = int(h.values)
	return c.begin(h.encoding, values)
}

// begin prepares the values of a page.
func (c *column) begin(encoding int32, b []byte) (err error) {
	c.numbered, c.plain = false, b
	switch {
	case c.optional && len(b) == 0:
		// Only nulls, of any type: pandas writes an empty column as one of
		// integers.
	case encoding == encDictionary || encoding == encPlainDictionary:
		c.numbered = true
		if len(b) == 0 {
			return corrupt("page of column %q without values", c.name)
		}
		c.index, err = newHybrid(b[1:], uint(b[0]))
	case encoding != encPlain:
		return unsupported("encoding %d of column %q", encoding, c.name)
	}
	return err
}

// runs decodes n rows: it calls some for values and none for nulls. n is at most
// the rows left of the page.
func (c *column) runs(n int, some func(from, to int) error, none func(from, to int)) error {
	c.left -= n
	if !c.optional {
		return some(0, n)
	}
	for at := 0; at < n; {
		v, k, err := c.levels.span(n - at)
		if err != nil {
			return err
		}
		if v == 0 {
			none(at, at+k)
		} else if err := some(at, at+k); err != nil {
			return err
		}
		at += k
	}
	return nil
}

// ints decodes len(dst) integers; a null is 0.
func (c *column) ints(dst []int64) error {
	return c.runs(len(dst), func(from, to int) error {
		dst := dst[from:to]
		if c.numbered {
			index, err := c.indexes(len(dst), len(c.dictInts))
			if err != nil {
				return err
			}
			for i, k := range index {
				dst[i] = c.dictInts[k]
			}
			return nil
		}
		size := 8
		if c.typ == typeInt32 {
			size = 4
		}
		if len(c.plain)/size < len(dst) {
			return corrupt("values of column %q end early", c.name)
		}
		plainInts(dst, c.plain, c.typ)
		c.plain = c.plain[size*len(dst):]
		return nil
	}, func(from, to int) { clear(dst[from:to]) })
}

// indexes decodes n numbers below size.
func (c *column) indexes(n, size int) ([]uint32, error) {
	if cap(c.numbersBuf) < n {
		c.numbersBuf = make([]uint32, max(n, batchRows))
	}
	index := c.numbersBuf[:n]
	if err := c.index.fill(index); err != nil {
		return nil, err
	}
	highest := uint32(0)
	for _, k := range index {
		highest = max(highest, k)
	}
	if uint64(highest) >= uint64(size) && n > 0 {
		return nil, corrupt("column %q has number %d in a dictionary of %d", c.name, highest, size)
	}
	return index, nil
}

func plainInts(dst []int64, b []byte, typ int32) {
	if typ == typeInt32 {
		for i := range dst {
			dst[i] = int64(int32(binary.LittleEndian.Uint32(b[4*i:])))
		}
		return
	}
	for i := range dst {
		dst[i] = int64(binary.LittleEndian.Uint64(b[8*i:]))
	}
}

func plainBytes(b []byte) (v, rest []byte, err error) {
	if len(b) < 4 {
		return nil, nil, corrupt("values end early")
	}
	n := binary.LittleEndian.Uint32(b)
	if b = b[4:]; uint64(n) > uint64(len(b)) {
		return nil, nil, corrupt("values end early")
	}
	return b[:n:n], b[n:], nil
}

// bytes decodes len(dst) byte strings; a null is nil, an empty one is not. They
// are valid until the next page is loaded.
func (c *column) bytes(dst [][]byte) error {
	return c.runs(len(dst), func(from, to int) error {
		if c.typ != typeByteArray {
			return corrupt("column %q has no byte strings (type %d)", c.name, c.typ)
		}
		dst := dst[from:to]
		if c.numbered {
			index, err := c.indexes(len(dst), len(c.dictBytes))
			if err != nil {
				return err
			}
			for i, k := range index {
				dst[i] = c.dictBytes[k]
			}
			return nil
		}
		for i := range dst {
			var err error
			if dst[i], c.plain, err = plainBytes(c.plain); err != nil {
				return err
			}
		}
		return nil
	}, func(from, to int) { clear(dst[from:to]) })
}

// strings decodes len(dst) strings; a null is "". Equal strings that follow
// each other are the same string.
func (c *column) strings(dst []string) error {
	return c.runs(len(dst), func(from, to int) error {
		if c.typ != typeByteArray {
			return corrupt("column %q has no strings (type %d)", c.name, c.typ)
		}
		dst := dst[from:to]
		if c.numbered {
			return c.dictStrings(dst)
		}
		for i := range dst {
			v, rest, err := plainBytes(c.plain)
			if err != nil {
				return err
			}
			if c.plain = rest; string(v) != c.last {
				c.last = c.texts.Text(v)
			}
			dst[i] = c.last
		}
		return nil
	}, func(from, to int) { clear(dst[from:to]) })
}

func (c *column) dictStrings(dst []string) error {
	for _, v := range c.dictBytes[len(c.dictTexts):] {
		c.dictTexts = append(c.dictTexts, c.texts.Text(v))
	}
	index, err := c.indexes(len(dst), len(c.dictTexts))
	if err != nil {
		return err
	}
	for i, k := range index {
		dst[i] = c.dictTexts[k]
	}
	return nil
}

// held returns the memory of the buffers.
func (c *column) held() int64 {
	return int64(cap(c.page)) + int64(cap(c.dictPage)) + int64(cap(c.src.buf)) + 8*int64(cap(c.dictInts)) + 40*int64(cap(c.dictBytes))
}

// file sets where pages are read from.
func (c *column) file(v kv.Value, whole []byte, end int64) {
	c.src.v, c.src.whole, c.src.end = v, whole, end
	c.src.buf = c.src.buf[:0]
}
