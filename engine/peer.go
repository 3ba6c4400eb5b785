package engine

import (
	"context"
	"errors"

	"github.com/zarrdb/zarrdb/engine/internal/cache"
	"github.com/zarrdb/zarrdb/engine/internal/transfer"
	"github.com/zarrdb/zarrdb/txn"
)

// PageSource returns the source of pages that peers of this database read; see [OpenPeer].
func (db *DB) PageSource() txn.Source { return db.store.Source() }

// peerShare divides the default size of the chunk cache for a peer: several peers may run
// beside the process that has the database open.
const peerShare = 4

// OpenPeer opens the database in dir for reading while another process has it open. The peer
// has caches, workers and credentials of its own, and gets pages from src. id is the identity
// of the database. Only the options for reading count. The default size of the chunk cache is
// a quarter of the default of [Open]. [txn.NewPeer] lists the methods that work.
func OpenPeer(dir string, id txn.Identity, src txn.Source, o *Options) (*DB, error) {
	opts := o.withDefaults()
	if err := opts.check(); err != nil {
		return nil, err
	}
	if o == nil || o.CacheBytes == 0 {
		opts.CacheBytes /= peerShare
	}
	env := opts.env()
	files := env.Resolver("", nil)
	to := opts.txn(context.Background(), files)
	store := txn.NewPeer(dir, id, src, &to)
	chunks, err := cache.New(opts.CacheBytes)
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	db := &DB{store: store, opts: opts, cache: chunks, pool: transfer.NewPool(opts.Workers), env: env, files: files, shared: &sharedSessions{}}
	if db.store.Incarnation() != [8]byte{} {
		env.Recall = db.Granted
	}
	return db, nil
}
