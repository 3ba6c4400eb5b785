package namespace

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/zarrdb/zarrdb/kv/tree"
)

// A decision about where an array lies is applied to the side that lost: its part of the
// rename is undone, and what would then lie at one path makes room.

// apply changes the sides as it was chosen.
func (d *renameDecision) apply() (changed bool, err error) {
	for side := sideOurs; side <= sideTheirs; side++ {
		before := d.r[side]
		for _, dir := range d.restored[side] {
			if err := d.m.restore(d.r, side, dir); err != nil {
				return false, err
			}
		}
		if len(d.to[side])+len(d.reverted[side])+len(d.dropped[side]) > 0 {
			if err := d.relocate(side); err != nil {
				return false, err
			}
		}
		changed = changed || d.r[side] != before
	}
	return changed, nil
}

// restore makes a directory of a side what it is in the base, but for what is below.
func (m *merger) restore(r *sides, side int, dir string) error {
	_, base, err := m.s.dirAt(m.ctx, r[sideBase], dir)
	if err != nil {
		return err
	}
	_, at, err := m.s.dirAt(m.ctx, r[side], dir)
	if err == nil {
		at, err = m.s.takeOwn(m.ctx, at, base, m.s.isMetadata)
	}
	if err == nil {
		r[side], err = m.s.setDir(m.ctx, r[side], dir, at)
	}
	return err
}

// takeOwn replaces the node of a directory, with its chunks, by that of another.
// Directories below stay, and so do documents that are not named by own.
func (s *Space) takeOwn(ctx context.Context, dst, src tree.Root, own func(name string) bool) (tree.Root, error) {
	scalars := map[string]bool{}
	for _, root := range []tree.Root{dst, src} {
		info, err := s.readDir(ctx, root)
		if err != nil {
			return tree.Root{}, err
		}
		for _, n := range info.nodes {
			for _, f := range n.forms {
				scalars[f.Prefix] = scalars[f.Prefix] || f.Rank == 0
			}
		}
	}
	var edits []tree.Edit
	for c, err := range s.Tree.Diff(ctx, dst, src, tree.Span{}) {
		if err != nil {
			return tree.Root{}, err
		}
		if isReserved(c.Key) || !isSub(c.Key) && (own(string(c.Key)) || scalars[string(c.Key)]) {
			edits = append(edits, valueEdit(bytes.Clone(c.Key), c.New))
		}
	}
	return s.Tree.Apply(ctx, dst, edits)
}

// valueEdit puts a value, or deletes the key for nil.
func valueEdit(key []byte, v *tree.Value) tree.Edit {
	if v == nil {
		return tree.Edit{Key: key, Delete: true}
	}
	return tree.Edit{Key: key, Value: *v}
}

// relocate moves the arrays of a side to where they are to be. What lies there gives
// way: arrays go back to where the base has them, and anything else that the side put
// there is a conflict of its own.
func (d *renameDecision) relocate(side int) error {
	m, base, root := d.m, d.r[sideBase], d.r[side]
	if err := d.makeRoom(side); err != nil {
		return err
	}
	var list, absent []rename
	for id, to := range d.to[side] {
		if came := d.moves[side].came[id]; len(came) > 0 {
			list = append(list, rename{id, came[0], to})
		} else if info, _, err := m.s.dirAt(m.ctx, root, DirPath(d.basePath(id))); err != nil {
			return err
		} else if info != nil && info.hasID && info.id == id {
			list = append(list, rename{id, d.basePath(id), to})
		} else {
			absent = append(absent, rename{id, d.basePath(id), to})
		}
	}
	slices.SortFunc(list, func(a, b rename) int { return strings.Compare(a.From, b.From) })
	root, grafts, err := m.detachAll(root, list)
	if err != nil {
		return err
	}
	for _, mv := range absent {
		g := graft{src: base, from: mv.From}
		if _, g.dir, err = m.s.dirAt(m.ctx, base, DirPath(mv.From)); err == nil {
			g.dir, err = m.s.takeOwn(m.ctx, tree.Root{}, g.dir, func(string) bool { return true })
		}
		if err != nil {
			return err
		}
		grafts[mv.id] = g
	}
	for _, path := range slices.Sorted(maps.Keys(d.dropped[side])) {
		_, at, err := m.s.dirAt(m.ctx, root, DirPath(path))
		if err == nil {
			at, err = m.s.takeOwn(m.ctx, at, tree.Root{}, func(string) bool { return true })
		}
		if err == nil {
			root, err = m.s.setDir(m.ctx, root, DirPath(path), at)
		}
		if err != nil {
			return err
		}
	}
	for _, path := range d.reverted[side] {
		if root, err = d.revert(side, root, path); err != nil {
			return err
		}
	}
	all := slices.Concat(list, absent)
	slices.SortFunc(all, func(a, b rename) int { return strings.Compare(a.To, b.To) })
	p := replacer{s: m.s, root: root}
	for _, mv := range all {
		if _, err := p.enter(m.ctx, mv.To); err != nil {
			return err
		}
		_, there, err := m.s.dirAt(m.ctx, p.root, DirPath(mv.To))
		if err != nil {
			return err
		}
		if there.Entries > 0 {
			if ok, err := d.vacated(side, mv, there); err != nil || !ok {
				return err
			}
		}
		if err := p.put(m.ctx, grafts[mv.id], mv.To); err != nil {
			return err
		}
	}
	if err := p.flush(m.ctx); err != nil {
		return err
	}
	d.r[side], err = d.carry(side, p.root, list)
	return err
}

// basePath returns where the base has an array that a side moved or removed.
func (d *renameDecision) basePath(id [16]byte) string {
	for side := sideOurs; side <= sideTheirs; side++ {
		if left := d.moves[side].left[id]; len(left) > 0 {
			return left[0]
		}
	}
	return ""
}

// makeRoom sends away the arrays that a side has where others are to be.
func (d *renameDecision) makeRoom(side int) error {
	came := slices.Clone(d.renames[side])
	slices.SortFunc(came, func(a, b rename) int { return strings.Compare(a.To, b.To) })
	var paths []string
	goHome := func(path string) {
		for _, end := range []string{path, DirPath(path)} {
			i, _ := slices.BinarySearchFunc(came, end, func(mv rename, end string) int { return strings.Compare(mv.To, end) })
			for ; i < len(came) && (came[i].To == path || strings.HasPrefix(came[i].To, DirPath(path))); i++ {
				if _, ok := d.to[side][came[i].id]; !ok && !d.dropped[side][came[i].To] {
					d.to[side][came[i].id] = came[i].From
					paths = append(paths, came[i].From)
				}
			}
		}
	}
	for _, path := range d.reverted[side] {
		goHome(path)
	}
	for _, path := range d.to[side] {
		paths = append(paths, path)
	}
	for len(paths) > 0 {
		path := paths[0]
		paths = paths[1:]
		goHome(path)
		info, _, err := d.m.s.dirAt(d.m.ctx, d.r[side], DirPath(path))
		if err != nil {
			return err
		}
		if info == nil || !info.hasID {
			continue
		}
		// An array that is still where the base has it follows the other side.
		if to := d.moves[otherSide(side)].came[info.id]; len(to) > 0 && len(d.moves[side].came[info.id]) == 0 {
			if _, ok := d.to[side][info.id]; !ok {
				d.to[side][info.id] = to[0]
				paths = append(paths, to[0])
			}
		}
	}
	return nil
}

// revert makes what a side has at a path what the base has there, without arrays that
// the side has elsewhere.
func (d *renameDecision) revert(side int, root tree.Root, path string) (tree.Root, error) {
	s, ctx := d.m.s, d.m.ctx
	root, err := s.DeletePrefix(ctx, root, DirPath(path))
	if err != nil {
		return tree.Root{}, err
	}
	g := graft{src: d.r[sideBase], from: path}
	info, dir, err := s.dirAt(ctx, d.r[sideBase], DirPath(path))
	if err != nil || info == nil || info.hasID && len(d.moves[side].came[info.id]) > 0 {
		return root, err
	}
	g.dir = dir
	return s.graft(ctx, root, g, path)
}

// vacated reports whether a side gives up what it has at a path, for an array.
func (d *renameDecision) vacated(side int, mv rename, there tree.Root) (bool, error) {
	_, base, err := d.m.s.dirAt(d.m.ctx, d.r[sideBase], DirPath(mv.To))
	if err != nil || base == there {
		return err == nil, err
	}
	c := Conflict{Kind: ConflictRename, Path: mv.To}
	c.set(side, "put something else")
	c.set(otherSide(side), "has the array "+mv.From+" there")
	if choice := d.m.ask(c); choice != Refuse {
		if winner, _ := sideOf(choice); winner != side {
			return true, nil
		}
	}
	return false, d.m.add(c)
}

// carry moves what else is in a group that a side made by a rename, when its arrays were
// moved on.
func (d *renameDecision) carry(side int, root tree.Root, moved []rename) (tree.Root, error) {
	groups := groupMoves(moved)
	for _, from := range slices.Sorted(maps.Keys(groups)) {
		kinds, err := d.m.kinds(d.r, DirPath(from))
		if err != nil {
			return tree.Root{}, err
		}
		stays := slices.ContainsFunc(d.renames[side], func(mv rename) bool {
			_, sent := d.to[side][mv.id]
			return !sent && strings.HasPrefix(mv.To, DirPath(from))
		})
		if kinds[sideBase] != noNode || stays {
			continue
		}
		if root, err = d.m.carryDir(root, from, groups[from]); err != nil {
			return tree.Root{}, err
		}
	}
	return root, nil
}

func (m *merger) carryDir(root tree.Root, from, to string) (tree.Root, error) {
	info, dir, err := m.s.dirAt(m.ctx, root, DirPath(from))
	if err != nil || info == nil || info.kind() == arrayNode {
		return root, err
	}
	for e, err := range m.s.Tree.Scan(m.ctx, dir, tree.Span{}) {
		name := string(e.Key)
		switch {
		case err != nil:
		case isReserved(e.Key):
		case isSub(e.Key):
			was, is := DirPath(from)+NodePath(name), DirPath(to)+NodePath(name)
			moved, moveErr := m.s.Move(m.ctx, root, was, is)
			switch {
			case moveErr == nil:
				root = moved
			case errors.Is(moveErr, ErrExists):
				root, err = m.carryDir(root, was, is)
			case !errors.Is(moveErr, errInside):
				err = moveErr
			}
		default:
			root, _, err = m.moveDocument(root, DirPath(from)+name, DirPath(to)+name)
		}
		if err != nil {
			return tree.Root{}, err
		}
	}
	return root, nil
}

// moveDocument moves a document of a root unless there is one at its new key.
func (m *merger) moveDocument(root tree.Root, from, to string) (tree.Root, bool, error) {
	v, ok, err := m.s.Get(m.ctx, root, from)
	if err != nil || !ok {
		return root, false, err
	}
	if _, taken, err := m.s.Get(m.ctx, root, to); err != nil || taken {
		return root, false, err
	}
	root, err = m.s.Apply(m.ctx, root, sortedEdits([]Edit{{Key: from, Delete: true}, {Key: to, Value: v}}))
	return root, true, err
}
