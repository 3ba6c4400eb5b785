package local

import (
	"cmp"
	"context"
	"errors"
	"os"
	"time"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/serve"
)

// Handover bounds the search for the process that has a database open. When that
// process ends, the next one takes its place; meanwhile connections fail and the lock
// is taken by a process that does not answer. So a failed try is repeated for a while:
//
//	var h local.Handover
//	for {
//		err := try()
//		if err == nil {
//			break
//		}
//		if err := h.Again(ctx, err); err != nil {
//			return err
//		}
//	}
//
// The zero value works. A Handover is for one goroutine and one search.
type Handover struct {
	// Wait, if not 0, bounds the wait for a process that has the database open. By default
	// one that does not serve the database is not waited for.
	Wait time.Duration

	begun time.Time // of the first failure
}

// The time after the first failure within which tries are repeated.
const (
	// A process that serves the database, and does not answer, begins or ends.
	waitServing = 30 * time.Second
	// Nothing listens on the socket, and it is not known whether the lock is taken.
	waitAbsent = 10 * time.Second
	// The lock is taken without a description: it was taken a moment ago, or will be
	// released in a moment. Or a reader has it, and was asked to give it up.
	waitUnnamed = 5 * time.Second

	shortestPause = time.Millisecond
	longestPause  = 100 * time.Millisecond
)

// Again waits a little and returns nil if the try that failed with err is worth to be
// repeated. Else it returns err, or the error of ctx if that has ended.
func (h *Handover) Again(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if h.begun.IsZero() {
		h.begun = time.Now()
	}
	waited, limit := time.Since(h.begun), h.limit(err)
	if waited >= limit {
		return err
	}
	pause := time.NewTimer(min(max(waited/4, shortestPause), longestPause, limit-waited))
	defer pause.Stop()
	select {
	case <-pause.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// left returns the part of Wait that has not passed, or 0 if Wait is 0.
func (h *Handover) left() time.Duration {
	if h.Wait == 0 || h.begun.IsZero() {
		return h.Wait
	}
	return max(h.Wait-time.Since(h.begun), shortestPause)
}

// limit returns the time within which a try that failed with err is repeated, 0
// for a final error.
func (h *Handover) limit(err error) time.Duration {
	var held *engine.LockedError
	switch {
	case errors.Is(err, serve.ErrDenied):
		return 0
	case errors.Is(err, os.ErrDeadlineExceeded): // that was waited for
		return 0
	case errors.As(err, &held) && (held.Holder.PID == 0 || held.Reader) && !held.Own:
		return cmp.Or(h.Wait, waitUnnamed)
	case errors.As(err, &held) && Reachable(held):
		return cmp.Or(h.Wait, waitServing)
	case held != nil && held.Own && held.Holder.Socket != "": // it is about to be served, or was closed
		return waitUnnamed
	case held != nil && held.Own: // this process would wait for itself
		return 0
	case held != nil:
		return h.Wait
	case errors.Is(err, ErrGone):
		return cmp.Or(h.Wait, waitServing)
	case absent(err):
		return cmp.Or(h.Wait, waitAbsent)
	}
	return 0
}

// Reachable reports whether the process that has a database open is another one of
// this machine, perhaps in another container, and serves the database on a socket.
func Reachable(held *engine.LockedError) bool {
	return held.Holder.Socket != "" && held.Holder.Here() && !held.Own
}
