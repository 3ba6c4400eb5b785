package local

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zarrdb/zarrdb/engine"
	membudget "github.com/zarrdb/zarrdb/internal/budget"
	"github.com/zarrdb/zarrdb/internal/ctxlock"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/serve"
	"github.com/zarrdb/zarrdb/serve/internal/sockets"
	"github.com/zarrdb/zarrdb/serve/wire"
	"github.com/zarrdb/zarrdb/txn"
)

// DialOptions configure a client. nil and the zero value work.
type DialOptions struct {
	// NoFiles asks for all values as bytes.
	NoFiles bool
	// Share makes this process share the memory for databases equally with the server and its
	// other clients, for programs that read for long. Without it, each database that the client
	// opens has small caches, and the other processes keep theirs.
	Share bool
	// Dir is the directory of the database. A server that has another database open, such
	// as one that was moved there or away, is [ErrGone]. Default "": any will do.
	Dir string
	// Redial connects to the process that has the database open after the one
	// before has ended. It makes one try; [Handover] says when the next one follows.
	// nil connects to the same socket again.
	Redial func(ctx context.Context) (net.Conn, error)
	// Limit bounds the time of a request to a process that is stopped; default 30 s. It does not
	// bound requests that a running process works on.
	Limit time.Duration

	program string                     // of this process, for lists
	foreign func()                     // called where the process at the other end has another database open
	bound   *atomic.Int64              // Limit, where that may change
	listed  bool                       // this process writes the versions that it has open into its file; see visit
	wait    time.Duration              // for the first answer; default helloTime
	holder  func() *engine.LockedError // describes the process at the other end of a new connection; may be nil
}

// Client is a connection to the process that has a database open. It connects
// again when that process ends and another one takes its place: versions stay
// readable, and a session without lost writes continues. Safe for concurrent
// use.
type Client struct {
	o        DialOptions
	busy     ctxlock.Lock    // held while it connects again
	visiting ctxlock.Lock    // held while it visits
	silent   error           // why the last process did not answer; under busy
	tried    time.Time       // when it did not answer; under busy
	open     context.Context // ends when the client is closed
	end      func()

	mu      sync.Mutex
	l       *link
	closed  bool
	leases  map[*lease]struct{} // renewed on each new connection
	peer    *peerFile           // nil without one
	buckets map[string]kv.Store // by URL; see lender
	block   *counters           // made by the first counter
	slots   slots

	recalls sync.Mutex
	letGo   []*func() // give files of packs back

	memory *membudget.Member // nil if this process does not share it
}

// Dial connects to a socket. Errors: [ErrVersion], and errors of the network.
func Dial(ctx context.Context, socket string, o *DialOptions) (*Client, error) {
	var c DialOptions
	if o != nil {
		c = *o
	}
	if c.Redial == nil {
		c.Redial = func(ctx context.Context) (net.Conn, error) { return Connect(ctx, socket) }
	}
	conn, err := Connect(ctx, socket)
	if err != nil {
		return nil, err
	}
	return NewClient(ctx, conn, &c)
}

// NewClient is [Dial] with a connection that was made. o.Redial makes further ones.
func NewClient(ctx context.Context, conn net.Conn, o *DialOptions) (*Client, error) {
	c := &Client{o: *o}
	c.open, c.end = context.WithCancel(context.Background())
	if c.o.Share {
		c.memory = membudget.Divide(1)
	}
	var err error
	if c.l, err = newLink(ctx, conn, c); err != nil {
		c.end()
		c.leave()
		return nil, err
	}
	c.o.wait = 0
	return c, nil
}

// DialDir connects to the process that serves the database in dir. os.ErrNotExist
// if none does.
func DialDir(ctx context.Context, dir string, o *DialOptions) (*Client, error) {
	var c DialOptions
	if o != nil {
		c = *o
	}
	c.Dir = dir
	places, err := sockets.Of(dir)
	if err != nil {
		return nil, err
	}
	for _, socket := range places {
		client, err := Dial(ctx, socket, &c)
		if err == nil || !absent(err) {
			return client, err
		}
	}
	return nil, &os.PathError{Op: "connect to the server of", Path: dir, Err: os.ErrNotExist}
}

// Connect connects to a socket. It is an error if the process there belongs to another user than
// the folder of the socket, unless that folder is the directory of the database.
func Connect(ctx context.Context, socket string) (net.Conn, error) {
	var d net.Dialer
	short, done := sockets.Short(socket)
	defer done()
	c, err := d.DialContext(ctx, "unix", short)
	if err != nil {
		return nil, err
	}
	uid, known, err := sockets.UserOf(c.(*net.UnixConn))
	if owner, ok := sockets.OwnerOf(filepath.Dir(socket)); err == nil && known && ok && uid != owner && !sockets.IsInside(socket) {
		err = fmt.Errorf("%w: user %d serves %s, in a folder of user %d", serve.ErrDenied, uid, socket, owner)
	}
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// absent reports whether no process listens on the socket.
func absent(err error) bool {
	var dial *net.OpError // a missing file of the index is no missing socket
	return errors.As(err, &dial) && errors.Is(err, os.ErrNotExist) || errors.Is(err, sockets.ErrRefused) || errors.Is(err, ErrGone)
}

// Close ends the connection. Views and sessions must not be used any more;
// writes to sessions stay in them while the server runs.
func (c *Client) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.closed = true
		c.end()
		if c.peer != nil { // before the connection ends, so that the server need not keep anything
			_ = c.peer.file.Close()
		}
		c.l.close(txn.ErrClosed)
		c.slots.close()
		if c.block != nil {
			_ = c.block.file.Close()
		}
		c.leave()
	}
	return nil
}

// link returns the connection, and makes a new one where it has ended.
func (c *Client) link(ctx context.Context) (*link, error) {
	l, err := c.present()
	if err != nil || !l.over() {
		return l, err
	}
	if err := c.busy.Lock(ctx); err != nil {
		return nil, err
	}
	defer c.busy.Unlock()
	var h Handover
	for {
		old, err := c.present()
		if err != nil || !old.over() {
			return old, err
		}
		if time.Since(c.tried) < silentTime { // another request has just waited for it
			return nil, c.silent
		}
		l, err := c.connect(ctx)
		if err == nil {
			if err = c.renew(ctx, l); err == nil {
				err = c.use(l)
			}
			if err == nil {
				return l, nil
			}
			l.close(err)
		}
		if errors.Is(err, engine.ErrMoved) {
			return nil, err
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			c.silent, c.tried = errors.Join(old.why(), err), time.Now()
		}
		if err := h.Again(ctx, err); err != nil {
			return nil, errors.Join(old.why(), err)
		}
	}
}

// silentTime is the time in which the client does not ask a process again that did not answer.
const silentTime = time.Second

// present returns the last connection.
func (c *Client) present() (*link, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, txn.ErrClosed
	}
	return c.l, nil
}

// use makes l the connection.
func (c *Client) use(l *link) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return txn.ErrClosed
	}
	c.l = l
	return nil
}

// connect makes one try to connect again.
func (c *Client) connect(ctx context.Context) (*link, error) {
	conn, err := c.o.Redial(ctx)
	if err != nil {
		return nil, err
	}
	l, err := newLink(ctx, conn, c)
	if err == nil && l.identity().Differs(c.Identity()) {
		err = fmt.Errorf("%w: process %d has another database open at %s; open it again", engine.ErrMoved, l.hello.PID, l.hello.Dir)
		l.close(err)
	}
	return l, err
}

// Identity returns the identity of the database that the client was opened for.
func (c *Client) Identity() txn.Identity {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.l.identity()
}

// reconnects bounds how often a request is repeated after a connection that broke. Servers
// that end in order do not count: while short commands follow each other, many may.
const reconnects = 5

// broken waits for the end of the connection. It returns 1 if the server did not end in order.
func (l *link) broken() int {
	<-l.ended
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.bye {
		return 0
	}
	return 1
}

// again runs fn, and repeats it on a new connection while the one before has ended.
// It is for requests that change nothing.
func (c *Client) again(ctx context.Context, fn func(*link) error) error {
	for n := 0; ; {
		l, err := c.link(ctx)
		if err != nil {
			return err
		}
		if err = fn(l); err == nil || !errors.Is(err, ErrGone) || n >= reconnects || ctx.Err() != nil {
			return err
		}
		n += l.broken()
	}
}

// query is again for JSON.
func query[Out any](ctx context.Context, c *Client, op wire.Op, in any) (out Out, err error) {
	err = c.again(ctx, func(l *link) (err error) {
		out, err = ask[Out](ctx, l, op, in)
		return err
	})
	return out, err
}
