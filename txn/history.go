package txn

import (
	"context"
	"iter"
	"time"

	"github.com/zarrdb/zarrdb/txn/history"
)

type (
	// PathCommit is a commit that changed what is at and below a path.
	PathCommit = history.PathCommit
	// ChunkRun is consecutive chunks that one commit last changed.
	ChunkRun = history.ChunkRun
	// Bisection finds the first bad commit between good ones and a bad one with as few
	// tests as possible.
	Bisection = history.Bisection
	// Verdict is the result of a test of a version.
	Verdict = history.Verdict
	// EarlierKeys are keys of a node that [DB.Earlier] compares.
	EarlierKeys = history.Keys
	// Earlier is a version before a commit, seen from a node of the commit.
	Earlier = history.Earlier
)

// Verdicts for [Bisection.Mark].
const (
	// Good: the version does not have the change that is searched.
	Good = history.Good
	// Bad: it has the change.
	Bad = history.Bad
	// Skip: it cannot be tested.
	Skip = history.Skip
)

func (db *DB) versions() *history.Versions {
	return &history.Versions{Commit: db.Lookup, Kept: db.version, Space: db.space}
}

// Log yields a commit and its ancestors, children before parents, newest first
// among those that are not related.
func (db *DB) Log(ctx context.Context, from CommitID) iter.Seq2[*Commit, error] {
	return history.Ancestors(ctx, db.Lookup, []CommitID{from}, history.All)
}

// Ancestors yields commits, which get reads, and their ancestors, in the order of [DB.Log].
func Ancestors(ctx context.Context, get func(context.Context, CommitID) (*Commit, error), from []CommitID) iter.Seq2[*Commit, error] {
	return history.Ancestors(ctx, get, from, history.All)
}

// MergeBase returns the best common ancestor of two commits. If there are
// several, none of which is an ancestor of another, the error lists them.
func (db *DB) MergeBase(ctx context.Context, a, b CommitID) (CommitID, error) {
	return history.MergeBase(ctx, db.Lookup, a, b)
}

// History yields the ancestors of a commit, and itself, that changed any bytes
// at or below a path, newest first. With follow, arrays are followed to where they
// were renamed from, and groups by the arrays in them. See [history.Versions.OfPath].
func (db *DB) History(ctx context.Context, from CommitID, path string, follow bool) iter.Seq2[PathCommit, error] {
	return db.versions().OfPath(ctx, from, path, follow)
}

// Blame finds for each of some keys the commit that last changed its bytes, up
// to and including the commit at. Keys are relative to path, which is followed
// through renames; result i belongs to keys[i]. See [history.Versions.Blame].
func (db *DB) Blame(ctx context.Context, at CommitID, path string, keys []string) ([]*Commit, error) {
	return db.versions().Blame(ctx, at, path, keys)
}

// BlameRuns finds for places of keys the commits that last changed them. See
// [history.Versions.BlameRuns].
func (db *DB) BlameRuns(ctx context.Context, at CommitID, path string, n int64, place func(key string) (int64, bool), fn func(ChunkRun) bool) error {
	return db.versions().BlameRuns(ctx, at, path, n, place, fn)
}

// Earlier returns the versions before a commit that have a node of it, and which of some keys
// differ from them. See [history.Versions.Earlier].
func (db *DB) Earlier(ctx context.Context, c *Commit, path string, keys *EarlierKeys) (list []Earlier, expired bool, err error) {
	return db.versions().Earlier(ctx, c, path, keys)
}

// NewEarlierKeys returns keys for [DB.Earlier], relative to the node. Each must be in the list once.
func NewEarlierKeys(list []string) *EarlierKeys { return history.NewKeys(list) }

// Written returns since when a key has the value that it has in this version: the time of
// a commit on the branch's own history that gave the key this value. exact is false if
// the commit before has the same second. The error is kv.ErrNotFound if the key has no
// value. See [history.Writes.Since].
func (s *Snapshot) Written(ctx context.Context, key string) (at time.Time, exact bool, err error) {
	v, err := s.lookup(ctx, key)
	if err != nil {
		return at, false, err
	}
	return s.db.writes.Since(ctx, s.db.versions(), s.commit.ID, key, &v)
}

// Bisect begins a search for the first bad commit. Every good commit must be an
// ancestor of the bad one; none is fine, if there was nothing bad in the beginning.
func (db *DB) Bisect(ctx context.Context, good []CommitID, bad CommitID) (*Bisection, error) {
	return history.Bisect(ctx, db.Lookup, good, bad)
}
