package zarrdb

import (
	"context"
	"iter"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/serve/local"
	"github.com/zarrdb/zarrdb/txn"
	"github.com/zarrdb/zarrdb/zarr"
)

// Keys is what versions and sessions have in common, here and in another process.
type Keys interface {
	kv.ReadLister
	kv.Locator
	kv.DirLister
}

var (
	_ Keys = (*engine.Snapshot)(nil)
	_ Keys = (*engine.Session)(nil)
	_ Keys = (*local.Session)(nil)
)

// Nodes opens what a view holds. A path "" is the root; a node that is not there is
// zarr.ErrNotFound.
type Nodes interface {
	// Node opens the array or group at a path.
	Node(ctx context.Context, path string) (*zarr.Node, error)
	// Array opens the array at a path.
	Array(ctx context.Context, path string) (*zarr.Array, error)
	// Group opens the group at a path.
	Group(ctx context.Context, path string) (*zarr.Group, error)
	// Walk yields every node at and below a path, parents before children, sorted.
	Walk(ctx context.Context, path string) iter.Seq2[*zarr.Node, error]
}

// through are the nodes of a view in another process.
type through struct{ v kv.Reader }

func (t through) Node(ctx context.Context, path string) (*zarr.Node, error) {
	return zarr.Open(ctx, t.v, path, nil)
}

func (t through) Array(ctx context.Context, path string) (*zarr.Array, error) {
	return zarr.OpenArray(ctx, t.v, path, nil)
}

func (t through) Group(ctx context.Context, path string) (*zarr.Group, error) {
	return zarr.OpenGroup(ctx, t.v, path, nil)
}

func (t through) Walk(ctx context.Context, path string) iter.Seq2[*zarr.Node, error] {
	return zarr.Walk(ctx, t.v, path, nil)
}

// Snapshot is one version. It never changes. Safe for concurrent use; Close when done.
type Snapshot struct {
	Nodes
	Keys
	commit *txn.Commit
	close  func() error
}

// At opens the version that a revision names; see [DB.Resolve].
func (db *DB) At(ctx context.Context, rev string) (*Snapshot, error) {
	from, err := db.reads()
	if err != nil {
		return nil, err
	}
	s, err := from.At(ctx, rev)
	if err != nil {
		return nil, err
	}
	return &Snapshot{s, s, s.Commit(), s.Close}, nil
}

// View runs fn on one version and closes it afterwards.
func (db *DB) View(ctx context.Context, rev string, fn func(*Snapshot) error) error {
	s, err := db.At(ctx, rev)
	if err != nil {
		return err
	}
	defer s.Close()
	return fn(s)
}

// Commit returns the version.
func (s *Snapshot) Commit() *txn.Commit { return s.commit }

// Close gives the version up.
func (s *Snapshot) Close() error { return s.close() }

// Gathers implements [kv.Gatherer].
func (s *Snapshot) Gathers(ctx context.Context, key string) bool { return kv.Gathers(ctx, s.Keys, key) }

// Gather implements [kv.Gatherer].
func (s *Snapshot) Gather(ctx context.Context, wants []kv.Want, g kv.Gathering) error {
	return kv.Gather(ctx, s.Keys, wants, g)
}
