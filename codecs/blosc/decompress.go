package blosc

import (
	"errors"
	"fmt"
	"sync"

	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"

	"github.com/zarrdb/zarrdb/codecs/inflate"
)

var (
	errMalformed = errors.New("malformed")
	errFull      = errors.New("blosc: no room")
)

// decompress fills dst, exactly, from the stream src. It may write behind dst up
// to its capacity.
func decompress(code int, dst, src []byte) error {
	n := 0
	switch code {
	case codeBlosclz:
		var ok bool
		if n, ok = decodeBlosclz(dst, src); !ok {
			return errMalformed
		}
	case codeLZ4:
		var err error
		if n, err = lz4.UncompressBlock(src, dst); err != nil {
			return err
		}
	case codeSnappy:
		// Check first: Decode would allocate the declared size.
		size, err := s2.DecodedLen(src)
		if err == nil && size == len(dst) {
			_, err = s2.Decode(dst, src)
		}
		if err != nil {
			return err
		}
		n = size
	case codeZlib:
		out, _, err := inflate.Zlib(dst[:0], src, int64(len(dst)))
		if err != nil {
			return err
		}
		n = len(out)
	case codeZstd:
		d, err := zstdDecoder()
		if err != nil {
			return err
		}
		out, err := d.DecodeAll(src, dst[:0])
		zstdDecoders.Put(d)
		if err != nil {
			return err
		}
		n = len(out)
	}
	if n != len(dst) {
		return fmt.Errorf("%d bytes, not %d", n, len(dst))
	}
	return nil
}

var zstdDecoders sync.Pool

// zstdDecoder returns a decoder that never writes beyond the capacity it is
// given.
func zstdDecoder() (*zstd.Decoder, error) {
	if d, ok := zstdDecoders.Get().(*zstd.Decoder); ok {
		return d, nil
	}
	return zstd.NewReader(nil,
		zstd.WithDecoderConcurrency(1),
		// The output is its own window, so that a large one costs nothing.
		zstd.WithDecoderMaxWindow(1<<32),
		zstd.WithDecodeAllCapLimit(true))
}
