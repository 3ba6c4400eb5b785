package codecs

import (
	"bytes"
	"compress/bzip2"
	"encoding/json"
	"errors"
	"io"
	"sync"

	dsnet "github.com/dsnet/compress/bzip2"
	"github.com/zarrdb/zarrdb/codecs/internal/scratch"
)

// bz2Codec is numcodecs' "bz2": bzip2 streams.
type bz2Codec struct{ level int }

func parseBZ2(c Config) (Codec, error) {
	f := c.Fields()
	return &bz2Codec{int(f.Int("level", 1, 1, 9))}, f.Err()
}

func (c *bz2Codec) Config() json.RawMessage { return Object("level", c.level) }

func (c *bz2Codec) Bind(in Rep) (Stage, Rep, error) {
	return &bz2Stage{in: in, level: c.level}, in.Grown(), nil
}

type bz2Stage struct {
	in    Rep
	level int
}

// bz2Encoder is a compressor and the slice that it appends to.
type bz2Encoder struct {
	w *dsnet.Writer
	b []byte
}

func (e *bz2Encoder) Write(p []byte) (int, error) {
	e.b = append(e.b, p...)
	return len(p), nil
}

// Compressors by level, several MiB each.
var bz2Encoders [10]sync.Pool

func (s *bz2Stage) Encode(dst, src []byte) ([]byte, error) {
	pool := &bz2Encoders[s.level]
	e, ok := pool.Get().(*bz2Encoder)
	var err error
	if ok {
		err = e.w.Reset(e)
	} else {
		e = new(bz2Encoder)
		e.w, err = dsnet.NewWriter(e, &dsnet.WriterConfig{Level: s.level})
	}
	if err != nil {
		return dst, err
	}
	e.b = dst
	_, err = e.w.Write(src)
	if err == nil {
		err = e.w.Close()
	}
	dst, e.b = e.b, nil
	if err == nil {
		pool.Put(e)
	}
	return dst, err
}

func (s *bz2Stage) Decode(dst, src []byte) ([]byte, error) {
	limit := s.in.Limit(len(src))
	out, err := appendReader(dst, bzip2.NewReader(bytes.NewReader(src)), limit, s.in.expect(len(src)))
	switch {
	case err == errLimit:
		return dst, Corruptf("bz2", "more than the %d bytes that there may be", limit)
	case err != nil:
		return dst, Corruptf("bz2", "%w", err)
	}
	return out, nil
}

// errLimit means that a reader has more bytes than allowed.
var errLimit = errors.New("too many bytes")

// appendReader appends the bytes of r, at most limit; about hint are expected.
func appendReader(dst []byte, r io.Reader, limit, hint int64) ([]byte, error) {
	start := len(dst)
	dst = scratch.Grow(dst, min(limit, max(hint, 512)))
	for {
		have := int64(len(dst) - start)
		if len(dst) == cap(dst) && have < limit {
			dst = scratch.Grow(dst, min(limit-have, max(have, 512)))
		}
		room := dst[len(dst):min(int64(cap(dst)), int64(start)+limit)]
		full := len(room) == 0
		if full {
			// One byte more is one too many.
			room = make([]byte, 1)
		}
		n, err := r.Read(room)
		if full && n > 0 {
			return dst, errLimit
		}
		dst = dst[:len(dst)+n]
		if err == io.EOF {
			return dst, nil
		}
		if err != nil {
			return dst, err
		}
	}
}
