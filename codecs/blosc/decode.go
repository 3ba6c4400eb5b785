package blosc

import (
	"encoding/binary"
	"fmt"
	"slices"
	"sync"

	"github.com/zarrdb/zarrdb/codecs/kernels"
)

// Decode appends the data of the frame src, at most max bytes, to dst. src is
// exactly one frame. An error is ErrCorrupt or ErrTooLarge; the slice is then
// dst as it was, but bytes up to its capacity may be overwritten.
func Decode(dst, src []byte, max int64) ([]byte, error) {
	i, table, err := whole(src)
	if err != nil {
		return dst, err
	}
	if i.Size > max {
		return dst, fmt.Errorf("%w: %d, not %d", errTooLarge, i.Size, max)
	}
	return i.decode(dst, table, src, 0, 0, i.Size)
}

// whole reads the header of a frame that is all there, and returns the block
// starts too.
func whole(src []byte) (Info, []byte, error) {
	i, err := Header(src)
	if err != nil {
		return Info{}, nil, err
	}
	if i.FrameSize != int64(len(src)) {
		return Info{}, nil, corrupt("%d bytes, the header has %d", len(src), i.FrameSize)
	}
	return i, src[headerSize:i.IndexSize()], nil
}

// decode appends n bytes of the data, from off on, to dst. enc is the part of
// the frame that begins at lo, table the block starts.
func (i Info) decode(dst, table, enc []byte, lo, off, n int64) ([]byte, error) {
	if off < 0 || n < 0 || n > i.Size-off {
		return dst, corrupt("%d bytes from %d on of %d", n, off, i.Size)
	}
	if n == 0 {
		return dst, nil
	}
	if i.Stored {
		at := headerSize + off - lo
		if at < 0 || n > int64(len(enc))-at {
			return dst, corrupt("%d bytes from %d on are not all there", n, off)
		}
		return append(dst, enc[at:at+n]...), nil
	}
	start := len(dst)
	out := slices.Grow(dst, int(n))[:start+int(n)]
	p := part{Info: i, table: table, enc: enc, lo: lo, off: off, out: out[start:]}
	if err := p.decode(); err != nil {
		return dst, err
	}
	return out, nil
}

// part is a range of the data that is being decoded.
type part struct {
	Info
	table, enc []byte
	lo         int64  // where enc begins in the frame
	off        int64  // where out begins in the data
	out        []byte // not empty
}

// decode decodes the part, in parallel if that is worth it and there are idle
// processors.
func (p *part) decode() error {
	first, end := p.off/p.BlockSize, (p.off+int64(len(p.out))-1)/p.BlockSize+1
	if most := min(end-first, int64(len(p.out))/p.share()); most > 1 {
		workers := busy.take(int32(min(most, maxWorkers)))
		defer busy.Add(-workers)
		if workers > 1 {
			return p.inParallel(int(workers), first, end)
		}
	}
	s := scratchPool.Get().(*scratch)
	defer scratchPool.Put(s)
	for k := first; k < end; k++ {
		if err := p.block(k, s); err != nil {
			return err
		}
	}
	return nil
}

// block decodes the bytes of a block that are in the part.
func (p *part) block(k int64, s *scratch) error {
	from := k * p.BlockSize
	size := min(p.BlockSize, p.Size-from)
	begin, end := max(from, p.off), min(from+size, p.off+int64(len(p.out)))
	out := p.out[begin-p.off : end-p.off : end-p.off]
	whole := out
	if end-begin < size {
		whole = sized(&s.part, int(size))
	}
	if err := p.Info.block(whole, p.enc, int64(binary.LittleEndian.Uint32(p.table[4*k:]))-p.lo, s); err != nil {
		return fmt.Errorf("%w (block %d)", err, k)
	}
	if end-begin < size {
		copy(out, whole[begin-from:])
	}
	return nil
}

// scratch has the buffers of one decoding call.
type scratch struct {
	shuffled []byte // a block before it is unshuffled
	part     []byte // a block of which only a part is wanted
}

var scratchPool = sync.Pool{New: func() any { return new(scratch) }}

// slack is the room behind the end of a stream in which a decoder of zstd can
// copy whole words, which saves a fifth of the time in blocks of 128 KiB.
const slack = 32

// sized returns a buffer of n bytes, in *b if that is large enough. Its capacity
// is slack more at least.
func sized(b *[]byte, n int) []byte {
	if cap(*b)-slack < n {
		*b = make([]byte, n+slack)
	}
	return (*b)[:n]
}

// filter returns the filter of a block of n bytes. Bits are only shuffled if
// there are whole groups of eight elements.
func (i Info) filter(n int) Shuffle {
	if i.Shuffle == BitShuffle && (n < i.TypeSize || n/i.TypeSize%8 != 0) {
		return NoShuffle
	}
	return i.Shuffle
}

// block decodes the block at enc[at] into out, which has its size.
func (i Info) block(out, enc []byte, at int64, s *scratch) error {
	streams := 1
	if i.Split && int64(len(out)) == i.BlockSize {
		streams = i.TypeSize
	}
	filter := i.filter(len(out))
	// Bytes behind out belong to the caller, bytes behind a stream are not
	// decoded yet.
	to, spare := out, 0
	if filter != NoShuffle {
		to, spare = sized(&s.shuffled, len(out)), slack
	}
	n := len(out) / streams
	for j := range streams {
		if at < 0 || at > int64(len(enc))-4 {
			return corrupt("stream %d is outside", j)
		}
		size := int64(binary.LittleEndian.Uint32(enc[at:]))
		at += 4
		if size > int64(len(enc))-at {
			return corrupt("stream %d has %d bytes of %d", j, int32(size), int64(len(enc))-at)
		}
		stream := enc[at : at+size]
		part := to[j*n : (j+1)*n : (j+1)*n+spare]
		if len(stream) == n {
			copy(part, stream)
		} else if err := decompress(i.code, part, stream); err != nil {
			return corrupt("stream %d: %s: %w", j, i.Compressor, err)
		}
		at += size
	}
	switch filter {
	case ByteShuffle:
		kernels.Unshuffle(out, to, i.TypeSize)
	case BitShuffle:
		kernels.BitUnshuffle(out, to, i.TypeSize)
	}
	return nil
}
