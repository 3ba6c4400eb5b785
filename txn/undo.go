package txn

import (
	"context"
	"fmt"

	"github.com/zarrdb/zarrdb/txn/internal/catalog"
	"github.com/zarrdb/zarrdb/txn/internal/transfer"
)

// opCreate, as transfer.OpClone, begins a database in the reflog. Undone, it would leave one without branches.
const opCreate = "create"

// UndoBranch takes the last move of a branch ("" is main) back: a commit, merge,
// rebase or reset is left behind, a branch that was deleted is there again, one
// that was made goes. That is a move too, so that a second undo undoes the first.
// ErrNoRef if there never was such a branch, if it came with the database when that
// was created or cloned and has not moved since, or if the commit to go back to
// was let go.
func (db *DB) UndoBranch(ctx context.Context, branch string) (RefMove, error) {
	return db.ref(ctx, refRequest{Do: "undo", Name: orMain(branch)})
}

// UndoTag is [DB.UndoBranch] for a tag.
func (db *DB) UndoTag(ctx context.Context, tag string) (RefMove, error) {
	return db.ref(ctx, refRequest{Do: "undo", Tag: true, Name: tag})
}

// beforeMove returns where a ref was before its last move.
func (db *DB) beforeMove(ctx context.Context, ref, what string, now CommitID) (CommitID, error) {
	for m, err := range db.reflog(ctx, ref) {
		if err != nil {
			return now, err
		}
		if m.New != now {
			return now, catalog.Corrupt("%s: its reflog ends at %s, not at %s", what, m.New.Short(), now.Short())
		}
		if m.Op == opCreate || m.Op == transfer.OpClone {
			return now, fmt.Errorf("%s: there is nothing to undo: it came with the database: %w", what, ErrNoRef)
		}
		if !m.Old.IsZero() {
			if _, err := db.version(ctx, m.Old); err != nil {
				return now, fmt.Errorf("%s: %w", what, err)
			}
		}
		return m.Old, nil
	}
	return now, fmt.Errorf("%s: %w", what, ErrNoRef)
}
