package engine

import (
	"context"

	"github.com/zarrdb/zarrdb/txn"
)

// Keep keeps the version that a revision names from expiring, under a name, until [DB.EndKept]: for a
// job that lasts for days, or begins later. It replaces the version that was kept under the name
// before. note says who needs it, by default this process. Copies of the database do not keep
// versions. Errors: [txn.ErrRefName], [ErrNotFound], [txn.ErrExpired].
func (db *DB) Keep(ctx context.Context, name, rev, note string) error {
	return db.at(ctx, rev, func(id CommitID) error { return db.store.KeepVersion(ctx, name, id, note) })
}

// EndKept ends the keeping of a version under a name. If no version is kept under it, the error is [ErrNotFound].
func (db *DB) EndKept(ctx context.Context, name string) error { return db.store.EndKept(ctx, name) }

// KeptVersions lists the versions that are kept, in the order of their names.
func (db *DB) KeptVersions(ctx context.Context) ([]*txn.KeptVersion, error) {
	return db.store.KeptVersions(ctx)
}

// Sessions lists the sessions that can be resumed or are open, oldest first.
func (db *DB) Sessions(ctx context.Context) ([]SessionInfo, error) { return db.store.Sessions(ctx) }

// Expire marks the versions that the options let go. Heads, tags, kept versions, bases
// of sessions and what their reflogs still name always stay, and so do the merge bases
// of branches and tags unless DropBases is set; a snapshot that is open reads on. With both limits, what either keeps stays.
func (db *DB) Expire(ctx context.Context, o txn.ExpireOptions) (*txn.ExpireReport, error) {
	return db.store.Expire(ctx, o)
}

// GC removes pages and payloads that nothing reaches: no commit that has not
// expired, no session or open snapshot. It reads pages of the index, not
// payloads. Readers and writers go on meanwhile. It can be interrupted at any
// moment, by ctx or a crash, and then be run again. Damage ends the collection
// before anything is removed. It waits some seconds for processes that have versions open
// through a process which was killed, and then is [txn.ErrPeersAway].
func (db *DB) GC(ctx context.Context, o txn.GCOptions) (*txn.GCReport, error) {
	return db.store.GC(ctx, o)
}

// Check verifies that everything that refs, reflogs and stored sessions reach
// is there and fits its name: commits hash to their ids, their parents
// exist and their generations fit, reflogs lead to the refs, pages hash to
// their names and fit the pages above them, payloads lie in packs. It looks at
// the database as it is when it begins, beside running readers and writers,
// and keeps what it looks at from being reclaimed. The error is about the check
// itself, ctx included; damage is in the report.
func (db *DB) Check(ctx context.Context, o txn.CheckOptions) (*txn.CheckReport, error) {
	return db.store.Check(ctx, o)
}

// Checkpoint copies the index now, so that [txn.Salvage] can restore everything up
// to here, and removes all but the two newest copies. The copies share tables
// with the index: one takes milliseconds, and space only as the index changes.
func (db *DB) Checkpoint(ctx context.Context) error { return db.store.Checkpoint(ctx) }

// Checkpoints lists the copies of the index, oldest first, after the one that
// is being made if there is one. The error may also be that of the last attempt.
func (db *DB) Checkpoints() ([]txn.Checkpoint, error) { return db.store.Checkpoints() }

// Sync returns when everything that was acknowledged before is on disk. With
// DurabilitySync that is so already.
func (db *DB) Sync(ctx context.Context) error { return db.store.Sync(ctx) }

// DiskUse returns the present sizes. It looks at each file; files that are removed
// meanwhile do not count.
func (db *DB) DiskUse() txn.DiskUse { return db.store.DiskUse() }

// CareErrors returns the errors of background work that has not succeeded since. Those of
// checkpoints are remembered by the directory. It works after Close too.
func (db *DB) CareErrors() []txn.CareError { return db.store.CareErrors() }

// Identity returns the identity of the open database.
func (db *DB) Identity() txn.Identity { return db.store.Identity() }

// Dir returns the directory that the database was opened in.
func (db *DB) Dir() string { return db.store.Dir() }

// Closed reports whether Close was called.
func (db *DB) Closed() bool { return db.store.Closed() }
