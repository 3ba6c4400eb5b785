package hdf5

import (
	"cmp"
	"context"

	"github.com/zarrdb/zarrdb/formats"
)

func compare(a, b uint64) int { return cmp.Compare(a, b) }

// tree2 is a B-tree of version 2: records in all its nodes.
type tree2 struct {
	f          *file
	addr       int64
	nodeSize   int64
	recordSize int
	depth      int
	root       int64
	records    int // of the root
	countSize  int // of numbers of records of one node
	totalSize  []int
	most       []int // records of a node, by level
}

// node2 is a node that its parent names.
type node2 struct {
	addr    int64
	records int
	level   int
}

func (f *file) tree2(ctx context.Context, addr int64) (*tree2, error) {
	d, err := f.readSigned(ctx, "a B-tree", "BTHD", 0, addr, int64(22+f.addrSize+f.lenSize))
	if err != nil {
		return nil, err
	}
	t := &tree2{f: f, addr: addr}
	d.skip(1)
	t.nodeSize, t.recordSize, t.depth = int64(d.u32()), d.u16(), d.u16()
	d.skip(2)
	t.root, t.records = d.address(), d.u16()
	d.skip(f.lenSize)
	if err := d.sum(); err != nil {
		return nil, err
	}
	if t.recordSize < 1 || t.nodeSize < int64(11+t.recordSize) || t.nodeSize > 1<<30 || t.depth > 32 {
		d.fail("has nodes of %d bytes with records of %d, %d deep", t.nodeSize, t.recordSize, t.depth)
		return nil, d.err
	}
	const prefix = 10
	t.most, t.totalSize = []int{int(t.nodeSize-prefix) / t.recordSize}, []int{0}
	t.countSize = sizeOf(uint64(t.most[0]))
	total := uint64(t.most[0])
	for level := 1; level <= t.depth; level++ {
		pointer := f.addrSize + t.countSize + t.totalSize[level-1]
		n := (int(t.nodeSize) - prefix - pointer) / (t.recordSize + pointer)
		if n < 1 {
			d.fail("has nodes of %d bytes", t.nodeSize)
			return nil, d.err
		}
		if total > 1<<56/uint64(n+1) {
			total = 1 << 62 // the size of more does not grow
		} else {
			total = uint64(n+1)*total + uint64(n)
		}
		t.most, t.totalSize = append(t.most, n), append(t.totalSize, sizeOf(total))
	}
	return t, nil
}

// node reads the records of a node, and above the last level its children.
func (t *tree2) node(ctx context.Context, n node2) (records []byte, children []node2, err error) {
	f := t.f
	if n.records > t.most[n.level] {
		return nil, nil, formats.Invalid("hdf5: a node at %d has %d records, where %d fit", n.addr, n.records, t.most[n.level])
	}
	size, pointer := 6+n.records*t.recordSize, 0
	signature := "BTLF"
	if n.level > 0 {
		signature, pointer = "BTIN", f.addrSize+t.countSize+t.totalSize[n.level-1]
		size += (n.records + 1) * pointer
	}
	d, err := f.readSigned(ctx, "a node of a B-tree", signature, 0, n.addr, int64(size+4))
	if err != nil {
		return nil, nil, err
	}
	d.skip(1)
	records = d.take(n.records * t.recordSize)
	for range n.records + 1 {
		if n.level == 0 {
			break
		}
		children = append(children, node2{d.address(), int(d.uint(t.countSize)), n.level - 1})
		d.skip(t.totalSize[n.level-1])
	}
	return records, children, d.sum()
}

// each calls fn with all records, which are valid until it returns, in any order. Nodes
// of a level are read together.
func (t *tree2) each(ctx context.Context, fn func(record []byte) error) error {
	if t.root == undefined {
		return nil
	}
	w := t.f.walk()
	at := func(n node2) part { return part{n.addr, min(t.nodeSize, aheadBytes)} }
	return byLevels(ctx, t.f, node2{t.root, t.records, t.depth}, at, func(n node2) ([]node2, error) {
		if err := w.visit("a node of a B-tree", n.addr, int64(6+n.records*t.recordSize)); err != nil {
			return nil, err
		}
		records, children, err := t.node(ctx, n)
		for ; err == nil && len(records) > 0; records = records[t.recordSize:] {
			err = fn(records[:t.recordSize])
		}
		return children, err
	})
}

// find returns the record for which order is 0, or nil without one. order compares a
// record with the wanted one.
func (t *tree2) find(ctx context.Context, order func(record []byte) int) ([]byte, error) {
	if t.root == undefined {
		return nil, nil
	}
	n := node2{t.root, t.records, t.depth}
	for {
		records, children, err := t.node(ctx, n)
		if err != nil {
			return nil, err
		}
		lo, hi := 0, n.records
		for lo < hi {
			mid := (lo + hi) / 2
			r := records[mid*t.recordSize:][:t.recordSize]
			switch c := order(r); {
			case c == 0:
				return r, nil
			case c < 0:
				lo = mid + 1
			default:
				hi = mid
			}
		}
		if n.level == 0 {
			return nil, nil
		}
		n = children[lo]
	}
}

// aheadBytes bounds what is read ahead of one node.
const aheadBytes = 64 << 10

// byLevels calls fn for the nodes of a tree, level by level; fn returns the children of a node.
func byLevels[T any](ctx context.Context, f *file, root T, at func(T) part, fn func(T) ([]T, error)) error {
	for level := []T{root}; len(level) > 0; {
		var below []T
		err := inBatches(ctx, f, level, at, func(n T) error {
			children, err := fn(n)
			below = append(below, children...)
			return err
		})
		if err != nil {
			return err
		}
		level = below
	}
	return nil
}

// inBatches calls fn for nodes of one level, and reads their parts ahead, some MiB at a time.
func inBatches[T any](ctx context.Context, f *file, level []T, at func(T) part, fn func(T) error) error {
	const batch = 8 << 20 // less than the window keeps
	parts := make([]part, 0, len(level))
	for len(level) > 0 {
		n, bytes := 0, int64(0)
		parts = parts[:0]
		for n < len(level) && (n == 0 || bytes < batch) {
			p := at(level[n])
			parts, bytes, n = append(parts, p), bytes+p.n, n+1
		}
		if err := f.ahead(ctx, parts); err != nil {
			return err
		}
		for _, x := range level[:n] {
			if err := fn(x); err != nil {
				return err
			}
		}
		level = level[n:]
	}
	return nil
}
