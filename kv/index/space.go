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
	dir      string
	path     string // of the reserve file
	free     func() (uint64, error)
	min      uint64
	reserve  int64
	creating atomic.Bool  // see Index.Created
	inflight atomic.Int64 // bytes of batches that are being committed

	mu   sync.Mutex
	held bool // the reserve file exists
}

const reserveFile = "RESERVE"

func newDiskGuard(dir string, o *Options) *diskGuard {
	g := &diskGuard{
		fs: o.FS, dir: dir, path: o.FS.PathJoin(dir, reserveFile), free: o.DiskFree,
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

// leastFree is the space that deleting and opening usually need.
const leastFree = 1 << 20

// opening gives the reserve up if there is no room to open the index, which
// writes a list of tables before anything can be deleted.
func (g *diskGuard) opening() {
	if free, err := g.free(); err == nil && free < leastFree {
		g.release()
	}
}

// enter admits size bytes, or returns ErrFull; leave releases them. Batches that
// make room are admitted until almost no space is left.
func (g *diskGuard) enter(op string, size int64, makesRoom bool) error {
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
	if makesRoom {
		need = leastFree + 2*uint64(pending)
		if free < need {
			free += g.release()
		}
		if free >= need {
			return nil
		}
	}
	g.leave(size)
	hint := ""
	switch {
	case g.creating.Load():
		hint = "; a new database needs this much room: remove other files, or choose another disk"
	case !makesRoom:
		hint = "; gc frees what failed writes left"
	}
	return fmt.Errorf("index: %s: %w: %.1f MiB free for %s, %.1f MiB wanted%s", op, ErrFull, mebi(free), g.dir, mebi(need), hint)
}

// LowSpace returns an error if the disk is so full that commits stop soon, below four times the space at which they do. Where
// they have stopped, their error tells it.
func (x *Index) LowSpace() error {
	free, err := x.disk.free()
	if err != nil || free < x.disk.min || free >= 4*x.disk.min {
		return nil // nothing is known, or there is space
	}
	return fmt.Errorf("%w soon: %.1f MiB free for %s, and commits stop below %.1f MiB; gc and expire make room", ErrFull, mebi(free), x.disk.dir, mebi(x.disk.min))
}

func mebi(n uint64) float64 { return float64(n) / (1 << 20) }

func (g *diskGuard) leave(size int64) { g.inflight.Add(-size) }

// hold makes the reserve file if it does not exist. On a file system without
// preallocation there is no reserve.
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

// release removes the reserve and returns its size, 0 without one.
func (g *diskGuard) release() uint64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.held {
		return 0
	}
	g.held = false
	if g.fs.Remove(g.path) != nil {
		return 0
	}
	return uint64(g.reserve)
}

// DiskFree returns the free bytes of the disk of a directory, as this user may use them.
func DiskFree(dir string) (uint64, error) {
	u, err := vfs.Default.GetDiskUsage(dir)
	return u.AvailBytes, err
}
