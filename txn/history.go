package txn

import (
	"container/heap"
	"context"
	"errors"
	"iter"
	"math"
	"slices"
	"strings"

	"github.com/zarrdb/zarrdb/kv/tree"
	"github.com/zarrdb/zarrdb/txn/internal/namespace"
)

// PathCommit is a commit that changed what is at and below a path.
type PathCommit struct {
	*Commit
	// Path is what it is called in this commit, which differs from where the
	// history began if renames were followed.
	Path string
}

// History yields the ancestors of a commit, and itself, that changed any bytes
// at or below a path, newest first. Of a merge, the side that the path came from
// is followed alone; a merge is yielded if it made something of the path that no
// side had. With follow, arrays are followed to where they were renamed from, and
// groups by the arrays in them. Equal pages are skipped: the cost for each commit
// is that of the pages on the path, not of chunks.
func (db *DB) History(ctx context.Context, from CommitID, path string, follow bool) iter.Seq2[PathCommit, error] {
	return func(yield func(PathCommit, error) bool) {
		w := pathWalk{db: db, paths: map[CommitID]string{}}
		if err := w.push(ctx, from, strings.Trim(path, "/")); err != nil {
			yield(PathCommit{}, err)
			return
		}
		for len(w.queue) > 0 {
			c := heap.Pop(&w.queue).(*Commit)
			changed, err := w.step(ctx, c, follow)
			if err != nil {
				yield(PathCommit{}, err)
				return
			}
			if changed && !yield(PathCommit{c, w.paths[c.ID]}, nil) {
				return
			}
		}
	}
}

// pathWalk visits the history of a path.
type pathWalk struct {
	db    *DB
	queue commitQueue
	paths map[CommitID]string // of every commit that was pushed
}

func (w *pathWalk) push(ctx context.Context, id CommitID, path string) error {
	if _, ok := w.paths[id]; ok {
		return nil
	}
	c, err := w.db.Commit(ctx, id)
	if err != nil {
		return err
	}
	w.paths[id] = path
	heap.Push(&w.queue, c)
	return nil
}

// expiredPath stands for a path in a version that has expired. No key is like it.
const expiredPath = "\x00"

// step reports whether a commit changed its path, and pushes the parents.
func (w *pathWalk) step(ctx context.Context, c *Commit, follow bool) (changed bool, err error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	s, path := w.db.space, w.paths[c.ID]
	if len(c.Parents) == 0 {
		same, err := s.SameAt(ctx, tree.Root{}, c.Root, path)
		return !same, err
	}
	was := make([]string, len(c.Parents))
	for i, id := range c.Parents {
		p, err := w.db.version(ctx, id)
		if errors.Is(err, ErrExpired) {
			was[i] = expiredPath
			continue // what was before is not known any more
		}
		if err != nil {
			return false, err
		}
		same, err := s.SameAt(ctx, p.Root, c.Root, path)
		if err != nil {
			return false, err
		}
		if same {
			return false, w.push(ctx, id, path)
		}
		was[i] = path
		if !follow {
			continue
		}
		if from, ok, err := s.CameFrom(ctx, p.Root, c.Root, path); err != nil {
			return false, err
		} else if ok {
			was[i] = from
		}
	}
	for i, id := range c.Parents {
		if was[i] == expiredPath {
			continue
		}
		if err := w.push(ctx, id, was[i]); err != nil {
			return false, err
		}
	}
	return true, nil
}

// Rename says that an array that was at From is at To.
type Rename struct{ From, To string }

// Renames returns the arrays that are in two versions at different paths, by
// identity, sorted by their old paths. It reads changed directories only.
func (db *DB) Renames(ctx context.Context, from, to CommitID) ([]Rename, error) {
	older, err := db.Snapshot(ctx, from)
	if err != nil {
		return nil, err
	}
	defer older.Close()
	newer, err := db.Snapshot(ctx, to)
	if err != nil {
		return nil, err
	}
	defer newer.Close()
	moves, err := db.space.Renames(ctx, older.commit.Root, newer.commit.Root)
	list := make([]Rename, len(moves))
	for i, mv := range moves {
		list[i] = Rename{mv.From, mv.To}
	}
	return slices.Clip(list), err
}

// DiffFollowed is [DB.Diff] with arrays that were renamed compared with what they
// were, under their new paths; the renames that touch prefix are returned too.
// What lay at a new path before is not told.
func (db *DB) DiffFollowed(ctx context.Context, from, to CommitID, prefix string) ([]Rename, iter.Seq2[Change, error], error) {
	older, err := db.Commit(ctx, from)
	if err != nil {
		return nil, nil, err
	}
	newer, err := db.Commit(ctx, to)
	if err != nil {
		return nil, nil, err
	}
	// The renames are made in the older version, in memory.
	s := db.space.With(newOverlay(db.committed(), math.MaxInt64))
	moves, err := s.Renames(ctx, older.Root, newer.Root)
	if err != nil {
		return nil, nil, err
	}
	was, err := s.ApplyRenames(ctx, older.Root, moves)
	if err != nil {
		return nil, nil, err
	}
	var list []Rename
	for _, mv := range moves {
		if strings.HasPrefix(namespace.DirPath(mv.From), prefix) || strings.HasPrefix(namespace.DirPath(mv.To), prefix) {
			list = append(list, Rename{mv.From, mv.To})
		}
	}
	return list, func(yield func(Change, error) bool) {
		changes(s.Diff(ctx, was, newer.Root, prefix), yield)
	}, nil
}

// DiffNode compares what is below a path in one version with what is below a path
// in another; keys are relative to both.
func (db *DB) DiffNode(ctx context.Context, from CommitID, path string, to CommitID, newPath string) iter.Seq2[Change, error] {
	return func(yield func(Change, error) bool) {
		var roots [2]tree.Root
		for i, at := range []struct {
			id   CommitID
			path string
		}{{from, path}, {to, newPath}} {
			c, err := db.Commit(ctx, at.id)
			if err == nil {
				roots[i], _, err = db.space.Dir(ctx, c.Root, namespace.DirPath(strings.Trim(at.path, "/")))
			}
			if err != nil {
				yield(Change{}, err)
				return
			}
		}
		changes(db.space.Diff(ctx, roots[0], roots[1], ""), yield)
	}
}
