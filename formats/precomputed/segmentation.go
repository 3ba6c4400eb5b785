package precomputed

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/zarr/dtype"
)

// segmentationCodec is the codec of chunks [channel, z, y, x] of uint32 or uint64 in the
// multi-channel compressed segmentation format (src/sliceview/compressed_segmentation).
// Numbers are little-endian; offsets count words of 4 bytes from the start of the channel:
//
//	offset of each channel (4) … │ channel │ channel …
//	channel: block header (8) … │ values and tables, anywhere
//	block header: table (3) │ bits (1) │ values (4)
//
// A value of so many bits for each element of a block, x fastest, is an index into its
// table.
const segmentationCodec = "zarrdb.compressed_segmentation"

// maxBlockSize bounds the size of a block along each dimension.
const maxBlockSize = 1 << 16

func parseSegmentation(c codecs.Config) (codecs.Codec, error) {
	f := c.Fields()
	f.Require("block_size")
	sizes := f.Ints("block_size")
	if err := f.Err(); err != nil {
		return nil, err
	}
	if len(sizes) != 3 {
		return nil, codecs.BadField("block_size", "%d numbers, not 3", len(sizes))
	}
	for _, n := range sizes {
		if n < 1 || n > maxBlockSize {
			return nil, codecs.BadField("block_size", "%d is not in 1 to %d", n, maxBlockSize)
		}
	}
	return &segmentation{[3]int(sizes)}, nil
}

// segmentation has the size of a block along x, y and z.
type segmentation struct{ block [3]int }

func (s *segmentation) Config() json.RawMessage { return codecs.Object("block_size", s.block) }

func (s *segmentation) Bind(in codecs.Rep) (codecs.Stage, codecs.Rep, error) {
	if len(in.Shape) != 4 || in.Type.Kind() != dtype.Uint || in.Type.Bits() < 32 {
		return nil, codecs.Rep{}, codecs.BadField("", "encodes uint32 and uint64 of 4 dimensions, not %v of %d", in.Type, len(in.Shape))
	}
	st := &segmentationStage{codec: s, in: in, size: in.Type.Size()}
	blocks := int64(1)
	for d := range 3 {
		st.shape[d] = in.Shape[3-d]
		st.grid[d] = (st.shape[d]-1)/s.block[d] + 1
		blocks *= int64(st.grid[d])
	}
	out := in.Grown()
	out.Max += int64(in.Shape[0]) * (4 + 16*blocks) * 2
	return st, out, nil
}

type segmentationStage struct {
	codec *segmentation
	in    codecs.Rep
	size  int    // of an element
	shape [3]int // x, y, z
	grid  [3]int // blocks along x, y, z
}

// Encode implements [codecs.Stage]. Segmentations are not written.
func (s *segmentationStage) Encode(dst, _ []byte) ([]byte, error) {
	return dst, fmt.Errorf("%s: it is only read: %w", segmentationCodec, errors.ErrUnsupported)
}

func (s *segmentationStage) Decode(dst, src []byte) ([]byte, error) {
	start, channels := len(dst), s.in.Shape[0]
	if len(src) < 4*channels {
		return dst, codecs.Corruptf(segmentationCodec, "%d bytes have no room for the offsets of %d channels", len(src), channels)
	}
	// Each block has a header: a chunk cannot be much larger than its bytes.
	if headers := 8 * int64(s.grid[0]) * int64(s.grid[1]) * int64(s.grid[2]) * int64(channels); int64(len(src)) < headers {
		return dst, codecs.Corruptf(segmentationCodec, "%d bytes have no room for %d bytes of headers", len(src), headers)
	}
	dst = append(dst, make([]byte, s.in.Size)...)
	out := dst[start:]
	volume := len(out) / max(channels, 1)
	for c := range channels {
		at := 4 * int64(binary.LittleEndian.Uint32(src[4*c:]))
		if at > int64(len(src)) {
			return dst[:start], codecs.Corruptf(segmentationCodec, "channel %d begins at byte %d of %d", c, at, len(src))
		}
		if err := s.channel(out[c*volume:(c+1)*volume], src[at:]); err != nil {
			return dst[:start], err
		}
	}
	return dst, nil
}

// channel decodes one channel.
func (s *segmentationStage) channel(out, src []byte) error {
	le := binary.LittleEndian
	if len(src) < 8*s.grid[0]*s.grid[1]*s.grid[2] {
		return codecs.Corruptf(segmentationCodec, "%d bytes of a channel have no room for the headers of %v blocks", len(src), s.grid)
	}
	header := src
	for z := range s.grid[2] {
		for y := range s.grid[1] {
			for x := range s.grid[0] {
				word := le.Uint32(header)
				b := block{bits: int(word >> 24), origin: [3]int{x * s.codec.block[0], y * s.codec.block[1], z * s.codec.block[2]}}
				table, values := 4*int64(word&0xffffff), 4*int64(le.Uint32(header[4:]))
				header = header[8:]
				if b.bits&(b.bits-1) != 0 || b.bits > 32 {
					return codecs.Corruptf(segmentationCodec, "values of %d bits", b.bits)
				}
				if table > int64(len(src)) || values > int64(len(src)) && b.bits > 0 {
					return codecs.Corruptf(segmentationCodec, "table at byte %d and values at byte %d of %d", table, values, len(src))
				}
				b.table = src[table:]
				if b.bits > 0 {
					b.values = src[values:]
				}
				if err := s.block(out, b); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// block is one block of a channel.
type block struct {
	bits          int
	origin        [3]int
	table, values []byte
}

func (s *segmentationStage) block(out []byte, b block) error {
	le := binary.LittleEndian
	var count [3]int // of the part inside the chunk
	for d := range count {
		count[d] = min(s.codec.block[d], s.shape[d]-b.origin[d])
	}
	mask := uint32(1)<<b.bits - 1
	for z := range count[2] {
		for y := range count[1] {
			to := out[s.size*(b.origin[0]+s.shape[0]*(b.origin[1]+y+s.shape[1]*(b.origin[2]+z))):]
			bit := int64(b.bits) * int64(s.codec.block[0]) * (int64(y) + int64(s.codec.block[1])*int64(z))
			for x := range count[0] {
				index := uint64(0)
				if b.bits > 0 {
					at := bit / 32 * 4
					if at+4 > int64(len(b.values)) {
						return codecs.Corruptf(segmentationCodec, "the values of a block end beyond the chunk")
					}
					index = uint64(le.Uint32(b.values[at:]) >> (bit % 32) & mask)
					bit += int64(b.bits)
				}
				entry := index * uint64(s.size)
				if entry+uint64(s.size) > uint64(len(b.table)) {
					return codecs.Corruptf(segmentationCodec, "entry %d of a table that ends beyond the chunk", index)
				}
				copy(to[x*s.size:(x+1)*s.size], b.table[entry:])
			}
		}
	}
	return nil
}
