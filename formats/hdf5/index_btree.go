package hdf5

import (
	"context"
	"encoding/binary"

	"github.com/zarrdb/zarrdb/formats"
)

// tree1Index is a B-tree of version 1. A key is that of a chunk: its length, its mask, and
// where it begins in the dataset, in elements, with a 0 behind.
type tree1Index struct {
	g *grid
	t tree1
}

func newTree1Index(g *grid) *tree1Index {
	return &tree1Index{g, tree1{f: g.f, root: g.addr, kind: 1, key: 8 + 8*(len(g.chunk)+1), k: g.f.chunkK}}
}

func (x *tree1Index) find(ctx context.Context, at []int64) (chunk, error) {
	order := func(key []byte) int {
		for d, n := range at {
			if c := compare(binary.LittleEndian.Uint64(key[8+8*d:]), uint64(n)*uint64(x.g.chunk[d])); c != 0 {
				return c
			}
		}
		return 0
	}
	key, addr, err := x.t.find(ctx, order)
	if err != nil || key == nil || order(key) != 0 {
		return noChunk, err
	}
	return tree1Chunk(key, addr), nil
}

func tree1Chunk(key []byte, addr int64) chunk {
	return chunk{addr, int64(binary.LittleEndian.Uint32(key)), binary.LittleEndian.Uint32(key[4:])}
}

func (x *tree1Index) each(ctx context.Context, fn func([]int64, chunk) error) error {
	at := make([]int64, len(x.g.chunk))
	return x.t.each(ctx, func(key []byte, addr int64) error {
		for d, n := range x.g.chunk {
			off := binary.LittleEndian.Uint64(key[8+8*d:])
			if off%uint64(n) != 0 {
				return formats.Invalid("hdf5: the B-tree at %d has a chunk that begins at %d, which is between chunks of %d", x.g.addr, off, n)
			}
			at[d] = int64(off / uint64(n))
		}
		if !x.g.inside(at) {
			return nil // outside the shape
		}
		return fn(at, tree1Chunk(key, addr))
	})
}

// tree2Index is a B-tree of version 2, with the coordinates of chunks.
type tree2Index struct {
	g *grid
	t *tree2
}

func openTree2Index(ctx context.Context, g *grid) (*tree2Index, error) {
	t, err := g.f.tree2(ctx, g.addr)
	if err != nil {
		return nil, err
	}
	n := t.recordSize - g.f.addrSize - 8*len(g.chunk)
	if g.filtered && (n < 5 || n > 12) || !g.filtered && n != 0 {
		return nil, formats.Invalid("hdf5: the B-tree at %d has records of %d bytes", g.addr, t.recordSize)
	}
	return &tree2Index{g, t}, nil
}

func (x *tree2Index) coordinates(record []byte) []byte {
	return record[x.t.recordSize-8*len(x.g.chunk):]
}

func (x *tree2Index) chunk(record []byte) (chunk, error) {
	d := &dec{f: x.g.f, b: record, what: "a record of a B-tree", addr: x.g.addr}
	c := x.g.element(d, x.t.recordSize-8*len(x.g.chunk))
	return c, d.err
}

func (x *tree2Index) find(ctx context.Context, at []int64) (chunk, error) {
	r, err := x.t.find(ctx, func(record []byte) int {
		b := x.coordinates(record)
		for d, n := range at {
			if c := compare(binary.LittleEndian.Uint64(b[8*d:]), uint64(n)); c != 0 {
				return c
			}
		}
		return 0
	})
	if err != nil || r == nil {
		return noChunk, err
	}
	return x.chunk(r)
}

func (x *tree2Index) each(ctx context.Context, fn func([]int64, chunk) error) error {
	at := make([]int64, len(x.g.chunk))
	return x.t.each(ctx, func(record []byte) error {
		b := x.coordinates(record)
		for d := range at {
			at[d] = int64(min(binary.LittleEndian.Uint64(b[8*d:]), 1<<62))
		}
		if !x.g.inside(at) {
			return nil
		}
		c, err := x.chunk(record)
		if err != nil || c.addr == undefined {
			return err
		}
		return fn(at, c)
	})
}
