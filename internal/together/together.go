// Package together runs functions beside each other.
//
//	caller ── Go(fn) ──► goroutine ─┐
//	   │                            │ a panic
//	   └───── Wait ◄────────────────┘
package together

import (
	"sync"
	"sync/atomic"
)

// Group is a [sync.WaitGroup] whose Wait panics with what one of its goroutines panicked with, so
// that whoever recovers a panic of the caller recovers from theirs, and nothing runs on. The zero
// value is ready.
type Group struct {
	wg       sync.WaitGroup
	panicked atomic.Pointer[any]
}

// Go runs fn in a goroutine.
func (g *Group) Go(fn func()) {
	g.wg.Go(func() {
		defer func() {
			if r := recover(); r != nil {
				g.panicked.CompareAndSwap(nil, &r)
			}
		}()
		fn()
	})
}

// Wait returns when all goroutines have ended. To wait also if the caller panics, defer it.
func (g *Group) Wait() {
	g.wg.Wait()
	if r := g.panicked.Swap(nil); r != nil {
		panic(*r)
	}
}
