package index

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/digest"
)

// Sweep deletes unreferenced pages, beside writers. It spares every page that
// was put after the sweep began: its bytes may equal a page that was found to be
// garbage before.
//
//	sweep begins ── mark ── Delete(names) ── Delete(names) ── Close
//	                  ▲          ▲
//	               put X      X is spared
type Sweep struct {
	x *Index

	mu  sync.Mutex
	put map[digest.Sum]struct{}
}

// errSweeping means that another sweep is running.
var errSweeping = errors.New("index: another sweep is running")

// Sweep begins a sweep. Only one runs at a time. It must be closed.
func (x *Index) Sweep() (*Sweep, error) {
	if err := x.enterWrite(); err != nil {
		return nil, err
	}
	defer x.use.leave()
	// A running commit ends first, so that its pages are visible.
	x.sweepMu.Lock()
	defer x.sweepMu.Unlock()
	if x.sweep != nil {
		return nil, errSweeping
	}
	x.sweep = &Sweep{x: x, put: map[digest.Sum]struct{}{}}
	return x.sweep, nil
}

// spare notes pages that are about to be put. x.sweepMu is held, shared.
func (w *Sweep) spare(names []digest.Sum) {
	if w == nil || len(names) == 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, n := range names {
		w.put[n] = struct{}{}
	}
}

// Delete removes pages, except those put since the sweep began, and returns
// their number. Commits wait meanwhile, so names should be few. It is durable
// after the next synced commit.
func (w *Sweep) Delete(names []digest.Sum) (int, error) {
	x := w.x
	b := x.NewBatch()
	defer b.Close()
	x.gate.pass(x.sublevels, x.use.closed)
	x.sweepMu.Lock()
	defer x.sweepMu.Unlock()
	n := 0
	for _, name := range names {
		if _, ok := w.put[name]; !ok {
			b.Delete(SpacePage, name[:])
			n++
		}
	}
	if n == 0 {
		return 0, b.err
	}
	return n, b.apply(false)
}

// Close ends the sweep.
func (w *Sweep) Close() {
	w.x.sweepMu.Lock()
	defer w.x.sweepMu.Unlock()
	if w.x.sweep == w {
		w.x.sweep = nil
	}
}

// Tidy gives back disk space beyond the contents of the index, beside readers and
// writers: memtables become tables, the files of old logs are removed, and the tables of
// pages are compacted if they are a quarter and 1 MiB larger than pageBytes, the bytes
// of all pages. Compaction ends early with ctx, a failure or Close.
func (x *Index) Tidy(ctx context.Context, pageBytes int64) error {
	if err := x.enterWrite(); err != nil {
		return err
	}
	defer x.use.leave()
	logs := x.guard.logPaths()
	x.guard.newLogs(true)
	err := x.Flush()
	x.guard.newLogs(false)
	if err != nil {
		return err
	}
	x.notRemoved(x.guard.trim(logs))
	lo, hi := appendBounds(nil, nil, SpacePage, nil, nil)
	tables, err := x.db.EstimateDiskUsage(lo, hi)
	if err != nil || int64(tables) <= pageBytes+pageBytes/4+slack {
		return readError("estimate the size of tables", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(x.life, cancel)()
	err = x.db.Compact(ctx, lo, hi, false)
	switch failed := x.guard.err(); {
	case failed != nil:
		return failed
	case err != nil && x.use.closed():
		return kv.ErrClosed
	case err != nil:
		return fmt.Errorf("index: compact: %w", err)
	}
	return nil
}

// slack is how many bytes of tables are not worth a compaction.
const slack = 1 << 20

// Stale returns the bytes of files in dir, a checkpoint, that the index would not share
// with a new one.
func (x *Index) Stale(dir string) (n int64, err error) {
	if err := x.enter(); err != nil {
		return 0, err
	}
	defer x.use.leave()
	levels, err := x.db.SSTables()
	if err != nil {
		return 0, readError("list the tables", err)
	}
	live := map[string]bool{}
	for _, tables := range levels {
		for _, t := range tables {
			live[fmt.Sprintf("%06d.sst", t.BackingSSTNum)] = true
		}
	}
	names, err := x.fs.List(dir)
	for _, name := range names {
		if fi, serr := x.fs.Stat(x.fs.PathJoin(dir, name)); serr == nil && !live[name] && !isList(name) {
			n += fi.Size()
		}
	}
	return n, err
}
