package icechunk

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"slices"
	"strings"

	"github.com/zarrdb/zarrdb/kv"
)

// listItem is a document, or the chunks of an array, in the order of keys. No key of
// another item lies between the keys of one item.
type listItem struct {
	key  string // of the document, or the prefix of the keys of the chunks
	node *node  // of chunks, nil for a document
}

// items returns the listed items, in the order of keys.
func (s *Set) items() []listItem {
	s.listing.Do(func() {
		for i := range s.snap.nodes {
			n := &s.snap.nodes[i]
			s.listed = append(s.listed, listItem{key: n.dir() + document})
			if n.array {
				s.listed = append(s.listed, listItem{n.dir() + n.keys.prefix(), n})
			}
		}
		slices.SortFunc(s.listed, func(a, b listItem) int { return strings.Compare(a.key, b.key) })
	})
	return s.listed
}

// List implements [refs.Set]. Of an array, the coordinates of its chunks are held while
// they are listed; only manifests are read that may have keys with the prefix.
func (s *Set) List(ctx context.Context, o kv.ListOptions) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for _, item := range s.items() {
			if item.node == nil {
				if o.Has(item.key) && !yield(item.key, nil) {
					return
				}
				continue
			}
			if !o.HasBelow(item.key) {
				continue
			}
			if err := s.listChunks(ctx, item.node, o, yield); err != nil {
				if !errors.Is(err, errStop) {
					yield("", err)
				}
				return
			}
		}
	}
}

// listChunks yields the keys of the chunks of an array in their order.
func (s *Set) listChunks(ctx context.Context, n *node, o kv.ListOptions, yield func(string, error) bool) error {
	fixed := n.fixedCoords(o.Prefix)
	var flat []uint32
	dims, count := 0, 0
	err := s.eachChunk(ctx, n, func(c coverage) bool { return c.mayContain(fixed) }, func(coords []uint32, _ *manifest, _ table) error {
		for d := range min(len(fixed), len(coords)) {
			if coords[d] != fixed[d] {
				return nil
			}
		}
		if count > 0 && len(coords) != dims {
			return nil // of another shape; no key of the array
		}
		dims = len(coords)
		flat = append(flat, coords...)
		count++
		return nil
	})
	if err != nil {
		return err
	}
	order := make([]uint32, count)
	for i := range order {
		order[i] = uint32(i)
	}
	slices.SortFunc(order, func(a, b uint32) int {
		x, y := flat[int(a)*dims:int(a+1)*dims], flat[int(b)*dims:int(b+1)*dims]
		for d := range x {
			if x[d] != y[d] {
				return cmp.Compare(decimal(x[d]), decimal(y[d]))
			}
		}
		return 0
	})
	buf := []byte(n.dir())
	for _, i := range order {
		key := string(n.keys.append(buf[:len(n.dir())], flat[int(i)*dims:int(i+1)*dims]))
		if o.Has(key) && !yield(key, nil) {
			return errStop
		}
	}
	return nil
}

// decimal orders numbers as their decimal digits are ordered, the shorter first.
func decimal(n uint32) uint64 {
	digits, x := uint64(10), uint64(n)
	for x < 1_000_000_000 && digits > 1 {
		x *= 10
		digits--
	}
	if n == 0 {
		return 1
	}
	return x<<4 | digits
}

// fixedCoords are the first coordinates of all chunks whose keys begin with prefix.
func (n *node) fixedCoords(prefix string) (fixed []uint32) {
	rest, ok := strings.CutPrefix(prefix, n.dir())
	if !ok {
		return nil
	}
	if !n.keys.v2 {
		if rest, ok = strings.CutPrefix(rest, "c"+string(n.keys.separator)); !ok {
			return nil
		}
	}
	i := strings.LastIndexByte(rest, n.keys.separator)
	if i < 0 {
		return nil
	}
	fixed, _ = parseCoords(rest[:i], n.keys.separator)
	return fixed
}

// mayContain reports whether a manifest may have chunks with these first coordinates.
func (c coverage) mayContain(fixed []uint32) bool {
	for d := range min(len(fixed), c.extents.n) {
		if fixed[d] < c.extents.u32(2*d) || fixed[d] >= c.extents.u32(2*d+1) {
			return false
		}
	}
	return true
}

// ListDir implements [kv.DirLister] for groups, and for arrays whose chunks lie in a
// directory c. It reads no manifest.
func (s *Set) ListDir(_ context.Context, prefix string) iter.Seq2[kv.DirEntry, error] {
	return func(yield func(kv.DirEntry, error) bool) {
		n := s.snap.node(strings.TrimSuffix(prefix, "/"))
		if n == nil || prefix != n.dir() || n.array && (n.keys.v2 || n.keys.separator != '/' || len(n.covers) > 0 && n.covers[0].extents.n == 0) {
			yield(kv.DirEntry{}, errors.ErrUnsupported)
			return
		}
		children := []kv.DirEntry{{Name: document}}
		if n.array && len(n.covers) > 0 {
			children = append(children, kv.DirEntry{Name: n.keys.prefix(), Prefix: true})
		}
		nodes := s.snap.nodes
		i, _ := slices.BinarySearchFunc(nodes, prefix, func(n node, path string) int { return strings.Compare(n.path, path) })
		for ; i < len(nodes) && strings.HasPrefix(nodes[i].path, prefix); i++ {
			name, _, _ := strings.Cut(nodes[i].path[len(prefix):], "/")
			if name != "" && children[len(children)-1].Name != name {
				children = append(children, kv.DirEntry{Name: name, Prefix: true})
			}
		}
		slices.SortFunc(children, func(a, b kv.DirEntry) int {
			if a.Name != b.Name || a.Prefix == b.Prefix {
				return strings.Compare(a.Name, b.Name)
			}
			if b.Prefix {
				return -1
			}
			return 1
		})
		for _, c := range slices.Compact(children) {
			if !yield(c, nil) {
				return
			}
		}
	}
}
