package namespace

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/zarrdb/zarrdb/kv/tree"
)

// When a form appears in a directory, keys that were documents below it or
// chunks of a form further up get a new home. Three steps move them, for whatever
// reason the form appears: delete them under the old forms, add the form, put
// them under the new forms. The first and the last walk over the same old root,
// so memory is bounded by a batch.
//
// When a form goes its map is empty, so no key has to move.

// formAt is a form in the directory at dir, which is empty or ends in a slash.
type formAt struct {
	dir string
	Form
}

// visit is called for each key of a walk, in any order; its error ends the walk.
type visit func(key string, v tree.Value) error

// errStop ends a walk that has seen enough.
var errStop = errors.New("txn: stop")

// inBatches collects the keys of a walk into puts, ascending and each key once,
// which fn may change and must not keep.
func (s *Space) inBatches(walk func(visit) error, fn func([]Edit) error) error {
	var batch []Edit
	flush := func() error {
		slices.SortFunc(batch, func(a, b Edit) int { return strings.Compare(a.Key, b.Key) })
		batch = slices.CompactFunc(batch, func(a, b Edit) bool { return a.Key == b.Key })
		err := fn(batch)
		batch = batch[:0]
		return err
	}
	err := walk(func(key string, v tree.Value) error {
		if batch = append(batch, Edit{Key: key, Value: v}); len(batch) < s.Limits.Moved {
			return nil
		}
		return flush()
	})
	if err != nil || len(batch) == 0 {
		return err
	}
	return flush()
}

// rehome moves the keys that the given forms match to their new homes; change adds
// the forms.
func (s *Space) rehome(ctx context.Context, old tree.Root, forms []formAt, change func(tree.Root) (tree.Root, error)) (tree.Root, error) {
	root := old
	step := func(del bool, with []formAt) error {
		walk := func(fn visit) error { return s.captured(ctx, old, forms, fn) }
		return s.inBatches(walk, func(batch []Edit) (err error) {
			for i := range batch {
				batch[i].Delete = del
			}
			root, err = s.place(ctx, root, batch, nil, with)
			return err
		})
	}
	if err := step(true, nil); err != nil {
		return tree.Root{}, err
	}
	root, err := change(root)
	if err != nil {
		return tree.Root{}, err
	}
	err = step(false, forms)
	return root, err
}

// movedBy returns those forms that edits of node documents add and that match keys
// which exist already.
func (s *Space) movedBy(ctx context.Context, root tree.Root, edits []Edit, nodes []nodeEdit) ([]formAt, error) {
	var moved []formAt
	for _, n := range nodes {
		if n.doc == nil || len(n.doc.forms) == 0 {
			continue
		}
		dir, _ := SplitKey(edits[n.edit].Key)
		info, _, err := s.dirAt(ctx, root, dir)
		if err != nil {
			return nil, err
		}
		for _, f := range n.doc.forms {
			at := formAt{dir, f}
			if f.Rank == 0 || info != nil && info.form(f) != nil || slices.Contains(moved, at) {
				continue
			}
			any, err := s.captures(ctx, root, at)
			if err != nil {
				return nil, err
			}
			if any {
				moved = append(moved, at)
			}
		}
	}
	return moved, nil
}

// captures reports whether some key would move if the form appeared.
func (s *Space) captures(ctx context.Context, root tree.Root, at formAt) (bool, error) {
	err := s.captured(ctx, root, []formAt{at}, func(string, tree.Value) error { return errStop })
	if err == errStop {
		return true, nil
	}
	return false, err
}

// captured visits the keys of root that would move if the forms appeared. A key
// that several forms match is visited several times.
func (s *Space) captured(ctx context.Context, root tree.Root, forms []formAt, fn visit) error {
	for i := range forms {
		at := &forms[i]
		frames, err := s.walk(ctx, root, at.dir)
		if err != nil {
			return err
		}
		if last := frames[len(frames)-1]; last.path == at.dir {
			frames = frames[:len(frames)-1]
			if err := s.matchingDocs(ctx, last.root, at.dir, "", &at.Form, fn); err != nil {
				return err
			}
		}
		err = s.chunksBelow(ctx, frames, at.dir, func(key string, v tree.Value) error {
			if _, ok := at.parse(nil, key[len(at.dir):]); !ok {
				return nil
			}
			return fn(key, v)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// chunksBelow visits the keys that begin with path and are in chunk maps of the
// given directories, all above path.
func (s *Space) chunksBelow(ctx context.Context, frames []dirFrame, path string, fn visit) error {
	for _, fr := range frames {
		key := []byte(fr.path)
		for i := range fr.info.forms {
			f := &fr.info.forms[i]
			cut, ok := f.cut(path[len(fr.path):])
			if !ok {
				continue
			}
			for from, to := range cut.spans {
				for e, err := range s.Tree.Scan(ctx, f.root, tree.Span{From: from, To: to}) {
					if err != nil {
						return err
					}
					if key, ok = f.print(key[:len(fr.path)], e.Key); !ok {
						return corrupt("chunk map of %q: coordinates %x", fr.path, e.Key)
					}
					if err := fn(string(key), e.Value); err != nil {
						return err
					}
				}
			}
		}
	}
	return nil
}

// matchingDocs visits the documents at and below a directory that a form of the
// directory at base matches; rel is the path from base to the directory, empty or
// ending in a slash. Names that the form cannot match are not read.
func (s *Space) matchingDocs(ctx context.Context, root tree.Root, base, rel string, f *Form, fn visit) error {
	if _, ok := f.cut(rel); !ok || root.Entries == 0 {
		return nil
	}
	span := tree.Span{From: []byte("0"), To: []byte(":")} // a number follows
	if len(rel) < len(f.Prefix) {
		next := f.Prefix[len(rel):]
		if slash := strings.IndexByte(next, '/'); slash >= 0 {
			info, err := s.readDir(ctx, root)
			if err != nil {
				return err
			}
			sub, _, err := s.subDir(ctx, root, info, next[:slash+1])
			if err != nil {
				return err
			}
			return s.matchingDocs(ctx, sub, base, rel+next[:slash+1], f, fn)
		}
		span = tree.Span{From: []byte(next), To: keyAfter([]byte(next))}
	}
	for e, err := range s.Tree.Scan(ctx, root, span) {
		if err != nil {
			return err
		}
		key := rel + string(e.Key)
		if isSub(e.Key) {
			err = s.matchingDocs(ctx, e.Value.Child, base, key, f, fn)
		} else if _, ok := f.parse(nil, key); ok {
			err = fn(base+key, e.Value)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
