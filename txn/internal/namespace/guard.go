package namespace

import (
	"bytes"
	"encoding/binary"
	"slices"

	"github.com/zarrdb/zarrdb/kv/tree"
)

// Some changes touch different entries and still conflict: a chunk that one side
// wrote depends on the structure of its array, and every key that one side put
// depends on the nodes above it. guard finds these conflicts in a directory that
// both sides changed. It returns the side that the merged directory is to be, or
// Refuse to merge entry by entry.
func (d *dirMerge) guard() (Choice, error) {
	if choice, err := d.guardCreate(); err != nil || choice != Refuse {
		return choice, err
	}
	checks := []func(x, y int) (Choice, error){d.guardGone, d.guardAncestor, d.guardStructure}
	for _, check := range checks {
		for x := sideOurs; x <= sideTheirs; x++ {
			if choice, err := check(x, sideOurs+sideTheirs-x); err != nil || choice != Refuse {
				return choice, err
			}
		}
	}
	return Refuse, nil
}

// guardCreate reports that both sides made a node of the directory, one of them an
// array, with different metadata: then their chunks do not belong together. If the
// merge is strict, making the same array is a conflict too. Else two arrays with
// the same metadata must have the same chunks.
func (d *dirMerge) guardCreate() (Choice, error) {
	found, err := d.madeTwice()
	if err == nil && len(found) == 0 {
		found, err = d.twoArrays()
	}
	if err != nil {
		return Refuse, err
	}
	return d.decide(found)
}

// madeTwice returns the node documents that both sides made, one of them of an array,
// and that differ or, if the merge is strict, are the same.
func (d *dirMerge) madeTwice() (found []Conflict, err error) {
	base, ours, theirs := d.infos[sideBase], d.infos[sideOurs], d.infos[sideTheirs]
	if base.kind() == arrayNode || max(ours.kind(), theirs.kind()) != arrayNode || min(ours.kind(), theirs.kind()) == noNode {
		return nil, nil
	}
	changed := [3]bool{}
	for _, name := range nodeNamesOf(base, ours, theirs) {
		v, err := d.get(name)
		if err != nil {
			return nil, err
		}
		changed[sideOurs] = changed[sideOurs] || !SameBytes(v[sideBase], v[sideOurs])
		changed[sideTheirs] = changed[sideTheirs] || !SameBytes(v[sideBase], v[sideTheirs])
		same := SameBytes(v[sideOurs], v[sideTheirs])
		if _, ok := d.m.mergeValue(v[sideBase], v[sideOurs], v[sideTheirs]); !same || !ok {
			found = append(found, d.created(name, nil, v))
		}
	}
	if !changed[sideOurs] || !changed[sideTheirs] {
		return nil, nil
	}
	return found, nil
}

// created is the conflict about something that both sides put, key being relative to
// the directory.
func (d *dirMerge) created(key string, coords []int64, v [3]*tree.Value) Conflict {
	return Conflict{
		Kind: ConflictCreate, Path: d.path + key, Coords: coords,
		Base: brief(v[sideBase]), Ours: brief(v[sideOurs]), Theirs: brief(v[sideTheirs]),
		Same: SameBytes(v[sideOurs], v[sideTheirs]),
	}
}

// nodeNamesOf returns the names of node documents in several directories.
func nodeNamesOf(infos ...*dirInfo) (names []string) {
	for _, i := range infos {
		for _, n := range i.nodes {
			names = append(names, n.name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// get returns the three states of a document.
func (d *dirMerge) get(name string) (out [3]*tree.Value, err error) {
	for side, root := range d.r {
		v, ok, err := d.m.s.Tree.Get(d.m.ctx, root, keyBytes(name))
		if err != nil {
			return out, err
		}
		if ok {
			out[side] = &v
		}
	}
	return out, nil
}

// guardGone reports that side x removed the array, or put another in its place, and
// y changed it.
func (d *dirMerge) guardGone(x, y int) (Choice, error) {
	base, ix, iy := d.infos[sideBase], d.infos[x], d.infos[y]
	same := func(i *dirInfo) bool { return i.hasID && i.id == base.id }
	if !base.hasID || same(ix) || !same(iy) {
		return Refuse, nil
	}
	changed, err := d.changedOwn(y)
	if err != nil || !changed {
		return Refuse, err
	}
	c := Conflict{Kind: ConflictGone, Path: NodePath(d.path), Base: "array"}
	what := "removed"
	if ix.hasID {
		what = "replaced"
	}
	c.set(x, what)
	c.set(y, "changed")
	if choice := d.m.ask(c); choice != Refuse {
		return choice, nil
	}
	return Refuse, d.m.add(c)
}

// set describes the state of a side.
func (c *Conflict) set(side int, text string) {
	if side == sideOurs {
		c.Ours = text
	} else {
		c.Theirs = text
	}
}

// changedOwn reports whether a side changed documents or chunks of the
// directory itself.
func (d *dirMerge) changedOwn(side int) (bool, error) {
	for c, err := range d.m.s.Tree.Diff(d.m.ctx, d.r[sideBase], d.r[side], tree.Span{}) {
		if err != nil || !isSub(c.Key) {
			return err == nil, err
		}
	}
	return false, nil
}

// nodeKind is the kind of node that a directory is. guardCreate depends on the order.
type nodeKind uint8

const (
	noNode nodeKind = iota
	groupNode
	arrayNode
)

var nodeNames = [...]string{"", "group", "array"}

func (d *dirState) kind() nodeKind {
	switch {
	case d.isArray():
		return arrayNode
	case len(d.nodes) > 0:
		return groupNode
	}
	return noNode
}

// guardAncestor reports that side x removed a group or array, or made an array of
// it, and y put something below.
func (d *dirMerge) guardAncestor(x, y int) (Choice, error) {
	was, is, other := d.infos[sideBase].kind(), d.infos[x].kind(), d.infos[y].kind()
	if was == is || is == other || is == groupNode {
		return Refuse, nil
	}
	var below []Conflict
	for c, err := range d.m.s.Tree.Diff(d.m.ctx, d.r[sideBase], d.r[y], tree.Span{}) {
		if err != nil {
			return Refuse, err
		}
		put := c.New != nil
		switch {
		case isSub(c.Key):
			if put, err = d.m.puts(d.path+string(c.Key), childOf(c.Old), childOf(c.New)); err != nil {
				return Refuse, err
			}
		case isReserved(c.Key), is == arrayNode, d.m.s.IsNode(string(c.Key)):
			put = false // its own
		}
		if put {
			conflict := Conflict{Kind: ConflictAncestor, Path: NodePath(d.path + string(c.Key)), Base: nodeNames[was]}
			conflict.set(x, "above it: "+orNone(nodeNames[is]))
			conflict.set(y, "put")
			if below = append(below, conflict); len(below) >= d.m.o.Limit {
				break
			}
		}
	}
	return d.decide(below)
}

// decide asks about several conflicts of the directory as a whole and records
// them if there is no answer.
func (d *dirMerge) decide(cs []Conflict) (Choice, error) {
	if len(cs) == 0 {
		return Refuse, nil
	}
	all := cs[0]
	all.Path, all.Coords = NodePath(d.path), nil
	if choice := d.m.ask(all); choice != Refuse {
		return choice, nil
	}
	for _, c := range cs {
		if err := d.m.add(c); err != nil {
			return Refuse, err
		}
	}
	return Refuse, nil
}

// puts reports whether a directory has an entry that an older state had not. Arrays
// that follow moved there do not count.
func (m *merger) puts(path string, old, new tree.Root) (bool, error) {
	if _, followed := m.moved[path]; old == new || new.Entries == 0 || followed {
		return false, nil
	}
	if err := CheckPath(m.ctx, path); err != nil {
		return false, err
	}
	for c, err := range m.s.Tree.Diff(m.ctx, old, new, tree.Span{}) {
		if err != nil {
			return false, err
		}
		put := c.New != nil
		switch {
		case isSub(c.Key):
			put, err = m.puts(path+string(c.Key), childOf(c.Old), childOf(c.New))
		case isReserved(c.Key) && c.Key[1] == reservedMap:
			put, err = m.putsChunks(childOf(c.Old), childOf(c.New))
		case isReserved(c.Key):
			put = false // follows from the rest
		}
		if put || err != nil {
			return put, err
		}
	}
	return false, nil
}

func (m *merger) putsChunks(old, new tree.Root) (bool, error) {
	for c, err := range m.s.Tree.Diff(m.ctx, old, new, tree.Span{}) {
		if err != nil || c.New != nil {
			return err == nil, err
		}
	}
	return false, nil
}

// arrayShape is the structure of an array, which its chunks depend on.
type arrayShape struct {
	key   []byte           // of all metadata documents
	grids map[Form][]int64 // of the forms that they name
}

// shape reads the structure of the array on one side.
func (d *dirMerge) shape(side int) (a arrayShape, err error) {
	a.grids = map[Form][]int64{}
	for _, n := range d.infos[side].nodes {
		if !n.array {
			continue
		}
		v, ok, err := d.m.s.Tree.Get(d.m.ctx, d.r[side], keyBytes(n.name))
		if err != nil {
			return a, err
		}
		if !ok {
			return a, corrupt("directory %q: no document %q", d.path, n.name)
		}
		doc, ok, err := d.m.s.readDoc(d.m.ctx, v)
		if err != nil {
			return a, err
		}
		if st, isArray := d.m.s.policy.Structure(n.name, doc); ok && isArray {
			a.key = binary.AppendUvarint(append(a.key, n.name...), uint64(len(st.Key)))
			a.key = append(a.key, st.Key...)
			for _, f := range n.forms {
				a.grids[f] = st.Grid
			}
		}
	}
	return a, nil
}

// sameNodes reports whether a side has the node documents of the base.
func (d *dirMerge) sameNodes(side int) (bool, error) {
	for _, name := range nodeNamesOf(d.infos[sideBase], d.infos[side]) {
		v, err := d.get(name)
		if err != nil || !SameBytes(v[sideBase], v[side]) {
			return false, err
		}
	}
	return true, nil
}

// guardStructure reports that side x changed the structure of the array, or shrank
// it, and y changed chunks that depend on it.
func (d *dirMerge) guardStructure(x, y int) (Choice, error) {
	base := d.infos[sideBase]
	for _, i := range d.infos {
		if !i.hasID || i.id != base.id {
			return Refuse, nil
		}
	}
	if same, err := d.sameNodes(x); err != nil || same {
		return Refuse, err
	}
	var shapes [3]arrayShape
	for side := range shapes {
		var err error
		if shapes[side], err = d.shape(side); err != nil {
			return Refuse, err
		}
	}
	changed := !bytes.Equal(shapes[x].key, shapes[sideBase].key) && !bytes.Equal(shapes[x].key, shapes[y].key)
	var found []Conflict
	err := d.changedChunks(y, func(f Form, coords []byte, old, new *tree.Value) error {
		kind := ConflictStructure
		if !changed {
			if kind = ConflictShrink; new == nil || !cutOff(shapes[sideBase].grids[f], shapes[x].grids[f], f.numbers(coords)) {
				return nil
			}
		}
		c := d.chunkConflict(kind, f, coords, old, nil, nil)
		c.set(x, "changed metadata")
		c.set(y, orNone(brief(new)))
		if found = append(found, c); len(found) >= d.m.o.Limit {
			return errStop
		}
		return nil
	})
	if err != nil && err != errStop {
		return Refuse, err
	}
	return d.decide(found)
}

// cutOff reports whether a chunk lies outside a grid that shrank.
func cutOff(old, new, chunk []int64) bool {
	if len(old) != len(chunk) || len(new) != len(chunk) {
		return false
	}
	for i, n := range chunk {
		if new[i] < old[i] && n >= new[i] {
			return true
		}
	}
	return false
}

// changedChunks visits the chunks of the directory that a side changed, those of
// arrays without dimensions too.
func (d *dirMerge) changedChunks(side int, fn func(f Form, coords []byte, old, new *tree.Value) error) error {
	base, info := &d.infos[sideBase].dirState, &d.infos[side].dirState
	for _, f := range unionForms(base, info) {
		a, b := mapOf(base, f), mapOf(info, f)
		if a == b {
			continue
		}
		for c, err := range d.m.s.Tree.Diff(d.m.ctx, a, b, tree.Span{}) {
			if err == nil && !SameBytes(c.Old, c.New) {
				err = fn(f, c.Key, c.Old, c.New)
			}
			if err != nil {
				return err
			}
		}
	}
	for _, n := range base.nodes {
		for _, f := range n.forms {
			if f.Rank > 0 {
				continue
			}
			key := []byte(f.Prefix)
			span := tree.Span{From: key, To: append(clip(key), 0)}
			for c, err := range d.m.s.Tree.Diff(d.m.ctx, d.r[sideBase], d.r[side], span) {
				if err == nil && !SameBytes(c.Old, c.New) {
					err = fn(f, nil, c.Old, c.New)
				}
				if err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// gone merges a directory that one side removed or moved away and y changed.
// Arrays that were followed to their new place are not here any more.
func (m *merger) gone(path string, r sides, y int) (tree.Root, error) {
	info, err := m.s.readDir(m.ctx, r[sideBase])
	if err != nil {
		return tree.Root{}, err
	}
	if info.kind() == noNode {
		return m.dir(path, r)
	}
	d := &dirMerge{m: m, path: path}
	var found []Conflict
	if err := m.changedBelow(path, r[sideBase], r[y], y, &found); err != nil && err != errStop {
		return tree.Root{}, err
	}
	switch choice, err := d.decide(found); {
	case err != nil:
		return tree.Root{}, err
	case choice == Ours:
		return r[sideOurs], nil
	case choice == Theirs:
		return r[sideTheirs], nil
	}
	return tree.Root{}, nil
}

// changedBelow collects what side y put at and below a directory that the other
// removed: changed documents and arrays, and new ones.
func (m *merger) changedBelow(path string, base, root tree.Root, y int, found *[]Conflict) error {
	if err := CheckPath(m.ctx, path); err != nil {
		return err
	}
	chunks := false
	for c, err := range m.s.Tree.Diff(m.ctx, base, root, tree.Span{}) {
		if err != nil {
			return err
		}
		put := Conflict{Kind: ConflictAncestor, Path: NodePath(path + string(c.Key))}
		put.set(sideOurs+sideTheirs-y, "removed")
		put.set(y, "put")
		switch {
		case c.New == nil, !isSub(c.Key) && !isReserved(c.Key) && m.s.policy.Derived(string(c.Key)):
			continue
		case isSub(c.Key) && c.Old != nil:
			if err := m.changedBelow(path+string(c.Key), c.Old.Child, c.New.Child, y, found); err != nil {
				return err
			}
			continue
		case isReserved(c.Key):
			puts := false
			if c.Key[1] == reservedMap && !chunks {
				puts, err = m.putsChunks(childOf(c.Old), childOf(c.New))
			}
			if err != nil {
				return err
			}
			if !puts {
				continue
			}
			chunks = true
			put.Kind, put.Path, put.Base = ConflictGone, NodePath(path), "array"
			put.set(y, "changed")
		case c.Old != nil && SameBytes(c.Old, c.New):
			continue
		case c.Old != nil:
			put.Kind, put.Base = ConflictGone, brief(c.Old)
			put.set(y, "changed")
		}
		if *found = append(*found, put); len(*found) >= m.o.Limit {
			return errStop
		}
	}
	return nil
}
