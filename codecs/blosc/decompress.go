package blosc

import (
	"errors"
	"fmt"
	"sync"

	"github.com/klauspost/compress/s2"
	library "github.com/klauspost/compress/zstd"

	"github.com/zarrdb/zarrdb/codecs/inflate"
	"github.com/zarrdb/zarrdb/codecs/lz4"
	"github.com/zarrdb/zarrdb/codecs/zstd"
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
		if n, err = lz4.Decode(dst, src); err != nil {
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
		fast := ownZstdDecoders.Get().(*zstd.Decoder)
		out, ok := fast.Decode(dst[:0], src)
		ownZstdDecoders.Put(fast)
		if ok {
			n = len(out)
			break
		}
		d, err := zstdDecoder()
		if err != nil {
			return err
		}
		out, err = d.DecodeAll(src, dst[:0])
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

var (
	ownZstdDecoders = sync.Pool{New: func() any { return new(zstd.Decoder) }}

	zstdDecoders sync.Pool // of frames that the other ones do not decode
)

// zstdDecoder returns a decoder that never writes beyond the capacity it is
// given.
func zstdDecoder() (*library.Decoder, error) {
	if d, ok := zstdDecoders.Get().(*library.Decoder); ok {
		return d, nil
	}
	return library.NewReader(nil,
		library.WithDecoderConcurrency(1),
		// The output serves as the window: a large window costs nothing.
		library.WithDecoderMaxWindow(1<<32),
		library.WithDecodeAllCapLimit(true))
}
