package engine

import (
	"github.com/zarrdb/zarrdb/kv/index"
	"github.com/zarrdb/zarrdb/kv/pack"
)

// MaxValueBytes bounds a value that a database stores.
const MaxValueBytes = pack.MaxPayloadBytes

// DiskFree returns the free bytes of the disk of a directory, as this user may use them.
func DiskFree(dir string) (uint64, error) { return index.DiskFree(dir) }
