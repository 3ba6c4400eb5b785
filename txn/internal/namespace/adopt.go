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
	if root == from || from.Entries == 0 {
		return root, ctx.Err()
	}
	return s.changeIDs(ctx, root, "", func(path string, id [16]byte) ([16]byte, error) {
		was, _, err := s.dirAt(ctx, from, path)
		if was != nil && was.hasID {
			id = was.id
		}
		return id, err
	})
}
