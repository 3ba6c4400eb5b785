package blosc

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

var (
	// errCorrupt marks a frame that breaks the format.
	errCorrupt = errors.New("blosc: corrupt frame")

	// errTooLarge means that a frame holds more bytes than it may.
	errTooLarge = errors.New("blosc: more bytes than allowed")

	// errParams means that data cannot be encoded with the given parameters.
	errParams = errors.New("blosc: bad parameters")
)

const (
	// headerSize is the length of the header in bytes.
	headerSize = 16

	// MaxSize is the most bytes that a frame can hold.
	MaxSize = math.MaxInt32 - headerSize

	// maxTypeSize is the size of the largest element that can be shuffled, in
	// bytes.
	maxTypeSize = 255

	formatVersion = 2
	streamVersion = 1

	flagByteShuffle = 1 << 0
	flagStored      = 1 << 1
	flagBitShuffle  = 1 << 2
	flagReserved    = 1 << 3
	flagNotSplit    = 1 << 4

	// A block is only split into streams of at least minStream bytes, and at
	// most maxStreams of them.
	minStream  = 128
	maxStreams = 16
)

// Shuffle is the filter that comes before the compressor. The values are as in
// the numcodecs configuration.
type Shuffle int

// The shuffles.
const (
	NoShuffle Shuffle = iota
	ByteShuffle
	BitShuffle
)

// The compressors by their number in the header. lz4hc writes lz4 streams.
const (
	codeBlosclz = iota
	codeLZ4
	codeSnappy
	codeZlib
	codeZstd
)

var compressorNames = [...]string{"blosclz", "lz4", "snappy", "zlib", "zstd"}

// Info is the contents of the header of a frame.
type Info struct {
	// Compressor is one of "blosclz", "lz4" (also for lz4hc), "snappy", "zlib"
	// and "zstd".
	Compressor string
	// Shuffle is the filter, of elements of TypeSize bytes.
	Shuffle  Shuffle
	TypeSize int
	// Size, BlockSize and FrameSize are lengths in bytes: of the data, of one
	// block of it, and of the whole frame.
	Size, BlockSize, FrameSize int64
	// Stored means that the data are neither shuffled nor compressed.
	Stored bool
	// Split means that blocks, except a short last one, have a stream for each
	// byte of an element.
	Split bool

	code int
}

// Header reads the header of the frame that src, 16 bytes or more, begins with.
// It checks the values for contradictions, so that they are safe to compute
// with, but not against the length of src.
func Header(src []byte) (Info, error) {
	if len(src) < headerSize {
		return Info{}, corrupt("%d bytes are no header", len(src))
	}
	flags := src[2]
	i := Info{
		code:      int(flags >> 5),
		TypeSize:  int(src[3]),
		Size:      int64(binary.LittleEndian.Uint32(src[4:])),
		BlockSize: int64(binary.LittleEndian.Uint32(src[8:])),
		FrameSize: int64(binary.LittleEndian.Uint32(src[12:])),
		Stored:    flags&flagStored != 0,
	}
	switch {
	case src[0] != formatVersion:
		return Info{}, corrupt("format version %d, not %d", src[0], formatVersion)
	case flags&flagReserved != 0:
		return Info{}, corrupt("reserved flags %#02x", flags)
	case i.Size > MaxSize:
		return Info{}, corrupt("a data size of %d", i.Size)
	case i.FrameSize < headerSize:
		return Info{}, corrupt("a frame size of %d", i.FrameSize)
	case i.TypeSize == 0:
		return Info{}, corrupt("a type size of 0")
	case i.Size > 0 && (i.BlockSize == 0 || i.BlockSize > i.Size):
		return Info{}, corrupt("blocks of %d bytes of %d", i.BlockSize, i.Size)
	case i.Stored && i.FrameSize != i.Size+headerSize:
		return Info{}, corrupt("a stored frame of %d bytes for %d", i.FrameSize, i.Size)
	case !i.Stored && i.code >= len(compressorNames):
		return Info{}, corrupt("compressor %d", i.code)
	case !i.Stored && src[1] != streamVersion:
		return Info{}, corrupt("version %d of %s", src[1], compressorNames[i.code])
	case !i.Stored && i.IndexSize() > i.FrameSize:
		return Info{}, corrupt("%d blocks in a frame of %d bytes", i.blocks(), i.FrameSize)
	}
	if i.code < len(compressorNames) {
		i.Compressor = compressorNames[i.code]
	}
	switch {
	case flags&flagByteShuffle != 0 && i.TypeSize > 1:
		i.Shuffle = ByteShuffle
	case flags&flagBitShuffle != 0:
		i.Shuffle = BitShuffle
	}
	i.Split = !i.Stored && flags&flagNotSplit == 0 &&
		i.TypeSize <= maxStreams && i.BlockSize/int64(i.TypeSize) >= minStream
	if i.Split && i.BlockSize%int64(i.TypeSize) != 0 {
		return Info{}, corrupt("blocks of %d bytes split into %d", i.BlockSize, i.TypeSize)
	}
	return i, nil
}

// IndexSize returns the length of the header and the block starts, which begin
// the frame.
func (i Info) IndexSize() int64 {
	if i.Stored {
		return headerSize
	}
	return headerSize + 4*i.blocks()
}

// blocks returns the number of blocks.
func (i Info) blocks() int64 {
	if i.Size == 0 {
		return 0
	}
	return (i.Size + i.BlockSize - 1) / i.BlockSize
}

func corrupt(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{errCorrupt}, args...)...)
}
