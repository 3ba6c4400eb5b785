package zarr

import (
	"context"

	"github.com/zarrdb/zarrdb/kv"
)

// readCached reads through the cache: a chunk that is in it is copied from
// there, one that is not goes into it unless only a small part is wanted.
func (t *task) readCached(ctx context.Context, cache ChunkCache, id kv.ID, v kv.Value) error {
	if t.form.inner != nil {
		return t.readShard(ctx, cache, id, v)
	}
	chunk, ok := cache.Get(id, t.form.name)
	if !ok {
		if t.partly() {
			return t.readValue(ctx, v)
		}
		var err error
		if chunk, err = t.loadChunk(ctx, cache, id, v); err != nil {
			return err
		}
	}
	t.putNear(chunk, t.origin(), t.form.strides)
	return nil
}

// loadChunk decodes a whole chunk and caches it.
func (t *task) loadChunk(ctx context.Context, cache ChunkCache, id kv.ID, v kv.Value) ([]byte, error) {
	form := t.form
	return load(ctx, cache, id, form.name, func() (chunk []byte, err error) {
		err = v.View(ctx, kv.All(), func(encoded []byte) error {
			chunk, err = form.bound.Decode(nil, encoded)
			return err
		})
		return chunk, err
	})
}

// load returns a cache entry or makes it.
func load(ctx context.Context, cache ChunkCache, id kv.ID, name [16]byte, decode func() ([]byte, error)) ([]byte, error) {
	if l, ok := cache.(ChunkLoader); ok {
		return l.Load(ctx, id, name, decode)
	}
	chunk, err := decode()
	if err == nil {
		cache.Add(id, name, chunk)
	}
	return chunk, err
}

// slabs cuts the work on shards into pieces along one axis, so that several
// goroutines can read one large shard.
type slabs struct {
	n     int64 // pieces per shard; 0 and 1 mean whole shards
	axis  int
	thick int // elements along axis
}

// split decides whether to cut shards. Each slab reads the index of the shard
// anew, so they are not made small, and only where few shards are read.
func (j *job) split() {
	f := j.st.form
	if j.a.opts.Runner == nil || !j.straight || f == nil || f.inner == nil || j.chunks >= 32 {
		return
	}
	for d, inner := range f.inner {
		if f.shape[d] == inner {
			continue
		}
		layer := max(f.bytes/f.shape[d]*inner, 1)
		thick := inner * (1 + (tune.slab-1)/layer)
		if thick < f.shape[d] {
			j.slab = slabs{n: int64((f.shape[d]-1)/thick + 1), axis: d, thick: thick}
		}
		return
	}
}

// cutSlab reduces the box to one slab; it returns false if nothing is left.
func (t *task) cutSlab(piece int64) bool {
	d, thick := t.j.slab.axis, t.j.slab.thick
	p := &t.parts[d]
	lo := max(p.from, int(piece)*thick)
	hi := min(p.from+p.span, (int(piece)+1)*thick)
	if lo >= hi {
		return false
	}
	p.k += int64(lo - p.from)
	p.from, p.span, p.n = lo, hi-lo, hi-lo
	t.box.Start[d], t.box.Count[d] = lo, hi-lo
	return true
}
