package index

import (
	"errors"
	"os"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
)

// gate makes writers wait while compactions are behind. Pebble does the same,
// but inside its commit pipeline, where a writer waits for ever once the disk
// has failed. Here it is released by a failure and by Close.
type gate struct {
	guard *guardFS
	// check is set when a flush may have made one level too many.
	check atomic.Bool

	mu   sync.Mutex
	cond sync.Cond
	turn uint64 // counts reasons to look again
}

func (g *gate) init(guard *guardFS) {
	g.guard = guard
	g.cond.L = &g.mu
}

// wake lets waiting writers look again. It may be called with locks of Pebble
// held.
func (g *gate) wake() {
	g.mu.Lock()
	g.turn++
	g.mu.Unlock()
	g.cond.Broadcast()
}

// pass waits until young tables are few, or the index has failed or is closed.
func (g *gate) pass(sublevels func() int, closed func() bool) {
	for g.check.Load() {
		g.mu.Lock()
		turn := g.turn
		g.mu.Unlock()
		if g.guard.isFailed() || closed() {
			return
		}
		g.check.Store(false)
		if sublevels() < stopSublevels {
			return
		}
		g.check.Store(true)
		g.mu.Lock()
		for g.turn == turn {
			g.cond.Wait()
		}
		g.mu.Unlock()
	}
}

// listener connects Pebble's events. They are called with its locks held.
func (x *Index) listener() *pebble.EventListener {
	return &pebble.EventListener{
		FlushEnd: func(i pebble.FlushInfo) {
			x.gate.check.Store(true)
			x.wroteTables(i.Err)
		},
		CompactionEnd: func(i pebble.CompactionInfo) {
			x.gate.wake()
			x.wroteTables(i.Err)
		},
		BackgroundError: func(err error) {
			if !x.use.closed() {
				x.noted(WorkTables, err)
			}
		},
		ManifestCreated: func(pebble.ManifestCreateInfo) { x.lists.Add(1) },
		ManifestDeleted: func(i pebble.ManifestDeleteInfo) { x.notRemoved(i.Err) },
		TableDeleted:    func(i pebble.TableDeleteInfo) { x.notRemoved(i.Err) },
		WALDeleted:      func(i pebble.WALDeleteInfo) { x.notRemoved(i.Err) },
		// The default exits the process. The read that met the damage
		// returns kv.ErrCorrupt, and that is enough.
		DataCorruption: func(pebble.DataCorruptionInfo) {},
	}
}

// wroteTables takes the end of a flush or compaction. Errors that matter come to
// BackgroundError.
func (x *Index) wroteTables(err error) {
	if err == nil {
		x.noted(WorkTables, nil)
	}
}

// notRemoved takes the error of a removal, if it is one.
func (x *Index) notRemoved(err error) {
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		x.noted(WorkFiles, err)
	}
}

// sublevels is the number of young tables that a read may have to look into.
func (x *Index) sublevels() int { return int(x.db.Metrics().Levels[0].Sublevels) }
