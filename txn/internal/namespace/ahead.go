package namespace

import (
	"context"
	"iter"
	"strings"

	"github.com/zarrdb/zarrdb/kv/tree"
)

// ahead yields the same as items. If pages are read with requests to another process, ahead
// takes items before it yields them, more each time as [tree.Tree.Pace] says, and asks for the directories
// and chunk maps of these items, which roots appends:
//
//	items  | 0 | 1 2 | 3 4 5 6 | 7 8 … |
//	         ^yielded  ^asked for
func ahead[T any](ctx context.Context, t *tree.Tree, items iter.Seq2[T, error], roots func([]tree.Root, *T) []tree.Root) iter.Seq2[T, error] {
	if !t.Batches() {
		return items
	}
	return func(yield func(T, error) bool) {
		var taken, next []T // the pages of taken were asked for, those of next not yet
		var list []tree.Root
		pace := t.Pace()
		size := pace.First
		ask := func() {
			list = list[:0]
			for i := range next {
				list = roots(list, &next[i])
			}
			t.Fetch(ctx, list)
		}
		pass := func() bool {
			for i := range taken {
				if !yield(taken[i], nil) {
					return false
				}
			}
			taken, next = next, taken[:0]
			return true
		}
		rest := func() bool {
			for len(taken)+len(next) > 0 {
				if !pass() {
					return false
				}
			}
			return true
		}
		for it, err := range items {
			if err != nil {
				if rest() {
					yield(it, err)
				}
				return
			}
			if next = append(next, it); len(next) < size {
				continue
			}
			if ask(); !pass() {
				return
			}
			size = pace.Next(size)
		}
		ask()
		rest()
	}
}

// subRoot appends the root of a sub-directory.
func subRoot(to []tree.Root, e *tree.Entry) []tree.Root {
	if isSub(e.Key) && e.Value.Kind == tree.KindChild {
		to = append(to, e.Value.Child)
	}
	return to
}

// changedRoots appends the roots of a sub-directory in two versions.
func changedRoots(to []tree.Root, c *tree.Change) []tree.Root {
	if isSub(c.Key) {
		to = append(to, childOf(c.Old), childOf(c.New))
	}
	return to
}

// Fetch asks for the directories of keys that the caller is about to read, one level after
// the other, if pages are read with requests to another process. It reports no errors: the
// reads of the keys meet them again.
func (s *Space) Fetch(ctx context.Context, root tree.Root, keys iter.Seq[string]) {
	if !s.Tree.Batches() {
		return
	}
	type place struct {
		dir  tree.Root
		rest string
	}
	var at []place
	for key := range keys {
		at = append(at, place{root, key})
	}
	for len(at) > 0 {
		below := at[:0]
		var list []tree.Root
		for _, p := range at {
			slash := strings.IndexByte(p.rest, '/')
			if slash < 0 {
				continue
			}
			info, err := s.readDir(ctx, p.dir)
			if err != nil {
				return
			}
			sub, ok, err := s.subDir(ctx, p.dir, info, p.rest[:slash+1])
			if err != nil {
				return
			}
			if ok {
				list, below = append(list, sub), append(below, place{sub, p.rest[slash+1:]})
			}
		}
		s.Tree.Fetch(ctx, list)
		at = below
	}
}
