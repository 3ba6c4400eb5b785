package engine

import (
	"context"
	"strings"

	"github.com/zarrdb/zarrdb/engine/internal/names"
	"github.com/zarrdb/zarrdb/txn"
	"github.com/zarrdb/zarrdb/zarr"
)

// BlamedChunk is a chunk with the commit that last changed it.
type BlamedChunk struct {
	zarr.Chunk
	// Commit last changed the chunk's bytes. For a chunk that is not stored it
	// removed it, or made the array.
	Commit *txn.Commit
}

// Blame finds for each chunk of an array that a selection touches the commit
// that last changed it, up to and including the commit at, in C order of the
// grid. A shard is one chunk. The array is followed through renames; see
// [txn.DB.Blame] for the cost.
func (db *DB) Blame(ctx context.Context, at txn.CommitID, path string, sel zarr.Selection) ([]BlamedChunk, error) {
	s, err := db.Snapshot(ctx, at)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	a, err := s.Array(ctx, path)
	if err != nil {
		return nil, err
	}
	var list []BlamedChunk
	below := true
	for c, err := range a.Chunks(ctx, sel) {
		if err != nil {
			return nil, err
		}
		below = below && strings.HasPrefix(c.Key, names.Dir(a.Path()))
		list = append(list, BlamedChunk{Chunk: c})
	}
	// Chunks of the early v3 draft do not lie below the array's path.
	root := ""
	if below {
		root = a.Path()
	}
	keys := make([]string, len(list))
	for i, c := range list {
		keys[i] = strings.TrimPrefix(c.Key, names.Dir(root))
	}
	commits, err := db.store.Blame(ctx, at, root, keys)
	if err != nil {
		return nil, err
	}
	for i, c := range commits {
		list[i].Commit = c
	}
	return list, nil
}
