package engine

import (
	"context"
	"errors"
	"io"

	"github.com/zarrdb/zarrdb/engine/internal/cache"
	"github.com/zarrdb/zarrdb/engine/internal/transfer"
	"github.com/zarrdb/zarrdb/txn"
	"github.com/zarrdb/zarrdb/zarr"
)

// ReadOnly reports whether the DB refuses writes.
func (db *DB) ReadOnly() bool { return db.opts.ReadOnly }

// Renew opens a version by [txn.Visit.Renew], or as Snapshot does if v is nil.
func (db *DB) Renew(ctx context.Context, v *txn.Visit, id txn.CommitID) (*Snapshot, error) {
	if v == nil {
		return db.Snapshot(ctx, id)
	}
	s, err := v.Renew(ctx, id)
	if err != nil {
		return nil, err
	}
	return db.snapshot(s), nil
}

// other is [txn.Options].Other.
func (o *Options) other(ctx context.Context, dir string) (*txn.DB, func() error, error) {
	to := *o
	to.ReadOnly, to.Create, to.CacheBytes = true, false, -1
	if o.Join != nil {
		to.LockWait, to.Locked = 0, nil
	}
	db, err := Open(ctx, dir, &to)
	if held := (*LockedError)(nil); errors.As(err, &held) && o.Join != nil {
		p, done, err := o.Join(ctx, held, &to)
		if err != nil {
			return nil, nil, err
		}
		return p.store, done, nil
	}
	if err != nil {
		return nil, nil, err
	}
	return db.store, db.Close, nil
}

// OpenPeer opens the database in dir while another process has it open. The peer has caches,
// workers and credentials of its own. It gets pages from src, and writes through src if that
// is a [txn.Remote]. id is the identity of the database. [txn.NewPeer] lists the methods that
// work.
func OpenPeer(dir string, id txn.Identity, src txn.Source, o *Options) (*DB, error) {
	opts := o.withDefaults()
	if err := opts.check(); err != nil {
		return nil, err
	}
	env := opts.env()
	files := env.Resolver("", nil)
	to := opts.txn(context.Background(), files)
	to.Bucket = openBucket(env, dir)
	store := txn.NewPeer(dir, id, src, &to)
	// One more worker prepares a value while the other process serves the rest.
	db := &DB{store: store, opts: opts, cache: cache.New(opts.CacheBytes), pool: transfer.NewPool(opts.Workers + 1), docs: zarr.NewDocuments(documentBytes), env: env, files: files, shared: &sharedSessions{}}
	if c, ok := src.(io.Closer); ok {
		db.leaves = c
	}
	if db.store.Incarnation() != [8]byte{} {
		env.Recall = db.Granted
	}
	return db, nil
}
