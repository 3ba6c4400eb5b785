package codecs

import (
	"encoding/binary"
	"encoding/json"
	"math"

	"github.com/klauspost/compress/zstd"

	"github.com/zarrdb/zarrdb/codecs/internal/scratch"
	"github.com/zarrdb/zarrdb/codecs/kernels"
	"github.com/zarrdb/zarrdb/codecs/lz4"
)

// Filters of HDF5 that write blocks, the last of which may be shorter. Numbers are
// big-endian.
//
//	imagecodecs_lz4h5       bytes 8 │ of a block 4 │ (length 4 │ LZ4 block, or as it was if no shorter) …
//	imagecodecs_bitshuffle  (bit planes of a block) … │ rest
//	bshuf                   bytes 8 │ of a block 4 │ (length 4 │ bit planes, compressed) … │ rest
//
// The rest are the elements after the last eight, as they were.

// blockHeader is the beginning of the compressed forms.
const blockHeader = 12

// appendBlocks appends the header of src and its first whole bytes in blocks, each encoded
// behind its length, and the rest.
func appendBlocks(dst, src []byte, whole, block int64, encode func(dst, part []byte) ([]byte, error)) (_ []byte, err error) {
	dst = binary.BigEndian.AppendUint64(dst, uint64(len(src)))
	dst = binary.BigEndian.AppendUint32(dst, uint32(block))
	for at := int64(0); at < whole && err == nil; at += block {
		dst = append(dst, 0, 0, 0, 0)
		mark := len(dst)
		dst, err = encode(dst, src[at:min(at+block, whole)])
		binary.BigEndian.PutUint32(dst[mark-4:], uint32(len(dst)-mark))
	}
	return append(dst, src[whole:]...), err
}

// decodeBlocks is the inverse of appendBlocks. At most limit bytes are allowed. whole checks
// the header, and returns how many bytes are in blocks; decode fills out with a block.
func decodeBlocks(codec string, dst, src []byte, limit int64, whole func(n, block int64) (int64, error), decode func(out, b []byte) error) ([]byte, error) {
	if len(src) < blockHeader {
		return dst, Corruptf(codec, "%d bytes have no room for a header of %d", len(src), blockHeader)
	}
	size, block := binary.BigEndian.Uint64(src), int64(binary.BigEndian.Uint32(src[8:]))
	switch {
	case size > uint64(max(limit, 0)):
		return dst, Corruptf(codec, "the length is %d, more than %d", size, limit)
	case block == 0 && size > 0:
		return dst, Corruptf(codec, "a block of 0 bytes")
	}
	src = src[blockHeader:]
	in, err := whole(int64(size), block)
	if err != nil {
		return dst, err
	}
	start := len(dst)
	dst = scratch.Grow(dst, int64(size))[:start+int(size)]
	for out := dst[start : start+int(in)]; len(out) > 0; {
		part := out[:min(block, int64(len(out)))]
		out = out[len(part):]
		n := int64(len(src)) // more than is there
		if n >= 4 {
			n = int64(binary.BigEndian.Uint32(src))
		}
		if n > int64(len(src)-4) {
			return dst[:start], Corruptf(codec, "a block is cut off")
		}
		if err := decode(part, src[4:4+n]); err != nil {
			return dst[:start], err
		}
		src = src[4+n:]
	}
	if rest := dst[start+int(in):]; copy(rest, src) < len(rest) {
		return dst[:start], Corruptf(codec, "%d bytes are left of %d", len(src), len(rest))
	}
	return dst, nil
}

func parseLZ4H5(c Config) (Codec, error) {
	f := c.Fields()
	config, block := f.Given("level", "blocksize"), int64(1<<30)
	if raw := f.Raw("blocksize"); raw != nil && string(raw) != "null" {
		block = f.Int("blocksize", 0, 1, lz4.MaxBytes)
	}
	return NewCodec(config, func(in Rep) (Stage, Rep, error) { return &lz4h5Stage{in, block}, in.Grown(), nil }), f.Err()
}

// lz4h5Stage is imagecodecs' "imagecodecs_lz4h5", the filter 32004 of HDF5.
type lz4h5Stage struct {
	in    Rep
	block int64
}

func (s *lz4h5Stage) Encode(dst, src []byte) ([]byte, error) {
	n := int64(len(src))
	return appendBlocks(dst, src, n, max(1, min(s.block, n)), func(dst, part []byte) ([]byte, error) {
		at := len(dst)
		if dst = appendLZ4(dst, part, 1); len(dst)-at >= len(part) {
			dst = append(dst[:at], part...)
		}
		return dst, nil
	})
}

func (s *lz4h5Stage) Decode(dst, src []byte) ([]byte, error) {
	const name = "imagecodecs_lz4h5"
	return decodeBlocks(name, dst, src, s.in.Limit(len(src)), func(n, _ int64) (int64, error) {
		if n > 255*int64(len(src)) {
			return 0, Corruptf(name, "%d bytes cannot decode to %d", len(src), n)
		}
		return n, nil
	}, func(out, b []byte) error {
		if len(b) == len(out) {
			copy(out, b)
			return nil
		}
		return decodeLZ4(name, out, b)
	})
}

// bitshuffle is imagecodecs' "imagecodecs_bitshuffle", and with a compressor "bshuf", as
// hdf5plugin calls it: the filter 32008 of HDF5 without and with one.
type bitshuffle struct {
	name        string
	item, block int64 // bytes of an element, elements of a block
	config      json.RawMessage
	cname       string
	level       int
}

func parseBitshuffle(c Config) (Codec, error) {
	f := c.Fields()
	x := newBitshuffle(f, "imagecodecs_bitshuffle")
	x.config = Object("itemsize", x.item, "blocksize", f.Int("blocksize", 0, 0, math.MaxInt32))
	return x, f.Err()
}

func parseBshuf(c Config) (Codec, error) {
	f := c.Fields()
	x := newBitshuffle(f, "bshuf")
	x.cname, x.level = f.Enum("cname", "lz4", "lz4", "zstd"), int(f.Int("clevel", 3, -1<<17, 22))
	x.config = Object("itemsize", x.item, "blocksize", f.Int("blocksize", 0, 0, math.MaxInt32), "cname", x.cname, "clevel", x.level)
	return x, f.Err()
}

func newBitshuffle(f *Fields, name string) *bitshuffle {
	x := &bitshuffle{name: name, item: f.Int("itemsize", 1, 1, 1<<16), block: f.Int("blocksize", 0, 0, math.MaxInt32)}
	if x.block%8 != 0 {
		f.Fail("blocksize", "%d is not a multiple of 8", x.block)
	}
	if x.block == 0 { // the default of the library
		x.block = max(8192/x.item/8*8, 128)
	}
	if x.block*x.item > math.MaxInt32 {
		f.Fail("blocksize", "%d elements of %d bytes are too many", x.block, x.item)
	}
	return x
}

func (c *bitshuffle) Config() json.RawMessage { return c.config }

func (c *bitshuffle) Bind(in Rep) (Stage, Rep, error) {
	if in.Size >= 0 && in.Size%c.item != 0 {
		return nil, Rep{}, BadField("itemsize", "%d bytes are not elements of %d", in.Size, c.item)
	}
	if c.cname != "" {
		return &bshufStage{c, in}, in.Grown(), nil
	}
	out := in
	out.ItemSize = 1
	return &bitshuffleStage{c}, out, nil
}

// whole returns how many bytes of src are in blocks: all but the rest.
func (c *bitshuffle) whole(src []byte) (int64, error) {
	n := int64(len(src))
	if n%c.item != 0 {
		return 0, Corruptf(c.name, "%d bytes are not elements of %d", n, c.item)
	}
	return n - n%(8*c.item), nil
}

type bitshuffleStage struct{ *bitshuffle }

func (s *bitshuffleStage) Encode(dst, src []byte) ([]byte, error) {
	return s.run(dst, src, kernels.BitShuffle)
}

func (s *bitshuffleStage) Decode(dst, src []byte) ([]byte, error) {
	return s.run(dst, src, kernels.BitUnshuffle)
}

func (s *bitshuffleStage) run(dst, src []byte, kernel func(dst, src []byte, size int)) ([]byte, error) {
	whole, err := s.whole(src)
	if err != nil {
		return dst, err
	}
	start := len(dst)
	dst = scratch.Grow(dst, int64(len(src)))[:start+len(src)]
	out := dst[start:]
	for at := int64(0); at < whole; at += s.block * s.item {
		end := min(at+s.block*s.item, whole)
		kernel(out[at:end], src[at:end], int(s.item))
	}
	copy(out[whole:], src[whole:])
	return dst, nil
}

type bshufStage struct {
	*bitshuffle
	in Rep
}

// zstd returns the compressor of a block of n bytes.
func (s *bshufStage) zstd(n int) *zstdStage {
	return &zstdStage{in: BytesRep(int64(n), int64(n)), level: zstd.EncoderLevelFromZstd(s.level), literals: s.level > 0}
}

func (s *bshufStage) Encode(dst, src []byte) ([]byte, error) {
	whole, err := s.whole(src)
	if err != nil {
		return dst, err
	}
	block := s.block * s.item
	buf := scratch.Get(min(block, whole))
	defer buf.Put()
	return appendBlocks(dst, src, whole, block, func(dst, part []byte) ([]byte, error) {
		planes := buf.B[:len(part)]
		kernels.BitShuffle(planes, part, int(s.item))
		if s.cname == "zstd" {
			return s.zstd(len(part)).Encode(dst, planes)
		}
		return appendLZ4(dst, planes, 1), nil
	})
}

func (s *bshufStage) Decode(dst, src []byte) ([]byte, error) {
	var buf *scratch.Buffer
	defer func() { buf.Put() }()
	return decodeBlocks(s.name, dst, src, s.in.Limit(len(src)), func(n, block int64) (int64, error) {
		switch {
		case n%s.item != 0 || block%(8*s.item) != 0:
			return 0, Corruptf(s.name, "%d bytes in blocks of %d are not elements of %d", n, block, s.item)
		case s.cname == "lz4" && n > 255*int64(len(src)):
			return 0, Corruptf(s.name, "%d bytes cannot decode to %d", len(src), n)
		}
		buf = scratch.Get(min(block, n))
		return n - n%(8*s.item), nil
	}, func(out, b []byte) (err error) {
		planes := buf.B[:len(out)]
		if s.cname == "zstd" {
			if planes, err = decodeZstd(buf.B[:0], b, int64(len(out)), int64(len(out))); err == nil && len(planes) != len(out) {
				err = Corruptf(s.name, "%d bytes in a block of %d", len(planes), len(out))
			}
		} else {
			err = decodeLZ4(s.name, planes, b)
		}
		if err == nil {
			kernels.BitUnshuffle(out, planes, int(s.item))
		}
		return err
	})
}
