package txn

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zarrdb/zarrdb/kv/gather"
	"github.com/zarrdb/zarrdb/kv/index"
	"github.com/zarrdb/zarrdb/kv/pack"
	"github.com/zarrdb/zarrdb/kv/tree"
	"github.com/zarrdb/zarrdb/txn/internal/catalog"
)

// Durability says when a commit, or a move of a ref, is on disk.
type Durability uint8

const (
	// DurabilitySync: when the call returns. A crash loses nothing that was
	// acknowledged.
	DurabilitySync Durability = iota
	// DurabilityAsync: at most Options.SyncInterval later. A crash loses the
	// newest of the acknowledged commits, those of the last interval.
	DurabilityAsync
	// DurabilityNone: at the next [DB.Sync], at Close, or when 64 MiB of index
	// pages wait. A crash loses everything since. For bulk loads that can be
	// done again.
	DurabilityNone
)

// pendingBytes of pages and records are written out whatever the durability is.
const pendingBytes = 64 << 20

// Commits that are acknowledged before they are on disk wait in memory, where
// readers of this process find their pages and records. All that wait go to
// disk together: packs first, then one synced batch. So a crash leaves a
// prefix of what was acknowledged, and what it leaves is as sound as without
// any of this: no root on disk names a payload or page that is not.
//
//	Commit ──▶ current generation ──take──▶ one that is being written ──▶ index
//	               ▲                              ▲                        ▲
//	               └───────────── reads look in this order ────────────────┘
type pending struct {
	waiting atomic.Int64 // moves of refs that are not on disk

	mu      sync.RWMutex
	current *generation
	writing *generation // nil unless a write is under way
	err     error       // that ended it: what waits can never be written

	wake chan struct{} // something waits
	quit chan struct{}
	done chan struct{} // closed by the end of the loop
}

// generation is what waits together.
type generation struct {
	pages    map[tree.Name][]byte
	commits  map[CommitID][]byte
	moves    []RefMove
	bytes    int64
	failures uint64 // of packs, when it began
}

// putPage takes a page, which nobody changes any more.
func (g *generation) putPage(name tree.Name, page []byte) {
	g.pages[name] = page
	g.bytes += int64(len(page))
}

// addTo puts pages and commits into a batch.
func (g *generation) addTo(batch *index.Batch) {
	for name, page := range g.pages {
		batch.PutPage(name, page)
	}
	for id, rec := range g.commits {
		catalog.PutCommit(batch, id, rec)
		// The same commit may have been made before, and have expired.
		catalog.Expired.Delete(batch, id)
	}
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
// names the pages. Who collects garbage takes the roots when no group is being
// written, so it meets none or all of a group. It returns how many bytes they are.
func (g *generation) putAhead(ctx context.Context, idx *index.Index, from int64) (int64, error) {
	if g.bytes < from {
		return 0, nil
	}
	limit := int(min(aheadBatch, from/4))
	var batches [][]tree.Name
	size := limit
	for name, page := range g.pages {
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
			batch.PutPage(name, g.pages[name])
		}
		return batch.Commit(false)
	})
	if err == nil {
		clear(g.pages)
	}
	return g.bytes, err
}

// published are the moves that readers know already.
func (g *generation) published() []RefMove {
	if g == nil {
		return nil
	}
	return g.moves
}

func (g *generation) empty() bool { return g == nil || len(g.moves) == 0 }

// delayed reports whether commits are acknowledged before they are on disk.
func (db *DB) delayed() bool { return db.opts.Durability != DurabilitySync && !db.opts.ReadOnly }

// page returns a page that waits, nil if it does not.
func (p *pending) page(name tree.Name) []byte {
	if p == nil || p.waiting.Load() == 0 {
		return nil
	}
	p.mu.RLock()
	defer p.mu.RUnlock()
	for _, g := range []*generation{p.current, p.writing} {
		if g != nil && g.pages[name] != nil {
			return g.pages[name]
		}
	}
	return nil
}

// commit returns the record of a commit that waits, nil if it does not.
func (p *pending) commit(id CommitID) []byte {
	if p.waiting.Load() == 0 {
		return nil
	}
	p.mu.RLock()
	defer p.mu.RUnlock()
	for _, g := range []*generation{p.current, p.writing} {
		if g != nil && g.commits[id] != nil {
			return g.commits[id]
		}
	}
	return nil
}

// acknowledge takes a change that is to be written later, and publishes it. The
// caller locks commits or is the group that is written. failures is the count of pack failures under which
// its payloads were stored.
func (db *DB) acknowledge(g generation, failures uint64) error {
	p := &db.pending
	if p.bytes() >= pendingBytes {
		if err := db.writePending(context.Background()); err != nil {
			return err
		}
	}
	p.mu.Lock()
	if err := p.err; err != nil {
		p.mu.Unlock()
		return err
	}
	// Looked at with mu held: a failure after this is seen by the write.
	if now := db.packFailures.Load(); now != failures {
		p.mu.Unlock()
		return errLost(now)
	}
	if p.current == nil {
		p.current = &generation{pages: map[tree.Name][]byte{}, commits: map[CommitID][]byte{}, failures: failures}
	}
	p.current.add(&g)
	p.waiting.Add(int64(len(g.moves)))
	p.mu.Unlock()
	db.heads.publish(g.moves)
	select {
	case p.wake <- struct{}{}:
	default:
	}
	return nil
}

// bytes is how much waits.
func (p *pending) bytes() int64 {
	p.mu.RLock()
	defer p.mu.RUnlock()
	if p.current == nil {
		return 0
	}
	return p.current.bytes
}

func (g *generation) add(o *generation) {
	for name, page := range o.pages {
		g.putPage(name, page)
	}
	for id, rec := range o.commits {
		g.commits[id] = rec
		g.bytes += int64(len(rec))
	}
	g.moves = append(g.moves, o.moves...)
	g.bytes += 128 * int64(len(o.moves))
}

// Sync returns when everything that was acknowledged before is on disk. With
// DurabilitySync that is so already.
func (db *DB) Sync(ctx context.Context) error {
	if err := errors.Join(db.check(), ctx.Err()); err != nil {
		return err
	}
	return db.writePending(ctx)
}

// writePending writes what waits, if anything.
func (db *DB) writePending(ctx context.Context) error {
	if !db.delayed() {
		return nil
	}
	batch := db.idx.NewBatch()
	defer batch.Close()
	return db.syncAndCommit(ctx, batch, nil, db.packFailures.Load())
}

// take begins the write of what waits: it is added to batch. The caller holds
// ends and calls settle with the outcome.
func (db *DB) take(batch *index.Batch) (*generation, error) {
	p := &db.pending
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err != nil {
		return nil, p.err
	}
	g := p.current
	if g.empty() {
		return nil, nil
	}
	if now := db.packFailures.Load(); now != g.failures {
		p.err = fmt.Errorf("commits that were acknowledged are lost: %w", errLost(now))
		return nil, p.err
	}
	p.current, p.writing = nil, g
	g.addTo(batch)
	return g, nil
}

// complete ends what take began. What could not be written, for want of space
// say, waits on; but after a failure nobody knows what is on disk.
func (db *DB) complete(g *generation, err error) {
	if g == nil {
		return
	}
	p := &db.pending
	p.mu.Lock()
	defer p.mu.Unlock()
	p.writing = nil
	if err == nil {
		p.waiting.Add(-int64(len(g.moves)))
		return
	}
	if errors.Is(err, index.ErrFailed) || errors.Is(err, pack.ErrFailed) {
		p.err = fmt.Errorf("commits that were acknowledged are lost: %w", err)
	}
	if p.current != nil {
		g.add(p.current)
	}
	p.current = g
}

// startPending begins the writing of what waits longer than the interval. after
// is time.After but for tests.
func (db *DB) startPending(after func(time.Duration) <-chan time.Time) {
	p := &db.pending
	p.wake, p.quit, p.done = make(chan struct{}, 1), make(chan struct{}), make(chan struct{})
	if !db.delayed() || db.opts.Durability == DurabilityNone {
		close(p.done)
		return
	}
	go func() {
		defer close(p.done)
		for {
			select {
			case <-p.wake:
			case <-p.quit:
				return
			}
			select {
			case <-after(db.opts.SyncInterval):
			case <-p.quit:
				return
			}
			// The next commit and Sync tell what went wrong.
			if db.writePending(context.Background()) != nil {
				select {
				case p.wake <- struct{}{}: // again after the interval
				default:
				}
			}
		}
	}()
}

// stopPending ends the loop and writes what waits.
func (db *DB) stopPending() error {
	close(db.pending.quit)
	<-db.pending.done
	return db.writePending(context.Background())
}
