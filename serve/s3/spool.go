package s3

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"

	"github.com/zarrdb/zarrdb/internal/mmap"
	"github.com/zarrdb/zarrdb/kv"
)

// Long bodies are in temporary files until they are complete, so that memory
// does not grow with the bytes that clients send.

// errFull means that temporary files have reached SpoolBytes.
var errFull = errors.New("too much is being written")

// inMemory is the size up to which a body is held in memory.
const inMemory = 1 << 20

// sent is a body that a client sends. What is wrong with it is the client's fault.
type sent struct{ io.Reader }

func (s sent) Read(p []byte) (int, error) {
	n, err := s.Reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = sentError{err}
	}
	return n, err
}

// sentError is the error of reading a body.
type sentError struct{ error }

func (e sentError) Unwrap() error { return e.error }

type spool struct {
	dir   string
	limit int64
	used  atomic.Int64
}

func newSpool(dir string, limit int64) *spool { return &spool{dir: dir, limit: limit} }

// reserve reserves n bytes of SpoolBytes.
func (s *spool) reserve(n int64) error {
	if s.used.Add(n) > s.limit {
		s.used.Add(-n)
		return errFull
	}
	return nil
}

// file is a body: in memory, or in a temporary file if it has a name. The file
// is closed, because an upload may have ten thousand of them.
type file struct {
	s    *spool
	size int64
	held int64 // reserved
	b    []byte
	name string
	once sync.Once
}

// fill reads a body of size bytes; -1 reads to the end.
func (s *spool) fill(in io.Reader, size, limit int64) (_ *file, err error) {
	if size > limit {
		return nil, fmt.Errorf("%w: an object has at most %d bytes", kv.ErrTooLarge, limit)
	}
	f := &file{s: s}
	defer func() {
		if err != nil {
			f.close()
		}
	}()
	if size >= 0 && size <= inMemory {
		if err := f.grow(size); err != nil {
			return nil, err
		}
		f.b = make([]byte, size)
		if _, err := io.ReadFull(in, f.b); err != nil {
			return nil, short(err)
		}
		// Checksums of the sender come at the end.
		if n, err := in.Read(make([]byte, 1)); n > 0 || err != nil && !errors.Is(err, io.EOF) {
			return nil, errors.Join(err, more(n))
		}
		f.size = size
		return f, nil
	}
	temp, err := os.CreateTemp(s.dir, "zarrdb-upload-*")
	if err != nil {
		return nil, err
	}
	f.name = temp.Name()
	if err := errors.Join(f.copy(temp, in, size, limit), temp.Close()); err != nil {
		return nil, err
	}
	return f, nil
}

// copy writes a body to its file.
func (f *file) copy(temp *os.File, in io.Reader, size, limit int64) error {
	for {
		if err := f.grow(inMemory); err != nil {
			return err
		}
		n, err := io.CopyN(temp, in, inMemory)
		f.size += n
		switch {
		case f.size > limit:
			return fmt.Errorf("%w: an object has at most %d bytes", kv.ErrTooLarge, limit)
		case errors.Is(err, io.EOF) && size >= 0 && f.size != size:
			return io.ErrUnexpectedEOF
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
	}
}

func short(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

func more(n int) error {
	if n > 0 {
		return fmt.Errorf("%w: it is longer than announced", kv.ErrTooLarge)
	}
	return nil
}

func (f *file) grow(n int64) error {
	if err := f.s.reserve(n); err != nil {
		return err
	}
	f.held += n
	return nil
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

// chain reads bodies one after the other.
type chain struct {
	files []*file
	now   io.ReadCloser
}

func (c *chain) Read(p []byte) (int, error) {
	for {
		if c.now == nil {
			if len(c.files) == 0 {
				return 0, io.EOF
			}
			f := c.files[0]
			c.files = c.files[1:]
			if c.now = io.NopCloser(bytes.NewReader(f.b)); f.name != "" {
				temp, err := os.Open(f.name)
				if err != nil {
					return 0, err
				}
				c.now = temp
			}
		}
		n, err := c.now.Read(p)
		if !errors.Is(err, io.EOF) {
			return n, err
		}
		if err := c.Close(); err != nil || n > 0 {
			return n, err
		}
	}
}

func (c *chain) Close() error {
	if c.now == nil {
		return nil
	}
	err := c.now.Close()
	c.now = nil
	return err
}
