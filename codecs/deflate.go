package codecs

import (
	"encoding/binary"
	"hash/crc32"
	"io"
	"sync"

	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zlib"

	"github.com/zarrdb/zarrdb/codecs/inflate"
	"github.com/zarrdb/zarrdb/codecs/internal/scratch"
	"github.com/zarrdb/zarrdb/codecs/kernels"
)

// parseDeflate parses "gzip" (RFC 1952) or "zlib" (RFC 1950): deflate streams
// (RFC 1951) in two different wrappings. It reads the configuration of v3 "gzip", where the level is required,
// and of numcodecs' gzip and zlib, where it is 1 unless given.
func parseDeflate(name string) func(Config) (Codec, error) {
	return func(c Config) (Codec, error) {
		f := c.Fields()
		lowest := int64(flate.DefaultCompression)
		if !c.V2 && c.Name == "gzip" {
			f.Require("level")
			lowest = 0
		}
		level := int(f.Int("level", 1, lowest, 9))
		return NewCodec(Object("level", level), func(in Rep) (Stage, Rep, error) {
			s := deflateStage{in: in, level: level}
			if name == "zlib" {
				return &zlibStage{s}, in.Grown(), nil
			}
			return &gzipStage{s}, in.Grown(), nil
		}), f.Err()
	}
}

type deflateStage struct {
	in    Rep
	level int
}

// deflater is a compressor and the buffer that it appends to.
type deflater struct {
	w *flate.Writer
	scratch.Buffer
}

// Compressors by level + 1, some 100 KiB to 1 MiB each.
var deflaters [11]sync.Pool

// deflateLevels are the levels of the compressor for -1 to 9. Up to 5 it is
// twice as fast as C's zlib at the same level and leaves 10 % more; from 6 on,
// where users ask for size and have the time, it is given the level that is as
// fast as zlib and leaves 1 to 10 % more. Level 4 is as fast as 3 and smaller.
var deflateLevels = [...]int{7, 0, 1, 2, 4, 4, 5, 7, 8, 8, 9}

// compress appends the deflate stream of src.
func (s *deflateStage) compress(dst, src []byte) ([]byte, error) {
	pool := &deflaters[s.level+1]
	d, ok := pool.Get().(*deflater)
	if !ok {
		d = new(deflater)
		var err error
		if d.w, err = flate.NewWriter(&d.Buffer, deflateLevels[s.level+1]); err != nil {
			return dst, err
		}
	} else {
		d.w.Reset(&d.Buffer)
	}
	d.B = dst
	_, err := d.w.Write(src)
	if err == nil {
		err = d.w.Close()
	}
	dst, d.B = d.B, nil
	pool.Put(d)
	return dst, err
}

// zlibStage is a deflate stream between two bytes and an Adler-32.
type zlibStage struct{ deflateStage }

func (s *zlibStage) Encode(dst, src []byte) ([]byte, error) {
	// The second byte has the level and makes the header divisible by 31.
	flags := byte(0x9c)
	switch {
	case s.level == 0 || s.level == 1:
		flags = 0x01
	case s.level >= 2 && s.level <= 5:
		flags = 0x5e
	case s.level >= 7:
		flags = 0xda
	}
	dst = append(dst, 0x78, flags)
	dst, err := s.compress(dst, src)
	if err != nil {
		return dst, err
	}
	return binary.BigEndian.AppendUint32(dst, kernels.Adler32(1, src)), nil
}

func (s *zlibStage) Decode(dst, src []byte) ([]byte, error) {
	out, n, err := inflate.Zlib(dst, src, s.in.Limit(len(src)))
	return wrapped("zlib", dst, out, src[n:], err)
}

// OpenStream implements streamStage.
func (s *zlibStage) OpenStream(src io.Reader) (io.ReadCloser, error) { return zlib.NewReader(src) }

// gzipStage is any number of members, each a header, a deflate stream, a
// CRC-32 and a length.
type gzipStage struct{ deflateStage }

func (s *gzipStage) Encode(dst, src []byte) ([]byte, error) {
	extra := byte(0)
	switch s.level {
	case 9:
		extra = 2
	case 1:
		extra = 4
	}
	// No time and no operating system: equal input gives equal bytes.
	dst = append(dst, 0x1f, 0x8b, 8, 0, 0, 0, 0, 0, extra, 255)
	dst, err := s.compress(dst, src)
	if err != nil {
		return dst, err
	}
	dst = binary.LittleEndian.AppendUint32(dst, crc32.ChecksumIEEE(src))
	return binary.LittleEndian.AppendUint32(dst, uint32(len(src))), nil
}

func (s *gzipStage) Decode(dst, src []byte) ([]byte, error) {
	out, n, err := inflate.Gzip(dst, src, s.in.Limit(len(src)))
	return wrapped("gzip", dst, out, src[n:], err)
}

// OpenStream implements streamStage.
func (s *gzipStage) OpenStream(src io.Reader) (io.ReadCloser, error) { return gzip.NewReader(src) }

// wrapped checks that only zeros, with which some writers pad, follow a
// compressed stream.
func wrapped(name string, dst, out, rest []byte, err error) ([]byte, error) {
	if err != nil {
		return dst, Corruptf(name, "%w", err)
	}
	if !allZero(rest) {
		return dst, Corruptf(name, "%d bytes behind the stream", len(rest))
	}
	return out, nil
}
