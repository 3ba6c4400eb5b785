package local

import (
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"sync/atomic"

	"github.com/zarrdb/zarrdb/internal/mmap"
	"github.com/zarrdb/zarrdb/serve/wire"
)

// fileTable has the files whose descriptors the server has sent. An open file
// prevents the database from freeing space, so there are few, and no file
// without an open view.
type fileTable struct {
	l *link

	mu    sync.Mutex
	files map[uint32]*file
	views int
	clock uint64
}

// maxFiles bounds the open files of a connection.
const maxFiles = 128

// file is one of them.
type file struct {
	number uint32
	f      *os.File
	used   uint64 // when it was used last

	mu     sync.Mutex
	m      *mapping // nil before it is used and when it is closed
	closed bool
}

// mapping is a file in memory. It is unmapped after its last use.
type mapping struct {
	refs atomic.Int32
	data []byte
}

func (m *mapping) unref() {
	if m.refs.Add(-1) == 0 {
		_ = mmap.Unmap(m.data)
	}
}

// arrived takes the descriptor that came with a reply.
func (t *fileTable) arrived(f *wire.Frame) error {
	if f.Flags&wire.FlagPlace == 0 || len(f.Files) == 0 {
		return nil
	}
	p, err := wire.ParsePlace(f.Meta)
	if err != nil || len(f.Files) != 1 {
		f.Close()
		return fmt.Errorf("%w: %d descriptors with one place", wire.ErrProtocol, len(f.Files))
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.files == nil {
		t.files = map[uint32]*file{}
	}
	if len(t.files) >= maxFiles {
		var oldest *file
		for _, f := range t.files {
			if oldest == nil || f.used < oldest.used {
				oldest = f
			}
		}
		t.drop(oldest)
	}
	t.clock++
	t.files[p.File] = &file{number: p.File, f: f.Files[0], used: t.clock}
	f.Files = nil
	return nil
}

// drop closes a file, and tells the server. t.mu is held.
func (t *fileTable) drop(f *file) {
	delete(t.files, f.number)
	// A place in this file that the server sends meanwhile is requested again,
	// as bytes. The receiver must not wait for the server.
	if meta, err := json.Marshal(wire.Forget{File: f.number}); err == nil {
		go func() { _ = t.l.w.Send(&wire.Frame{Op: wire.OpForget, Meta: meta}) }()
	}
	f.close()
}

// hold notes a view that is open.
func (t *fileTable) hold() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.views++
}

// release notes that a view was closed.
func (t *fileTable) release() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.views--; t.views == 0 {
		for _, f := range t.files {
			t.drop(f)
		}
	}
}

// close closes all files. The connection has ended.
func (t *fileTable) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, f := range t.files {
		f.close()
	}
	t.files = nil
}

// view calls fn with n bytes of a file. ok is false if the file is not there any
// more; fn was not called then.
func (t *fileTable) view(number uint32, off, n int64, fn func([]byte) error) (ok bool, err error) {
	t.mu.Lock()
	f := t.files[number]
	if f != nil {
		t.clock++
		f.used = t.clock
	}
	t.mu.Unlock()
	if f == nil {
		return false, nil
	}
	m := f.acquire(off + n)
	if m == nil {
		return false, nil
	}
	defer m.unref()
	return true, fn(m.data[off : off+n : off+n])
}

// acquire returns the file in memory, up to end at least; nil if that cannot be.
func (f *file) acquire(end int64) *mapping {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil
	}
	if f.m == nil || int64(len(f.m.data)) < end {
		fi, err := f.f.Stat()
		if err != nil || fi.Size() < end || int64(int(fi.Size())) != fi.Size() {
			return nil
		}
		data, err := mmap.File(f.f.Fd(), fi.Size())
		if err != nil {
			return nil
		}
		if f.m != nil {
			f.m.unref()
		}
		f.m = &mapping{data: data}
		f.m.refs.Store(1)
	}
	f.m.refs.Add(1)
	return f.m
}

func (f *file) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	_ = f.f.Close()
	if f.m != nil {
		f.m.unref()
		f.m = nil
	}
}
