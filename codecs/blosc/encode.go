package blosc

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/zarrdb/zarrdb/codecs/kernels"
)

// Params say how data are encoded.
type Params struct {
	// Compressor is "blosclz", "lz4", "lz4hc", "snappy", "zlib" or "zstd".
	Compressor string
	// Level is 0 to 9: 0 stores, 1 is fast, 9 compresses most.
	Level int
	// Shuffle is the filter, for elements of TypeSize bytes, 1 or more.
	// Elements over MaxTypeSize are treated as single bytes.
	Shuffle  Shuffle
	TypeSize int
	// BlockSize is the size of a block in bytes; 0 chooses one by compressor,
	// level and TypeSize as the C library does.
	BlockSize int
}

// check returns the code of the compressor.
func (p Params) check() (int, error) {
	code := slices.Index(compressorNames[:], p.Compressor)
	if p.Compressor == "lz4hc" {
		code = codeLZ4
	}
	switch {
	case code < 0:
		return 0, fmt.Errorf("%w: compressor %q", errParams, p.Compressor)
	case p.Level < 0 || p.Level > 9:
		return 0, fmt.Errorf("%w: level %d is not in 0 to 9", errParams, p.Level)
	case p.Shuffle < NoShuffle || p.Shuffle > BitShuffle:
		return 0, fmt.Errorf("%w: shuffle %d is not in 0 to 2", errParams, p.Shuffle)
	case p.TypeSize < 1:
		return 0, fmt.Errorf("%w: type size %d", errParams, p.TypeSize)
	case p.BlockSize < 0:
		return 0, fmt.Errorf("%w: block size %d", errParams, p.BlockSize)
	}
	return code, nil
}

// Encode appends a frame that holds src to dst. Data that do not get smaller
// are stored, so that a frame is never more than HeaderSize longer than src.
// The error is ErrParams, also for more than MaxSize bytes.
func Encode(dst, src []byte, p Params) ([]byte, error) {
	code, err := p.check()
	if err != nil {
		return dst, err
	}
	if len(src) > MaxSize {
		return dst, fmt.Errorf("%w: %d bytes are more than %d", errParams, len(src), MaxSize)
	}
	if p.TypeSize > maxTypeSize {
		p.TypeSize = 1
	}
	i := Info{
		code: code, Compressor: p.Compressor, Shuffle: p.Shuffle, TypeSize: p.TypeSize,
		Size: int64(len(src)), BlockSize: int64(p.blockSize(len(src))),
	}
	i.Split = p.split(int(i.BlockSize))
	start := len(dst)
	dst = slices.Grow(dst, headerSize+len(src))
	if p.Level > 0 && len(src) >= minStream {
		var ok bool
		if dst, ok = i.encode(dst, src, p); ok {
			i.FrameSize = int64(len(dst) - start)
			i.putHeader(dst[start:])
			return dst, nil
		}
	}
	i.Stored = true
	i.FrameSize = headerSize + i.Size
	dst = append(dst[:start], make([]byte, headerSize)...)
	i.putHeader(dst[start:])
	return append(dst, src...), nil
}

func (i Info) putHeader(h []byte) {
	flags := byte(i.code) << 5
	switch i.Shuffle {
	case ByteShuffle:
		flags |= flagByteShuffle
	case BitShuffle:
		flags |= flagBitShuffle
	}
	if i.Stored {
		flags |= flagStored
	}
	if !i.Split {
		flags |= flagNotSplit
	}
	h[0], h[1], h[2], h[3] = formatVersion, streamVersion, flags, byte(i.TypeSize)
	binary.LittleEndian.PutUint32(h[4:], uint32(i.Size))
	binary.LittleEndian.PutUint32(h[8:], uint32(i.BlockSize))
	binary.LittleEndian.PutUint32(h[12:], uint32(i.FrameSize))
}

// encode appends the blocks of src, with room for the header. It reports false
// if that would not be smaller than storing src.
func (i Info) encode(dst, src []byte, p Params) ([]byte, bool) {
	start, limit := len(dst), len(dst)+headerSize+len(src)
	table := start + headerSize
	if limit-start < int(i.IndexSize()) {
		return dst, false
	}
	dst = dst[:start+int(i.IndexSize())]
	compress := encoders[p.Compressor]
	s := scratchPool.Get().(*scratch)
	defer scratchPool.Put(s)
	for len(src) > 0 {
		block := src[:min(len(src), int(i.BlockSize))]
		src = src[len(block):]
		binary.LittleEndian.PutUint32(dst[table:], uint32(len(dst)-start))
		table += 4
		streams := 1
		if i.Split && int64(len(block)) == i.BlockSize {
			streams = i.TypeSize
		}
		switch to := block; i.filter(len(block)) {
		case ByteShuffle:
			block = sized(&s.shuffled, len(block))
			kernels.Shuffle(block, to, i.TypeSize)
		case BitShuffle:
			block = sized(&s.shuffled, len(block))
			kernels.BitShuffle(block, to, i.TypeSize)
		}
		n := len(block) / streams
		for ; len(block) > 0; block = block[n:] {
			at := len(dst)
			if limit-at < 4 {
				return dst[:start], false
			}
			dst = dst[:at+4]
			// Room for one byte less than the data of the stream, or the
			// remaining room.
			room := dst[at+4 : min(at+4+n-1, limit)]
			m := compress(room, block[:n], p)
			if m == 0 {
				if limit-at-4 < n {
					return dst[:start], false
				}
				m = copy(dst[at+4:at+4+n], block)
			}
			dst = dst[:at+4+m]
			binary.LittleEndian.PutUint32(dst[at:], uint32(m))
		}
	}
	return dst, true
}

// blockSize returns the size of a block for n bytes of data.
func (p Params) blockSize(n int) int {
	if n < p.TypeSize {
		return 1
	}
	size := n
	if p.BlockSize > 0 {
		const most = (1<<31 - 1 - maxTypeSize*4) / 3
		size = min(max(p.BlockSize, minStream), most)
	} else if n >= 32<<10 {
		// The size of the first-level cache, times more at higher levels.
		size = 32 << 10
		thorough := p.Compressor == "lz4hc" || p.Compressor == "zlib" || p.Compressor == "zstd"
		if thorough {
			size *= 2
		}
		size = size * [...]int{1, 2, 4, 8, 16, 16, 32, 32, 32, 32}[p.Level] / 4
		if p.Level == 9 && thorough {
			size *= 2
		}
	}
	if p.Level > 0 && p.split(size) {
		// The cache has to hold one stream at a time only.
		size = min(max(min(size, 256<<10)*p.TypeSize, 64<<10), 1<<20)
	}
	size = min(size, n)
	if size > p.TypeSize {
		size = size / p.TypeSize * p.TypeSize
	}
	return size
}

// split reports whether blocks of that size get a stream for each byte of an
// element: always if that makes sense, but for zstd, which is better at it
// itself.
func (p Params) split(size int) bool {
	return p.Compressor != "zstd" && p.TypeSize <= maxStreams && size/p.TypeSize >= minStream
}
