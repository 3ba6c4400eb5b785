package wire

import (
	"context"
	"runtime"
	"sync/atomic"
	"time"
)

// A process that sleeps until a frame arrives is woken by the system. On an idle
// machine that takes longer than most requests, because the processor sleeps too. So
// a side that expects a frame soon first looks for it again and again, for a moment:
//
//	Eager ──yes──▶ Soon ──a frame is here──▶ Receive, which does not sleep
//	  └────no──┐     └────not in time──┐
//	           ▼                       ▼
//	         Receive sleeps          Receive sleeps; Eager says no for a while
//
// Receive cannot be interrupted without losing part of a frame. Ready can, and takes
// nothing from the connection.

// patience is how long Soon looks for a frame: longer than it takes to wake the other
// side, so that two sides which both slept can catch up with each other.
const patience = 250 * time.Microsecond

// maxPause is how many frames in a row are waited for asleep after Soon has failed
// repeatedly. It bounds the cost where it fails always, as on a busy machine: patience
// divided by maxPause, for each frame.
const maxPause = 255

// eager counts how often a connection polled for a frame in vain. A failure between
// successes costs little, and is no reason to sleep.
type eager struct {
	failed bool // the last time
	pause  int  // how many frames to sleep for after the next failure
	left   int  // how many of them are still to come
}

// lookers is how many goroutines of this process are in Soon.
var lookers atomic.Int32

// maxLookers leaves at least half of the processors to other goroutines. It is 0
// where there is one processor.
func maxLookers() int32 { return int32(min(runtime.GOMAXPROCS(0), runtime.NumCPU()) / 2) }

// Eager reports whether it makes sense to call Soon before the next Receive. It is to
// be called once for each frame that is expected. It is for the goroutine that receives.
func (c *Conn) Eager() bool {
	if c.raw == nil || c.lookers == 0 {
		return false
	}
	if c.eager.left > 0 {
		c.eager.left--
		return false
	}
	return true
}

// Soon waits a moment for the next frame without going to sleep. It reports whether
// Receive can be called and returns at once, with a frame or an error; frames that are
// long may still be on their way, and are false. It is for the goroutine that receives.
func (c *Conn) Soon() bool {
	if c.Buffered() {
		return true
	}
	if c.raw == nil {
		return false
	}
	if lookers.Add(1) > c.lookers {
		lookers.Add(-1)
		return false
	}
	here := c.look(patience)
	lookers.Add(-1)
	if here {
		here = c.need(headerSize) != nil || c.Buffered() // an error comes again from Receive
	}
	switch {
	case here:
		c.eager.pause /= 4
	case c.eager.failed:
		c.eager.pause = min(2*c.eager.pause+1, maxPause)
		c.eager.left = c.eager.pause
	}
	c.eager.failed = !here
	return here
}

// Ready sleeps until something of the next frame has arrived, or the connection has
// failed; Receive then returns the error. It returns false if ctx ends first, and always
// where CanReady does. It is for the goroutine that receives.
func (c *Conn) Ready(ctx context.Context) bool {
	if c.to > c.from {
		return true
	}
	if c.raw == nil || ctx.Err() != nil {
		return false
	}
	if ctx.Done() == nil {
		return c.wait()
	}
	ended := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(ended)
		_ = c.c.SetReadDeadline(time.Unix(1, 0)) // if it fails so does the wait
	})
	here := c.wait()
	if !stop() {
		<-ended
		_ = c.c.SetReadDeadline(time.Time{})
	}
	return here
}

// CanReady reports whether Ready can wait on this connection.
func (c *Conn) CanReady() bool { return c.raw != nil }

// Buffered reports whether the next frame has begun to arrive, and is short.
func (c *Conn) Buffered() bool {
	if c.to-c.from < headerSize {
		return false
	}
	h, err := parseHeader(c.buf[c.from:c.to], c.limits)
	return err != nil || uint64(h.Meta)+uint64(h.Body) <= joined
}
