package gather

import (
	"context"
	"sync/atomic"

	"github.com/zarrdb/zarrdb/internal/together"
)

// Spare adds helpers to a running read, one that may hold a place of [Each] and
// bytes of [Memory], while places and memory are free. It never waits for them:
// readers that hold some and wait for more could deadlock.
//
//	reading   ─▶ part 0 ─▶ part 3 ─▶ …      always
//	helper 1  ─▶ part 1 ─▶ …                while a place and its memory are free
//	helper 2  ─▶ part 2 ─▶ …
//
// Safe for concurrent use.
type Spare struct {
	places chan struct{}
	memory *Memory
}

// NewSpare returns a Spare of places helpers for all reads together, whose bytes
// count in memory.
func NewSpare(places int, memory *Memory) *Spare {
	return &Spare{make(chan struct{}, places), memory}
}

// Each calls fn for 0 to n-1 and returns the first error. After an error no
// further call begins, and running calls are canceled. At least one call runs at
// a time, and more while a place and size bytes are free for each.
func (s *Spare) Each(ctx context.Context, n int, size int64, fn func(ctx context.Context, i int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next atomic.Int64
	var wg together.Group
	defer wg.Wait()
	var work func()
	work = func() {
		for ctx.Err() == nil {
			i := next.Add(1) - 1
			if i >= int64(n) {
				return
			}
			if i+1 < int64(n) && s.take(size) {
				wg.Go(func() {
					defer s.give(size)
					work()
				})
			}
			if err := fn(ctx, int(i)); err != nil {
				cancel(err)
			}
		}
	}
	work()
	wg.Wait()
	return context.Cause(ctx)
}

func (s *Spare) take(size int64) bool {
	select {
	case s.places <- struct{}{}:
	default:
		return false
	}
	if s.memory.try(size) {
		return true
	}
	<-s.places
	return false
}

func (s *Spare) give(size int64) {
	s.memory.Give(size)
	<-s.places
}
