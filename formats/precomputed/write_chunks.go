package precomputed

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"sync"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/formats"
	"github.com/zarrdb/zarrdb/zarr"
)

// writeFiles writes each chunk as a file.
func (s *step) writeFiles(ctx context.Context, out *formats.Output) error {
	batch := make([][3]int64, 0, 256)
	flush := func() error {
		err := out.Each(ctx, len(batch), func(ctx context.Context, i int) error {
			b, err := s.chunkBytes(ctx, batch[i])
			if err != nil || b == nil {
				return err
			}
			return out.Set(ctx, s.dir()+s.fileName(append(batch[i][:], 0)), b)
		})
		batch = batch[:0]
		return err
	}
	for x := range s.counts[0] {
		for y := range s.counts[1] {
			for z := range s.counts[2] {
				if batch = append(batch, [3]int64{x, y, z}); len(batch) == cap(batch) {
					if err := flush(); err != nil {
						return err
					}
				}
			}
		}
	}
	return flush()
}

// chunkBytes returns the voxels of a chunk, x fastest, nil if all are zero.
func (s *step) chunkBytes(ctx context.Context, cell [3]int64) ([]byte, error) {
	idx := make([]zarr.Index, len(s.from.Meta().Shape))
	strides := make([]int, len(idx))
	step := s.size
	for d := range idx {
		idx[d], strides[d] = zarr.Slice(0, 1, 1), step
	}
	for d, axis := range s.axes {
		if axis < 0 {
			continue
		}
		lo, n := int64(0), s.channels
		if d < 3 {
			lo = cell[d] * s.chunk[d]
			n = min(s.chunk[d], int64(s.Size[d])-lo)
		}
		idx[axis] = zarr.Slice(lo, lo+n, 1)
		strides[axis] = step
		step *= int(n)
	}
	b := make([]byte, step)
	if err := s.from.ReadInto(ctx, zarr.Sel(idx...), codecs.Dst{Data: b, Strides: strides}); err != nil {
		return nil, err
	}
	for _, x := range b {
		if x != 0 {
			return b, nil
		}
	}
	return nil, nil
}

// shardChunk is a chunk of a shard under way.
type shardChunk struct {
	id   uint64
	cell [3]int64
	data []byte // encoded, nil if it is left out
}

// writeShards writes one shard after the other: the hash is the identity, so the chunks
// of one have numbers that follow each other.
func (s *step) writeShards(ctx context.Context, out *formats.Output) error {
	if s.counts[0] == 0 || s.counts[1] == 0 || s.counts[2] == 0 {
		return nil
	}
	inShard := uint(s.Sharding.Preshift + s.Sharding.MiniBits)
	for shard := range uint64(1) << uint(s.Sharding.ShardBits) {
		var chunks []shardChunk
		for id := shard << inShard; id < (shard+1)<<inShard; id++ {
			cell := unmorton(s.counts, id)
			if cell[0] < s.counts[0] && cell[1] < s.counts[1] && cell[2] < s.counts[2] {
				chunks = append(chunks, shardChunk{id: id, cell: cell})
			}
		}
		err := out.Each(ctx, len(chunks), func(ctx context.Context, i int) error {
			b, err := s.chunkBytes(ctx, chunks[i].cell)
			if b != nil && s.gzip {
				b, err = compress(b)
			}
			chunks[i].data = b
			return err
		})
		if err != nil {
			return err
		}
		file, err := s.Sharding.assemble(chunks)
		if err == nil && file != nil {
			err = out.Set(ctx, s.dir()+s.Sharding.file(shard), file)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// writers are for gzip; each has tables of a megabyte.
var writers = sync.Pool{New: func() any { return gzip.NewWriter(nil) }}

func compress(b []byte) ([]byte, error) {
	var out bytes.Buffer
	w := writers.Get().(*gzip.Writer)
	defer writers.Put(w)
	w.Reset(&out)
	if _, err := w.Write(b); err != nil {
		return nil, err
	}
	err := w.Close()
	return out.Bytes(), err
}

// assemble makes the file of a shard: its index, the chunks and the minishard indexes.
// It is nil if there are no chunks. Chunks come by ascending ID, so the chunks of a
// minishard follow each other.
func (s *sharding) assemble(chunks []shardChunk) ([]byte, error) {
	le := binary.LittleEndian
	size := s.indexSize()
	for _, c := range chunks {
		size += int64(len(c.data)) + 24
	}
	file := make([]byte, s.indexSize(), size)
	type row struct{ id, gap, size uint64 }
	minis := make([][]row, 1<<uint(s.MiniBits))
	lastID := make([]uint64, len(minis))
	found := false
	for _, c := range chunks {
		if c.data == nil {
			continue
		}
		found = true
		_, mini := s.place(c.id)
		gap := uint64(0)
		if len(minis[mini]) == 0 {
			gap = uint64(int64(len(file)) - s.indexSize())
		}
		minis[mini] = append(minis[mini], row{c.id - lastID[mini], gap, uint64(len(c.data))})
		lastID[mini] = c.id
		file = append(file, c.data...)
	}
	if !found {
		return nil, nil
	}
	for mini, rows := range minis {
		index := make([]byte, 24*len(rows))
		for i, r := range rows {
			le.PutUint64(index[8*i:], r.id)
			le.PutUint64(index[8*(len(rows)+i):], r.gap)
			le.PutUint64(index[8*(2*len(rows)+i):], r.size)
		}
		if len(index) > 0 && s.Index == "gzip" {
			var err error
			if index, err = compress(index); err != nil {
				return nil, err
			}
		}
		at := uint64(int64(len(file)) - s.indexSize())
		file = append(file, index...)
		le.PutUint64(file[16*mini:], at)
		le.PutUint64(file[16*mini+8:], at+uint64(len(index)))
	}
	return file, nil
}
