package listing

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"math/bits"
	"slices"
	"strings"

	"github.com/zarrdb/zarrdb/engine/internal/names"
	"github.com/zarrdb/zarrdb/internal/chunklist"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/zarr"
)

// View adds a listing to a view that cannot be listed, such as a web server. The listing
// is computed from metadata: the possible documents of nodes, and the possible keys of
// chunks. A reader finds out by a request which chunks exist. Documents of a node that is only
// in consolidated metadata are made from there.
type View struct {
	Documents
	nodes []Node // ordered by key of the directory
}

// Node is a node and the directory that it is in, "" or with a slash at
// its end.
type Node struct {
	Dir  string
	Meta *zarr.Meta
}

var _ kv.ReadLister = (*View)(nil)

// maxCandidates bounds the number of keys that are probed: a small document can
// have a huge shape.
const maxCandidates = 1 << 28

// ErrNone means that the keys cannot be found out.
var ErrNone = fmt.Errorf("the server lists no keys, and there is no consolidated metadata to tell them: %w", errors.ErrUnsupported)

// New returns the view of nodes; the first contains all other nodes.
func New(view kv.Reader, nodes []Node) (*View, error) {
	c := &View{nodes: nodes}
	c.Documents = Documents{Reader: view, Told: c.told}
	total := uint64(0)
	for _, n := range nodes {
		m := n.Meta
		if m.Version == zarr.Draft3 {
			return nil, fmt.Errorf("the early v3 draft: %w", ErrNone)
		}
		keys := uint64(1)
		if m.Array && m.Grid == nil {
			return nil, fmt.Errorf("array /%s: its metadata does not tell the keys of its chunks: %w", names.Clean(n.Dir), ErrNone)
		}
		if m.Array {
			for _, count := range m.ChunkCounts() {
				hi, lo := bits.Mul64(keys, uint64(count))
				if keys = lo; hi != 0 || lo > maxCandidates {
					keys = maxCandidates
				}
			}
		}
		if total += keys; total >= maxCandidates {
			return nil, fmt.Errorf("the server lists no keys, and up to array /%s there would be more than %d to ask for: %w", names.Clean(n.Dir), maxCandidates, errors.ErrUnsupported)
		}
	}
	slices.SortFunc(c.nodes, func(a, b Node) int { return strings.Compare(a.Dir, b.Dir) })
	return c, nil
}

// told returns a document that only consolidated metadata has, or kv.ErrNotFound.
// Where the store has one document of a node, it has all.
func (c *View) told(ctx context.Context, key string) ([]byte, error) {
	dir := key[:strings.LastIndexByte(key, '/')+1]
	i, ok := slices.BinarySearchFunc(c.nodes, dir, func(n Node, dir string) int { return strings.Compare(n.Dir, dir) })
	if !ok || !names.IsDocument(key) {
		return nil, kv.ErrNotFound
	}
	docs, err := c.nodes[i].Meta.Print()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", key, err)
	}
	doc, ok := docs[key[len(dir):]]
	if !ok {
		return nil, kv.ErrNotFound
	}
	for name := range docs {
		if in, err := kv.Exists(ctx, c.Reader, dir+name); in || err != nil {
			return nil, cmp.Or(err, kv.ErrNotFound)
		}
	}
	return doc, nil
}

// Locate finds a key that view listed. It is nil without an error for a
// candidate that does not exist.
func Locate(ctx context.Context, view kv.Reader, key string) (kv.Value, error) {
	v, err := kv.Locate(ctx, view, key)
	if _, maybe := view.(*View); maybe && errors.Is(err, kv.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", key, err)
	}
	return v, nil
}

// List implements [kv.Lister] with keys that may have no value.
func (c *View) List(ctx context.Context, opts kv.ListOptions) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		if len(c.nodes) == 0 {
			return
		}
		l := candidateList{ctx: ctx, opts: opts, yield: yield}
		l.node(c.nodes[0], c.nodes[1:])
	}
}

// candidateList is one listing. Its methods return false to stop.
type candidateList struct {
	ctx   context.Context
	opts  kv.ListOptions
	yield func(string, error) bool
	n     int
}

// key yields one key.
func (l *candidateList) key(key string) bool {
	if !l.opts.Has(key) {
		return true
	}
	if l.n++; l.n%256 == 0 && l.ctx.Err() != nil {
		l.yield("", l.ctx.Err())
		return false
	}
	return l.yield(key, nil)
}

// node yields the keys of a node and of the nodes below it.
func (l *candidateList) node(c Node, below []Node) bool {
	if !l.opts.HasBelow(c.Dir) {
		return true
	}
	docs := slices.Sorted(slices.Values(names.Documents(c.Meta.Version)))
	documents := func(before string) bool {
		for len(docs) > 0 && (before == "" || c.Dir+docs[0] < before) {
			if !l.key(c.Dir + docs[0]) {
				return false
			}
			docs = docs[1:]
		}
		return true
	}
	if c.Meta.Array {
		chunk := func(key string) bool { return documents(key) && l.key(key) }
		return l.chunks(c, chunk) && documents("")
	}
	for len(below) > 0 {
		// The keys below the first child follow it.
		child := below[0]
		n := 1
		for n < len(below) && strings.HasPrefix(below[n].Dir, child.Dir) {
			n++
		}
		if !documents(child.Dir) || !l.node(child, below[1:n]) {
			return false
		}
		below = below[n:]
	}
	return documents("")
}

// chunks calls each with the keys of the chunks of an array.
func (l *candidateList) chunks(c Node, each func(key string) bool) bool {
	keys, counts := c.Meta.Keys, c.Meta.ChunkCounts()
	if len(counts) == 0 {
		return each(c.Dir + string(keys.Append(nil, nil)))
	}
	grid := chunklist.Array{Prefix: c.Dir + keys.Prefix(), Separator: keys.Separator(), Counts: counts}
	err := grid.Walk(l.ctx, l.opts, func(key []byte, _ []int64) error {
		if !each(string(key)) {
			return errStopped
		}
		return nil
	})
	if err != nil && err != errStopped {
		l.yield("", err)
	}
	return err == nil
}

var errStopped = errors.New("the caller stopped")
