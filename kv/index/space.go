package index

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// diskGuard keeps a full disk away from Pebble, which does not survive one
// (docs/design/pebble-failures.md): a batch is refused before Pebble sees it.
// Space is made by deleting, and deleting writes to the log first; a reserve
// file is given up for that.
type diskGuard struct {
	fs       vfs.FS
	path     string // of the reserve file
	free     func() (uint64, error)
	min      uint64
	reserve  int64
	inflight atomic.Int64 // bytes of batches that are being committed

	mu   sync.Mutex
	held bool // the reserve file exists
}

const reserveFile = "RESERVE"

func newDiskGuard(dir string, o *Options) *diskGuard {
	g := &diskGuard{
		fs: o.FS, path: o.FS.PathJoin(dir, reserveFile), free: o.DiskFree,
		min: uint64(max(o.MinFreeBytes, 0)), reserve: max(o.ReserveBytes, 0),
	}
	if g.free == nil {
		g.free = func() (uint64, error) {
			u, err := o.FS.GetDiskUsage(dir)
			return u.AvailBytes, err
		}
	}
	if _, err := g.fs.Stat(g.path); err == nil {
		g.held = true
	}
	return g
}

// enter admits size bytes, or refuses with ErrFull. What was admitted is taken
// back by leave. Deletes are admitted down to almost nothing.
func (g *diskGuard) enter(op string, size int64, deletesOnly bool) error {
	pending := g.inflight.Add(size)
	free, err := g.free()
	if err != nil {
		if errors.Is(err, vfs.ErrUnsupported) {
			return nil
		}
		g.leave(size)
		return fmt.Errorf("index: %s: free space: %w", op, err)
	}
	// Everything is written to the log and again to a table.
	need := g.min + 2*uint64(pending)
	if free >= need {
		if free-need > 2*uint64(g.reserve) {
			g.hold()
		}
		return nil
	}
	if deletesOnly {
		need = 1<<20 + 2*uint64(pending)
		if free < need {
			g.release()
			free += uint64(g.reserve)
		}
		if free >= need {
			return nil
		}
	}
	g.leave(size)
	return fmt.Errorf("index: %s: %w: %d bytes free, %d wanted", op, ErrFull, free, need)
}

func (g *diskGuard) leave(size int64) { g.inflight.Add(-size) }

// hold makes the reserve file if there is none. A file system that cannot
// allocate ahead has none.
func (g *diskGuard) hold() {
	if g.reserve == 0 {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.held {
		return
	}
	g.held = true // one attempt
	f, err := g.fs.Create(g.path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return
	}
	err = f.Preallocate(0, g.reserve)
	if errors.Join(err, f.Close()) != nil {
		_ = g.fs.Remove(g.path)
	}
}

// release gives the reserve up.
func (g *diskGuard) release() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.held {
		g.held = false
		_ = g.fs.Remove(g.path)
	}
}
