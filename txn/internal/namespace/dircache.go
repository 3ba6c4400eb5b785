package namespace

import (
	"encoding/binary"
	"sync"

	"github.com/zarrdb/zarrdb/kv/digest"
)

// dirCache keeps parsed directories by the name of their root page, in two
// generations: when the young one is full it becomes the old one, and the old one
// is dropped. A hit in the old one moves the directory to the young one.
type dirCache struct{ shards [16]dirShard }

type dirShard struct {
	mu         sync.RWMutex
	young, old map[digest.Sum]*dirInfo
	bytes, max int64
}

// dirCacheBytes is the most for each generation; a parsed array directory takes about
// 600 bytes.
const dirCacheBytes = 8 << 20

func newDirCache(max int64) *dirCache {
	c := &dirCache{}
	for i := range c.shards {
		c.shards[i] = dirShard{young: map[digest.Sum]*dirInfo{}, max: max / int64(len(c.shards))}
	}
	return c
}

func (c *dirCache) shard(name digest.Sum) *dirShard {
	return &c.shards[binary.LittleEndian.Uint16(name[:])%uint16(len(c.shards))]
}

func (c *dirCache) get(name digest.Sum) *dirInfo {
	sh := c.shard(name)
	sh.mu.RLock()
	info, old := sh.young[name], sh.old[name]
	sh.mu.RUnlock()
	if info == nil && old != nil {
		c.put(name, old)
		return old
	}
	return info
}

func (c *dirCache) put(name digest.Sum, info *dirInfo) {
	sh := c.shard(name)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if _, ok := sh.young[name]; ok {
		return
	}
	sh.young[name] = info
	sh.bytes += info.cost()
	if sh.bytes > sh.max {
		sh.old, sh.young, sh.bytes = sh.young, map[digest.Sum]*dirInfo{}, 0
	}
}

// cost estimates the memory of a parsed directory.
func (d *dirInfo) cost() int64 {
	n := int64(256)
	for i := range d.forms {
		n += 96 + int64(len(d.forms[i].Prefix))
	}
	for i := range d.nodes {
		n += 64 + int64(len(d.nodes[i].name)) + 48*int64(len(d.nodes[i].forms))
	}
	for i := range d.subs {
		n += 80 + int64(len(d.subs[i].name))
	}
	return n
}
