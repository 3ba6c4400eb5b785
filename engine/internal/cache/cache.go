package cache

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/dgraph-io/ristretto/v2"

	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/zarr"
)

// chunkKey names a decoded chunk: the identity of its bytes, then their
// decoding. Both are immutable, so nothing is ever invalidated and every
// snapshot, branch and session shares the cache.
type chunkKey [len(kv.ID{}) + 16]byte

var keys = sync.Pool{New: func() any { return new(chunkKey) }}

func keyOf(id kv.ID, codec [16]byte) *chunkKey {
	k := keys.Get().(*chunkKey)
	copy(k[copy(k[:], id[:]):], codec[:])
	return k
}

// hash gives two independent 64-bit words: the first finds an entry, the second
// verifies it. All of it is bits of cryptographic hashes.
func hashKey(k []byte) (uint64, uint64) {
	le := binary.LittleEndian
	id, codec := k[:len(kv.ID{})], k[len(kv.ID{}):]
	return le.Uint64(id) ^ le.Uint64(codec), le.Uint64(id[8:]) ^ le.Uint64(codec[8:])
}

// Cache keeps decoded chunks. Correctness never depends on a hit: ristretto
// may drop or delay any entry. A nil cache is empty.
type Cache struct {
	c      *ristretto.Cache[[]byte, []byte]
	budget int64
	queued atomic.Int64 // bytes handed over since the last wait
	wanted *touches

	hits, misses atomic.Int64

	// use is held, shared, in every call of c: beside ristretto's own Close a call
	// may wait for ever or panic.
	use    sync.RWMutex
	closed bool

	mu      sync.Mutex
	flights map[chunkKey]*flight
}

var (
	_ zarr.ChunkLoader  = (*Cache)(nil)
	_ zarr.ChunkToucher = (*Cache)(nil)
)

// New makes a cache of decoded chunks of at most budget bytes; nil if
// budget is not positive.
func New(budget int64) (*Cache, error) {
	if budget <= 0 {
		return nil, nil
	}
	c, err := ristretto.NewCache(&ristretto.Config[[]byte, []byte]{
		MaxCost: budget,
		// Ten counters for each chunk that may be there, if chunks are 64 KiB. A large cache
		// has fewer: they take memory that it may never use.
		NumCounters:        max(min(budget, 64<<30)>>16, 1<<10) * 10,
		BufferItems:        64,
		IgnoreInternalCost: true, // chunks are large, its own 56 bytes are not
		KeyToHash:          hashKey,
	})
	if err != nil {
		return nil, fmt.Errorf("engine: chunk cache: %w", err)
	}
	return &Cache{c: c, budget: budget, wanted: newTouches(budget)}, nil
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
	k := keyOf(id, codec)
	defer keys.Put(k)
	b, ok := c.c.Get(k[:])
	if ok {
		c.hits.Add(1)
	} else {
		c.misses.Add(1)
	}
	return b, ok
}

// Stats describes the cache of decoded chunks of a database.
type Stats struct {
	// Hits and Misses count look-ups since the database was opened.
	Hits, Misses int64
	// Bytes is the size of the chunks in the cache, Limit its bound.
	Bytes, Limit int64
}

// Stats returns the counts and the size; zero of a nil cache.
func (c *Cache) Stats() Stats {
	if !c.enter() {
		return Stats{}
	}
	defer c.leave()
	return Stats{Hits: c.hits.Load(), Misses: c.misses.Load(), Bytes: max(c.budget-c.c.RemainingCost(), 0), Limit: c.budget}
}

// Wait returns when what was added before is kept or dropped. It is for tests.
func (c *Cache) Wait() { c.c.Wait() }

// Add offers a decoded chunk, which must not be changed afterwards. The cache
// keeps it or not.
func (c *Cache) Add(id kv.ID, codec [16]byte, chunk []byte) {
	if c == nil || !c.Keeps(cap(chunk)) || !c.enter() {
		return
	}
	defer c.leave()
	cost := int64(cap(chunk))
	k := keyOf(id, codec)
	c.c.Set(k[:], chunk, cost) // keeps the hash of the key, not the key
	keys.Put(k)
	// Chunks in its queue are outside its budget. Draining the queue after
	// every sixteenth of the budget keeps them below that.
	if c.queued.Add(cost) > c.budget/16 {
		c.queued.Store(0)
		c.c.Wait()
	}
}

// Keeps implements [zarr.ChunkToucher].
func (c *Cache) Keeps(bytes int) bool { return int64(bytes) <= c.budget/4 }

// Touch implements [zarr.ChunkToucher].
func (c *Cache) Touch(id kv.ID, codec [16]byte, bytes int) bool {
	k := keyOf(id, codec)
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
	k := *keyOf(id, codec)
	if c.enter() {
		b, ok := c.c.Get(k[:]) // the reader has counted a miss; another one may have added it since
		c.leave()
		if ok {
			return b, nil
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
	c.closed = true
	c.c.Close()
}
