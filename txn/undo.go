package txn

import (
	"context"
	"fmt"

	"github.com/zarrdb/zarrdb/txn/internal/catalog"
)

// Operations of the reflog that begin a database. Undone, they would leave one
// without branches.
const (
	opCreate = "create"
	opClone  = "clone"
)

// Operations of the reflog that carry versions from another database.
const (
	opPush = "push"
	opPull = "pull"
	// What else a transfer may be; it is in no reflog.
	opFetch  = "fetch"
	opBackup = "backup"
)

// UndoBranch takes the last move of a branch ("" is main) back: a commit, merge,
// rebase or reset is left behind, a branch that was deleted is there again, one
// that was made goes. That is a move too, so that a second undo undoes the first.
// ErrNoRef if there never was such a branch, if it came with the database when that
// was created or cloned and has not moved since, or if the commit to go back to
// was let go.
func (db *DB) UndoBranch(ctx context.Context, branch string) (RefMove, error) {
	branch = orMain(branch)
	return db.undo(ctx, catalog.HeadRef(branch), "branch", branch)
}

// UndoTag is [DB.UndoBranch] for a tag.
func (db *DB) UndoTag(ctx context.Context, tag string) (RefMove, error) {
	return db.undo(ctx, catalog.TagRef(tag), "tag", tag)
}

func (db *DB) undo(ctx context.Context, ref, kind, name string) (RefMove, error) {
	if db.peer != nil {
		return db.peer.moveRef(ctx, refRequest{Do: "undo", Tag: kind == "tag", Name: name})
	}
	return db.moveRef(ref, "undo", func(now CommitID) (CommitID, error) {
		for m, err := range db.reflog(ctx, ref) {
			if err != nil {
				return now, err
			}
			if m.New != now {
				return now, corrupt("%s %q: its reflog ends at %s, not at %s", kind, name, m.New.Short(), now.Short())
			}
			if m.Op == opCreate || m.Op == opClone {
				return now, fmt.Errorf("%s %q: there is nothing to undo: it came with the database: %w", kind, name, ErrNoRef)
			}
			if !m.Old.IsZero() {
				if _, err := db.version(ctx, m.Old); err != nil {
					return now, fmt.Errorf("%s %q: %w", kind, name, err)
				}
			}
			return m.Old, nil
		}
		return now, fmt.Errorf("%s %q: %w", kind, name, ErrNoRef)
	})
}
