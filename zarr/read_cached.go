package zarr

import (
	"context"

	"github.com/zarrdb/zarrdb/kv"
)

// readCached reads through the cache: a chunk that is in it is copied from there. A chunk that is
// not in it goes into it. In two cases the cache must find it worth keeping first: where a small
// part is wanted that can be decoded by itself, and where most of a chunk in a local file is
// wanted, which is decoded into the caller's memory faster.
func (t *task) readCached(ctx context.Context, cache ChunkCache, id kv.ID, v kv.Value) error {
	if t.form.inner != nil {
		t.shard.t, t.shard.cache, t.shard.id, t.shard.value = t, cache, id, v
		return t.readShard(ctx)
	}
	chunk, ok := cache.Get(id, t.form.name())
	if !ok {
		if t.quick {
			return errNotCached
		}
		if t.partly(v.Size()) && !t.worthWhole(cache, id) || t.mostly() && t.first(cache, id, v) || !t.kept(cache) && t.strips() {
			return t.readValue(ctx, v)
		}
		var err error
		if chunk, err = t.loadChunk(ctx, cache, id, v); err != nil {
			return err
		}
	}
	t.copyOut(chunk, t.origin(), t.form.strides)
	return nil
}

// mostly reports whether most of the chunk is wanted.
func (t *task) mostly() bool { return t.points == nil && t.boxBytes() > t.form.bytes/2 }

// first reports whether a chunk in a local file that is not in the cache was not wanted
// lately. A cache that does not know takes all.
func (t *task) first(cache ChunkCache, id kv.ID, v kv.Value) bool {
	c, knows := cache.(ChunkToucher)
	_, local := v.(kv.Placed)
	return knows && local && !c.Touch(id, t.form.name(), t.form.bytes)
}

// kept reports whether the cache keeps the chunk. A cache that does not know keeps all.
func (t *task) kept(cache ChunkCache) bool {
	c, knows := cache.(ChunkToucher)
	return !knows || c.Keeps(t.form.bytes)
}

// worthWhole reports whether to decode a whole chunk for a small part: if the
// chunk is read repeatedly, or if decoding the part takes about as long.
func (t *task) worthWhole(cache ChunkCache, id kv.ID) bool {
	c, ok := cache.(ChunkToucher)
	return ok && c.Keeps(t.form.bytes) && (t.inPieces() || c.Touch(id, t.form.name(), t.form.bytes))
}

// inPieces reports whether the box lies in many pieces all over the chunk, so
// that most blocks of the encoded bytes are needed.
func (t *task) inPieces() bool {
	pieces, extent := 1, t.j.st.size
	inner := true // the dimensions from d on are covered
	for d := len(t.box.Count) - 1; d >= 0; d-- {
		n := t.box.Count[d]
		if !inner {
			pieces *= n
		}
		inner = inner && n == t.form.shape[d]
		extent += (n - 1) * t.form.strides[d]
	}
	if t.points != nil {
		pieces = min(pieces, len(t.points))
	}
	return extent > t.form.bytes/2 && extent/pieces <= tune.block
}

// loadChunk decodes a whole chunk and caches it.
func (t *task) loadChunk(ctx context.Context, cache ChunkCache, id kv.ID, v kv.Value) ([]byte, error) {
	form := t.form
	return load(ctx, cache, id, form.name(), func() (chunk []byte, err error) {
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
