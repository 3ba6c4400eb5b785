package codecs

import (
	"context"
	"encoding/json"

	"github.com/zarrdb/zarrdb/codecs/blosc"
	"github.com/zarrdb/zarrdb/codecs/internal/scratch"
)

// bloscCodec is the codec "blosc" of v3, whose configuration has the shuffle by
// name and the size of an element, and of numcodecs, which has the shuffle by
// number and takes the size from the data.
type bloscCodec struct {
	cname     string
	level     int
	shuffle   blosc.Shuffle // or autoShuffle
	typeSize  int           // 0: from the data
	blockSize int
	numcodecs bool // the configuration has the form of numcodecs
}

// autoShuffle shuffles the bits of elements of one byte, and the bytes of longer elements.
const autoShuffle blosc.Shuffle = -1

// shuffleNames are the names of v3, by the numbers of numcodecs.
var shuffleNames = [...]string{"noshuffle", "shuffle", "bitshuffle"}

func parseBlosc(c Config) (Codec, error) {
	f := c.Fields()
	b := &bloscCodec{numcodecs: c.V2 || c.Name == "numcodecs.blosc"}
	if !b.numcodecs {
		f.Require("cname", "clevel", "shuffle")
	}
	b.cname = f.Enum("cname", "lz4", "blosclz", "lz4", "lz4hc", "snappy", "zlib", "zstd")
	b.level = int(f.Int("clevel", 5, 0, 9))
	b.blockSize = int(f.Int("blocksize", 0, 0, blosc.MaxSize))
	if b.numcodecs {
		b.shuffle = blosc.Shuffle(f.Int("shuffle", int64(blosc.ByteShuffle), int64(autoShuffle), int64(blosc.BitShuffle)))
	} else {
		name := f.Enum("shuffle", "", shuffleNames[:]...)
		for i := range shuffleNames {
			if shuffleNames[i] == name {
				b.shuffle = blosc.Shuffle(i)
			}
		}
		if b.shuffle != blosc.NoShuffle {
			f.Require("typesize")
		}
	}
	// v3 ignores it without a shuffle.
	if !b.numcodecs && b.shuffle == blosc.NoShuffle {
		b.typeSize = int(f.Int("typesize", 0, 0, blosc.MaxSize))
	} else {
		b.typeSize = int(f.Int("typesize", 0, 1, blosc.MaxSize))
	}
	return b, f.Err()
}

func (b *bloscCodec) Config() json.RawMessage {
	if b.numcodecs {
		return b.ConfigV2(Rep{})
	}
	return b.configV3(Rep{})
}

// ConfigV2 prints the configuration as numcodecs has it.
func (b *bloscCodec) ConfigV2(Rep) json.RawMessage {
	return Object("cname", b.cname, "clevel", b.level, "shuffle", b.shuffle, "blocksize", b.blockSize)
}

// ConfigV3 prints the configuration as v3 has it.
func (b *bloscCodec) ConfigV3(in Rep) (json.RawMessage, error) { return b.configV3(in), nil }

func (b *bloscCodec) configV3(in Rep) json.RawMessage {
	p := b.params(in)
	if p.Shuffle == blosc.NoShuffle {
		return Object("cname", b.cname, "clevel", b.level, "shuffle", shuffleNames[p.Shuffle], "blocksize", b.blockSize)
	}
	return Object("cname", b.cname, "clevel", b.level, "shuffle", shuffleNames[p.Shuffle],
		"typesize", p.TypeSize, "blocksize", b.blockSize)
}

// params returns how bytes that hold in are encoded.
func (b *bloscCodec) params(in Rep) blosc.Params {
	p := blosc.Params{Compressor: b.cname, Level: b.level, Shuffle: b.shuffle, TypeSize: b.typeSize, BlockSize: b.blockSize}
	if p.TypeSize == 0 {
		p.TypeSize = in.Item()
	}
	if p.Shuffle == autoShuffle {
		p.Shuffle = blosc.ByteShuffle
		if p.TypeSize == 1 {
			p.Shuffle = blosc.BitShuffle
		}
	}
	return p
}

func (b *bloscCodec) Bind(in Rep) (Stage, Rep, error) {
	if in.Size > blosc.MaxSize {
		return nil, Rep{}, BadField("", "%d bytes are more than %d", in.Size, blosc.MaxSize)
	}
	return &bloscStage{in: in, params: b.params(in)}, in.Grown(), nil
}

type bloscStage struct {
	in     Rep
	params blosc.Params
}

var _ RangeStage = (*bloscStage)(nil)

func (s *bloscStage) Encode(dst, src []byte) ([]byte, error) {
	return blosc.Encode(dst, src, s.params)
}

func (s *bloscStage) Decode(dst, src []byte) ([]byte, error) {
	out, err := blosc.Decode(dst, src, s.in.Limit(len(src)))
	if err != nil {
		return dst, Corruptf("blosc", "%w", err)
	}
	return out, nil
}

// bloscGuess is enough for the header of a thousand blocks; a longer one needs a
// second read.
const bloscGuess = 4 << 10

// Open reads the header and the places of the blocks.
func (s *bloscStage) Open(ctx context.Context, src Source) (Source, error) {
	var x *blosc.Index
	need := min(int64(bloscGuess), src.Size())
	for x == nil {
		more := int64(0)
		err := src.ReadRange(ctx, 0, need, func(head []byte) error {
			info, err := blosc.Header(head)
			if err != nil {
				return Corruptf("blosc", "%w", err)
			}
			if info.IndexSize() > need && need < src.Size() {
				more = min(info.IndexSize(), src.Size())
				return nil
			}
			if x, err = blosc.NewIndex(head, src.Size()); err != nil {
				return Corruptf("blosc", "%w", err)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		need = more
	}
	return &bloscSource{src: src, index: x}, nil
}

// bloscSource is the data of a frame, decoded block by block.
type bloscSource struct {
	src   Source
	index *blosc.Index
}

func (s *bloscSource) Size() int64 { return s.index.Size }

// Gap is a block: one that is read twice is decoded twice.
func (s *bloscSource) Gap() int64 { return max(gapOf(s.src), s.index.BlockSize) }

func (s *bloscSource) ReadRange(ctx context.Context, off, n int64, fn func([]byte) error) error {
	lo, hi := s.index.Encoded(off, n)
	return s.src.ReadRange(ctx, lo, hi-lo, func(enc []byte) error {
		tmp := scratch.Get(n)
		defer tmp.Put()
		var err error
		if tmp.B, err = s.index.DecodeRange(tmp.B, enc, lo, off, n); err != nil {
			return Corruptf("blosc", "%w", err)
		}
		return fn(tmp.B)
	})
}
