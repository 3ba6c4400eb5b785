package precomputed

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"iter"
	"math"
	"slices"

	"github.com/zarrdb/zarrdb/codecs/inflate"
	"github.com/zarrdb/zarrdb/formats"
	"github.com/zarrdb/zarrdb/internal/lru"
	"github.com/zarrdb/zarrdb/kv"
)

// Shard indexes are read in parts of so many bytes: 4096 minishards.
const indexPart = 64 << 10

// maxMinishard bounds a minishard index, decoded, in bytes: 10 million chunks.
const maxMinishard = 240 << 20

// cacheBytes bounds the kept indexes of a volume. A larger index is kept until
// another is read.
const cacheBytes = 64 << 20

// partKey names a part of a shard index (mini counts parts), or a minishard index.
type partKey struct {
	file  string
	mini  uint64
	shard bool
}

// indexes keeps parts of indexes.
type indexes = lru.Cache[partKey, *part]

func newIndexes() *indexes {
	return lru.New[partKey](cacheBytes, func(p *part) int64 {
		return 200 + int64(len(p.index)) + 24*int64(cap(p.chunks))
	})
}

// part is the part that was read: of a shard index the bytes, of a minishard index its
// chunks by ascending ID. A part of a file that does not exist is empty.
type part struct {
	index  []byte
	chunks []placed
}

// placed is where a chunk lies in the file.
type placed struct{ id, off, size uint64 }

func (c placed) compare(id uint64) int { return cmp.Compare(c.id, id) }

// shards finds the chunks of a sharded scale.
type shards struct {
	sharding
	files  kv.Reader
	dir    string // with a slash at its end
	counts [4]int64
	cache  *indexes
}

// find returns where the encoded bytes of a chunk lie, or kv.ErrNotFound.
func (s *shards) find(ctx context.Context, cell [3]int64) (file string, off, n int64, err error) {
	id := morton(s.counts, cell)
	shard, mini := s.place(id)
	file = s.dir + s.file(shard)
	m, err := s.minishard(ctx, file, mini)
	if err != nil {
		return "", 0, 0, err
	}
	i, ok := slices.BinarySearchFunc(m.chunks, id, placed.compare)
	if !ok {
		return "", 0, 0, kv.ErrNotFound
	}
	return file, int64(m.chunks[i].off), int64(m.chunks[i].size), nil
}

// minishard returns a minishard index. Errors are ErrFormat or of reading.
func (s *shards) minishard(ctx context.Context, file string, mini uint64) (*part, error) {
	const entries = indexPart / 16
	index, err := s.cache.Get(ctx, partKey{file, mini / entries, true}, func() (*part, error) {
		return s.readPart(ctx, file, int64(mini/entries)*indexPart)
	})
	if err != nil || index.index == nil {
		return &part{}, err
	}
	at := index.index[mini%entries*16:]
	start, end := binary.LittleEndian.Uint64(at), binary.LittleEndian.Uint64(at[8:])
	if start > end || end > math.MaxInt64-uint64(s.indexSize()) {
		return nil, formats.Invalid("%s: minishard %d: index from %d to %d", file, mini, start, end)
	}
	if start == end {
		return &part{}, nil
	}
	return s.cache.Get(ctx, partKey{file, mini, false}, func() (*part, error) {
		p, err := s.readMinishard(ctx, file, mini, start, end)
		if errors.Is(err, kv.ErrRange) || errors.Is(err, kv.ErrNotFound) {
			err = formats.Invalid("%s: the index of minishard %d lies outside", file, mini)
		}
		return p, err
	})
}

// readPart reads a part of a shard index; it is empty if there is no such file.
func (s *shards) readPart(ctx context.Context, file string, off int64) (*part, error) {
	b, err := s.files.Get(ctx, file, kv.Span(off, min(indexPart, s.indexSize()-off)))
	switch {
	case errors.Is(err, kv.ErrNotFound):
		return &part{}, nil
	case errors.Is(err, kv.ErrRange):
		return nil, formats.Invalid("%s: it is shorter than its index of %d bytes", file, s.indexSize())
	case err != nil:
		return nil, err
	}
	return &part{index: b}, nil
}

// readMinishard reads a minishard index, whose place is relative to the end of the shard
// index.
func (s *shards) readMinishard(ctx context.Context, file string, mini, start, end uint64) (*part, error) {
	base := uint64(s.indexSize())
	most := uint64(maxMinishard)
	if n := s.chunks(); n < maxMinishard/24 {
		most = 24 * uint64(n)
	}
	stored := most
	if s.Index == "gzip" {
		stored += most/1000 + 1024 // bytes that deflate adds to data that it cannot compress
	}
	if end-start > stored {
		return nil, formats.Invalid("%s: minishard %d: an index of %d bytes for %d chunks", file, mini, end-start, s.chunks())
	}
	b, err := s.files.Get(ctx, file, kv.Span(int64(base+start), int64(end-start)))
	if err != nil {
		return nil, err
	}
	if s.Index == "gzip" {
		if b, _, err = inflate.Gzip(nil, b, int64(most)); err != nil {
			return nil, formats.Invalid("%s: minishard %d: %v", file, mini, err)
		}
	}
	p, err := parseMinishard(b, base)
	if err != nil {
		return nil, formats.Invalid("%s: minishard %d: %v", file, mini, err)
	}
	return p, nil
}

// chunks is the number of cells of the grid, at most 2^62.
func (s *shards) chunks() int64 {
	n := int64(1)
	for _, c := range s.counts[:3] {
		if c > 0 && n > 1<<62/c {
			return 1 << 62
		}
		n *= c
	}
	return n
}

var (
	errIndexLength = errors.New("its length is not a multiple of 24")
	errIndexPlace  = errors.New("a chunk lies beyond all files")
)

// parseMinishard decodes a minishard index: IDs, gaps before the data, and sizes, in
// three rows. base is the length of the shard index.
func parseMinishard(b []byte, base uint64) (*part, error) {
	if len(b)%24 != 0 {
		return nil, errIndexLength
	}
	n := len(b) / 24
	p := &part{chunks: make([]placed, n)}
	le := binary.LittleEndian
	id, at := uint64(0), base
	for i := range n {
		id += le.Uint64(b[8*i:])
		at += le.Uint64(b[8*(n+i):])
		size := le.Uint64(b[8*(2*n+i):])
		// A gap may be "negative": sums wrap around, and only the places count.
		if at > math.MaxInt64 || size > math.MaxInt64-at {
			return nil, errIndexPlace
		}
		p.chunks[i] = placed{id, at, size}
		at += size
	}
	byID := func(a, b placed) int { return a.compare(b.id) }
	if !slices.IsSortedFunc(p.chunks, byID) {
		slices.SortStableFunc(p.chunks, byID)
	}
	return p, nil
}

// cells yields the cells of the grid that a shard has.
func (s *shards) cells(ctx context.Context, file string) iter.Seq2[[3]int64, error] {
	return func(yield func([3]int64, error) bool) {
		for mini := range uint64(1) << uint(s.MiniBits) {
			m, err := s.minishard(ctx, file, mini)
			if err != nil {
				yield([3]int64{}, err)
				return
			}
			last := uint64(math.MaxUint64)
			for i, c := range m.chunks {
				id := c.id
				cell := unmorton(s.counts, id)
				inside := cell[0] < s.counts[0] && cell[1] < s.counts[1] && cell[2] < s.counts[2]
				// A chunk in the wrong place, or twice, is never found there.
				shard, place := s.place(id)
				if !inside || i > 0 && id == last || place != mini || s.dir+s.file(shard) != file {
					continue
				}
				last = id
				if !yield(cell, nil) {
					return
				}
			}
		}
	}
}
