// Package zarrdb opens a versioned database of Zarr arrays that lives in a directory,
// or joins the process that has it open.
//
//	program ──▶ Open ──▶ DB ──┬─ no process has it open: package engine, and this
//	                          │  process serves the others
//	                          └─ another process has it open: its socket
//
// Two programs share a database without knowing of each other. When the program that
// has it open ends, the next program that needs it takes its place: snapshots go on,
// and a session goes on with everything that was acknowledged.
//
// A [Snapshot] is one version, a [Session] a transaction. Both are views of keys
// (package kv) and hierarchies of arrays and groups (package zarr), and the same in every
// process. Rarer operations, such as gc, push or import, are methods of package engine
// ([DB.Engine]).
package zarrdb

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"time"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/serve/local"
	"github.com/zarrdb/zarrdb/txn"
)

// Errors for [errors.Is].
var (
	ErrNotFound = engine.ErrNotFound // a node, key, branch, tag, commit, session or database that is not there
	ErrExists   = engine.ErrExists   // a name or path that is taken
	ErrConflict = engine.ErrConflict // another commit changed the same; *[txn.ConflictError] lists it
	ErrCorrupt  = engine.ErrCorrupt  // stored bytes that fail their checks
	ErrLocked   = engine.ErrLocked   // another process has the database open, and does not serve it
	ErrReadOnly = engine.ErrReadOnly // a write to a database or version that was opened to read
	ErrClosed   = engine.ErrClosed   // use after Close
	ErrMoved    = engine.ErrMoved    // the directory was moved, removed or replaced while it was open; open it again
	ErrGone     = local.ErrGone      // the process that has the database open has ended, and none took its place
)

// Options configure [Open]. nil and the zero value work.
type Options struct {
	// Create makes the database if the directory holds none.
	Create bool
	// ReadOnly refuses writes through this DB. It is set where this process has no
	// permission to write to the directory.
	ReadOnly bool
	// Private keeps other processes out for as long as this one has the database
	// open.
	Private bool
	// Wait is how long to wait for a process that has the database open and does not
	// serve it, or does not answer. By default the first kind is not waited for, and the
	// second for at most 30 s.
	Wait time.Duration
	// Engine are further options for when this process has the database open. The
	// fields above take precedence.
	Engine engine.Options
}

// DB is a database, open in this process or in another one. Safe for concurrent use;
// Close when done.
type DB struct{ in *engine.DB }

// Open opens the database in a directory, or joins the process that has it open, which
// may be this one. Errors: [ErrNotFound] if dir holds no database and Create is not set,
// [ErrLocked], [engine.ErrName] if Create is set and dir is a URL or names a place in a
// database.
func Open(ctx context.Context, dir string, o *Options) (*DB, error) {
	if o == nil {
		o = &Options{}
	}
	to := local.OpenOptions{Engine: o.Engine, Share: true}
	to.Engine.Create, to.Engine.ReadOnly, to.Engine.LockWait = o.Create, o.ReadOnly, o.Wait
	if !o.Private {
		to.Serve = func(dir string) (*engine.Serving, error) { return local.Serving(dir, nil, nil) }
	}
	in, err := local.OpenOrRead(ctx, dir, to)
	if err != nil {
		if _, missing := os.Stat(dir); errors.Is(missing, fs.ErrNotExist) && errors.Is(err, ErrNotFound) {
			err = fmt.Errorf("%w; Options.Create makes one", err)
		}
		return nil, err
	}
	return &DB{in}, nil
}

// Close closes the database, or leaves the process that has it open. Where this
// process had it open, it waits for running requests of other processes.
func (db *DB) Close() error { return db.in.Close() }

// Here reports whether this process has the database open, or has taken the place of the
// process that had.
func (db *DB) Here() bool { return local.Holds(db.in) }

// Engine returns the database as package engine has it, with all that it can do, whichever
// process has the database open. It ends with db.
func (db *DB) Engine() *engine.DB { return db.in }

// Resolve returns the commit that a revision names: a branch, a tag, the beginning of
// a commit id, REV~N, REV^N or BRANCH@{when}; "" is the branch main.
func (db *DB) Resolve(ctx context.Context, rev string) (*txn.Commit, error) {
	id, err := db.in.Resolve(ctx, rev)
	if err != nil {
		return nil, err
	}
	return db.in.Lookup(ctx, id)
}

// Log yields the commit that a revision names and the commits before it, newest
// first. It ends after the first error.
func (db *DB) Log(ctx context.Context, rev string) iter.Seq2[*txn.Commit, error] {
	return func(yield func(*txn.Commit, error) bool) {
		id, err := db.in.Resolve(ctx, rev)
		if err != nil {
			yield(nil, err)
			return
		}
		db.in.Log(ctx, id)(yield)
	}
}

// Diff yields the keys below prefix that differ between two revisions.
func (db *DB) Diff(ctx context.Context, from, to, prefix string) iter.Seq2[txn.Change, error] {
	return func(yield func(txn.Change, error) bool) {
		older, err := db.in.Resolve(ctx, from)
		var newer txn.CommitID
		if err == nil {
			newer, err = db.in.Resolve(ctx, to)
		}
		if err != nil {
			yield(txn.Change{}, err)
			return
		}
		db.in.Diff(ctx, older, newer, prefix)(yield)
	}
}

// Refs returns the branches and tags, by name.
func (db *DB) Refs(ctx context.Context) (branches, tags []txn.Ref, err error) {
	return db.in.Refs(ctx)
}

// CreateBranch makes a branch at a revision.
func (db *DB) CreateBranch(ctx context.Context, name, rev string) error {
	return db.at(ctx, rev, func(id txn.CommitID) error { return db.in.CreateBranch(ctx, name, id) })
}

// CreateTag makes a tag at a revision.
func (db *DB) CreateTag(ctx context.Context, name, rev string) error {
	return db.at(ctx, rev, func(id txn.CommitID) error { return db.in.CreateTag(ctx, name, id) })
}

// DeleteBranch deletes a branch. Its commits stay until they expire.
func (db *DB) DeleteBranch(ctx context.Context, name string) error {
	return db.in.DeleteBranch(ctx, name)
}

// DeleteTag deletes a tag.
func (db *DB) DeleteTag(ctx context.Context, name string) error {
	return db.in.DeleteTag(ctx, name)
}

// Keep keeps the version that a revision names from expiring, under a name, until [DB.EndKept]: for a job that lasts
// for days, or begins later. It replaces the version that was kept under the name before. Copies of the database do not
// keep versions. Errors: [txn.ErrRefName], [txn.ErrNoRef], [txn.ErrExpired].
func (db *DB) Keep(ctx context.Context, name, rev string) error {
	return db.at(ctx, rev, func(id txn.CommitID) error { return db.in.KeepVersion(ctx, name, id, "") })
}

// EndKept ends [DB.Keep] for a name, so that the version may expire. If no version is kept under the name, the error is
// [txn.ErrNoRef].
func (db *DB) EndKept(ctx context.Context, name string) error {
	return db.in.EndKept(ctx, name)
}

// KeptVersions returns the versions that are kept by name, sorted by name. They are the caller's.
func (db *DB) KeptVersions(ctx context.Context) ([]*txn.KeptVersion, error) {
	return db.in.KeptVersions(ctx)
}

// Reset moves a branch to a revision. The versions that it named before stay in its reflog.
func (db *DB) Reset(ctx context.Context, branch, rev string) error {
	return db.at(ctx, rev, func(id txn.CommitID) error {
		_, err := db.in.Reset(ctx, branch, id)
		return err
	})
}

// Merge brings the changes of a revision onto a branch, "" is main, as a commit with both as
// parents. If the revision is in the history of the branch already nothing is done and the
// head returned. Changes of both sides that o.Choices do not decide, "ours" being the
// branch, are a *[txn.ConflictError], and the branch does not move. An empty message is
// "merge" and the revision.
func (db *DB) Merge(ctx context.Context, branch, rev string, o CommitOptions) (c *txn.Commit, err error) {
	if o.Message == "" {
		o.Message = "merge " + rev
	}
	err = db.at(ctx, rev, func(id txn.CommitID) (err error) {
		c, err = db.in.Merge(ctx, branch, id, o)
		return err
	})
	return c, err
}

// at calls fn with the commit that a revision names.
func (db *DB) at(ctx context.Context, rev string, fn func(txn.CommitID) error) error {
	id, err := db.in.Resolve(ctx, rev)
	if err != nil {
		return err
	}
	return fn(id)
}
