package gather

import "sync"

// Workers are goroutines that work for one caller. A panic of one of them, or of the caller in Do, becomes a
// panic of Wait when all have ended: nothing uses the memory of the caller any more. The zero value is ready.
type Workers struct {
	wg     sync.WaitGroup
	mu     sync.Mutex
	panics any
}

// Go runs fn in a goroutine.
func (w *Workers) Go(fn func()) { w.wg.Go(func() { w.Do(fn) }) }

// Do runs fn.
func (w *Workers) Do(fn func()) {
	defer func() {
		if p := recover(); p != nil {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.panics = p
		}
	}()
	fn()
}

// Wait waits until all have ended.
func (w *Workers) Wait() {
	w.wg.Wait()
	if w.panics != nil {
		panic(w.panics)
	}
}
