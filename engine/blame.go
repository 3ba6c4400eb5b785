package engine

import (
	"context"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/zarrdb/zarrdb/engine/internal/names"
	"github.com/zarrdb/zarrdb/txn"
	"github.com/zarrdb/zarrdb/zarr"
)

// BlamedChunks is a box of chunks with the commit that last changed them.
type BlamedChunks struct {
	// Chunk is the first chunk of the box, with the Shape of the whole box in elements.
	zarr.Chunk
	// Counts is the number of chunks along each dimension that the selection touches.
	Counts []int64
	// Commit last changed the chunks' bytes. A chunk that is not stored was removed by
	// the commit, or has been missing since the commit made the array.
	Commit *txn.Commit
}

// blameEach bounds selections whose chunks are asked for one by one, which is cheaper than
// reading all changes of the array.
const blameEach = 4096

// Blame finds for the chunks of an array that a selection touches the commits that last
// changed them, up to and including the commit at, in C order of the grid. Neighbours
// with the same commit, stored or not, are yielded as one, or as a few boxes where a run
// does not begin and end at the edge of the grid: the cost grows with the changes, not
// with the grid. A shard is one chunk. The array is followed through renames; see
// [txn.DB.Blame].
func (db *DB) Blame(ctx context.Context, at txn.CommitID, path string, sel zarr.Selection) iter.Seq2[BlamedChunks, error] {
	return func(yield func(BlamedChunks, error) bool) {
		if err := db.blame(ctx, at, path, sel, func(b BlamedChunks) bool { return yield(b, nil) }); err != nil {
			yield(BlamedChunks{}, err)
		}
	}
}

func (db *DB) blame(ctx context.Context, at txn.CommitID, path string, sel zarr.Selection, yield func(BlamedChunks) bool) error {
	s, err := db.Snapshot(ctx, at)
	if err != nil {
		return err
	}
	defer s.Close()
	a, err := s.Array(ctx, path)
	if err != nil {
		return err
	}
	chunks, err := a.ChunkSet(sel)
	if err != nil || chunks.Len() == 0 {
		return err
	}
	key := chunkKeys{a: a}
	// Chunks of the early v3 draft do not lie below the array's path.
	if strings.HasPrefix(chunks.At(0).Key, names.Dir(a.Path())) {
		key.root = a.Path()
	}
	run := func(r txn.ChunkRun) bool {
		more := true
		chunks.Boxes(r.From, r.To, func(box zarr.Chunk, counts []int64) bool {
			more = yield(BlamedChunks{Chunk: box, Counts: counts, Commit: r.Commit})
			return more
		})
		return more
	}
	if n := chunks.Len(); n > blameEach && key.readable(chunks.At(n-1)) {
		return db.store.BlameRuns(ctx, at, key.root, n, func(k string) (int64, bool) {
			coords, ok := key.coords(k)
			if !ok {
				return 0, false
			}
			return chunks.Find(coords)
		}, run)
	}
	var keys []string
	for c, err := range a.Chunks(ctx, sel) {
		if err != nil {
			return err
		}
		keys = append(keys, strings.TrimPrefix(c.Key, names.Dir(key.root)))
	}
	commits, err := db.store.Blame(ctx, at, key.root, keys)
	if err != nil {
		return err
	}
	for from := 0; from < len(commits); {
		to := from + 1
		for to < len(commits) && commits[to].ID == commits[from].ID {
			to++
		}
		if !run(txn.ChunkRun{From: int64(from), To: int64(to), Commit: commits[from]}) {
			return nil
		}
		from = to
	}
	return nil
}

// chunkKeys reads the coordinates of chunks out of keys relative to root.
type chunkKeys struct {
	a    *zarr.Array
	root string
}

// coords returns the coordinates of a key, if it is the key of a chunk.
func (k *chunkKeys) coords(key string) ([]int64, bool) {
	coords := make([]int64, len(k.a.Meta().Shape))
	end := len(key)
	for d := len(coords) - 1; d >= 0; d-- {
		begin := end
		for begin > 0 && key[begin-1]-'0' < 10 {
			begin--
		}
		n, err := strconv.ParseInt(key[begin:end], 10, 64)
		if err != nil {
			return nil, false
		}
		coords[d], end = n, max(begin-1, 0)
	}
	return coords, k.a.ChunkKey(coords) == names.Dir(k.root)+key
}

// readable reports whether keys of chunks can be read.
func (k *chunkKeys) readable(c zarr.Chunk) bool {
	coords, ok := k.coords(strings.TrimPrefix(c.Key, names.Dir(k.root)))
	return ok && slices.Equal(coords, c.Coords)
}
