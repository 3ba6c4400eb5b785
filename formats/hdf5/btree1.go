package hdf5

import (
	"context"

	"github.com/zarrdb/zarrdb/formats"
)

// node1 is a node of a B-tree of version 1: keys around its children.
//
//	| key 0 | child 0 | key 1 | child 1 | … | key n |
type node1 struct {
	level    int
	keys     []byte
	entry    int // bytes of a key and a child
	key      int
	children int
}

// tree1 is a B-tree of version 1.
type tree1 struct {
	f    *file
	root int64
	kind byte // 0: of a group, 1: of chunks
	key  int  // bytes of a key
	k    int
}

func (t *tree1) head() int       { return 8 + 2*t.f.addrSize }
func (t *tree1) nodeSize() int64 { return int64(t.head() + 2*t.k*(t.key+t.f.addrSize) + t.key) }

// node reads a node; level is that of its parent less one, or -1 for the root.
func (t *tree1) node(ctx context.Context, addr int64, level int) (node1, error) {
	const what = "a node of a B-tree"
	d, err := t.f.read(ctx, what, addr, int64(t.head()))
	if err != nil {
		return node1{}, err
	}
	if s := d.take(4); string(s) != "TREE" {
		d.fail("begins with %q", s)
	}
	kind := d.u8()
	n := node1{level: int(d.u8()), key: t.key, entry: t.key + t.f.addrSize}
	n.children = d.u16()
	d.skip(2 * t.f.addrSize)
	if d.err == nil && (kind != t.kind || level >= 0 && n.level != level || n.children > 2*t.k) {
		d.fail("has type %d, level %d and %d children", kind, n.level, n.children)
	}
	if d.err != nil {
		return n, d.err
	}
	d, err = t.f.read(ctx, what, addr+int64(t.head()), int64(n.children*n.entry+n.key))
	if err == nil {
		n.keys = d.b
	}
	return n, err
}

// child returns the address of a child, and the key before it.
func (n *node1) child(f *file, i int) (key []byte, addr int64) {
	b := n.keys[i*n.entry:]
	d := dec{f: f, b: b, off: n.key, what: "a node of a B-tree"}
	return b[:n.key], d.address()
}

// each calls fn with the key and the address of all children of the last level, in any
// order. Nodes of a level are read together.
func (t *tree1) each(ctx context.Context, fn func(key []byte, addr int64) error) error {
	type place struct {
		addr  int64
		level int
	}
	w := t.f.walk()
	at := func(p place) part { return part{p.addr, min(t.nodeSize(), aheadBytes)} }
	return byLevels(ctx, t.f, place{t.root, -1}, at, func(p place) (below []place, err error) {
		n, err := t.node(ctx, p.addr, p.level)
		if err == nil {
			err = w.visit("a node of a B-tree", p.addr, int64(len(n.keys)))
		}
		for i := 0; err == nil && i < n.children; i++ {
			switch key, addr := n.child(t.f, i); {
			case addr == undefined:
				err = formats.Invalid("hdf5: a B-tree at %d has a child without an address", t.root)
			case n.level > 0:
				below = append(below, place{addr, n.level - 1})
			default:
				err = fn(key, addr)
			}
		}
		return below, err
	})
}

// find returns the child of the last level whose key is the last one for which order is
// not more than 0, or nil without such a record. order compares a key with the wanted one.
func (t *tree1) find(ctx context.Context, order func(key []byte) int) (key []byte, addr int64, err error) {
	at, level := t.root, -1
	for {
		n, err := t.node(ctx, at, level)
		if err != nil {
			return nil, 0, err
		}
		lo, hi := 0, n.children
		for lo < hi {
			mid := (lo + hi) / 2
			if order(n.keys[mid*n.entry:][:n.key]) <= 0 {
				lo = mid + 1
			} else {
				hi = mid
			}
		}
		if lo == 0 {
			return nil, 0, nil
		}
		if key, at = n.child(t.f, lo-1); n.level == 0 {
			return key, at, nil
		}
		level = n.level - 1
	}
}
