package ocdbt

import (
	"math"
	"sort"

	"github.com/zarrdb/zarrdb/formats"
)

const (
	// maxEntries is the largest number of entries of a node.
	maxEntries = 1 << 20
	// maxKey is the longest key, in bytes.
	maxKey = 1<<16 - 1
	// maxInlineValue is the longest value in a leaf, in bytes.
	maxInlineValue = 1 << 20
)

// node is a node of a B+tree. Its keys are relative to a base, which the path from the
// root tells. Key i is prefix and keys[ends[i-1]:ends[i]].
type node struct {
	height  uint8
	prefix  []byte
	keys    []byte
	ends    []uint32
	values  []value // of a leaf
	data    []byte  // of short values, one after the other
	kids    []child // of an interior node
	charged int64   // bytes in memory
}

func (n *node) size() int64 { return n.charged }

// value is an entry of a leaf.
type value struct {
	location      // of a long value
	inline   bool // the value is data[off:][:n]
}

// child is an entry of an interior node.
type child struct {
	location
	// shared is how much of its key all keys in the child begin with; the keys of the
	// child leave it out.
	shared int
}

func (n *node) len() int { return len(n.ends) }

// rest returns key i without prefix.
func (n *node) rest(i int) []byte {
	from := uint32(0)
	if i > 0 {
		from = n.ends[i-1]
	}
	return n.keys[from:n.ends[i]]
}

// decodeNode reads a node of a B+tree (index.rst, "B+tree node format"). transitive is
// the base path of its file, and limit bounds the bytes in memory.
func decodeNode(b []byte, transitive string, limit int) (*node, error) {
	body, err := decodeFrame(magicNode, b, limit)
	if err != nil {
		return nil, err
	}
	c := &cursor{b: body}
	n := &node{height: c.byte()}
	files := decodeFiles(c, transitive, limit)
	count := c.count(maxEntries, 3, "the number of entries")
	if c.err == nil && count == 0 {
		c.fail("it is empty")
	}
	if c.err != nil {
		return nil, c.err
	}
	n.decodeKeys(c, count, limit)
	if n.height == 0 {
		n.decodeValues(c, files, count)
	} else {
		decodeLocations(c, files, count, false, func(i int) *location { return &n.kids[i].location })
		c.skipStatistics(count)
	}
	if err := c.end(); err != nil {
		return nil, err
	}
	n.charged = int64(256 + len(n.prefix) + len(n.keys) + len(n.data) + 4*count + 56*len(n.values) + 80*len(n.kids))
	for _, f := range files {
		n.charged += int64(len(f.path) + 24)
	}
	return n, nil
}

// decodeKeys reads the columns of keys. The keys of a node may be far longer than
// their stored form.
func (n *node) decodeKeys(c *cursor, count, limit int) {
	lengths := make([]struct{ prefix, suffix uint16 }, count)
	shared := maxKey // by all keys
	for i := 1; i < count; i++ {
		lengths[i].prefix = uint16(c.atMost(maxKey, "a length of a key"))
		shared = min(shared, int(lengths[i].prefix))
	}
	for i := range lengths {
		lengths[i].suffix = uint16(c.atMost(maxKey, "a length of a key"))
	}
	shared = min(shared, int(lengths[0].suffix))
	if n.height > 0 {
		n.kids = make([]child, count)
		for i := range n.kids {
			n.kids[i].shared = int(c.atMost(maxKey, "a length of a key"))
			shared = min(shared, n.kids[i].shared)
		}
	}
	if c.err != nil {
		return
	}
	total, before := 0, 0
	for i, l := range lengths {
		size := int(l.prefix) + int(l.suffix)
		switch {
		case int(l.prefix) > before, size > maxKey, n.height > 0 && n.kids[i].shared > size:
			c.fail("the length of key %d is inconsistent", i)
			return
		}
		before = size
		total += size - shared
	}
	if total > limit {
		c.fail("its keys have more than %d bytes", limit)
		return
	}
	n.keys, n.ends = make([]byte, 0, total), make([]uint32, count)
	from := 0 // of the key before
	for i, l := range lengths {
		suffix := c.bytes(int(l.suffix))
		if c.err != nil {
			return
		}
		start := len(n.keys)
		if i == 0 {
			n.prefix = append([]byte(nil), suffix[:shared]...)
			suffix = suffix[shared:]
		} else {
			same := int(l.prefix) - shared
			if string(n.keys[from+same:start]) >= string(suffix) {
				c.fail("key %d is not in order", i)
				return
			}
			n.keys = append(n.keys, n.keys[from:from+same]...)
		}
		n.keys = append(n.keys, suffix...)
		n.ends[i], from = uint32(len(n.keys)), start
	}
}

func (n *node) decodeValues(c *cursor, files []dataFile, count int) {
	n.values = make([]value, count)
	c.column(count, func(i int) *uint64 { return &n.values[i].n })
	total := uint64(0)
	for i := range n.values {
		v := &n.values[i]
		switch kind := c.atMost(1, "the kind of a value"); {
		case kind == 1:
		case v.n > maxInlineValue:
			c.fail("a value of %d bytes in a leaf", v.n)
		default:
			v.inline, v.off = true, total
			total += v.n
		}
	}
	for i := range n.values {
		if v := &n.values[i]; !v.inline {
			if k := c.uvarint(); k < uint64(len(files)) {
				v.file = files[k]
			} else {
				c.fail("data file %d of %d", k, len(files))
			}
		}
	}
	for i := range n.values {
		if v := &n.values[i]; !v.inline {
			if v.off = c.uvarint(); v.off > math.MaxInt64 || v.n > math.MaxInt64-v.off {
				c.fail("a value of %d bytes from byte %d on", v.n, v.off)
			}
		}
	}
	if total > uint64(len(c.b)) {
		c.fail("it ends too early")
	}
	n.data = append([]byte(nil), c.bytes(int(total))...)
}

// check compares a node with the reference to it: its height, and the beginning of its
// keys, first, where they are relative to the base of the node.
func (n *node) check(height uint8, first []byte) error {
	switch {
	case n.height != height:
		return formats.Invalid("its height is %d, not %d", n.height, height)
	case compareParts(n.prefix, n.rest(0), first) < 0:
		return formats.Invalid("its first key is before its range")
	}
	return nil
}

// compareParts compares a+b with c.
func compareParts(a, b, c []byte) int {
	if len(c) < len(a) || string(a) != string(c[:len(a)]) {
		if string(a) < string(c) {
			return -1
		}
		return 1
	}
	switch c = c[len(a):]; {
	case string(b) < string(c):
		return -1
	case string(b) > string(c):
		return 1
	}
	return 0
}

// find returns the index of the last key that is not after key, -1 without one,
// and whether it is equal. key is relative to the base of the node.
func (n *node) find(key string) (i int, equal bool) {
	if len(key) < len(n.prefix) || key[:len(n.prefix)] != string(n.prefix) {
		if key < string(n.prefix) {
			return -1, false
		}
		return n.len() - 1, false
	}
	key = key[len(n.prefix):]
	i = sort.Search(n.len(), func(i int) bool { return string(n.rest(i)) > key }) - 1
	return i, i >= 0 && string(n.rest(i)) == key
}

// below returns the prefix of the keys of child i, relative to the base of n.
func (n *node) below(i int) string {
	return string(n.prefix) + string(n.rest(i)[:n.kids[i].shared-len(n.prefix)])
}

// key returns key i relative to the base of n.
func (n *node) key(i int) string { return string(n.prefix) + string(n.rest(i)) }
