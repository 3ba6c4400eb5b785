package txn

import (
	"context"
	"slices"
	"strings"

	"github.com/zarrdb/zarrdb/kv/tree"
)

// rename is an array that left one path and appears at another.
type rename struct {
	id       [16]byte
	from, to string // node paths
}

// renames returns the arrays that moved between two roots, by their old paths.
// It visits changed directories only.
func (s *space) renames(ctx context.Context, a, b tree.Root) ([]rename, error) {
	m, err := s.arrayMoves(ctx, a, b)
	if err != nil {
		return nil, err
	}
	return m.renames(), nil
}

// arrayMoves says where between two roots arrays left and appeared.
type arrayMoves struct {
	left, came map[[16]byte][]string // node paths
}

func (s *space) arrayMoves(ctx context.Context, a, b tree.Root) (arrayMoves, error) {
	m := arrayMoves{map[[16]byte][]string{}, map[[16]byte][]string{}}
	err := s.changedDirs(ctx, "", a, b, func(path string, ia, ib *dirInfo) error {
		if ia.hasID == ib.hasID && ia.id == ib.id {
			return nil
		}
		path = strings.TrimSuffix(path, "/")
		if ia.hasID {
			m.left[ia.id] = append(m.left[ia.id], path)
		}
		if ib.hasID {
			m.came[ib.id] = append(m.came[ib.id], path)
		}
		return nil
	})
	return m, err
}

// renames are the moves from exactly one path to exactly one other.
func (m *arrayMoves) renames() []rename {
	var out []rename
	for id, from := range m.left {
		if to := m.came[id]; len(from) == 1 && len(to) == 1 {
			out = append(out, rename{id, from[0], to[0]})
		}
	}
	slices.SortFunc(out, func(a, b rename) int { return strings.Compare(a.from, b.from) })
	return out
}

// cameFrom finds out what a path of b was called in a, if that is another path:
// that of the array there, of the array that it lies in, or, for a group, that
// of all arrays in it that have moved.
func (s *space) cameFrom(ctx context.Context, a, b tree.Root, path string) (from string, ok bool, err error) {
	moves, err := s.renames(ctx, a, b)
	if err != nil {
		return "", false, err
	}
	agreed := ""
	for _, mv := range moves {
		switch {
		case mv.to == path:
			return mv.from, true, nil
		case strings.HasPrefix(path, dirPath(mv.to)):
			from, ok = mv.from+path[len(mv.to):], true
		case strings.HasPrefix(mv.to, dirPath(path)):
			outer, isBelow := strings.CutSuffix(mv.from, mv.to[len(path):])
			if !isBelow || outer == "" || agreed != "" && agreed != outer {
				return "", false, nil
			}
			agreed = outer
		}
	}
	if ok || agreed == "" {
		return from, ok, nil
	}
	// A group that was there before has only taken arrays in.
	info, _, err := s.dirAt(ctx, a, dirPath(path))
	return agreed, err == nil && info == nil, err
}

// withRenames moves arrays of root to their new paths. What lies there goes.
func (s *space) withRenames(ctx context.Context, root tree.Root, moves []rename) (tree.Root, error) {
	m := newMerger(ctx, s, mergeOptions{})
	r := sides{sideBase: root}
	err := m.moveArrays(&r, moves, sideOurs, []int{sideBase}, [][]rename{nil})
	return r[sideBase], err
}
