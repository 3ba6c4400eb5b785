package formats

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/zarrdb/zarrdb/internal/chunklist"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/refs"
)

// Tree is a refs.Set made of documents and of arrays whose chunks are found by their
// coordinates. Fill it before it is used; then it is safe for concurrent use.
//
//	zarr.json, a/zarr.json, …    Documents
//	a/c/0/0, a/c/0/1, …          Arrays: coordinates ▶ Chunk ▶ reference
type Tree struct {
	docs   map[string]*value // by key
	arrays map[string]*Array // by the prefix of their chunks

	sorting sync.Mutex
	sorted  bool     // the lists below are in order
	names   []string // keys of docs
	order   []string // prefixes of arrays
}

// value is the value of a key.
type value struct {
	ref   refs.Reference
	build func(ctx context.Context) ([]byte, error) // makes the bytes, if it is set
	bytes Lazy[[]byte]
}

// Array says where the chunks of an array lie.
type Array struct {
	// Prefix is the prefix of the keys of its chunks: "a/c/" for chunks a/c/0/0, "a/"
	// for a/0.0. No two arrays have the same, and none begins with another's unless
	// the rest is no chunk key.
	Prefix string

	// Separator stands between two coordinates, '/' or '.'.
	Separator byte

	// Counts is the number of chunks along each dimension. It is not empty: an array
	// without dimensions has its one chunk as an entry of [Tree.PutReference].
	Counts []int64

	// Chunk returns the reference of a chunk inside Counts, or kv.ErrNotFound if it
	// has no value. coords belongs to the caller. It may read the base.
	Chunk func(ctx context.Context, coords []int64) (refs.Reference, error)

	// Coords, if not nil, yields the coordinates of the chunks that there are, each
	// once and in any order: for arrays of which most chunks are missing. The slice
	// is valid until the next. nil tries each chunk inside Counts.
	Coords func(ctx context.Context) iter.Seq2[[]int64, error]
}

// NewTree returns an empty tree.
func NewTree() *Tree { return &Tree{docs: map[string]*value{}, arrays: map[string]*Array{}} }

var (
	_ refs.Set     = (*Tree)(nil)
	_ kv.DirLister = (*Tree)(nil)
)

// Put adds a document, or another key with a value of its own. The bytes stay the
// tree's.
func (t *Tree) Put(key string, b []byte) { t.PutReference(key, refs.Reference{Data: b}) }

// PutReference adds a key whose value lies in a file: the chunk of an array without
// dimensions.
func (t *Tree) PutReference(key string, r refs.Reference) { t.put(key, &value{ref: r}) }

// PutLazy adds a key whose value build returns when it is first asked for, by Lookup or
// Entries, and not by List. See [Lazy] for the kept values.
func (t *Tree) PutLazy(key string, build func(ctx context.Context) ([]byte, error)) {
	t.put(key, &value{build: build})
}

func (t *Tree) put(key string, v *value) {
	if _, ok := t.docs[key]; !ok {
		t.names, t.sorted = append(t.names, key), false
	}
	t.docs[key] = v
}

// get returns the value, whose bytes the caller must not change.
func (v *value) get(ctx context.Context) (refs.Reference, error) {
	if v.build == nil {
		return v.ref, nil
	}
	b, err := v.bytes.Get(ctx, func() ([]byte, error) { return v.build(ctx) })
	return refs.Reference{Data: b}, err
}

// keys returns the keys of documents and the prefixes of arrays, sorted.
func (t *Tree) keys() (names, prefixes []string) {
	t.sorting.Lock()
	defer t.sorting.Unlock()
	if !t.sorted {
		slices.Sort(t.names)
		slices.Sort(t.order)
		t.sorted = true
	}
	return t.names, t.order
}

// Add adds an array, whose documents are put apart.
func (t *Tree) Add(a Array) {
	if len(a.Counts) == 0 || t.arrays[a.Prefix] != nil {
		panic(fmt.Sprintf("formats: array %q without dimensions, or added twice", a.Prefix))
	}
	t.arrays[a.Prefix] = &a
	t.order, t.sorted = append(t.order, a.Prefix), false
}

func (t *Tree) Lookup(ctx context.Context, key string) (refs.Reference, error) {
	if v, ok := t.docs[key]; ok {
		return v.get(ctx)
	}
	// The prefixes of an array end in a slash: the longest one first.
	for i := len(key); i >= 0; i-- {
		if i > 0 && key[i-1] != '/' {
			continue
		}
		a := t.arrays[key[:i]]
		if a == nil {
			continue
		}
		if coords, ok := a.Parse(key[i:]); ok {
			return a.Chunk(ctx, coords)
		}
	}
	return refs.Reference{}, kv.ErrNotFound
}

// Parse reads the coordinates of a key behind the prefix, in its only spelling.
func (a *Array) Parse(s string) ([]int64, bool) {
	coords := make([]int64, len(a.Counts))
	for d, count := range a.Counts {
		word, rest, more := strings.Cut(s, string(a.Separator))
		n, ok := chunklist.ParseNumber(word)
		if !ok || n >= count || more != (d < len(coords)-1) {
			return nil, false
		}
		coords[d], s = n, rest
	}
	return coords, true
}

// Key is the key of a chunk.
func (a *Array) Key(coords []int64) string {
	b := []byte(a.Prefix)
	for d, n := range coords {
		if d > 0 {
			b = append(b, a.Separator)
		}
		b = strconv.AppendInt(b, n, 10)
	}
	return string(b)
}

// List implements [refs.Set]. Where a format has no list of its chunks, List asks for
// each possible chunk.
func (t *Tree) List(ctx context.Context, opts kv.ListOptions) iter.Seq2[string, error] {
	same := func(s *string) string { return *s }
	names, prefixes := t.keys()
	return chunklist.Merge(ctx, opts, names, same, prefixes, same, func(prefix *string) iter.Seq2[string, error] {
		return t.arrays[*prefix].List(ctx, opts)
	})
}

// List yields the keys of the chunks that there are, in byte order.
func (a *Array) List(ctx context.Context, opts kv.ListOptions) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		if a.Coords != nil {
			var keys []string
			for coords, err := range a.Coords(ctx) {
				if err != nil {
					yield("", err)
					return
				}
				if key := a.Key(coords); opts.Has(key) {
					keys = append(keys, key)
				}
			}
			slices.Sort(keys)
			for _, key := range keys {
				if !yield(key, nil) {
					return
				}
			}
			return
		}
		grid := chunklist.Array{Prefix: a.Prefix, Separator: a.Separator, Counts: a.Counts}
		err := grid.Walk(ctx, opts, func(key []byte, coords []int64) error {
			_, err := a.Chunk(ctx, coords)
			switch {
			case errors.Is(err, kv.ErrNotFound):
				return nil
			case err == nil && !yield(string(key), nil):
				return errStopped
			}
			return err
		})
		if err != nil && err != errStopped {
			yield("", err)
		}
	}
}

var errStopped = errors.New("formats: the caller stopped")

// Documents yields the keys that were put, which have no place in an array.
func (t *Tree) Documents(ctx context.Context) iter.Seq2[refs.Entry, error] {
	return func(yield func(refs.Entry, error) bool) {
		names, _ := t.keys()
		for _, key := range names {
			r, err := t.docs[key].get(ctx)
			if !yield(refs.Entry{Key: key, Reference: r}, err) || err != nil {
				return
			}
		}
	}
}

// Entries implements [refs.Set]: the documents first.
func (t *Tree) Entries(ctx context.Context) iter.Seq2[refs.Entry, error] {
	return func(yield func(refs.Entry, error) bool) {
		for e, err := range t.Documents(ctx) {
			if !yield(e, err) || err != nil {
				return
			}
		}
		_, prefixes := t.keys()
		for _, prefix := range prefixes {
			if !t.arrays[prefix].entries(ctx, yield) {
				return
			}
		}
	}
}

// entries yields the chunks that there are, and reports whether to go on.
func (a *Array) entries(ctx context.Context, yield func(refs.Entry, error) bool) bool {
	chunk := func(coords []int64) bool {
		r, err := a.Chunk(ctx, coords)
		if errors.Is(err, kv.ErrNotFound) && ctx.Err() == nil {
			return true
		}
		return yield(refs.Entry{Key: a.Key(coords), Reference: r}, err) && err == nil
	}
	if a.Coords == nil {
		for coords := range Coords(a.Counts) {
			if !chunk(coords) {
				return false
			}
		}
		return true
	}
	for coords, err := range a.Coords(ctx) {
		if err != nil {
			yield(refs.Entry{}, err)
			return false
		}
		if !chunk(coords) {
			return false
		}
	}
	return true
}

// Coords yields all coordinates below counts, in C order. The slice is valid until the next.
func Coords(counts []int64) iter.Seq[[]int64] {
	return func(yield func([]int64) bool) {
		at := make([]int64, len(counts))
		for d := 0; d >= 0 && !slices.Contains(counts, 0) && yield(at); {
			for d = len(at) - 1; d >= 0; d-- {
				if at[d]++; at[d] < counts[d] {
					break
				}
				at[d] = 0
			}
		}
	}
}

// ListDir implements [kv.DirLister]: the children of a group are found without looking for
// chunks.
func (t *Tree) ListDir(ctx context.Context, prefix string) iter.Seq2[kv.DirEntry, error] {
	names, prefixes := t.keys()
	for at := prefix; at != ""; at = at[:strings.LastIndexByte(at[:len(at)-1], '/')+1] {
		if t.arrays[at] != nil || !strings.HasSuffix(at, "/") {
			return kv.ListDir(ctx, flat{t}, prefix) // chunks
		}
	}
	if t.arrays[""] != nil {
		return kv.ListDir(ctx, flat{t}, prefix)
	}
	return func(yield func(kv.DirEntry, error) bool) {
		found := map[kv.DirEntry]bool{}
		for _, list := range [][]string{names, prefixes} {
			i, _ := slices.BinarySearch(list, prefix)
			for ; i < len(list) && strings.HasPrefix(list[i], prefix); i++ {
				name, _, below := strings.Cut(list[i][len(prefix):], "/")
				found[kv.DirEntry{Name: name, Prefix: below}] = true
			}
		}
		for _, e := range slices.SortedFunc(maps.Keys(found), func(a, b kv.DirEntry) int {
			if a.Name == b.Name && b.Prefix {
				return -1
			}
			return strings.Compare(a.Name, b.Name)
		}) {
			if !yield(e, nil) {
				return
			}
		}
	}
}

// flat is a tree without its ListDir.
type flat struct{ kv.Lister }
