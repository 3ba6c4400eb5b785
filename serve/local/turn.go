package local

import (
	"context"
	"errors"
	"syscall"
	"time"

	"github.com/zarrdb/zarrdb/serve/wire"
)

// Frames of a connection are received by one goroutine at a time, whose turn it is:
//
//	link.receive ──no call waits────────────────────────────▶ free
//	      ▲  ▲                                                 │ │
//	      │  └──no requests for a while────────────────────────┘ │ call
//	      └──the call is cancelled, or others wait,────────── the caller itself
//	         or it took long
//
// A caller that receives its own reply needs no other goroutine, and so no other thread.

// turn is which goroutine receives.
type turn uint8

const (
	turnReceiver turn = iota // link.receive
	turnFree
	turnCaller
)

// restTime is how long the receiver leaves an idle connection alone. Until then the client
// does not notice that the server ends.
var restTime = 10 * time.Millisecond // tests change it

// wake gives the turn to the receiver. l.mu is held.
func (l *link) wake() {
	l.turn, l.asleep = turnReceiver, false
	select {
	case l.woken <- struct{}{}:
	default: // it is woken already
	}
}

// broke ends the link after sending has failed. Frames that the server sent before are
// received first.
func (l *link) broke(err error) {
	l.shut(!errors.Is(err, syscall.EPIPE) && !errors.Is(err, syscall.ECONNRESET))
}

// shut has the receiver end the link, and closes the connection, unless the server has
// done that.
func (l *link) shut(closes bool) {
	if closes {
		_ = l.w.Close()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ending = true
	if l.turn == turnFree {
		l.wake()
	}
}

// await receives frames until the reply to a request has come, or ctx ends. It is the
// caller's turn, and is not afterwards.
func (l *link) await(ctx context.Context, f *wire.Frame) {
	var err error
	for err == nil && l.waits(f.ID) {
		if (!f.Op.Quick() || !l.w.Eager() || !l.w.Soon()) && !l.w.Ready(ctx) {
			break
		}
		_, err = l.take(false)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		l.failed = err
	}
	if err != nil || l.ending || l.asleep || l.waiting > 0 || l.w.Buffered() {
		l.wake()
	} else {
		l.turn = turnFree
	}
}

// waits reports whether a request has no reply yet.
func (l *link) waits(id uint32) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.pending[id] != nil
}

// rest waits, after the turn was given away, until it is the receiver's again.
func (l *link) rest() {
	l.mu.Lock()
	calls := l.calls
	l.mu.Unlock()
	tick := time.NewTicker(restTime)
	defer tick.Stop()
	for {
		select {
		case <-l.woken:
			return
		case <-tick.C:
		}
		l.mu.Lock()
		switch {
		case l.calls != calls:
			calls = l.calls
		case l.turn == turnFree:
			l.turn = turnReceiver
			l.mu.Unlock()
			return
		default: // the call that is under way wakes the receiver
			l.asleep = l.turn == turnCaller
			l.mu.Unlock()
			<-l.woken
			return
		}
		l.mu.Unlock()
	}
}
