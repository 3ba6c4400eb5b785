package formats

import (
	"context"
	"slices"

	"github.com/zarrdb/zarrdb/internal/lru"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/gather"
)

// BlockBytes is the length of the blocks that a [Window] reads.
const BlockBytes = 64 << 10

// windowReads is how many reads of one call are under way at a time.
const windowReads = 16

// Window reads parts of a file in blocks, and keeps the blocks that were used last. It is
// safe for concurrent use.
//
//	| front        |  block  |  block  | …     each block is read when it is needed
type Window struct {
	o      WindowOptions
	file   kv.Value
	front  []byte
	blocks *lru.Cache[int64, []byte] // by number
}

// WindowOptions bound the reads and the memory of a [Window]. There are no defaults:
// zero means zero.
type WindowOptions struct {
	// Scheme is the scheme of the format, for errors.
	Scheme string
	// Front is how many bytes of the beginning are read at once and stay.
	Front int64
	// Keep bounds the bytes of blocks that are kept.
	Keep int64
	// Gap is how many bytes between two parts [Window.ReadMany] reads to save a request.
	Gap int64
	// Most bounds the bytes of one read of several parts; 0 is no bound.
	Most int64
}

// OpenWindow reads the front of a file.
func OpenWindow(ctx context.Context, file kv.Value, o WindowOptions) (*Window, error) {
	front, err := kv.ReadValue(ctx, file, kv.Span(0, min(o.Front, file.Size())))
	blocks := lru.New[int64](o.Keep, func(b []byte) int64 { return int64(len(b)) })
	return &Window{o, file, front, blocks}, err
}

// Size is the length of the file.
func (w *Window) Size() int64 { return w.file.Size() }

// Front returns the beginning of the file, which must not be changed.
func (w *Window) Front() []byte { return w.front }

// Part is a part of a file.
type Part struct{ Off, N int64 }

// check reports whether the file has the part: ErrFormat if not.
func (w *Window) check(p Part) error {
	if size := w.Size(); p.Off < 0 || p.N < 0 || p.Off > size || p.N > size-p.Off {
		return Invalid("%s: %d bytes at %d, where the file has %d", w.o.Scheme, p.N, p.Off, size)
	}
	return nil
}

// Read fills dst with the bytes from off on. Outside the file that is ErrFormat.
func (w *Window) Read(ctx context.Context, dst []byte, off int64) error {
	b, err := w.Bytes(ctx, off, int64(len(dst)))
	copy(dst, b)
	return err
}

// Bytes returns n bytes from off on, which must not be changed: they may be bytes of a
// block. A range outside the file is ErrFormat. A range longer than a quarter of the
// kept bytes is read past the blocks.
func (w *Window) Bytes(ctx context.Context, off, n int64) ([]byte, error) {
	p := Part{off, n}
	if err := w.check(p); err != nil || n == 0 {
		return nil, err
	}
	if p.Off+p.N <= int64(len(w.front)) {
		return w.front[off : off+n], nil
	}
	first, last := p.blocks()
	switch {
	case n > max(w.o.Keep/4, BlockBytes):
		return kv.ReadValue(ctx, w.file, kv.Span(off, n))
	case first == last:
		b, err := w.block(ctx, first)
		if err != nil {
			return nil, err
		}
		return b[off-first*BlockBytes:][:n:n], nil
	}
	list, err := w.ReadMany(ctx, []Part{p})
	if err != nil {
		return nil, err
	}
	return list[0], nil
}

// ReadMany returns the bytes of many parts, as Bytes does. Blocks that lie near one
// another are read together, and several such reads are under way at a time. It uses
// memory for the parts, and up to Gap around each.
func (w *Window) ReadMany(ctx context.Context, parts []Part) ([][]byte, error) {
	var missing []int64
	have := map[int64][]byte{}
	for _, p := range parts {
		if err := w.check(p); err != nil {
			return nil, err
		}
		if p.N == 0 || p.Off+p.N <= int64(len(w.front)) {
			continue
		}
		for i, last := p.blocks(); i <= last; i++ {
			if _, ok := have[i]; ok {
				continue
			}
			b, ok := w.kept(i)
			if have[i] = b; !ok {
				missing = append(missing, i)
			}
		}
	}
	if err := w.load(ctx, missing, have); err != nil {
		return nil, err
	}
	out := make([][]byte, len(parts))
	for k, p := range parts {
		if p.N == 0 {
			continue
		}
		if p.Off+p.N <= int64(len(w.front)) {
			out[k] = w.front[p.Off : p.Off+p.N]
			continue
		}
		first, last := p.blocks()
		if b := have[first][p.Off-first*BlockBytes:]; first == last {
			out[k] = b[:p.N:p.N]
			continue
		}
		b := append(make([]byte, 0, p.N), have[first][p.Off-first*BlockBytes:]...)
		for i := first + 1; i <= last; i++ {
			b = append(b, have[i][:min(int64(len(have[i])), p.N-int64(len(b)))]...)
		}
		out[k] = b
	}
	return out, nil
}

// blocks returns the numbers of the first and last block of a part that is not empty.
func (p Part) blocks() (first, last int64) {
	return p.Off / BlockBytes, (p.Off + p.N - 1) / BlockBytes
}

// load reads blocks, and the blocks in gaps between them. It keeps all of them, and sets
// the blocks in have that have a key.
func (w *Window) load(ctx context.Context, missing []int64, have map[int64][]byte) error {
	slices.Sort(missing)
	var runs []Part // of blocks
	for _, i := range missing {
		if k := len(runs) - 1; k >= 0 {
			end, n := runs[k].Off+runs[k].N, i+1-runs[k].Off
			if (i-end)*BlockBytes <= w.o.Gap && (w.o.Most == 0 || n*BlockBytes <= w.o.Most) {
				runs[k].N = n
				continue
			}
		}
		runs = append(runs, Part{i, 1})
	}
	read := make([][][]byte, len(runs))
	err := gather.Each(ctx, windowReads, len(runs), func(ctx context.Context, k int) error {
		r := runs[k]
		if r.N == 1 { // perhaps another goroutine reads it
			b, err := w.block(ctx, r.Off)
			read[k] = [][]byte{b}
			return err
		}
		off := r.Off * BlockBytes
		span := kv.Span(off, min(r.N*BlockBytes, w.Size()-off))
		return w.file.View(ctx, span, func(all []byte) error {
			for b := range slices.Chunk(all, BlockBytes) {
				b = slices.Clone(b) // else one that is kept would hold all
				w.blocks.Put(r.Off+int64(len(read[k])), b)
				read[k] = append(read[k], b)
			}
			return nil
		})
	})
	if err != nil {
		return err
	}
	for k, r := range runs {
		for j, b := range read[k] {
			if _, ok := have[r.Off+int64(j)]; ok {
				have[r.Off+int64(j)] = b
			}
		}
	}
	return nil
}

// kept returns a block if it is in memory.
func (w *Window) kept(i int64) ([]byte, bool) {
	if end := (i + 1) * BlockBytes; end <= int64(len(w.front)) {
		return w.front[i*BlockBytes : end], true
	}
	return w.blocks.Peek(i)
}

// block returns a block by number. Several callers at a time cause one read.
func (w *Window) block(ctx context.Context, i int64) ([]byte, error) {
	return w.blocks.Get(ctx, i, func() ([]byte, error) {
		off := i * BlockBytes
		return kv.ReadValue(ctx, w.file, kv.Span(off, min(BlockBytes, w.Size()-off)))
	})
}
