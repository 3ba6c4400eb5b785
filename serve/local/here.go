package local

import (
	"sync"
	"time"

	"github.com/zarrdb/zarrdb/serve/wire"
)

// A request that is alone on its connection is answered by the goroutine that received
// it, so that no other thread has to be woken. If that takes long, another goroutine goes
// on receiving:
//
//	loop ──▶ enter ──▶ handle ──▶ leave ──▶ loop
//	                     │ slowTime
//	                     └──▶ pass ──▶ receive ──▶ loop

// slowTime is how long a request may keep its connection from receiving other
// requests, at least. It may take twice as long.
const slowTime = time.Millisecond

// here knows which request the receiving goroutine answers itself.
type here struct {
	pass func() // has another goroutine receive

	mu      sync.Mutex
	timer   *time.Timer // nil before the first request
	armed   bool
	last    uint64 // number of the last request
	current uint64 // number of the request that is being answered, or 0
	watched uint64 // the last one when the timer was set
}

// enter notes that a request is answered here, and returns its number.
func (h *here) enter() uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.last++
	h.current = h.last
	if !h.armed { // one timer for many requests: setting it takes as long as a request
		h.watch()
	}
	return h.current
}

// leave notes that a request was answered. It is false if another goroutine receives.
func (h *here) leave(n uint64) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.current != n {
		return false
	}
	h.current = 0
	return true
}

func (h *here) watch() {
	h.armed, h.watched = true, h.last
	if h.timer == nil {
		h.timer = time.AfterFunc(slowTime, h.look)
	} else {
		h.timer.Reset(slowTime)
	}
}

// look has another goroutine receive if the request of before is under way still.
func (h *here) look() {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.current == 0 && h.last == h.watched:
		h.armed = false // there was no other request
	case h.current != h.watched:
		h.watch()
	default:
		h.armed, h.current = false, 0
		h.pass()
	}
}

// stop ends the timer.
func (h *here) stop() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.timer != nil {
		h.timer.Stop()
	}
}

// answers reports whether the goroutine that receives answers an operation itself.
// alone says that no other request is under way.
func (h *here) answers(op wire.Op, alone bool) bool {
	return alone && (op.Quick() || op == wire.OpCommit || op == wire.OpSavepoint)
}
