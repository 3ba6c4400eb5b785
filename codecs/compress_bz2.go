package codecs

import (
	"bytes"
	"compress/bzip2"
	"io"
	"sync"

	dsnet "github.com/dsnet/compress/bzip2"

	"github.com/zarrdb/zarrdb/codecs/internal/scratch"
)

func parseBZ2(c Config) (Codec, error) {
	f := c.Fields()
	level := int(f.Int("level", 1, 1, 9))
	return NewCodec(Object("level", level), func(in Rep) (Stage, Rep, error) {
		return &bz2Stage{in: in, level: level}, in.Grown(), nil
	}), f.Err()
}

// bz2Stage is numcodecs' "bz2": bzip2 streams.
type bz2Stage struct {
	in    Rep
	level int
}

// bz2Encoder is a compressor and the buffer that it appends to.
type bz2Encoder struct {
	w *dsnet.Writer
	scratch.Buffer
}

// Compressors by level, several MiB each.
var bz2Encoders [10]sync.Pool

// OpenStream implements streamStage.
func (s *bz2Stage) OpenStream(src io.Reader) (io.ReadCloser, error) {
	return io.NopCloser(bzip2.NewReader(src)), nil
}

func (s *bz2Stage) Encode(dst, src []byte) ([]byte, error) {
	pool := &bz2Encoders[s.level]
	e, ok := pool.Get().(*bz2Encoder)
	var err error
	if ok {
		err = e.w.Reset(&e.Buffer)
	} else {
		e = new(bz2Encoder)
		e.w, err = dsnet.NewWriter(&e.Buffer, &dsnet.WriterConfig{Level: s.level})
	}
	if err != nil {
		return dst, err
	}
	e.B = dst
	_, err = e.w.Write(src)
	if err == nil {
		err = e.w.Close()
	}
	dst, e.B = e.B, nil
	if err == nil {
		pool.Put(e)
	}
	return dst, err
}

func (s *bz2Stage) Decode(dst, src []byte) ([]byte, error) {
	limit := s.in.Limit(len(src))
	out, err := scratch.ReadAll(dst, bzip2.NewReader(bytes.NewReader(src)), limit, s.in.expect(len(src)))
	switch {
	case err == scratch.ErrLimit:
		return dst, Corruptf("bz2", "more than the %d bytes that there may be", limit)
	case err != nil:
		return dst, Corruptf("bz2", "%w", err)
	}
	return out, nil
}
