package zipkv

import (
	"bytes"
	"compress/bzip2"
	"fmt"
	"io"
	"sync"

	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz/lzma"
)

// decoder decompresses one member.
type decoder struct {
	io.Reader
	done func()
}

// release returns pooled decoders. The decoder must not be used again.
func (d decoder) release() {
	if d.done != nil {
		d.done()
	}
}

// decoders has every supported compression method.
var decoders = map[uint16]func(in *source, m *member) (decoder, error){
	methodDeflate: inflate,
	methodBzip2:   func(in *source, _ *member) (decoder, error) { return decoder{Reader: bzip2.NewReader(in.r)}, nil },
	methodLZMA:    unlzma,
	methodZstd:    unzstd,
	methodZstdOld: unzstd,
}

// inflaters are flate readers with their 40 KiB of tables and window.
var inflaters sync.Pool

func inflate(in *source, _ *member) (decoder, error) {
	r, ok := inflaters.Get().(io.ReadCloser)
	if !ok {
		r = flate.NewReader(in.r)
	} else if err := r.(flate.Resetter).Reset(in.r, nil); err != nil {
		return decoder{}, err
	}
	return decoder{r, func() {
		if r.(flate.Resetter).Reset(nothing, nil) == nil { // release the source
			inflaters.Put(r)
		}
	}}, nil
}

var nothing = bytes.NewReader(nil)

// maxWindow is the largest window of zstd and dictionary of lzma that is
// allocated. Both tools use at most 128 MiB by default.
const maxWindow = 128 << 20

func unzstd(in *source, m *member) (decoder, error) {
	// A window larger than the member is pointless, but up to 8 MiB every
	// decoder must take it (RFC 8878, 3.1.1.1.2).
	window := uint64(min(max(2*m.size, 8<<20), maxWindow))
	r, err := zstd.NewReader(in.r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(window))
	if err != nil {
		return decoder{}, err
	}
	return decoder{r, r.Close}, nil
}

// unlzma reads the stream of APPNOTE.TXT, 5.8.8: version (2 bytes), size of the
// properties (2 bytes), properties, raw stream.
func unlzma(in *source, m *member) (decoder, error) {
	var head [9]byte
	if _, err := io.ReadFull(in.r, head[:]); err != nil {
		return decoder{}, noEOF(err)
	}
	if n := le.Uint16(head[2:]); n != 5 {
		return decoder{}, fmt.Errorf("%d bytes of lzma properties instead of 5", n)
	}
	dict := int64(le.Uint32(head[5:]))
	if min(dict, m.size) > maxWindow {
		return decoder{}, fmt.Errorf("an lzma dictionary of %d bytes", dict)
	}
	// The library knows the header of .lzma files: properties and size.
	classic := append([]byte{}, head[4:]...)
	classic = le.AppendUint64(classic, uint64(m.size))
	r, err := lzma.NewReader(&joined{bytes.NewReader(classic), in.r})
	if err != nil {
		return decoder{}, err
	}
	return decoder{Reader: r}, nil
}

// joined is an io.MultiReader with ReadByte: without it the library reads single
// bytes through a slice.
type joined struct {
	head *bytes.Reader
	rest interface {
		io.Reader
		io.ByteReader
	}
}

func (j *joined) Read(p []byte) (int, error) {
	if j.head.Len() > 0 {
		return j.head.Read(p)
	}
	return j.rest.Read(p)
}

func (j *joined) ReadByte() (byte, error) {
	if j.head.Len() > 0 {
		return j.head.ReadByte()
	}
	return j.rest.ReadByte()
}
