package txn

import (
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
	var take [3][]rename
	var both []rename
	for side := sideOurs; side <= sideTheirs; side++ {
		other := sideOurs + sideTheirs - side
		for _, mv := range moves[side].renames() {
			if slices.Equal(moves[other].came[mv.id], []string{mv.to}) {
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
				take[side] = append(take[side], mv)
			}
		}
	}
	if err := m.dropCycles(&take); err != nil {
		return err
	}
	if err := m.moveArrays(r, both, sideOurs, []int{sideBase}, [][]rename{nil}); err != nil {
		return err
	}
	// A new path is one of its own side. Where the other side has moved what
	// is around it, it is a path there too; and in the base, when it has made
	// the moves of the other side.
	ours, theirs := take[sideOurs], take[sideTheirs]
	if err := m.moveArrays(r, ours, sideOurs, []int{sideBase, sideTheirs}, [][]rename{nil, theirs}); err != nil {
		return err
	}
	return m.moveArrays(r, theirs, sideTheirs, []int{sideBase, sideOurs}, [][]rename{ours, ours})
}

// refuseTwice finds arrays that the base has not and the sides have at different
// paths, as when a commit that made one is picked into a branch that has renamed
// it since. An array is at one path.
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

// renamedTwice is about a rename that both sides made, to the same path.
func (m *merger) renamedTwice(mv rename) error {
	c := Conflict{Kind: ConflictRename, Path: mv.from, Base: "array", Ours: "renamed to " + mv.to, Theirs: "renamed to " + mv.to, Same: true}
	if !m.o.strict || m.ask(c) != Refuse {
		return nil
	}
	return m.add(c)
}

// followed decides whether a rename by one side is followed on the other. It is
// not if the other left the array as it was, and cannot be if the other moved
// or removed it.
func (m *merger) followed(r *sides, mv rename, side int, moves *arrayMoves) (bool, error) {
	other := sideOurs + sideTheirs - side
	c := Conflict{Kind: ConflictRename, Path: mv.from, Base: "array"}
	c.set(side, "renamed to "+mv.to)
	if to := moves.came[mv.id]; len(to) > 0 {
		c.set(other, "renamed to "+strings.Join(to, ", "))
		return false, m.add(c)
	}
	if len(moves.left[mv.id]) > 0 {
		c.Kind = ConflictGone
		c.set(other, "removed")
		return false, m.add(c)
	}
	_, was, err := m.s.dirAt(m.ctx, r[sideBase], dirPath(mv.from))
	if err != nil {
		return false, err
	}
	_, is, err := m.s.dirAt(m.ctx, r[other], dirPath(mv.from))
	return was != is, err
}

// dropCycles refuses that each side moves an array into what the other moves.
func (m *merger) dropCycles(take *[3][]rename) error {
	into := func(mv rename, others []rename) bool { return movedAlong(mv.to, others) != mv.to }
	var cycle []rename
	for _, mv := range take[sideOurs] {
		for _, other := range take[sideTheirs] {
			if into(mv, []rename{other}) && into(other, []rename{mv}) {
				cycle = append(cycle, mv, other)
				c := Conflict{Kind: ConflictRename, Path: min(mv.from, other.from), Base: "arrays"}
				c.set(sideOurs, mv.from+" renamed to "+mv.to)
				c.set(sideTheirs, other.from+" renamed to "+other.to)
				if err := m.add(c); err != nil {
					return err
				}
			}
		}
	}
	for side := range take {
		take[side] = slices.DeleteFunc(take[side], func(mv rename) bool { return slices.Contains(cycle, mv) })
	}
	return nil
}

// movedAlong returns where a path is when the arrays around it have moved.
func movedAlong(path string, moves []rename) string {
	out, longest := path, -1
	for _, mv := range moves {
		if rest, ok := strings.CutPrefix(path, dirPath(mv.from)); ok && len(mv.from) > longest {
			out, longest = dirPath(mv.to)+rest, len(mv.from)
		}
	}
	return out
}

// moveArrays makes the renames of one side in other roots, to paths that have
// moved along with others there.
func (m *merger) moveArrays(r *sides, all []rename, side int, in []int, along [][]rename) error {
	var moves []rename // without those that follow from another
	for _, mv := range all {
		if movedAlong(mv.from, all) != mv.to {
			moves = append(moves, mv)
		}
	}
	taken := make([]map[[16]byte]graft, len(in))
	for i, at := range in {
		var err error
		if r[at], taken[i], err = m.takeAll(r[at], moves); err != nil {
			return err
		}
	}
	// Outer ones first, so that inner ones find them.
	slices.SortFunc(moves, func(a, b rename) int { return strings.Compare(a.to, b.to) })
	for _, mv := range moves {
		// What lies at the new place made room on the side of the rename. So
		// it goes here too, unless the other side changed it.
		var there [2]tree.Root
		for i, at := range in {
			var err error
			if _, there[i], err = m.s.dirAt(m.ctx, r[at], dirPath(movedAlong(mv.to, along[i]))); err != nil {
				return err
			}
		}
		if len(in) > 1 && there[0] != there[1] {
			c := Conflict{Kind: ConflictRename, Path: mv.to}
			c.set(side, "renamed from "+mv.from)
			c.set(sideOurs+sideTheirs-side, "put something else")
			if err := m.add(c); err != nil {
				return err
			}
			continue
		}
		for i, at := range in {
			to := movedAlong(mv.to, along[i])
			m.moved[dirPath(to)] = true
			var err error
			if r[at], err = m.s.deletePrefix(m.ctx, r[at], dirPath(to)); err != nil {
				return err
			}
			if r[at], err = m.s.graft(m.ctx, r[at], taken[i][mv.id], to); err != nil {
				return err
			}
		}
	}
	return nil
}

// takeAll takes the arrays of renames out of a root, inner ones first.
func (m *merger) takeAll(root tree.Root, moves []rename) (tree.Root, map[[16]byte]graft, error) {
	taken := map[[16]byte]graft{}
	for _, mv := range slices.Backward(moves) { // ascending: what is inside comes later
		g := graft{src: root, from: mv.from}
		var err error
		if _, g.dir, err = m.s.dirAt(m.ctx, root, dirPath(mv.from)); err != nil {
			return tree.Root{}, nil, err
		}
		taken[mv.id] = g
		if root, err = m.s.deletePrefix(m.ctx, root, dirPath(mv.from)); err != nil {
			return tree.Root{}, nil, err
		}
	}
	return root, taken, nil
}
