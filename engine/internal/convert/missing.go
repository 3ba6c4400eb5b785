package convert

import (
	"context"
	"fmt"
	"iter"
	"sync/atomic"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/engine/internal/listing"
	"github.com/zarrdb/zarrdb/engine/internal/transfer"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/zarr"
)

// missing are the chunks of an array that are not stored and must be written.
type missing struct {
	counts []int64
	stored []uint64 // a bit for each chunk in C order, set if it is listed
	chunk  []byte   // the encoded contents of each
	// left is how many bytes may be written for chunks that are listed and not stored. Only
	// a [listing.View] lists such chunks.
	left atomic.Int64
}

// mostChunks bounds the chunks of an array of which missing ones are written.
const mostChunks = 1 << 27

// needsChunks reports whether metadata to of m does not define the contents of missing chunks.
func needsChunks(to, m *zarr.Meta) bool { return to.NullFill && m.Version == zarr.V3 }

// findMissing returns the chunks that must be written for metadata of v2 made of an
// array, nil if there are none.
func (c *Plan) findMissing(ctx context.Context, a *zarr.Array, to *zarr.Meta) (*missing, error) {
	if !needsChunks(to, a.Meta()) {
		return nil, nil
	}
	total := int64(1)
	miss := &missing{counts: a.Meta().ChunkCounts()}
	for _, n := range miss.counts {
		if n > 0 && total > mostChunks/n {
			return nil, fmt.Errorf("fill_value: %w: v2 needs null there, and %v chunks are too many to write those that are missing", zarr.ErrNoForm, miss.counts)
		}
		total *= n
	}
	miss.stored = make([]uint64, (total+63)/64)
	left := total
	for chunk, err := range storedChunks(ctx, c.view, a) {
		if err != nil {
			return nil, err
		}
		at := int64(0)
		for d, i := range chunk.coords {
			at = at*miss.counts[d] + i
		}
		if bit := uint64(1) << (at % 64); miss.stored[at/64]&bit == 0 {
			miss.stored[at/64] |= bit
			left--
		}
	}
	if _, unsure := c.view.(*listing.View); left == 0 && !unsure {
		return nil, nil
	}
	var err error
	if miss.chunk, err = fillChunk(ctx, a.Meta(), c.registry); err != nil {
		return nil, err
	}
	if size := int64(len(miss.chunk)); left > c.o.Written/max(size, 1) {
		return nil, fmt.Errorf("fill_value: %w: v2 needs null there, and %d missing chunks of %d bytes would have to be written, which is over the bound of %d bytes: export to v3, or select less", zarr.ErrNoForm, left, size, c.o.Written)
	}
	miss.left.Store(c.o.Written - left*int64(len(miss.chunk)))
	return miss, nil
}

// absent returns the value to write for a chunk that is listed and not stored, nil if
// missing chunks need none.
func (m *missing) absent() (kv.Value, error) {
	if m == nil {
		return nil, nil
	}
	if m.left.Add(-int64(len(m.chunk))) < 0 {
		return nil, fmt.Errorf("fill_value: %w: v2 needs null there, and missing chunks of %d bytes each would have to be written, which exceeds the bound on written bytes: export to v3, or select less", zarr.ErrNoForm, len(m.chunk))
	}
	return kv.Bytes(m.chunk), nil
}

// fillChunk returns an encoded chunk of fill values.
func fillChunk(ctx context.Context, m *zarr.Meta, reg *codecs.Registry) ([]byte, error) {
	one := m.Clone()
	for d, n := range m.Grid.Regular() {
		one.Shape[d] = int64(n)
	}
	docs, err := one.Print()
	if err != nil {
		return nil, err
	}
	store := kv.NewMem()
	for name, doc := range docs {
		if err := store.Set(ctx, name, doc); err != nil {
			return nil, err
		}
	}
	a, err := zarr.OpenArray(ctx, store, "", &zarr.OpenOptions{Registry: reg, WriteEmptyChunks: true})
	if err != nil {
		return nil, err
	}
	if err := a.WriteFill(ctx, zarr.Sel()); err != nil {
		return nil, err
	}
	return kv.Get(ctx, store, a.ChunkKey(make([]int64, len(one.Shape))))
}

// Missing yields the keys in the destination of the chunks that are not stored and must
// be, since readers would not agree on their contents. Each holds chunk, which is not to
// be changed. Chunks that are encoded anew are not among them.
func (s *Array) Missing() iter.Seq2[string, []byte] {
	return func(yield func(key string, chunk []byte) bool) {
		if s.missing == nil || s.recode {
			return
		}
		coords := make([]int64, len(s.missing.counts))
		for at := int64(0); ; at++ {
			if s.missing.stored[at/64]&(1<<(at%64)) == 0 && !yield(s.Key(coords), s.missing.chunk) {
				return
			}
			d := len(coords) - 1
			for ; d >= 0; d-- {
				if coords[d]++; coords[d] < s.missing.counts[d] {
					break
				}
				coords[d] = 0
			}
			if d < 0 {
				return
			}
		}
	}
}

// writeMissing writes the missing chunks to a store.
func (s *Array) writeMissing(ctx context.Context, out kv.Writer, workers *transfer.Pool, report func(int64)) error {
	keys := func(yield func(string, error) bool) {
		for key := range s.Missing() {
			if !yield(key, nil) {
				return
			}
		}
	}
	return transfer.Batches(keys, func(batch []string) error {
		return workers.Run(ctx, len(batch), func(ctx context.Context, i int) error {
			if err := out.Set(ctx, batch[i], s.missing.chunk); err != nil {
				return fmt.Errorf("%s: %w", batch[i], err)
			}
			report(int64(len(s.missing.chunk)))
			return nil
		})
	})
}
