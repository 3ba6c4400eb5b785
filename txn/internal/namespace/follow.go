package namespace

import (
	"maps"
	"slices"
	"strings"

	"github.com/zarrdb/zarrdb/kv/tree"
)

// follow makes renames disappear from a merge: where one side moved an array
// and the other changed it, the array is moved in the base and on the other
// side too, and the three meet at the new path. Arrays are known by their
// identity, so this also finds those that moved with a group.
//
//	base    a  b                       z  z/b
//	ours    a  a/b   (b renamed)  ──▶  z  z/b
//	theirs  z  b     (a renamed)       z  z/b
func (m *merger) follow(r *sides) error {
	var moves [3]arrayMoves
	for side := sideOurs; side <= sideTheirs; side++ {
		var err error
		if moves[side], err = m.s.arrayMoves(m.ctx, r[sideBase], r[side]); err != nil {
			return err
		}
	}
	if err := m.refuseTwice(moves); err != nil {
		return err
	}
	var accepted [3][]rename
	var both []rename
	for side := sideOurs; side <= sideTheirs; side++ {
		other := sideOurs + sideTheirs - side
		for _, mv := range moves[side].renames() {
			if slices.Equal(moves[other].came[mv.id], []string{mv.To}) {
				if side == sideTheirs {
					continue
				}
				both = append(both, mv)
				if err := m.renamedTwice(mv); err != nil {
					return err
				}
				continue
			}
			ok, err := m.followed(r, mv, side, &moves[other])
			if err != nil {
				return err
			}
			if ok {
				accepted[side] = append(accepted[side], mv)
			}
		}
	}
	if err := m.dropCycles(&accepted); err != nil {
		return err
	}
	if err := m.moveArrays(r, both, sideOurs, []int{sideBase}, [][]rename{nil}); err != nil {
		return err
	}
	// A new path is one of its own side. Where the other side has moved what
	// is around it, it is a path there too; and in the base, when it has made
	// the moves of the other side.
	ours, theirs := accepted[sideOurs], accepted[sideTheirs]
	if err := m.moveArrays(r, ours, sideOurs, []int{sideBase, sideTheirs}, [][]rename{nil, theirs}); err != nil {
		return err
	}
	return m.moveArrays(r, theirs, sideTheirs, []int{sideBase, sideOurs}, [][]rename{ours, ours})
}

// refuseTwice reports arrays that the base lacks and the sides have at different
// paths, as when a commit that made one is picked into a branch that has renamed
// it since. An array has one path.
func (m *merger) refuseTwice(moves [3]arrayMoves) error {
	ours, theirs := &moves[sideOurs], &moves[sideTheirs]
	for id, at := range ours.came {
		other := theirs.came[id]
		if len(other) == 0 || len(ours.left[id])+len(theirs.left[id]) > 0 || slices.Equal(at, other) {
			continue
		}
		err := m.add(Conflict{Kind: ConflictRename, Path: at[0], Ours: "put at " + at[0], Theirs: "put at " + other[0]})
		if err != nil {
			return err
		}
	}
	return nil
}

// renamedTwice reports a rename that both sides made, to the same path, if the merge
// is strict.
func (m *merger) renamedTwice(mv rename) error {
	c := Conflict{Kind: ConflictRename, Path: mv.From, Base: "array", Ours: "renamed to " + mv.To, Theirs: "renamed to " + mv.To, Same: true}
	if !m.o.Strict || m.ask(c) != Refuse {
		return nil
	}
	return m.add(c)
}

// followed decides whether a rename by one side is followed on the other. It is
// not if the other left the array as it was, and cannot be if the other moved
// or removed it.
func (m *merger) followed(r *sides, mv rename, side int, moves *arrayMoves) (bool, error) {
	other := sideOurs + sideTheirs - side
	c := Conflict{Kind: ConflictRename, Path: mv.From, Base: "array"}
	c.set(side, "renamed to "+mv.To)
	if to := moves.came[mv.id]; len(to) > 0 {
		c.set(other, "renamed to "+strings.Join(to, ", "))
		return false, m.add(c)
	}
	if len(moves.left[mv.id]) > 0 {
		c.Kind = ConflictGone
		c.set(other, "removed")
		return false, m.add(c)
	}
	_, was, err := m.s.dirAt(m.ctx, r[sideBase], DirPath(mv.From))
	if err != nil {
		return false, err
	}
	_, is, err := m.s.dirAt(m.ctx, r[other], DirPath(mv.From))
	return was != is, err
}

// dropCycles reports pairs of renames in which each side moves an array into the one
// that the other moves.
func (m *merger) dropCycles(accepted *[3][]rename) error {
	into := func(mv rename, others []rename) bool { return movedAlong(mv.To, others) != mv.To }
	var cycle []rename
	for _, mv := range accepted[sideOurs] {
		for _, other := range accepted[sideTheirs] {
			if into(mv, []rename{other}) && into(other, []rename{mv}) {
				cycle = append(cycle, mv, other)
				c := Conflict{Kind: ConflictRename, Path: min(mv.From, other.From), Base: "arrays"}
				c.set(sideOurs, mv.From+" renamed to "+mv.To)
				c.set(sideTheirs, other.From+" renamed to "+other.To)
				if err := m.add(c); err != nil {
					return err
				}
			}
		}
	}
	for side := range accepted {
		accepted[side] = slices.DeleteFunc(accepted[side], func(mv rename) bool { return slices.Contains(cycle, mv) })
	}
	return nil
}

// movedAlong returns where a path is when the arrays around it have moved.
func movedAlong(path string, moves []rename) string {
	out, longest := path, -1
	for _, mv := range moves {
		if rest, ok := strings.CutPrefix(path, DirPath(mv.From)); ok && len(mv.From) > longest {
			out, longest = DirPath(mv.To)+rest, len(mv.From)
		}
	}
	return out
}

// moveArrays makes the renames of one side in other roots, to paths that have
// moved along with others there.
func (m *merger) moveArrays(r *sides, all []rename, side int, in []int, along [][]rename) error {
	var moves []rename // without those that follow from another
	for _, mv := range all {
		if movedAlong(mv.From, all) != mv.To {
			moves = append(moves, mv)
		}
	}
	grafts := make([]map[[16]byte]graft, len(in))
	for i, at := range in {
		var err error
		if r[at], grafts[i], err = m.detachAll(r[at], moves); err != nil {
			return err
		}
	}
	// Outer ones first, so that inner ones find them.
	slices.SortFunc(moves, func(a, b rename) int { return strings.Compare(a.To, b.To) })
	for _, mv := range moves {
		// What lies at the new place made room on the side of the rename. So
		// it goes here too, unless the other side changed it.
		var there [2]tree.Root
		for i, at := range in {
			var err error
			if _, there[i], err = m.s.dirAt(m.ctx, r[at], DirPath(movedAlong(mv.To, along[i]))); err != nil {
				return err
			}
		}
		if len(in) > 1 && there[0] != there[1] {
			c := Conflict{Kind: ConflictRename, Path: mv.To}
			c.set(side, "renamed from "+mv.From)
			c.set(sideOurs+sideTheirs-side, "put something else")
			if err := m.add(c); err != nil {
				return err
			}
			continue
		}
		for i, at := range in {
			to := movedAlong(mv.To, along[i])
			if m.moved[DirPath(to)] = side; len(in) == 1 {
				m.moved[DirPath(to)] = sideBase
			}
			var err error
			if r[at], err = m.s.DeletePrefix(m.ctx, r[at], DirPath(to)); err != nil {
				return err
			}
			if r[at], err = m.s.graft(m.ctx, r[at], grafts[i][mv.id], to); err != nil {
				return err
			}
		}
	}
	return nil
}

// intoRemoved refuses that one side moved an array below a group that the other
// removed, or made an array of. It cannot be seen where the directories meet: the
// array was followed to there on all sides.
func (m *merger) intoRemoved(r sides) error {
	for _, path := range slices.Sorted(maps.Keys(m.moved)) {
		y := m.moved[path]
		if y == sideBase {
			continue
		}
		x := sideOurs + sideTheirs - y
		for up, more := parentDir(path); more; up, more = parentDir(up) {
			var kinds [3]nodeKind
			for side, root := range r {
				info, _, err := m.s.dirAt(m.ctx, root, up)
				if err != nil {
					return err
				}
				if info != nil {
					kinds[side] = info.kind()
				}
			}
			if kinds[sideBase] != groupNode || kinds[y] != groupNode || kinds[x] == groupNode {
				continue
			}
			c := Conflict{Kind: ConflictRename, Path: NodePath(path)}
			c.set(x, "above it: "+orNone(nodeNames[kinds[x]]))
			c.set(y, "renamed to it")
			if err := m.add(c); err != nil {
				return err
			}
		}
	}
	return nil
}

// parentDir returns the directory that one is in; the root is in none.
func parentDir(dir string) (up string, ok bool) {
	path := NodePath(dir)
	return path[:strings.LastIndexByte(path, '/')+1], path != ""
}

// detachAll removes the arrays of renames from a root, inner ones first, and returns
// them by identity.
func (m *merger) detachAll(root tree.Root, moves []rename) (tree.Root, map[[16]byte]graft, error) {
	grafts := map[[16]byte]graft{}
	for _, mv := range slices.Backward(moves) { // ascending: what is inside comes later
		g := graft{src: root, from: mv.From}
		var err error
		if _, g.dir, err = m.s.dirAt(m.ctx, root, DirPath(mv.From)); err != nil {
			return tree.Root{}, nil, err
		}
		grafts[mv.id] = g
		if root, err = m.s.DeletePrefix(m.ctx, root, DirPath(mv.From)); err != nil {
			return tree.Root{}, nil, err
		}
	}
	return root, grafts, nil
}
