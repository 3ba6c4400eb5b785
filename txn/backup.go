package txn

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/zarrdb/zarrdb/kv/index"
	"github.com/zarrdb/zarrdb/txn/internal/catalog"
)

// Backup makes or brings up to date a copy of everything in dest: all versions
// that have not expired, refs and reflogs, as of one moment; sessions
// are not part of it. The database goes on being used. A second backup copies
// only what is new. dest is a database that can be opened and read; what is
// committed to it there is dropped from its refs by the next backup. One that was
// interrupted leaves the last backup as it was, and can be run again.
//
// Errors: ErrNotBackup if dest is another database, ErrExists if it holds other
// files.
func (db *DB) Backup(ctx context.Context, dest string, o TransferOptions) (_ *TransferReport, err error) {
	defer wrap(&err, "backup to %s", dest)
	if err := db.check(); err != nil {
		return nil, err
	}
	opts := db.copyOptions()
	if err := readFormat(opts.FS, dest); errors.Is(err, ErrNotDatabase) {
		return db.copyTo(ctx, dest, opts, o, everything, mirror(&db.incarnation))
	}
	opts.CheckpointCommits = db.opts.CheckpointCommits // Close makes one that is due
	to, err := Open(dest, &opts)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	return db.backupTo(ctx, to, o)
}

// BackupTo is [DB.Backup] to a backup that is open.
func (db *DB) BackupTo(ctx context.Context, to *DB, o TransferOptions) (*TransferReport, error) {
	return to.home.transfer(ctx, db, opBackup, o)
}

func (db *DB) backupTo(ctx context.Context, to *DB, o TransferOptions) (*TransferReport, error) {
	if err := errors.Join(db.check(), to.writable()); err != nil {
		return nil, err
	}
	ours, err := catalog.IsBackupOf(to.idx, db.incarnation)
	if err == nil && !ours {
		err = ErrNotBackup
	}
	if err != nil {
		return nil, err
	}
	return transferred(ctx, db, to, o, everything, mirror(&db.incarnation))
}

// Restore makes a new database in dir of a backup, with everything that is in it.
// It is verified when Restore returns, and writes packs under a name of its own.
// Options may be nil. A restore that was interrupted is taken up by the same call.
func Restore(ctx context.Context, backup, dir string, opts *Options, o TransferOptions) (_ *TransferReport, err error) {
	ro := opts.withDefaults()
	ro.ReadOnly = true
	db, err := Open(backup, &ro)
	if err != nil {
		return nil, fmt.Errorf("restore: %w", err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	return db.restoreTo(ctx, dir, ro.FS, o)
}

// RestoreTo is [Restore] of a backup that is open.
func (db *DB) RestoreTo(ctx context.Context, dir string, o TransferOptions) (*TransferReport, error) {
	return db.restoreTo(ctx, dir, db.opts.FS, o)
}

func (db *DB) restoreTo(ctx context.Context, dir string, fs index.FS, o TransferOptions) (_ *TransferReport, err error) {
	defer wrap(&err, "restore %s to %s", db.dir, dir)
	to := db.copyOptions()
	to.FS = fs
	return db.copyTo(ctx, dir, to, o, everything, mirror(nil))
}

// everything plans all commits.
func everything(ctx context.Context, t *transfer) error {
	for rec, err := range catalog.StoredCommits(ctx, t.kept, nil) {
		if err != nil {
			return err
		}
		c, err := catalog.DecodeCommit(rec.ID, rec.Value)
		if err != nil {
			return err
		}
		has, gone, err := t.known(ctx, c.ID)
		if err != nil {
			return err
		}
		at, expired := t.expired[c.ID]
		if !has || gone && !expired {
			t.add(c, !expired, has, at)
		}
	}
	return nil
}

// mirror publishes refs, reflogs and marks of expiry as they are in the source. of is
// the incarnation of that, if the destination is a backup of it.
func mirror(of *[8]byte) func(context.Context, *transfer) error {
	return func(ctx context.Context, t *transfer) error { return t.mirror(ctx, of) }
}

func (t *transfer) mirror(ctx context.Context, of *[8]byte) error {
	return t.publish(ctx, func(c *change) error {
		if err := t.mirrorSpace(ctx, c.extra, index.SpaceReflog); err != nil {
			return err
		}
		// Marks that the source has not belong to commits that were copied again,
		// whose marks are gone by now, or to what only the destination knew.
		if err := t.copySpace(ctx, c.extra, index.SpaceExpired); err != nil {
			return err
		}
		c.mirrored = true
		for _, r := range t.to.heads.list("") {
			if _, ok := t.heads[r.Name]; !ok {
				c.moves = append(c.moves, RefMove{Ref: r.Name, Old: r.Commit})
			}
		}
		for _, ref := range slices.Sorted(maps.Keys(t.heads)) {
			if old, _ := t.to.heads.get(ref); old != t.heads[ref] {
				c.moves = append(c.moves, RefMove{Ref: ref, Old: old, New: t.heads[ref]})
			}
		}
		if of != nil {
			catalog.PutBackupOf(c.extra, *of)
		}
		return nil
	})
}

// copySpace takes the records of a space from the source.
func (t *transfer) copySpace(ctx context.Context, batch *index.Batch, s index.Space) error {
	_, err := t.copyRecords(ctx, batch, s)
	return err
}

// copyRecords is copySpace that returns the keys of the records.
func (t *transfer) copyRecords(ctx context.Context, batch *index.Batch, s index.Space) (keys map[string]struct{}, err error) {
	keys = map[string]struct{}{}
	for rec, err := range t.kept.Scan(s, nil, nil, false) {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return nil, err
		}
		keys[string(rec.Key)] = struct{}{}
		old, err := t.to.idx.Get(s, rec.Key)
		if err != nil && !errors.Is(err, index.ErrNotFound) {
			return nil, err
		}
		if err != nil || !bytes.Equal(old, rec.Value) {
			batch.Set(s, rec.Key, rec.Value)
		}
	}
	return keys, nil
}

// mirrorSpace makes the records of a space those of the source.
func (t *transfer) mirrorSpace(ctx context.Context, batch *index.Batch, s index.Space) error {
	keys, err := t.copyRecords(ctx, batch, s)
	if err != nil {
		return err
	}
	for rec, err := range t.to.idx.Scan(s, nil, nil, false) {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		if _, ok := keys[string(rec.Key)]; !ok {
			batch.Delete(s, rec.Key)
		}
	}
	return nil
}
