package local

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/serve/wire"
)

// A process that is stopped neither answers nor ends its connections. While requests are under
// way, the client therefore looks from time to time whether a frame has arrived:
//
//	begin ──▶ look ── a frame has arrived ──▶ look …
//	            └──── none ──▶ ping ── none again, twice ──▶ the connection has ended
//
// A request may take any time as long as the process answers pings.

// silence measures how long a link has had no frame while it awaits some.
type silence struct {
	looks bool // the timer is set
	timer *time.Timer
	heard uint64 // frames at the last look
	quiet int    // looks in a row without a new frame
}

// pingID is the number of pings, which no other request has.
const pingID = 0

// quietLooks is how many looks in a row without a frame end a connection. The first look sends the ping.
const quietLooks = 3

// limit is the time in which a request to a process that does not answer fails. The connection ends
// after a half of it, and a new connection fails after another third.
func (o *DialOptions) limit() time.Duration { return cmp.Or(o.Limit, bounds(o.bound), waitServing) }

// lookTime is the time between two looks. The first look may come at once after a request has begun.
func (o *DialOptions) lookTime() time.Duration {
	return max(o.limit()/(2*(quietLooks+1)), shortestLook)
}

var shortestLook = 250 * time.Millisecond // tests change it

// helloTime bounds the wait for the first answer on a new connection.
func (o *DialOptions) helloTime() time.Duration { return min(helloTime, max(o.limit()/3, time.Second)) }

// listen sets the timer. l.mu is held.
func (l *link) listen() {
	s := &l.silence
	s.looks, s.heard, s.quiet = true, l.heard.Load(), 0
	if s.timer == nil {
		s.timer = time.AfterFunc(l.client.o.lookTime(), l.look)
	} else {
		s.timer.Reset(l.client.o.lookTime())
	}
}

// look ends the connection if the process at the other end has been silent for too long.
func (l *link) look() {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := &l.silence
	heard := l.heard.Load()
	switch {
	case l.err != nil || len(l.pending) == 0:
		s.looks = false
		return
	case heard != s.heard:
		s.heard, s.quiet = heard, 0
	case s.quiet == 0:
		s.quiet++
		go func() { _ = l.w.Send(&wire.Frame{ID: pingID, Op: wire.OpPing}) }() // Send may wait for other requests
	case s.quiet+1 < quietLooks:
		s.quiet++
	default:
		l.err = gone(l.silent())
		go l.shut(true)
		return
	}
	s.timer.Reset(l.client.o.lookTime())
}

// silent is the error of a process that does not answer.
func (l *link) silent() error {
	held := &engine.LockedError{Dir: filepath.Join(l.hello.Dir, "index")}
	held.Holder.PID, held.Holder.Program = l.hello.PID, l.hello.Program
	held.Holder.Host, _ = os.Hostname()
	return silentError{held}
}

// silentError is an [os.ErrDeadlineExceeded] that names the process that does not answer.
type silentError struct{ *engine.LockedError }

func (e silentError) Error() string {
	return fmt.Sprintf("%v, which does not answer; if it was stopped, kill -CONT %d lets it go on", e.LockedError, e.Holder.PID)
}

func (e silentError) Unwrap() error        { return e.LockedError }
func (e silentError) Is(target error) bool { return target == os.ErrDeadlineExceeded }

// stop ends the looks. l.mu is held.
func (s *silence) stop() {
	if s.timer != nil {
		s.timer.Stop()
	}
}
