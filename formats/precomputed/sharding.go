package precomputed

import (
	"fmt"
	"math/bits"

	"github.com/zarrdb/zarrdb/formats"
)

// sharding is a sharding specification.
//
//	chunk ID ──>> preshift──hash──▶ … │ shard bits │ minishard bits │
type sharding struct {
	Type      string  `json:"@type"`
	Preshift  integer `json:"preshift_bits"`
	Hash      string  `json:"hash"`
	MiniBits  integer `json:"minishard_bits"`
	ShardBits integer `json:"shard_bits"`
	Index     string  `json:"minishard_index_encoding,omitempty"`
	Data      string  `json:"data_encoding,omitempty"`
}

const shardedType = "neuroglancer_uint64_sharded_v1"

// check refuses numbers of bits that mean nothing. Errors are ErrFormat.
func (s *sharding) check() error {
	// Shard indexes are read in parts; their places must be numbers.
	const maxMiniBits = 48
	if s.Preshift < 0 || s.Preshift > 64 || s.MiniBits < 0 || s.MiniBits > maxMiniBits || s.ShardBits < 0 || s.MiniBits+s.ShardBits > 64 {
		return formats.Invalid("sharding: preshift_bits %d, minishard_bits %d, shard_bits %d", s.Preshift, s.MiniBits, s.ShardBits)
	}
	return nil
}

// unsupported names the part of a specification that is not read. The error is ErrUnsupported.
func (s *sharding) unsupported() error {
	switch {
	case s.Type != shardedType:
		return formats.Unsupported("sharding: @type %q", s.Type)
	case s.Hash != "identity" && s.Hash != "murmurhash3_x86_128":
		return formats.Unsupported("sharding: hash %q", s.Hash)
	case s.Index != "" && s.Index != "raw" && s.Index != "gzip":
		return formats.Unsupported("sharding: minishard_index_encoding %q", s.Index)
	case s.Data != "" && s.Data != "raw" && s.Data != "gzip":
		return formats.Unsupported("sharding: data_encoding %q", s.Data)
	}
	return nil
}

// place returns the shard and the minishard of a chunk.
func (s *sharding) place(id uint64) (shard, mini uint64) {
	h := id >> uint(s.Preshift)
	if s.Hash == "murmurhash3_x86_128" {
		h = murmur(h)
	}
	return h >> uint(s.MiniBits) & (1<<uint(s.ShardBits) - 1), h & (1<<uint(s.MiniBits) - 1)
}

// file is the name of a shard.
func (s *sharding) file(shard uint64) string {
	return fmt.Sprintf("%0*x.shard", int(s.ShardBits+3)/4, shard)
}

// indexSize is the length of the shard index.
func (s *sharding) indexSize() int64 { return 16 << uint(s.MiniBits) }

// murmur returns the low 8 bytes of MurmurHash3_x86_128 with seed 0 of the 8 bytes of n.
func murmur(n uint64) uint64 {
	const c1, c2, c3 = 0x239b961b, 0xab0e9789, 0x38b34ae5
	// The input is shorter than a block: its two words are the tail of two lanes.
	var h [4]uint32
	h[0] = bits.RotateLeft32(uint32(n)*c1, 15) * c2
	h[1] = bits.RotateLeft32(uint32(n>>32)*c2, 16) * c3
	for i := range h {
		h[i] ^= 8 // the length
	}
	mix := func() {
		h[0] += h[1] + h[2] + h[3]
		h[1] += h[0]
		h[2] += h[0]
		h[3] += h[0]
	}
	mix()
	for i, x := range h {
		x = (x ^ x>>16) * 0x85ebca6b
		x = (x ^ x>>13) * 0xc2b2ae35
		h[i] = x ^ x>>16
	}
	mix()
	return uint64(h[1])<<32 | uint64(h[0])
}

// mortonBits is the number of bits of the compressed Morton code in a grid.
func mortonBits(counts [4]int64) int {
	n := 0
	for _, c := range counts[:3] {
		n += bits.Len64(uint64(max(c-1, 0)))
	}
	return n
}

// morton returns the compressed Morton code of a cell: the bits of the coordinates in
// turn from the lowest on, without bits that are 0 in the whole grid.
func morton(counts [4]int64, cell [3]int64) (id uint64) {
	j := 0
	for i := range 63 {
		for d := range 3 {
			if int64(1)<<i < counts[d] {
				id |= uint64(cell[d]>>i&1) << j
				j++
			}
		}
	}
	return id
}

// unmorton returns the cell of a code, which lies outside the grid for an
// invalid code.
func unmorton(counts [4]int64, id uint64) (cell [3]int64) {
	j := 0
	for i := range 63 {
		for d := range 3 {
			if int64(1)<<i < counts[d] {
				cell[d] |= int64(id>>j&1) << i
				j++
			}
		}
	}
	if j < 64 && id>>j != 0 {
		cell[0] = counts[0]
	}
	return cell
}
