package modeltest

import (
	"maps"
	"path"
	"slices"
	"strings"
)

// node is an array, or a group if array is nil. It never changes.
type node struct {
	id    int // follows an array through moves; a copy has another one
	array *array
	attrs map[string]string // JSON
	// linked says that chunks may be references, or may have been in another
	// version. Those count as changed where the bytes are the same.
	linked bool
}

func (n *node) withArray(a *array) *node { return &node{n.id, a, n.attrs, n.linked} }

func (n *node) withAttr(name, value string) *node {
	attrs := maps.Clone(n.attrs)
	if attrs == nil {
		attrs = map[string]string{}
	}
	if attrs[name] = value; value == "" {
		delete(attrs, name)
	}
	return &node{n.id, n.array, attrs, n.linked}
}

func (n *node) same(o *node) bool {
	return n == o || n != nil && o != nil && maps.Equal(n.attrs, o.attrs) && n.sameArray(o)
}

func (n *node) sameArray(o *node) bool {
	if n.array == nil || o.array == nil {
		return n.array == o.array
	}
	return n.array.same(o.array)
}

// tree is the content of a version or session: nodes by path, "" is the root.
type tree map[string]*node

func (t tree) same(o tree) bool { return maps.EqualFunc(t, o, (*node).same) }

func (t tree) paths() []string { return slices.Sorted(maps.Keys(t)) }

func (t tree) arrays() (paths []string) {
	for _, p := range t.paths() {
		if t[p].array != nil {
			paths = append(paths, p)
		}
	}
	return paths
}

func (t tree) groups() (paths []string) {
	for _, p := range t.paths() {
		if t[p].array == nil {
			paths = append(paths, p)
		}
	}
	return paths
}

// ids returns the paths of arrays by identity.
func (t tree) ids() map[int]string {
	at := map[int]string{}
	for p, n := range t {
		if n.array != nil {
			at[n.id] = p
		}
	}
	return at
}

func parent(p string) string {
	if p = path.Dir(p); p == "." {
		return ""
	}
	return p
}

// inside reports whether a path is at or below another.
func inside(p, top string) bool {
	return p == top || top == "" || strings.HasPrefix(p, top+"/")
}

// below returns what is at and below a path, relative to it.
func (t tree) below(top string) tree {
	out := tree{}
	for p, n := range t {
		if inside(p, top) {
			out[strings.TrimPrefix(strings.TrimPrefix(p, top), "/")] = n
		}
	}
	return out
}

// remove takes out what is at and below a path.
func (t tree) remove(top string) {
	maps.DeleteFunc(t, func(p string, _ *node) bool { return inside(p, top) })
}

// put puts nodes at a path, with groups above it where they are missing.
func (t tree) put(top string, nodes tree) {
	for p := top; p != ""; {
		if p = parent(p); t[p] == nil {
			t[p] = &node{}
		}
	}
	for p, n := range nodes {
		t[strings.Trim(top+"/"+p, "/")] = n
	}
}
