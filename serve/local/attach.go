package local

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/serve/wire"
	"github.com/zarrdb/zarrdb/txn"
)

// AttachOptions configure [Attach].
type AttachOptions struct {
	// Server is the program zarrdb, which is started where no process serves the database. With "" none is.
	Server string
	// Program names this process in lists; default as on its command line.
	Program string
	// Wait bounds the wait for a process that has the database open and does not answer, and for one that is
	// started; default 30 s. Below 0, it is the default, and a process that does not serve the database is not waited for.
	Wait time.Duration
	// CacheBytes is that of [engine.Options].
	CacheBytes int64
	// Dialed, if not nil, gets each connection that is made.
	Dialed func(net.Conn)
}

// Attached is a database that this process uses as a peer of the process that serves it.
type Attached struct {
	DB *engine.DB
	c  *Client
	s  *starter
}

// Attach opens the database in a directory as a peer of the process that serves it. This process never
// takes the database over: where no process serves it, one is started that does.
// The versions that are open are listed in a file, so that no collection waits for this process while it is stopped.
func Attach(ctx context.Context, dir string, o AttachOptions) (*Attached, error) {
	s := &starter{dir: dir, o: o}
	s.wait.Store(int64(max(o.Wait, 0)))
	to := DialOptions{Share: true, Dir: dir, Redial: s.connect, program: o.Program, listed: true, bound: &s.wait, foreign: s.passBy}
	to.holder = func() *engine.LockedError {
		held := &engine.LockedError{Dir: filepath.Join(dir, "index")}
		text, err := os.ReadFile(filepath.Join(held.Dir, "HOLDER"))
		if err != nil || json.Unmarshal(text, &held.Holder) != nil {
			return nil
		}
		return held
	}
	var h Handover
	for {
		c, err := s.client(ctx, &to)
		if err == nil {
			a := &Attached{c: c, s: s}
			if a.DB, err = engine.OpenPeer(dir, c.Identity(), attached{source{c}}, &engine.Options{CacheBytes: o.CacheBytes}); err != nil {
				return nil, errors.Join(err, c.Close())
			}
			return a, nil
		}
		if err := h.Again(ctx, err); err != nil {
			return nil, err
		}
	}
}

func (s *starter) client(ctx context.Context, o *DialOptions) (*Client, error) {
	conn, err := s.connect(ctx)
	if err != nil {
		return nil, err
	}
	return NewClient(ctx, conn, o)
}

// Bound changes [AttachOptions].Wait.
func (a *Attached) Bound(wait time.Duration) { a.s.wait.Store(int64(max(wait, 0))) }

// Identity returns the identity of the database that was opened.
func (a *Attached) Identity() txn.Identity { return a.c.Identity() }

// Here returns an error if another database is where this one was opened, which has taken its place.
func (a *Attached) Here(ctx context.Context) error {
	_, err := a.c.link(ctx) // a process that goes on has this one open
	return err
}

// Leave has the process that serves the database end, if this process has started it and nobody else uses it. The database
// stays open here; the next request starts another process.
func (a *Attached) Leave(ctx context.Context) error {
	p := a.s.running()
	l, err := a.c.present()
	if err != nil || p == nil || l.over() || l.hello.PID != p.pid {
		return nil //nolint:nilerr // there is nothing to leave
	}
	out, err := ask[wire.Left](ctx, l, wire.OpLeave, none{})
	if err != nil || !out.Ends {
		return ctx.Err()
	}
	select {
	case <-p.done:
		<-l.ended
	case <-ctx.Done():
	}
	return ctx.Err()
}

// attached is the source of a peer that leaves when it is closed.
type attached struct{ source }

func (s attached) Close() error { return s.c.Close() }

// Failure describes an error as the protocol does.
func Failure(err error) *wire.Failure { return failure(err) }

// bounds is the time that an atomic number holds, 0 without one.
func bounds(n *atomic.Int64) time.Duration {
	if n == nil {
		return 0
	}
	return time.Duration(n.Load())
}

// nobodyError says that no process serves the database in a directory. It is not waited for, as by [Handover].
type nobodyError string

func (e nobodyError) Error() string {
	return fmt.Sprintf("%s: no process serves the database", string(e))
}
func (e nobodyError) Is(target error) bool { return target == os.ErrNotExist }
