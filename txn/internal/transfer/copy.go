package transfer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"
	"syscall"

	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/digest"
	"github.com/zarrdb/zarrdb/kv/gather"
	"github.com/zarrdb/zarrdb/kv/index"
	"github.com/zarrdb/zarrdb/kv/pack"
	"github.com/zarrdb/zarrdb/kv/tree"
	"github.com/zarrdb/zarrdb/txn/internal/care"
	"github.com/zarrdb/zarrdb/txn/internal/catalog"
)

// transferBatch is about how large the batches of commits and pages are.
const transferBatch = 1 << 20

// needed returns the packs with payloads to be copied, in order.
func (t *Transfer) needed() []pack.ID {
	return slices.SortedFunc(maps.Keys(t.Found.Need), func(a, b pack.ID) int { return bytes.Compare(a[:], b[:]) })
}

// copyWorkers bounds the packs that are copied side by side: one may wait for the
// disk to sync it while another is read.
const copyWorkers = 4

// copyPacks copies the payloads, durably, to where nothing names them yet.
func (t *Transfer) copyPacks(ctx context.Context) error {
	ids := t.needed()
	t.packs = make([]pack.Info, len(ids))
	var mu sync.Mutex // guards the report
	return gather.Each(ctx, copyWorkers, len(ids), func(ctx context.Context, i int) error {
		var before pack.Imported
		count := func(n pack.Imported) {
			t.r.PayloadBytes += int64(n.Written - before.Written)
			t.r.PresentBytes += int64(n.Equal - before.Equal)
			before = n
		}
		info, n, err := t.importPack(ctx, ids[i], func(n pack.Imported) {
			mu.Lock()
			defer mu.Unlock()
			count(n)
			t.report("copy", t.r.PayloadBytes+t.r.PresentBytes, t.Found.total)
		})
		mu.Lock()
		count(n)
		if n.Written > 0 {
			t.r.Packs++
		}
		t.packs[i] = info
		mu.Unlock()
		if errors.Is(err, kv.ErrCorrupt) || errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.EIO) {
			return t.damagedPack(ctx, ids[i], err)
		}
		return err
	})
}

// damagedPack deals with a pack of the source that cannot be read. What can be read of it
// is copied payload by payload when the copy is verified.
func (t *Transfer) damagedPack(ctx context.Context, id pack.ID, err error) error {
	if t.o.SkipDamaged {
		return nil
	}
	if errors.Is(err, os.ErrNotExist) {
		err = &pack.CorruptError{Pack: id, Reason: "the file is missing"}
	}
	problems, more := t.From.Problems(ctx, care.Damages{Packs: map[pack.ID]*care.Damage{id: {Err: err}}})
	return errors.Join(&care.DamageError{Problems: problems, Err: err}, more)
}

// importPack copies what is needed of one pack.
func (t *Transfer) importPack(ctx context.Context, id pack.ID, progress func(pack.Imported)) (pack.Info, pack.Imported, error) {
	if b := t.From.bucket; b != nil {
		return ImportFrom(ctx, b.d, t.to.Packs, id, t.Found.Need[id], progress)
	}
	info, n, err := t.to.Packs.Import(ctx, t.From.Packs, id, t.Found.Need[id], progress)
	if t.From.Away != nil && (err == nil || errors.As(err, new(*pack.CorruptError))) {
		if lost, lerr := t.From.notHere(ctx, id, t.Found.Need[id]); lerr != nil || len(lost) == 0 {
			return info, n, errors.Join(err, lerr)
		}
		d, err := t.From.Away(ctx)
		if err != nil {
			return info, n, err
		}
		before := n
		info, n, err = ImportFrom(ctx, d, t.to.Packs, id, t.Found.Need[id], func(more pack.Imported) {
			progress(pack.Imported{Written: before.Written + more.Written, Equal: before.Equal})
		})
		if err != nil {
			err = t.From.AwayFailed(ctx, err)
		}
		return info, pack.Imported{Written: before.Written + n.Written, Equal: before.Equal}, err
	}
	if errors.As(err, new(*pack.CorruptError)) {
		err = fmt.Errorf("%w (fsck of %s names the versions that need it)", err, t.From.Dir)
	}
	return info, n, err
}

// copyPages stores the pages in the index, where nothing leads to them yet. Few
// go through its log, many are made a table.
func (t *Transfer) copyPages(ctx context.Context) error {
	slices.SortFunc(t.Found.Pages, func(a, b tree.Name) int { return bytes.Compare(a[:], b[:]) })
	var done int64
	pages := func(yield func(index.Page, error) bool) {
		for p, err := range t.From.Pages(ctx, t.Found.Pages) {
			if err == nil && digest.Of(p.Bytes) != p.Name {
				err = catalog.Corrupt("page %v: its bytes hash to %v", p.Name, digest.Of(p.Bytes))
			}
			if !yield(p, err) || err != nil {
				return
			}
			done += int64(len(p.Bytes))
			t.report("index", done, t.r.PageBytes)
		}
	}
	if t.r.PageBytes > transferBatch {
		return t.to.Index.Ingest(pages)
	}
	batch := t.to.Index.NewBatch()
	defer batch.Close()
	for p, err := range pages {
		if err != nil {
			return err
		}
		batch.PutPage(p.Name, p.Bytes)
	}
	return batch.Commit(true)
}

// publish makes the commits known and moves the refs. Everything before the
// last batch is complete in itself: packs, then commits whose contents are
// durable. moves decides which refs move, and may add to the last batch, or refuse.
func (t *Transfer) publish(ctx context.Context, moves func(c *LastBatch) error) error {
	return t.to.Publish(ctx, func() error { return t.write(ctx, moves) })
}

func (t *Transfer) write(ctx context.Context, moves func(c *LastBatch) error) error {
	to := t.to
	c := &LastBatch{Batch: to.Index.NewBatch()}
	defer func() { c.Batch.Close() }()
	for a, b := range t.bad {
		catalog.Holes.Put(c.Batch, catalog.Hole{Address: a, Sum: b.sum})
	}
	for _, i := range t.packs {
		if i.ID == (pack.ID{}) {
			continue // it cannot be read
		}
		if i.ID.Incarnation() == to.Incarnation && !i.Sealed {
			continue // it is recorded as it grows
		}
		catalog.Packs.Put(c.Batch, i)
	}
	for _, r := range t.Records {
		id := r.Commit.ID
		if r.content { // a transfer that was interrupted may have marked one that is not old
			catalog.Expired.Delete(c.Batch, id)
		}
		if !r.old {
			if !r.content {
				catalog.Expired.Put(c.Batch, catalog.Expiry{Commit: id, Time: r.mark})
			}
			catalog.Commits.Put(c.Batch, r.Commit)
		}
		if c.Batch.Len() < transferBatch {
			continue
		}
		if err := c.Batch.Commit(false); err != nil {
			return err
		}
		c.Batch.Close()
		c.Batch = to.Index.NewBatch()
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	catalog.PutReady(c.Batch)
	err := moves(c)
	if err == nil {
		err = to.Write(ctx, c)
	}
	if err != nil {
		return err
	}
	t.r.Moves = c.Moves
	known, err := catalog.KnownHoles(to.Index)
	if err != nil {
		return err
	}
	t.r.Holes = int64(len(known))
	to.Packs.Recorded(t.packs)
	return nil
}

// move publishes with moves of refs, which go into the reflog. check may refuse a
// move, or leave it out.
func (t *Transfer) move(ctx context.Context, op string, refs map[string]catalog.CommitID, check func(ref string, old catalog.CommitID) (bool, error)) error {
	return t.publish(ctx, func(c *LastBatch) (refused error) {
		for _, ref := range slices.Sorted(maps.Keys(refs)) {
			old, _ := t.to.Head(ref)
			if old == refs[ref] {
				continue
			}
			if ok, err := check(ref, old); err != nil {
				refused = errors.Join(refused, err)
			} else if ok {
				c.Moves = append(c.Moves, catalog.RefMove{Ref: ref, Old: old, New: refs[ref], Time: t.to.Now().UTC(), Author: t.to.Author, Op: op})
				// It may have expired there since commits looked. What it holds is
				// there still: nothing is collected meanwhile.
				catalog.Expired.Delete(c.Batch, refs[ref])
			}
		}
		return refused
	})
}
