package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/engine/source"
	"github.com/zarrdb/zarrdb/serve"
	"github.com/zarrdb/zarrdb/serve/local"
	"github.com/zarrdb/zarrdb/txn"
)

// A database is open in one process at a time, and that process serves it. Commands that
// read versions alone ask that process for pages (through.go). Other commands that find
// the database open elsewhere have the other process run them: the command line, the
// directory and the standard files go there, and the exit code comes back.
//
//	run ─▶ attempt ──LockedError──▶ forward ─▶ socket ─▶ RunFor ─▶ attempt
//	          ▲                        │ no answer (not yet, or no more)
//	          └────────────────────────┘
//
// A process of another user runs no command, and another version of the program may not
// know it. Commands that change nothing then run here; a command that needs the whole index
// gets a copy of the index. If two processes have the two databases of a command open, the
// process with the database that is written runs the command, and reads the other database so.
//
// Where files do not pass between processes, as on Windows, commands that only read run
// here too. The others go to the other process without standard input, and their output
// comes with the reply.

// run is the whole program but for the process around it.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	var h local.Handover
	var told sync.Once
	for {
		a := attempt(ctx, args, stdin, stdout, stderr)
		held := a.servedBy()
		if held == nil && !a.left() {
			return a.report(ctx, stderr)
		}
		slow := func() {
			told.Do(func() {
				note(a.root, "zarrdb: waiting for %s, which has the database open and does not answer", holder(held))
			})
		}
		if held != nil {
			a.err = held
		}
		if held != nil && held.Holder.PID != 0 {
			code, err := forward(ctx, held, local.Command{Args: args, Stdin: stdin, Stdout: stdout, Stderr: stderr}, slow)
			switch {
			case err == nil:
				return code
			case errors.Is(err, local.ErrVersion), errors.Is(err, errors.ErrUnsupported), errors.Is(err, serve.ErrDenied):
				code, again := runApart(ctx, held, err, args, stdin, stdout, stderr)
				if !again {
					return code
				}
				a.err = local.ErrGone
			case errors.Is(err, local.ErrUnknown): // standard input may be read, output written, or a commit made
				a.err = unknownError{held}
				return a.report(ctx, stderr)
			case !errors.Is(err, local.ErrGone) && !errors.Is(err, txn.ErrClosed) && err != error(held):
				a.err = err // waiting does not help
				return a.report(ctx, stderr)
			case errors.Is(err, os.ErrDeadlineExceeded):
				a.err = fmt.Errorf("%w: %w", held, err)
			}
		}
		if err := h.Again(ctx, a.err); err != nil {
			a.err = err
			return a.report(ctx, stderr)
		}
	}
}

// runApart runs a command in this process, which reads the database of another one
// through its socket; refused is why that one does not run the command. again says that
// the other process ended before the command wrote anything.
func runApart(ctx context.Context, held *engine.LockedError, refused error, args []string, stdin io.Reader, stdout, stderr io.Writer) (code int, again bool) {
	from := callerOf(ctx)
	from.apart = true
	ctx = context.WithValue(ctx, callerKey{}, from)
	a := attempt(ctx, args, stdin, stdout, stderr)
	var locked *engine.LockedError
	switch {
	case a.err == nil:
	case a.left():
		return 0, true
	case a.out.wrote || a.in != nil && a.in.used:
	case errors.As(a.err, &locked) && locked.Dir == held.Dir && errors.Is(refused, errors.ErrUnsupported):
		// It does more than to read a version. That process may run it without our files.
		code, err := forward(ctx, held, local.Command{Args: args, Stdin: stdin, Stdout: stdout, Stderr: stderr, Buffered: true}, func() {})
		switch {
		case err == nil:
			return code, false
		case errors.Is(err, local.ErrUnknown):
			a.err = unknownError{held}
		case errors.Is(err, local.ErrGone):
			return 0, true
		default:
			a.err = fmt.Errorf("%w, which does not run this command: %w", locked, err)
		}
	case errors.As(a.err, &locked) && locked.Dir != held.Dir && local.Reachable(locked):
		// The process that has the other database open may run it.
		code, err := forward(ctx, locked, local.Command{Args: args, Passed: true, Stdin: stdin, Stdout: stdout, Stderr: stderr}, func() {})
		if err == nil {
			return code, false
		}
		a.err = &apartError{locked, err}
	case locked != nil:
		a.err = fmt.Errorf("%w, which does not run this command: %w", locked, refused)
	}
	return a.report(ctx, stderr), false
}

// RunFor runs a command line for another process; see [serve.Options].
func RunFor(ctx context.Context, c *serve.Command) int {
	from := caller{dir: c.Dir, env: c.Env, held: append(open.all(), c.Held...), apart: c.Passed, view: c.View, node: c.Path}
	if err := from.unlike(c.Args); err != nil {
		fmt.Fprintln(c.Stderr, "zarrdb:", err)
		return exitFailed
	}
	ctx = source.OnFollow(context.WithValue(ctx, callerKey{}, from), from.unlikeReference)
	a := attempt(ctx, c.Args, c.Stdin, c.Stdout, c.Stderr)
	var locked *engine.LockedError
	if errors.As(a.err, &locked) && locked.Holder.PID == os.Getpid() && !a.out.wrote {
		return serve.RunElsewhere // it is open here to be read only
	}
	if c.OtherBuild && errors.As(a.err, &usageError{}) && !a.out.wrote {
		return serve.RunUnknown
	}
	if locked != nil && local.Reachable(locked) && !a.out.wrote && (a.in == nil || !a.in.used) && c.View == nil {
		switch code, err := passOn(ctx, locked, c); {
		case err == nil:
			return code
		case errors.Is(err, local.ErrUnknown):
			a.err = unknownError{locked}
		case errors.Is(err, local.ErrGone):
			return serve.RunElsewhere // it begins or ends; the client tries again
		default:
			a.err = &apartError{locked, err}
		}
	}
	if errors.Is(a.err, context.Canceled) && errors.Is(context.Cause(ctx), local.ErrGone) {
		// It is not the client that interrupts, but this process that ends.
		begun := a.out.wrote || a.in != nil && a.in.used || errors.Is(a.err, engine.ErrResumable) || errors.As(a.err, &againError{})
		if !begun {
			return serve.RunElsewhere
		}
		a.err = fmt.Errorf("process %d had the database open and was ended while it ran this command: %s; run it again",
			os.Getpid(), message(a.err, exitInterrupted))
	}
	if errors.Is(a.out.err, syscall.EPIPE) {
		return exitPipe // in a process of its own the signal would have ended it
	}
	return a.report(ctx, c.Stderr)
}

// passOn has the process run the command that has the other database of it open. That one
// reads the database of this process through its socket. It cannot pass the command on
// again.
func passOn(ctx context.Context, held *engine.LockedError, c *serve.Command) (int, error) {
	if c.Passed {
		return 0, errors.ErrUnsupported
	}
	buffered := c.Dir != "" // a client's, and no report of this process
	return forward(ctx, held, local.Command{Args: c.Args, Passed: true, Buffered: buffered, Stdin: c.Stdin, Stdout: c.Stdout, Stderr: c.Stderr}, func() {})
}

// apartError is the error of a command about databases that different processes have open,
// of which it does more than to read a version of one.
type apartError struct {
	held *engine.LockedError
	err  error
}

func (e *apartError) Error() string {
	return fmt.Sprintf("%s is in use by %s, and another process has the other database open; this command needs both in one process: end one of the processes, or let one serve both (zarrdb serve DB OTHER --local)",
		filepath.Dir(e.held.Dir), holder(e.held))
}

func (e *apartError) Unwrap() []error { return []error{e.held, e.err} }

// servedBy returns the error that says which other process can run the command, or
// that has an unknown one (PID 0). It is nil if none can: there is none, or a part of
// the work is done.
func (a *attempted) servedBy() *engine.LockedError {
	var locked *engine.LockedError
	var own ownError
	if errors.As(a.err, &locked) && (local.Reachable(locked) || locked.Holder.PID == 0) && len(a.from.held) == 0 && !a.out.wrote && !errors.As(a.err, &own) {
		return locked
	}
	return nil
}

// left reports whether the command can begin again because the process ended through which
// the command read a database: the command has written nothing and read no input.
func (a *attempted) left() bool {
	return errors.Is(a.err, local.ErrGone) && !a.out.wrote && (a.in == nil || !a.in.used)
}

// ownError is the error of a command that no other process can run.
type ownError struct{ error }

func (e ownError) Unwrap() error { return e.error }

// unknownError is the error of a command that another process was running when it
// ended. Running it again could do it twice, or with half of its input.
type unknownError struct{ held *engine.LockedError }

func (e unknownError) Error() string {
	return fmt.Sprintf("%s had %s open and ended while it ran this command; see in the log what was done before you run it again",
		holder(e.held), filepath.Dir(e.held.Dir))
}

// slowAnswer is the time to wait for an answer to a connection before a note to
// the user.
const slowAnswer = 3 * time.Second

// forward has the process that has a database open run the command. An error says
// that it did not begin to, unless it is local.ErrUnknown. slow is called if the process
// takes long to answer. The directory and the environment are those of the caller.
func forward(ctx context.Context, held *engine.LockedError, cmd local.Command, slow func()) (int, error) {
	waiting := time.AfterFunc(slowAnswer, slow)
	c, err := local.Dial(ctx, held.Holder.Socket, &local.DialOptions{Dir: filepath.Dir(held.Dir)})
	waiting.Stop()
	if err != nil {
		return 0, errors.Join(local.ErrGone, err)
	}
	defer c.Close()
	cmd.Dir, cmd.Env = callerOf(ctx).dir, callerOf(ctx).env
	code, err := c.Run(ctx, cmd)
	if errors.Is(err, engine.ErrMoved) { // it did not begin, and ends
		err = errors.Join(local.ErrGone, err)
	}
	if err == nil && code == serve.RunElsewhere {
		err = held
	}
	return code, err
}

// Serving is [engine.Options].Serve: other processes of this machine use the database
// while this one has it open, and run commands here, which may be about several
// databases that it has open. ended is as for [local.Serving].
func Serving(o *local.Options, ended func(error)) func(dir string) (*engine.Serving, error) {
	return func(dir string) (*engine.Serving, error) {
		s, err := local.Serving(dir, serve.Options{Run: RunFor}, o, ended)
		if s == nil || err != nil {
			return s, err
		}
		start, stop := s.Start, s.Stop
		var db *engine.DB
		s.Start = func(opened *engine.DB) error {
			db = opened
			open.add(db)
			err := start(db)
			if err != nil {
				open.remove(db)
			}
			return err
		}
		s.Stop = func() error {
			defer open.remove(db)
			return stop()
		}
		return s, nil
	}
}

// serveLocally returns Serving for commands. Commands of other processes
// continue when this command has ended, but only for a short time after the end
// of ctx.
func serveLocally(ctx context.Context) func(dir string) (*engine.Serving, error) {
	return Serving(&local.Options{Hurry: ctx.Done()}, nil)
}

// open are the databases that this process has open and serves.
var open databases

type databases struct {
	mu  sync.Mutex
	dbs []*engine.DB
}

func (d *databases) add(db *engine.DB) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.dbs = append(d.dbs, db)
}

func (d *databases) remove(db *engine.DB) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.dbs = slices.DeleteFunc(d.dbs, func(x *engine.DB) bool { return x == db })
}

func (d *databases) all() []*engine.DB {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.dbs)
}
