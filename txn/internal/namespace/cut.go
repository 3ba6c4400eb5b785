package namespace

import (
	"bytes"
	"context"
	"fmt"

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
