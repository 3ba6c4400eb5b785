package txn

import (
	"context"
	"fmt"
	"slices"

	"github.com/zarrdb/zarrdb/kv/gather"
	"github.com/zarrdb/zarrdb/kv/index"
	"github.com/zarrdb/zarrdb/kv/pack"
	"github.com/zarrdb/zarrdb/kv/tree"
	"github.com/zarrdb/zarrdb/txn/internal/catalog"
)

// change is what becomes visible, and durable, at once. Whatever writes a commit or
// moves a ref makes one:
//
//	commit, merge, bulk ─▶ group ─┐             ┌─▶ acknowledge (durability.go)
//	rebase, undo, branches, tags ─┼─▶ publish ─▶┤           │ later
//	savepoint ────────────────────┘             └─▶ write ◀─┘
//	create, push, pull, backup ─────────────────────▶ sync packs, one batch, refTable
type change struct {
	pages   map[tree.Name][]byte
	commits map[CommitID][]byte // encoded
	moves   []RefMove
	ended   []SessionID // have logs and no records, and are committed
	bytes   int64       // of pages
	// failures is the count of pack failures under which its payloads were stored.
	failures uint64
	// extra holds further records, and such a change is not delayed; may be nil. It is
	// the batch that is written.
	extra *index.Batch
	// ahead lets many pages go to the index before the change; see putAhead.
	ahead bool
	// noPayloads says that nothing in it names a payload that is not durable.
	noPayloads bool
	makesRoom  bool // see [index.Batch.MakesRoom]
	// mirrored says that extra has the reflog of the moves.
	mirrored bool
}

func newChange(failures uint64) *change {
	return &change{pages: map[tree.Name][]byte{}, commits: map[CommitID][]byte{}, failures: failures}
}

// putPage takes a page, which does not change any more.
func (c *change) putPage(name tree.Name, page []byte) {
	c.pages[name] = page
	c.bytes += int64(len(page))
}

// add joins a later change to one that waits.
func (c *change) add(o *change) {
	for name, page := range o.pages {
		c.putPage(name, page)
	}
	for id, rec := range o.commits {
		c.commits[id] = rec
		c.bytes += int64(len(rec))
	}
	c.moves = append(c.moves, o.moves...)
	c.ended = append(c.ended, o.ended...)
	c.bytes += 128 * int64(len(o.moves))
}

// addTo puts pages and commits into a batch.
func (c *change) addTo(batch *index.Batch) {
	for name, page := range c.pages {
		batch.PutPage(name, page)
	}
	for id, rec := range c.commits {
		catalog.PutCommit(batch, id, rec)
		// The same commit may have been made before, and have expired.
		catalog.Expired.Delete(batch, id)
	}
}

// publish makes a change visible, and durable unless commits are delayed. The caller
// locks commits, or is the group that is written, or moves no ref.
func (db *DB) publish(ctx context.Context, c *change) error {
	for i := range c.moves {
		if err := catalog.CheckTime(c.moves[i].Time); err != nil {
			return fmt.Errorf("the clock of the machine: %w", err)
		}
		if err := db.mayMove(ctx, c.moves[i], c.commits); err != nil {
			return err
		}
	}
	if db.delayed() && c.extra == nil && c.bytes < pendingBytes/2 {
		if err := db.Here(); err != nil {
			return err
		}
		return db.acknowledge(c)
	}
	if c.ahead && c.bytes >= db.opts.aheadPages {
		if err := c.putAhead(ctx, db.idx, db.opts.aheadPages); err != nil {
			return err
		}
		db.care.Checkpoints.Counted(0, c.bytes)
	}
	return db.write(ctx, c)
}

// write writes what waits for the disk, syncs the packs, and writes their ends and
// the change in one synced batch. When it returns nil, everything is on disk, unless
// packs failed since failures were counted: then it is ErrLost. The lock keeps a
// later end from being overwritten by an earlier one. Only then readers see refs
// where they moved to, but for those of changes that were acknowledged.
func (db *DB) write(ctx context.Context, c *change) error {
	if err := db.care.Ends.Lock(ctx); err != nil {
		return err
	}
	defer db.care.Ends.Unlock()
	if now := db.packFailures.Load(); now != c.failures && !c.noPayloads {
		return errLost(now)
	}
	batch := c.extra
	if batch == nil {
		batch = db.idx.NewBatch()
		defer batch.Close()
	}
	if c.makesRoom {
		batch.MakesRoom()
	}
	earlier, err := db.take(batch)
	if err != nil {
		return err
	}
	var infos []pack.Info
	if !c.noPayloads || earlier != nil {
		if infos, err = db.packs.Sync(ctx); err != nil {
			db.complete(earlier, err)
			db.resumePacks()
			return err
		}
	}
	for _, i := range infos {
		catalog.Packs.Put(batch, i)
	}
	c.addTo(batch)
	err = db.commitBatch(batch, earlier, c)
	db.complete(earlier, err)
	if err != nil {
		return err
	}
	db.packs.Recorded(infos)
	return nil
}

// commitBatch adds the moves of refs and their reflog entries to batch and commits it.
func (db *DB) commitBatch(batch *index.Batch, earlier, c *change) error {
	var moves []*RefMove
	for _, from := range []*change{earlier, c} {
		for i := range from.size() {
			moves = append(moves, &from.moves[i])
		}
	}
	ended := c.ended
	if earlier != nil {
		ended = slices.Concat(earlier.ended, ended)
	}
	written := db.noteEnded(batch, ended)
	next := map[string]uint64{} // numbers of reflog entries
	for _, m := range moves {
		if m.New.IsZero() {
			catalog.Refs.Delete(batch, m.Ref)
		} else {
			catalog.Refs.Put(batch, Ref{Name: m.Ref, Commit: m.New})
		}
		if c.mirrored {
			continue
		}
		seq, ok := next[m.Ref]
		if !ok {
			var err error
			if seq, err = catalog.NextSeq(db.idx, m.Ref); err != nil {
				return err
			}
		}
		m.Seq, next[m.Ref] = seq, seq+1
		catalog.Moves.Put(batch, *m)
	}
	db.care.Checkpoints.Count(batch, len(moves))
	bytes := batch.Len()
	if err := batch.Commit(true); err != nil {
		return err
	}
	written()
	db.care.Checkpoints.Counted(len(moves), bytes)
	db.heads.publish(c.moves)
	return nil
}

// size is how many refs move, 0 for nil.
func (c *change) size() int {
	if c == nil {
		return 0
	}
	return len(c.moves)
}

const (
	// defaultAheadPages is how many bytes of pages are worth more than one batch.
	defaultAheadPages = 4 << 20
	// aheadBatch fits a buffer that is kept for the next batch.
	aheadBatch = 900 << 10
)

// putAhead puts many pages into the index before what names them, without waiting
// for the disk: the synced batch comes later in the same log. One large batch would
// be filled first, logged then, and copied into memory after that; small ones do
// all of it at the same time, and their buffers serve again. If one fails, nothing
// names the pages. The collector takes the roots when no group is being written, so
// it meets none or all of a group; other changes must not use it.
func (c *change) putAhead(ctx context.Context, idx *index.Index, from int64) error {
	limit := int(min(aheadBatch, from/4))
	var batches [][]tree.Name
	size := limit
	for name, page := range c.pages {
		if size += len(page); size >= limit {
			batches, size = append(batches, nil), 0
		}
		last := len(batches) - 1
		batches[last] = append(batches[last], name)
	}
	err := gather.Each(ctx, 2, len(batches), func(_ context.Context, i int) error {
		batch := idx.NewBatch()
		defer batch.Close()
		for _, name := range batches[i] {
			batch.PutPage(name, c.pages[name])
		}
		return batch.Commit(false)
	})
	if err == nil {
		clear(c.pages)
	}
	return err
}
