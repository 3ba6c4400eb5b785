package tiff

import (
	"context"

	"github.com/zarrdb/zarrdb/formats"
	"github.com/zarrdb/zarrdb/internal/lru"
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
	file   kv.Value
	front  []byte
	blocks *lru.Cache[int64, []byte] // by number
}

func openWindow(ctx context.Context, file kv.Value) (*window, error) {
	front, err := kv.ReadValue(ctx, file, kv.Span(0, min(frontBytes, file.Size())))
	blocks := lru.New[int64](maxBlocks*blockBytes, func(b []byte) int64 { return int64(len(b)) })
	return &window{file: file, front: front, blocks: blocks}, err
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
	return w.blocks.Get(ctx, i, func() ([]byte, error) {
		off := i * blockBytes
		return kv.ReadValue(ctx, w.file, kv.Span(off, min(blockBytes, w.file.Size()-off)))
	})
}
