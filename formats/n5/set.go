package n5

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/refs"
)

// document is the name of the Zarr document of a node.
const document = "zarr.json"

// set is a container as a reference set. Nodes are read when they are asked for, and
// kept in bounded memory.
type set struct {
	files kv.Reader
	list  kv.Lister // nil if files cannot be listed

	mu    sync.Mutex
	nodes map[string]*node // by path
	held  int              // bytes of their documents
}

// maxNodes bounds the documents that are kept, in bytes.
const maxNodes = 32 << 20

var (
	_ refs.Set     = (*set)(nil)
	_ kv.DirLister = (*set)(nil)
)

func newSet(files kv.Reader) *set {
	s := &set{files: files, nodes: map[string]*node{}}
	s.list, _ = files.(kv.Lister)
	return s
}

// below is the prefix of the keys below a path.
func below(path string) string {
	if path == "" {
		return ""
	}
	return path + "/"
}

// node returns the group or dataset at a path, or kv.ErrNotFound.
func (s *set) node(ctx context.Context, path string) (*node, error) {
	if n := s.known(path); n != nil {
		return n, nil
	}
	text, err := s.files.Get(ctx, below(path)+attributesFile, kv.AtMost(maxAttributes))
	var n *node
	switch {
	case err == nil:
		n = parseNode(text, path == "")
	case errors.Is(err, kv.ErrTooLarge):
		n = refused(dataset{}, fmt.Errorf("%s: %w", attributesFile, err))
	case errors.Is(err, kv.ErrNotFound):
		if err := s.implicit(ctx, path); err != nil {
			return nil, err
		}
		n = implicitGroup
	default:
		return nil, err
	}
	s.keep(path, n)
	return n, nil
}

func (s *set) known(path string) *node {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.nodes[path]
}

func (s *set) keep(path string, n *node) {
	const entry = 200 // about what a map entry and its strings take
	s.mu.Lock()
	defer s.mu.Unlock()
	for other, old := range s.nodes { // any ones
		if s.held+len(n.doc)+len(path)+entry <= maxNodes {
			break
		}
		delete(s.nodes, other)
		s.held -= len(old.doc) + len(other) + entry
	}
	if s.nodes[path] == nil {
		s.held += len(n.doc) + len(path) + entry
		s.nodes[path] = n
	}
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
	if number(name) < 0 {
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
	var tails [][]int64
	tail := []int64{}
	for rest, more := key, true; more && len(tail) < maxRank; {
		i := strings.LastIndexByte(rest, '/')
		n := number(rest[i+1:])
		if n < 0 {
			break
		}
		tail = append([]int64{n}, tail...)
		rest, more = rest[:max(i, 0)], i >= 0
		paths, tails = append(paths, rest), append(tails, tail)
	}
	for i, path := range paths {
		if n := s.known(path); n != nil && n.has(tails[i]) {
			return path, true, nil
		}
	}
	for i := range paths { // the outermost one first: a block is no node
		i = len(paths) - 1 - i
		n, err := s.node(ctx, paths[i])
		if errors.Is(err, kv.ErrNotFound) {
			continue
		}
		if err != nil || n.counts != nil {
			return paths[i], err == nil && n.has(tails[i]), err
		}
	}
	return "", false, nil
}

// has reports whether a dataset has a block.
func (n *node) has(coords []int64) bool {
	if len(coords) == 0 || len(coords) != len(n.counts) {
		return false
	}
	for d, c := range coords {
		if c >= n.counts[d] {
			return false
		}
	}
	return true
}

// number parses one number of a block's key, -1 if name is not a number in
// canonical form.
func number(name string) int64 {
	if name == "" || name[0] == '0' && len(name) > 1 || name[0] < '0' || name[0] > '9' {
		return -1
	}
	n, err := strconv.ParseInt(name, 10, 64)
	if err != nil {
		return -1
	}
	return n
}

// block parses the key of a block relative to its dataset.
func (n *node) block(key string) bool {
	var coords []int64
	for name := range strings.SplitSeq(key, "/") {
		c := number(name)
		if c < 0 || len(coords) == len(n.counts) {
			return false
		}
		coords = append(coords, c)
	}
	return n.has(coords)
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
	return func(yield func(string, error) bool) {
		var each func(prefix string, d int) bool
		each = func(prefix string, d int) bool {
			for _, c := range decimalOrder(n.counts[d]) {
				key := prefix + strconv.FormatInt(c, 10)
				if d < len(n.counts)-1 {
					if opts.HasBelow(key+"/") && !each(key+"/", d+1) {
						return false
					}
					continue
				}
				if !opts.Has(key) {
					continue
				}
				found, err := kv.Exists(ctx, s.files, key)
				if (found || err != nil) && (!yield(key, err) || err != nil) {
					return false
				}
			}
			return true
		}
		for _, count := range n.counts {
			if count > maxProbed {
				yield("", fmt.Errorf("n5: /%s: %d blocks along a dimension are too many to ask for each: %w", path, count, errors.ErrUnsupported))
				return
			}
		}
		if len(n.counts) > 0 {
			each(below(path), 0)
		}
	}
}

// maxProbed bounds the blocks along one dimension of a dataset that is not listed.
const maxProbed = 1 << 20

// decimalOrder returns the numbers below n in the order of their digits.
func decimalOrder(n int64) []int64 {
	list := make([]int64, n)
	for i := range list {
		list[i] = int64(i)
	}
	slices.SortFunc(list, func(a, b int64) int {
		return strings.Compare(strconv.FormatInt(a, 10)+"/", strconv.FormatInt(b, 10)+"/")
	})
	return list
}

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
