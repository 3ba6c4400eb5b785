package refs

import (
	"container/list"
	"context"
	"errors"
	"sync"
)

type partitionID struct {
	a      *array
	number int64
}

// partitionCache keeps partitions up to a number of bytes and drops the one not
// used for the longest time. Concurrent requests for a partition read it once.
type partitionCache struct {
	most int64

	mu      sync.Mutex
	entries map[partitionID]*list.Element
	used    list.List // of *cached, the last used in front
	bytes   int64
}

type cached struct {
	id   partitionID
	done chan struct{} // closed when p and err are set
	p    *partition    // set under the lock of the cache
	err  error
}

func (c *partitionCache) get(ctx context.Context, id partitionID, read func() (*partition, error)) (*partition, error) {
	for {
		c.mu.Lock()
		if e, ok := c.entries[id]; ok {
			c.used.MoveToFront(e)
			c.mu.Unlock()
			x := e.Value.(*cached)
			select {
			case <-x.done:
			case <-ctx.Done():
				return nil, ctx.Err()
			}
			if x.err != nil && ctx.Err() == nil && (errors.Is(x.err, context.Canceled) || errors.Is(x.err, context.DeadlineExceeded)) {
				continue // the goroutine that read it gave up
			}
			return x.p, x.err
		}
		x := &cached{id: id, done: make(chan struct{})}
		if c.entries == nil {
			c.entries = map[partitionID]*list.Element{}
		}
		e := c.used.PushFront(x)
		c.entries[id] = e
		c.mu.Unlock()
		return c.fill(e, read)
	}
}

var errAbandoned = errors.New("refs: reading a partition was abandoned")

// fill reads the partition of a new entry.
func (c *partitionCache) fill(e *list.Element, read func() (*partition, error)) (*partition, error) {
	x, p, err := e.Value.(*cached), (*partition)(nil), errAbandoned
	defer func() { // also if read panics
		c.mu.Lock()
		x.p, x.err = p, err // shrink reads p
		if err != nil {
			c.drop(e)
		} else {
			c.bytes += p.bytes
			c.shrink(e)
		}
		c.mu.Unlock()
		close(x.done)
	}()
	p, err = read()
	return p, err
}

func (c *partitionCache) drop(e *list.Element) {
	c.used.Remove(e)
	delete(c.entries, e.Value.(*cached).id)
}

// shrink drops partitions beyond the bound, except keep.
func (c *partitionCache) shrink(keep *list.Element) {
	for e := c.used.Back(); e != nil && c.bytes > c.most; {
		before := e.Prev()
		if x := e.Value.(*cached); e != keep && x.p != nil {
			c.bytes -= x.p.bytes
			c.drop(e)
		}
		e = before
	}
}
