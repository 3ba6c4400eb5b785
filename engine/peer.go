package engine

import (
	"context"
	"encoding/hex"
	"errors"

	"github.com/zarrdb/zarrdb/engine/internal/cache"
	"github.com/zarrdb/zarrdb/engine/internal/transfer"
	"github.com/zarrdb/zarrdb/txn"
)

// PageSource is what peers read of a database; see [OpenPeer].
func (db *DB) PageSource() txn.Source { return db.store.Source() }

// Peer reads a database that another process has open, with the caches, the workers and
// the keys of this one. Safe for concurrent use; Close when done.
type Peer struct {
	db    *DB
	store *txn.Peer
}

// peerShare is the part of the cache of chunks that a peer has, compared with the process
// that has the database open: there may be several.
const peerShare = 4

// OpenPeer returns a peer that reads the database in dir through a source. id is the
// identity of the database. Of the options it uses those of reading. The cache of chunks is
// by default a quarter of that of [Open].
func OpenPeer(dir string, id txn.Identity, src txn.Source, o *Options) (*Peer, error) {
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
	store := txn.NewPeer(dir, src, &to)
	chunks, err := cache.New(opts.CacheBytes)
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	p := &Peer{store: store, db: &DB{opts: opts, cache: chunks, pool: transfer.NewPool(opts.Workers), env: env, files: files}}
	name, err := hex.DecodeString(id.Name)
	if err == nil {
		env.Recall = func() (Follow, error) { return opts.granted(name) }
	}
	return p, nil
}

// At opens the version that a revision names; see [DB.At].
func (p *Peer) At(ctx context.Context, rev string) (*Snapshot, error) {
	s, err := p.store.At(ctx, rev)
	if err != nil {
		return nil, err
	}
	return p.db.snapshot(s), nil
}

// Close ends the peer. Its snapshots must not be used any more.
func (p *Peer) Close() error { return errors.Join(p.store.Close(), p.db.release()) }
