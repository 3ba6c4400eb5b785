package ocdbt

import (
	"bytes"
	"context"
	"math"
	"strings"

	"github.com/zarrdb/zarrdb/formats"
)

// missingRoot is the root of an empty tree.
var missingRoot = location{off: math.MaxUint64, n: math.MaxUint64}

// walker goes through a tree in the order of keys. It stands before an item: a leaf
// entry, or a node that was not read yet.
type walker struct {
	s     *store
	stack []level
	root  *child // not entered yet; else nil
	top   uint8  // height of the root
	last  string // the key of the last leaf entry, to check the order
	begun bool
}

// level is a node that was entered, with its next entry.
type level struct {
	*node
	base string // of its keys
	i    int
}

func newWalker(s *store, g *generation) *walker {
	w := &walker{s: s, top: g.height}
	if !g.root.missing() {
		w.root = &child{location: g.root}
	}
	return w
}

// item is the next entry or node of a walker.
type item struct {
	// start is the key of an entry, or not after the first key of a node.
	start string
	// value is the entry, nil for a node.
	value *value
	leaf  *node // the node of value
	// node is where a node lies, base the prefix of its keys, height its height.
	node   *child
	base   string
	height uint8
}

// item returns the next item of w; ok is false at the end.
func (w *walker) item() (it item, ok bool) {
	if w.root != nil {
		return item{node: w.root, height: w.top}, true
	}
	for len(w.stack) > 0 {
		l := &w.stack[len(w.stack)-1]
		if l.i == l.len() {
			w.stack = w.stack[:len(w.stack)-1]
			continue
		}
		it.start = l.base + l.key(l.i)
		if l.height == 0 {
			it.value, it.leaf = &l.values[l.i], l.node
		} else {
			it.node, it.base, it.height = &l.kids[l.i], l.base+l.below(l.i), l.height-1
		}
		return it, true
	}
	return item{}, false
}

// skip goes past an item.
func (w *walker) skip() {
	if w.root != nil {
		w.root = nil
		return
	}
	w.stack[len(w.stack)-1].i++
}

// pass goes past a leaf entry, which must come after all that were passed.
func (w *walker) pass(it item) error {
	if w.begun && it.start <= w.last {
		return formats.Invalid("OCDBT: key %s is not in order", quote(it.start))
	}
	w.last, w.begun = it.start, true
	w.skip()
	return nil
}

// enter goes into a node.
func (w *walker) enter(ctx context.Context, it item) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if len(it.base) > maxKey {
		return formats.Invalid("OCDBT: a key of more than %d bytes", maxKey)
	}
	n, err := w.s.node(ctx, &it.node.location, it.height, []byte(it.start[len(it.base):]))
	if err != nil {
		return err
	}
	w.skip()
	w.stack = append(w.stack, level{node: n, base: it.base})
	return nil
}

// seek skips everything before a key, reading only the nodes on the way to it. The
// walker has not moved yet.
func (w *walker) seek(ctx context.Context, key string) error {
	for {
		it, ok := w.item()
		if !ok || it.value != nil {
			return nil
		}
		if !strings.HasPrefix(key, it.base) {
			if it.base < key { // the whole node is before the key
				w.skip()
			}
			return nil
		}
		if err := w.enter(ctx, it); err != nil {
			return err
		}
		l := &w.stack[len(w.stack)-1]
		i, equal := l.find(key[len(l.base):])
		if l.height == 0 {
			if l.i = i; !equal {
				l.i++
			}
			return nil
		}
		l.i = max(i, 0)
	}
}

// sameNode reports whether two items are nodes with the same entries.
func (it item) sameNode(o item) bool {
	return it.node != nil && o.node != nil && it.base == o.base && it.height == o.height &&
		placeOf(&it.node.location) == placeOf(&o.node.location)
}

// sameValue reports whether two leaf entries have the same value, as far as it is known
// without reading it.
func (it item) sameValue(o item) bool {
	if it.value.inline != o.value.inline {
		return false
	}
	if it.value.inline {
		return bytes.Equal(it.bytes(), o.bytes())
	}
	return it.value.same(&o.value.location)
}

// bytes is a short value.
func (it item) bytes() []byte { return it.leaf.data[it.value.off:][:it.value.n] }

// lookup finds the entry of a key. It has no value if the key does not exist.
func (s *store) lookup(ctx context.Context, g *generation, key string) (item, error) {
	if g.root.missing() {
		return item{}, nil
	}
	at, height, first, rest := &g.root, g.height, []byte(nil), key
	for {
		n, err := s.node(ctx, at, height, first)
		if err != nil {
			return item{}, err
		}
		i, equal := n.find(rest)
		switch {
		case height == 0 && equal:
			return item{start: key, value: &n.values[i], leaf: n}, nil
		case height == 0 || i < 0:
			return item{}, nil
		}
		base := n.below(i)
		if !strings.HasPrefix(rest, base) {
			return item{}, nil
		}
		at, height, first = &n.kids[i].location, height-1, []byte(n.key(i)[len(base):])
		rest = rest[len(base):]
	}
}
