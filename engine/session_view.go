package engine

import (
	"context"
	"iter"
	"time"

	"github.com/zarrdb/zarrdb/engine/internal/policy"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/tree"
	"github.com/zarrdb/zarrdb/txn"
	"github.com/zarrdb/zarrdb/zarr"
)

// Versions returns the session without its arrays, for servers and tools of this module.
func (s *Session) Versions() *txn.Session { return s.tx }

// ID names the session for [DB.Resume].
func (s *Session) ID() SessionID { return s.tx.ID() }

// Branch is the branch that Commit moves.
func (s *Session) Branch() string { return s.tx.Branch() }

// Base is the commit that the session began from.
func (s *Session) Base() CommitID { return s.tx.Base() }

// Info describes the session.
func (s *Session) Info() SessionInfo { return s.tx.Info() }

// Label returns what SetLabel said.
func (s *Session) Label() string { return s.tx.Label() }

// SetLabel says what the session is for. A savepoint keeps it.
func (s *Session) SetLabel(label string) { s.tx.SetLabel(label) }

// SetOrigin says which process began the session, where that is not this one. A savepoint keeps it.
func (s *Session) SetOrigin(by txn.Origin) { s.tx.SetOrigin(by) }

// Ended reports whether the session was committed, aborted or closed.
func (s *Session) Ended() bool { return s.tx.Ended() }

// Guard names paths that the session read and relies on: Commit and Refresh then
// fail with a conflict if anything at or below them changed on the branch since
// the session's base, even if the session wrote elsewhere. A path is that of a
// node, or the key of a chunk or document; with a slash at its end, that of a group
// whose members are guarded: which arrays and groups are directly in it ("/" is the root).
// Savepoints keep guards. Each costs Commit a look-up if the branch moved.
func (s *Session) Guard(ctx context.Context, paths ...string) error { return s.tx.Guard(ctx, paths...) }

// Get implements [kv.Reader].
func (s *Session) Get(ctx context.Context, key string, rng kv.Range) ([]byte, error) {
	return s.tx.Get(ctx, key, rng)
}

// Locate implements [kv.Locator].
func (s *Session) Locate(ctx context.Context, key string) (kv.Value, error) {
	return s.tx.Locate(ctx, key)
}

// List implements [kv.Lister].
func (s *Session) List(ctx context.Context, o kv.ListOptions) iter.Seq2[string, error] {
	return s.tx.List(ctx, o)
}

// ListDir implements [kv.DirLister].
func (s *Session) ListDir(ctx context.Context, prefix string) iter.Seq2[kv.DirEntry, error] {
	return s.tx.ListDir(ctx, prefix)
}

// Value is [Snapshot.Value] for a session.
func (s *Session) Value(ctx context.Context, key string) (txn.KeyValue, error) {
	return s.tx.Value(ctx, key)
}

// Values is [Snapshot.Values] for a session.
func (s *Session) Values(ctx context.Context, prefix string) iter.Seq2[txn.KeyValue, error] {
	return s.tx.Values(ctx, prefix)
}

// Changes yields what the session changed below prefix since its base.
func (s *Session) Changes(ctx context.Context, prefix string) iter.Seq2[Change, error] {
	return s.tx.Changes(ctx, prefix)
}

// Modified returns since when a key has its value: what [Snapshot.Written] says of the base
// if the session has not changed the value, else the time of the write. Where the write is
// not known any more, as after a restart, it is the time when the session was begun, which
// is earlier: a program that copies what is newer then copies too much, and never too
// little. exact is false if an earlier value may have the same time in seconds, as always
// after a write. The error is kv.ErrNotFound if the key has no value.
func (s *Session) Modified(ctx context.Context, key string) (at time.Time, exact bool, err error) {
	return s.tx.Modified(ctx, key)
}

// Log makes every later change of the session survive when this process is killed, before
// the call returns. [Open] applies such changes to the last savepoint. It costs a write to
// a file for each change, which is not synced: after a power loss the last savepoint
// counts. Savepoint and DB.Close work as without a log.
func (s *Session) Log(ctx context.Context) error { return s.tx.Log(ctx) }

// SetVirtual stores a reference to bytes that lie outside the database: length
// bytes from offset on, or everything from there if src.Whole.
func (s *Session) SetVirtual(ctx context.Context, key string, src tree.Source, offset, length uint64) error {
	return s.tx.SetVirtual(ctx, key, src, offset, length)
}

// DeleteChunks removes those chunks of the array at a path, "" for the root,
// whose keys the form spells and whose number along an axis is from or more. An
// array that is not there, or has no such form, has no such chunks.
//
// Along the first axis that is a few pages, whatever the number of chunks.
// Along another one, each row of chunks before from costs a search at most.
func (s *Session) DeleteChunks(ctx context.Context, path string, f txn.Form, axis int, from int64) error {
	return s.tx.DeleteChunks(ctx, path, f, axis, from)
}

// Node opens the array or group at a path; "" is the root. If there is none
// the error is zarr.ErrNotFound.
func (s *Session) Node(ctx context.Context, path string) (*zarr.Node, error) {
	return s.nodes.Node(ctx, path)
}

// Array opens the array at a path.
func (s *Session) Array(ctx context.Context, path string) (*zarr.Array, error) {
	return s.nodes.Array(ctx, path)
}

// Group opens the group at a path.
func (s *Session) Group(ctx context.Context, path string) (*zarr.Group, error) {
	return s.nodes.Group(ctx, path)
}

// Members yields the direct children of a path, sorted by name, nodes of every
// format. Chunks of an array are no members. A node that cannot be opened is
// yielded as its error, and the sequence continues. The error is
// zarr.ErrNotFound if the path does not exist; an empty store has an empty root.
func (s *Session) Members(ctx context.Context, path string) iter.Seq2[Member, error] {
	return s.nodes.Members(ctx, path)
}

// Walk yields every node at and below a path, parents before children, sorted.
func (s *Session) Walk(ctx context.Context, path string) iter.Seq2[*zarr.Node, error] {
	return s.nodes.Walk(ctx, path)
}

// TrueDocument returns the metadata document stored under a key as readers may
// believe it: if it carries consolidated metadata that differs from the documents
// below the group, the copy is made again. A copy that cannot be made, because a
// node below has invalid metadata, is left out; a .zmetadata is then
// [kv.ErrNotFound]. Any other value is returned as it is. For a copy, it opens
// every node below the group.
func (s *Session) TrueDocument(ctx context.Context, key string, stored []byte) ([]byte, error) {
	return policy.TrueDocument(ctx, s.nodes.view, s.nodes.open, key, stored)
}
