package cli

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/zarrdb/zarrdb/engine"
)

// sameSignal is the time after the first signal in which others belong to it: "timeout" signals
// the process and then its group, and a terminal that closes does so more than once.
const sameSignal = 100 * time.Millisecond

// patience is the time that a command with nothing to save has after the first signal. Then the
// process ends, whatever it computes.
const patience = 700 * time.Millisecond

// endsItself is set by commands that look at their context again and again: those that serve, or
// whose progress is counted. They may have something to save or to clean up.
var endsItself atomic.Bool

// opened are the databases that commands of this process have open, discarded the number of their
// sessions that an interrupted command does not keep.
var (
	openedMu  sync.Mutex
	opened    []*engine.DB
	discarded atomic.Int64
)

// noteOpen adds a database to those that the process has open.
func noteOpen(db *engine.DB) {
	openedMu.Lock()
	defer openedMu.Unlock()
	opened = append(slices.DeleteFunc(opened, (*engine.DB).Closed), db)
}

// losesNothing reports whether the process may end without saving anything: no session is open
// that it or another process wants to keep.
func losesNothing() bool {
	openedMu.Lock()
	defer openedMu.Unlock()
	sessions := -discarded.Load()
	for _, db := range opened {
		sessions += int64(db.OpenSessions())
	}
	return sessions <= 0 && !endsItself.Load()
}

// reload is called upon SIGHUP, instead of an end, if it is set.
var reload atomic.Pointer[func()]

// interruptible returns a context that the first SIGINT, SIGTERM or SIGHUP cancels, so that the
// command saves what can be continued. A command that loses nothing ends within a second. A later
// SIGINT or SIGTERM ends the process at once. SIGHUP stays ignored under nohup,
// and has a server that is not on a terminal read its keys and certificate again.
func interruptible() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) {
		signal.Notify(signals, syscall.SIGHUP)
	}
	go func() {
		for s := range signals {
			again := reload.Load()
			if s != syscall.SIGHUP || again == nil {
				break
			}
			(*again)()
		}
		first := time.Now()
		// The program that reads the output may have got the signal, too. Messages to it
		// must not end this process before it has saved.
		signal.Ignore(syscall.SIGPIPE)
		cancel()
		tick := time.NewTicker(patience)
		for {
			select {
			case s := <-signals:
				if s != syscall.SIGHUP && time.Since(first) > sameSignal {
					os.Exit(exitInterrupted)
				}
			case <-tick.C:
				if losesNothing() {
					fmt.Fprintln(os.Stderr, "zarrdb: interrupted")
					os.Exit(exitInterrupted)
				}
			}
		}
	}()
	return ctx
}
