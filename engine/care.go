package engine

import (
	"context"

	"github.com/zarrdb/zarrdb/txn"
)

// Expire marks versions as expired, according to the options. Heads, tags, pins,
// bases of sessions and versions in reflogs always stay; an open snapshot stays
// readable.
func (db *DB) Expire(ctx context.Context, o txn.ExpireOptions) (*txn.ExpireReport, error) {
	return db.store.Expire(ctx, o)
}

// Expired reports whether [DB.Expire] let a version go: its record is there, its
// content is not.
func (db *DB) Expired(ctx context.Context, id CommitID) (bool, error) {
	return db.store.Expired(ctx, id)
}

// GC removes pages and payloads that no commit that has not expired, session, open
// snapshot or pin reaches, beside readers and writers. It can be interrupted at any
// moment, by ctx or a crash, and then be run again. Damage that it meets ends it
// before anything is removed.
func (db *DB) GC(ctx context.Context, o txn.GCOptions) (*txn.GCReport, error) {
	return db.store.GC(ctx, o)
}

// Cache registers a function that closes snapshots which are kept only to be opened
// again, for GC and Expire, until stop is called.
func (db *DB) Cache(letGo func()) (stop func()) { return db.store.Cache(letGo) }

// CareErrors returns the errors of work that the database does by itself and that has not
// succeeded since, such as checkpoints. It works after Close too.
func (db *DB) CareErrors() []txn.CareError { return db.store.CareErrors() }

// DiskUse returns the present sizes.
func (db *DB) DiskUse() txn.DiskUse { return db.store.DiskUse() }

// Check verifies everything that refs, reflogs and stored sessions reach, beside
// readers and writers. The error is about the check itself, ctx included; damage is
// in the report. See [txn.DB.Check].
func (db *DB) Check(ctx context.Context, o txn.CheckOptions) (*txn.CheckReport, error) {
	return db.store.Check(ctx, o)
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

// Checkpoint copies the index now, so that [Salvage] can restore everything up to
// here, and removes all but the two newest copies. It takes milliseconds.
func (db *DB) Checkpoint(ctx context.Context) error { return db.store.Checkpoint(ctx) }

// Sync returns when everything that was acknowledged before is on disk. With
// [txn.DurabilitySync] that is so already.
func (db *DB) Sync(ctx context.Context) error { return db.store.Sync(ctx) }
