package codecs

import (
	"encoding/json"
	"fmt"
	"math"
	"math/bits"

	"github.com/zarrdb/zarrdb/zarr/dtype"
)

// sharding is the codec "sharding_indexed": a chunk cut into inner chunks that
// are encoded one by one, and an index of their positions.
//
//	│ inner chunk │ inner chunk │ … │ index │        index_location "end"
//	│ index │ inner chunk │ inner chunk │ … │        "start"
//
// The index is an array of uint64 with the shape of the grid of inner chunks
// and a last axis of two: offset in the shard, and length in bytes. Both are
// 2^64-1 for an inner chunk that is not there and holds the fill value.
type sharding struct {
	shape   []int
	codecs  Chain
	index   Chain
	atStart bool
	raw     json.RawMessage
}

func parseSharding(c Config) (Codec, error) {
	f := c.Fields()
	f.Require("chunk_shape", "codecs", "index_codecs")
	s := &sharding{
		shape:   f.Ints("chunk_shape"),
		atStart: f.Enum("index_location", "end", "start", "end") == "start",
		raw:     c.Raw,
	}
	inner, index := f.Raw("codecs"), f.Raw("index_codecs")
	if err := f.Err(); err != nil {
		return nil, err
	}
	for _, n := range s.shape {
		if n <= 0 {
			return nil, BadField("chunk_shape", "%v is not positive", s.shape)
		}
	}
	var err error
	if s.codecs, err = c.ParseInner(inner, "codecs"); err != nil {
		return nil, err
	}
	if s.index, err = c.ParseInner(index, "index_codecs"); err != nil {
		return nil, err
	}
	return s, nil
}

func (s *sharding) Config() json.RawMessage { return s.raw }

func (s *sharding) stacked(r *Registry) (Codec, error) {
	inner, err := s.codecs.Stacked(r)
	if err != nil {
		return nil, err
	}
	list, err := inner.PrintV3()
	if err != nil {
		return nil, err
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(s.raw, &members); err != nil {
		return nil, err
	}
	shape := append([]int{1}, s.shape...)
	members["codecs"] = list
	if members["chunk_shape"], err = json.Marshal(shape); err != nil {
		return nil, err
	}
	raw, err := json.Marshal(members)
	return &sharding{shape: shape, codecs: inner, index: s.index, atStart: s.atStart, raw: raw}, err
}

// Bind binds the inner chain to an inner chunk and the chain of the index to
// the index.
func (s *sharding) Bind(in Rep) (Stage, Rep, error) {
	if len(s.shape) != len(in.Shape) {
		return nil, Rep{}, BadField("chunk_shape", "%v has %d dimensions, the shard has %d", s.shape, len(s.shape), len(in.Shape))
	}
	st := &shardStage{atStart: s.atStart, fill: in.Fill}
	grid := make([]int, len(in.Shape))
	for i, n := range in.Shape {
		if n%s.shape[i] != 0 {
			return nil, Rep{}, BadField("chunk_shape", "%v does not divide the shape %v of the shard", s.shape, in.Shape)
		}
		grid[i] = n / s.shape[i]
	}
	var err error
	if st.inner, err = s.codecs.Bind(Rep{Type: in.Type, Shape: s.shape, Fill: in.Fill, Max: in.Max}); err != nil {
		return nil, Rep{}, err
	}
	entry, err := ArrayRep(dtype.NewUint(64), append(append([]int(nil), grid...), 2), nil)
	if err != nil {
		return nil, Rep{}, BadField("chunk_shape", "%v makes too many inner chunks in a shard of shape %v", s.shape, in.Shape)
	}
	if st.index, err = s.index.Bind(entry); err != nil {
		return nil, Rep{}, err
	}
	st.indexSize = st.index.EncodedSize()
	if st.indexSize < 0 {
		return nil, Rep{}, BadField("index_codecs", "the encoded size depends on the data")
	}
	st.n = int(entry.Size / 16)
	st.whole, st.grid = in.layout(), newLayout(grid, 1)
	return st, BytesRep(-1, st.maxSize()), nil
}

// shardStage is a bound shard.
type shardStage struct {
	inner, index *Bound
	atStart      bool
	indexSize    int64
	n            int    // inner chunks
	grid         layout // of the inner chunks, in units of one
	whole        layout // of the elements of the shard
	fill         []byte
}

var _ partialStage = (*shardStage)(nil)

func (s *shardStage) variable() bool { return s.inner.in.Type.Variable() }

// maxSize bounds the length of a shard. Other writers may leave unused space
// between inner chunks, so that it is not tight.
func (s *shardStage) maxSize() int64 {
	hi, all := bits.Mul64(uint64(s.inner.MaxEncodedSize()), uint64(s.n))
	if hi != 0 || all > math.MaxInt64/4 {
		return math.MaxInt64
	}
	return s.indexSize + 2*int64(all) + 64<<10
}

// indexRange returns where the index lies in a shard of that size.
func (s *shardStage) indexRange(size int64) (off int64, err error) {
	if size < s.indexSize {
		return 0, Corruptf("sharding_indexed", "%d bytes have no room for an index of %d", size, s.indexSize)
	}
	if s.atStart {
		return 0, nil
	}
	return size - s.indexSize, nil
}

// part is one inner chunk and its intersection with a box.
type part struct {
	chunk int // number in C order of the grid
	// inBox and inChunk are where the common part begins in the box and in the
	// inner chunk, in elements; count is its extent.
	inBox, inChunk, count []int
	all                   bool // the part is the whole inner chunk
}

// parts walks the inner chunks that a box touches, in C order. Its slices are
// good until the next call of next.
type parts struct {
	s           *shardStage
	box         Box
	index       [MaxRank]int // grid coordinates
	inBox       [MaxRank]int
	inChunk     [MaxRank]int
	count       [MaxRank]int
	first, last [MaxRank]int
	started     bool
	part        part
}

func (p *parts) reset(s *shardStage, box Box) {
	p.s, p.box, p.started = s, box, false
	for d, n := range s.inner.in.Shape {
		p.first[d] = box.Start[d] / n
		p.last[d] = (box.Start[d] + box.Count[d] - 1) / n
		p.index[d] = p.first[d]
	}
}

// next moves on to the next inner chunk; it returns false after the last.
func (p *parts) next() bool {
	rank := len(p.s.grid.shape)
	if !p.started {
		p.started = true
		if elements(p.box.Count) == 0 {
			return false
		}
	} else {
		d := rank - 1
		for ; d >= 0; d-- {
			if p.index[d] < p.last[d] {
				p.index[d]++
				break
			}
			p.index[d] = p.first[d]
		}
		if d < 0 {
			return false
		}
	}
	p.at(p.index[:rank])
	return true
}

// at sets part to the inner chunk with the given grid coordinates.
func (p *parts) at(index []int) {
	rank := len(index)
	all := true
	for d, n := range p.s.inner.in.Shape {
		lo := max(p.box.Start[d], index[d]*n)
		hi := min(p.box.Start[d]+p.box.Count[d], (index[d]+1)*n)
		p.inBox[d] = lo - p.box.Start[d]
		p.inChunk[d] = lo - index[d]*n
		p.count[d] = hi - lo
		all = all && p.count[d] == n
	}
	p.part = part{
		chunk: p.s.grid.offset(index),
		inBox: p.inBox[:rank], inChunk: p.inChunk[:rank], count: p.count[:rank],
		all: all,
	}
}

// seek sets part to the inner chunk of that number.
func (p *parts) seek(chunk int) {
	rank := len(p.s.grid.shape)
	for d, step := range p.s.grid.strides {
		p.index[d] = chunk / step
		chunk %= step
	}
	p.at(p.index[:rank])
}

// in returns where the part lies in an array that holds the box.
func (p *part) in(a Dst) Dst {
	for d, n := range p.inBox {
		a.Offset += n * a.Strides[d]
	}
	return a
}

// box returns the part as a box of the inner chunk.
func (p *part) box() Box { return Box{Start: p.inChunk, Count: p.count} }

func errShardPart(chunk int, err error) error {
	return fmt.Errorf("inner chunk %d: %w", chunk, err)
}
