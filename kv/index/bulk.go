package index

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/objstorage/objstorageprovider"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/digest"
)

// Page is a page with its name.
type Page struct {
	Name  digest.Sum
	Bytes []byte
}

const (
	// ingestDir holds tables that are being made. Open empties it.
	ingestDir = "ingest"
	// ingestBytes is the size of one such table.
	ingestBytes = 64 << 20
)

// Ingest stores pages, in ascending order of names without repetition, past
// the log. It is atomic and durable when it returns nil; otherwise nothing was
// stored, except after [ErrFailed]. Bytes are read before the next step of
// pages. Memory grows by 20 bytes for each.
func (x *Index) Ingest(pages iter.Seq2[Page, error]) error {
	if err := x.enterWrite(); err != nil {
		return err
	}
	defer x.use.leave()
	x.ingest.Lock()
	defer x.ingest.Unlock()
	dir := x.fs.PathJoin(x.dir, ingestDir)
	err := x.fs.MkdirAll(dir, 0o777)
	if err == nil {
		err = x.ingestFrom(dir, pages)
	}
	// The rest is garbage that the next Ingest or Open removes.
	x.notRemoved(x.fs.RemoveAll(dir))
	if failed := x.guard.err(); failed != nil {
		return failed
	}
	if err != nil {
		if isFull(err) {
			err = fmt.Errorf("%w: %w", ErrFull, err)
		}
		return fmt.Errorf("index: ingest: %w", err)
	}
	return nil
}

func (x *Index) ingestFrom(dir string, pages iter.Seq2[Page, error]) error {
	t := tableWriter{x: x, dir: dir}
	err := t.add(pages)
	err = errors.Join(err, t.finish())
	if err != nil || len(t.paths) == 0 {
		return err
	}
	x.sweepMu.RLock()
	defer x.sweepMu.RUnlock()
	x.sweep.spare(t.names)
	x.quiet.RLock()
	defer x.quiet.RUnlock()
	if err := x.guard.err(); err != nil {
		return err
	}
	x.wrote.Store(true)
	return x.db.Ingest(context.Background(), t.paths)
}

// tableWriter cuts a sorted sequence into tables.
type tableWriter struct {
	x     *Index
	dir   string
	paths []string
	names []digest.Sum // for a sweep that may run
	w     *sstable.Writer
	size  int64
}

func (t *tableWriter) add(pages iter.Seq2[Page, error]) error {
	key := make([]byte, 1, 1+digest.Size)
	key[0] = byte(SpacePage)
	var last digest.Sum
	for p, err := range pages {
		if err != nil {
			return err
		}
		if len(t.paths) > 0 && bytes.Compare(p.Name[:], last[:]) <= 0 {
			return fmt.Errorf("page %v after %v: not ascending", p.Name, last)
		}
		last = p.Name
		t.names = append(t.names, p.Name)
		if t.w == nil {
			if err := t.create(); err != nil {
				return err
			}
		}
		if err := t.w.Set(append(key[:1], p.Name[:]...), p.Bytes); err != nil {
			return err
		}
		if t.size += int64(len(p.Bytes)); t.size >= ingestBytes {
			if err := t.finish(); err != nil {
				return err
			}
		}
	}
	return nil
}

func (t *tableWriter) create() error {
	if err := t.x.enterable(); err != nil {
		return err
	}
	if err := t.x.disk.enter("ingest", ingestBytes, false); err != nil {
		return err
	}
	t.x.disk.leave(ingestBytes)
	path := t.x.fs.PathJoin(t.dir, fmt.Sprintf("%06d.sst", len(t.paths)))
	f, err := t.x.fs.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	o := t.x.opts.MakeWriterOptions(6, t.x.db.TableFormat())
	t.w = sstable.NewWriter(objstorageprovider.NewFileWritable(f), o)
	t.paths = append(t.paths, path)
	t.size = 0
	return nil
}

// finish completes the table in work and syncs it.
func (t *tableWriter) finish() error {
	if t.w == nil {
		return nil
	}
	w := t.w
	t.w = nil
	return w.Close()
}

// enterable reports why a long call should stop.
func (x *Index) enterable() error {
	if x.use.closed() {
		return kv.ErrClosed
	}
	return x.guard.err()
}

// Flush writes the memtables to tables, durably.
func (x *Index) Flush() error {
	if err := x.enterWrite(); err != nil {
		return err
	}
	defer x.use.leave()
	err := x.db.Flush()
	if failed := x.guard.err(); failed != nil {
		return failed
	}
	if err != nil {
		return fmt.Errorf("index: flush: %w", err)
	}
	return nil
}

// FlushSoon begins to write the memtables to tables and does not wait for it, so
// that an Open after a crash finds little in the log. Later writes return its
// errors.
func (x *Index) FlushSoon() {
	if x.enterWrite() == nil {
		_, _ = x.db.AsyncFlush()
		x.use.leave()
	}
}

// checkpointTries bounds how often a checkpoint begins again.
const checkpointTries = 3

// Checkpoint makes a copy of the index in dir, which must not exist and must
// not lie in the index. It holds every commit that has returned; commits wait
// while it runs. Tables are hard links where the file system has them, so that
// it takes milliseconds and shares the space. It is durable when it returns.
func (x *Index) Checkpoint(dir string) error {
	if err := x.enterWrite(); err != nil {
		return err
	}
	defer x.use.leave()
	x.quiet.Lock()
	defer x.quiet.Unlock()
	_ = x.guard.takeOutside()
	var err error
	if x.lists.Load() == 0 {
		// Pebble copies as much of the list of tables as it wrote itself: nothing,
		// if there was no log to be read when it was opened. A flush makes a list.
		err = x.db.Flush()
	}
	var n uint64
	if err == nil {
		n, err = x.countUp()
	}
	for try := 0; err == nil; try++ {
		// A log that was read at the start is removed in the background, perhaps before its turn.
		err = x.db.Checkpoint(dir, pebble.WithFlushedWAL())
		if err == nil || !errors.Is(err, fs.ErrNotExist) || try == checkpointTries {
			break
		}
		err = x.fs.RemoveAll(dir)
	}
	if err == nil {
		err = x.guard.takeOutside()
		if err == nil {
			err = writeWitness(x.fs, dir, n)
		}
		if err == nil {
			err = writeFormat(x.fs, dir)
		}
		if err != nil {
			err = errors.Join(err, x.fs.RemoveAll(dir))
		}
	}
	if failed := x.guard.err(); failed != nil {
		return failed
	}
	if err != nil {
		return fmt.Errorf("index: checkpoint %s: %w", dir, err)
	}
	return nil
}

// Metrics are counters of an open index.
type Metrics struct {
	// DiskBytes is the size of all files of the index.
	DiskBytes uint64
	// LogBytes are the bytes that batches wrote to the log since Open.
	LogBytes uint64
	// LogLiveBytes are the bytes of the log that the next Open would read.
	LogLiveBytes uint64
}

// Metrics returns the present counters. They are zero after Close.
func (x *Index) Metrics() Metrics {
	if x.enter() != nil {
		return Metrics{}
	}
	defer x.use.leave()
	m := x.db.Metrics()
	return Metrics{
		// Pebble counts the present log with the size that it began with.
		DiskBytes:    m.DiskSpaceUsage() - m.WAL.PhysicalSize + max(m.WAL.PhysicalSize, m.WAL.Size),
		LogBytes:     uint64(x.logged.Load()),
		LogLiveBytes: m.WAL.Size,
	}
}

var _ io.Closer = (*Index)(nil)
