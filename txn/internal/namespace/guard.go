package namespace

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/zarrdb/zarrdb/kv/tree"
)

// Some changes touch different entries and still conflict: a chunk that one side
// wrote depends on the structure of its array, and every key that one side put
// depends on the nodes above it. guard finds these conflicts in a directory that
// both sides changed. Where they are decided, it undoes the change of the side that
// loses, so that the entries merge.
func (d *dirMerge) guard() error {
	if err := d.guardCreate(); err != nil {
		return err
	}
	if err := d.guardDocuments(); err != nil {
		return err
	}
	for _, check := range []func(x, y int) error{d.guardGone, d.guardAncestor} {
		for x := sideOurs; x <= sideTheirs; x++ {
			if err := check(x, otherSide(x)); err != nil {
				return err
			}
		}
	}
	// Both sides are asked about before either changes.
	ours, err := d.guardStructure(sideOurs, sideTheirs)
	if err != nil {
		return err
	}
	theirs, err := d.guardStructure(sideTheirs, sideOurs)
	if err == nil && ours != nil {
		err = ours()
	}
	if err == nil && theirs != nil {
		err = theirs()
	}
	return err
}

// guardCreate finds that both sides made a node of the directory, one of them an
// array, with different metadata: then their chunks do not belong together. If the
// merge is strict, making the same array is a conflict too. Else two arrays with
// the same metadata must have the same chunks.
func (d *dirMerge) guardCreate() error {
	found, err := d.madeTwice()
	if err == nil && len(found) == 0 {
		found, err = d.twoArrays()
	}
	if err != nil {
		return err
	}
	return d.decideNode(found)
}

// guardDocuments finds that each side left another of two metadata documents of an array.
func (d *dirMerge) guardDocuments() error {
	base, ours, theirs := d.infos[sideBase], d.infos[sideOurs], d.infos[sideTheirs]
	if !base.isArray() || !ours.isArray() || !theirs.isArray() {
		return nil
	}
	isArray := func(i *dirInfo, name string) bool {
		n := findNode(i.nodes, name)
		return n != nil && n.array
	}
	for _, name := range nodeNamesOf(ours, theirs) {
		v, err := d.get(name)
		if err != nil {
			return err
		}
		stays := isArray(ours, name) || isArray(theirs, name)
		switch {
		case SameBytes(v[sideBase], v[sideTheirs]):
			stays = isArray(ours, name)
		case SameBytes(v[sideBase], v[sideOurs]):
			stays = isArray(theirs, name)
		}
		if stays {
			return nil
		}
	}
	return d.decideNode([]Conflict{{Kind: ConflictStructure, Path: NodePath(d.path), Base: "array", Ours: "array", Theirs: "array"}})
}

// decideNode asks about conflicts of the node of the directory, and undoes the change of
// the side that loses.
func (d *dirMerge) decideNode(found []Conflict) error {
	choice, err := d.m.decide(found)
	if err != nil || choice == Refuse {
		return err
	}
	_, loser := sideOf(choice)
	return d.undo(loser)
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

// guardGone finds that side x removed the array, or put another in its place, and
// y changed it.
func (d *dirMerge) guardGone(x, y int) error {
	base, ix, iy := d.infos[sideBase], d.infos[x], d.infos[y]
	same := func(i *dirInfo) bool { return i.hasID && i.id == base.id }
	if !base.hasID || same(ix) || !same(iy) {
		return nil
	}
	changed, err := d.changedOwn(y)
	if err != nil || !changed {
		return err
	}
	c := Conflict{Kind: ConflictGone, Path: NodePath(d.path), Base: "array"}
	what := "removed"
	if ix.hasID {
		what = "replaced"
	}
	c.set(x, what)
	c.set(y, "changed")
	return d.decideNode([]Conflict{c})
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
		changed := !SameBytes(c.Old, c.New)
		switch {
		case err != nil:
			return false, err
		case isSub(c.Key):
			changed = false
		case isReserved(c.Key):
			if changed = false; c.Key[1] == reservedMap {
				changed, err = d.m.chunksDiffer(childOf(c.Old), childOf(c.New), false)
			}
		}
		if changed || err != nil {
			return changed, err
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

// guardAncestor finds that side x removed a group or array, or made an array of
// it, and y put something below.
func (d *dirMerge) guardAncestor(x, y int) error {
	was, is, other := d.infos[sideBase].kind(), d.infos[x].kind(), d.infos[y].kind()
	if !takesAway(was, is, other) {
		return nil
	}
	r := d.r
	kept := false
	for c, err := range d.m.s.Tree.Diff(d.m.ctx, d.r[sideBase], d.r[y], tree.Span{}) {
		if err != nil {
			return err
		}
		put := c.New != nil
		switch {
		case isSub(c.Key):
			if put, err = d.m.puts(d.path+string(c.Key), childOf(c.Old), childOf(c.New)); err != nil {
				return err
			}
		case isReserved(c.Key), is == arrayNode, d.m.s.IsNode(string(c.Key)):
			put = false // its own
		}
		if !put {
			continue
		}
		conflict := Conflict{Kind: ConflictAncestor, Path: NodePath(d.path + string(c.Key)), Base: nodeNames[was]}
		conflict.set(x, "above it: "+cmp.Or(nodeNames[is], "nothing"))
		conflict.set(y, "put")
		choice, err := d.m.askOrAdd(conflict)
		if err != nil {
			return err
		}
		switch winner, _ := sideOf(choice); {
		case choice == Refuse:
		case winner == y:
			kept = true
		case isSub(c.Key) && d.m.movedIn(y, d.path+string(c.Key)):
			if err := d.m.add(conflict); err != nil { // the arrays in it would be lost
				return err
			}
		default:
			if r[y], err = d.m.s.Tree.Apply(d.m.ctx, r[y], []tree.Edit{valueEdit(bytes.Clone(c.Key), c.Old)}); err != nil {
				return err
			}
		}
	}
	if r[y] != d.r[y] {
		if err := d.set(y, r[y]); err != nil {
			return err
		}
	}
	if kept && (was == groupNode || is == arrayNode) {
		return d.undo(x)
	}
	return nil
}

// decide asks about conflicts that are decided together. It records those without an
// answer, and all if the answers differ.
func (m *merger) decide(cs []Conflict) (Choice, error) {
	choice := Refuse
	var refused []Conflict
	for i, c := range cs {
		switch answer := m.ask(c); {
		case answer == Refuse:
			refused = append(refused, c)
		case i > 0 && answer != choice:
			refused = cs
		default:
			choice = answer
		}
		if len(refused) == len(cs) {
			break
		}
	}
	for _, c := range refused {
		if err := m.add(c); err != nil {
			return Refuse, err
		}
	}
	if len(refused) > 0 {
		return Refuse, nil
	}
	return choice, nil
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
		put := c.New != nil && !SameBytes(c.Old, c.New)
		switch {
		case isSub(c.Key):
			put, err = m.puts(path+string(c.Key), childOf(c.Old), childOf(c.New))
		case isReserved(c.Key) && c.Key[1] == reservedMap:
			put, err = m.chunksDiffer(childOf(c.Old), childOf(c.New), true)
		case isReserved(c.Key):
			put = false // follows from the rest
		}
		if put || err != nil {
			return put, err
		}
	}
	return false, nil
}

// chunksDiffer reports whether chunks of two maps have different bytes, or, with put,
// whether the newer map has chunks that the older has not.
func (m *merger) chunksDiffer(old, new tree.Root, put bool) (bool, error) {
	for c, err := range m.s.Tree.Diff(m.ctx, old, new, tree.Span{}) {
		if err != nil || !SameBytes(c.Old, c.New) && (c.New != nil || !put) {
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

// guardStructure finds that side x changed the structure of the array, or shrank
// it, and y changed chunks that depend on it. It returns what a choice does.
func (d *dirMerge) guardStructure(x, y int) (undo func() error, err error) {
	base := d.infos[sideBase]
	for _, i := range d.infos {
		if !i.hasID || i.id != base.id {
			return nil, nil
		}
	}
	if same, err := d.sameNodes(x); err != nil || same {
		return nil, err
	}
	var shapes [3]arrayShape
	for side := range shapes {
		if shapes[side], err = d.shape(side); err != nil {
			return nil, err
		}
	}
	changed := !bytes.Equal(shapes[x].key, shapes[sideBase].key) && !bytes.Equal(shapes[x].key, shapes[y].key)
	depends := func(f Form, coords []byte, new *tree.Value) bool {
		return changed || new != nil && cutOff(shapes[sideBase].grids[f], shapes[x].grids[f], f.numbers(coords))
	}
	var found []Conflict
	err = d.changedChunks(y, func(f Form, coords []byte, old, new *tree.Value) error {
		if !depends(f, coords, new) {
			return nil
		}
		kind := ConflictStructure
		if !changed {
			kind = ConflictShrink
		}
		c := d.chunkConflict(kind, f, coords, old, nil, nil)
		c.set(x, "changed metadata")
		c.set(y, brief(new))
		if found = append(found, c); len(found) >= d.m.o.Limit {
			return errStop
		}
		return nil
	})
	if err != nil && err != errStop {
		return nil, err
	}
	choice, err := d.m.decide(found)
	if err != nil || choice == Refuse {
		return nil, err
	}
	if winner, _ := sideOf(choice); winner == x {
		return func() error { return d.undoChunks(y, depends) }, nil
	}
	// The base's structure returns, and with it the chunks that were written for
	// another or cut off. What x did besides stays.
	outside := func(f Form, coords []byte, new *tree.Value) bool {
		return changed || cutOff(shapes[sideBase].grids[f], shapes[x].grids[f], f.numbers(coords))
	}
	return func() error {
		if err := d.undoChunks(x, outside); err != nil {
			return err
		}
		return d.undoStructure(x)
	}, nil
}

// undoChunks makes chunks that a side changed what they are in the base.
func (d *dirMerge) undoChunks(side int, which func(f Form, coords []byte, new *tree.Value) bool) error {
	root := d.r[side]
	var batch []Edit
	flush := func() (err error) {
		root, err = d.m.s.Apply(d.m.ctx, root, sortedEdits(batch))
		batch = batch[:0]
		return err
	}
	err := d.changedChunks(side, func(f Form, coords []byte, old, new *tree.Value) error {
		if !which(f, coords, new) {
			return nil
		}
		key := []byte(f.Prefix)
		if f.Rank > 0 {
			key, _ = f.print(nil, coords)
		}
		if batch = append(batch, documentEdit(string(key), old)); len(batch) < d.m.s.Limits.Moved {
			return nil
		}
		return flush()
	})
	if err == nil {
		err = flush()
	}
	if err != nil {
		return err
	}
	return d.set(side, root)
}

// undoStructure gives the metadata documents of a side the structure that they have in
// the base. Attributes stay.
func (d *dirMerge) undoStructure(side int) error {
	var edits []Edit
	for _, name := range nodeNamesOf(d.infos[sideBase], d.infos[side]) {
		v, err := d.get(name)
		if err != nil {
			return err
		}
		e := documentEdit(name, v[sideBase])
		if !e.Delete && v[side] != nil {
			docs, whole, err := d.read(v[sideBase], v[side], nil)
			if err != nil {
				return err
			}
			if doc := d.m.s.policy.WithAttributes(name, docs[0], docs[1]); !whole && doc != nil {
				made, ok, err := d.m.s.makeDoc(d.m.ctx, d.path+name, doc)
				if err != nil {
					return err
				}
				if ok {
					e.Value = made
				}
			}
		}
		edits = append(edits, e)
	}
	root, err := d.m.s.Apply(d.m.ctx, d.r[side], edits)
	if err != nil {
		return err
	}
	return d.set(side, root)
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
	seen := map[string]bool{} // documents of several versions may name one key
	for _, n := range base.nodes {
		for _, f := range n.forms {
			if f.Rank > 0 || seen[f.Prefix] {
				continue
			}
			seen[f.Prefix] = true
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

// gone merges a directory that side x removed or moved away and y changed.
// Arrays that were followed to their new place are not here any more.
func (m *merger) gone(path string, r sides, y int) (tree.Root, error) {
	info, err := m.s.readDir(m.ctx, r[sideBase])
	if err != nil {
		return tree.Root{}, err
	}
	if info.kind() == noNode {
		return m.dir(path, r)
	}
	is, err := m.s.readDir(m.ctx, r[y])
	if err != nil {
		return tree.Root{}, err
	}
	if replaced(info, is) { // so both removed what was there
		r[sideBase], err = m.s.takeOwn(m.ctx, r[sideBase], tree.Root{}, m.s.isMetadata)
		if err != nil {
			return tree.Root{}, err
		}
		return m.dir(path, r)
	}
	kept, err := m.removed(path, &r, y, false)
	if err != nil || !kept {
		return tree.Root{}, err
	}
	return m.dir(path, r)
}

// replaced reports whether a directory has another node than before, and one of these two
// nodes is an array.
func replaced(was, is *dirInfo) bool {
	return is.kind() != noNode && was.kind() != noNode && (was.hasID != is.hasID || was.id != is.id)
}

// removed asks about what side y put at and below a directory that side x removed:
// changed documents and arrays, and new ones. Where y loses, it is to have what the base
// has; where it wins, x has its node again, and the groups above it. Nothing else comes
// back. kept reports that something of y stays. below says that y still has a node above
// that x removed; new entries are no conflict if both removed all nodes above.
func (m *merger) removed(path string, r *sides, y int, below bool) (kept bool, err error) {
	if err := CheckPath(m.ctx, path); err != nil {
		return false, err
	}
	x := otherSide(y)
	info, err := m.s.readDir(m.ctx, r[sideBase])
	if err != nil {
		return false, err
	}
	is, err := m.s.readDir(m.ctx, r[y])
	if err != nil {
		return false, err
	}
	below = below || info.kind() != noNode && is.kind() != noNode
	var own []Conflict             // about the array of the directory
	var xEdits, yEdits []tree.Edit // directories
	var xDocs, yDocs []Edit
	for c, err := range m.s.Tree.Diff(m.ctx, r[sideBase], r[y], tree.Span{}) {
		if err != nil {
			return false, err
		}
		put := Conflict{Kind: ConflictAncestor, Path: NodePath(path + string(c.Key))}
		put.set(x, "removed")
		put.set(y, "put")
		key := bytes.Clone(c.Key)
		switch {
		case c.New == nil, !isSub(c.Key) && !isReserved(c.Key) && m.s.policy.Derived(string(c.Key)):
			continue
		case isSub(c.Key) && c.Old != nil:
			child, err := m.childrenOf(*r, string(key))
			if err != nil {
				return false, err
			}
			was := child
			stays, err := m.removed(path+string(key), &child, y, below)
			if err != nil {
				return false, err
			}
			kept = kept || stays
			if child[x] != was[x] {
				xEdits = append(xEdits, subEdit(key, child[x]))
			}
			if child[y] != was[y] {
				yEdits = append(yEdits, subEdit(key, child[y]))
			}
			continue
		case isReserved(c.Key):
			puts := false
			if c.Key[1] == reservedMap {
				puts, err = m.chunksDiffer(childOf(c.Old), childOf(c.New), true)
			}
			if err != nil {
				return false, err
			}
			if puts && !slices.ContainsFunc(own, func(c Conflict) bool { return c.Path == NodePath(path) }) {
				put.Kind, put.Path, put.Base = ConflictGone, NodePath(path), "array"
				put.set(y, "changed")
				own = append(own, put)
			}
			continue
		case c.Old != nil && SameBytes(c.Old, c.New):
			continue
		case c.Old != nil:
			put.Kind, put.Base = ConflictGone, brief(c.Old)
			put.set(y, "changed")
			if info.isArray() {
				own = append(own, put)
				continue
			}
		}
		if c.Old == nil && !below {
			kept = true
			continue
		}
		choice, err := m.askOrAdd(put)
		if err != nil {
			return false, err
		}
		switch winner, _ := sideOf(choice); {
		case choice == Refuse:
		case winner == x && isSub(key) && m.movedIn(y, path+string(key)):
			if err := m.add(put); err != nil { // the arrays in it would be lost
				return false, err
			}
		case winner == x && isSub(key):
			yEdits = append(yEdits, tree.Edit{Key: key, Delete: true})
		case winner == x:
			yDocs = append(yDocs, documentEdit(string(key), c.Old))
		default:
			kept = true
			if c.Old != nil {
				xDocs = append(xDocs, documentEdit(string(key), c.Old))
			}
		}
	}
	choice, err := m.decide(own)
	if err != nil {
		return false, err
	}
	if r[x], err = m.applyHere(r[x], xEdits, xDocs); err != nil {
		return false, err
	}
	if r[y], err = m.applyHere(r[y], yEdits, yDocs); err != nil {
		return false, err
	}
	winner, loser := sideOf(choice)
	if choice != Refuse {
		kept = kept || winner == y
		if r[loser], err = m.s.takeOwn(m.ctx, r[loser], r[sideBase], m.s.isMetadata); err != nil {
			return false, err
		}
	}
	if now, err := m.s.readDir(m.ctx, r[x]); err != nil || !kept || info.kind() != groupNode || is.kind() != groupNode || now.kind() == groupNode {
		return kept, err
	}
	r[x], err = m.s.takeOwn(m.ctx, r[x], r[sideBase], m.s.isMetadata)
	return kept, err
}

func (m *merger) applyHere(root tree.Root, subs []tree.Edit, docs []Edit) (tree.Root, error) {
	root, err := m.s.Tree.Apply(m.ctx, root, subs)
	if err != nil {
		return tree.Root{}, err
	}
	return m.s.Apply(m.ctx, root, docs)
}

// documentEdit puts a value, or deletes the key for nil.
func documentEdit(key string, v *tree.Value) Edit {
	if v == nil {
		return Edit{Key: key, Delete: true}
	}
	return Edit{Key: key, Value: *v}
}

// childrenOf returns a sub-directory on all sides.
func (m *merger) childrenOf(r sides, name string) (child sides, err error) {
	for side, root := range r {
		info, err := m.s.readDir(m.ctx, root)
		if err != nil {
			return child, err
		}
		if child[side], _, err = m.s.subDir(m.ctx, root, info, name); err != nil {
			return child, err
		}
	}
	return child, nil
}
