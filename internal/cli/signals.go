package cli

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// sameSignal is the time after the first signal in which others belong to it: "timeout" signals
// the process and then its group, and a terminal that closes does so more than once.
const sameSignal = 100 * time.Millisecond

// interruptible returns a context that the first SIGINT, SIGTERM or SIGHUP cancels, so that the
// command saves what can be continued. A later SIGINT or SIGTERM ends the process at once.
// SIGHUP stays ignored under nohup.
func interruptible() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) {
		signal.Notify(signals, syscall.SIGHUP)
	}
	go func() {
		<-signals
		first := time.Now()
		// The program that reads the output may have got the signal, too. Messages to it
		// must not end this process before it has saved.
		signal.Ignore(syscall.SIGPIPE)
		cancel()
		for s := range signals {
			if s != syscall.SIGHUP && time.Since(first) > sameSignal {
				os.Exit(exitInterrupted)
			}
		}
	}()
	return ctx
}
