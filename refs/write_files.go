package refs

import (
	"context"
	"fmt"
	"slices"

	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/refs/parquet"
)

// fileWriter encodes and writes partitions in a goroutine, one after the other,
// while the next ones are being filled.
type fileWriter struct {
	jobs  chan *filling
	ready chan struct{} // receives after each job
	busy  bool          // a job was sent; ready reports its end
	err   error         // the first one, valid after ready
	done  bool
}

// start starts to write files to dest, padded to the record size. The caller
// must call finish.
func (f *fileWriter) start(ctx context.Context, dest kv.Writer, record int) {
	f.jobs, f.ready = make(chan *filling), make(chan struct{}, 1)
	go func() {
		defer close(f.ready)
		e := fileEncoder{record: record}
		for p := range f.jobs {
			if f.err == nil {
				f.err = e.write(ctx, dest, p)
			}
			f.ready <- struct{}{}
		}
	}()
}

// write starts to write a partition when the partition before is written. If wait is
// set, it waits for the new one too. After an error it only returns that error.
func (f *fileWriter) write(p *filling, wait bool) error {
	if err := f.wait(); err != nil {
		return err
	}
	f.jobs <- p
	f.busy = true
	if wait {
		return f.wait()
	}
	return nil
}

// wait waits for the partition that is being written.
func (f *fileWriter) wait() error {
	if f.busy {
		<-f.ready
		f.busy = false
	}
	return f.err
}

// finish waits for everything and ends the goroutine.
func (f *fileWriter) finish() error {
	err := f.wait()
	if !f.done {
		f.done = true
		close(f.jobs)
		<-f.ready
	}
	return err
}

// fileEncoder encodes partitions as files, in reused memory.
type fileEncoder struct {
	record int
	table  parquet.Table
	file   []byte
}

// write writes a partition, padded to the record size.
func (e *fileEncoder) write(ctx context.Context, dest kv.Writer, p *filling) (err error) {
	rows := len(p.table.Path)
	t := &e.table
	t.Paths, t.Raw = p.table.Paths, p.table.Raw
	t.Path = append(t.Path[:0], p.table.Path...)
	t.Offset = append(t.Offset[:0], p.table.Offset...)
	t.Size = append(t.Size[:0], p.table.Size...)
	if p.url != "" {
		p.sortPaths(t)
	}
	t.Path, t.Offset, t.Size = slices.Grow(t.Path, e.record-rows)[:e.record], slices.Grow(t.Offset, e.record-rows)[:e.record], slices.Grow(t.Size, e.record-rows)[:e.record]
	clear(t.Offset[rows:])
	clear(t.Size[rows:])
	for i := rows; i < e.record; i++ {
		t.Path[i] = -1
	}
	name := p.a.file(p.number)
	if e.file, err = t.Append(e.file[:0]); err == nil {
		err = dest.Set(ctx, name, e.file)
	}
	if err != nil {
		return fmt.Errorf("refs: %s: %w", name, err)
	}
	return nil
}

// sortPaths numbers the URLs of t in the order of the rows, so that the bytes
// do not depend on the order in which entries came.
func (p *filling) sortPaths(t *parquet.Table) {
	order := make([]int32, len(t.Paths))
	for i := range order {
		order[i] = -1
	}
	paths := make([]string, 0, len(t.Paths))
	for i, n := range t.Path {
		if n < 0 {
			continue
		}
		if order[n] < 0 {
			order[n] = int32(len(paths))
			paths = append(paths, t.Paths[n])
		}
		t.Path[i] = order[n]
	}
	t.Paths = paths
}
