package engine

import (
	"context"
	"iter"
	"time"

	"github.com/zarrdb/zarrdb/engine/internal/policy"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/txn"
	"github.com/zarrdb/zarrdb/zarr"
)

// Snapshot is one version as a hierarchy and as a kv view. It never changes.
// Safe for concurrent use; Close when done.
type Snapshot struct {
	at    *txn.Snapshot
	nodes nodes
	db    *DB
}

// Locate implements [kv.Locator].
func (s *Snapshot) Locate(ctx context.Context, key string) (kv.Value, error) {
	return s.at.LocateWith(ctx, key, s.db.files)
}

// Get implements [kv.Reader].
func (s *Snapshot) Get(ctx context.Context, key string, rng kv.Range) ([]byte, error) {
	if s.db.holder == nil { // else the store's files are not open here; see DB.Handle
		return s.at.Get(ctx, key, rng)
	}
	v, err := s.Locate(ctx, key)
	if err != nil {
		return nil, err
	}
	return kv.ReadValue(ctx, v, rng)
}

// Versions returns the version without its arrays, for servers and tools of this module.
func (s *Snapshot) Versions() *txn.Snapshot { return s.at }

// Commit returns the commit that this is the version of; it must not be changed.
func (s *Snapshot) Commit() *Commit { return s.at.Commit() }

// Close lets the version go. Calling it twice is fine.
func (s *Snapshot) Close() error { return s.at.Close() }

// GetMany implements [kv.BatchReader]. A peer asks for all directories of the keys; then the
// values are read one by one, as Get does.
func (s *Snapshot) GetMany(ctx context.Context, reqs []kv.Request) ([][]byte, error) {
	return s.at.GetMany(ctx, reqs)
}

// List implements [kv.Lister].
func (s *Snapshot) List(ctx context.Context, o kv.ListOptions) iter.Seq2[string, error] {
	return s.at.List(ctx, o)
}

// ListDir implements [kv.DirLister].
func (s *Snapshot) ListDir(ctx context.Context, prefix string) iter.Seq2[kv.DirEntry, error] {
	return s.at.ListDir(ctx, prefix)
}

// Value returns where the bytes of a key are. [kv.ErrNotFound] if it has none.
func (s *Snapshot) Value(ctx context.Context, key string) (txn.KeyValue, error) {
	return s.at.Value(ctx, key)
}

// Values yields every key below prefix with where its bytes are, in an order
// that is fast rather than sorted.
func (s *Snapshot) Values(ctx context.Context, prefix string) iter.Seq2[txn.KeyValue, error] {
	return s.at.Values(ctx, prefix)
}

// Documents is Values without the chunks of arrays: metadata, and keys that no
// metadata explains. It does not take longer where there are millions of chunks.
func (s *Snapshot) Documents(ctx context.Context, prefix string) iter.Seq2[txn.KeyValue, error] {
	return s.at.Documents(ctx, prefix)
}

// PackFile returns the pack file in which the bytes of a native value lie, and
// the offset where they begin, for programs that read packs without this one.
// Collecting garbage may move bytes to another file; a hard link to this one
// keeps them. Values that are not native are an error.
func (s *Snapshot) PackFile(ctx context.Context, key string) (path string, offset int64, err error) {
	return s.at.PackFile(ctx, key)
}

// Written returns since when a key has the value that it has in this version: the time of
// a commit on the branch's own history that gave the key this value. exact is false if
// the commit before has the same second. The error is kv.ErrNotFound if the key has no
// value.
func (s *Snapshot) Written(ctx context.Context, key string) (at time.Time, exact bool, err error) {
	return s.at.Written(ctx, key)
}

// Node opens the array or group at a path; "" is the root. If there is none
// the error is zarr.ErrNotFound.
func (s *Snapshot) Node(ctx context.Context, path string) (*zarr.Node, error) {
	return s.nodes.Node(ctx, path)
}

// Array opens the array at a path.
func (s *Snapshot) Array(ctx context.Context, path string) (*zarr.Array, error) {
	return s.nodes.Array(ctx, path)
}

// Group opens the group at a path.
func (s *Snapshot) Group(ctx context.Context, path string) (*zarr.Group, error) {
	return s.nodes.Group(ctx, path)
}

// Members yields the direct children of a path, sorted by name, nodes of every
// format. Chunks of an array are no members. A node that cannot be opened is
// yielded as its error, and the sequence continues. The error is
// zarr.ErrNotFound if the path does not exist; an empty store has an empty root.
func (s *Snapshot) Members(ctx context.Context, path string) iter.Seq2[Member, error] {
	return s.nodes.Members(ctx, path)
}

// Walk yields every node at and below a path, parents before children, sorted.
func (s *Snapshot) Walk(ctx context.Context, path string) iter.Seq2[*zarr.Node, error] {
	return s.nodes.Walk(ctx, path)
}

// TrueDocument returns the metadata document stored under a key as readers may
// believe it: if it carries consolidated metadata that differs from the documents
// below the group, the copy is made again. A copy that cannot be made, because a
// node below has invalid metadata, is left out; a .zmetadata is then
// [kv.ErrNotFound]. Any other value is returned as it is. For a copy, it opens
// every node below the group.
func (s *Snapshot) TrueDocument(ctx context.Context, key string, stored []byte) ([]byte, error) {
	return policy.TrueDocument(ctx, s.nodes.view, s.nodes.open, key, stored)
}
