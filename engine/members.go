package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/zarrdb/zarrdb/engine/internal/names"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/zarr"
)

// Member is a direct child of a path: a node or, if Node is nil, a directory
// without metadata.
type Member struct {
	Name string
	Node *zarr.Node
}

// Members yields the direct children of a path, sorted by name, nodes of every
// format. Chunks of an array are no members. A node that cannot be opened is
// yielded as its error, and the sequence continues. The error is
// zarr.ErrNotFound if the path does not exist; an empty store has an empty root.
func (n nodes) Members(ctx context.Context, path string) iter.Seq2[Member, error] {
	return func(yield func(Member, error) bool) {
		path = names.Clean(path)
		at, err := n.Node(ctx, path)
		switch {
		case err == nil && at.Version() == zarr.Draft3: // its keys are elsewhere
			for c, err := range at.Children(ctx) {
				m := Member{Node: c}
				if c != nil {
					m.Name = c.Name()
				}
				if !yield(m, err) {
					return
				}
			}
			return
		case err == nil:
			if _, ok := at.Array(); ok {
				return
			}
		case !errors.Is(err, zarr.ErrNotFound):
			yield(Member{}, err)
			return
		}
		missing := err
		var paths []string // of children that are opened together
		open := func() bool {
			i := 0
			for c, err := range zarr.OpenEach(ctx, n.view, paths, n.open) {
				m := Member{Name: paths[i][len(names.Dir(path)):], Node: c}
				if errors.Is(err, zarr.ErrNotFound) || errors.Is(err, zarr.ErrPath) {
					m.Node, err = nil, nil
				}
				if i++; !yield(m, err) {
					return false
				}
			}
			paths = paths[:0]
			return true
		}
		for e, err := range n.directories(ctx, path) {
			missing = nil
			if err != nil {
				if open() {
					yield(Member{}, err)
				}
				return
			}
			if paths = append(paths, names.Dir(path)+e.Name); len(paths) == membersAtOnce && !open() {
				return
			}
		}
		if !open() {
			return
		}
		if missing == nil || path == "" {
			return
		}
		// A directory may hold keys alone. One that is listed is in a Lister.
		if some, err := kv.Any(ctx, n.view.(kv.Lister), names.Dir(path)); err != nil || !some {
			yield(Member{}, cmp.Or(err, missing))
		}
	}
}

// membersAtOnce is the number of members opened at a time.
const membersAtOnce = 64

// directories yields the directories right below a path. One without a name, as
// the key "a//b" has it, holds no node and has no path, so it is passed over.
func (n nodes) directories(ctx context.Context, path string) iter.Seq2[kv.DirEntry, error] {
	return func(yield func(kv.DirEntry, error) bool) {
		list, ok := n.view.(kv.Lister)
		if !ok {
			yield(kv.DirEntry{}, errors.ErrUnsupported)
			return
		}
		for e, err := range kv.ListDir(ctx, list, names.Dir(path)) {
			if err == nil && (!e.Prefix || e.Name == "") {
				continue
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

// Members yields the direct children of the node that the URL names, or of a
// path below it; see [Snapshot.Members].
func (s *Source) Members(ctx context.Context, path string) iter.Seq2[Member, error] {
	return func(yield func(Member, error) bool) {
		x, err := s.selection(ctx)
		if err != nil {
			yield(Member{}, err)
			return
		}
		for m, err := range (nodes{x.view, x.open}).Members(ctx, names.Clean(x.prefix+names.Clean(path))) {
			if !yield(m, err) {
				return
			}
		}
	}
}

// Beside returns a function that opens nodes by their names beside the node at a path of
// a version or session, or else in the nearest group around it that has one: the coordinates of
// an array are there. A name that no node can have is [zarr.ErrNotFound].
func Beside(in interface {
	Node(ctx context.Context, path string) (*zarr.Node, error)
}, path string) func(ctx context.Context, name string) (*zarr.Node, error) {
	return func(ctx context.Context, name string) (*zarr.Node, error) {
		if path == "" || name == "" || strings.Contains(name, "/") {
			return nil, fmt.Errorf("%s: beside /%s: %w", name, path, zarr.ErrNotFound)
		}
		return nearest(names.Parent(path), func(group string) (*zarr.Node, error) { return in.Node(ctx, names.Join(group, name)) })
	}
}

// nearest opens something in a group, or else in the nearest one above it that has it. The error
// is that of the group.
func nearest(group string, open func(group string) (*zarr.Node, error)) (*zarr.Node, error) {
	n, err := open(group)
	for missing := err; errors.Is(missing, zarr.ErrNotFound) && group != ""; {
		group = names.Parent(group)
		var above *zarr.Node
		if above, missing = open(group); missing == nil {
			return above, nil
		}
	}
	return n, err
}
