// Package lru caches parts of indexes and of other files, in bounded memory.
//
//	Get(key) ──▶ kept? ──▶ being read by another? wait ──▶ read, keep, drop the oldest
package lru

import (
	"container/list"
	"context"
	"errors"
	"sync"
)

// Cache keeps values up to a number of bytes, and drops the least recently used
// ones. Concurrent requests for a value read it once. Values are shared and must
// not be changed. Safe for concurrent use.
type Cache[K comparable, V any] struct {
	most int64
	size func(V) int64

	mu      sync.Mutex
	entries map[K]*list.Element
	used    list.List // of *entry[K, V], the last used in front
	bytes   int64
}

type entry[K comparable, V any] struct {
	key  K
	done chan struct{} // closed when v and err are set
	kept bool          // v counts in bytes; under the lock of the cache
	v    V
	err  error
}

// New returns a cache of at most most bytes; size returns the bytes of a value.
// The last value is kept even if it is larger.
func New[K comparable, V any](most int64, size func(V) int64) *Cache[K, V] {
	return &Cache[K, V]{most: most, size: size, entries: map[K]*list.Element{}}
}

// Get returns the value of key, and calls read if it is not in the cache. An
// error of read is returned to all waiting callers and not cached.
func (c *Cache[K, V]) Get(ctx context.Context, key K, read func() (V, error)) (V, error) {
	for {
		c.mu.Lock()
		el, ok := c.entries[key]
		if !ok {
			x := &entry[K, V]{key: key, done: make(chan struct{})}
			el = c.used.PushFront(x)
			c.entries[key] = el
			c.mu.Unlock()
			return c.fill(el, read)
		}
		c.used.MoveToFront(el)
		c.mu.Unlock()
		x := el.Value.(*entry[K, V])
		select {
		case <-x.done:
		default: // a finished value needs no wait, even if ctx has ended
			select {
			case <-x.done:
			case <-ctx.Done():
				var zero V
				return zero, ctx.Err()
			}
		}
		if x.err != nil && ctx.Err() == nil && (errors.Is(x.err, context.Canceled) || errors.Is(x.err, context.DeadlineExceeded)) {
			continue // the context of the goroutine that read it ended
		}
		return x.v, x.err
	}
}

// Peek returns the value of key if it is in the cache.
func (c *Cache[K, V]) Peek(key K) (v V, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	el, ok := c.entries[key]
	if !ok || !el.Value.(*entry[K, V]).kept {
		return v, false
	}
	c.used.MoveToFront(el)
	return el.Value.(*entry[K, V]).v, true
}

// Put keeps a value that was made, not read. A value that is kept under the key, or
// being read, stays.
func (c *Cache[K, V]) Put(key K, v V) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.entries[key] != nil {
		return
	}
	x := &entry[K, V]{key: key, done: make(chan struct{}), kept: true, v: v}
	close(x.done)
	el := c.used.PushFront(x)
	c.entries[key] = el
	c.bytes += c.size(v)
	c.shrink(el)
}

var errAbandoned = errors.New("lru: reading was abandoned")

// fill reads the value of a new entry.
func (c *Cache[K, V]) fill(el *list.Element, read func() (V, error)) (v V, err error) {
	x := el.Value.(*entry[K, V])
	err = errAbandoned
	defer func() { // also if read panics
		c.mu.Lock()
		x.v, x.err = v, err
		if err != nil {
			c.drop(el)
		} else {
			x.kept = true
			c.bytes += c.size(v)
			c.shrink(el)
		}
		c.mu.Unlock()
		close(x.done)
	}()
	return read()
}

func (c *Cache[K, V]) drop(el *list.Element) {
	c.used.Remove(el)
	delete(c.entries, el.Value.(*entry[K, V]).key)
}

// shrink drops values beyond the bound, except keep.
func (c *Cache[K, V]) shrink(keep *list.Element) {
	for el := c.used.Back(); el != nil && c.bytes > c.most; {
		before := el.Prev()
		if x := el.Value.(*entry[K, V]); el != keep && x.kept {
			c.bytes -= c.size(x.v)
			c.drop(el)
		}
		el = before
	}
}
