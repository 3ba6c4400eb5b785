package engine

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"

	"github.com/zarrdb/zarrdb/engine/internal/names"
	"github.com/zarrdb/zarrdb/engine/internal/policy"
	"github.com/zarrdb/zarrdb/engine/internal/transfer"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/txn"
	"github.com/zarrdb/zarrdb/zarr"
	"github.com/zarrdb/zarrdb/zarr/meta"
)

// nodes opens the hierarchy that a view holds.
type nodes struct {
	view kv.Reader
	open *zarr.OpenOptions
}

// Node opens the array or group at a path; "" is the root. If there is none
// the error is zarr.ErrNotFound.
func (n nodes) Node(ctx context.Context, path string) (*zarr.Node, error) {
	return zarr.Open(ctx, n.view, path, n.open)
}

// Array opens the array at a path.
func (n nodes) Array(ctx context.Context, path string) (*zarr.Array, error) {
	return zarr.OpenArray(ctx, n.view, path, n.open)
}

// Group opens the group at a path.
func (n nodes) Group(ctx context.Context, path string) (*zarr.Group, error) {
	return zarr.OpenGroup(ctx, n.view, path, n.open)
}

// Walk yields every node at and below a path, parents before children, sorted.
func (n nodes) Walk(ctx context.Context, path string) iter.Seq2[*zarr.Node, error] {
	return zarr.Walk(ctx, n.view, path, n.open)
}

// Session is a transaction as a hierarchy and as a writeable kv view. Arrays
// that were opened from a session read and write through the session until it ends; arrays that are
// opened twice may be written at the same time.
//
// Changes through arrays, groups and the methods here keep consolidated
// metadata up to date: the entries of changed nodes are replaced, other entries
// stay as they were stored. Single keys that are set and deleted through the
// view are stored as they are given.
type Session struct {
	tx     *txn.Session
	nodes  nodes
	copies *policy.Copies
	db     *DB
	left   *sync.Once // this use of the session has ended; see [DB.Resume]
}

// Commit is [txn.Session.Commit].
func (s *Session) Commit(ctx context.Context, o txn.CommitOptions) (*txn.Commit, error) {
	if err := s.copies.Refresh(ctx); err != nil {
		return nil, err
	}
	c, err := s.tx.Commit(ctx, o)
	if err == nil && !o.DryRun {
		s.left.Do(func() { s.db.shared.end(s.ID()) })
	}
	return c, err
}

// Savepoint is [txn.Session.Savepoint].
func (s *Session) Savepoint(ctx context.Context) error {
	if err := s.copies.Refresh(ctx); err != nil {
		return err
	}
	return s.tx.Savepoint(ctx)
}

// CreateArray makes an array, and groups above it where they are missing. If
// there is a node already the error is zarr.ErrExists.
func (s *Session) CreateArray(ctx context.Context, path string, spec zarr.Spec) (*zarr.Array, error) {
	if err := s.dropCopies(ctx, path); err != nil {
		return nil, err
	}
	return zarr.Create(ctx, s.nodes.view, path, spec, s.nodes.open)
}

// dropCopies drops consolidated metadata above a node that is to be made, so that the
// groups above are read without it.
func (s *Session) dropCopies(ctx context.Context, path string) error {
	path = names.Clean(path)
	if found, err := kv.Any(ctx, s, names.Dir(path)); err != nil || found {
		return err // making the node will fail
	}
	return s.copies.Above(ctx, path)
}

// ReplaceArray is CreateArray in place of any node there.
func (s *Session) ReplaceArray(ctx context.Context, path string, spec zarr.Spec) (*zarr.Array, error) {
	return zarr.Create(ctx, s.nodes.view, path, spec, s.overwriting(0))
}

// CreateGroup makes a group of a format (0 for the format of the group above,
// else v3), and groups above it where they are missing. If there is a node
// already the error is zarr.ErrExists.
func (s *Session) CreateGroup(ctx context.Context, path string, version zarr.Version, attrs zarr.Attributes) (*zarr.Group, error) {
	if err := s.dropCopies(ctx, path); err != nil {
		return nil, err
	}
	o := *s.nodes.open
	o.Version = version
	return zarr.CreateGroup(ctx, s.nodes.view, path, attrs, &o)
}

// ReplaceGroup is CreateGroup in place of any node there.
func (s *Session) ReplaceGroup(ctx context.Context, path string, version zarr.Version, attrs zarr.Attributes) (*zarr.Group, error) {
	return zarr.CreateGroup(ctx, s.nodes.view, path, attrs, s.overwriting(version))
}

func (s *Session) overwriting(version zarr.Version) *zarr.OpenOptions {
	o := *s.nodes.open
	o.Overwrite, o.Version = true, version
	return &o
}

// Rename moves the node at a path, with everything below it. Chunks are not
// touched. Groups above the new path are made where they are missing. Errors:
// zarr.ErrNotFound if there is no node, zarr.ErrExists if something is at the
// new path, zarr.ErrKind if that lies below an array, [OtherFormatError] if it lies
// below a group of another format and the node did not, zarr.ErrDraft3 for a node in the
// early v3 draft.
func (s *Session) Rename(ctx context.Context, from, to string) error {
	from, to = names.Clean(from), names.Clean(to)
	if from == to { // nothing changes
		_, _, err := opened(s.nodes.Node(ctx, from))
		return err
	}
	if err := s.place(ctx, "rename", s.nodes, from, to); err != nil {
		return err
	}
	return s.Move(ctx, from, to)
}

// CopyNode copies the node at a path of a version, nil for the session itself,
// with everything below it. Chunks are shared. From another database every value
// is read and written; virtual values become bytes of this one. The rest is as
// for Rename.
func (s *Session) CopyNode(ctx context.Context, src *Snapshot, from, to string) error {
	from, to = names.Clean(from), names.Clean(to)
	source := s.nodes
	if src != nil {
		source = src.nodes
	}
	if err := s.place(ctx, "copy", source, from, to); err != nil {
		return err
	}
	return s.copyBelow(ctx, src, from, to)
}

// copyBelow copies the nodes below a path of a version, nil for the session itself.
func (s *Session) copyBelow(ctx context.Context, src *Snapshot, from, to string) error {
	switch {
	case src == nil:
		return s.Copy(ctx, nil, from, to)
	case src.db.files == s.db.files:
		return s.Copy(ctx, src.at, from, to)
	}
	from, to = names.Dir(from), names.Dir(to)
	set := func(ctx context.Context, key string, b []byte) error {
		return s.Set(ctx, to+strings.TrimPrefix(key, from), b)
	}
	// Documents come first, because they tell which keys are chunks: then chunks go straight
	// into the chunk map of their array.
	documents := func(yield func(string, error) bool) {
		for v, err := range src.Documents(ctx, from) {
			if !yield(v.Key, err) {
				return
			}
		}
	}
	for i, keys := range []iter.Seq2[string, error]{documents, src.List(ctx, kv.ListOptions{Prefix: from})} {
		err := transfer.Batches(keys, func(keys []string) error {
			keys = slices.DeleteFunc(keys, func(key string) bool { return names.IsDocument(key) != (i == 0) })
			return transfer.EachValue(ctx, s.db.pool, src, keys, set)
		})
		if err != nil {
			return fmt.Errorf("copy from another database: %w", err)
		}
	}
	return nil
}

// Set is [txn.Session.Set].
func (s *Session) Set(ctx context.Context, key string, value []byte) error {
	defer s.noteKey(key)()
	return s.tx.Set(ctx, key, value)
}

// Delete is [txn.Session.Delete].
func (s *Session) Delete(ctx context.Context, key string) error {
	defer s.noteKey(key)()
	return s.tx.Delete(ctx, key)
}

// Untracked notes that nodes may change in another way than through this Session, so that
// consolidated metadata is made again from all nodes.
func (s *Session) Untracked() { s.copies.Untracked() }

// noteKey notes that a single key is going to be set or deleted. The caller calls done then.
func (s *Session) noteKey(key string) (done func()) {
	if !names.IsDocument(key) {
		return func() {}
	}
	s.Untracked()
	return func() { s.nodes.open.Locks.Changed(key) }
}

// Refresh is [txn.Session.Refresh].
func (s *Session) Refresh(ctx context.Context, choices []txn.PathChoice) error {
	if err := s.copies.Refresh(ctx); err != nil {
		return err
	}
	return s.tx.Refresh(ctx, choices)
}

// Move is [txn.Session.Move]; [Session.Rename] checks what nodes need.
func (s *Session) Move(ctx context.Context, from, to string) error {
	err := s.copies.Above(ctx, names.Clean(from))
	if err == nil {
		err = s.copies.Above(ctx, names.Clean(to))
	}
	if err == nil {
		err = s.tx.Move(ctx, from, to)
	}
	if err == nil {
		s.copies.Gone(names.Clean(to))
		s.copies.Transferred(names.Clean(from), names.Clean(to), true)
	}
	return err
}

// Copy is [txn.Session.Copy]; [Session.CopyNode] checks what nodes need, and
// copies from other databases.
func (s *Session) Copy(ctx context.Context, src *txn.Snapshot, from, to string) error {
	err := s.copies.Above(ctx, names.Clean(to))
	if err == nil {
		err = s.tx.Copy(ctx, src, from, to)
	}
	if err == nil {
		s.copies.Gone(names.Clean(to))
	}
	if err == nil && src == nil {
		s.copies.Transferred(names.Clean(from), names.Clean(to), false)
	}
	return err
}

// DeletePrefix is [txn.Session.DeletePrefix].
func (s *Session) DeletePrefix(ctx context.Context, prefix string) error {
	return tracked{s.tx, s.copies, s.db.files}.DeletePrefix(ctx, prefix)
}

// Bulk is [txn.Session.Bulk].
func (s *Session) Bulk(ctx context.Context, path string, add bool) (*txn.Bulk, error) {
	if err := s.copies.Above(ctx, names.Clean(path)); err != nil {
		return nil, err
	}
	return s.tx.Bulk(ctx, path, add)
}

// place makes sure that a node is at from, and that to can take it.
func (s *Session) place(ctx context.Context, op string, src nodes, from, to string) error {
	_, m, err := opened(src.Node(ctx, from))
	if err != nil {
		return err
	}
	fail := func(err error) error { return fmt.Errorf("%s /%s to /%s: %w", op, from, to, err) }
	switch {
	case m.Version == zarr.Draft3:
		return fail(zarr.ErrDraft3)
	case to == "":
		return fail(fmt.Errorf("%w: the root cannot be replaced", zarr.ErrPath))
	case src == s.nodes && (to == from || strings.HasPrefix(to, names.Dir(from))):
		return fail(fmt.Errorf("%w: the new path lies inside the old one", zarr.ErrPath))
	}
	if err := checkNewPath(m.Version, to); err != nil {
		return fail(err)
	}
	found, err := kv.Any(ctx, s, names.Dir(to))
	if err == nil && !found {
		found, err = kv.Exists(ctx, s, to)
	}
	if err == nil && found {
		err = zarr.ErrExists
	}
	if err == nil {
		var strange *OtherFormatError
		if strange, err = src.strangeAt(ctx, from, m.Version); err == nil {
			err = s.groupsAbove(ctx, to, m.Version, strange == nil)
		}
	}
	if err == nil {
		err = s.copies.Above(ctx, to)
	}
	if err != nil {
		return fail(err)
	}
	return nil
}

// OtherFormatError means that a node would be put below a group of another format,
// which does not show it. It is zarr.ErrKind.
type OtherFormatError struct {
	Group       string // its path
	Above, Node zarr.Version
}

// Error names the group and both formats.
func (e *OtherFormatError) Error() string {
	return fmt.Sprintf("%v: the group /%s has format %v and shows no node of format %v", zarr.ErrKind, e.Group, e.Above, e.Node)
}

// Is makes it zarr.ErrKind.
func (e *OtherFormatError) Is(target error) bool { return target == zarr.ErrKind }

// strangeAt returns an error if the group above a node has another format, as where
// a store was imported below a group, and nil if it has not.
func (n nodes) strangeAt(ctx context.Context, path string, v zarr.Version) (*OtherFormatError, error) {
	for path != "" {
		path = names.Parent(path)
		switch above, err := n.Node(ctx, path); {
		case err == nil && above.Version() != v:
			return &OtherFormatError{Group: path, Above: above.Version(), Node: v}, nil
		case err == nil:
			return nil, nil
		case !errors.Is(err, zarr.ErrNotFound):
			return nil, err
		}
	}
	return nil, nil
}

// checkNewPath is names.CheckPath for a path that a node is put at.
func checkNewPath(v zarr.Version, path string) error {
	if err := names.CheckPath(v, path); err != nil {
		return err
	}
	return meta.CheckNewPath(v, path)
}

// groupsAbove makes groups of a format above a path where they are missing. If
// strict, a group of another format there is an error; otherwise nothing is made
// below it, because it would not show the nodes inside.
func (s *Session) groupsAbove(ctx context.Context, path string, v zarr.Version, strict bool) error {
	group := names.Parent(path)
	for p := group; path != ""; p = names.Parent(p) {
		n, err := s.Node(ctx, p)
		switch {
		case errors.Is(err, zarr.ErrNotFound):
			if p == "" {
				return s.makeGroup(ctx, group, v)
			}
			continue
		case err != nil:
			return err
		}
		if _, ok := n.Array(); ok {
			return fmt.Errorf("%w: /%s is an array", zarr.ErrKind, p)
		}
		if n.Version() != v {
			if !strict {
				return nil
			}
			return &OtherFormatError{Group: p, Above: n.Version(), Node: v}
		}
		if p == group {
			return nil
		}
		return s.makeGroup(ctx, group, v)
	}
	return nil
}

// makeGroup makes a group and missing groups above it. Zarr v1 has none.
func (s *Session) makeGroup(ctx context.Context, path string, v zarr.Version) error {
	if v != zarr.V2 && v != zarr.V3 {
		return nil
	}
	_, err := s.CreateGroup(ctx, path, v, zarr.Attributes{})
	return err
}

// Remove deletes the node at a path with everything below it; "" is
// everything. Its cost does not depend on how much that is. zarr.ErrNotFound if
// there is nothing, zarr.ErrDraft3 for a node in the early v3 draft, of which
// only all can be removed.
func (s *Session) Remove(ctx context.Context, path string) error {
	path = names.Clean(path)
	if path != "" {
		// Keys of the early v3 draft are elsewhere.
		if n, err := s.Node(ctx, path); err == nil && n.Version() == zarr.Draft3 {
			return n.Delete(ctx)
		}
	}
	found, err := kv.Any(ctx, s, names.Dir(path))
	if err == nil && !found {
		err = notFound("remove", path)
	}
	if err != nil {
		return err
	}
	return s.DeletePrefix(ctx, names.Dir(path))
}
