package zarr

import (
	"context"
	"sync"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/kv"
)

// indexCache holds the decoded indexes of shards whose bytes never change, so
// that reading many small parts of one does not read its index each time.
type indexCache struct {
	mu    sync.Mutex
	known map[indexName]*codecs.Index
	bytes int
}

// indexName is the bytes of a shard and the form by which they are read: shards of two
// shapes may have the same bytes.
type indexName struct {
	id   kv.ID
	form [16]byte
}

// maxIndexes bounds the memory of an indexCache. A full cache is emptied.
const maxIndexes = 8 << 20

func (c *indexCache) get(name indexName) *codecs.Index {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.known[name]
}

func (c *indexCache) add(name indexName, x *codecs.Index) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if x.Memory() > maxIndexes/4 {
		return
	}
	if c.bytes += x.Memory(); c.bytes > maxIndexes || c.known == nil {
		c.known, c.bytes = make(map[indexName]*codecs.Index), x.Memory()
	}
	c.known[name] = x
}

// decodeBox decodes a box of the value in t.source.
func (t *task) decodeBox(ctx context.Context, box codecs.Box, dst codecs.Dst) error {
	id := kv.ID{}
	if t.form.indexed {
		id = t.source.value.ID()
	}
	if id == (kv.ID{}) {
		return t.form.bound.DecodeBox(ctx, &t.source, box, dst)
	}
	indexes := &t.j.st.indexes
	name := indexName{id, t.form.name()}
	x := indexes.get(name)
	if x == nil {
		var err error
		if x, err = t.form.bound.ReadIndex(ctx, &t.source); err != nil {
			return err
		}
		indexes.add(name, x)
	}
	return t.form.bound.DecodeBoxAt(ctx, &t.source, x, box, dst)
}
