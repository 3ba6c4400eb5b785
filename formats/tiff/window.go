package tiff

import (
	"context"
	"errors"
	"sync"

	"github.com/zarrdb/zarrdb/formats"
	"github.com/zarrdb/zarrdb/kv"
)

const (
	// frontBytes are read at once when a file is opened: in most files that are made for
	// servers, all directories with the offsets of all tiles.
	frontBytes = 256 << 10
	blockBytes = 64 << 10
	// maxBlocks of blockBytes are kept.
	maxBlocks = 64
)

// window reads small pieces of a file in blocks, and keeps some of them. It is safe for
// concurrent use.
//
//	| front        |  block  |  block  | …     each block is read when it is needed
type window struct {
	file  kv.Value
	front []byte

	mu     sync.Mutex
	blocks map[int64]*block // by number
	clock  int64
}

type block struct {
	ready chan struct{} // closed when data and err are set
	data  []byte
	err   error
	used  int64 // clock of the last use
}

func openWindow(ctx context.Context, file kv.Value) (*window, error) {
	front, err := kv.ReadValue(ctx, file, kv.Span(0, min(frontBytes, file.Size())))
	return &window{file: file, front: front, blocks: map[int64]*block{}}, err
}

// read fills dst with the bytes from off on. Outside the file that is formats.ErrFormat.
func (w *window) read(ctx context.Context, dst []byte, off int64) error {
	size := w.file.Size()
	if off < 0 || off > size || int64(len(dst)) > size-off {
		return formats.Invalid("tiff: %d bytes at %d, where the file has %d", len(dst), off, size)
	}
	if len(dst) > blockBytes {
		b, err := kv.ReadValue(ctx, w.file, kv.Span(off, int64(len(dst))))
		copy(dst, b)
		return err
	}
	if off < int64(len(w.front)) {
		n := copy(dst, w.front[off:])
		dst, off = dst[n:], off+int64(n)
	}
	for len(dst) > 0 {
		b, err := w.block(ctx, off/blockBytes)
		if err != nil {
			return err
		}
		n := copy(dst, b[off%blockBytes:])
		dst, off = dst[n:], off+int64(n)
	}
	return nil
}

// block returns a block by number. Several callers at a time cause one read.
func (w *window) block(ctx context.Context, i int64) ([]byte, error) {
	for {
		w.mu.Lock()
		b := w.blocks[i]
		reads := b == nil
		if reads {
			b = &block{ready: make(chan struct{})}
			w.evict()
			w.blocks[i] = b
		}
		w.clock++
		b.used = w.clock
		w.mu.Unlock()
		if !reads {
			select {
			case <-b.ready:
			case <-ctx.Done():
				return nil, ctx.Err()
			}
			// The read of another caller may have been cancelled.
			if errors.Is(b.err, context.Canceled) || errors.Is(b.err, context.DeadlineExceeded) {
				if err := ctx.Err(); err != nil {
					return nil, err
				}
				continue
			}
			return b.data, b.err
		}
		off := i * blockBytes
		b.data, b.err = kv.ReadValue(ctx, w.file, kv.Span(off, min(blockBytes, w.file.Size()-off)))
		if b.err != nil {
			w.mu.Lock()
			if w.blocks[i] == b {
				delete(w.blocks, i)
			}
			w.mu.Unlock()
		}
		close(b.ready)
		return b.data, b.err
	}
}

// evict makes room for a block. w.mu is held.
func (w *window) evict() {
	for len(w.blocks) >= maxBlocks {
		oldest := int64(-1)
		for i, b := range w.blocks {
			if oldest < 0 || b.used < w.blocks[oldest].used {
				oldest = i
			}
		}
		delete(w.blocks, oldest)
	}
}
