// Package zarrdb opens a versioned database of Zarr arrays that lives in a directory,
// or joins the process that has it open.
//
//	program ──▶ Open ──▶ engine.DB ──┬─ no process has it open: this process has it,
//	                                 │  and serves the others
//	                                 └─ another process has it open: this one reads the
//	                                    files itself, and asks for the rest by a socket
//
// Two programs share a database without knowing of each other. When the program that
// has it open ends, the next program that needs it takes its place: snapshots go on,
// and a session goes on with everything that was acknowledged.
//
// An [engine.Snapshot] is one version, an [engine.Session] a transaction. Both are views of
// keys (package kv) and hierarchies of arrays and groups (package zarr), and the same in every
// process, as is all that an [engine.DB] can do.
package zarrdb

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/kv/index"
	"github.com/zarrdb/zarrdb/serve/local"
)

// Errors for [errors.Is].
var (
	ErrNotFound = engine.ErrNotFound // a node, key, branch, tag, commit, session or database that is not there
	ErrExists   = engine.ErrExists   // a name or path that is taken
	ErrConflict = engine.ErrConflict // another commit changed the same; *[engine.ConflictError] lists it
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
	// ReadOnly refuses writes through this [engine.DB]. It is set where this process has no
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

// Open opens the database in a directory, or joins the process that has it open, which
// may be this one. The URL of a remote, such as s3://bucket/weather, in place of a directory opens a cache of
// the remote, as the remote is now. It fetches what is read, and takes no writes. If the remote cannot be reached, it has what was
// read before, and Engine.Warn is called.
//
// ":memory:" makes a database in memory of its own, which no other process sees, and which goes when it is closed.
//
// Errors: [ErrNotFound] if dir holds no database and Create is not set,
// [ErrLocked], [engine.ErrName] if Create is set and dir is a URL or names a place in a
// database.
func Open(ctx context.Context, dir string, o *Options) (*engine.DB, error) {
	if o == nil {
		o = &Options{}
	}
	if dir == ":memory:" {
		in := o.Engine
		in.FS, in.Create, in.ReadOnly = index.MemFS(), true, o.ReadOnly
		return engine.Open(ctx, "memory-"+rand.Text(), &in)
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
	return in, nil
}

// Holds reports whether this process has the database open, or has taken the place of the
// process that had.
func Holds(db *engine.DB) bool { return local.Holds(db) }
