package formats

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/refs"
	"github.com/zarrdb/zarrdb/zarr"
)

// WriteOptions say how arrays are written in a foreign format. The zero value works.
type WriteOptions struct {
	// Compression of all chunks, as the format calls it. Default: the format's.
	Compression string
	// Sharded writes shards, where the format has them.
	Sharded bool
	// Skip are paths of arrays and groups to leave out, relative to the written node. A
	// path without a node is zarr.ErrNotFound.
	Skip []string
	// Open is how the nodes of the source are opened. Default: the built-in codecs.
	Open *zarr.OpenOptions
}

// Nodes yields the nodes at and below a path except those in Skip, as [zarr.Walk] does. left is
// called for each node that is left out.
func (o *WriteOptions) Nodes(ctx context.Context, src kv.Reader, path string, left func(n *zarr.Node)) iter.Seq2[*zarr.Node, error] {
	return func(yield func(*zarr.Node, error) bool) {
		met := make([]bool, len(o.Skip))
		for n, err := range zarr.Walk(ctx, src, path, o.Open) {
			at, skipped := "", false
			if n != nil {
				at = n.Path()
			} else if found, _, ok := zarr.Unreadable(err); ok {
				at = found
			}
			rel := strings.Trim(strings.TrimPrefix(at, strings.Trim(path, "/")), "/")
			for i, s := range o.Skip {
				if s = strings.Trim(s, "/"); s != "" && (rel == s || strings.HasPrefix(rel, s+"/")) {
					skipped, met[i] = true, true
				}
			}
			switch {
			case !skipped && !yield(n, err):
				return
			case skipped && n != nil:
				left(n)
			}
		}
		if i := slices.Index(met, false); i >= 0 {
			yield(nil, fmt.Errorf("skip: /%s: %w", o.Skip[i], zarr.ErrNotFound))
		}
	}
}

// Plan is a hierarchy that is ready to be written in a foreign format: every node
// was checked, and the format has a form for it.
type Plan interface {
	// Write writes everything, the metadata of an array after its chunks. It is
	// called once.
	Write(ctx context.Context, out Output) error
}

// Noter is an optional interface of a [Plan].
type Noter interface {
	// Notes returns differences in the foreign format, and data that is left behind.
	Notes() (notes, behind []string)
}

// Output is where a format is written to.
type Output struct {
	// Dst gets the files by their keys. No key is set twice.
	Dst kv.Writer
	// Run writes several chunks at a time: it calls fn for 0 to n-1, each at most once,
	// and returns the first error when none is running any more. nil writes one after
	// the other, so that the order of keys is always the same.
	Run func(ctx context.Context, n int, fn func(ctx context.Context, i int) error) error
	// Wrote, if not nil, is called with the length of each value that was written, by
	// several goroutines at a time.
	Wrote func(bytes int64)
}

// Set writes one file.
func (o *Output) Set(ctx context.Context, key string, value []byte) error {
	if err := o.Dst.Set(ctx, key, value); err != nil {
		return err
	}
	if o.Wrote != nil {
		o.Wrote(int64(len(value)))
	}
	return nil
}

// Each is Run, or one call after the other.
func (o *Output) Each(ctx context.Context, n int, fn func(ctx context.Context, i int) error) error {
	if o.Run != nil {
		return o.Run(ctx, n, fn)
	}
	for i := range n {
		if err := fn(ctx, i); err != nil {
			return err
		}
	}
	return nil
}

// Files is where a [Writer] writes. A Writer reads its own files back.
type Files interface {
	kv.Reader
	kv.Writer
}

// Writer writes a new store in a format with versions, one version after another:
//
//	Put … ─▶ Commit ─▶ Put … ─▶ Commit ─▶ … ─▶ Finish
//
// Before Finish the files are no store. After an error the store cannot be finished.
// Only calls of Put may overlap.
type Writer interface {
	// Put stores b, the value of a key, and returns the reference with which a change of
	// the next Commit names it. b stays the caller's. It may be called by several
	// goroutines at a time, also while Commit waits for its next change.
	Put(ctx context.Context, key string, b []byte) (refs.Reference, error)

	// Commit writes a version and returns its ID. v.ID names the version in its source;
	// v.Parents are IDs that Commit returned. Changes are relative to the first parent,
	// or without parents to an empty version, in any order: Deleted, or with a
	// reference that Put returned, with Data, or with an absolute URL. A change that
	// the format cannot express is ErrUnsupported.
	Commit(ctx context.Context, v Version, changes iter.Seq2[Change, error]) (id string, err error)

	// Finish writes branches and tags and completes the store. One of the names is the
	// branch main.
	Finish(ctx context.Context, names []Name) error
}

// ChunkShape returns the shape of the chunks of an array, of inner ones in shards, and of
// the first one where they differ. It must not be changed.
func ChunkShape(m *zarr.Meta) []int {
	shape := m.Grid.Regular()
	if shape == nil {
		shape = make([]int, len(m.Shape))
		for d := range shape {
			shape[d] = 1
			if m.Grid.Count(d, m.Shape[d]) > 0 {
				shape[d] = int(m.Grid.Start(d, 1))
			}
		}
	}
	if b, err := m.Codecs.Bind(codecs.Rep{Type: m.Type, Shape: shape, Fill: m.Fill}); err == nil && b.InnerShape() != nil {
		return b.InnerShape()
	}
	return shape
}
