package n5

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/zarrdb/zarrdb/formats"
	"github.com/zarrdb/zarrdb/internal/chunklist"
	"github.com/zarrdb/zarrdb/internal/lru"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/refs"
)

// document is the name of the Zarr document of a node.
const document = "zarr.json"

// set is a container as a reference set. Nodes are read when they are asked for.
type set struct {
	files kv.Reader
	list  kv.Lister                 // nil if files cannot be listed
	nodes *lru.Cache[string, *node] // by path
}

// maxNodes bounds the documents that are kept, in bytes.
const maxNodes = 32 << 20

var (
	_ refs.Set     = (*set)(nil)
	_ kv.DirLister = (*set)(nil)
)

func newSet(files kv.Reader) *set {
	s := &set{files: files, nodes: lru.New[string](maxNodes, func(n *node) int64 { return int64(len(n.doc)) + 300 })}
	s.list, _ = files.(kv.Lister)
	return s
}

// below is the prefix of the keys below a path.
func below(path string) string { return formats.Join(path, "") }

// node returns the group or dataset at a path, or kv.ErrNotFound.
func (s *set) node(ctx context.Context, path string) (*node, error) {
	return s.nodes.Get(ctx, path, func() (*node, error) {
		text, err := s.files.Get(ctx, below(path)+attributesFile, kv.AtMost(maxAttributes))
		switch {
		case err == nil:
			return parseNode(text, path == ""), nil
		case errors.Is(err, kv.ErrTooLarge):
			return refused(dataset{}, fmt.Errorf("%s: %w", attributesFile, err)), nil
		case errors.Is(err, kv.ErrNotFound):
			return implicitGroup, s.implicit(ctx, path)
		}
		return nil, err
	})
}

// implicit returns nil if a directory without attributes is a group: there is
// something in it, and no dataset around it.
func (s *set) implicit(ctx context.Context, path string) error {
	if s.list == nil {
		return kv.ErrNotFound
	}
	switch found, err := kv.Any(ctx, s.list, below(path)); {
	case errors.Is(err, errors.ErrUnsupported):
		return kv.ErrNotFound
	case err != nil:
		return err
	case !found:
		return kv.ErrNotFound
	}
	inside, err := s.insideDataset(ctx, path)
	if err == nil && inside {
		err = kv.ErrNotFound
	}
	return err
}

// insideDataset reports whether a path lies below a dataset.
func (s *set) insideDataset(ctx context.Context, path string) (bool, error) {
	if path == "" {
		return false, nil
	}
	above := path[:max(0, strings.LastIndexByte(path, '/'))]
	n, err := s.node(ctx, above)
	if errors.Is(err, kv.ErrNotFound) { // below a dataset: a group would be there
		return true, nil
	}
	return err == nil && n.counts != nil, err
}

func (s *set) Lookup(ctx context.Context, key string) (refs.Reference, error) {
	path, name := "", key
	if i := strings.LastIndexByte(key, '/'); i >= 0 {
		path, name = key[:i], key[i+1:]
	}
	if name == document {
		n, err := s.node(ctx, path)
		if err != nil {
			return refs.Reference{}, err
		}
		return refs.Reference{Data: n.doc}, nil
	}
	if _, ok := chunklist.ParseNumber(name); !ok {
		return refs.Reference{}, kv.ErrNotFound
	}
	_, ok, err := s.chunk(ctx, key)
	if err == nil && !ok {
		err = kv.ErrNotFound
	}
	if err != nil {
		return refs.Reference{}, err
	}
	return refs.Reference{URL: key, Length: refs.WholeFile, Optional: true}, nil
}

// chunk returns the dataset whose block a key is, and whether there is one. Datasets
// that were read before are looked at first, so that a block of an open array costs no
// request.
func (s *set) chunk(ctx context.Context, key string) (path string, ok bool, err error) {
	var paths []string
	for rest, more := key, true; more && len(paths) < maxRank; {
		i := strings.LastIndexByte(rest, '/')
		if _, ok := chunklist.ParseNumber(rest[i+1:]); !ok {
			break
		}
		rest, more = rest[:max(i, 0)], i >= 0
		paths = append(paths, rest)
	}
	for _, path := range paths {
		if n, ok := s.nodes.Peek(path); ok && n.block(key[len(below(path)):]) {
			return path, true, nil
		}
	}
	for _, path := range slices.Backward(paths) { // the outermost one first: a block is no node
		n, err := s.node(ctx, path)
		if errors.Is(err, kv.ErrNotFound) {
			continue
		}
		if err != nil || n.counts != nil {
			return path, err == nil && n.block(key[len(below(path)):]), err
		}
	}
	return "", false, nil
}

// block reports whether a dataset has the block with a key below it.
func (n *node) block(key string) bool {
	_, ok := (&formats.Array{Separator: '/', Counts: n.counts}).Parse(key)
	return ok && len(n.counts) > 0
}

func (s *set) List(ctx context.Context, opts kv.ListOptions) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		if _, err := s.walk(ctx, "", opts, yield); err != nil && !errors.Is(err, kv.ErrNotFound) {
			yield("", err)
		}
	}
}

// walk yields the keys at and below a node in byte order. It returns false if yield
// did.
func (s *set) walk(ctx context.Context, path string, opts kv.ListOptions, yield func(string, error) bool) (bool, error) {
	if !opts.HasBelow(below(path)) {
		return true, nil
	}
	n, err := s.node(ctx, path)
	if errors.Is(err, kv.ErrNotFound) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	if n.counts != nil {
		return s.walkBlocks(ctx, path, n, opts, yield)
	}
	names := []string{document}
	for e, err := range s.children(ctx, path) {
		if err != nil {
			return false, err
		}
		names = append(names, e+"/")
	}
	slices.Sort(names)
	for _, name := range names {
		if name == document {
			if key := below(path) + name; opts.Has(key) && !yield(key, nil) {
				return false, nil
			}
			continue
		}
		if more, err := s.walk(ctx, below(path)+name[:len(name)-1], opts, yield); !more || err != nil {
			return more, err
		}
	}
	return true, nil
}

// errNotListed is the error of listing a container on a server that cannot be listed.
var errNotListed = fmt.Errorf("n5: the groups of a container are found by listing it, which is not possible here; name the path of a dataset: %w", errors.ErrUnsupported)

// children yields the names of the directories in a group.
func (s *set) children(ctx context.Context, path string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		if s.list == nil {
			yield("", errNotListed)
			return
		}
		for e, err := range kv.ListDir(ctx, s.list, below(path)) {
			if err == nil && !e.Prefix {
				continue
			}
			if !yield(e.Name, err) || err != nil {
				return
			}
		}
	}
}

// walkBlocks yields the keys of a dataset.
func (s *set) walkBlocks(ctx context.Context, path string, n *node, opts kv.ListOptions, yield func(string, error) bool) (bool, error) {
	prefix := below(path)
	inside := kv.ListOptions{Prefix: prefix, After: opts.After}
	if strings.HasPrefix(opts.Prefix, prefix) {
		inside.Prefix = opts.Prefix
	}
	for key, err := range s.blocks(ctx, path, n, inside) {
		if err != nil {
			return false, err
		}
		if n.block(key[len(prefix):]) && opts.Has(key) && !yield(key, nil) {
			return false, nil
		}
	}
	// Digits come before the name of the document.
	if key := prefix + document; opts.Has(key) && !yield(key, nil) {
		return false, nil
	}
	return true, nil
}

// blocks lists the files of a dataset, or asks for each block where nothing is listed.
func (s *set) blocks(ctx context.Context, path string, n *node, opts kv.ListOptions) iter.Seq2[string, error] {
	if s.list != nil {
		return s.list.List(ctx, opts)
	}
	for _, count := range n.counts {
		if count > maxProbed {
			return func(yield func(string, error) bool) {
				yield("", fmt.Errorf("n5: /%s: %d blocks along a dimension are too many to ask for each: %w", path, count, errors.ErrUnsupported))
			}
		}
	}
	a := &formats.Array{Prefix: below(path), Separator: '/', Counts: n.counts}
	a.Chunk = func(ctx context.Context, coords []int64) (r refs.Reference, err error) {
		found, err := kv.Exists(ctx, s.files, a.Key(coords))
		if err == nil && !found {
			err = kv.ErrNotFound
		}
		return r, err
	}
	if len(n.counts) == 0 {
		a.Counts = []int64{0}
	}
	return a.List(ctx, opts)
}

// maxProbed bounds the blocks along one dimension of a dataset that is not listed.
const maxProbed = 1 << 20

// ListDir implements [kv.DirLister]: the children of a group cost one listing of its
// directory.
func (s *set) ListDir(ctx context.Context, prefix string) iter.Seq2[kv.DirEntry, error] {
	return func(yield func(kv.DirEntry, error) bool) {
		path := strings.TrimSuffix(prefix, "/")
		n, err := s.node(ctx, path)
		if err == nil && n.counts == nil {
			s.groupDir(ctx, path, yield)
			return
		}
		if err != nil && !errors.Is(err, kv.ErrNotFound) {
			yield(kv.DirEntry{}, err)
			return
		}
		// A dataset, or a directory of its blocks: few names, or many blocks.
		for e, err := range kv.ListDir(ctx, flat{s}, prefix) {
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

// flat is a set without its ListDir.
type flat struct{ kv.Lister }

func (s *set) groupDir(ctx context.Context, path string, yield func(kv.DirEntry, error) bool) {
	names := []string{}
	for name, err := range s.children(ctx, path) {
		if err != nil {
			yield(kv.DirEntry{}, err)
			return
		}
		names = append(names, name)
	}
	i, _ := slices.BinarySearch(names, document)
	for j, name := range names {
		if i == j && !yield(kv.DirEntry{Name: document}, nil) {
			return
		}
		if !yield(kv.DirEntry{Name: name, Prefix: true}, nil) {
			return
		}
	}
	if i == len(names) {
		yield(kv.DirEntry{Name: document}, nil)
	}
}

func (s *set) Entries(ctx context.Context) iter.Seq2[refs.Entry, error] {
	return func(yield func(refs.Entry, error) bool) {
		for key, err := range s.List(ctx, kv.ListOptions{}) {
			e := refs.Entry{Key: key}
			if err == nil && !strings.HasSuffix("/"+key, "/"+document) {
				e.Reference = refs.Reference{URL: key, Length: refs.WholeFile} // it was listed
			} else if err == nil {
				e.Reference, err = s.Lookup(ctx, key)
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}
