package local

import (
	"context"
	"runtime/debug"
	"slices"
	"sync"
	"time"
)

// The bodies of requests and of replies that a client has not read yet are memory of this
// process. One budget bounds the bodies of all connections together:
//
//	budget ── an equal part ──▶ user ── an equal part ──▶ share of a connection
//
// Only users and connections that hold or await memory count. The parts bind those that hold
// some memory already, and those leave an eighth of the budget to others. So a connection
// whose client does not read its replies waits, and others find memory.

const (
	// memorySmall is the size up to which bodies are not counted. A connection can have one
	// such body for each request that is under way.
	memorySmall = 4 << 10
	// memoryFirst is the size up to which a connection that holds nothing never waits.
	memoryFirst = 64 << 10
	// A body of more than 1/memoryLarge of the budget leaves a quarter of the budget to others,
	// unless it is alone.
	memoryLarge = 64
	// restFrom is how many bytes must have been held so that the heap is given back to the
	// system restAfter later.
	restFrom  = 32 << 20
	restAfter = time.Second
)

// budget is memory that connections share.
type budget struct {
	limit int64

	mu    sync.Mutex
	used  int64
	peak  int64 // since memory was given back last
	most  int64 // since the start
	users map[string]*account
	queue []*claim // that wait, the oldest first
	rest  *time.Timer
}

// account is the part of a user. It is kept while a share of the user is active.
type account struct {
	held   int64
	shares int64 // that are active
}

// share is the part of one connection.
type share struct {
	b       *budget
	user    string // whose connection it is
	held    int64
	waiting int
}

// claim is memory that is awaited.
type claim struct {
	s     *share
	n     int64
	ready chan struct{} // closed when s holds the memory
}

// take waits until n bytes are free for s, or ctx ends.
func (s *share) take(ctx context.Context, n int64) error {
	if n <= memorySmall {
		return nil
	}
	b := s.b
	b.mu.Lock()
	if b.fits(s, n) {
		b.note(s, n, 0)
		b.mu.Unlock()
		return nil
	}
	c := &claim{s, n, make(chan struct{})}
	b.queue = append(b.queue, c)
	b.note(s, 0, 1)
	b.mu.Unlock()
	select {
	case <-c.ready:
		return nil
	case <-ctx.Done():
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if i := slices.Index(b.queue, c); i >= 0 {
		b.queue = slices.Delete(b.queue, i, i+1)
		b.note(s, 0, -1)
	} else {
		b.note(s, -n, 0)
	}
	b.admit()
	return context.Cause(ctx)
}

// change replaces n bytes that s holds by m bytes, without waiting.
func (s *share) change(n, m int64) {
	if n <= memorySmall {
		n = 0
	}
	if m <= memorySmall {
		m = 0
	}
	if n == m {
		return
	}
	s.b.mu.Lock()
	defer s.b.mu.Unlock()
	s.b.note(s, m-n, 0)
	s.b.admit()
}

// give returns what take got.
func (s *share) give(n int64) { s.change(n, 0) }

// close returns all that s holds. No take or change may follow.
func (s *share) close() {
	s.b.mu.Lock()
	defer s.b.mu.Unlock()
	s.b.note(s, -s.held, 0)
	s.b.admit()
}

// held is memory for the reply to one request.
type held struct {
	s *share
	n int64
}

// hold waits for memory for a reply of up to n bytes.
func (c *conn) hold(ctx context.Context, n int64) (*held, error) {
	n = min(n, c.s.o.Memory)
	if err := c.bodies.take(ctx, n); err != nil {
		return nil, err
	}
	return &held{&c.bodies, n}, nil
}

// set notes how long the reply is.
func (h *held) set(n int64) {
	h.s.change(h.n, n)
	h.n = n
}

func (h *held) free() { h.set(0) }

// fits reports whether s may hold n more bytes. b.mu is held.
func (b *budget) fits(s *share, n int64) bool {
	u := b.users[s.user]
	if u == nil {
		u = &account{}
	}
	part := b.limit / max(int64(len(b.users)), 1)
	switch {
	case s.held == 0 && n <= memoryFirst:
		return true
	case n > b.limit/memoryLarge && b.used+n > b.limit/4*3 && b.used > 0:
		return false
	case s.held > 0 && b.used+n > b.limit/8*7:
		return false
	case u.held > 0 && u.held+n > part, s.held > 0 && s.held+n > part/max(u.shares, 1):
		return false
	}
	return b.used+n <= b.limit
}

// admit hands out memory that is free to those who wait. b.mu is held.
func (b *budget) admit() {
	b.queue = slices.DeleteFunc(b.queue, func(c *claim) bool {
		if !b.fits(c.s, c.n) {
			return false
		}
		b.note(c.s, c.n, -1)
		close(c.ready)
		return true
	})
}

// note changes how much s holds and awaits. b.mu is held.
func (b *budget) note(s *share, held int64, waiting int) {
	u, before := b.users[s.user], s.held > 0 || s.waiting > 0
	if u == nil {
		u = &account{}
		b.users[s.user] = u
	}
	b.used += held
	s.held += held
	u.held += held
	s.waiting += waiting
	switch after := s.held > 0 || s.waiting > 0; {
	case after && !before:
		u.shares++
	case before && !after:
		u.shares--
	}
	if u.shares == 0 {
		delete(b.users, s.user)
	}
	b.peak, b.most = max(b.peak, b.used), max(b.most, b.used)
	if b.used == 0 && b.peak >= restFrom {
		b.peak = 0
		if b.rest != nil {
			b.rest.Stop()
		}
		b.rest = time.AfterFunc(restAfter, debug.FreeOSMemory)
	}
}
