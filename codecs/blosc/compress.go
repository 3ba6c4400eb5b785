package blosc

import (
	"sync"

	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"

	ownlz4 "github.com/zarrdb/zarrdb/codecs/lz4"
	ownzstd "github.com/zarrdb/zarrdb/codecs/zstd"
)

// compressor makes streams. It is not safe for concurrent use.
type compressor interface {
	// compress writes a stream for src to dst and returns its length, or 0 if
	// it does not fit.
	compress(dst, src []byte) int
	// release gives the compressor back to its pool.
	release()
}

// Compressors keep tables of 64 KiB to some MiB.
var (
	lzPool, lz4Pool, lz4hcPool sync.Pool
	zlibPools                  [10]sync.Pool
	zstdPools                  [5]sync.Pool
	ownZstdPool                sync.Pool
)

// get returns a value of the pool, or a new one.
func get[T any](pool *sync.Pool, make func() *T) *T {
	if v, ok := pool.Get().(*T); ok {
		return v
	}
	return make()
}

func getCompressor(p Params) compressor {
	switch p.Compressor {
	case "blosclz":
		c := get(&lzPool, func() *lzCompressor { return new(lzCompressor) })
		c.level = p.Level
		return c
	case "lz4":
		c := get(&lz4Pool, func() *lz4Compressor { return new(lz4Compressor) })
		c.acceleration = 10 - p.Level
		return c
	case "lz4hc":
		c := get(&lz4hcPool, func() *lz4hcCompressor { return new(lz4hcCompressor) })
		c.Level = 1 << (8 + p.Level) // lz4.Level1 to lz4.Level9
		return c
	case "snappy":
		return snappyCompressor{}
	case "zlib":
		return get(&zlibPools[p.Level], func() *zlibCompressor { return newZlib(p.Level) })
	default:
		// Shuffled numbers get smaller with this one, and sooner.
		if p.Level > 1 && p.Level < 7 && p.BlockSize <= ownzstd.MaxBytes {
			return get(&ownZstdPool, func() *ownZstd { return new(ownZstd) })
		}
		return newZstd(p.Level)
	}
}

type lzCompressor struct {
	lzEncoder
	level int
}

func (c *lzCompressor) compress(dst, src []byte) int { return c.encode(dst, src, c.level) }
func (c *lzCompressor) release()                     { lzPool.Put(c) }

// lz4Compressor writes the bytes of the C library, and gives up on noise as
// early.
type lz4Compressor struct {
	ownlz4.Encoder
	acceleration int
}

func (c *lz4Compressor) compress(dst, src []byte) int { return c.Encode(dst, src, c.acceleration) }
func (c *lz4Compressor) release()                     { lz4Pool.Put(c) }

type lz4hcCompressor struct{ lz4.CompressorHC }

func (c *lz4hcCompressor) compress(dst, src []byte) int {
	n, err := c.CompressBlock(src, dst)
	if err != nil {
		return 0
	}
	return n
}
func (c *lz4hcCompressor) release() { lz4hcPool.Put(c) }

// snappyCompressor needs no state, but more room than it fills.
type snappyCompressor struct{}

func (snappyCompressor) compress(dst, src []byte) int {
	s := scratchPool.Get().(*scratch)
	defer scratchPool.Put(s)
	out := s2.EncodeSnappy(sized(&s.part, s2.MaxEncodedLen(len(src))), src)
	if len(out) > len(dst) {
		return 0
	}
	return copy(dst, out)
}
func (snappyCompressor) release() {}

type zlibCompressor struct {
	w     *zlib.Writer
	to    bounded
	level int
}

// newZlib maps the levels so that the middle one compresses as the C library
// does: the lower levels of this package are faster and give 10 to 20 % more.
func newZlib(level int) *zlibCompressor {
	c := &zlibCompressor{level: level}
	// Levels are checked before.
	c.w, _ = zlib.NewWriterLevel(&c.to, [...]int{0, 1, 3, 4, 5, 7, 7, 8, 8, 9}[level])
	return c
}

func (c *zlibCompressor) compress(dst, src []byte) int {
	c.to = bounded{b: dst[:0:len(dst)]}
	c.w.Reset(&c.to)
	_, err := c.w.Write(src)
	if err == nil {
		err = c.w.Close()
	}
	n := len(c.to.b)
	c.to.b = nil
	if err != nil {
		return 0
	}
	return n
}
func (c *zlibCompressor) release() { zlibPools[c.level].Put(c) }

// bounded is a writer to a slice that fails where the slice ends.
type bounded struct{ b []byte }

func (w *bounded) Write(p []byte) (int, error) {
	if len(p) > cap(w.b)-len(w.b) {
		return 0, errFull
	}
	w.b = append(w.b, p...)
	return len(p), nil
}

type zstdCompressor struct {
	*zstd.Encoder
	level zstd.EncoderLevel
}

// ownZstd needs more room than it fills.
type ownZstd struct {
	ownzstd.Encoder
	frame []byte
}

func (c *ownZstd) compress(dst, src []byte) int {
	c.frame = c.Encode(c.frame[:0], src)
	if len(c.frame) > len(dst) {
		return 0
	}
	return copy(dst, c.frame)
}
func (c *ownZstd) release() { ownZstdPool.Put(c) }

// newZstd maps the levels to three; the middle one is used for very large blocks
// only. SpeedBetterCompression is not among them: it is slower than the default,
// and on shuffled integers 12 % worse.
func newZstd(level int) *zstdCompressor {
	l := zstd.SpeedDefault
	switch {
	case level <= 1:
		l = zstd.SpeedFastest
	case level >= 7:
		l = zstd.SpeedBestCompression
	}
	return get(&zstdPools[l], func() *zstdCompressor {
		// The options are constants and allowed.
		e, _ := zstd.NewWriter(nil,
			zstd.WithEncoderConcurrency(1),
			zstd.WithEncoderLevel(l),
			zstd.WithEncoderCRC(false),
			zstd.WithAllLitEntropyCompression(true),
			// A stream is 1 MiB at most, unless a larger block is asked for.
			zstd.WithWindowSize(1<<20),
			zstd.WithSingleSegment(true),
			zstd.WithLowerEncoderMem(true))
		return &zstdCompressor{e, l}
	})
}

func (c *zstdCompressor) compress(dst, src []byte) int {
	// It moves to a new slice if there might be too little room.
	out := c.EncodeAll(src, dst[:0:len(dst)])
	if len(out) > len(dst) {
		return 0
	}
	return copy(dst, out)
}
func (c *zstdCompressor) release() { zstdPools[c.level].Put(c) }
