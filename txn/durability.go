package txn

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zarrdb/zarrdb/kv/index"
	"github.com/zarrdb/zarrdb/kv/pack"
	"github.com/zarrdb/zarrdb/kv/tree"
	"github.com/zarrdb/zarrdb/txn/internal/care"
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
	current *change
	writing *change // nil unless a write is under way
	err     error   // that ended it: what waits can never be written

	wake chan struct{} // something waits
	quit chan struct{}
	done chan struct{} // closed by the end of the loop
}

// delayed reports whether commits are acknowledged before they are on disk.
func (db *DB) delayed() bool { return db.opts.Durability != DurabilitySync && !db.opts.ReadOnly }

// page returns a page that waits, nil if it does not.
func (p *pending) page(name tree.Name) (page []byte) {
	if p != nil {
		p.look(func(c *change) bool { page = c.pages[name]; return page != nil })
	}
	return page
}

// commit returns the record of a commit that waits, nil if it does not.
func (p *pending) commit(id CommitID) (record []byte) {
	p.look(func(c *change) bool { record = c.commits[id]; return record != nil })
	return record
}

// look calls fn with what waits until it returns true.
func (p *pending) look(fn func(*change) bool) {
	if p.waiting.Load() == 0 {
		return
	}
	p.mu.RLock()
	defer p.mu.RUnlock()
	for _, c := range []*change{p.current, p.writing} {
		if c != nil && fn(c) {
			return
		}
	}
}

// acknowledge takes a change that is to be written later, and publishes it. The
// caller locks commits or is the group that is written.
func (db *DB) acknowledge(c *change) error {
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
	if now := db.packFailures.Load(); now != c.failures {
		p.mu.Unlock()
		return errLost(now)
	}
	if p.current == nil {
		p.current = newChange(c.failures)
	}
	p.current.add(c)
	p.waiting.Add(int64(len(c.moves)))
	p.mu.Unlock()
	db.heads.publish(c.moves)
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

// Sync returns when everything that was acknowledged before is on disk. With
// DurabilitySync that is so already.
func (db *DB) Sync(ctx context.Context) error {
	_, err := asked(ctx, db, "sync", none{}, db.sync)
	return err
}

func (db *DB) sync(ctx context.Context, _ none) (none, error) {
	if err := errors.Join(db.check(), ctx.Err()); err != nil {
		return none{}, err
	}
	return none{}, db.writePending(ctx)
}

// writePending writes what waits, if anything.
func (db *DB) writePending(ctx context.Context) error {
	if !db.delayed() {
		return nil
	}
	return db.write(ctx, newChange(db.packFailures.Load()))
}

// take begins the write of what waits: it is added to batch. The caller holds
// ends and calls complete with the outcome.
func (db *DB) take(batch *index.Batch) (*change, error) {
	p := &db.pending
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err != nil {
		return nil, p.err
	}
	g := p.current
	if g.size() == 0 {
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
// say, waits on; but after a failure the content of the disk is unknown.
func (db *DB) complete(g *change, err error) {
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
			err := db.writePending(context.Background())
			db.care.Failures.Note(care.WorkDelayed, err)
			if err != nil {
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
