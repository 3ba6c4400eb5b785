package namespace

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/tree"
)

// DeleteChunks removes the chunks of the array at a path whose keys the form
// matches and whose number along an axis is from or more.
func (s *Space) DeleteChunks(ctx context.Context, root tree.Root, path string, f Form, axis int, from int64) (tree.Root, error) {
	f, ok := f.normal()
	if !ok || axis < 0 || axis >= f.Rank || from < 0 {
		return tree.Root{}, fmt.Errorf("txn: delete chunks of %q from %d along axis %d of %d: %w", path, from, axis, f.Rank, kv.ErrInvalidKey)
	}
	dir := DirPath(path)
	info, _, err := s.dirAt(ctx, root, dir)
	if err != nil || info == nil {
		return root, err
	}
	had := info.form(f)
	if had == nil {
		return root, nil
	}
	chunks, err := s.cutMap(ctx, had.root, axis, uint64(from))
	if err != nil || chunks == had.root {
		return root, err
	}
	return s.setMap(ctx, root, dir, f, chunks)
}

// ShiftChunks removes the chunks of the array at a path whose keys the form matches and whose number along an axis is
// less than n, takes n from the numbers of the others, and gives the array an identity.
func (s *Space) ShiftChunks(ctx context.Context, root tree.Root, path string, f Form, axis int, n int64, id [16]byte) (tree.Root, error) {
	refuse := func(err error) (tree.Root, error) {
		return tree.Root{}, fmt.Errorf("txn: shift chunks of %q by %d along axis %d of %d: %w", path, n, axis, f.Rank, err)
	}
	f, ok := f.normal()
	if !ok || axis < 0 || axis >= f.Rank || n < 0 {
		return refuse(kv.ErrInvalidKey)
	}
	dir := DirPath(path)
	info, at, err := s.dirAt(ctx, root, dir)
	switch {
	case err != nil:
		return root, err
	case info == nil || !info.hasID:
		return refuse(kv.ErrNotFound)
	}
	for sub, err := range s.subDirs(ctx, at, info) {
		if err != nil {
			return root, err
		}
		if _, chunks := f.cut(sub.name); chunks { // which a node below has
			return refuse(errors.ErrUnsupported)
		}
	}
	state := info.dirState
	state.id, state.forms = id, slices.Clone(state.forms)
	switch had := state.form(f); {
	case n == 0:
	case had == nil:
		return refuse(errors.ErrUnsupported)
	default:
		if had.root, err = s.shiftMap(ctx, had.root, axis, uint64(n)); err != nil {
			return root, err
		}
	}
	out := dirWriter{s: s, root: at}
	made, err := out.finish(ctx, stateEdits(&info.dirState, &state))
	if err != nil {
		return root, err
	}
	return s.setDir(ctx, root, dir, made)
}

// shiftMap takes n from the numbers along an axis, and leaves out what is less. The order stays.
func (s *Space) shiftMap(ctx context.Context, root tree.Root, axis int, n uint64) (tree.Root, error) {
	b := s.Tree.NewBuilder(ctx)
	var key []byte
	for e, err := range s.Tree.Scan(ctx, root, tree.Span{}) {
		if err != nil {
			return tree.Root{}, err
		}
		lead, ok := coordsLen(e.Key, axis)
		if !ok {
			return tree.Root{}, corrupt("chunk map: coordinates %x", e.Key)
		}
		at, rest, ok := splitCoord(e.Key[lead:])
		if !ok {
			return tree.Root{}, corrupt("chunk map: coordinates %x", e.Key)
		}
		if at < n {
			continue
		}
		key = append(appendCoord(append(key[:0], e.Key[:lead]...), at-n), rest...)
		if err := b.Add(&tree.Entry{Key: key, Value: e.Value}); err != nil {
			return tree.Root{}, err
		}
	}
	return b.Finish()
}

// rowScan is how many chunks of a row are passed before the rest of it is left
// out by a search.
const rowScan = 64

// cutMap deletes the chunks of a map whose number along an axis is from or more.
//
//	axis 1, from 2:    (0,0) (0,1) [(0,2) (0,3)] (1,0) (1,1) [(1,2)] (2,0)
//	                    row 0: lead 0             row 1: lead 1       row 2
func (s *Space) cutMap(ctx context.Context, root tree.Root, axis int, from uint64) (tree.Root, error) {
	end := appendCoord(nil, from)
	var at, lead []byte
	for {
		passed, next := 0, []byte(nil)
		for e, err := range s.Tree.Scan(ctx, root, tree.Span{From: at}) {
			if err != nil {
				return tree.Root{}, err
			}
			n, ok := coordsLen(e.Key, axis)
			if !ok {
				return tree.Root{}, corrupt("chunk map: coordinates %x", e.Key)
			}
			if !bytes.Equal(e.Key[:n], lead) || passed == 0 {
				lead, passed = append(lead[:0], e.Key[:n]...), 0
			}
			if bytes.Compare(e.Key[n:], end) >= 0 {
				span := tree.Span{From: append(clip(lead), end...), To: keyAfter(lead)}
				if root, err = s.Tree.DeleteRange(ctx, root, span); err != nil || span.To == nil {
					return root, err
				}
				next = span.To
				break
			}
			if passed++; passed == rowScan {
				next = append(clip(lead), end...)
				break
			}
		}
		if next == nil {
			return root, nil
		}
		at = next
	}
}

// coordsLen returns the length of the first n numbers of an encoding.
func coordsLen(b []byte, n int) (size int, ok bool) {
	rest := b
	for range n {
		if _, rest, ok = splitCoord(rest); !ok {
			return 0, false
		}
	}
	return len(b) - len(rest), true
}
