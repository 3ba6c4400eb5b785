package zarr

import (
	"context"
	"errors"
	"hash/maphash"
	"math"
	"sync"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/codecs/builtin"
	"github.com/zarrdb/zarrdb/internal/ctxlock"
	"github.com/zarrdb/zarrdb/kv"
)

// Runner runs independent pieces of one call, some of them at the same time.
type Runner interface {
	// Run calls fn for 0 … n-1, each at most once and in any order, and
	// returns when no call is running any more: nil if all returned nil, else
	// the error of a call that failed. Other calls may then be left out. The
	// context that fn gets is ctx or one made from it.
	Run(ctx context.Context, n int, fn func(ctx context.Context, i int) error) error
}

// ChunkCache keeps decoded chunks. An entry is named by the identity of the
// encoded bytes and by their decoding (codecs, data type, shape and fill value,
// and, inside a shard, the inner chunk), so it never becomes stale. A cache may
// forget anything at any time. Safe for concurrent use.
type ChunkCache interface {
	// Get returns a decoded chunk. It is not changed by anyone, and stays
	// valid after the cache has dropped it.
	Get(id kv.ID, codec [16]byte) (chunk []byte, ok bool)
	// Add hands a decoded chunk to the cache, which may keep the slice: it is
	// not changed any more.
	Add(id kv.ID, codec [16]byte, chunk []byte)
}

// ChunkLoader is an optional interface of a [ChunkCache] that decodes a chunk
// once for several readers that want it at the same time.
type ChunkLoader interface {
	// Load returns the cached chunk or calls decode, once for all callers that
	// wait for the same entry, and caches the result. decode has ended when the
	// Load that it was passed to returns.
	Load(ctx context.Context, id kv.ID, codec [16]byte, decode func() ([]byte, error)) ([]byte, error)
}

// ChunkToucher is an optional interface of a [ChunkCache] that knows which
// chunks reads come back to. Without it, reads of a small part of a chunk
// that can be decoded in parts never put it into the cache, and reads of most of it
// always do. With it, both do when they come back. Results of reads do
// not depend on it.
type ChunkToucher interface {
	// Keeps reports whether the cache keeps decoded chunks of so many bytes.
	Keeps(bytes int) bool
	// Touch notes that a chunk of so many decoded bytes, which is not
	// in the cache, is wanted, or a part of it. It reports whether the chunk is worth
	// keeping, because the same was wanted not long ago.
	Touch(id kv.ID, codec [16]byte, bytes int) bool
}

// OpenOptions change how nodes are opened, created, read and written. nil and
// the zero value work. The options are copied and may be shared.
type OpenOptions struct {
	// Version, if not 0, is the only format that is looked for or created.
	// Default: any is opened, V3 is created.
	Version Version
	// Consolidated makes groups list their descendants from their consolidated
	// metadata, if they have it, without other reads.
	Consolidated bool
	// Overwrite lets Create and CreateGroup replace a node and all below it.
	Overwrite bool
	// Registry parses codecs. Default: the built-in ones.
	Registry *codecs.Registry
	// Runner reads and writes the chunks of one call. Default: one after
	// another in the calling goroutine.
	Runner Runner
	// Cache keeps decoded chunks of values that have an identity. Default: none.
	Cache ChunkCache
	// Documents keeps parsed Zarr v3 documents, for nodes that are opened again and for
	// nodes with equal documents. Default: each document is parsed where it is read.
	Documents *Documents
	// Above returns a view of a directory above the root of the view, in which groups of OME-Zarr
	// may describe an array of the view, and the path of that root in it. It is called for each
	// array that may belong to such a group. Default: nothing lies above.
	Above func(ctx context.Context) (view kv.Reader, root string, err error)
	// Locks makes several Array values of one store exclude each other where
	// they change parts of one chunk or the metadata, and lets writes through one
	// see a shape that another has stored. Default: each Array has its own.
	Locks *ChunkLocks
	// WriteEmptyChunks stores chunks that hold nothing but the fill value.
	// Default: they are deleted.
	WriteEmptyChunks bool
	// MaxChunkBytes is the largest decoded chunk, of shards the largest decoded
	// shard, that is read or written. Default: 2 GiB, on 32-bit machines 512 MiB.
	// Views that read into memory refuse encoded chunks over [kv.MaxHeld].
	MaxChunkBytes int64
	// MaxResultBytes is the largest result that is allocated for a caller, by
	// Read, ReadVar and the like. Default: 16 GiB, on 32-bit machines 1 GiB.
	MaxResultBytes int64
}

// ErrTooLarge means that a chunk or a result is larger than the options or
// the machine allow.
var ErrTooLarge = errors.New("zarr: too large")

var defaultRegistry = sync.OnceValue(builtin.Registry)

func (o *OpenOptions) withDefaults() OpenOptions {
	var c OpenOptions
	if o != nil {
		c = *o
	}
	if c.Registry == nil {
		c.Registry = defaultRegistry()
	}
	big := math.MaxInt > math.MaxInt32
	if c.MaxChunkBytes <= 0 {
		c.MaxChunkBytes = 512 << 20
		if big {
			c.MaxChunkBytes = 2 << 30
		}
	}
	if c.MaxResultBytes <= 0 {
		c.MaxResultBytes = 1 << 30
		if big {
			c.MaxResultBytes = 16 << 30
		}
	}
	c.MaxChunkBytes = min(c.MaxChunkBytes, math.MaxInt)
	c.MaxResultBytes = min(c.MaxResultBytes, math.MaxInt)
	return c
}

// lockStripes is the number of locks that all chunks share. Writers hold one at
// a time.
const lockStripes = 64

// ChunkLocks serialises writers of one chunk inside one process: changing a
// part of a chunk reads it, changes it and writes it whole. The zero value is
// not ready; use [NewChunkLocks]. Safe for concurrent use.
type ChunkLocks struct {
	seed    maphash.Seed
	stripes [lockStripes]ctxlock.Lock
	shapeCounts
}

// NewChunkLocks returns locks for the chunks of one store.
func NewChunkLocks() *ChunkLocks { return &ChunkLocks{seed: maphash.MakeSeed()} }

// of returns the lock of the chunk with that key.
func (l *ChunkLocks) of(key string) *ctxlock.Lock {
	return &l.stripes[maphash.String(l.seed, key)%lockStripes]
}

// Lock locks the chunk with that key, for writes that bypass arrays, and returns
// the function that unlocks it. Unlock before the next call. If ctx ends first, it
// returns the error of ctx.
func (l *ChunkLocks) Lock(ctx context.Context, key string) (unlock func(), err error) {
	m := l.of(key)
	if err := m.Lock(ctx); err != nil {
		return nil, err
	}
	return m.Unlock, nil
}

// tune holds the thresholds between algorithms, from benchmarks. Only tests
// change them, to cover every algorithm with small arrays.
var tune = struct {
	run    int   // bytes in a row that a layer has which is decoded by itself: see sparseAxis
	block  int   // bytes that the pieces of a box may be apart for each block of the chunk to be decoded: see inPieces
	point  int   // bytes between points that are copied rather than decoding each point by itself
	slab   int   // bytes of a piece of a shard that is work of its own
	large  int   // bytes that are too many for one chunk in memory: see strips
	cached int64 // bytes of one shard that are read through the cache at once; more streams past it
	few    int64 // chunks that are asked for one by one rather than listed
}{run: 256, block: 32 << 10, point: 4096, slab: 4 << 20, large: 48 << 20, cached: 32 << 20, few: 4096}
