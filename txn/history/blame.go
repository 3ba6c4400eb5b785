package history

import (
	"container/heap"
	"context"
	"fmt"
	"strings"

	"github.com/zarrdb/zarrdb/kv/tree"
	"github.com/zarrdb/zarrdb/txn/internal/catalog"
	"github.com/zarrdb/zarrdb/txn/internal/namespace"
)

// Blame finds for each of some keys the commit that last changed its bytes, up
// to and including the commit at. Keys are relative to path, the path of an array
// (or of any node), which is followed through renames; result i belongs to
// keys[i]. The result of a key without a value is the commit that removed the value,
// or made the array. A merge is named only for what no side had.
//
// Its cost is, for each commit on the way, the smaller of what the commit changed
// in the array and of the keys still in question; nothing if the commit left the
// array alone.
func (v *Versions) Blame(ctx context.Context, at catalog.CommitID, path string, keys []string) ([]*catalog.Commit, error) {
	result := make([]*catalog.Commit, len(keys))
	err := v.blame(ctx, at, path, keys, &blameWindow{result: result})
	return result, err
}

// blame is Blame, and of the places of a window if it has any. Results are in the window.
func (v *Versions) blame(ctx context.Context, at catalog.CommitID, path string, keys []string, w *blameWindow) error {
	path = strings.Trim(path, "/")
	b := blamer{v: v, keys: keys, index: map[string]int{}, result: w.result, window: w, waiting: map[catalog.CommitID]*blameStep{}}
	all := map[int]struct{}{}
	for i, k := range keys {
		if _, ok := b.index[k]; ok {
			return fmt.Errorf("blame /%s: key %q is named twice", path, k)
		}
		b.index[k], all[i] = i, struct{}{}
	}
	if err := b.push(ctx, at, path, all, w.place != nil); err != nil {
		return fmt.Errorf("blame /%s: %w", path, err)
	}
	for len(b.queue) > 0 {
		c := heap.Pop(&b.queue).(*catalog.Commit)
		if err := b.visit(ctx, c, b.waiting[c.ID]); err != nil {
			return fmt.Errorf("blame /%s at %s: %w", path, c.ID.Short(), err)
		}
		delete(b.waiting, c.ID)
	}
	w.result = b.result
	return nil
}

type blamer struct {
	v       *Versions
	keys    []string
	index   map[string]int
	queue   queue
	waiting map[catalog.CommitID]*blameStep
	result  []*catalog.Commit
	window  *blameWindow
}

// blameStep is what is still in question at a commit.
type blameStep struct {
	path string
	keys map[int]struct{}
	rest bool // and all places of the window that are not listed
}

// push hands keys on to a commit. The map is the step's from now on.
func (b *blamer) push(ctx context.Context, id catalog.CommitID, path string, keys map[int]struct{}, rest bool) error {
	if len(keys) == 0 && !rest {
		return nil
	}
	if step := b.waiting[id]; step != nil {
		step.rest = step.rest || rest
		for i := range keys {
			step.keys[i] = struct{}{}
		}
		return nil
	}
	c, err := b.v.Commit(ctx, id)
	if err != nil {
		return err
	}
	b.waiting[id] = &blameStep{path, keys, rest}
	heap.Push(&b.queue, c)
	return nil
}

// visit hands on to each parent the keys that are there as they are here. What
// no parent has is this commit's.
func (b *blamer) visit(ctx context.Context, c *catalog.Commit, step *blameStep) error {
	here, _, err := b.v.Space.Dir(ctx, c.Root, namespace.DirPath(step.path))
	if err != nil {
		return err
	}
	left, rest := step.keys, step.rest
	before, _, err := b.v.before(ctx, c)
	if err != nil {
		return err
	}
	for _, p := range before {
		if len(left) == 0 && !rest {
			break
		}
		was, ok, err := b.pathIn(ctx, p.Root, c.Root, step.path)
		if err != nil {
			return err
		}
		if !ok {
			continue
		}
		there, _, err := b.v.Space.Dir(ctx, p.Root, namespace.DirPath(was))
		if err != nil {
			return err
		}
		changed, err := b.changed(ctx, there, here, left, rest)
		if err != nil {
			return err
		}
		for i := range changed {
			delete(left, i)
		}
		if err := b.push(ctx, p.ID, was, left, rest); err != nil {
			return err
		}
		left, rest = changed, false
	}
	if rest {
		b.window.rest = c
	}
	for i := range left {
		b.result[i] = c
	}
	return nil
}

// pathIn returns what an array is called in a parent; ok is false if it is not
// there. A node that is no array is the same if the path is.
func (b *blamer) pathIn(ctx context.Context, parent, root tree.Root, path string) (string, bool, error) {
	id, isArray, err := b.v.Space.Identity(ctx, root, path)
	if err != nil {
		return "", false, err
	}
	was, wasArray, err := b.v.Space.Identity(ctx, parent, path)
	if err != nil {
		return "", false, err
	}
	if isArray == wasArray && id == was {
		_, ok, err := b.v.Space.Dir(ctx, parent, namespace.DirPath(path))
		return path, ok, err
	}
	if !isArray {
		return "", false, nil
	}
	moves, err := b.v.Space.Renames(ctx, parent, root)
	for _, mv := range moves {
		if mv.To == path {
			return mv.From, true, nil
		}
	}
	return "", false, err
}

// fewKeys is up to how many keys are looked up in both versions: that reads fewer pages than a comparison of the versions.
const fewKeys = 4

// changed returns those of some keys whose bytes differ between two directories, and with
// rest those that it lists.
func (b *blamer) changed(ctx context.Context, there, here tree.Root, keys map[int]struct{}, rest bool) (map[int]struct{}, error) {
	// Few keys, or many changes to few keys: ask for the keys.
	if len(keys) <= fewKeys && !rest {
		return b.changedOneByOne(ctx, there, here, keys)
	}
	out := map[int]struct{}{}
	budget := 4*len(keys) + 64
	for it, err := range b.v.Space.Diff(ctx, there, here, "") {
		if err != nil {
			return nil, err
		}
		i, known := b.index[it.Key]
		if known {
			_, known = keys[i]
		} else if rest {
			i, known = b.window.list(b, it.Key)
		}
		if known {
			out[i] = struct{}{}
		}
		if budget--; budget < 0 && !rest {
			return b.changedOneByOne(ctx, there, here, keys)
		}
	}
	return out, nil
}

func (b *blamer) changedOneByOne(ctx context.Context, there, here tree.Root, keys map[int]struct{}) (map[int]struct{}, error) {
	out := map[int]struct{}{}
	for i := range keys {
		if b.keys[i] == "" {
			continue // of a later window
		}
		was, inOld, err := b.v.Space.Get(ctx, there, b.keys[i])
		if err != nil {
			return nil, err
		}
		is, inNew, err := b.v.Space.Get(ctx, here, b.keys[i])
		if err != nil {
			return nil, err
		}
		if inOld != inNew || inOld && !namespace.SameBytes(&was, &is) {
			out[i] = struct{}{}
		}
	}
	return out, nil
}
