package modeltest

import (
	"maps"
	"slices"
)

// verdict is what a merge must come to.
type verdict int

const (
	merges    verdict = iota
	conflicts         // it must be refused
	either            // it may be refused; if it is not, the result is the one that is due
)

func (v verdict) String() string { return []string{"merge", "conflict", "merge or conflict"}[v] }

// merger merges two trees that came from one base.
type merger struct {
	session bool // it is the commit of a session
	verdict verdict
	why     string
}

func (m *merger) refuse(v verdict, why string) {
	if v == conflicts || m.verdict == merges {
		if m.verdict != conflicts {
			m.verdict, m.why = v, why
		}
	}
}

// mergeTrees merges states, not histories: arrays by identity, groups by path,
// attributes by name, lengths by dimension and chunks by coordinates.
func mergeTrees(base, ours, theirs tree, session bool) (tree, *merger) {
	m := &merger{session: session}
	out := tree{}
	m.groups(out, base, ours, theirs)
	b, o, t := base.ids(), ours.ids(), theirs.ids()
	ids := map[int]bool{}
	for _, side := range []map[int]string{b, o, t} {
		for id := range side {
			ids[id] = true
		}
	}
	for _, id := range slices.Sorted(maps.Keys(ids)) {
		side := func(t tree, at map[int]string) (string, *node) {
			p, ok := at[id]
			if !ok {
				return "", nil
			}
			return p, t[p]
		}
		var s sides
		s.path[0], s.node[0] = side(base, b)
		s.path[1], s.node[1] = side(ours, o)
		s.path[2], s.node[2] = side(theirs, t)
		p, n := m.array(s)
		if n == nil {
			continue
		}
		if was := out[p]; was != nil {
			m.refuse(collision(was, n), "two nodes at /"+p)
			if ours[p] == nil || ours[p].id != n.id {
				continue // of two equal arrays, that of ours stays
			}
		}
		out[p] = n
	}
	for p, was := range base {
		m.replaced(out, p, was, [2]*node{ours[p], theirs[p]}, o[was.id] != "" || t[was.id] != "")
	}
	for p := range out {
		if up := parent(p); p != "" && (out[up] == nil || out[up].array != nil) {
			m.refuse(conflicts, "nothing above /"+p)
		}
	}
	return out, m
}

// replaced looks at a path where one side left nothing and the other put another
// node: gone and changed. If that is as the old one was, nothing tells them apart.
func (m *merger) replaced(out tree, p string, was *node, sides [2]*node, kept bool) {
	now := sides[0]
	if now == nil {
		now = sides[1]
	}
	if kept || now == nil || sides[0] != nil && sides[1] != nil || now.id == was.id && (now.array == nil) == (was.array == nil) {
		return
	}
	if now.same(was) {
		m.refuse(either, "array /"+p+" gone and made again")
		delete(out, p)
		return
	}
	m.refuse(conflicts, "/"+p+" gone and replaced")
}

// collision is the verdict about two nodes that were put at one path. A chunk that
// only one of two arrays has conflicts too: the other has the fill value there.
func collision(a, b *node) verdict {
	if a.same(b) {
		return either
	}
	return conflicts
}

// sides are the states of one array in the base, ours and theirs.
type sides struct {
	path [3]string
	node [3]*node
}

func (m *merger) groups(out, base, ours, theirs tree) {
	group := func(t tree, p string) *node {
		if n := t[p]; n != nil && n.array == nil {
			return n
		}
		return nil
	}
	paths := map[string]bool{}
	for _, t := range []tree{base, ours, theirs} {
		for _, p := range t.groups() {
			paths[p] = true
		}
	}
	for p := range paths {
		b, o, t := group(base, p), group(ours, p), group(theirs, p)
		switch {
		case b == nil && o != nil && t != nil:
			if len(o.attrs)+len(t.attrs) > 0 {
				m.refuse(either, "both made group /"+p)
			}
			out[p] = &node{attrs: m.attrs(p, nil, o.attrs, t.attrs)}
		case b == nil:
			if o == nil {
				o = t
			}
			out[p] = o
		case o == nil || t == nil:
			left, now := o, ours
			if o == nil {
				left, now = t, theirs
			}
			if left != nil && !left.same(b) {
				m.refuse(conflicts, "group /"+p+" gone and changed")
			} else if left != nil && !untouched(base, now, p) {
				m.refuse(either, "group /"+p+" gone, of which copies of metadata may have changed")
			}
		default:
			out[p] = &node{attrs: m.attrs(p, b.attrs, o.attrs, t.attrs)}
		}
	}
}

// untouched reports whether a tree has what another had at and below a path.
func untouched(base, now tree, top string) bool {
	return maps.Equal(base.below(top), now.below(top))
}

func (m *merger) attrs(p string, base, ours, theirs map[string]string) map[string]string {
	out := map[string]string{}
	for _, t := range []map[string]string{ours, theirs, base} {
		for name := range t {
			v, ok := pick(base[name], ours[name], theirs[name], m.session)
			if !ok {
				m.refuse(conflicts, "attribute "+name+" of /"+p)
			}
			if v != "" {
				out[name] = v
			}
		}
	}
	if len(base) > 0 && (len(ours) == 0) != (len(theirs) == 0) {
		m.refuse(either, "all attributes of /"+p+" gone") // in v2 a document goes with them
	}
	return out
}

// pick merges values that can be compared. The zero value stands for absent.
func pick[T comparable](base, ours, theirs T, session bool) (T, bool) {
	var none T
	switch {
	case ours == base:
		return theirs, true
	case theirs == base:
		return ours, true
	}
	return ours, ours == theirs && (ours == none || !session)
}

// array merges one array and returns where it goes, and nil if it is gone.
func (m *merger) array(s sides) (string, *node) {
	b, o, t := s.node[0], s.node[1], s.node[2]
	switch {
	case b == nil && o != nil && t != nil: // both took it from elsewhere
		if s.path[1] != s.path[2] || !slices.Equal(o.array.shape, t.array.shape) {
			m.refuse(conflicts, "both have a new array, at /"+s.path[1]+" and /"+s.path[2])
		} else if !maps.Equal(o.attrs, t.attrs) {
			m.refuse(either, "both have a new array, with other attributes, at /"+s.path[1]) // in v2 they are another document
		}
		b = &node{id: o.id, array: newArray(o.array.kind, o.array.shape, o.array.fill)}
		s.path[0] = s.path[1]
	case b == nil && o != nil:
		return s.path[1], o
	case b == nil:
		return s.path[2], t
	case o == nil && t == nil:
		return "", nil
	case o == nil || t == nil:
		left, at := t, s.path[2]
		if t == nil {
			left, at = o, s.path[1]
		}
		switch {
		case at != s.path[0] || adds(b, left):
			m.refuse(conflicts, "array /"+s.path[0]+" gone and changed")
		case !left.same(b) || left != b && left.linked:
			m.refuse(either, "array /"+s.path[0]+" gone and partly deleted")
		}
		return "", nil
	}
	return m.inBoth(s, b, o, t)
}

// inBoth merges an array that both sides have.
func (m *merger) inBoth(s sides, b, o, t *node) (string, *node) {
	p, ok := pick(s.path[0]+"/", s.path[1]+"/", s.path[2]+"/", false)
	if !ok {
		m.refuse(conflicts, "array /"+s.path[0]+" moved twice")
	} else if s.path[1] != s.path[0] && s.path[2] != s.path[0] {
		m.refuse(either, "array /"+s.path[0]+" moved twice to one place")
	}
	p = p[:len(p)-1]
	linked := b.linked || o.linked || t.linked
	if linked && o != b && t != b {
		m.refuse(either, "links of /"+p)
	}
	return p, &node{b.id, m.chunks(p, b.array, o.array, t.array), m.attrs(p, b.attrs, o.attrs, t.attrs), linked}
}

// adds reports whether a state has anything that the base has not. That it has
// no attributes any more may be a document less.
func adds(base, now *node) bool {
	if len(now.attrs) > 0 && !maps.Equal(base.attrs, now.attrs) || !slices.Equal(base.array.shape, now.array.shape) {
		return true
	}
	for c, values := range now.array.chunks {
		if !slices.Equal(values, base.array.chunks[c]) {
			return true
		}
	}
	return false
}

func (m *merger) chunks(p string, base, ours, theirs *array) *array {
	other := func(a, b *array) bool { return a.kind != b.kind || a.fill != b.fill }
	switch {
	case other(base, ours) || other(base, theirs): // imported over it
		return m.structures(p, base, ours, theirs)
	case ours.same(base) && !base.kind.shards:
		return theirs
	case theirs.same(base) && !base.kind.shards:
		return ours
	}
	out := ours.with()
	for d := range base.shape {
		n, ok := pick(base.shape[d]+1, ours.shape[d]+1, theirs.shape[d]+1, m.session)
		if !ok {
			m.refuse(conflicts, "shape of /"+p)
		}
		out.shape[d] = n - 1
	}
	all := map[coords]bool{}
	for _, a := range []*array{base, ours, theirs} {
		for c := range a.chunks {
			all[c] = true
		}
	}
	for c := range all {
		b, o, t := base.chunks[c], ours.chunks[c], theirs.chunks[c]
		mine, other := !slices.Equal(o, b), !slices.Equal(t, b)
		if base.kind.shards && (mine || rewritten(o, b)) && (other || rewritten(t, b)) {
			m.refuse(either, "shard of /"+p)
		}
		switch {
		case mine && other && !slices.Equal(o, t):
			m.refuse(conflicts, "chunk of /"+p)
		case mine && other && o == nil: // a chunk that is deleted has the fill value
			if m.session {
				m.refuse(conflicts, "deleted chunk of /"+p)
			}
		case mine && other && m.session:
			m.refuse(conflicts, "equal chunk of /"+p)
		case other:
			if out.chunks[c] = t; t == nil {
				delete(out.chunks, c)
			}
		}
		// A chunk that one side wrote where the other cut the array off.
		if mine && o != nil && theirs.cut(base, c) || other && t != nil && ours.cut(base, c) {
			m.refuse(conflicts, "chunk beyond the new shape of /"+p)
		}
	}
	return out
}

// structures merges states of an array of which one is of another kind.
func (m *merger) structures(p string, base, ours, theirs *array) *array {
	switch {
	case ours == base:
		return theirs
	case theirs == base:
		return ours
	}
	m.refuse(either, "array /"+p+" replaced and written")
	if ours.same(base) {
		return theirs
	}
	if !theirs.same(base) && !ours.same(theirs) {
		m.refuse(conflicts, "array /"+p+" replaced and changed")
	}
	return ours
}

// rewritten reports whether a chunk was written and has the values that it had. The
// bytes of a shard may have changed.
func rewritten(now, base []int32) bool {
	return now != nil && base != nil && &now[0] != &base[0]
}

// cut reports whether a chunk is outside because the array became shorter.
func (a *array) cut(base *array, c coords) bool {
	for d, n := range a.kind.chunk {
		if a.shape[d] < base.shape[d] && c[d]*n >= a.shape[d] {
			return true
		}
	}
	return false
}
