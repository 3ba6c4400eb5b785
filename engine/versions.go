package engine

import (
	"context"
	"iter"

	"github.com/zarrdb/zarrdb/txn"
)

// Types of versions that programs meet often. Package txn describes them.
type (
	// Commit is a version: its id, parents, time, author and message.
	Commit = txn.Commit
	// CommitID names a commit. Its String method prints it; [DB.Resolve] finds it.
	CommitID = txn.CommitID
	// CommitOptions describe a commit, and decide its conflicts.
	CommitOptions = txn.CommitOptions
	// ConflictError lists what two sides changed. It is [ErrConflict].
	ConflictError = txn.ConflictError
	// Change is one key that differs between two versions.
	Change = txn.Change
	// Ref is a branch or tag, and the commit that it names.
	Ref = txn.Ref
	// RefMove is an entry of the reflog of a branch or tag.
	RefMove = txn.RefMove
	// SessionID names a stored session.
	SessionID = txn.SessionID
	// SessionInfo describes a stored or open session.
	SessionInfo = txn.SessionInfo
)

// Dir returns the directory that the database was opened in.
func (db *DB) Dir() string { return db.store.Dir() }

// Here is [txn.DB.Here].
func (db *DB) Here() error { return db.store.Here() }

// Identity is [txn.DB.Identity].
func (db *DB) Identity() txn.Identity { return db.store.Identity() }

// Resolve turns a revision into a commit: a branch, a tag, a prefix of at least
// 4 digits of a commit id, or "" for the branch main; REV~N is the N-th first
// parent, REV^N the N-th parent of a merge, REV@{when} the entry of the reflog
// at that time. The error is ErrNotFound for an unknown revision.
// [txn.DB.Resolve] has the grammar.
func (db *DB) Resolve(ctx context.Context, rev string) (CommitID, error) {
	return db.store.Resolve(ctx, rev)
}

// Lookup reads one commit by its full id, or returns ErrNotFound. Its slices and
// maps must not be changed.
func (db *DB) Lookup(ctx context.Context, id CommitID) (*Commit, error) {
	return db.store.Lookup(ctx, id)
}

// Head returns the commit that a branch ("" is main) names, or ErrNotFound.
func (db *DB) Head(branch string) (CommitID, error) { return db.store.Head(branch) }

// Branches lists the branches by name.
func (db *DB) Branches() []Ref { return db.store.Branches() }

// CreateBranch makes a branch at a commit, at the same cost for any size. The
// error is ErrExists if the name exists.
func (db *DB) CreateBranch(ctx context.Context, name string, at CommitID) error {
	return db.store.CreateBranch(ctx, name, at)
}

// DeleteBranch removes a branch. Its commits stay until they are collected; the
// reflog still names them.
func (db *DB) DeleteBranch(name string) error { return db.store.DeleteBranch(name) }

// Reset moves a branch ("" is main) to any commit. Sessions that began on it see a
// conflict when they commit, unless their base is an ancestor of the new head.
func (db *DB) Reset(ctx context.Context, branch string, to CommitID) (RefMove, error) {
	return db.store.Reset(ctx, branch, to)
}

// Reflog yields the moves of a branch ("" is main), newest first. Branches that
// were deleted keep theirs.
func (db *DB) Reflog(ctx context.Context, branch string) iter.Seq2[RefMove, error] {
	return db.store.Reflog(ctx, branch)
}

// UndoBranch undoes the last move of a branch ("" is main). That is a move too,
// so that a second undo undoes the first. ErrNotFound if there is no move to
// undo.
func (db *DB) UndoBranch(ctx context.Context, branch string) (RefMove, error) {
	return db.store.UndoBranch(ctx, branch)
}

// Tags lists the tags by name.
func (db *DB) Tags() []Ref { return db.store.Tags() }

// CreateTag makes a tag, which never moves. A name that is taken is ErrExists.
func (db *DB) CreateTag(ctx context.Context, name string, at CommitID) error {
	return db.store.CreateTag(ctx, name, at)
}

// DeleteTag removes a tag.
func (db *DB) DeleteTag(name string) error { return db.store.DeleteTag(name) }

// TagReflog is [DB.Reflog] of a tag: where it was made, and that it was deleted.
func (db *DB) TagReflog(ctx context.Context, tag string) iter.Seq2[RefMove, error] {
	return db.store.TagReflog(ctx, tag)
}

// UndoTag is [DB.UndoBranch] for a tag.
func (db *DB) UndoTag(ctx context.Context, tag string) (RefMove, error) {
	return db.store.UndoTag(ctx, tag)
}

// Sessions lists the sessions that can be resumed or are open, oldest first.
func (db *DB) Sessions(ctx context.Context) ([]SessionInfo, error) { return db.store.Sessions(ctx) }

// Log yields a commit and its ancestors, children before parents, newest first
// among those that are not related.
func (db *DB) Log(ctx context.Context, from CommitID) iter.Seq2[*Commit, error] {
	return db.store.Log(ctx, from)
}

// History yields the ancestors of a commit, and itself, that changed bytes at or
// below a path, newest first. With follow, arrays are followed to where they were
// renamed from, and groups by the arrays in them.
func (db *DB) History(ctx context.Context, from CommitID, path string, follow bool) iter.Seq2[txn.PathCommit, error] {
	return db.store.History(ctx, from, path, follow)
}

// Bisect begins a search for the first bad commit. Every good commit must be an
// ancestor of the bad one; with no good commit, the search goes back to the first.
func (db *DB) Bisect(ctx context.Context, good []CommitID, bad CommitID) (*txn.Bisection, error) {
	return db.store.Bisect(ctx, good, bad)
}

// Diff yields the keys below prefix that differ between two versions; [DB.NodeChanges]
// sums them up by node. Equal parts are skipped whole, so the cost is that of the
// changes.
func (db *DB) Diff(ctx context.Context, from, to CommitID, prefix string) iter.Seq2[Change, error] {
	return db.store.Diff(ctx, from, to, prefix)
}

// Merge brings the changes of another branch, tag or commit onto a branch, as a
// commit with both as parents. Changes of both sides that o.Choices do not
// decide are a *[ConflictError], and the branch does not move. If other is an
// ancestor of the head, nothing is done and the head returned. See
// [txn.DB.Merge].
func (db *DB) Merge(ctx context.Context, branch string, other CommitID, o CommitOptions) (*Commit, error) {
	return db.store.Merge(ctx, branch, other, o)
}

// Rebase repeats the commits of a branch that upstream has not on top of upstream,
// or of o.Onto, and moves the branch to the last; all of it or nothing. The new head
// is returned. See [txn.DB.Rebase].
func (db *DB) Rebase(ctx context.Context, branch string, upstream CommitID, o txn.RebaseOptions) (*Commit, error) {
	return db.store.Rebase(ctx, branch, upstream, o)
}

// Revert undoes one commit on a branch by a new commit. parent chooses, from 1 on,
// which parent of a merge commit to go back to; 0 is for commits with one.
func (db *DB) Revert(ctx context.Context, branch string, id CommitID, parent int, o CommitOptions) (*Commit, error) {
	return db.store.Revert(ctx, branch, id, parent, o)
}

// RevertTo makes a commit on a branch that holds what another version holds. See
// [txn.DB.RevertTo].
func (db *DB) RevertTo(ctx context.Context, branch string, to CommitID, o CommitOptions) (*Commit, error) {
	return db.store.RevertTo(ctx, branch, to, o)
}

// CherryPick repeats on a branch what one commit changed elsewhere; parent is as for
// [DB.Revert].
func (db *DB) CherryPick(ctx context.Context, branch string, id CommitID, parent int, o CommitOptions) (*Commit, error) {
	return db.store.CherryPick(ctx, branch, id, parent, o)
}
