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
	// BlameKeys bounds the keys that BlameRuns holds; 0 is the default.
	BlameKeys int
}

// PathCommit is a commit that changed what is at and below a path.
type PathCommit struct {
	*catalog.Commit
	// Path is what it is called in this commit, which differs from where the
	// history began if renames were followed.
	Path string
	// OrExpired says that versions between this one and the one before that is kept
	// have expired: one of them may have made the change.
	OrExpired bool
}

// OfPath yields the ancestors of a commit, and itself, that changed any bytes
// at or below a path, newest first. Of a merge, the side that the path came from
// is followed alone; a merge is yielded if it made something of the path that no
// side had. With follow, arrays are followed to where they were renamed from, and
// groups by the arrays in them. Commits whose versions have expired are passed over; it is an error
// if the first one has. Equal pages are skipped: the cost for each commit
// is that of the pages on the path, not of chunks.
func (v *Versions) OfPath(ctx context.Context, from catalog.CommitID, path string, follow bool) iter.Seq2[PathCommit, error] {
	return func(yield func(PathCommit, error) bool) {
		w := pathWalk{v: v, paths: map[catalog.CommitID]string{}}
		if _, err := v.Kept(ctx, from); err != nil {
			yield(PathCommit{}, err)
			return
		}
		if err := w.push(ctx, from, strings.Trim(path, "/")); err != nil {
			yield(PathCommit{}, err)
			return
		}
		for len(w.queue) > 0 {
			c := heap.Pop(&w.queue).(*catalog.Commit)
			changed, unsure, err := w.step(ctx, c, follow)
			if err != nil {
				yield(PathCommit{}, err)
				return
			}
			if changed && !yield(PathCommit{c, w.paths[c.ID], unsure}, nil) {
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

// before returns the parents of a commit whose versions are kept and, in place of one
// that has expired, its nearest ancestors that are kept.
func (v *Versions) before(ctx context.Context, c *catalog.Commit) (kept []*catalog.Commit, expired bool, err error) {
	gone := false
	for _, id := range c.Parents {
		for p, err := range Ancestors(ctx, v.Commit, []catalog.CommitID{id}, func(*catalog.Commit) bool { return gone }) {
			if err == nil {
				p, err = v.Kept(ctx, p.ID)
			}
			gone = errors.Is(err, catalog.ErrExpired)
			switch {
			case gone:
				expired = true
			case err != nil:
				return nil, false, err
			default:
				kept = append(kept, p)
			}
		}
	}
	return kept, expired, nil
}

// step reports whether a commit changed its path, and whether that is not sure because
// versions before have expired, and pushes the commits before it.
func (w *pathWalk) step(ctx context.Context, c *catalog.Commit, follow bool) (changed, unsure bool, err error) {
	if err := ctx.Err(); err != nil {
		return false, false, err
	}
	s, path := w.v.Space, w.paths[c.ID]
	before, expired, err := w.v.before(ctx, c)
	if err != nil {
		return false, false, err
	}
	if len(before) == 0 {
		change, err := s.FirstChange(ctx, tree.Root{}, c.Root, path)
		return change != nil, expired, err
	}
	was := make([]string, len(before))
	for i, p := range before {
		change, err := s.FirstChange(ctx, p.Root, c.Root, path)
		if err != nil {
			return false, false, err
		}
		if change == nil {
			return false, false, w.push(ctx, p.ID, path)
		}
		was[i] = path
		if !follow {
			continue
		}
		if from, ok, err := s.CameFrom(ctx, p.Root, c.Root, path); err != nil {
			return false, false, err
		} else if ok {
			was[i] = from
		}
	}
	for i, p := range before {
		if err := w.push(ctx, p.ID, was[i]); err != nil {
			return false, false, err
		}
	}
	return true, expired, nil
}
