package ocdbt

import (
	"context"
	"encoding/binary"
	"sort"

	"github.com/zarrdb/zarrdb/formats"
)

// Nodes are written with whole keys: an entry or a kid of a node that was read gets its
// base back.

// entry is an entry of a leaf, or a change to it.
type entry struct {
	key     string
	data    []byte // of a short value
	long    bool   // the value is at location
	deleted bool
	location
}

// kid is an entry of an interior node.
type kid struct {
	key    string // its first key, or one before it
	shared int    // how much of key all its keys begin with, and leave out
	location
	stats statistics
}

// content is what a node has: entries for height 0, else kids.
type content struct {
	height  uint8
	entries []entry
	kids    []kid
}

func (c *content) len() int { return len(c.entries) + len(c.kids) }

func (c *content) add(o content) {
	c.height = o.height
	c.entries = append(c.entries, o.entries...)
	c.kids = append(c.kids, o.kids...)
}

// size is about what entry i takes in memory, as tensorstore counts it.
func (c *content) size(i int) int {
	if c.height > 0 {
		k := &c.kids[i]
		return 56 + len(k.key) + len(k.file.path)
	}
	e := &c.entries[i]
	if e.long {
		return 32 + len(e.key) + len(e.file.path)
	}
	return 16 + len(e.key) + len(e.data)
}

func (c *content) key(i int) string {
	if c.height > 0 {
		return c.kids[i].key
	}
	return c.entries[i].key
}

// apply makes a new tree of an old one and changes.
func (w *Writer) apply(ctx context.Context, t tree, changes []entry) (tree, error) {
	if len(changes) == 0 {
		return t, nil
	}
	changes = sorted(changes)
	var c content
	var err error
	if t.root.missing() {
		c = merge(nil, changes)
	} else if c, err = w.change(ctx, kid{location: t.root}, t.height, changes); err != nil {
		return tree{}, err
	}
	for {
		switch {
		case c.len() == 0:
			return tree{root: missingRoot}, nil
		case c.height > 0 && c.len() == 1: // its only node becomes the root
			if c, err = w.change(ctx, c.kids[0], c.height-1, nil); err != nil {
				return tree{}, err
			}
			continue
		}
		parts := w.split(&c)
		if len(parts) == 1 {
			root, err := w.write(ctx, &c, true)
			return tree{c.height, root.location, root.stats}, err
		}
		if c, err = w.writeAll(ctx, &c, parts); err != nil {
			return tree{}, err
		}
	}
}

// change returns what a node has after some changes, which are sorted.
func (w *Writer) change(ctx context.Context, at kid, height uint8, changes []entry) (content, error) {
	base := at.key[:at.shared]
	n, err := w.s.node(ctx, &at.location, height, []byte(at.key[at.shared:]))
	if err != nil {
		return content{}, err
	}
	if height == 0 {
		old := make([]entry, n.len())
		for i := range old {
			v := &n.values[i]
			old[i] = entry{key: base + n.key(i), long: !v.inline}
			if v.inline {
				old[i].data = n.data[v.off:][:v.n:v.n]
			} else {
				old[i].location = v.location
			}
		}
		return merge(old, changes), nil
	}
	out := content{height: height}
	var open content // of children that are to be written, and still small
	for i := range n.len() {
		k := kid{key: base + n.key(i), shared: len(base) + n.kids[i].shared, location: n.kids[i].location, stats: n.kids[i].stats}
		mine := changes
		if i+1 < n.len() {
			next := base + n.key(i+1)
			mine = changes[:sort.Search(len(changes), func(i int) bool { return changes[i].key >= next })]
		}
		changes = changes[len(mine):]
		if len(mine) == 0 && open.len() == 0 {
			out.kids = append(out.kids, k)
			continue
		}
		c, err := w.change(ctx, k, height-1, mine)
		if err != nil {
			return content{}, err
		}
		if open.add(c); i+1 < n.len() && w.small(&open) {
			continue // together with the next one
		}
		written, err := w.writeAll(ctx, &open, w.split(&open))
		if err != nil {
			return content{}, err
		}
		out.kids = append(out.kids, written.kids...)
		open = content{}
	}
	return out, nil
}

// small reports whether a node would be so small that it should be one with the next.
func (w *Writer) small(c *content) bool {
	total := 0
	for i := range c.len() {
		if total += c.size(i); total >= w.o.NodeBytes/4 {
			return false
		}
	}
	return true
}

// merge applies changes to the entries of a leaf; both are sorted.
func merge(old, changes []entry) content {
	out := make([]entry, 0, len(old)+len(changes))
	for len(old)+len(changes) > 0 {
		if len(changes) == 0 || len(old) > 0 && old[0].key < changes[0].key {
			out = append(out, old[0])
			old = old[1:]
			continue
		}
		if len(old) > 0 && old[0].key == changes[0].key {
			old = old[1:]
		}
		if !changes[0].deleted {
			out = append(out, changes[0])
		}
		changes = changes[1:]
	}
	return content{entries: out}
}

// split returns the ends of the parts that become a node each. Interior nodes have at
// least two children, unless there is only one.
func (w *Writer) split(c *content) []int {
	total := 0
	for i := range c.len() {
		total += c.size(i)
	}
	if c.len() == 0 {
		return nil
	}
	least := 1
	if c.height > 0 {
		least = 2
	}
	nodes := max((total+w.o.NodeBytes-1)/w.o.NodeBytes, (c.len()+maxEntries-1)/maxEntries)
	target := (total + nodes - 1) / nodes
	var ends []int
	size, from := 0, 0
	for i := range c.len() {
		size += c.size(i)
		count, rest := i+1-from, c.len()-i-1
		if (size >= target && count >= least || count == maxEntries) && (rest == 0 || rest >= least) {
			ends, size, from = append(ends, i+1), 0, i+1
		}
	}
	if from < c.len() {
		ends = append(ends, c.len())
	}
	return ends
}

// writeAll writes the nodes of some parts, and returns the level above.
func (w *Writer) writeAll(ctx context.Context, c *content, ends []int) (content, error) {
	up, from := content{height: c.height + 1}, 0
	for _, to := range ends {
		part := content{height: c.height}
		if c.height > 0 {
			part.kids = c.kids[from:to]
		} else {
			part.entries = c.entries[from:to]
		}
		k, err := w.write(ctx, &part, false)
		if err != nil {
			return up, err
		}
		up.kids = append(up.kids, k)
		from = to
	}
	return up, nil
}

// write writes a node.
func (w *Writer) write(ctx context.Context, c *content, root bool) (kid, error) {
	k := kid{key: c.key(0)}
	if !root {
		k.shared = common(c.key(0), c.key(c.len()-1))
		for i := range c.kids {
			k.shared = min(k.shared, c.kids[i].shared)
		}
	}
	body := c.encode(k.shared)
	if len(body) > w.s.nodeLimit() {
		return k, formats.Unsupported("OCDBT: a node of %d bytes", len(body))
	}
	b := encodeFrame(magicNode, body, w.enc)
	for i := range c.kids {
		k.stats.add(c.kids[i].stats)
	}
	k.stats.keys += uint64(len(c.entries))
	for i := range c.entries {
		if c.entries[i].long {
			k.stats.indirectBytes += c.entries[i].n
		}
	}
	k.stats.treeBytes += uint64(len(b))
	var err error
	k.location, err = w.append(ctx, b)
	return k, err
}

// encode returns the body of a node whose keys leave out some bytes at their beginning
// (index.rst, "B+tree node format").
func (c *content) encode(shared int) []byte {
	var paths []string
	for i := range c.kids {
		paths = append(paths, c.kids[i].file.path)
	}
	for i := range c.entries {
		if c.entries[i].long {
			paths = append(paths, c.entries[i].file.path)
		}
	}
	files := newFileTable(paths)
	b := files.append([]byte{c.height})
	b = binary.AppendUvarint(b, uint64(c.len()))
	same := make([]int, c.len()) // with the key before
	same[0] = shared
	for i := 1; i < c.len(); i++ {
		same[i] = common(c.key(i-1), c.key(i))
		b = binary.AppendUvarint(b, uint64(same[i]-shared))
	}
	for i, n := range same {
		b = binary.AppendUvarint(b, uint64(len(c.key(i))-n))
	}
	for i := range c.kids {
		b = binary.AppendUvarint(b, uint64(c.kids[i].shared-shared))
	}
	for i, n := range same {
		b = append(b, c.key(i)[n:]...)
	}
	if c.height > 0 {
		b = appendLocations(b, files, c.len(), func(i int) *location { return &c.kids[i].location })
		return appendStatistics(b, c.len(), func(i int) *statistics { return &c.kids[i].stats })
	}
	return appendValues(b, files, c.entries)
}

func appendValues(b []byte, files *fileTable, entries []entry) []byte {
	for i := range entries {
		n := uint64(len(entries[i].data))
		if entries[i].long {
			n = entries[i].n
		}
		b = binary.AppendUvarint(b, n)
	}
	for i := range entries {
		kind := byte(0)
		if entries[i].long {
			kind = 1
		}
		b = append(b, kind)
	}
	for i := range entries {
		if e := &entries[i]; e.long {
			b = binary.AppendUvarint(b, uint64(files.number[e.file.path]))
		}
	}
	for i := range entries {
		if e := &entries[i]; e.long {
			b = binary.AppendUvarint(b, e.off)
		}
	}
	for i := range entries {
		b = append(b, entries[i].data...)
	}
	return b
}
