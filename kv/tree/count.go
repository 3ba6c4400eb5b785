package tree

import (
	"bytes"
	"context"
)

// CountRange returns how many entries a span has, and their payload bytes (see
// Root.Bytes). It reads the two paths to its ends.
func (t *Tree) CountRange(ctx context.Context, root Root, span Span) (entries, size uint64, err error) {
	lo := span.first()
	if root.Empty() || span.To != nil && bytes.Compare(lo, span.To) >= 0 {
		return 0, 0, nil
	}
	entries, size = root.Entries, root.Bytes
	if span.To != nil {
		if entries, size, err = t.before(ctx, root, span.To); err != nil {
			return 0, 0, err
		}
	}
	if len(lo) > 0 {
		n, b, err := t.before(ctx, root, lo)
		if err != nil {
			return 0, 0, err
		}
		entries, size = entries-n, size-b
	}
	return entries, size, nil
}

// Rank returns how many keys are less than key.
func (t *Tree) Rank(ctx context.Context, root Root, key []byte) (uint64, error) {
	if root.Empty() {
		return 0, nil
	}
	n, _, err := t.before(ctx, root, key)
	return n, err
}

// before counts the entries with keys less than key.
func (t *Tree) before(ctx context.Context, root Root, key []byte) (entries, size uint64, err error) {
	var buf scratchKey
	for at := root; ; {
		p, err := t.load(ctx, &at)
		if err != nil {
			return 0, 0, err
		}
		i, _ := p.find(key, buf[:])
		if p.isLeaf() {
			return entries + uint64(i), size + p.bytesBefore(i), nil
		}
		for j := range i {
			entries += p.child.entries.get(p.raw, j)
			size += p.child.bytes.get(p.raw, j)
		}
		if i == p.len() {
			return entries, size, nil
		}
		at = p.childAt(i)
	}
}

// bytesBefore is the payload bytes of the values before i in a leaf.
func (p *page) bytesBefore(i int) (sum uint64) {
	for j := range i {
		kind, o := p.ordinal(j)
		switch kind {
		case KindInline:
			sum += uint64(p.inline[o+1] - p.inline[o])
		case KindNative:
			sum += p.native.lengths.get(p.raw, o)
		case KindVirtual:
			sum += p.virtual.lengths.get(p.raw, o)
		default:
			sum += p.child.bytes.get(p.raw, o)
		}
	}
	return sum
}

// SplitKeys returns at most n-1 keys that split a map into parts of nearly the
// same number of entries: [begin, key 0), [key 0, key 1), …, [last key, end).
// The caller owns them.
func (t *Tree) SplitKeys(ctx context.Context, root Root, n int) ([][]byte, error) {
	var keys [][]byte
	parts := min(uint64(max(n, 1)), root.Entries)
	for i := uint64(1); i < parts; i++ {
		key, err := t.keyAt(ctx, root, root.Entries/parts*i+min(i, root.Entries%parts))
		if err != nil {
			return nil, err
		}
		keys = append(keys, key)
	}
	return keys, nil
}

// keyAt returns the key with the given rank, which must exist. Loaded pages have
// the number of entries that the page above records, so rank is less than
// at.Entries on every level.
func (t *Tree) keyAt(ctx context.Context, root Root, rank uint64) ([]byte, error) {
	for at := root; ; {
		p, err := t.load(ctx, &at)
		if err != nil {
			return nil, err
		}
		if p.isLeaf() {
			return p.keyAt(int(rank), nil), nil
		}
		i := 0
		for i < p.len()-1 && rank >= p.child.entries.get(p.raw, i) {
			rank -= p.child.entries.get(p.raw, i)
			i++
		}
		at = p.childAt(i)
	}
}
