package namespace

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/tree"
)

// What one side puts into a group that the other side renamed goes into the renamed group,
// if the choice is for it.

// groupMoves infers which groups were renamed: all arrays that left a group came to the
// same other one, at the same places. Groups have no identity.
func groupMoves(moves []rename) map[string]string {
	out := map[string]string{}
	for _, mv := range moves {
		from, to, same := mv.From, mv.To, true // an array may have got another name
		for {
			up, dest := parentPath(from), parentPath(to)
			if up == "" {
				break
			}
			if same = same && dest != ""; !same {
				dest = ""
			}
			if old, ok := out[up]; ok && old != dest {
				dest = ""
			}
			out[up] = dest
			same = same && up[strings.LastIndexByte(up, '/')+1:] == dest[strings.LastIndexByte(dest, '/')+1:]
			from, to = up, parentPath(to)
		}
	}
	maps.DeleteFunc(out, func(from, to string) bool { return to == "" || strings.HasPrefix(DirPath(to), DirPath(from)) })
	return out
}

func parentPath(path string) string { return path[:max(strings.LastIndexByte(path, '/'), 0)] }

// intoRenamed finds what one side put into a group that the other renamed. If it is
// chosen, it goes into the renamed group, as the arrays of the group do. moves become
// those of the sides afterwards.
func (m *merger) intoRenamed(r *sides, moves *[3]arrayMoves) (err error) {
	before := *r
	for x := sideOurs; x <= sideTheirs; x++ {
		groups := groupMoves(moves[x].renames())
		for _, from := range slices.Sorted(maps.Keys(groups)) {
			to := groups[from]
			up, dest := parentPath(from), parentPath(to)
			if up != "" && groups[up] == dest && from[len(up):] == to[len(dest):] {
				continue // found from the outer group
			}
			if kinds, err := m.kinds(r, DirPath(from)); err != nil {
				return err
			} else if kinds[sideBase] != groupNode {
				continue // without a document of its own there is nothing that was renamed
			}
			if err := m.newInRenamed(r, x, from, to); err != nil {
				return err
			}
		}
	}
	if *r != before {
		if *moves, err = m.movesOf(r); err == nil {
			m.noteCame(moves)
		}
	}
	return err
}

func (m *merger) newInRenamed(r *sides, x int, from, to string) error {
	y := otherSide(x)
	kinds, err := m.kinds(r, DirPath(from))
	if err != nil || kinds[sideBase] == arrayNode || kinds[x] != noNode || kinds[y] == arrayNode {
		return err
	}
	_, base, err := m.s.dirAt(m.ctx, r[sideBase], DirPath(from))
	if err != nil {
		return err
	}
	_, dir, err := m.s.dirAt(m.ctx, r[y], DirPath(from))
	if err != nil || dir.Entries == 0 {
		return err
	}
	for c, err := range m.s.Tree.Diff(m.ctx, base, dir, tree.Span{}) {
		if err == nil && c.New != nil && !isReserved(c.Key) {
			err = m.putInRenamed(r, x, DirPath(from)+string(c.Key), DirPath(to)+string(c.Key), &c)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (m *merger) putInRenamed(r *sides, x int, from, to string, put *tree.Change) error {
	y := otherSide(x)
	if isSub(put.Key) && put.Old != nil {
		return m.newInRenamed(r, x, NodePath(from), NodePath(to))
	}
	if !isSub(put.Key) && (m.s.policy.Derived(string(put.Key)) || SameBytes(put.Old, put.New)) {
		return nil
	}
	c := Conflict{Kind: ConflictAncestor, Path: NodePath(from), Also: []string{NodePath(to)}}
	c.set(x, "renamed to "+NodePath(to[:len(to)-len(put.Key)]))
	c.set(y, "put")
	if put.Old != nil {
		c.Kind, c.Base = ConflictGone, brief(put.Old)
		c.set(y, "changed")
	}
	choice, err := m.askOrAdd(c)
	if err != nil || choice == Refuse {
		return err
	}
	winner, _ := sideOf(choice)
	switch {
	case winner == x && put.Old != nil:
		r[y], err = m.s.Apply(m.ctx, r[y], []Edit{{Key: from, Value: *put.Old}})
	case winner == x && isSub(put.Key):
		home, err := m.sentHome(r, y, from)
		if err != nil {
			return err
		}
		if !home {
			return m.add(c) // the arrays would be lost
		}
		r[y], err = m.s.DeletePrefix(m.ctx, r[y], from)
		return err
	case winner == x:
		r[y], err = m.s.Apply(m.ctx, r[y], []Edit{{Key: from, Delete: true}})
	case isSub(put.Key):
		root, moveErr := m.s.Move(m.ctx, r[y], NodePath(from), NodePath(to))
		if moveErr == nil {
			r[y] = root
		} else if !errors.Is(moveErr, ErrExists) && !errors.Is(moveErr, errInside) {
			return moveErr
		}
	default:
		root, ok, err := m.moveDocument(r[y], from, to)
		if err != nil || !ok {
			return err
		}
		r[y] = root
		if put.Old != nil { // the document itself went along
			r[sideBase], _, err = m.moveDocument(r[sideBase], from, to)
			return err
		}
	}
	return err
}

// sentHome moves the arrays that a side renamed into a directory back to where the base has
// them. It reports whether there is room for all.
func (m *merger) sentHome(r *sides, side int, dir string) (bool, error) {
	if !m.movedIn(side, dir) {
		return true, nil
	}
	moves, err := m.s.Renames(m.ctx, r[sideBase], r[side])
	for _, mv := range moves {
		if err != nil {
			break
		}
		if strings.HasPrefix(DirPath(mv.To), dir) {
			r[side], err = m.s.Move(m.ctx, r[side], mv.To, mv.From)
		}
	}
	if errors.Is(err, ErrExists) || errors.Is(err, errInside) || errors.Is(err, kv.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}
