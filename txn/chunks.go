package txn

import (
	"context"

	"github.com/zarrdb/zarrdb/kv/tree"
)

// ShiftChunks removes the chunks of the array at a path whose keys the form spells and whose number along an axis is
// less than n, and gives the others numbers that are less by n. No payload is read or written; the cost is that of the
// entries. For merges, it is another array then: what others change in the array that was is a conflict.
func (s *Session) ShiftChunks(ctx context.Context, path string, f Form, axis int, n int64) error {
	return s.home.change(ctx, nil, func(root tree.Root) (tree.Root, error) {
		return s.space.ShiftChunks(ctx, root, path, f, axis, n, newIdentity())
	})
}

// DeleteChunks removes those chunks of the array at a path, "" for the root,
// whose keys the form spells and whose number along an axis is from or more. An
// array that is not there, or has no such form, has no such chunks.
//
// Along the first axis that is a few pages, whatever the number of chunks.
// Along another one, each row of chunks before from costs a search at most.
func (s *Session) DeleteChunks(ctx context.Context, path string, f Form, axis int, from int64) error {
	return s.home.change(ctx, nil, func(root tree.Root) (tree.Root, error) {
		return s.space.DeleteChunks(ctx, root, path, f, axis, from)
	})
}
