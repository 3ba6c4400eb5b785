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

// encoder writes a stream for src to dst and returns its length, or 0 if it does not
// fit.
type encoder func(dst, src []byte, p Params) int

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

// encoders are the compressors by name; header.go has their codes.
var encoders = map[string]encoder{
	"blosclz": func(dst, src []byte, p Params) int {
		c := get(&lzPool, func() *lzEncoder { return new(lzEncoder) })
		defer lzPool.Put(c)
		return c.encode(dst, src, p.Level)
	},
	// It writes the bytes of the C library, and gives up on noise as early.
	"lz4": func(dst, src []byte, p Params) int {
		c := get(&lz4Pool, func() *ownlz4.Encoder { return new(ownlz4.Encoder) })
		defer lz4Pool.Put(c)
		return c.Encode(dst, src, 10-p.Level)
	},
	"lz4hc": func(dst, src []byte, p Params) int {
		c := get(&lz4hcPool, func() *lz4.CompressorHC { return new(lz4.CompressorHC) })
		defer lz4hcPool.Put(c)
		c.Level = 1 << (8 + p.Level) // lz4.Level1 to lz4.Level9
		n, err := c.CompressBlock(src, dst)
		if err != nil {
			return 0
		}
		return n
	},
	"snappy": func(dst, src []byte, _ Params) int {
		s := scratchPool.Get().(*scratch)
		defer scratchPool.Put(s)
		return fit(dst, s2.EncodeSnappy(sized(&s.part, s2.MaxEncodedLen(len(src))), src))
	},
	"zlib": func(dst, src []byte, p Params) int {
		pool := &zlibPools[p.Level]
		c := get(pool, func() *zlibCompressor { return newZlib(p.Level) })
		defer pool.Put(c)
		return c.compress(dst, src)
	},
	"zstd": func(dst, src []byte, p Params) int {
		// Shuffled numbers get smaller with this one, and sooner.
		if p.Level > 1 && p.Level < 7 && p.BlockSize <= ownzstd.MaxBytes {
			c := get(&ownZstdPool, func() *ownZstd { return new(ownZstd) })
			defer ownZstdPool.Put(c)
			c.frame = c.Encode(c.frame[:0], src)
			return fit(dst, c.frame)
		}
		level := zstdLevel(p.Level)
		c := get(&zstdPools[level], func() *zstd.Encoder { return newZstd(level) })
		defer zstdPools[level].Put(c)
		return fit(dst, c.EncodeAll(src, dst[:0:len(dst)]))
	},
}

// fit copies a stream that was made with more room to dst, if it fits there.
func fit(dst, stream []byte) int {
	if len(stream) > len(dst) {
		return 0
	}
	return copy(dst, stream)
}

type zlibCompressor struct {
	w  *zlib.Writer
	to bounded
}

// newZlib maps the levels so that the middle one compresses as the C library
// does: the lower levels of this package are faster and give 10 to 20 % more.
func newZlib(level int) *zlibCompressor {
	c := &zlibCompressor{}
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

// bounded is a writer to a slice that fails where the slice ends.
type bounded struct{ b []byte }

func (w *bounded) Write(p []byte) (int, error) {
	if len(p) > cap(w.b)-len(w.b) {
		return 0, errFull
	}
	w.b = append(w.b, p...)
	return len(p), nil
}

// ownZstd needs more room than it fills.
type ownZstd struct {
	ownzstd.Encoder
	frame []byte
}

// zstdLevel maps the levels to three; the middle one is used for very large blocks
// only. SpeedBetterCompression is not among them: it is slower than the default,
// and on shuffled integers 12 % worse.
func zstdLevel(level int) zstd.EncoderLevel {
	switch {
	case level <= 1:
		return zstd.SpeedFastest
	case level >= 7:
		return zstd.SpeedBestCompression
	}
	return zstd.SpeedDefault
}

func newZstd(level zstd.EncoderLevel) *zstd.Encoder {
	// The options are constants and allowed.
	e, _ := zstd.NewWriter(nil,
		zstd.WithEncoderConcurrency(1),
		zstd.WithEncoderLevel(level),
		zstd.WithEncoderCRC(false),
		zstd.WithAllLitEntropyCompression(true),
		// A stream is 1 MiB at most, unless a larger block is asked for.
		zstd.WithWindowSize(1<<20),
		zstd.WithSingleSegment(true),
		zstd.WithLowerEncoderMem(true))
	return e
}
