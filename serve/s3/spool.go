package s3

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"

	"github.com/zarrdb/zarrdb/internal/mmap"
	"github.com/zarrdb/zarrdb/kv"
)

// errFull means that temporary files have reached SpoolBytes.
var errFull = errors.New("too much is being written")

// inMemory is the size up to which a body is held in memory, and the piece in which
// SpoolBytes are reserved.
const inMemory = 1 << 20

// spool holds bodies until they are complete: short ones in memory, longer ones in
// temporary files, so that memory does not grow with the bytes that clients send.
type spool struct {
	dir   string
	limit int64
	used  atomic.Int64
}

// file is a body. Its temporary file is closed, because an upload may have ten thousand
// of them.
type file struct {
	s     *spool
	limit int64
	size  int64
	held  int64 // reserved
	b     []byte
	name  string // of the temporary file; "" for a body in memory
	out   *os.File
	once  sync.Once
}

// fill makes a body of at most limit bytes from the output of fn.
func (s *spool) fill(limit int64, fn func(w io.Writer) error) (*file, error) {
	f := &file{s: s, limit: limit}
	err := fn(f)
	if f.out != nil {
		err = errors.Join(err, f.out.Close())
	}
	if err != nil {
		f.close()
		return nil, err
	}
	if f.name == "" {
		f.s.used.Add(f.size - f.held)
		f.held = f.size
	}
	return f, nil
}

// Write implements io.Writer, for fill.
func (f *file) Write(b []byte) (int, error) {
	f.size += int64(len(b))
	if f.size > f.limit {
		return 0, fmt.Errorf("%w: a body has at most %d bytes", kv.ErrTooLarge, f.limit)
	}
	for f.held < f.size {
		if f.s.used.Add(inMemory) > f.s.limit {
			f.s.used.Add(-inMemory)
			return 0, errFull
		}
		f.held += inMemory
	}
	if f.out == nil && f.size <= inMemory {
		f.b = append(f.b, b...)
		return len(b), nil
	}
	if f.out == nil {
		temp, err := os.CreateTemp(f.s.dir, "zarrdb-upload-*")
		if err != nil {
			return 0, err
		}
		f.out, f.name = temp, temp.Name()
		if _, err := temp.Write(f.b); err != nil {
			return 0, err
		}
		f.b = nil
	}
	return f.out.Write(b)
}

// bytes calls fn with all of the body.
func (f *file) bytes(fn func([]byte) error) error {
	if f.name == "" {
		return fn(f.b)
	}
	temp, err := os.Open(f.name)
	if err != nil {
		return err
	}
	defer temp.Close()
	return mmap.With(temp, f.size, fn)
}

// close removes the body. Calling it twice is fine.
func (f *file) close() {
	f.once.Do(func() {
		if f.name != "" {
			_ = os.Remove(f.name)
		}
		f.s.used.Add(-f.held)
	})
}
