package index

import (
	"github.com/cockroachdb/pebble/v2"

	"github.com/zarrdb/zarrdb/internal/budget"
)

// maxBlocks bounds the cache of blocks that indexes share. Memtables count against it:
// Pebble shrinks the cache of blocks by their size.
const maxBlocks = 64 << 20

var blocks = budget.Shared[*pebble.Cache]{
	Part: budget.Index, New: func(bytes int64) *pebble.Cache { return pebble.NewCache(min(bytes, maxBlocks)) },
	Used: (*pebble.Cache).Size, Close: (*pebble.Cache).Unref,
}

// useCache gives Pebble a cache of blocks, of bytes if that is not 0, until x.free is called.
func (x *Index) useCache(bytes int64) {
	if bytes == 0 {
		x.opts.Cache, x.free = blocks.Get()
		return
	}
	x.opts.Cache = pebble.NewCache(bytes)
	x.free = x.opts.Cache.Unref
}

// countMemtables adds the memtables to the use of memory, until x.free is called.
func (x *Index) countMemtables() {
	free := x.free
	stop := budget.Count(budget.Index, func() int64 {
		if x.enter() != nil {
			return 0
		}
		defer x.leave()
		m := x.db.Metrics().MemTable
		return int64(m.Size + m.ZombieSize)
	})
	x.free = func() {
		stop()
		free()
	}
}
