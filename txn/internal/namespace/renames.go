package namespace

import (
	"context"
	"slices"
	"strings"

	"github.com/zarrdb/zarrdb/kv/tree"
)

// rename is an array that left one path and appears at another.
type rename struct {
	id       [16]byte
	From, To string // node paths
}

// renameIndex finds the renames around a path. Keys are old directories.
type renameIndex map[string]rename

func indexRenames(moves []rename) renameIndex {
	x := make(renameIndex, len(moves))
	for _, mv := range moves {
		x[DirPath(mv.From)] = mv
	}
	return x
}

// around returns the rename of the innermost array that a path is inside of.
func (x renameIndex) around(path string) (rename, bool) {
	for at := strings.LastIndexByte(path, '/'); at >= 0; at = strings.LastIndexByte(path[:at], '/') {
		if mv, ok := x[path[:at+1]]; ok {
			return mv, true
		}
	}
	return rename{}, false
}

// along returns where a path is when the arrays around it have moved.
func (x renameIndex) along(path string) string {
	if mv, ok := x.around(path); ok {
		return DirPath(mv.To) + path[len(DirPath(mv.From)):]
	}
	return path
}

// Renames returns the arrays that moved between two roots, by their old paths.
// It visits changed directories only.
func (s *Space) Renames(ctx context.Context, a, b tree.Root) ([]rename, error) {
	m, err := s.arrayMoves(ctx, a, b)
	if err != nil {
		return nil, err
	}
	return m.renames(), nil
}

// arrayMoves holds the paths that arrays left, and those where they appeared, between
// two roots.
type arrayMoves struct {
	left, came map[[16]byte][]string // node paths
}

func (s *Space) arrayMoves(ctx context.Context, a, b tree.Root) (arrayMoves, error) {
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
	slices.SortFunc(out, func(a, b rename) int { return strings.Compare(a.From, b.From) })
	return out
}

// CameFrom finds the path in a of what b has at a path, if it is another one: that of the array there, of the array that it lies in, or, for a group, that
// of all arrays in it that have moved.
func (s *Space) CameFrom(ctx context.Context, a, b tree.Root, path string) (from string, ok bool, err error) {
	moves, err := s.Renames(ctx, a, b)
	if err != nil {
		return "", false, err
	}
	agreed := ""
	for _, mv := range moves {
		switch {
		case mv.To == path:
			return mv.From, true, nil
		case strings.HasPrefix(path, DirPath(mv.To)):
			from, ok = mv.From+path[len(mv.To):], true
		case strings.HasPrefix(mv.To, DirPath(path)):
			outer, isBelow := strings.CutSuffix(mv.From, mv.To[len(path):])
			if !isBelow || outer == "" || agreed != "" && agreed != outer {
				return "", false, nil
			}
			agreed = outer
		}
	}
	if ok || agreed == "" {
		return from, ok, nil
	}
	// A group that was there before only got arrays from elsewhere.
	info, _, err := s.dirAt(ctx, a, DirPath(path))
	return agreed, err == nil && info == nil, err
}

// ApplyRenames moves arrays of root to their new paths. It deletes what lies there.
func (s *Space) ApplyRenames(ctx context.Context, root tree.Root, moves []rename) (tree.Root, error) {
	m := newMerger(ctx, s, MergeOptions{})
	r := sides{sideBase: root}
	err := m.moveArrays(&r, moves, sideOurs, []int{sideBase}, []renameIndex{nil})
	return r[sideBase], err
}
