package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/zarrdb/zarrdb/engine/internal/extent"
	"github.com/zarrdb/zarrdb/txn"
)

// apart makes sure that a copy can be made at a path beside the database. With a file system
// of its own, a path says nothing about this machine.
func (db *DB) apart(dest string) error {
	if db.opts.FS != nil {
		return nil
	}
	if err := checkNew(dest); err != nil {
		return err
	}
	return extent.Separate(extent.Extent{Path: dest}, extent.Extent{Path: db.Dir()})
}

// Backup is [txn.DB.Backup]. A destination that is, holds or lies in the
// database, or lies in another, is ErrOverlap; one whose name means something else is [ErrName].
func (db *DB) Backup(ctx context.Context, dest string, o txn.TransferOptions) (*txn.TransferReport, error) {
	if err := db.apart(dest); err != nil {
		return nil, fmt.Errorf("backup: %w", err)
	}
	return db.store.Backup(ctx, dest, o)
}

// Clone is [txn.DB.Clone]; destinations are refused as by [DB.Backup].
func (db *DB) Clone(ctx context.Context, dir string, o txn.TransferOptions) (*txn.TransferReport, error) {
	if err := db.apart(dir); err != nil {
		return nil, fmt.Errorf("clone: %w", err)
	}
	return db.store.Clone(ctx, dir, o)
}

// BackupTo is [DB.Backup] to a backup that is open.
func (db *DB) BackupTo(ctx context.Context, to *DB, o txn.TransferOptions) (*txn.TransferReport, error) {
	return db.store.BackupTo(ctx, to.store, o)
}

// RestoreTo is [Restore] of a backup that is open.
func (db *DB) RestoreTo(ctx context.Context, dir string, o txn.TransferOptions) (*txn.TransferReport, error) {
	if err := db.apart(dir); err != nil {
		return nil, fmt.Errorf("restore: %w", err)
	}
	return db.store.RestoreTo(ctx, dir, o)
}

// Restore is [txn.Restore]. A destination that is, holds or lies in the backup,
// or lies in a database, is ErrOverlap. Options may be nil.
func Restore(ctx context.Context, backup, dir string, o *Options, t txn.TransferOptions) (*txn.TransferReport, error) {
	opts := o.withDefaults()
	if opts.FS == nil {
		if err := checkNew(dir); err != nil {
			return nil, fmt.Errorf("restore: %w", err)
		}
		if err := extent.Separate(extent.Extent{Path: dir}, extent.Extent{Path: backup}); err != nil {
			return nil, fmt.Errorf("restore: %w", err)
		}
	}
	env := opts.env()
	to := opts.txn(ctx, env.Resolver("", nil))
	r, err := txn.Restore(ctx, backup, dir, &to, t)
	return r, errors.Join(err, env.Close())
}

// Push carries the versions of branches and tags that another database lacks, and
// moves its refs of these names, which are made if they are not there: all of them
// or, with an error, none. Errors: txn.ErrDiverged if a branch there has versions
// that this one does not have and o.Force is not set; ErrNotFound if there is no such
// branch or tag.
func (db *DB) Push(ctx context.Context, to *DB, o txn.TransferOptions) (*txn.TransferReport, error) {
	return db.store.Push(ctx, to.store, o)
}

// Pull is [DB.Push] from the other side. A branch that is ahead of the source is left
// alone.
func (db *DB) Pull(ctx context.Context, from *DB, o txn.TransferOptions) (*txn.TransferReport, error) {
	return db.store.Pull(ctx, from.store, o)
}

// Fetch is [DB.Pull] that moves no refs: the versions are there afterwards, for a
// merge or rebase, and the report names the refs of the source that they are. Expiry
// lets them go if no ref comes to reach them.
func (db *DB) Fetch(ctx context.Context, from *DB, o txn.TransferOptions) (*txn.TransferReport, error) {
	return db.store.Fetch(ctx, from.store, o)
}

// Repair makes a damaged database as usable as it can be without losing anything
// that may still be of use. The error is about the repair; damage that is left is
// in the report. See [txn.DB.Repair].
func (db *DB) Repair(ctx context.Context, o txn.CheckOptions, from ...*DB) (*txn.RepairReport, error) {
	stores := make([]*txn.DB, len(from))
	for i := range from {
		stores[i] = from[i].store
	}
	return db.store.Repair(ctx, o, stores...)
}
