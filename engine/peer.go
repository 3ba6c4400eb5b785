package engine

import (
	"context"
	"errors"

	"github.com/zarrdb/zarrdb/engine/internal/cache"
	"github.com/zarrdb/zarrdb/engine/internal/transfer"
	"github.com/zarrdb/zarrdb/txn"
)

// PageSource returns the source from which peers read the database; see [OpenPeer].
func (db *DB) PageSource() txn.Source { return db.store.Source() }

// peerShare is the part of the cache of chunks that a peer has, compared with the process
// that has the database open: there may be several.
const peerShare = 4

// OpenPeer returns a DB that reads the database in dir, which another process has open, with
// the caches, workers and keys of this process. id is the identity of the database. OpenPeer
// uses the options of reading. The cache of chunks is by default a quarter of that of [Open].
// [txn.NewPeer] says which methods work.
func OpenPeer(dir string, id txn.Identity, src txn.Source, o *Options) (*DB, error) {
	opts := o.withDefaults()
	opts.ReadOnly = true
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
