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
// Only users and connections that hold or await memory count. The parts bind users and connections
// that hold some memory already, and these leave an eighth of the budget free. So a connection
// whose client does not read its replies waits, and other connections find memory.

const (
	// memorySmall is the size up to which bodies are not counted. A connection can have one
	// such body for each request that is under way.
	memorySmall = 4 << 10
	// memoryFirst is the size up to which a connection that holds nothing never waits.
	memoryFirst = 64 << 10
	// A body of more than 1/memoryLarge of the budget leaves a quarter of the budget to other
	// bodies, unless it is alone. The first memoryFirst bytes of each connection do not count
	// beside it.
	memoryLarge = 64
	// restFrom is how many bytes must have been held so that the heap is given back to the
	// system restAfter later.
	restFrom  = 32 << 20
	restAfter = time.Second
)

// patience is how long a waiting body of more than three quarters of the budget keeps bodies of
// more than memoryFirst from being admitted before it. With more patience, clients that do not
// read would hold up all other clients.
var patience = 5 * time.Second // tests change it

// budget is memory that connections share.
type budget struct {
	limit int64

	mu    sync.Mutex
	used  int64
	above int64 // of used, the bytes that shares hold above memoryFirst each
	peak  int64 // since memory was given back last
	most  int64 // since the start
	users map[string]*account
	queue []*claim // that wait, the oldest first
	rest  *time.Timer
}

// held returns the bytes in use.
func (b *budget) held() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.used
}

// account is the part of a user. It is kept while a share of the user is active.
type account struct {
	held   int64
	above  int64 // of held, the bytes that shares hold above memoryFirst each
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
	until time.Time     // the end of its patience, the zero time for bodies that have none
}

// leads reports whether a claim of n bytes has to wait for c, which is older. A claim that
// waits for its own connection leads none.
func (c *claim) leads(n int64) bool {
	return n > memoryFirst && c.s.held <= memoryFirst && time.Now().Before(c.until)
}

// take waits until n bytes are free for s, or ctx ends.
func (s *share) take(ctx context.Context, n int64) error {
	if n <= memorySmall {
		return nil
	}
	b := s.b
	b.mu.Lock()
	if b.fits(s, n) && !slices.ContainsFunc(b.queue, func(c *claim) bool { return c.leads(n) }) {
		b.note(s, n, 0)
		b.mu.Unlock()
		return nil
	}
	c := &claim{s: s, n: n, ready: make(chan struct{})}
	if n > b.limit/4*3 && n <= b.limit {
		c.until = time.Now().Add(patience)
		defer time.AfterFunc(patience, func() {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.admit()
		}).Stop()
	}
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

// give returns memory that take got.
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
	if s.held == 0 && n <= memoryFirst {
		return true
	}
	used, ofUser, own := b.used, u.held, s.held
	if n > b.limit/memoryLarge {
		used, ofUser, own = b.above, u.above, max(s.held-memoryFirst, 0)
		if used == 0 {
			return n <= b.limit
		}
		if used+n > b.limit/4*3 {
			return false
		}
	}
	switch {
	case own > 0 && used+n > b.limit/8*7:
		return false
	case ofUser > 0 && ofUser+n > part, own > 0 && own+n > part/max(u.shares, 1):
		return false
	}
	return used+n <= b.limit
}

// admit gives free memory to waiting claims. b.mu is held.
func (b *budget) admit() {
	var first *claim
	b.queue = slices.DeleteFunc(b.queue, func(c *claim) bool {
		if first != nil && first.leads(c.n) || !b.fits(c.s, c.n) {
			if first == nil && c.leads(b.limit) {
				first = c
			}
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
	above := max(s.held+held-memoryFirst, 0) - max(s.held-memoryFirst, 0)
	b.used, b.above = b.used+held, b.above+above
	u.held, u.above = u.held+held, u.above+above
	s.held += held
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
