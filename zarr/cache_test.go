package zarr

import (
	"github.com/zarrdb/zarrdb/kv"
)

const rawCodecs = `[{"name":"bytes","configuration":{"endian":"little"}}]`

// fullCache forgets nothing.
type fullCache struct{ mapCache }

func (c *fullCache) Add(id kv.ID, codec [16]byte, chunk []byte) {
	c.mapCache.adds = 0
	c.mapCache.Add(id, codec, chunk)
}
