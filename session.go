package zarrdb

import (
	"context"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/txn"
)

// A Session is a transaction on a branch: a hierarchy of arrays and groups, and a writeable
// view of keys. It sees its own writes, and no uncommitted writes of other sessions. It
// works in whatever process has the database open, and several processes may work in one
// session, by its ID. Safe for concurrent use; it ends with Commit or Abort.
type Session = engine.Session

// CommitOptions describe a commit, and decide its conflicts.
type CommitOptions = engine.CommitOptions

// Begin opens a session on a branch; "" is main.
func (db *DB) Begin(ctx context.Context, branch string) (*Session, error) {
	return db.in.Begin(ctx, branch)
}

// Resume takes up a session: one that is open, in whatever process, or as it was last
// saved.
func (db *DB) Resume(ctx context.Context, id txn.SessionID) (*Session, error) {
	return db.in.Join(ctx, id)
}

// Update runs fn in a session on a branch and commits its writes. If fn fails
// nothing is written and its error is returned. If another commit changed a key that
// fn changed or guards, the error is a *[txn.ConflictError]; [DB.Retry] calls fn again
// then.
func (db *DB) Update(ctx context.Context, branch, message string, fn func(*Session) error) (*txn.Commit, error) {
	return db.in.Update(ctx, branch, message, fn)
}

// Retry is Update that calls fn again, in a new session, after a conflict, with growing
// pauses, until it is committed, fails otherwise, or ctx ends.
func (db *DB) Retry(ctx context.Context, branch, message string, fn func(*Session) error) (*txn.Commit, error) {
	return db.in.Retry(ctx, branch, message, fn)
}
