package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"

	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/serve"
	"github.com/zarrdb/zarrdb/serve/wire"
	"github.com/zarrdb/zarrdb/txn"
)

// handler answers a request: it sends one reply, or returns an error without having
// sent one. The frame is valid until it returns.
type handler func(c *conn, ctx context.Context, f *wire.Frame) error

var handlers = map[wire.Op]handler{
	wire.OpSet:    onSession(wire.ParseSet, (*conn).set),
	wire.OpDelete: onSession(wire.ParseSet, (*conn).delete),

	wire.OpOpen:      object((*conn).open),
	wire.OpClose:     object((*conn).closeView),
	wire.OpLeave:     object((*conn).leaves),
	wire.OpLease:     object((*conn).lease),
	wire.OpPages:     (*conn).pages,
	wire.OpPack:      (*conn).pack,
	wire.OpPayload:   (*conn).payload,
	wire.OpAncestors: (*conn).ancestors,
	wire.OpRecords:   (*conn).records,
	wire.OpVisit:     (*conn).visit,
	wire.OpBucket:    (*conn).lend,

	wire.OpValue:    onSession(wire.ParseStat, (*conn).value),
	wire.OpRoots:    onSession(wire.ParseStat, (*conn).roots),
	wire.OpWatch:    (*conn).watch,
	wire.OpOwnPages: onSession(wire.ParseOwnPages, (*conn).ownPages),
	wire.OpApply:    onSession(wire.ParseStat, (*conn).apply),
	wire.OpStore:    onSession(wire.ParseStat, (*conn).store),
	wire.OpStage:    onSession(wire.ParseStage, (*conn).stage),
	wire.OpSwap:     onSession(wire.ParseStat, (*conn).swap),

	wire.OpResolve: object((*conn).resolve),
	wire.OpRefs:    object((*conn).refs),
	wire.OpAsk:     (*conn).ask,
	wire.OpRebase:  object(with((*conn).session, (*conn).rebase)),
	wire.OpFork:    object(with((*conn).session, (*conn).fork)),
	wire.OpJoin:    object(with((*conn).session, (*conn).joinFork)),

	wire.OpBegin:     object((*conn).begin),
	wire.OpSavepoint: object(with((*conn).session, (*conn).savepoint)),
	wire.OpCommit:    object(with((*conn).session, (*conn).commit)),
	wire.OpDiscard:   object(with((*conn).session, (*conn).discard)),
}

// refsMemory is held while the list of branches and tags is made.
const refsMemory = 4 << 20

// object is a handler of an operation that takes and returns JSON.
func object[In, Out any](fn func(c *conn, ctx context.Context, in *In) (Out, error)) handler {
	return func(c *conn, ctx context.Context, f *wire.Frame) error {
		var in In
		if err := wire.ParseJSON(f.Op, f.Meta, &in); err != nil {
			return err
		}
		reply := int64(memoryFirst)
		if f.Op == wire.OpRefs {
			reply = min(refsMemory, c.s.o.Memory/memoryLarge)
		}
		h, err := c.hold(ctx, reply)
		if err != nil {
			return err
		}
		defer h.free() // after a panic too
		out, err := fn(c, ctx, &in)
		h.free() // answer counts the bytes
		if err != nil {
			return err
		}
		return c.answer(f, out)
	}
}

// onSession is a handler of an operation on a session, which stays open meanwhile. fn sends
// the reply.
func onSession[In wire.OnView](parse func(meta []byte) (In, error), fn func(c *conn, ctx context.Context, f *wire.Frame, v *view, in In) error) handler {
	return func(c *conn, ctx context.Context, f *wire.Frame) error {
		in, err := parse(f.Meta)
		if err != nil {
			return err
		}
		v, err := c.session(in.On())
		if err != nil {
			return err
		}
		defer c.done(v)
		return fn(c, ctx, f, v, in)
	}
}

// with is the function of an object handler whose request is about a view.
func with[In wire.OnView, Out any](find func(c *conn, handle uint32) (*view, error), fn func(c *conn, ctx context.Context, v *view, in In) (Out, error)) func(c *conn, ctx context.Context, in In) (Out, error) {
	return func(c *conn, ctx context.Context, in In) (out Out, err error) {
		v, err := find(c, in.On())
		if err != nil {
			return out, err
		}
		defer c.done(v)
		return fn(c, ctx, v, in)
	}
}

// otherVersion adds to the error of a request that this process does not know which of the two programs is older, and
// what to do. later says that the client knows more requests.
func (c *conn) otherVersion(later bool, err error) error {
	ours := c.s.o.Version
	if c.version == ours {
		return err
	}
	if !later {
		return fmt.Errorf("%w: the program that asks (version %s) is older than process %d, which has the database open (version %s): use the same version", err, c.version, os.Getpid(), ours)
	}
	return fmt.Errorf("%w: process %d (%s, version %s), which has the database open, is older than the program that asks (version %s): end that process, and try again", err, os.Getpid(), filepath.Base(os.Args[0]), ours, c.version)
}

// handle answers one request. A panic is an error of that request alone: the process
// has work of its own, and other clients.
func (c *conn) handle(ctx context.Context, f *wire.Frame) (err error) {
	defer recovered(f.Op, &err)
	h := handlers[f.Op]
	if h == nil {
		return c.otherVersion(f.Op.Later(), fmt.Errorf("%v: %w by this server", f.Op, errors.ErrUnsupported))
	}
	return h(c, ctx, f)
}

// recovered turns a panic of a request into its error. It is deferred.
func recovered(op wire.Op, err *error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("%v: panic: %v\n%s", op, r, debug.Stack())
	}
}

// none is the reply to a request without results: the work is done.
type none struct{}

// view is a view that a client reads, under a handle.
type view struct {
	*serve.View

	// Of conn.mu: requests that use it, and whether it is to be released then.
	uses   int
	closed bool

	counted counting // writes
}

// add gives a view a handle. Sessions have even handles: the number of a closed handle
// still tells that it was a session.
func (c *conn) add(v *serve.View) (uint32, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.views) >= c.s.o.Views {
		for handle, old := range c.views { // another client may have ended sessions
			if old.uses == 0 && old.Session != nil && old.Session.Engine().Ended() {
				delete(c.views, handle)
				old.Release()
			}
		}
	}
	if len(c.views) >= c.s.o.Views {
		v.Release()
		return 0, fmt.Errorf("%w: %d views are open; close some", ErrLimit, len(c.views))
	}
	session := v.Session != nil
	for c.last++; c.last == 0 || c.views[c.last] != nil || c.last%2 == 0 != session; c.last++ {
	}
	c.views[c.last] = &view{View: v}
	return c.last, nil
}

// use returns the view with a handle, to be given back by done.
func (c *conn) use(handle uint32) (*view, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	v := c.views[handle]
	switch {
	case v == nil && handle != 0 && handle <= c.last:
		closed := kv.ErrClosed
		if handle%2 == 0 {
			closed = txn.ErrSessionClosed
		}
		return nil, fmt.Errorf("%w: view %d", closed, handle)
	case v == nil:
		return nil, fmt.Errorf("%w: no view %d is open", ErrRequest, handle)
	}
	v.uses++
	return v, nil
}

func (c *conn) done(v *view) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if v.uses--; v.uses == 0 && v.closed {
		v.Release()
	}
}

// session is use for a view of a session.
func (c *conn) session(handle uint32) (*view, error) {
	v, err := c.use(handle)
	if err == nil && v.Session == nil {
		c.done(v)
		return nil, fmt.Errorf("%w: view %d is not a session and cannot be written", ErrRequest, handle)
	}
	if err == nil {
		if _, err = c.db(); err != nil { // it was moved: nothing is acknowledged
			c.done(v)
		}
	}
	return v, err
}

// leaves is for a client that needs the server no more. A server that ends when it is
// idle ends at once if that was its last client.
func (c *conn) leaves(context.Context, *none) (wire.Left, error) {
	return wire.Left{Ends: c.who.Admin && c.s.endAfter(c)}, nil
}

func (c *conn) open(ctx context.Context, in *wire.Open) (*wire.View, error) {
	v, err := c.s.t.View(ctx, c.who, c.s.name, in.Rev)
	if err != nil {
		return nil, err
	}
	if v.Session == nil {
		v.Release()
		return nil, fmt.Errorf("%w: %s is not a session", ErrRequest, in.Rev)
	}
	return c.opened(v)
}

// opened is the reply that has the handle of a session.
func (c *conn) opened(v *serve.View) (*wire.View, error) {
	handle, err := c.add(v)
	if err != nil {
		return nil, err
	}
	return &wire.View{View: handle, Session: sessionOut(v.Session.Engine().Info())}, nil
}

func (c *conn) closeView(_ context.Context, in *wire.Handle) (none, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	v := c.views[in.View]
	switch {
	case v == nil && in.View != 0 && in.View <= c.last: // with its session
		return none{}, nil
	case v == nil:
		return none{}, fmt.Errorf("%w: no view %d is open", ErrRequest, in.View)
	}
	delete(c.views, in.View)
	if v.closed = true; v.uses == 0 {
		v.Release()
	}
	return none{}, nil
}
