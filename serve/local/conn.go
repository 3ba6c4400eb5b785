package local

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/internal/mmap"
	"github.com/zarrdb/zarrdb/serve"
	"github.com/zarrdb/zarrdb/serve/internal/sockets"
	"github.com/zarrdb/zarrdb/serve/wire"
	"github.com/zarrdb/zarrdb/txn"
)

// conn is one client, on the side of the server.
type conn struct {
	s     *server
	u     *net.UnixConn
	w     *wire.Conn
	who   *serve.Principal
	files bool // the client takes descriptors
	own   bool // the client is this process; see [server.dial]
	lends bool // the client says that it reads buckets itself

	lender *lender // under server.mu

	version string // of the client
	program string // of the client
	pid     int

	ctx    context.Context // ends with the connection; the cause is ErrGone where the server ends
	cancel context.CancelCauseFunc
	wg     sync.WaitGroup // requests under way

	mu      sync.Mutex
	left    bool          // the server ends
	idle    chan struct{} // closed when no request is under way any more, after left
	rest    func()        // closes idle
	running map[uint32]context.CancelFunc
	views   map[uint32]*view
	last    uint32     // handle
	visited *txn.Visit // nil without one
	moves   counting   // of refs

	metas   share // of requests
	bodies  share // of requests and replies
	greeted bool
	timed   bool            // the frame that is being received has a deadline
	shares  bool            // the client shares memory; under server.mu
	sharing sync.Mutex      // held while the server tells the client that it shares memory
	lent    atomic.Bool     // the client may have files of packs
	recalls []chan struct{} // closed when it has given them back
	blocks  blocks
	here    here
	over    chan error // how loop ended in another goroutine than that of serve
}

// helloTime is how long a client has to say hello.
var helloTime = 10 * time.Second // tests change it

func newConn(s *server, u *net.UnixConn, who *serve.Principal) *conn {
	c := &conn{
		s: s, u: u, who: who,
		w:       wire.NewConn(u, wire.Limits{Body: s.o.MaxBody}, s.o.WriteTimeout),
		running: map[uint32]context.CancelFunc{}, views: map[uint32]*view{},
	}
	c.metas, c.bodies = share{b: &s.metas, user: who.Name}, share{b: &s.bodies, user: who.Name}
	c.w.Admit = c.admit
	c.blocks.limit = maxBlockBytes(who)
	c.idle = make(chan struct{})
	c.rest = sync.OnceFunc(func() { close(c.idle) })
	c.over = make(chan error, 1)
	c.here.pass = func() { c.wg.Go(c.receive) }
	c.ctx, c.cancel = context.WithCancelCause(context.Background())
	return c
}

// serve answers requests until the connection ends.
func (c *conn) serve() {
	defer c.u.Close()
	defer c.w.Release()
	if !c.own && sockets.CanPair {
		c.ctx = txn.WithAsker(c.ctx, c)
	}
	err := c.greet()
	if err == nil {
		var passed bool
		if passed, err = c.loop(); passed {
			err = <-c.over
		}
	}
	c.here.stop()
	if err == nil { // the server ends
		c.wg.Wait()
		_ = c.answer(&wire.Frame{Op: wire.OpBye}, none{}) // a client that does not get it asks the next server
	}
	c.s.share(c, false)
	c.cancel(nil)
	c.wg.Wait()
	c.metas.close()
	c.bodies.close()
	c.blocks.close()
	c.endVisit()
	for _, v := range c.views {
		v.Release()
	}
	c.moves.end()
	c.returned()
}

// leave ends the connection from the side of the server: at once, or when the
// requests under way have ended. Those are given the grace of the options.
func (c *conn) leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.left = true
	if len(c.running) == 0 {
		_ = c.u.SetReadDeadline(time.Now())
		return
	}
	if c.own { // this process gives the lock up, and asks another one again
		c.cancel(ErrGone)
		return
	}
	c.wg.Go(func() {
		if c.s.o.Hurry != nil {
			select {
			case <-c.s.o.Hurry:
			case <-c.idle:
				return
			}
		}
		t := time.NewTimer(c.s.o.Grace)
		defer t.Stop()
		select {
		case <-t.C:
			c.cancel(ErrGone)
		case <-c.idle:
		}
	})
}

// ended forgets a request. The last one ends a connection that is being left.
func (c *conn) ended(id uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.running, id)
	if c.left && len(c.running) == 0 {
		c.rest()
		_ = c.u.SetReadDeadline(time.Now())
	}
}

// greet exchanges the first frames.
func (c *conn) greet() error {
	if err := c.u.SetReadDeadline(time.Now().Add(helloTime)); err != nil {
		return err
	}
	f, err := c.w.Receive()
	if err != nil {
		return err
	}
	var theirs wire.Hello
	err = wire.ParseJSON(f.Op, f.Meta, &theirs)
	c.drop(f)
	if err == nil && f.Op != wire.OpHello {
		err = fmt.Errorf("%w: %v before hello", wire.ErrProtocol, f.Op)
	}
	ours := c.s.hello(c.who)
	if err == nil {
		var id txn.Identity
		id, err = c.s.identity()
		ours.Identity, ours.Lock = id.Name, id.File
	}
	if err == nil && theirs.Protocol != wire.Protocol {
		err = fmt.Errorf("%w: process %d (%s, version %s) serves the database with protocol %d, the client has protocol %d and version %s; use the same version, or end that process",
			ErrVersion, ours.PID, ours.Program, ours.Version, wire.Protocol, theirs.Protocol, theirs.Version)
	}
	if err != nil {
		return errors.Join(err, c.fail(f, err))
	}
	c.version, c.program, c.pid, c.greeted = theirs.Version, cmp.Or(theirs.Program, theirs.Version), theirs.PID, true
	c.lends = slices.Contains(theirs.Capabilities, wire.CapBuckets)
	c.files = slices.Contains(theirs.Capabilities, wire.CapFiles) && c.s.sendsFiles()
	shares := slices.Contains(theirs.Capabilities, wire.CapShare) && theirs.PID != ownPID
	if shares {
		c.sharing.Lock() // a newer number comes behind the answer
		ours.Processes = c.s.share(c, true)
	}
	err = c.answer(f, ours)
	if shares {
		c.sharing.Unlock()
	}
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.left {
		return c.u.SetReadDeadline(time.Now()) // loop ends at once, and the client reads of it
	}
	return c.u.SetReadDeadline(time.Time{})
}

// receive is loop in place of a goroutine that is still answering a request.
func (c *conn) receive() {
	passed, err := c.loop()
	if passed {
		return
	}
	if err != nil {
		c.cancel(nil) // serve may be answering a request
	}
	c.over <- err
}

// loop receives requests. Each runs beside the others, or here if it is alone. It ends
// with the connection, or is passed on to another goroutine.
func (c *conn) loop() (passed bool, err error) {
	for {
		f, err := c.w.Receive()
		if err != nil {
			if c.leaving() && errors.Is(err, os.ErrDeadlineExceeded) {
				return false, nil
			}
			return false, err
		}
		if c.timed {
			c.readUntil(time.Time{})
			c.timed = false
		}
		switch f.Op {
		case wire.OpCancel:
			c.stop(f)
			continue
		case wire.OpForget:
			c.forget(f)
			continue
		case wire.OpRecall:
			f.Close()
			c.returned()
			continue
		case wire.OpPing: // whatever is under way
			c.drop(f)
			if err := c.send(f, &wire.Frame{}); err != nil {
				return false, err
			}
			continue
		}
		ctx, cancel, alone, err := c.start(f)
		if err != nil {
			c.drop(f)
			if err := c.fail(f, err); err != nil {
				return false, err
			}
			continue
		}
		in := c.inBlock(f) // before a forget of the block is received
		// The client sends its next request behind a close, without waiting.
		if f.Op != wire.OpClose && !c.here.answers(f.Op, alone && !c.w.Buffered()) {
			c.wg.Go(func() { c.respond(ctx, cancel, f, in) })
			continue
		}
		n := c.here.enter()
		c.respond(ctx, cancel, f, in)
		if !c.here.leave(n) {
			return true, nil
		}
		if c.w.Eager() {
			c.w.Soon()
		}
	}
}

// respond answers a request that start has noted.
func (c *conn) respond(ctx context.Context, cancel context.CancelFunc, f *wire.Frame, in request) {
	defer c.drop(f)
	defer cancel()
	if in.k != nil {
		defer c.blocks.give(in.k)
	}
	err := in.err
	if err == nil {
		err = c.handle(ctx, in.f)
	}
	if err != nil {
		_ = c.fail(f, err) // then the connection is closed
	}
}

// bodyRate is how many bytes of a request have to arrive in a second, at least. Parts that
// arrive slower would hold the memory of others.
var bodyRate int64 = 1 << 20 // tests change it

// admit waits for the memory of a frame that arrives. Meanwhile no other frame of this
// connection is read.
func (c *conn) admit(h wire.Header) error {
	meta, body := int64(h.Meta), int64(h.Body)
	if !c.greeted && meta+body > memoryFirst {
		return fmt.Errorf("%w: %v with %d bytes before hello", wire.ErrProtocol, h.Op, meta+body)
	}
	if err := c.metas.take(c.ctx, meta); err != nil {
		return err
	}
	if err := c.bodies.take(c.ctx, body); err != nil {
		return err
	}
	if c.greeted && meta+body > memorySmall {
		c.timed = true
		c.readUntil(time.Now().Add(c.s.o.WriteTimeout + time.Duration((meta+body)/bodyRate)*time.Second))
	}
	return nil
}

// drop ends the use of a request.
func (c *conn) drop(f *wire.Frame) {
	f.Close()
	c.metas.give(int64(len(f.Meta)))
	c.bodies.give(int64(len(f.Body)))
}

// readUntil sets the deadline for the frame that is being received, unless the server ends:
// then the deadline has passed.
func (c *conn) readUntil(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.left {
		_ = c.u.SetReadDeadline(t) // a connection without a deadline ends with its client
	}
}

func (c *conn) leaving() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.left
}

// start notes a request that is under way. alone says that no other one is.
func (c *conn) start(f *wire.Frame) (ctx context.Context, cancel context.CancelFunc, alone bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.left:
		return nil, nil, false, ErrGone
	case f.Flags&wire.FlagReply != 0:
		return nil, nil, false, fmt.Errorf("%w: a reply to nothing", wire.ErrProtocol)
	case c.running[f.ID] != nil:
		return nil, nil, false, fmt.Errorf("%w: request %d is under way already", wire.ErrProtocol, f.ID)
	case len(c.running) >= c.s.o.Requests:
		return nil, nil, false, fmt.Errorf("%w: %d requests are under way", ErrLimit, len(c.running))
	}
	ctx, cancel = context.WithCancel(c.ctx)
	c.running[f.ID] = cancel
	return ctx, cancel, len(c.running) == 1, nil
}

// stop cancels a request.
func (c *conn) stop(f *wire.Frame) {
	c.drop(f)
	c.mu.Lock()
	defer c.mu.Unlock()
	if cancel := c.running[f.ID]; cancel != nil {
		cancel()
	}
}

// sendError is an error of sending a reply, after which nothing else can be sent.
type sendError struct{ error }

func (e sendError) Unwrap() error { return e.error }

// send sends a reply to f.
func (c *conn) send(f, reply *wire.Frame) error {
	mmap.Touch(reply.Body) // a frame is sent whole or not at all
	reply.ID, reply.Op, reply.Flags = f.ID, f.Op, reply.Flags|wire.FlagReply
	// A client may use the id anew as soon as it has the reply.
	c.ended(f.ID)
	err := c.w.Send(reply)
	var long *wire.TooLongError
	if err != nil && !errors.As(err, &long) && !errors.Is(err, wire.ErrNoFiles) {
		_ = c.u.Close()
		return sendError{err}
	}
	return err
}

// answer sends a JSON reply: as the meta, or if it is too long for that as the body.
func (c *conn) answer(f *wire.Frame, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	c.bodies.change(0, int64(len(b)))
	defer c.bodies.give(int64(len(b)))
	if len(b) > c.s.o.maxMeta && f.Op != wire.OpHello {
		return c.send(f, &wire.Frame{Body: b})
	}
	return c.send(f, &wire.Frame{Meta: b})
}

// fail sends an error as the reply, unless that is what failed.
func (c *conn) fail(f *wire.Frame, err error) error {
	var sent sendError
	if errors.As(err, &sent) {
		return err
	}
	if errors.Is(err, engine.ErrFailed) || errors.Is(err, engine.ErrMoved) {
		c.s.lookAround()
	}
	out := failure(err)
	meta, err := json.Marshal(out)
	if err == nil && len(meta) > c.s.o.maxMeta {
		out = &wire.Failure{Code: out.Code, Message: out.Message[:min(len(out.Message), 1000)], Branch: out.Branch, Base: out.Base, Head: out.Head}
		meta, err = json.Marshal(out)
	}
	if err != nil {
		return err
	}
	return c.send(f, &wire.Frame{Flags: wire.FlagError, Meta: meta})
}
