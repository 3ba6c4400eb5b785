package history

import (
	"container/heap"
	"context"
	"errors"
	"iter"
	"strings"

	"github.com/zarrdb/zarrdb/kv/tree"
	"github.com/zarrdb/zarrdb/txn/internal/catalog"
	"github.com/zarrdb/zarrdb/txn/internal/namespace"
)

// Versions reads commits and what they hold.
type Versions struct {
	Commit Get // of any commit
	Kept   Get // of a commit whose content is kept; catalog.ErrExpired if it is not
	Space  *namespace.Space
}

// PathCommit is a commit that changed what is at and below a path.
type PathCommit struct {
	*catalog.Commit
	// Path is what it is called in this commit, which differs from where the
	// history began if renames were followed.
	Path string
}

// OfPath yields the ancestors of a commit, and itself, that changed any bytes
// at or below a path, newest first. Of a merge, the side that the path came from
// is followed alone; a merge is yielded if it made something of the path that no
// side had. With follow, arrays are followed to where they were renamed from, and
// groups by the arrays in them. Equal pages are skipped: the cost for each commit
// is that of the pages on the path, not of chunks.
func (v *Versions) OfPath(ctx context.Context, from catalog.CommitID, path string, follow bool) iter.Seq2[PathCommit, error] {
	return func(yield func(PathCommit, error) bool) {
		w := pathWalk{v: v, paths: map[catalog.CommitID]string{}}
		if err := w.push(ctx, from, strings.Trim(path, "/")); err != nil {
			yield(PathCommit{}, err)
			return
		}
		for len(w.queue) > 0 {
			c := heap.Pop(&w.queue).(*catalog.Commit)
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
	v     *Versions
	queue queue
	paths map[catalog.CommitID]string // of every commit that was pushed
}

func (w *pathWalk) push(ctx context.Context, id catalog.CommitID, path string) error {
	if _, ok := w.paths[id]; ok {
		return nil
	}
	c, err := w.v.Commit(ctx, id)
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
func (w *pathWalk) step(ctx context.Context, c *catalog.Commit, follow bool) (changed bool, err error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	s, path := w.v.Space, w.paths[c.ID]
	if len(c.Parents) == 0 {
		change, err := s.FirstChange(ctx, tree.Root{}, c.Root, path)
		return change != nil, err
	}
	was := make([]string, len(c.Parents))
	for i, id := range c.Parents {
		p, err := w.v.Kept(ctx, id)
		if errors.Is(err, catalog.ErrExpired) {
			was[i] = expiredPath
			continue // what was before is not known any more
		}
		if err != nil {
			return false, err
		}
		change, err := s.FirstChange(ctx, p.Root, c.Root, path)
		if err != nil {
			return false, err
		}
		if change == nil {
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
