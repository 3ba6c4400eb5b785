package parquet

import (
	"bytes"
	"context"
	"hash/crc32"
	"io"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"

	"github.com/zarrdb/zarrdb/kv"
)

// Kinds of pages.
const (
	pageData       = 0
	pageDictionary = 2
	pageDataV2     = 3
)

// header of a page.
type header struct {
	kind       int32
	raw, size  int32 // bytes without and with compression
	crc        int32
	hasCRC     bool
	values     int32
	encoding   int32
	levels     int32 // encoding of the levels, version 1
	nulls      int32 // version 2, as the following
	repBytes   int32
	defBytes   int32
	compressed bool
}

// decodeHeader reads a page header and returns its length.
func decodeHeader(b []byte) (h header, n int, err error) {
	h.kind, h.compressed = -1, true
	d := decoder{b: b}
	found := false // the part for this kind
	d.structure(func(id int16, typ byte) bool {
		dst := map[int16]*int32{1: &h.kind, 2: &h.raw, 3: &h.size, 4: &h.crc}[id]
		switch {
		case dst != nil:
			*dst = d.i32(typ)
			h.hasCRC = h.hasCRC || id == 4
		case id == 5 && h.kind == pageData:
			found = true
			d.ints(typ, map[int16]*int32{1: &h.values, 2: &h.encoding, 3: &h.levels}, nil)
		case id == 7 && h.kind == pageDictionary:
			found = true
			d.ints(typ, map[int16]*int32{1: &h.values, 2: &h.encoding}, nil)
		case id == 8 && h.kind == pageDataV2:
			found = true
			d.ints(typ, map[int16]*int32{1: &h.values, 2: &h.nulls, 4: &h.encoding, 5: &h.defBytes, 6: &h.repBytes}, map[int16]*bool{7: &h.compressed})
		default:
			return false
		}
		return true
	})
	if d.err != nil {
		return h, 0, d.err
	}
	if h.raw < 0 || h.size < 0 || h.values < 0 || h.defBytes < 0 || h.repBytes < 0 {
		return h, 0, corrupt("page header with a negative size")
	}
	if !found && (h.kind == pageData || h.kind == pageDictionary || h.kind == pageDataV2) {
		return h, 0, corrupt("page header without its part")
	}
	return h, len(b) - len(d.b), nil
}

// ints reads a structure of 32 bit integers and booleans.
func (d *decoder) ints(typ byte, ints map[int16]*int32, bools map[int16]*bool) {
	if !d.is(typ, tStruct) {
		return
	}
	d.structure(func(id int16, typ byte) bool {
		if dst := ints[id]; dst != nil {
			*dst = d.i32(typ)
			return true
		}
		if dst := bools[id]; dst != nil {
			if typ != tTrue && typ != tFalse {
				d.fail(corrupt("field of type %d instead of a boolean", typ))
			}
			*dst = typ == tTrue
			return true
		}
		return false
	})
}

// source reads the bytes of one column chunk from front to back.
type source struct {
	ctx    context.Context
	v      kv.Value
	whole  []byte // the file, where it was read at once
	at     int64
	end    int64 // of all pages of the file
	likely int64 // declared end of this chunk

	buf   []byte // read ahead
	bufAt int64
}

const (
	headerGuess = 256 // bytes first tried for a page header
	maxHeader   = 1 << 20
	readAhead   = 1 << 20
)

// peek returns n bytes from the current position, fewer only at the end.
func (s *source) peek(n int64) ([]byte, error) {
	n = min(n, s.end-s.at)
	if s.whole != nil {
		return s.whole[s.at : s.at+n], nil
	}
	if s.at >= s.bufAt && s.at+n <= s.bufAt+int64(len(s.buf)) {
		return s.buf[s.at-s.bufAt:][:n], nil
	}
	fetch := min(max(n, min(readAhead, s.likely-s.at)), s.end-s.at)
	err := s.v.View(s.ctx, kv.Span(s.at, fetch), func(b []byte) error {
		s.buf = append(s.buf[:0], b...)
		return nil
	})
	if err != nil {
		return nil, err
	}
	s.bufAt = s.at
	return s.buf[:n], nil
}

// header reads a page header and moves behind it.
func (s *source) header() (header, error) {
	for guess := int64(headerGuess); ; guess *= 8 {
		b, err := s.peek(guess)
		if err != nil {
			return header{}, err
		}
		h, n, err := decodeHeader(b)
		if err == errShort && int64(len(b)) == guess && guess < maxHeader {
			continue
		}
		s.at += int64(n)
		return h, err
	}
}

// body returns the bytes of a page and moves behind them.
func (s *source) body(h header) ([]byte, error) {
	if int64(h.size) > s.end-s.at {
		return nil, corrupt("page of %d bytes at %d, the pages end at %d", h.size, s.at, s.end)
	}
	b, err := s.peek(int64(h.size))
	if err != nil {
		return nil, err
	}
	s.at += int64(h.size)
	if h.hasCRC && crc32.ChecksumIEEE(b) != uint32(h.crc) {
		return nil, corrupt("checksum of a page")
	}
	return b, nil
}

func knownCodec(codec int32) bool {
	switch codec {
	case codecNone, codecSnappy, codecGzip, codecZstd, codecLZ4Raw:
		return true
	}
	return false
}

var (
	zstdPool = sync.Pool{New: func() any {
		d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecodeAllCapLimit(true), zstd.WithDecoderMaxMemory(1<<31))
		if err != nil {
			panic(err) // options are constant
		}
		return d
	}}
	gzipPool = sync.Pool{New: func() any { return new(gzip.Reader) }}
)

// decompress fills dst, which has the size of the page header.
func decompress(dst, src []byte, codec int32) error {
	n := 0
	var err error
	switch codec {
	case codecNone:
		if len(src) == len(dst) {
			n = copy(dst, src)
		}
	case codecSnappy:
		if n, err = snappy.DecodedLen(src); err == nil && n == len(dst) {
			_, err = snappy.Decode(dst, src)
		}
	case codecGzip:
		r := gzipPool.Get().(*gzip.Reader)
		defer gzipPool.Put(r)
		if err = r.Reset(bytes.NewReader(src)); err == nil {
			n, err = io.ReadFull(r, dst)
		}
		if err == nil {
			if extra, _ := r.Read(make([]byte, 1)); extra > 0 {
				n++
			}
		}
	case codecZstd:
		d := zstdPool.Get().(*zstd.Decoder)
		defer zstdPool.Put(d)
		var out []byte
		out, err = d.DecodeAll(src, dst[:0:len(dst)])
		if n = len(out); n > 0 && len(dst) > 0 && &out[0] != &dst[0] {
			n = copy(dst, out)
		}
	case codecLZ4Raw:
		n, err = lz4.UncompressBlock(src, dst)
	}
	switch {
	case err != nil && len(dst) == 0 && len(src) == 0:
		return nil // an empty page, which some writers do not compress
	case err != nil:
		return corrupt("compressed page: %v", err)
	case n != len(dst):
		return corrupt("page of %d bytes instead of %d", n, len(dst))
	}
	return nil
}
