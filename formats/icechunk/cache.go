package icechunk

import (
	"container/list"
	"context"
	"sync"
)

// cache keeps what was read, by id, up to so many bytes; what was used last stays
// whatever its size. One reader reads for all that want the same. Safe for concurrent
// use.
type cache[T any] struct {
	most int64
	size func(T) int64

	mu    sync.Mutex
	known map[objectID]*list.Element // of *cached[T]
	used  list.List                  // newest first
	held  int64
}

type cached[T any] struct {
	id    objectID
	ready chan struct{} // closed when value and err are set
	value T
	err   error
	size  int64
}

// get returns what is kept of an id, or what read returns.
func (c *cache[T]) get(ctx context.Context, id objectID, read func(context.Context, objectID) (T, error)) (T, error) {
	for {
		c.mu.Lock()
		e, ok := c.known[id]
		if !ok {
			x := &cached[T]{id: id, ready: make(chan struct{})}
			if c.known == nil {
				c.known = map[objectID]*list.Element{}
			}
			e = c.used.PushFront(x)
			c.known[id] = e
			c.mu.Unlock()
			x.value, x.err = read(ctx, id)
			c.done(e, x)
			return x.value, x.err
		}
		c.used.MoveToFront(e)
		c.mu.Unlock()
		x := e.Value.(*cached[T])
		select {
		case <-x.ready:
		case <-ctx.Done():
			var none T
			return none, ctx.Err()
		}
		if x.err == nil {
			return x.value, nil
		}
		// Another's reading failed, perhaps because of its context: read again.
		if err := ctx.Err(); err != nil {
			return x.value, err
		}
	}
}

// done publishes what was read, and forgets what there is no room for.
func (c *cache[T]) done(e *list.Element, x *cached[T]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer close(x.ready)
	if x.err != nil {
		c.drop(e, x)
		return
	}
	x.size = c.size(x.value)
	c.held += x.size
	for old := c.used.Back(); old != nil && c.held > c.most; {
		before := old.Prev()
		if y := old.Value.(*cached[T]); y != x && y.size > 0 {
			c.drop(old, y)
		}
		old = before
	}
}

func (c *cache[T]) drop(e *list.Element, x *cached[T]) {
	c.used.Remove(e)
	delete(c.known, x.id)
	c.held -= x.size
}
