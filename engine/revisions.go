package engine

import (
	"context"
	"iter"

	"github.com/zarrdb/zarrdb/txn"
)

// Versions returns the database without its arrays: commits by their ids, and what servers and
// tools of this module need.
func (db *DB) Versions() *txn.DB { return db.store }

// Resolve turns a revision into a commit:
//
//	rev  = base [ "@{" when "}" ] *( "~" [N] | "^" [N] )
//	base = branch | tag | commit id prefix of at least 4 digits | "" for main
//	when = N moves ago | time | age: the branch or tag as the reflog saw it
//	       then, which still knows those that were deleted; at times before
//	       it was copied from elsewhere, by the times of its commits
//
// "~N" is the N-th first parent, "^N" the N-th parent of a merge. Times are as
// for [txn.ParseTime], ages as for [txn.ParseAge]. A name that is both is a branch before
// a tag before a commit. An expired version that a snapshot or a peer has open is found by its
// full id.
func (db *DB) Resolve(ctx context.Context, rev string) (CommitID, error) {
	return db.store.Resolve(ctx, rev)
}

// resolved calls fn with the commit that a revision names.
func resolved[T any](ctx context.Context, db *DB, rev string, fn func(CommitID) (T, error)) (v T, err error) {
	id, err := db.store.Resolve(ctx, rev)
	if err != nil {
		return v, err
	}
	return fn(id)
}

// Lookup returns the commit that a revision names; see [DB.Resolve]. Its slices and maps must not be
// changed.
func (db *DB) Lookup(ctx context.Context, rev string) (*Commit, error) {
	return resolved(ctx, db, rev, func(id CommitID) (*Commit, error) { return db.store.Lookup(ctx, id) })
}

// Log yields the commit that a revision names and its ancestors, children before parents, newest
// first among those that are not related. It ends after the first error.
func (db *DB) Log(ctx context.Context, rev string) iter.Seq2[*Commit, error] {
	return func(yield func(*Commit, error) bool) {
		id, err := db.store.Resolve(ctx, rev)
		if err != nil {
			yield(nil, err)
			return
		}
		db.store.Log(ctx, id)(yield)
	}
}

// Diff yields the keys below prefix that differ between two revisions. Equal parts are skipped
// whole, so the cost is that of the changes. It ends after the first error.
func (db *DB) Diff(ctx context.Context, from, to, prefix string) iter.Seq2[Change, error] {
	return func(yield func(Change, error) bool) {
		older, err := db.store.Resolve(ctx, from)
		var newer CommitID
		if err == nil {
			newer, err = db.store.Resolve(ctx, to)
		}
		if err != nil {
			yield(Change{}, err)
			return
		}
		db.store.Diff(ctx, older, newer, prefix)(yield)
	}
}

// MergeBase returns the best common ancestor of two revisions. If there are several, none of which
// is an ancestor of another, the error lists them.
func (db *DB) MergeBase(ctx context.Context, a, b string) (CommitID, error) {
	return resolved(ctx, db, a, func(a CommitID) (CommitID, error) {
		return resolved(ctx, db, b, func(b CommitID) (CommitID, error) { return db.store.MergeBase(ctx, a, b) })
	})
}

// Bisect begins a search for the first bad commit. Every good revision must be an ancestor of the
// bad one; none is fine, if there was nothing bad in the beginning.
func (db *DB) Bisect(ctx context.Context, good []string, bad string) (*txn.Bisection, error) {
	ids := make([]CommitID, len(good))
	for i, rev := range good {
		var err error
		if ids[i], err = db.store.Resolve(ctx, rev); err != nil {
			return nil, err
		}
	}
	return resolved(ctx, db, bad, func(bad CommitID) (*txn.Bisection, error) { return db.store.Bisect(ctx, ids, bad) })
}

// Refs returns the branches and tags, each by name.
func (db *DB) Refs(ctx context.Context) (branches, tags []Ref, err error) { return db.store.Refs(ctx) }

// Head returns the commit that a branch ("" is main) points at, or [ErrNotFound].
func (db *DB) Head(ctx context.Context, branch string) (CommitID, error) {
	return db.store.Head(ctx, branch)
}

// CreateBranch makes a branch at a revision. Its cost does not depend on what the version holds.
func (db *DB) CreateBranch(ctx context.Context, name, rev string) error {
	return db.at(ctx, rev, func(id CommitID) error { return db.store.CreateBranch(ctx, name, id) })
}

// DeleteBranch removes a branch. Its commits stay until they are collected;
// the reflog still names them.
func (db *DB) DeleteBranch(ctx context.Context, name string) error {
	return db.store.DeleteBranch(ctx, name)
}

// CreateTag makes a tag, which never moves, at a revision.
func (db *DB) CreateTag(ctx context.Context, name, rev string) error {
	return db.at(ctx, rev, func(id CommitID) error { return db.store.CreateTag(ctx, name, id) })
}

// DeleteTag removes a tag.
func (db *DB) DeleteTag(ctx context.Context, name string) error { return db.store.DeleteTag(ctx, name) }

// Reset moves a branch ("" is main) to a revision. What it named before stays in its reflog. Sessions
// that began on it see a conflict when they commit, unless the new head has their base as an ancestor.
func (db *DB) Reset(ctx context.Context, branch, rev string) (RefMove, error) {
	return resolved(ctx, db, rev, func(id CommitID) (RefMove, error) { return db.store.Reset(ctx, branch, id) })
}

// Reflog yields the moves of a branch ("" is main), newest first. Branches that
// were deleted keep theirs.
func (db *DB) Reflog(ctx context.Context, branch string) iter.Seq2[RefMove, error] {
	return db.store.Reflog(ctx, branch)
}

// TagReflog is [DB.Reflog] of a tag: where it was made and that it was deleted.
func (db *DB) TagReflog(ctx context.Context, tag string) iter.Seq2[RefMove, error] {
	return db.store.TagReflog(ctx, tag)
}

// Amend makes the head of a branch ("" is main) again with another message, author, time or properties: those
// that the options have.
func (db *DB) Amend(ctx context.Context, branch string, o CommitOptions) (*Commit, error) {
	return db.store.Amend(ctx, branch, o)
}

// Protect protects a branch ("" is main) or tag from moves, by all processes and pushes: see [txn.Protected] and
// [txn.Frozen]. [txn.Unprotected] ends it. A refused move is [txn.ErrProtected].
func (db *DB) Protect(ctx context.Context, name string, tag bool, p txn.Protection) error {
	return db.store.Protect(ctx, name, tag, p)
}

// Protections returns the branches and tags that are protected.
func (db *DB) Protections(ctx context.Context) (branches, tags map[string]txn.Protection, err error) {
	return db.store.Protections(ctx)
}

// UndoBranch takes the last move of a branch ("" is main) back: a commit, merge,
// rebase or reset is left behind, a branch that was deleted is there again, one
// that was made goes. That is a move too, so that a second undo undoes the first.
// [ErrNotFound] if there never was such a branch, if it came with the database when that
// was created or cloned and has not moved since, or if the commit to go back to
// was let go.
func (db *DB) UndoBranch(ctx context.Context, branch string) (RefMove, error) {
	return db.store.UndoBranch(ctx, branch)
}

// UndoTag is [DB.UndoBranch] for a tag.
func (db *DB) UndoTag(ctx context.Context, tag string) (RefMove, error) {
	return db.store.UndoTag(ctx, tag)
}

// Merge brings the changes of a revision onto a branch ("" is main), as a commit with both as
// parents. If the branch's head is an ancestor of the revision, it still gets a merge commit, so
// that the log tells what happened. If the revision is an ancestor of the head, nothing is done and
// the head returned. The error is a *[ConflictError] where both changed the same and o.Choices do not
// decide, "ours" being the branch; nothing is changed then. Its cost is that of the changes on both
// sides. An empty message is "merge" and the revision.
//
// If the two have no common ancestor, or it has expired, every difference between them is a
// conflict. A *[txn.BaseError] refuses an o.Base that is no ancestor of both.
func (db *DB) Merge(ctx context.Context, branch, rev string, o CommitOptions) (*Commit, error) {
	if o.Message == "" {
		o.Message = "merge " + rev
	}
	return resolved(ctx, db, rev, func(id CommitID) (*Commit, error) { return db.store.Merge(ctx, branch, id, o) })
}

// CherryPick repeats on a branch what the commit of a revision changed elsewhere. parent chooses,
// from 1 on, the parent of a merge commit that it is compared with; 0 is for commits with one.
func (db *DB) CherryPick(ctx context.Context, branch, rev string, parent int, o CommitOptions) (*Commit, error) {
	return resolved(ctx, db, rev, func(id CommitID) (*Commit, error) { return db.store.CherryPick(ctx, branch, id, parent, o) })
}

// Revert undoes the commit of a revision on a branch by a new commit. parent chooses, from 1 on,
// which parent of a merge commit to go back to; 0 is for commits with one.
func (db *DB) Revert(ctx context.Context, branch, rev string, parent int, o CommitOptions) (*Commit, error) {
	return resolved(ctx, db, rev, func(id CommitID) (*Commit, error) { return db.store.Revert(ctx, branch, id, parent, o) })
}

// RevertTo makes a commit on a branch that holds what a revision holds, so that a branch goes back by
// going forward: copies that pull it go back too. If commits were made meanwhile, their changes stay,
// or conflict. A branch that holds the same gets no commit.
func (db *DB) RevertTo(ctx context.Context, branch, rev string, o CommitOptions) (*Commit, error) {
	return resolved(ctx, db, rev, func(id CommitID) (*Commit, error) { return db.store.RevertTo(ctx, branch, id, o) })
}

// Rebase takes the commits of a branch that the revision upstream has not, repeats them one by one on
// top of upstream, or o.Onto, and moves the branch to the last. Message, author, time and properties
// stay. What changes nothing any more is left out, and a merge becomes one commit of all that it
// brought in. A commit whose version has expired is not repeated by itself: the next one brings its
// changes. All of it happens, durably, or nothing: a conflict is a *[ConflictError] that names its
// commit, as is a branch that moved meanwhile. The head is returned.
//
//	before  o──u──u  upstream       after  o──u──u──a'──b'  branch
//	         \
//	          a──b   branch
func (db *DB) Rebase(ctx context.Context, branch, upstream string, o txn.RebaseOptions) (*Commit, error) {
	return resolved(ctx, db, upstream, func(id CommitID) (*Commit, error) { return db.store.Rebase(ctx, branch, id, o) })
}

// at calls fn with the commit that a revision names.
func (db *DB) at(ctx context.Context, rev string, fn func(CommitID) error) error {
	_, err := resolved(ctx, db, rev, func(id CommitID) (struct{}, error) { return struct{}{}, fn(id) })
	return err
}
