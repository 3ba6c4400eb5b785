package local

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/zarrdb/zarrdb/internal/mmap"
	"github.com/zarrdb/zarrdb/serve/wire"
	"github.com/zarrdb/zarrdb/txn"
)

// Writes to a session, and moves of refs, are counted in memory of the client, which the server maps as a block:
//
//	watch, block, offset ──▶ txn.OnWrite, txn.OnMove: counter at offset + 1
//
// While the counter shows only the writes of the client, the client reads the session without
// requests; while no ref has moved, it opens branches and tags without requests. One block has all counters of a client.

const (
	counterBlock = 1 << 31 // its first number
	counterBytes = 4 << 10
)

// counters are the block. Sessions share a counter if there are very many: then they read with
// requests more often than necessary.
type counters struct {
	file *os.File
	b    []byte
	last atomic.Uint32
}

// newCounters makes a block. It is unmapped when nothing refers to it.
func newCounters() (*counters, error) {
	f, b, err := newSealed("zarrdb-counters", counterBytes)
	if err != nil {
		return nil, err
	}
	c := &counters{file: f, b: b}
	runtime.AddCleanup(c, func(b []byte) { _ = mmap.Unmap(b) }, b)
	return c, nil
}

// next returns a counter and its offset.
func (c *counters) next() (*atomic.Uint64, int64) {
	at := int64(c.last.Add(1)) * 8 % counterBytes
	return counterAt(c.b[at:]), at
}

// counterAt is the counter in the first bytes of b, which are aligned.
func counterAt(b []byte) *atomic.Uint64 { return (*atomic.Uint64)(unsafe.Pointer(&b[:8][0])) }

// watched is the counter of a session on a connection.
type watched struct {
	txn.Watch
	l *link
}

// Watch implements [txn.Tx].
func (s *Session) Watch(ctx context.Context) (w txn.Watch, err error) {
	err = s.on(ctx, func(l *link, handle uint32, _ bool) error {
		s.mu.Lock()
		was := s.watched
		s.mu.Unlock()
		if was.l == l && was.Live() {
			w = was.Watch
			return nil
		}
		if w, err = l.count(ctx, wire.Watch{Handle: wire.Handle{View: handle}}); err != nil {
			return err
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.watched = watched{w, l}
		return nil
	})
	return w, err
}

// Watch implements [txn.Source].
func (s source) Watch(ctx context.Context) (w txn.Watch, err error) {
	err = s.c.again(ctx, func(l *link) error {
		w, err = l.count(ctx, wire.Watch{})
		return err
	})
	return w, err
}

// count has the server count the writes to a session, or the moves of refs.
func (l *link) count(ctx context.Context, in wire.Watch) (w txn.Watch, err error) {
	c, err := l.client.counters()
	if err != nil {
		return w, err
	}
	recalls := l.recalls.Load()
	n, at := c.next()
	in.At = at
	if err := l.sendWatch(ctx, &in, c.file); err != nil {
		return w, err
	}
	live := func() bool {
		runtime.KeepAlive(c)
		return l.recalls.Load() == recalls && !l.over()
	}
	return txn.Watch{Writes: n, Live: live}, nil
}

// sendWatch passes the block with the first request that is answered. A request that is not
// may have told the server of the block: the next one gives the block another number.
func (l *link) sendWatch(ctx context.Context, in *wire.Watch, block *os.File) error {
	l.mu.Lock()
	number, passed := l.counters, l.counted
	if !passed {
		l.counters++
	}
	l.mu.Unlock()
	in.Block = counterBlock + number
	meta, err := json.Marshal(in)
	if err != nil {
		return err
	}
	f := wire.Frame{Op: wire.OpWatch, Meta: meta}
	if !passed {
		f.Pass = []wire.Descriptor{block}
	}
	got, err := l.call(ctx, &f, false)
	if err != nil {
		return err
	}
	got.Close()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.counters, l.counted = number, true
	return nil
}

// counters returns the block of the client.
func (c *Client) counters() (*counters, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || c.o.NoFiles {
		return nil, errors.ErrUnsupported
	}
	if c.block == nil {
		var err error
		if c.block, err = newCounters(); err != nil {
			return nil, err
		}
	}
	return c.block, nil
}

// watch counts in a block: the writes to a session until its view is closed, or the moves of refs until the connection ends.
func (c *conn) watch(_ context.Context, f *wire.Frame) error {
	var in wire.Watch
	if err := wire.ParseJSON(f.Op, f.Meta, &in); err != nil {
		return err
	}
	if in.View != 0 {
		v, err := c.session(in.View)
		if err != nil {
			return err
		}
		defer c.done(v)
		return c.count(f, &in, &v.counted, func(fn func()) func() { return txn.OnWrite(v.Session.Engine().Versions(), fn) })
	}
	db, err := c.db()
	if err != nil {
		return err
	}
	if db.Versions().IsPeer() {
		return fmt.Errorf("%w: another process has the database open", errors.ErrUnsupported)
	}
	return c.count(f, &in, &c.moves, func(fn func()) func() { return txn.OnMove(db.Versions(), fn) })
}

// count begins to count in a block, in place of what was counted before.
func (c *conn) count(f *wire.Frame, in *wire.Watch, n *counting, begin func(fn func()) (stop func())) error {
	from, err := memory(f)
	if err != nil {
		return err
	}
	k, err := c.blocks.use(in.Block, from)
	if err != nil {
		return err
	}
	b, err := k.span(in.At, 8)
	if err == nil && in.At%8 != 0 {
		err = fmt.Errorf("%w: the offset %d of a counter is not a multiple of 8", ErrRequest, in.At)
	}
	if err != nil {
		c.blocks.give(k)
		return err
	}
	counter := counterAt(b)
	stop := begin(func() { counter.Add(1) })
	c.lent.Store(true) // a recall ends it for the client
	n.set(sync.OnceFunc(func() {
		stop()
		c.blocks.give(k)
	}))
	return c.send(f, &wire.Frame{})
}

// counting is what a counter of a client counts.
type counting struct {
	mu    sync.Mutex
	stop  func()
	ended bool
}

// set ends the counting. next ends the counting that begins.
func (n *counting) set(next func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.stop != nil {
		n.stop()
	}
	if n.stop = next; n.ended && next != nil {
		next()
	}
}

// end ends the counting for good.
func (n *counting) end() {
	n.mu.Lock()
	n.ended = true
	n.mu.Unlock()
	n.set(nil)
}

// Release releases the view.
func (v *view) Release() {
	v.counted.end()
	v.View.Release()
}
