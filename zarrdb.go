// Package zarrdb opens a versioned database of Zarr arrays that lives in a directory,
// or joins the process that has it open.
//
//	program ──▶ Open ──▶ DB ──┬─ no process has it open: package engine, and this
//	                          │  process serves the others
//	                          └─ another process has it open: its socket
//
// Two programs share a database without knowing of each other. When the one that has
// it open ends, the next one that needs it takes its place: snapshots go on, and a
// session goes on with everything that was acknowledged.
//
// A [Snapshot] is one version, a [Session] a transaction. Both are views of keys
// (package kv) and hierarchies of arrays and groups (package zarr), wherever the
// database is open. What is needed less often, such as gc, push or import, is a
// command line ([DB.Run]); programs that have the database open themselves have all
// of package engine ([DB.Engine]).
package zarrdb

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"net"
	"os"
	"sync"
	"time"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/internal/cli"
	"github.com/zarrdb/zarrdb/serve"
	"github.com/zarrdb/zarrdb/serve/local"
	"github.com/zarrdb/zarrdb/txn"
)

// Errors for [errors.Is].
var (
	ErrNotFound = engine.ErrNotFound // a node, key, branch, tag, commit, session or database that is not there
	ErrExists   = engine.ErrExists   // a name or path that is taken
	ErrConflict = engine.ErrConflict // what another commit changed too; *[txn.ConflictError] lists it
	ErrCorrupt  = engine.ErrCorrupt  // stored bytes that fail their checks
	ErrLocked   = engine.ErrLocked   // another process has the database open, and does not serve it
	ErrReadOnly = engine.ErrReadOnly // a write to what was opened to read
	ErrClosed   = engine.ErrClosed   // use after Close
	ErrMoved    = engine.ErrMoved    // the directory was moved, removed or replaced while it was open; open it again
	ErrGone     = local.ErrGone      // the process that has the database open has ended, and none took its place
)

// Options configure [Open]. nil and the zero value work.
type Options struct {
	// Create makes the database if the directory holds none.
	Create bool
	// ReadOnly refuses writes through this DB. A user who may not write to the
	// directory needs it.
	ReadOnly bool
	// Private keeps other processes out for as long as this one has the database
	// open.
	Private bool
	// Wait is how long to wait for a process that has the database open and does not
	// serve it; default not at all.
	Wait time.Duration
	// Engine are further options for when this process has the database open. Those
	// above take precedence.
	Engine engine.Options
}

// DB is a database, open in this process or in another one. Safe for concurrent use;
// Close when done.
type DB struct {
	dir string
	o   Options

	mu     sync.Mutex
	held   *engine.DB    // this process has it open
	socket string        // where this process serves it
	client *local.Client // through the process that has it open, if this one had not
	peer   *engine.DB    // reads versions through client; nil before the first read
	closed bool
	id     txn.Identity // of the database since it was opened first
}

// Open opens the database in a directory, or joins the process that has it open, which
// may be this one. Errors: [ErrNotFound] if dir holds no database and Create is not set,
// [ErrLocked], [engine.ErrName] if Create is set and dir is a URL or names a place in a
// database.
func Open(ctx context.Context, dir string, o *Options) (*DB, error) {
	db := &DB{dir: dir}
	if o != nil {
		db.o = *o
	}
	db.mu.Lock()
	defer db.mu.Unlock()
	h := local.Handover{Wait: db.o.Wait}
	for {
		conn, locked, err := db.join(ctx)
		if err == nil && conn == nil { // this process has it open
			return db, nil
		}
		if err == nil {
			if db.client, err = local.NewClient(ctx, conn, &local.DialOptions{Dir: dir, Redial: db.redial}); err == nil {
				db.id = db.client.Identity()
				return db, nil
			}
			err = fmt.Errorf("open %s: %w (%v)", dir, err, locked)
		}
		if err := h.Again(ctx, err); err != nil {
			if _, missing := os.Stat(dir); errors.Is(missing, fs.ErrNotExist) && errors.Is(err, ErrNotFound) {
				err = fmt.Errorf("%w; Options.Create makes one", err)
			}
			return nil, err
		}
	}
}

// join opens the database, or connects to the process that has it open, which locked
// describes. The connection is nil where this process has opened it. db.mu is held.
func (db *DB) join(ctx context.Context) (conn net.Conn, locked *engine.LockedError, err error) {
	held, err := engine.Open(ctx, db.dir, db.options())
	if err == nil {
		if db.id.Differs(held.Identity()) {
			err := fmt.Errorf("%w: another database is at %s; open it again", ErrMoved, db.dir)
			return nil, nil, errors.Join(err, held.Close())
		}
		db.held, db.id = held, held.Identity()
		return nil, nil, nil
	}
	if !errors.As(err, &locked) {
		return nil, nil, err
	}
	if local.Reachable(locked) || locked.Own && locked.Holder.Socket != "" {
		conn, failed := local.Connect(ctx, locked.Holder.Socket)
		if failed == nil {
			return conn, locked, nil
		}
		err = errors.Join(err, failed)
	}
	return nil, nil, fmt.Errorf("open %s: %w", db.dir, err)
}

// redial connects to the process that has the database open now. If none has, it is
// this one from here on; it then talks to itself, so that what was opened through
// another process goes on.
func (db *DB) redial(ctx context.Context) (net.Conn, error) {
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.closed {
		return nil, ErrClosed
	}
	if db.held == nil {
		if conn, _, err := db.join(ctx); conn != nil || err != nil {
			return conn, err
		}
	}
	var d net.Dialer
	return d.DialContext(ctx, "unix", db.socket)
}

// options are those for opening the database in this process.
func (db *DB) options() *engine.Options {
	o := db.o.Engine
	o.Create, o.ReadOnly = db.o.Create && db.id == (txn.Identity{}), db.o.ReadOnly
	if !db.o.Private {
		o.Serve = func(dir string) (*engine.Serving, error) {
			s, err := cli.Serving(nil, nil)(dir)
			if s != nil {
				db.socket = s.Socket
			}
			return s, err
		}
	}
	return &o
}

// Close closes the database, or leaves the process that has it open. Where this
// process had it open, it waits for requests of others that are running.
func (db *DB) Close() error {
	db.mu.Lock()
	held, client, peer := db.held, db.client, db.peer
	db.closed, db.held, db.client, db.peer = true, nil, nil, nil
	db.mu.Unlock()
	var errs []error
	if peer != nil {
		errs = append(errs, peer.Close())
	}
	if client != nil {
		errs = append(errs, client.Close())
	}
	if held != nil {
		errs = append(errs, held.Close())
	}
	return errors.Join(errs...)
}

// Engine returns the database as package engine has it, with all that it can do, or
// nil if another process has it open.
func (db *DB) Engine() *engine.DB {
	held, _, _ := db.at()
	return held
}

// at returns where the database is open: one of both.
func (db *DB) at() (*engine.DB, *local.Client, error) {
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.closed {
		return nil, nil, fmt.Errorf("database %s: %w", db.dir, ErrClosed)
	}
	return db.held, db.client, nil
}

// Run runs a command line of the program zarrdb, without the name of the program, in
// the process that has the database open, and returns its exit code. The command
// names the database by its path. Files that are nil are those of this process. "zarrdb help"
// lists the commands.
func (db *DB) Run(ctx context.Context, args []string, stdin, stdout, stderr *os.File) (code int, err error) {
	held, client, err := db.at()
	if err != nil {
		return 0, err
	}
	stdin, stdout, stderr = cmp.Or(stdin, os.Stdin), cmp.Or(stdout, os.Stdout), cmp.Or(stderr, os.Stderr)
	if held == nil {
		return client.Run(ctx, local.Command{Args: args, Stdin: stdin, Stdout: stdout, Stderr: stderr})
	}
	return cli.RunFor(ctx, &serve.Command{Args: args, Stdin: stdin, Stdout: stdout, Stderr: stderr, Held: []*engine.DB{held}}), nil
}

// reads returns the engine that reads the database in this process, whichever process has the
// database open.
func (db *DB) reads() (*engine.DB, error) {
	db.mu.Lock()
	defer db.mu.Unlock()
	switch {
	case db.closed:
		return nil, fmt.Errorf("database %s: %w", db.dir, ErrClosed)
	case db.held != nil:
		return db.held, nil
	case db.peer == nil:
		peer, err := engine.OpenPeer(db.dir, db.id, db.client.Source(""), db.options())
		if err != nil {
			return nil, err
		}
		db.peer = peer
	}
	return db.peer, nil
}

// Resolve returns the commit that a revision names: a branch, a tag, the beginning of
// a commit id, REV~N, REV^N or BRANCH@{when}; "" is the branch main.
func (db *DB) Resolve(ctx context.Context, rev string) (*txn.Commit, error) {
	from, err := db.reads()
	if err != nil {
		return nil, err
	}
	id, err := from.Resolve(ctx, rev)
	if err != nil {
		return nil, err
	}
	return from.Lookup(ctx, id)
}

// Log yields the commit that a revision names and those before it, newest first. It
// ends after the first error.
func (db *DB) Log(ctx context.Context, rev string) iter.Seq2[*txn.Commit, error] {
	return func(yield func(*txn.Commit, error) bool) {
		from, err := db.reads()
		var id txn.CommitID
		if err == nil {
			id, err = from.Resolve(ctx, rev)
		}
		if err != nil {
			yield(nil, err)
			return
		}
		from.Log(ctx, id)(yield)
	}
}

// Diff yields the keys below prefix that differ between two revisions.
func (db *DB) Diff(ctx context.Context, from, to, prefix string) iter.Seq2[txn.Change, error] {
	return func(yield func(txn.Change, error) bool) {
		in, err := db.reads()
		var older, newer txn.CommitID
		if err == nil {
			older, err = in.Resolve(ctx, from)
		}
		if err == nil {
			newer, err = in.Resolve(ctx, to)
		}
		if err != nil {
			yield(txn.Change{}, err)
			return
		}
		in.Diff(ctx, older, newer, prefix)(yield)
	}
}

// Refs returns the branches and tags, by name.
func (db *DB) Refs(ctx context.Context) (branches, tags []txn.Ref, err error) {
	from, err := db.reads()
	if err != nil {
		return nil, nil, err
	}
	return from.PageSource().Refs(ctx)
}

// CreateBranch makes a branch at a revision.
func (db *DB) CreateBranch(ctx context.Context, name, rev string) error {
	return db.moveRef(ctx, serve.RefMove{Action: "create", Kind: "branch", Name: name, To: rev})
}

// CreateTag makes a tag at a revision.
func (db *DB) CreateTag(ctx context.Context, name, rev string) error {
	return db.moveRef(ctx, serve.RefMove{Action: "create", Kind: "tag", Name: name, To: rev})
}

// DeleteBranch deletes a branch. Its commits stay until they expire.
func (db *DB) DeleteBranch(ctx context.Context, name string) error {
	return db.moveRef(ctx, serve.RefMove{Action: "delete", Kind: "branch", Name: name})
}

// DeleteTag deletes a tag.
func (db *DB) DeleteTag(ctx context.Context, name string) error {
	return db.moveRef(ctx, serve.RefMove{Action: "delete", Kind: "tag", Name: name})
}

// Reset moves a branch to a revision. What it named before stays in its reflog.
func (db *DB) Reset(ctx context.Context, branch, rev string) error {
	return db.moveRef(ctx, serve.RefMove{Action: "reset", Kind: "branch", Name: branch, To: rev})
}

func (db *DB) moveRef(ctx context.Context, m serve.RefMove) error {
	held, client, err := db.writable()
	if err != nil {
		return err
	}
	if held == nil {
		return client.MoveRef(ctx, "", m)
	}
	t := serve.New(serve.Options{})
	defer t.Close(ctx)
	if err := t.AddDatabase("db", held); err != nil {
		return err
	}
	return t.MoveRef(ctx, serve.Owner(""), "db", m)
}

// Merge brings the changes of a revision onto a branch, "" is main, as a commit with both as
// parents. If the revision is in the history of the branch already nothing is done and the
// head returned. Changes of both sides that o.Choices do not decide, "ours" being the
// branch, are a *[txn.ConflictError], and the branch does not move. An empty message is
// "merge" and the revision.
func (db *DB) Merge(ctx context.Context, branch, rev string, o CommitOptions) (*txn.Commit, error) {
	held, client, err := db.writable()
	if err != nil {
		return nil, err
	}
	if branch == "" {
		branch = txn.MainBranch
	}
	if o.Message == "" {
		o.Message = "merge " + rev
	}
	if held == nil {
		return client.Merge(ctx, "", branch, rev, o.remote())
	}
	other, err := held.Resolve(ctx, rev)
	if err != nil {
		return nil, err
	}
	return held.Merge(ctx, branch, other, o.held())
}

// writable is at for requests that change something.
func (db *DB) writable() (*engine.DB, *local.Client, error) {
	if db.o.ReadOnly {
		return nil, nil, ErrReadOnly
	}
	return db.at()
}
