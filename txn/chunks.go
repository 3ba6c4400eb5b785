package txn

import (
	"context"

	"github.com/zarrdb/zarrdb/kv/tree"
)

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
