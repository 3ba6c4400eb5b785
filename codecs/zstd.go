package codecs

import (
	"encoding/json"
	"errors"
	"io"
	"math"
	"math/bits"
	"sync"

	"github.com/klauspost/compress/zstd"

	"github.com/zarrdb/zarrdb/codecs/internal/scratch"
	own "github.com/zarrdb/zarrdb/codecs/zstd"
)

// zstdCodec is the codec "zstd" (RFC 8878) of v3 and numcodecs.
type zstdCodec struct {
	level    int
	checksum bool
}

func parseZstd(c Config) (Codec, error) {
	f := c.Fields()
	// The levels of the reference library are -131072 to 22. numcodecs encodes
	// other levels as the nearest of these, and stores the configured level.
	level := f.Int("level", 0, math.MinInt64, math.MaxInt64)
	return &zstdCodec{
		level:    int(max(-1<<17, min(level, 22))),
		checksum: f.Bool("checksum", false),
	}, f.Err()
}

func (z *zstdCodec) Config() json.RawMessage {
	return Object("level", z.level, "checksum", z.checksum)
}

// ConfigV2 implements v2Printer. The member checksum is left out: tensorstore and
// numcodecs before 0.13 refuse it, and chunks decode without it.
func (z *zstdCodec) ConfigV2(Rep) json.RawMessage { return Object("level", z.level) }

func (z *zstdCodec) Bind(in Rep) (Stage, Rep, error) {
	level := z.level
	if level == 0 {
		level = 3 // the default, as in the reference library
	}
	return &zstdStage{
		in: in, level: zstd.EncoderLevelFromZstd(level), literals: level > 0, checksum: z.checksum,
	}, in.Grown(), nil
}

type zstdStage struct {
	in       Rep
	level    zstd.EncoderLevel
	literals bool // compress them even without matches
	checksum bool
}

// Encoders by level (0 for negative levels, which do not compress literals),
// checksum and size of input: they keep a window, which need not be larger than
// a chunk. The last size is for chunks that are larger than any window here.
const (
	minZstdWindow = 17 // one block
	maxZstdWindow = 23 // 8 MiB, which every decoder accepts
)

var (
	ownZstdEncoders = sync.Pool{New: func() any { return new(own.Encoder) }}
	ownZstdDecoders = sync.Pool{New: func() any { return new(own.Decoder) }}

	// The library, for frames that the encoders and decoders above cannot do.
	zstdEncoders [5][2][maxZstdWindow - minZstdWindow + 2]sync.Pool
	zstdDecoders sync.Pool
)

func (s *zstdStage) encoder(n int) (*zstd.Encoder, *sync.Pool, error) {
	window := max(minZstdWindow, bits.Len(uint(max(n, 1)-1)))
	fits := window <= maxZstdWindow
	window = min(window, maxZstdWindow+1)
	crc, level := 0, s.level
	if s.checksum {
		crc = 1
	}
	if !s.literals {
		level = 0
	}
	pool := &zstdEncoders[level][crc][window-minZstdWindow]
	if e, ok := pool.Get().(*zstd.Encoder); ok {
		return e, pool, nil
	}
	e, err := zstd.NewWriter(nil,
		zstd.WithEncoderConcurrency(1),
		zstd.WithEncoderLevel(s.level),
		zstd.WithEncoderCRC(s.checksum),
		zstd.WithWindowSize(1<<min(window, maxZstdWindow)),
		// Without it the frame of a small chunk has no size, which some readers
		// need.
		zstd.WithSingleSegment(fits),
		zstd.WithZeroFrames(true),
		// Floats have few matches but skewed bytes: 12 % smaller, as the reference
		// library does it from level 1 on.
		zstd.WithAllLitEntropyCompression(s.literals),
		zstd.WithLowerEncoderMem(fits))
	return e, pool, err
}

func (s *zstdStage) Encode(dst, src []byte) ([]byte, error) {
	if s.level == zstd.SpeedDefault && s.literals && !s.checksum && len(src) <= own.MaxBytes {
		e := ownZstdEncoders.Get().(*own.Encoder)
		dst = e.Encode(dst, src)
		ownZstdEncoders.Put(e)
		return dst, nil
	}
	e, pool, err := s.encoder(len(src))
	if err != nil {
		return dst, err
	}
	dst = e.EncodeAll(src, dst)
	pool.Put(e)
	return dst, nil
}

func zstdDecoder() (*zstd.Decoder, error) {
	if d, ok := zstdDecoders.Get().(*zstd.Decoder); ok {
		return d, nil
	}
	return zstd.NewReader(nil,
		zstd.WithDecoderConcurrency(1),
		// The output is its own window, so that a large window needs no memory.
		zstd.WithDecoderMaxWindow(1<<32),
		zstd.WithDecodeAllCapLimit(true))
}

func (s *zstdStage) Decode(dst, src []byte) ([]byte, error) {
	limit := s.in.Limit(len(src))
	guess := limit
	if s.in.Size < 0 {
		guess = guessZstd(src, limit)
	}
	return decodeZstd(dst, src, limit, guess)
}

// OpenStream implements streamStage. The window is in memory, 8 MiB at most unless one asks for more.
func (s *zstdStage) OpenStream(src io.Reader) (io.ReadCloser, error) {
	d, err := zstd.NewReader(src, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(128<<20))
	if err != nil {
		return nil, err
	}
	return d.IOReadCloser(), nil
}

// DecodeZstd returns the contents of a zstd frame, at most limit bytes. The
// length of src bounds the memory that is reserved. Errors are ErrCorrupt.
func DecodeZstd(src []byte, limit int64) ([]byte, error) {
	return decodeZstd(nil, src, limit, guessZstd(src, limit))
}

// decodeZstd appends the contents of a frame, of about guess bytes.
func decodeZstd(dst, src []byte, limit, guess int64) ([]byte, error) {
	start := len(dst)
	dst = scratch.Room(dst, guess, len(src))
	fast := ownZstdDecoders.Get().(*own.Decoder)
	out, ok := fast.Decode(dst[start:start:start+int(min(int64(cap(dst)-start), limit))], src)
	ownZstdDecoders.Put(fast)
	if ok {
		return dst[:start+len(out)], nil
	}
	d, err := zstdDecoder()
	if err != nil {
		return dst, err
	}
	defer zstdDecoders.Put(d)
	for {
		// The decoder never writes past the capacity that it is given, and
		// fails when that is not enough.
		space := min(int64(cap(dst)-start), limit)
		out, err := d.DecodeAll(src, dst[start:start:int64(start)+space])
		switch {
		case err == nil:
			if len(out) > 0 && &out[0] != &dst[start : start+1][0] {
				return append(dst, out...), nil
			}
			return dst[:start+len(out)], nil
		case space < limit && (errors.Is(err, zstd.ErrDecoderSizeExceeded) || !sized(src)):
			// Within a block, the decoder takes too little space for a damaged frame.
			dst = scratch.Grow(dst, min(limit, max(4*space, 64<<10)))
		case errors.Is(err, zstd.ErrDecoderSizeExceeded):
			return dst, Corruptf("zstd", "more than the %d bytes that there may be", limit)
		default:
			return dst, Corruptf("zstd", "%w", err)
		}
	}
}

// sized reports whether a frame has the size of its contents. Frames of
// streaming encoders do not.
func sized(src []byte) bool {
	var h zstd.Header
	return h.Decode(src) != nil || h.HasFCS
}

// guessZstd returns the estimated size of a frame's contents.
func guessZstd(src []byte, limit int64) int64 {
	var h zstd.Header
	if h.Decode(src) == nil && h.HasFCS && h.FrameContentSize < math.MaxInt64 {
		return min(limit, int64(h.FrameContentSize))
	}
	return min(limit, 4*int64(len(src)))
}
