package zarr

import (
	"context"
	"encoding/binary"
	"slices"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/kv"
)

// shardRead reads a box of a shard through the cache, whose entries are inner
// chunks.
//
//	┌────┬────┬────┐   the box (#) touches four inner chunks; widened to
//	│   #│##  │    │   whole ones it is decoded at once and then cached one
//	├────┼────┼────┤   by one
//	│   #│##  │    │
//	└────┴────┴────┘
type shardRead struct {
	t     *task
	cache ChunkCache
	id    kv.ID
	value kv.Value
	// lo and n are the inner chunks that the box touches, and wide the box
	// widened to them, of so many bytes and with these strides.
	lo, n   []int
	wide    codecs.Box
	bytes   int64
	strides []int
	// inner are the strides of an inner chunk.
	inner []int
	at    []int // see each
	count []int // of the intersection of the box with an inner chunk
	// blocks are the cached decoded inner chunks.
	blocks [][]byte
}

// readShard reads the box, or the wanted layers of it one by one, of the shard
// that t.shard is set to.
func (t *task) readShard(ctx context.Context) error {
	if d := t.sparseAxis(); d >= 0 && t.thin(d) {
		return t.eachLayer(d, func() error { return t.shard.read(ctx) })
	}
	return t.shard.read(ctx)
}

func (s *shardRead) read(ctx context.Context) error {
	t := s.t
	s.widen()
	if s.bytes > tune.cached && t.quick {
		return errNotCached
	}
	if s.bytes > tune.cached {
		return t.readValue(ctx, s.value)
	}
	defer func() {
		clear(s.blocks)
		s.blocks = s.blocks[:0]
	}()
	if s.collect() {
		s.put()
		return nil
	}
	if t.quick {
		return errNotCached
	}
	if s.whole() && s.first() {
		return t.readValue(ctx, s.value)
	}
	if len(s.blocks) == 1 && s.single() {
		block, err := s.load(ctx)
		if err != nil {
			return err
		}
		s.blocks[0] = block
		s.put()
		return nil
	}
	block, err := s.decode(ctx)
	if err != nil {
		return err
	}
	origin := 0
	for d, stride := range s.strides {
		origin += (t.box.Start[d] - s.wide.Start[d]) * stride
	}
	t.copyOut(block, origin, s.strides)
	s.keep(block)
	return nil
}

func (s *shardRead) widen() {
	t := s.t
	rank := len(t.form.inner)
	s.lo, s.n = resize(s.lo, rank), resize(s.n, rank)
	s.wide.Start, s.wide.Count = resize(s.wide.Start, rank), resize(s.wide.Count, rank)
	s.bytes = int64(t.j.st.size)
	for d, inner := range t.form.inner {
		s.lo[d] = t.box.Start[d] / inner
		s.n[d] = (t.box.Start[d]+t.box.Count[d]-1)/inner - s.lo[d] + 1
		s.wide.Start[d], s.wide.Count[d] = s.lo[d]*inner, s.n[d]*inner
		s.bytes *= int64(s.wide.Count[d])
	}
	s.strides = packed(resize(s.strides, rank), s.wide.Count, t.j.st.size)
	s.inner = packed(resize(s.inner, rank), t.form.inner, t.j.st.size)
}

// single reports whether the box touches one inner chunk only.
func (s *shardRead) single() bool {
	for _, n := range s.n {
		if n > 1 {
			return false
		}
	}
	return true
}

// whole reports whether all of the inner chunks is wanted.
func (s *shardRead) whole() bool {
	return s.t.points == nil && slices.Equal(s.t.box.Count, s.wide.Count)
}

// first notes that the inner chunks are wanted, and reports whether some were not
// wanted lately; see task.first.
func (s *shardRead) first() (first bool) {
	c, knows := s.cache.(ChunkToucher)
	_, local := s.value.(kv.Placed)
	if !knows || !local {
		return false
	}
	bytes := s.t.j.st.size
	for _, n := range s.t.form.inner {
		bytes *= n
	}
	s.each(func(name [16]byte) bool {
		if !c.Touch(s.id, name, bytes) {
			first = true
		}
		return true
	})
	return first
}

// collect looks the inner chunks up in the cache, until one is not there.
func (s *shardRead) collect() (all bool) {
	all = true
	s.each(func(name [16]byte) bool {
		var block []byte
		block, all = s.cache.Get(s.id, name)
		s.blocks = append(s.blocks, block)
		return all
	})
	return all
}

// load returns the only inner chunk through the cache.
func (s *shardRead) load(ctx context.Context) (block []byte, err error) {
	s.each(func(name [16]byte) bool {
		block, err = load(ctx, s.cache, s.id, name, func() ([]byte, error) { return s.decode(ctx) })
		return false
	})
	return block, err
}

// put copies the box together from the inner chunks.
func (s *shardRead) put() {
	t := s.t
	to := t.user
	if !t.direct {
		to = t.bufferBox()
	}
	count, i := s.count[:0], 0
	s.each(func([16]byte) bool {
		src := codecs.Src{Data: s.blocks[i], Strides: s.inner}
		dst := to
		count = count[:0]
		for d, inner := range t.form.inner {
			start := s.at[d] * inner
			lo := max(start, t.box.Start[d])
			count = append(count, min(start+inner, t.box.Start[d]+t.box.Count[d])-lo)
			src.Offset += (lo - start) * src.Strides[d]
			dst.Offset += (lo - t.box.Start[d]) * dst.Strides[d]
		}
		codecs.CopyStrided(dst, src, count, t.j.st.size)
		i++
		return true
	})
	s.count = count
	if !t.direct {
		t.copyOut(to.Data, 0, to.Strides)
	}
}

// each calls fn with the cache name of every inner chunk that the box touches,
// in C order, with s.at set to its coordinates, until fn returns false.
func (s *shardRead) each(fn func(name [16]byte) bool) {
	form := s.t.form
	s.at = append(s.at[:0], s.lo...)
	for {
		index := uint64(0)
		for d, inner := range form.inner {
			index = index*uint64(form.shape[d]/inner) + uint64(s.at[d])
		}
		name := form.name()
		low := name[8:]
		binary.LittleEndian.PutUint64(low, binary.LittleEndian.Uint64(low)+1+index)
		if !fn(name) {
			return
		}
		d := len(s.at) - 1
		for ; d >= 0; d-- {
			if s.at[d]++; s.at[d] < s.lo[d]+s.n[d] {
				break
			}
			s.at[d] = s.lo[d]
		}
		if d < 0 {
			return
		}
	}
}

// decode returns the widened box.
func (s *shardRead) decode(ctx context.Context) ([]byte, error) {
	s.t.source.value = s.value
	block := make([]byte, s.bytes)
	return block, s.t.decodeBox(ctx, s.wide, codecs.Dst{Data: block, Strides: s.strides})
}

// keep cuts a widened box into inner chunks and caches them.
func (s *shardRead) keep(block []byte) {
	form, size := s.t.form, s.t.j.st.size
	bytes := size
	for _, n := range form.inner {
		bytes *= n
	}
	s.each(func(name [16]byte) bool {
		src := codecs.Src{Data: block, Strides: s.strides}
		for d, inner := range form.inner {
			src.Offset += (s.at[d]*inner - s.wide.Start[d]) * s.strides[d]
		}
		own := codecs.Dst{Data: make([]byte, bytes), Strides: s.inner}
		codecs.CopyStrided(own, src, form.inner, size)
		s.cache.Add(s.id, name, own.Data)
		return true
	})
}
