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
func (m *merger) follow(r *sides) error {
	var moves [3]arrayMoves
	for side := sideOurs; side <= sideTheirs; side++ {
		var err error
		if moves[side], err = m.s.arrayMoves(m.ctx, r[sideBase], r[side]); err != nil {
			return err
		}
	}
	before := *r
	for side := sideOurs; side <= sideTheirs; side++ {
		other := sideOurs + sideTheirs - side
		var take, both []rename
		for _, mv := range moves[side].renames() {
			if to := moves[other].came[mv.id]; slices.Equal(to, []string{mv.to}) {
				both = append(both, mv)
				continue
			} else if len(to) > 0 && side == sideTheirs {
				continue // said already
			}
			ok, err := m.followed(before, mv, side, other, &moves[other])
			if err != nil {
				return err
			}
			if ok {
				take = append(take, mv)
			}
		}
		if err := m.moveArrays(r, take, side, sideBase, other); err != nil {
			return err
		}
		if side == sideOurs {
			if err := m.moveArrays(r, both, side, sideBase); err != nil {
				return err
			}
		}
	}
	return nil
}

// followed decides whether a rename by one side is followed on the other. It is
// not if the other left the array as it was, and cannot be if the other moved
// or removed it.
func (m *merger) followed(r sides, mv rename, side, other int, moves *arrayMoves) (bool, error) {
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

// moveArrays makes the renames of one side in the base and on the other side.
func (m *merger) moveArrays(r *sides, moves []rename, side int, in ...int) error {
	moves = slices.DeleteFunc(moves, func(mv rename) bool { return movedWithin(moves, mv) })
	if len(moves) == 0 {
		return nil
	}
	taken := make([][]graft, len(in))
	for i, at := range in {
		var err error
		if r[at], taken[i], err = m.takeAll(r[at], moves); err != nil {
			return err
		}
	}
	for k, mv := range moves {
		// What lies at the new place made room on the side of the rename. So
		// it goes here too, unless the other side changed it.
		var there sides
		for i, at := range in {
			var err error
			if _, there[i], err = m.s.dirAt(m.ctx, r[at], dirPath(mv.to)); err != nil {
				return err
			}
		}
		if len(in) > 1 && there[0] != there[1] {
			c := Conflict{Kind: ConflictRename, Path: mv.to}
			c.set(side, "renamed from "+mv.from)
			c.set(in[1], "put something else")
			if err := m.add(c); err != nil {
				return err
			}
			continue
		}
		m.moved[dirPath(mv.to)] = true
		for i, at := range in {
			var err error
			if r[at], err = m.s.deletePrefix(m.ctx, r[at], dirPath(mv.to)); err != nil {
				return err
			}
			if r[at], err = m.s.graft(m.ctx, r[at], taken[i][k], mv.to); err != nil {
				return err
			}
		}
	}
	return nil
}

// takeAll takes the nodes of renames out of a root, inner ones first.
func (m *merger) takeAll(root tree.Root, moves []rename) (tree.Root, []graft, error) {
	taken := make([]graft, len(moves))
	for k := len(moves) - 1; k >= 0; k-- { // ascending: what is inside comes later
		var err error
		if _, taken[k].dir, err = m.s.dirAt(m.ctx, root, dirPath(moves[k].from)); err != nil {
			return tree.Root{}, nil, err
		}
		taken[k].src, taken[k].from = root, moves[k].from
		if root, err = m.s.deletePrefix(m.ctx, root, dirPath(moves[k].from)); err != nil {
			return tree.Root{}, nil, err
		}
	}
	return root, taken, nil
}

// movedWithin reports whether a rename follows from that of an array around it.
func movedWithin(moves []rename, mv rename) bool {
	return slices.ContainsFunc(moves, func(outer rename) bool {
		rest, ok := strings.CutPrefix(mv.from, dirPath(outer.from))
		return ok && outer.from != mv.from && mv.to == dirPath(outer.to)+rest
	})
}
