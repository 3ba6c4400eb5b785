package zarr

import (
	"context"
	"encoding/binary"

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
	// lo and n are the inner chunks that the box touches, and wide the box
	// widened to them.
	lo, n []int
	wide  codecs.Box
	bytes int64 // of wide
	inner codecs.Dst
}

func (t *task) readShard(ctx context.Context, cache ChunkCache, id kv.ID, v kv.Value) error {
	if d := t.sparseAxis(); d >= 0 && t.thin(d) {
		return t.eachLayer(d, func() error { return t.readShard(ctx, cache, id, v) })
	}
	s := shardRead{t: t, cache: cache, id: id}
	s.widen()
	if s.bytes > tune.cached {
		return t.readValue(ctx, v)
	}
	if hit, err := s.fromCache(ctx, v); hit || err != nil {
		return err
	}
	block, err := s.decode(ctx, v)
	if err != nil {
		return err
	}
	strides := packed(make([]int, len(s.n)), s.wide.Count, t.j.st.size)
	origin := 0
	for d, stride := range strides {
		origin += (t.box.Start[d] - s.wide.Start[d]) * stride
	}
	t.putNear(block, origin, strides)
	s.keep(block, strides)
	return nil
}

func (s *shardRead) widen() {
	t := s.t
	rank := len(t.form.inner)
	ints := make([]int, 5*rank)
	cut := func() []int {
		c := ints[:rank:rank]
		ints = ints[rank:]
		return c
	}
	s.lo, s.n = cut(), cut()
	s.wide = codecs.Box{Start: cut(), Count: cut()}
	s.bytes = int64(t.j.st.size)
	for d, inner := range t.form.inner {
		s.lo[d] = t.box.Start[d] / inner
		s.n[d] = (t.box.Start[d]+t.box.Count[d]-1)/inner - s.lo[d] + 1
		s.wide.Start[d], s.wide.Count[d] = s.lo[d]*inner, s.n[d]*inner
		s.bytes *= int64(s.wide.Count[d])
	}
	s.inner.Strides = packed(cut(), t.form.inner, t.j.st.size)
}

// fromCache puts the box if every inner chunk that it touches is cached, and
// also if it touches only one, which then is loaded.
func (s *shardRead) fromCache(ctx context.Context, v kv.Value) (bool, error) {
	t := s.t
	single := true
	for _, n := range s.n {
		single = single && n == 1
	}
	// Blocks are collected first: far is written once.
	var one [1][]byte
	blocks := one[:0]
	var err error
	s.each(func(_ []int, name [16]byte) bool {
		block, ok := s.cache.Get(s.id, name)
		if !ok && single {
			block, err = load(ctx, s.cache, s.id, name, func() ([]byte, error) { return s.decode(ctx, v) })
			ok = err == nil
		}
		blocks = append(blocks, block)
		return ok
	})
	total := 1
	for _, n := range s.n {
		total *= n
	}
	if err != nil || len(blocks) < total || blocks[total-1] == nil {
		return false, err
	}
	to := t.far
	if !t.direct {
		to = t.nearBox()
	}
	i := 0
	count := make([]int, len(s.n))
	s.each(func(at []int, _ [16]byte) bool {
		src := codecs.Src{Data: blocks[i], Strides: s.inner.Strides}
		dst := to
		for d, inner := range t.form.inner {
			start := at[d] * inner
			lo := max(start, t.box.Start[d])
			count[d] = min(start+inner, t.box.Start[d]+t.box.Count[d]) - lo
			src.Offset += (lo - start) * src.Strides[d]
			dst.Offset += (lo - t.box.Start[d]) * dst.Strides[d]
		}
		codecs.CopyStrided(dst, src, count, t.j.st.size)
		i++
		return true
	})
	if !t.direct {
		t.putNear(to.Data, 0, to.Strides)
	}
	return true, nil
}

// each calls fn with the coordinates and the cache name of every inner chunk
// that the box touches, in C order, until it returns false.
func (s *shardRead) each(fn func(at []int, name [16]byte) bool) {
	form := s.t.form
	at := make([]int, len(s.n))
	copy(at, s.lo)
	for {
		index := uint64(0)
		for d, inner := range form.inner {
			index = index*uint64(form.shape[d]/inner) + uint64(at[d])
		}
		name := form.name
		low := name[8:]
		binary.LittleEndian.PutUint64(low, binary.LittleEndian.Uint64(low)+1+index)
		if !fn(at, name) {
			return
		}
		d := len(at) - 1
		for ; d >= 0; d-- {
			if at[d]++; at[d] < s.lo[d]+s.n[d] {
				break
			}
			at[d] = s.lo[d]
		}
		if d < 0 {
			return
		}
	}
}

// decode returns the widened box.
func (s *shardRead) decode(ctx context.Context, v kv.Value) ([]byte, error) {
	return s.t.form.bound.AppendBox(ctx, nil, &valueSource{v}, s.wide)
}

// keep cuts a widened box into inner chunks and caches them.
func (s *shardRead) keep(block []byte, strides []int) {
	form, size := s.t.form, s.t.j.st.size
	bytes := size
	for _, n := range form.inner {
		bytes *= n
	}
	s.each(func(at []int, name [16]byte) bool {
		src := codecs.Src{Data: block, Strides: strides}
		for d, inner := range form.inner {
			src.Offset += (at[d]*inner - s.wide.Start[d]) * strides[d]
		}
		own := codecs.Dst{Data: make([]byte, bytes), Strides: s.inner.Strides}
		codecs.CopyStrided(own, src, form.inner, size)
		s.cache.Add(s.id, name, own.Data)
		return true
	})
}
