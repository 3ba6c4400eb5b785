package zarrdb

import (
	"context"

	"github.com/zarrdb/zarrdb/engine"
)

// A Snapshot is one version: a hierarchy of arrays and groups, and a view of keys. It never
// changes. Safe for concurrent use; Close when done.
type Snapshot = engine.Snapshot

// At opens the version that a revision names; see [DB.Resolve].
func (db *DB) At(ctx context.Context, rev string) (*Snapshot, error) {
	return db.in.At(ctx, rev)
}

// View runs fn on one version and closes it afterwards.
func (db *DB) View(ctx context.Context, rev string, fn func(*Snapshot) error) error {
	return db.in.View(ctx, rev, fn)
}
