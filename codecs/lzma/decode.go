package lzma

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/ulikunitz/xz/lzma"

	"github.com/zarrdb/zarrdb/codecs/internal/scratch"
)

var (
	// errCorrupt marks data that break the format.
	errCorrupt = errors.New("lzma: corrupt data")

	// errTooLarge means that the data hold more bytes than they may.
	errTooLarge = errors.New("lzma: more bytes than allowed")

	// ErrUnsupported means a filter that is not known here.
	ErrUnsupported = errors.New("lzma: unsupported filter")
)

func corrupt(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{errCorrupt}, args...)...)
}

// Props are the properties of an LZMA stream: how many bits of the last byte
// (LC) and of the position (LP) a literal depends on, and how many bits of the
// position (PB) everything else depends on.
type Props struct{ LC, LP, PB int }

// DefaultProps are the properties that encoders use by default.
var DefaultProps = Props{LC: 3, LP: 0, PB: 2}

// Valid reports whether a stream can have such properties.
func (p Props) Valid() bool {
	return p.LC >= 0 && p.LC <= 8 && p.LP >= 0 && p.LP <= 4 && p.PB >= 0 && p.PB <= 4
}

// aloneHeader is the length of the header of .lzma data: properties, dictionary
// size (4), length (8, all ones: unknown).
const aloneHeader = lzma.HeaderLen

// DecodeAlone appends the content of .lzma data, at most max bytes, to dst.
// Bytes behind the data are ignored. Errors wrap ErrCorrupt or ErrTooLarge; the
// returned slice is then dst as it was, but bytes up to its capacity may be
// overwritten.
func DecodeAlone(dst, src []byte, max int64) ([]byte, error) {
	if len(src) < aloneHeader {
		return dst, corrupt("no room for the header")
	}
	return decodeAlone(dst, [aloneHeader]byte(src), src[aloneHeader:], max)
}

// DecodeRaw appends the content of an LZMA stream without header, at most max
// bytes, to dst. The stream must end with an end marker. o gives the properties
// and the size of the dictionary that the stream was written with. Errors are as
// for [DecodeAlone].
func DecodeRaw(dst, src []byte, o Options, max int64) ([]byte, error) {
	var header [aloneHeader]byte
	header[0] = byte((o.Props.PB*5+o.Props.LP)*9 + o.Props.LC)
	binary.LittleEndian.PutUint32(header[1:], uint32(o.Dict))
	binary.LittleEndian.PutUint64(header[5:], math.MaxUint64)
	return decodeAlone(dst, header, src, max)
}

func decodeAlone(dst []byte, header [aloneHeader]byte, stream []byte, max int64) ([]byte, error) {
	if size := binary.LittleEndian.Uint64(header[5:]); size != math.MaxUint64 && size > uint64(max) {
		return dst, fmt.Errorf("%w: %d, over %d", errTooLarge, size, max)
	}
	dict := binary.LittleEndian.Uint32(header[1:])
	binary.LittleEndian.PutUint32(header[1:], uint32(dictFor(int64(dict), max)))
	r, err := lzma.NewReader(&joined{bytes.NewReader(header[:]), bytes.NewReader(stream)})
	if err != nil {
		return dst, wrap(err)
	}
	return readAll(dst, r, max)
}

// DecodeLZMA2 appends the content of LZMA2 data, at most max bytes, to dst. o
// gives the size of the dictionary that the data were written with. Bytes behind
// the data are ignored. Errors are as for [DecodeAlone].
func DecodeLZMA2(dst, src []byte, o Options, max int64) ([]byte, error) {
	return decodeLZMA2(dst, bytes.NewReader(src), o.Dict, max)
}

// decodeLZMA2 leaves src behind the end of the data.
func decodeLZMA2(dst []byte, src *bytes.Reader, dict, max int64) ([]byte, error) {
	r, err := lzma.Reader2Config{DictCap: dictFor(dict, max)}.NewReader2(src)
	if err != nil {
		return dst, wrap(err)
	}
	out, err := readAll(dst, r, max)
	if err == nil && !r.EOS() {
		return dst, corrupt("LZMA2 data without an end")
	}
	return out, err
}

// dictFor bounds the size of a dictionary by the length of the result: a header
// may ask for up to 4 GiB, but no match reaches back before the first byte.
func dictFor(dict, limit int64) int {
	return int(max(min(dict, limit, math.MaxInt32-1), lzma.MinDictCap))
}

// readAll appends the bytes of r, at most max, to dst.
func readAll(dst []byte, r io.Reader, max int64) ([]byte, error) {
	out, err := scratch.ReadAll(dst, r, max, 0)
	switch {
	case err == scratch.ErrLimit:
		return dst, fmt.Errorf("%w: over %d", errTooLarge, max)
	case err != nil:
		return dst, wrap(err)
	}
	return out, nil
}

// wrap marks an error of the library. It only reads from memory, so every error
// is about the data.
func wrap(err error) error { return fmt.Errorf("%w: %w", errCorrupt, err) }

// joined is io.MultiReader with ReadByte, without which the library reads byte
// by byte through Read.
type joined struct{ head, rest *bytes.Reader }

func (j *joined) ReadByte() (byte, error) {
	if j.head.Len() > 0 {
		return j.head.ReadByte()
	}
	return j.rest.ReadByte()
}

func (j *joined) Read(p []byte) (int, error) {
	if j.head.Len() > 0 {
		return j.head.Read(p)
	}
	return j.rest.Read(p)
}
