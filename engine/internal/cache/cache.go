package cache

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/dgraph-io/ristretto/v2"

	"github.com/zarrdb/zarrdb/internal/budget"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/zarr"
)

// chunkKey names a decoded chunk: the identity of its bytes, then their
// decoding. Both are immutable, so nothing is ever invalidated and every
// snapshot, branch and session shares the cache.
type chunkKey [len(kv.ID{}) + 16]byte

var keys = sync.Pool{New: func() any { return new(chunkKey) }}

func (c *Cache) keyOf(id kv.ID, codec [16]byte) *chunkKey {
	k := keys.Get().(*chunkKey)
	subtle.XORBytes(k[copy(k[:], id[:]):], codec[:], c.salt[:])
	return k
}

// hashKey returns two independent 64-bit words of cryptographic hashes: the
// first finds an entry, the second verifies it.
func hashKey(k []byte) (uint64, uint64) {
	le := binary.LittleEndian
	id, codec := k[:len(kv.ID{})], k[len(kv.ID{}):]
	return le.Uint64(id) ^ le.Uint64(codec), le.Uint64(id[8:]) ^ le.Uint64(codec[8:])
}

// Cache keeps the decoded chunks of a database. Correctness never depends on a hit: ristretto
// may drop or delay any entry. A nil cache is empty.
type Cache struct {
	*pool
	release func()
	// salt keeps the chunks of databases in one pool apart: identities of virtual chunks are
	// made from URLs, and not every database may read every URL.
	salt [16]byte

	hits, misses atomic.Int64
	bytes        atomic.Int64 // of its chunks in the pool

	// use is held, shared, in every call of c: beside ristretto's own Close a call
	// may wait for ever or panic.
	use    sync.RWMutex
	closed bool

	mu      sync.Mutex
	flights map[chunkKey]*flight
}

// pool is memory for chunks, of one database or of several.
type pool struct {
	c      *ristretto.Cache[[]byte, *entry]
	budget atomic.Int64
	queued atomic.Int64 // bytes handed over since the last wait
	wanted *touches
}

// entry is a decoded chunk in a pool.
type entry struct {
	chunk []byte
	key   chunkKey
	of    *Cache
}

// shared is the pool of all databases that set no size.
var shared = budget.Shared[*pool]{
	Part: budget.Chunks, New: newPool, Close: (*pool).close,
	Used:   func(p *pool) int64 { return max(p.c.MaxCost()-p.c.RemainingCost(), 0) },
	Resize: (*pool).resize,
}

var (
	_ zarr.ChunkLoader  = (*Cache)(nil)
	_ zarr.ChunkToucher = (*Cache)(nil)
)

// New makes a cache of decoded chunks of at most so many bytes. 0 bytes make one in the memory
// that all such caches of the process share; see package budget. It is nil if bytes is negative.
func New(bytes int64) *Cache {
	c := &Cache{}
	switch {
	case bytes < 0:
		return nil
	case bytes > 0:
		c.pool = newPool(bytes)
		c.release = sync.OnceFunc(c.pool.close)
	default:
		c.pool, c.release = shared.Get()
		rand.Read(c.salt[:])
	}
	return c
}

func newPool(bytes int64) *pool {
	c, err := ristretto.NewCache(&ristretto.Config[[]byte, *entry]{
		MaxCost: bytes,
		// Ten counters for each chunk that has room, if chunks are 64 KiB. A large cache has
		// fewer counters, because counters take memory even while the cache is empty.
		NumCounters:        max(min(bytes, 64<<30)>>16, 1<<10) * 10,
		BufferItems:        64,
		IgnoreInternalCost: true, // chunks are large, its own 56 bytes are not
		KeyToHash:          hashKey,
		OnExit: func(e *entry) {
			if e != nil {
				e.of.bytes.Add(-int64(cap(e.chunk)))
			}
		},
	})
	if err != nil {
		panic(fmt.Sprintf("engine: bug: chunk cache: %v", err)) // only options are errors
	}
	p := &pool{c: c, wanted: newTouches(bytes)}
	p.budget.Store(bytes)
	return p
}

func (p *pool) close() { p.c.Close() }

// resize changes the size, and drops chunks until the rest has room.
func (p *pool) resize(bytes int64) {
	p.budget.Store(bytes)
	p.c.UpdateMaxCost(bytes)
	p.c.Wait()
	over := -p.c.RemainingCost()
	p.drop(func(e *entry) bool {
		drop := over > 0
		over -= int64(cap(e.chunk))
		return drop
	})
}

// drop removes the chunks for which the function returns true.
func (p *pool) drop(which func(e *entry) bool) {
	p.c.Wait() // for chunks in its queue
	var dropped []chunkKey
	p.c.IterValues(func(e *entry) bool {
		if which(e) {
			dropped = append(dropped, e.key)
		}
		return false
	})
	for i := range dropped {
		p.c.Del(dropped[i][:])
	}
	p.c.Wait()
}

// enter begins the use of c.c, which leave ends; false if there is no cache, or not
// any more. Arrays are read beside a Close of their database.
func (c *Cache) enter() bool {
	if c == nil {
		return false
	}
	c.use.RLock()
	if c.closed {
		c.use.RUnlock()
		return false
	}
	return true
}

func (c *Cache) leave() { c.use.RUnlock() }

// Get returns a decoded chunk, which must not be changed.
func (c *Cache) Get(id kv.ID, codec [16]byte) ([]byte, bool) {
	if !c.enter() {
		return nil, false
	}
	defer c.leave()
	k := c.keyOf(id, codec)
	defer keys.Put(k)
	e, ok := c.c.Get(k[:])
	if !ok {
		c.misses.Add(1)
		return nil, false
	}
	c.hits.Add(1)
	return e.chunk, true
}

// Stats describes the cache of decoded chunks of a database.
type Stats struct {
	// Hits and Misses count look-ups since the database was opened.
	Hits   int64 `json:"hits"`
	Misses int64 `json:"misses"`
	// Bytes is the size of the chunks of the database in the cache, Limit the bound of the
	// cache, which other databases of the process may share.
	Bytes int64 `json:"bytes"`
	Limit int64 `json:"limit_bytes"`
}

// Stats returns the counts and the size; zero of a nil cache.
func (c *Cache) Stats() Stats {
	if !c.enter() {
		return Stats{}
	}
	defer c.leave()
	return Stats{Hits: c.hits.Load(), Misses: c.misses.Load(), Bytes: max(c.bytes.Load(), 0), Limit: c.budget.Load()}
}

// Wait returns when all chunks added before are kept or dropped. It is for tests.
func (c *Cache) Wait() { c.c.Wait() }

// Add offers a decoded chunk, which must not be changed afterwards. The cache
// keeps it or not.
func (c *Cache) Add(id kv.ID, codec [16]byte, chunk []byte) {
	if c == nil || !c.Keeps(cap(chunk)) || !c.enter() {
		return
	}
	defer c.leave()
	cost := int64(cap(chunk))
	k := c.keyOf(id, codec)
	c.bytes.Add(cost)
	if !c.c.Set(k[:], &entry{chunk, *k, c}, cost) { // keeps the hash of the key, not the key
		c.bytes.Add(-cost)
	}
	keys.Put(k)
	// Chunks in its queue are outside its budget. Draining the queue after
	// every sixteenth of the budget keeps them below that.
	if c.queued.Add(cost) > c.budget.Load()/16 {
		c.queued.Store(0)
		c.c.Wait()
	}
}

// Keeps implements [zarr.ChunkToucher].
func (c *Cache) Keeps(bytes int) bool { return int64(bytes) <= c.budget.Load()/4 }

// Touch implements [zarr.ChunkToucher].
func (c *Cache) Touch(id kv.ID, codec [16]byte, bytes int) bool {
	k := c.keyOf(id, codec)
	defer keys.Put(k)
	hash, _ := hashKey(k[:])
	return c.wanted.again(hash, bytes)
}

// ForArrays is the cache as arrays take it: nil, not a nil pointer, if it is off.
func (c *Cache) ForArrays() zarr.ChunkCache {
	if c == nil {
		return nil
	}
	return c
}

// Load implements [zarr.ChunkLoader]: of several readers that miss the same
// chunk at the same time, one decodes it.
func (c *Cache) Load(ctx context.Context, id kv.ID, codec [16]byte, decode func() ([]byte, error)) ([]byte, error) {
	pooled := c.keyOf(id, codec)
	k := *pooled
	keys.Put(pooled)
	if c.enter() {
		e, ok := c.c.Get(k[:]) // another reader may have added the chunk since the miss was counted
		c.leave()
		if ok {
			return e.chunk, nil
		}
	}
	c.mu.Lock()
	if f := c.flights[k]; f != nil {
		c.mu.Unlock()
		select {
		case <-f.done:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if f.err == nil {
			return f.chunk, nil
		}
		return decode() // the other reader's trouble, such as its context, may not be ours
	}
	f := &flight{done: make(chan struct{}), err: errAbandoned}
	if c.flights == nil {
		c.flights = map[chunkKey]*flight{}
	}
	c.flights[k] = f
	c.mu.Unlock()
	defer func() { // also if decode panics
		c.mu.Lock()
		delete(c.flights, k)
		c.mu.Unlock()
		close(f.done)
	}()
	f.chunk, f.err = decode()
	if f.err == nil {
		c.Add(id, codec, f.chunk)
	}
	return f.chunk, f.err
}

// flight is a chunk being decoded.
type flight struct {
	done  chan struct{}
	chunk []byte
	err   error
}

var errAbandoned = errors.New("engine: decoding was abandoned")

// Close empties the cache for good, when calls under way have ended. A second one
// does nothing.
func (c *Cache) Close() {
	if c == nil {
		return
	}
	c.use.Lock()
	defer c.use.Unlock()
	if c.closed {
		return
	}
	c.closed = true
	if c.salt != [16]byte{} { // other caches share the pool
		c.drop(func(e *entry) bool { return e.of == c })
	}
	c.release()
}
