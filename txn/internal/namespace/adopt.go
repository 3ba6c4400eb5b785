package namespace

import (
	"context"
	"slices"

	"github.com/zarrdb/zarrdb/kv/tree"
)

// setMap replaces a chunk map of the directory at a path, which is made if it
// is missing.
func (s *Space) setMap(ctx context.Context, root tree.Root, dir string, f Form, chunks tree.Root) (tree.Root, error) {
	info, at, err := s.dirAt(ctx, root, dir)
	if err != nil {
		return tree.Root{}, err
	}
	if info == nil {
		info = emptyDir
	}
	state := info.dirState
	state.forms = slices.Clone(state.forms)
	state.addForm(f)
	state.form(f).root = chunks
	s.normalize(&state)
	out := dirWriter{s: s, root: at}
	made, err := out.finish(ctx, stateEdits(&info.dirState, &state))
	if err != nil {
		return tree.Root{}, err
	}
	return s.setDir(ctx, root, dir, made)
}

// adoptIDs gives the arrays at and below a directory the identities of those at
// the same places of another.
func (s *Space) adoptIDs(ctx context.Context, root, from tree.Root) (tree.Root, error) {
	if root == from || from.Entries == 0 || root.Entries == 0 {
		return root, ctx.Err()
	}
	info, err := s.readDir(ctx, root)
	if err != nil {
		return tree.Root{}, err
	}
	was, err := s.readDir(ctx, from)
	if err != nil {
		return tree.Root{}, err
	}
	out := dirWriter{s: s, root: root}
	for sub, err := range s.subDirs(ctx, root, info) {
		if err != nil {
			return tree.Root{}, err
		}
		old, _, err := s.subDir(ctx, from, was, sub.name)
		if err != nil {
			return tree.Root{}, err
		}
		adopted, err := s.adoptIDs(ctx, sub.root, old)
		if err != nil {
			return tree.Root{}, err
		}
		if adopted != sub.root {
			if err := out.add(ctx, subEdit(keyBytes(sub.name), adopted)); err != nil {
				return tree.Root{}, err
			}
		}
	}
	state := info.dirState
	if state.hasID && was.hasID {
		state.id = was.id
	}
	return out.finish(ctx, stateEdits(&info.dirState, &state))
}
