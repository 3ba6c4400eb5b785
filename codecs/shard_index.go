package codecs

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"slices"
)

// Index is the decoded index of one shard: where its inner chunks lie. It is
// not changed after reading and is safe for concurrent use.
type Index struct {
	entries []byte // pairs of little-endian uint64
	size    int64  // of the shard
	lo, hi  int64  // where the encoded index lies in it
}

// Len returns the number of inner chunks.
func (x *Index) Len() int { return len(x.entries) / 16 }

// Memory returns the bytes of the index in memory, for caches.
func (x *Index) Memory() int { return len(x.entries) + 64 }

// Chunk returns the position in the shard of inner chunk i, in C order of the
// grid of inner chunks. ok is false if it is missing and so has the fill value.
// An entry that points outside the shard or into the index is ErrCorrupt.
func (x *Index) Chunk(i int) (off, n int64, ok bool, err error) {
	o := binary.LittleEndian.Uint64(x.entries[16*i:])
	l := binary.LittleEndian.Uint64(x.entries[16*i+8:])
	if o == math.MaxUint64 && l == math.MaxUint64 {
		return 0, 0, false, nil
	}
	size := uint64(x.size)
	if o > size || l > size-o {
		return 0, 0, false, Corruptf("sharding_indexed", "inner chunk %d at %d+%d outside a shard of %d bytes", i, o, l, size)
	}
	if l > 0 && o < uint64(x.hi) && o+l > uint64(x.lo) {
		return 0, 0, false, Corruptf("sharding_indexed", "inner chunk %d at %d+%d reaches into the index", i, o, l)
	}
	return int64(o), int64(l), true, nil
}

// chunk is x.Chunk for an inner chunk that will be read: the error is ErrCorrupt
// if it is longer than any encoded inner chunk can be, so that overlapping
// entries do not multiply the bytes of a shard.
func (s *shardStage) chunk(x *Index, i int) (off, n int64, ok bool, err error) {
	off, n, ok, err = x.Chunk(i)
	if limit := s.inner.MaxEncodedSize(); n > limit {
		return 0, 0, false, Corruptf("sharding_indexed", "inner chunk %d of %d bytes is longer than %d", i, n, limit)
	}
	return off, n, ok, err
}

// set stores an entry.
func (x *Index) set(i int, off, n uint64) {
	binary.LittleEndian.PutUint64(x.entries[16*i:], off)
	binary.LittleEndian.PutUint64(x.entries[16*i+8:], n)
}

// readIndex reads and decodes the index of a shard into x, whose memory is
// used again.
func (s *shardStage) readIndex(ctx context.Context, src Source, x *Index) error {
	off, err := s.indexRange(src.Size())
	if err != nil {
		return err
	}
	x.size, x.lo, x.hi = src.Size(), off, off+s.indexSize
	if b, ok := inMemory(src); ok {
		x.entries, err = s.index.Decode(x.entries[:0], b[x.lo:x.hi])
		return err
	}
	return src.ReadRange(ctx, off, s.indexSize, func(b []byte) error {
		var err error
		x.entries, err = s.index.Decode(x.entries[:0], b)
		return err
	})
}

// indexed reports whether the chunks are shards whose index can be read: then
// ReadIndex and DecodeBoxAt work, and EncodePartial copies the encoded bytes of
// inner chunks outside the box.
func (b *Bound) indexed() bool { return b.shard != nil && len(b.tail) == 0 }

// ReadIndex reads the index of an encoded shard, so that several calls of
// DecodeBoxAt share it. It fails with errors.ErrUnsupported if b is not Indexed.
func (b *Bound) ReadIndex(ctx context.Context, src Source) (*Index, error) {
	if !b.indexed() {
		return nil, errors.ErrUnsupported
	}
	s := b.shard
	x := &Index{entries: make([]byte, 0, min(16*int64(s.n), src.Size()))}
	return x, s.readIndex(ctx, src, x)
}

// DecodeBoxAt is DecodeBox with an index that was read from src before.
func (b *Bound) DecodeBoxAt(ctx context.Context, src Source, x *Index, box Box, dst Dst) error {
	if !b.indexed() {
		return errors.ErrUnsupported
	}
	if err := b.checkBox(box, dst); err != nil {
		return err
	}
	if x.size != src.Size() || x.Len() != b.shard.n {
		return Corruptf("sharding_indexed", "the index belongs to another shard")
	}
	c := getCall()
	defer c.put()
	return b.shard.decodeParts(ctx, src, x, c.storedBox(b.perm, box), c.stored(b.perm, dst))
}

// wanted is an inner chunk to be read.
type wanted struct {
	off, n int64
	chunk  int
}

// maxRead bounds the bytes of one read for several inner chunks.
const maxRead = 8 << 20

// join sorts inner chunks by where they lie and cuts them into runs that are
// read at once, with gaps of at most maxGap bytes and no longer than maxRead; it
// calls read for each.
func join(list []wanted, maxGap int64, read func(off, n int64, run []wanted) error) error {
	slices.SortFunc(list, func(a, b wanted) int {
		switch {
		case a.off < b.off:
			return -1
		case a.off > b.off:
			return 1
		}
		return a.chunk - b.chunk
	})
	for len(list) > 0 {
		lo, hi := list[0].off, list[0].off+list[0].n
		k := 1
		for ; k < len(list); k++ {
			end := max(hi, list[k].off+list[k].n)
			if list[k].off > hi+maxGap || end-lo > maxRead {
				break
			}
			hi = end
		}
		if err := read(lo, hi-lo, list[:k]); err != nil {
			return err
		}
		list = list[k:]
	}
	return nil
}
