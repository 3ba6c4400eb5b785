package convert

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/engine/internal/names"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/zarr"
)

// View presents a hierarchy in another format, without a copy: documents
// are made when they are read, and chunks are chunks of the source under other
// keys. An array or group that has no form in the format is not listed, and
// [ErrConvert] when one of its keys is read. Its metadata is not consolidated.
// Keys that belong to no node are left out. Missing chunks that the documents do
// not describe are read as chunks of fill values, but List and ListDir yield stored
// chunks only. Safe for concurrent use.
type View struct {
	view   kv.Reader
	open   *zarr.OpenOptions
	format zarr.Version
	keep   bool // the source never changes

	mu    sync.Mutex
	steps map[string]*convertedNode // by path; nil where there is no node
}

var (
	_ kv.ReadLister = (*View)(nil)
	_ kv.Locator    = (*View)(nil)
	_ kv.DirLister  = (*View)(nil)
)

// convertedNode is a node in the other format, or why it has none.
type convertedNode struct {
	docs  map[string][]byte
	array *zarr.Array // nil for a group
	keys  zarr.ChunkKeys
	needs bool // the documents do not define the contents of missing chunks
	err   error

	mu   sync.Mutex
	fill []byte // contents of missing chunks, once one was read, up to keptFill
}

// Bounds of a converted view.
const (
	keptSteps       = 10_000
	keptFill        = 1 << 20   // bytes of a chunk of fill values that a node keeps
	convertedListed = 1_000_000 // keys in memory for a listing
)

// NewView presents a view in a format. o are the options that open its nodes. With keep, the
// view never changes, so that converted nodes may be kept.
func NewView(view kv.Reader, o *zarr.OpenOptions, format zarr.Version, keep bool) *View {
	return &View{view: view, open: o, format: format, keep: keep}
}

// node returns the node at a path, nil without one.
func (c *View) node(ctx context.Context, path string) (*convertedNode, error) {
	if c.keep {
		c.mu.Lock()
		n, ok := c.steps[path]
		c.mu.Unlock()
		if ok {
			return n, nil
		}
	}
	n, err := c.convert(ctx, path)
	if err == nil && c.keep {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.steps == nil || len(c.steps) >= keptSteps {
			c.steps = map[string]*convertedNode{}
		}
		c.steps[path] = n
	}
	return n, err
}

func (c *View) convert(ctx context.Context, path string) (*convertedNode, error) {
	n, err := zarr.Open(ctx, c.view, path, c.open)
	switch {
	case errors.Is(err, zarr.ErrNotFound), errors.Is(err, zarr.ErrPath):
		return nil, nil
	case errors.Is(err, zarr.ErrMetadata):
		return &convertedNode{err: err}, nil
	case err != nil:
		return nil, err
	}
	out := &convertedNode{}
	failed := func(err error) (*convertedNode, error) {
		out.err = fmt.Errorf("/%s: %w to Zarr v%v: %w", path, ErrConvert, c.format, err)
		return out, nil
	}
	if err := checkNames(c.format, path); err != nil {
		return failed(err)
	}
	var axes []*string
	if a, ok := n.Array(); ok && n.Version() != c.format {
		if axes, _, err = axesOf(ctx, a); err != nil {
			return nil, err
		}
	}
	m, err := convertMeta(n.Meta(), c.format, c.open.Registry, axes, false)
	if err != nil {
		return failed(err)
	}
	_ = convertOME(m, n.Version(), path, shapesBelow(ctx, c.view, path, c.open)) // attributes without a form stay as they are
	if out.docs, err = m.Print(); err != nil {
		return failed(err)
	}
	if !m.Array {
		doc, err := omeDocument(ctx, c.view, path)
		if err != nil {
			return nil, err
		}
		if doc != nil {
			out.docs[omeXML] = doc
		}
	}
	if a, ok := n.Array(); ok {
		out.array, out.keys, out.needs = a, m.Keys, needsChunks(m, a.Meta())
	}
	return out, nil
}

// chunk returns the coordinates of the chunk with a key relative to an array.
func (n *convertedNode) chunk(key string) (coords []int64, ok bool) {
	coords, ok = n.keys.Parse(key)
	for d, count := range n.array.Meta().ChunkCounts() {
		ok = ok && coords[d] < count
	}
	return coords, ok
}

// missingChunk returns the contents of missing chunks of an array. It must not be changed.
func (n *convertedNode) missingChunk(ctx context.Context, reg *codecs.Registry) ([]byte, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.fill != nil {
		return n.fill, nil
	}
	chunk, err := fillChunk(ctx, n.array.Meta(), reg)
	if err == nil && len(chunk) <= keptFill {
		n.fill = chunk
	}
	return chunk, err
}

// Locate implements [kv.Locator].
func (c *View) Locate(ctx context.Context, key string) (kv.Value, error) {
	name := key[strings.LastIndexByte(key, '/')+1:]
	if name == omeXML || slices.Contains(names.Documents(c.format), name) {
		n, err := c.node(ctx, names.Parent(key))
		switch {
		case err != nil:
			return nil, err
		case n == nil:
			return nil, kv.ErrNotFound
		case n.err != nil:
			return nil, n.err
		case n.docs[name] == nil:
			return nil, kv.ErrNotFound
		}
		return kv.Bytes(n.docs[name]), nil
	}
	n, path, err := c.arrayAbove(ctx, key)
	if err != nil {
		return nil, err
	}
	if n == nil {
		return nil, kv.ErrNotFound
	}
	coords, ok := n.chunk(strings.TrimPrefix(key, names.Dir(path)))
	if !ok {
		return nil, kv.ErrNotFound
	}
	v, err := kv.Locate(ctx, c.view, n.array.ChunkKey(coords))
	if !n.needs || !errors.Is(err, kv.ErrNotFound) {
		return v, err
	}
	chunk, err := n.missingChunk(ctx, c.open.Registry)
	if err != nil {
		return nil, fmt.Errorf("/%s: %w to Zarr v%v: chunk of fill values: %w", key, ErrConvert, c.format, err)
	}
	return kv.Bytes(chunk), nil
}

// arrayAbove returns the array that a key could be a chunk of, nil without one.
func (c *View) arrayAbove(ctx context.Context, key string) (*convertedNode, string, error) {
	for path := key; path != ""; {
		path = names.Parent(path)
		n, err := c.node(ctx, path)
		if err != nil {
			return nil, "", err
		}
		if n != nil && n.err != nil {
			return nil, "", n.err
		}
		if n != nil {
			if n.array == nil {
				n = nil
			}
			return n, path, nil
		}
	}
	return nil, "", nil
}

// Get implements [kv.Reader].
func (c *View) Get(ctx context.Context, key string, rng kv.Range) ([]byte, error) {
	v, err := c.Locate(ctx, key)
	if err != nil {
		return nil, err
	}
	return kv.ReadValue(ctx, v, rng)
}

// ListDir implements [kv.DirLister].
func (c *View) ListDir(ctx context.Context, prefix string) iter.Seq2[kv.DirEntry, error] {
	return func(yield func(kv.DirEntry, error) bool) {
		path := strings.TrimSuffix(prefix, "/")
		n, err := c.node(ctx, path)
		inArray := n != nil && n.array != nil
		if err == nil && n == nil && path != "" {
			var above *convertedNode
			above, _, err = c.arrayAbove(ctx, path)
			inArray = above != nil
		}
		if errors.Is(err, ErrConvert) || n != nil && n.err != nil {
			return // a node without a form has no keys
		}
		if err == nil && inArray {
			// A chunk may lie below several names.
			err = errors.ErrUnsupported
		}
		var names []kv.DirEntry
		if err == nil && n != nil {
			for name := range n.docs {
				names = append(names, kv.DirEntry{Name: name})
			}
		}
		list, ok := c.view.(kv.Lister)
		if err == nil && !ok {
			err = errors.ErrUnsupported
		}
		if err == nil {
			for e, lerr := range kv.ListDir(ctx, list, prefix) {
				if err = lerr; err != nil {
					break
				}
				if !e.Prefix {
					continue
				}
				// Clients that open each child must not meet one that has no form.
				var child *convertedNode
				if child, err = c.node(ctx, prefix+e.Name); err != nil {
					break
				}
				if child == nil || child.err == nil {
					names = append(names, e)
				}
			}
		}
		if err != nil {
			yield(kv.DirEntry{}, err)
			return
		}
		slices.SortFunc(names, func(a, b kv.DirEntry) int { return strings.Compare(a.Name, b.Name) })
		for _, e := range names {
			if !yield(e, nil) {
				return
			}
		}
	}
}

// List implements [kv.Lister]. It holds all keys below the nodes that the prefix
// selects; more than a million are kv.ErrTooLarge.
func (c *View) List(ctx context.Context, o kv.ListOptions) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		keys, err := c.keys(ctx, o)
		if err != nil {
			yield("", err)
			return
		}
		for _, key := range keys {
			if !yield(key, nil) {
				return
			}
		}
	}
}

func (c *View) keys(ctx context.Context, o kv.ListOptions) (keys []string, err error) {
	add := func(key string) error {
		if !o.Has(key) {
			return nil
		}
		if keys = append(keys, key); len(keys) > convertedListed {
			return fmt.Errorf("%w: more than %d keys in another format", kv.ErrTooLarge, convertedListed)
		}
		return nil
	}
	// The walk begins at the array that the prefix lies in, or at the last directory.
	from := names.Parent(o.Prefix)
	if n, path, err := c.arrayAbove(ctx, o.Prefix); err == nil && n != nil {
		from = path
		if key, below := strings.CutPrefix(names.Parent(o.Prefix), names.Dir(path)); below {
			if _, ok := n.chunk(key); ok {
				return nil, nil // no key lies below a chunk
			}
		}
	}
	for found, err := range zarr.Walk(ctx, c.view, from, c.open) {
		if errors.Is(err, zarr.ErrNotFound) || errors.Is(err, zarr.ErrMetadata) || errors.Is(err, zarr.ErrPath) {
			continue
		}
		if err != nil {
			return nil, err
		}
		path := found.Path()
		n, err := c.node(ctx, path)
		if err != nil {
			return nil, err
		}
		if n == nil || n.err != nil {
			continue
		}
		for name := range n.docs {
			if err := add(names.Dir(path) + name); err != nil {
				return nil, err
			}
		}
		// Other keys of the array do not begin with the prefix.
		if at := names.Dir(path); n.array == nil || !strings.HasPrefix(at, o.Prefix) && !strings.HasPrefix(o.Prefix, at) {
			continue
		}
		list, ok := c.view.(kv.Lister)
		if !ok {
			return nil, errors.ErrUnsupported
		}
		for chunk, err := range storedChunks(ctx, list, n.array) {
			if err == nil {
				err = add(string(n.keys.Append([]byte(names.Dir(path)), chunk.coords)))
			}
			if err != nil {
				return nil, err
			}
		}
	}
	slices.Sort(keys)
	return keys, nil
}
