package engine

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/txn"
	"github.com/zarrdb/zarrdb/zarr"
)

// nodes opens the hierarchy that a view holds.
type nodes struct {
	view kv.ReadLister
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

// Snapshot is one version as a hierarchy and as a kv view. It never changes.
// Safe for concurrent use; Close when done.
type Snapshot struct {
	*txn.Snapshot
	nodes
}

// Session is a transaction as a hierarchy and as a writeable kv view. Arrays
// opened from it read and write through it until it ends.
type Session struct {
	*txn.Session
	nodes
}

// CreateArray makes an array, and groups above it where they are missing. If
// there is a node already the error is zarr.ErrExists.
func (s *Session) CreateArray(ctx context.Context, path string, spec zarr.Spec) (*zarr.Array, error) {
	return zarr.Create(ctx, s.Session, path, spec, s.open)
}

// ReplaceArray is CreateArray in place of whatever is there.
func (s *Session) ReplaceArray(ctx context.Context, path string, spec zarr.Spec) (*zarr.Array, error) {
	return zarr.Create(ctx, s.Session, path, spec, s.overwriting(0))
}

// CreateGroup makes a group of a format (0 for that of the group above, else
// v3), and groups above it where they are missing. If there is a node already
// the error is zarr.ErrExists.
func (s *Session) CreateGroup(ctx context.Context, path string, version zarr.Version, attrs zarr.Attributes) (*zarr.Group, error) {
	o := *s.open
	o.Version = version
	return zarr.CreateGroup(ctx, s.Session, path, attrs, &o)
}

// ReplaceGroup is CreateGroup in place of whatever is there.
func (s *Session) ReplaceGroup(ctx context.Context, path string, version zarr.Version, attrs zarr.Attributes) (*zarr.Group, error) {
	return zarr.CreateGroup(ctx, s.Session, path, attrs, s.overwriting(version))
}

func (s *Session) overwriting(version zarr.Version) *zarr.OpenOptions {
	o := *s.open
	o.Overwrite, o.Version = true, version
	return &o
}

// Rename moves the node at a path, with everything below it. Chunks are not
// touched. Errors: zarr.ErrNotFound if there is none, zarr.ErrExists if
// something is at the new path, and an error if that lies below an array.
func (s *Session) Rename(ctx context.Context, from, to string) error {
	if err := s.place(ctx, s, from, to); err != nil {
		return err
	}
	return s.Move(ctx, from, to)
}

// CopyNode copies the node at a path of a version, nil for the session itself,
// with everything below it. Chunks are shared. Errors are those of Rename.
func (s *Session) CopyNode(ctx context.Context, src *Snapshot, from, to string) error {
	if src == nil {
		if err := s.place(ctx, s, from, to); err != nil {
			return err
		}
		return s.Copy(ctx, nil, from, to)
	}
	if err := s.place(ctx, src, from, to); err != nil {
		return err
	}
	return s.Copy(ctx, src.Snapshot, from, to)
}

// place makes sure that a node is at from, and that to can take it.
func (s *Session) place(ctx context.Context, src interface {
	Node(context.Context, string) (*zarr.Node, error)
}, from, to string) error {
	if _, err := src.Node(ctx, from); err != nil {
		return err
	}
	if to == "" {
		return fmt.Errorf("%w: nothing can be moved to the root", zarr.ErrPath)
	}
	if _, err := s.Node(ctx, to); !errors.Is(err, zarr.ErrNotFound) {
		return errors.Join(fmt.Errorf("/%s: %w", to, zarr.ErrExists), err)
	}
	for p := parent(to); ; p = parent(p) {
		n, err := s.Node(ctx, p)
		if err != nil && !errors.Is(err, zarr.ErrNotFound) {
			return err
		}
		if err == nil {
			if _, ok := n.Array(); ok {
				return fmt.Errorf("/%s: %w: /%s is an array", to, zarr.ErrKind, p)
			}
		}
		if p == "" {
			return nil
		}
	}
}

// parent is the path of the group above.
func parent(path string) string { return path[:max(strings.LastIndexByte(path, '/'), 0)] }

// Remove deletes the node at a path with everything below it. Its cost does
// not depend on how much that is. zarr.ErrNotFound if there is nothing.
func (s *Session) Remove(ctx context.Context, path string) error {
	for _, err := range s.List(ctx, kv.ListOptions{Prefix: dir(path)}) {
		if err != nil {
			return err
		}
		return s.DeletePrefix(ctx, dir(path))
	}
	return notFound("remove", path)
}

// dir is the key prefix of everything at and below a node path.
func dir(path string) string {
	if path == "" {
		return ""
	}
	return path + "/"
}
