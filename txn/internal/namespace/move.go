package namespace

import (
	"context"
	"fmt"
	"strings"

	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/tree"
)

// DeletePrefix removes every key that begins with prefix. It costs a handful of
// pages, however many keys there are: they are ranges in one directory and in
// the chunk maps of the directories above.
func (s *Space) DeletePrefix(ctx context.Context, root tree.Root, prefix string) (tree.Root, error) {
	if prefix == "" || root.Entries == 0 {
		return tree.Root{}, nil
	}
	info, err := s.readDir(ctx, root)
	if err != nil {
		return tree.Root{}, err
	}
	state, err := s.eraseChunks(ctx, &info.dirState, prefix)
	if err != nil {
		return tree.Root{}, err
	}
	out := dirWriter{s: s, root: root}
	if slash := strings.IndexByte(prefix, '/'); slash >= 0 {
		name, rest := prefix[:slash+1], prefix[slash+1:]
		child, ok, err := s.subDir(ctx, root, info, name)
		if err != nil {
			return tree.Root{}, err
		}
		if ok {
			sub, err := s.DeletePrefix(ctx, child, rest)
			if err != nil {
				return tree.Root{}, err
			}
			if sub != child {
				out.edits = append(out.edits, subEdit(keyBytes(name), sub))
			}
		}
	} else {
		span := tree.Span{From: []byte(prefix), To: keyAfter([]byte(prefix))}
		if out.root, err = s.Tree.DeleteRange(ctx, root, span); err != nil {
			return tree.Root{}, err
		}
		for _, n := range info.nodes {
			if strings.HasPrefix(n.name, prefix) {
				state.nodes = setNode(state.nodes, n.name, nil)
			}
		}
	}
	s.normalize(&state)
	return out.finish(ctx, stateEdits(&info.dirState, &state))
}

// eraseChunks removes the chunks of a directory whose keys begin with prefix.
func (s *Space) eraseChunks(ctx context.Context, d *dirState, prefix string) (dirState, error) {
	state := *d
	state.forms = append([]dirForm(nil), d.forms...)
	for i := range state.forms {
		f := &state.forms[i]
		cut, ok := f.cut(prefix)
		if !ok {
			continue
		}
		for from, to := range cut.spans {
			var err error
			if f.root, err = s.Tree.DeleteRange(ctx, f.root, tree.Span{From: from, To: to}); err != nil {
				return dirState{}, err
			}
		}
	}
	return state, nil
}

// Move renames a node: the document at from and all that is below it. Errors:
// kv.ErrNotFound if there is nothing, ErrExists if there is something at to, but for
// the node itself, which then stays.
// Arrays keep their identity. It costs a handful of pages, except for keys
// whose home changes because a form above from or to matches them.
func (s *Space) Move(ctx context.Context, root tree.Root, from, to string) (tree.Root, error) {
	if from != to && strings.HasPrefix(to, DirPath(from)) {
		return tree.Root{}, fmt.Errorf("txn: move %q to %q: %w", from, to, errInside)
	}
	g, err := s.nodeAt(ctx, root, from)
	if err != nil {
		return tree.Root{}, err
	}
	if from == to {
		return root, nil
	}
	if err := s.checkFree(ctx, root, to); err != nil {
		return tree.Root{}, err
	}
	if root, err = s.DeletePrefix(ctx, root, DirPath(from)); err != nil {
		return tree.Root{}, err
	}
	if g.doc != nil {
		if root, err = s.Apply(ctx, root, []Edit{{Key: from, Delete: true}}); err != nil {
			return tree.Root{}, err
		}
	}
	return s.graft(ctx, root, g, to)
}

// errInside means that a node would be moved into itself.
var errInside = fmt.Errorf("%w: the destination is inside the node", kv.ErrInvalidKey)

// Copy puts a copy of the node from of src at to of dst. Errors are those of
// move. Arrays get fresh identities, which costs a page for each directory;
// chunks are shared.
func (s *Space) Copy(ctx context.Context, dst, src tree.Root, from, to string, newID func() [16]byte) (tree.Root, error) {
	g, err := s.nodeAt(ctx, src, from)
	if err != nil {
		return tree.Root{}, err
	}
	if err := s.checkFree(ctx, dst, to); err != nil {
		return tree.Root{}, err
	}
	g.dir, err = s.changeIDs(ctx, g.dir, DirPath(from), func(string, [16]byte) ([16]byte, error) { return newID(), nil })
	if err != nil {
		return tree.Root{}, err
	}
	return s.graft(ctx, dst, g, to)
}

// graft is a node of a root, to be put at another path or into another root.
type graft struct {
	src  tree.Root
	from string
	doc  *tree.Value // at from
	dir  tree.Root   // below it; chunks of directories above are in src only

	plain bool // no directory above can have its chunks
}

// nodeAt finds a node.
func (s *Space) nodeAt(ctx context.Context, root tree.Root, path string) (g graft, err error) {
	g = graft{src: root, from: path}
	if path != "" {
		v, ok, err := s.Get(ctx, root, path)
		if err != nil {
			return g, err
		}
		if ok {
			g.doc = &v
		}
	}
	if _, g.dir, err = s.dirAt(ctx, root, DirPath(path)); err != nil {
		return g, err
	}
	if g.doc == nil && g.dir.Entries == 0 {
		any, err := s.Any(ctx, root, DirPath(path))
		if err == nil && !any {
			err = fmt.Errorf("txn: %q: %w", path, kv.ErrNotFound)
		}
		return g, err
	}
	return g, nil
}

// checkFree checks that there is nothing at a path.
func (s *Space) checkFree(ctx context.Context, root tree.Root, path string) error {
	used, err := s.Any(ctx, root, DirPath(path))
	if err == nil && !used && path != "" {
		_, used, err = s.Get(ctx, root, path)
	}
	if err == nil && used {
		err = fmt.Errorf("txn: %q: %w", path, ErrExists)
	}
	return err
}

// graft puts a node at a path where there is nothing.
func (s *Space) graft(ctx context.Context, root tree.Root, g graft, to string) (tree.Root, error) {
	below := DirPath(to)
	frames, err := s.walk(ctx, root, below)
	if err != nil {
		return tree.Root{}, err
	}
	// Documents below that a form above the new place matches leave the
	// directory and come back as chunks of that form.
	captured := func(fn visit) error { return s.capturedAbove(ctx, frames, g.dir, below, fn) }
	dir := g.dir
	err = s.inBatches(captured, func(batch []Edit) (err error) {
		for i := range batch {
			batch[i].Key, batch[i].Delete = batch[i].Key[len(below):], true
		}
		dir, err = s.place(ctx, dir, batch, nil, nil)
		return err
	})
	if err != nil {
		return tree.Root{}, err
	}
	if root, err = s.setDir(ctx, root, below, dir); err != nil {
		return tree.Root{}, err
	}
	put := func(batch []Edit) (err error) {
		root, err = s.place(ctx, root, batch, nil, nil)
		return err
	}
	if err := s.inBatches(captured, put); err != nil {
		return tree.Root{}, err
	}
	loose := func(fn visit) error { return s.chunksAbove(ctx, g, below, fn) }
	if err := s.inBatches(loose, put); err != nil {
		return tree.Root{}, err
	}
	if g.doc == nil {
		return root, nil
	}
	return s.Apply(ctx, root, []Edit{{Key: to, Value: *g.doc}})
}

// capturedAbove visits the documents of a directory that would move if it were
// at path, below the given directories: those that their forms match.
func (s *Space) capturedAbove(ctx context.Context, frames []dirFrame, dir tree.Root, path string, fn visit) error {
	for _, fr := range frames {
		for i := range fr.info.forms {
			if err := s.matchingDocs(ctx, dir, fr.path, path[len(fr.path):], &fr.info.forms[i].Form, fn); err != nil {
				return err
			}
		}
	}
	return nil
}

// chunksAbove visits the keys below a node that are chunks of directories above it,
// with the keys that they have at a new place.
func (s *Space) chunksAbove(ctx context.Context, g graft, to string, fn visit) error {
	from := DirPath(g.from)
	frames, err := s.walk(ctx, g.src, from)
	if err != nil {
		return err
	}
	if last := len(frames) - 1; frames[last].path == from {
		frames = frames[:last]
	}
	return s.chunksBelow(ctx, frames, from, func(key string, v tree.Value) error {
		return fn(to+key[len(from):], v)
	})
}

// changeIDs gives every array at and below a directory the identity that id returns for
// its path and the one that it has.
func (s *Space) changeIDs(ctx context.Context, root tree.Root, path string, id func(path string, had [16]byte) ([16]byte, error)) (tree.Root, error) {
	if err := CheckPath(ctx, path); err != nil {
		return tree.Root{}, err
	}
	info, err := s.readDir(ctx, root)
	if err != nil {
		return tree.Root{}, err
	}
	out := dirWriter{s: s, root: root}
	for sub, err := range s.subDirs(ctx, root, info) {
		if err != nil {
			return tree.Root{}, err
		}
		changed, err := s.changeIDs(ctx, sub.root, path+sub.name, id)
		if err == nil && changed != sub.root {
			err = out.add(ctx, subEdit(keyBytes(sub.name), changed))
		}
		if err != nil {
			return tree.Root{}, err
		}
	}
	state := info.dirState
	if state.hasID {
		if state.id, err = id(path, state.id); err != nil {
			return tree.Root{}, err
		}
	}
	return out.finish(ctx, stateEdits(&info.dirState, &state))
}
