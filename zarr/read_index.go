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
	byID  map[kv.ID]*codecs.Index
	bytes int
}

// maxIndexes bounds the memory of an indexCache; it starts anew when it is full.
const maxIndexes = 8 << 20

func (c *indexCache) get(id kv.ID) *codecs.Index {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.byID[id]
}

func (c *indexCache) add(id kv.ID, x *codecs.Index) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if x.Memory() > maxIndexes/4 {
		return
	}
	if c.bytes += x.Memory(); c.bytes > maxIndexes || c.byID == nil {
		c.byID, c.bytes = make(map[kv.ID]*codecs.Index), x.Memory()
	}
	c.byID[id] = x
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
	x := indexes.get(id)
	if x == nil {
		var err error
		if x, err = t.form.bound.ReadIndex(ctx, &t.source); err != nil {
			return err
		}
		indexes.add(id, x)
	}
	return t.form.bound.DecodeBoxAt(ctx, &t.source, x, box, dst)
}
