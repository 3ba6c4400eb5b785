package zarr

import (
	"context"

	"github.com/zarrdb/zarrdb/kv"
)

// readCached reads through the cache: a chunk that is in it is copied from
// there, one that is not goes into it unless only a small part is wanted.
func (t *task) readCached(ctx context.Context, cache ChunkCache, id kv.ID, v kv.Value) error {
	if t.form.inner != nil {
		t.shard.t, t.shard.cache, t.shard.id, t.shard.value = t, cache, id, v
		return t.readShard(ctx)
	}
	chunk, ok := cache.Get(id, t.form.name)
	if !ok {
		if t.partly(v.Size()) {
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
