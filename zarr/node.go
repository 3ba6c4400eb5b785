package zarr

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/zarrdb/zarrdb/internal/ctxlock"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/zarr/internal/jsontext"
	"github.com/zarrdb/zarrdb/zarr/meta"
)

// location is where a node lies in its view.
type location struct {
	version Version
	path    string           // without slashes around it, "" is the root
	docs    string           // a metadata document has the key docs + its name
	chunks  string           // a chunk has the key chunks + what ChunkKeys spells
	draft   meta.DraftLayout // for Draft3
}

// locate returns the location of a node of Zarr v1, v2 or v3.
func locate(v Version, path string) location {
	prefix := below(path)
	return location{version: v, path: path, docs: prefix, chunks: prefix}
}

func locateDraft(l meta.DraftLayout, path string, array bool) location {
	loc := location{version: Draft3, path: path, chunks: l.ChunkPrefix(path), draft: l}
	if array {
		loc.docs = strings.TrimSuffix(l.ArrayKey(path), meta.DocArrayDraft)
	} else {
		loc.docs = strings.TrimSuffix(l.GroupKey(path), meta.DocGroupDraft)
	}
	return loc
}

// below returns the prefix of the keys below a path.
func below(path string) string {
	if path == "" {
		return ""
	}
	return path + "/"
}

// join is the path of a child.
func joinPath(path, name string) string { return below(path) + name }

// Node is an array or a group in a view. It is a handle, like an [Array], and
// safe for concurrent use.
type Node struct {
	view  kv.Reader
	loc   location
	opts  OpenOptions
	array *Array
	meta  atomic.Pointer[Meta] // of a group
	// change serialises SetAttributes of a group, so that meta is what this handle
	// stored last.
	change ctxlock.Lock
	// known holds the nodes below a group that consolidated metadata tells.
	known  *knownNodes
	images *images
}

// Path is the path of the node in the view without slashes around it; "" is
// the root.
func (n *Node) Path() string { return n.loc.path }

// Name is the last name of the path; "" is the root.
func (n *Node) Name() string { return n.loc.path[strings.LastIndexByte(n.loc.path, '/')+1:] }

// Version is the format of the node.
func (n *Node) Version() Version { return n.loc.version }

// Meta returns the metadata, which must not be changed. A group of the early v3
// draft that has no document has none, and an empty Meta.
func (n *Node) Meta() *Meta {
	if n.array != nil {
		return n.array.Meta()
	}
	return n.meta.Load()
}

// Attributes returns the user attributes.
func (n *Node) Attributes() Attributes { return n.Meta().Attributes }

// Array returns the array if the node is one.
func (n *Node) Array() (a *Array, ok bool) { return n.array, n.array != nil }

// Group is a [Node] that is a group.
type Group struct{ *Node }

// Open opens the array or group at path. Formats are tried in this order:
// zarr.json (v3), .zarray and .zgroup (v2), meta (v1), and the two layouts of
// the early v3 draft, whose root is the root of the view. The error is an
// [Error]: [ErrNotFound] if there is no node, [ErrPath] if the path is not
// allowed, [ErrMetadata] if its metadata cannot be used. A slash at either end
// of the path is left out.
//
// The view decides what can be done with the node: children need a [kv.Lister]
// or consolidated metadata, changes a [kv.Writer]. Nodes in the early v3 draft
// are only read: changes are [ErrDraft3].
func Open(ctx context.Context, view kv.Reader, path string, o *OpenOptions) (*Node, error) {
	f := newFinder(view, o.withDefaults())
	n, err := f.find(ctx, path)
	if err != nil {
		return nil, failAt("open", path, err)
	}
	return n, nil
}

// OpenArray is [Open] for a node that must be an array.
func OpenArray(ctx context.Context, view kv.Reader, path string, o *OpenOptions) (*Array, error) {
	n, err := Open(ctx, view, path, o)
	if err != nil {
		return nil, err
	}
	if n.array == nil {
		return nil, failAt("open", path, fmt.Errorf("%w: a group, not an array", ErrKind))
	}
	return n.array, nil
}

// OpenGroup is [Open] for a node that must be a group.
func OpenGroup(ctx context.Context, view kv.Reader, path string, o *OpenOptions) (*Group, error) {
	n, err := Open(ctx, view, path, o)
	if err != nil {
		return nil, err
	}
	if n.array != nil {
		return nil, failAt("open", path, fmt.Errorf("%w: an array, not a group", ErrKind))
	}
	return &Group{n}, nil
}

// ErrKind means that a node is an array where a group is needed, or a group
// where an array is.
var ErrKind = errors.New("zarr: wrong kind of node")

// failAt names operation and path in an error that does not have them yet.
func failAt(op, path string, err error) error {
	if err == nil {
		return nil
	}
	var e *Error
	if errors.As(err, &e) {
		return err
	}
	return &Error{Op: op, Path: strings.Trim(path, "/"), Err: err}
}

// OpenEach opens several nodes with [Open], some at a time if o has a Runner, and
// yields each node or its error in the order of the paths. Long documents are read
// one at a time.
func OpenEach(ctx context.Context, view kv.Reader, paths []string, o *OpenOptions) iter.Seq2[*Node, error] {
	f := newFinder(view, o.withDefaults())
	return func(yield func(*Node, error) bool) {
		for paths := range slices.Chunk(paths, openBatch) {
			nodes, errs := make([]*Node, len(paths)), make([]error, len(paths))
			short := f
			short.most = batchDocument
			open := func(ctx context.Context, i int) error {
				nodes[i], errs[i] = short.find(ctx, paths[i])
				return nil
			}
			if err := runWith(ctx, f.opts.Runner, len(paths), open); err != nil {
				yield(nil, err)
				return
			}
			for i, path := range paths {
				if errors.Is(errs[i], kv.ErrTooLarge) {
					long := f
					long.long = true
					nodes[i], errs[i] = long.find(ctx, path)
				}
				if !yield(nodes[i], failAt("open", path, errs[i])) {
					return
				}
				nodes[i] = nil
			}
		}
	}
}

// runWith calls fn for 0 to n-1 with r, or one after the other.
func runWith(ctx context.Context, r Runner, n int, fn func(ctx context.Context, i int) error) error {
	if r != nil {
		return r.Run(ctx, n, fn)
	}
	for i := range n {
		if err := fn(ctx, i); err != nil {
			return err
		}
	}
	return nil
}

// finder looks for nodes in a view.
type finder struct {
	view   kv.Reader
	opts   OpenOptions
	images *images
	most   int64 // the longest document that is read; 0 is jsontext.MaxDocument
	long   bool  // some document is longer than batchDocument: look at how each begins
}

func newFinder(view kv.Reader, o OpenOptions) finder {
	return finder{view: view, opts: o, images: &images{}}
}

func (f *finder) wants(v Version) bool { return f.opts.Version == 0 || f.opts.Version == v }

// find opens the node at path. ErrNotFound is not wrapped.
func (f *finder) find(ctx context.Context, path string) (*Node, error) {
	n, err := f.lookUp(ctx, path)
	if err == nil {
		n.findImage(ctx)
	}
	return n, err
}

// lookUp is find without the image of an array.
func (f *finder) lookUp(ctx context.Context, path string) (*Node, error) {
	path = strings.TrimSuffix(path, "/")
	v3, err3 := meta.CleanPath(path)
	v2, err2 := meta.CleanPathV2(path)
	if err2 != nil && err3 != nil {
		return nil, err2
	}
	if f.wants(V3) && err3 == nil {
		if n, err := f.findV3(ctx, v3); !errors.Is(err, kv.ErrNotFound) {
			return n, err
		}
	}
	if err2 != nil {
		return nil, ErrNotFound
	}
	for _, try := range []struct {
		v    Version
		find func(context.Context, string) (*Node, error)
	}{{V2, f.findV2}, {V1, f.findV1}, {Draft3, f.findDraft}} {
		if !f.wants(try.v) {
			continue
		}
		if n, err := try.find(ctx, v2); !errors.Is(err, kv.ErrNotFound) {
			return n, err
		}
	}
	if err3 != nil && f.opts.Version == V3 {
		return nil, err3
	}
	return nil, ErrNotFound
}

// document returns a metadata document. A value that is too large for a document is an error,
// before its bytes are read.
func (f *finder) document(ctx context.Context, key string) ([]byte, error) {
	if f.long {
		// A sparse file takes time and memory to read, and is no document.
		head, err := f.view.Get(ctx, key, kv.Span(0, 16))
		if text := bytes.TrimLeft(head, " \t\r\n"); err == nil && len(text) > 0 && text[0] != '{' {
			return head, nil // the whole document would be refused too
		}
	}
	return getDocument(ctx, f.view, key, f.limit())
}

func (f *finder) limit() kv.Range { return kv.AtMost(cmp.Or(f.most, jsontext.MaxDocument)) }

func getDocument(ctx context.Context, view kv.Reader, key string, most kv.Range) ([]byte, error) {
	doc, err := view.Get(ctx, key, most)
	if errors.Is(err, kv.ErrTooLarge) {
		err = fmt.Errorf("metadata document %s: %w", key, err)
	}
	return doc, err
}

func (f *finder) findV3(ctx context.Context, path string) (*Node, error) {
	doc, err := f.document(ctx, below(path)+meta.DocV3)
	if err != nil {
		return nil, err
	}
	if path == "" && meta.IsDraft3Entry(doc) {
		return nil, kv.ErrNotFound
	}
	return f.parseV3(path, doc)
}

func (f *finder) parseV3(path string, doc []byte) (*Node, error) {
	parse := meta.ParseV3Node
	if f.opts.Consolidated {
		parse = meta.ParseV3
	}
	p, err := f.opts.Documents.parse(doc, &f.opts, func() (*Meta, error) { return parse(doc, f.opts.Registry) })
	if err != nil {
		return nil, err
	}
	n, err := f.parsedNode(locate(V3, path), p)
	if m := p.meta; err == nil && f.opts.Consolidated && m.Consolidated != nil {
		n.known = knowNodes(path, m.Consolidated, m.ConsolidatedErrors)
	}
	return n, err
}

// docsV2 are the documents of a v2 node in the order that parseV2 takes them.
var docsV2 = []string{meta.DocArrayV2, meta.DocGroupV2, meta.DocAttrsV2}

func (f *finder) findV2(ctx context.Context, path string) (*Node, error) {
	if f.long {
		docs := make([][]byte, len(docsV2))
		for i, name := range docsV2 {
			var err error
			if docs[i], err = f.document(ctx, below(path)+name); err != nil && !errors.Is(err, kv.ErrNotFound) {
				return nil, err
			}
		}
		return f.parseV2(ctx, path, docs)
	}
	reqs := make([]kv.Request, len(docsV2))
	for i, name := range docsV2 {
		reqs[i] = kv.Request{Key: below(path) + name, Range: f.limit()}
	}
	docs, err := kv.GetMany(ctx, f.view, reqs)
	if err != nil {
		return nil, err
	}
	return f.parseV2(ctx, path, docs)
}

// parseV2 opens a v2 node from its documents; a missing document is nil.
func (f *finder) parseV2(ctx context.Context, path string, docs [][]byte) (*Node, error) {
	zarray, zgroup, zattrs := docs[0], docs[1], docs[2]
	var m *Meta
	var err error
	switch {
	case zarray != nil:
		m, err = meta.ParseV2Array(zarray, zattrs, f.opts.Registry)
	case zgroup != nil:
		m, err = meta.ParseV2Group(zgroup, zattrs)
	default:
		return nil, kv.ErrNotFound
	}
	if err != nil {
		return nil, err
	}
	n, err := f.node(locate(V2, path), m)
	if err != nil || m.Array || !f.opts.Consolidated {
		return n, err
	}
	doc, err := f.document(ctx, below(path)+meta.DocConsolidatedV2)
	if errors.Is(err, kv.ErrNotFound) {
		return n, nil
	}
	if err != nil {
		return nil, err
	}
	nodes, broken, err := meta.ParseConsolidatedV2(doc, f.opts.Registry)
	if err != nil {
		return nil, err
	}
	n.known = knowNodes(path, nodes, broken)
	return n, nil
}

func (f *finder) findV1(ctx context.Context, path string) (*Node, error) {
	doc, err := f.document(ctx, below(path)+meta.DocArrayV1)
	if err != nil {
		return nil, err
	}
	attrs, err := f.document(ctx, below(path)+meta.DocAttrsV1)
	if err != nil && !errors.Is(err, kv.ErrNotFound) {
		return nil, err
	}
	return f.parseV1(path, doc, attrs)
}

func (f *finder) parseV1(path string, doc, attrs []byte) (*Node, error) {
	m, err := meta.ParseV1(doc, attrs, f.opts.Registry)
	if err != nil {
		return nil, err
	}
	return f.node(locate(V1, path), m)
}

// findDraft looks for a node of the early v3 draft. The later layout has an
// entry document; the earlier one has none.
func (f *finder) findDraft(ctx context.Context, path string) (*Node, error) {
	layout, err := draftLayout(ctx, f.view)
	if err != nil {
		return nil, err
	}
	return f.findIn(ctx, layout, path)
}

// findIn looks for a node of the early v3 draft in one of its layouts.
func (f *finder) findIn(ctx context.Context, layout meta.DraftLayout, path string) (*Node, error) {
	doc, err := f.document(ctx, layout.ArrayKey(path))
	if err == nil {
		return f.parseDraft(layout, path, doc, true)
	}
	if !errors.Is(err, kv.ErrNotFound) {
		return nil, err
	}
	doc, err = f.document(ctx, layout.GroupKey(path))
	if err == nil {
		return f.parseDraft(layout, path, doc, false)
	}
	if !errors.Is(err, kv.ErrNotFound) {
		return nil, err
	}
	// A group without a document is there if a node is below it.
	list, ok := f.view.(kv.Lister)
	if !ok {
		return nil, kv.ErrNotFound
	}
	for key, err := range list.List(ctx, kv.ListOptions{Prefix: layout.GroupPrefix(path)}) {
		if err != nil {
			return nil, err
		}
		if _, _, ok := layout.ParseKey(key); ok {
			return f.node(locateDraft(layout, path, false), &Meta{Version: Draft3})
		}
	}
	return nil, kv.ErrNotFound
}

// parseDraft opens a draft node from its document.
func (f *finder) parseDraft(layout meta.DraftLayout, path string, doc []byte, array bool) (*Node, error) {
	var m *Meta
	var err error
	if array {
		m, err = meta.ParseDraft3Array(doc, f.opts.Registry)
	} else {
		m, err = meta.ParseDraft3Group(doc)
	}
	if err != nil {
		return nil, err
	}
	return f.node(locateDraft(layout, path, array), m)
}

// node makes a Node of metadata.
func (f *finder) node(loc location, m *Meta) (*Node, error) {
	p, err := bind(m, f.opts.MaxChunkBytes)
	if err != nil {
		return nil, err
	}
	return f.parsedNode(loc, p)
}

// parsedNode makes a Node of metadata whose codecs are bound.
func (f *finder) parsedNode(loc location, p *parsed) (*Node, error) {
	n := &Node{view: f.view, loc: loc, opts: f.opts, images: f.images}
	if !p.meta.Array {
		n.meta.Store(p.meta)
		return n, nil
	}
	var err error
	if n.array, err = newArray(f.view, loc, p, f.opts); err == nil {
		n.array.images = f.images
	}
	return n, err
}

// Delete removes the node and everything below it.
func (n *Node) Delete(ctx context.Context) error {
	return failAt("delete", n.loc.path, deleteNode(ctx, n.view, n.loc))
}

// Delete removes the array: its metadata and all chunks.
func (a *Array) Delete(ctx context.Context) error {
	return a.fail("delete", deleteNode(ctx, a.view, a.loc))
}

func deleteNode(ctx context.Context, view kv.Reader, loc location) error {
	w, err := writerOf(view, loc.version)
	if err != nil {
		return err
	}
	return kv.DeletePrefix(ctx, w, below(loc.path))
}
