package formats

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/refs"
)

// Tree is a refs.Set made of documents and of arrays whose chunks are found by their
// coordinates. Fill it before it is used; then it is safe for concurrent use.
//
//	zarr.json, a/zarr.json, …    Documents
//	a/c/0/0, a/c/0/1, …          Arrays: coordinates ▶ Chunk ▶ reference
type Tree struct {
	docs   map[string][]byte // by key
	names  []string          // keys of docs, sorted
	arrays map[string]*Array // by the prefix of their chunks
	order  []string          // prefixes of arrays, sorted
}

// Array says where the chunks of an array lie.
type Array struct {
	// Prefix is what the keys of its chunks begin with: "a/c/" for chunks a/c/0/0, "a/"
	// for a/0.0. No two arrays have the same, and none begins with another's unless
	// the rest is no chunk key.
	Prefix string

	// Separator stands between two coordinates, '/' or '.'.
	Separator byte

	// Counts is the number of chunks along each dimension. It is not empty: an array
	// without dimensions has its one chunk as an entry of [Tree.Put].
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
func NewTree() *Tree { return &Tree{docs: map[string][]byte{}, arrays: map[string]*Array{}} }

var _ refs.Set = (*Tree)(nil)

// Put adds a document, or another key with a value of its own. The bytes stay the
// tree's.
func (t *Tree) Put(key string, value []byte) {
	if _, ok := t.docs[key]; !ok {
		i, _ := slices.BinarySearch(t.names, key)
		t.names = slices.Insert(t.names, i, key)
	}
	t.docs[key] = value
}

// Add adds an array, whose documents are put apart.
func (t *Tree) Add(a Array) {
	if len(a.Counts) == 0 || t.arrays[a.Prefix] != nil {
		panic(fmt.Sprintf("formats: array %q without dimensions, or added twice", a.Prefix))
	}
	t.arrays[a.Prefix] = &a
	i, _ := slices.BinarySearch(t.order, a.Prefix)
	t.order = slices.Insert(t.order, i, a.Prefix)
}

func (t *Tree) Lookup(ctx context.Context, key string) (refs.Reference, error) {
	if b, ok := t.docs[key]; ok {
		return refs.Reference{Data: b}, nil
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
	for d := range coords {
		name, rest, more := strings.Cut(s, string(a.Separator))
		if more != (d < len(coords)-1) || len(name) > 1 && name[0] == '0' || name == "" || name[0] == '+' || name[0] == '-' {
			return nil, false
		}
		n, err := strconv.ParseInt(name, 10, 64)
		if err != nil || n >= a.Counts[d] {
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

// List implements [refs.Set]. Chunks that are found one by one are asked for before
// they are listed.
func (t *Tree) List(ctx context.Context, opts kv.ListOptions) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		docs, arrays := t.names, t.order
		// before yields what comes before a key; "" is behind all keys. The keys of an
		// array follow each other, but for documents and arrays between them.
		var before func(key string) bool
		before = func(key string) bool {
			for {
				hasDoc := len(docs) > 0 && (key == "" || docs[0] < key)
				hasArray := len(arrays) > 0 && (key == "" || arrays[0] < key)
				switch {
				case hasArray && !(hasDoc && docs[0] < arrays[0]):
					a := t.arrays[arrays[0]]
					arrays = arrays[1:]
					if !opts.HasBelow(a.Prefix) {
						continue
					}
					for key, err := range a.List(ctx, opts) {
						if err == nil && !before(key) || !yield(key, err) || err != nil {
							return false
						}
					}
				case hasDoc:
					doc := docs[0]
					docs = docs[1:]
					if opts.Has(doc) && !yield(doc, nil) {
						return false
					}
				default:
					return true
				}
			}
		}
		before("")
	}
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
		coords := make([]int64, len(a.Counts))
		a.walk(ctx, []byte(a.Prefix), coords, 0, opts, func(key string, err error) bool {
			if err == nil {
				_, err = a.Chunk(ctx, coords)
			}
			if errors.Is(err, kv.ErrNotFound) {
				return true
			}
			return yield(key, err) && err == nil
		})
	}
}

// walk calls fn for each chunk in the byte order of keys, with its coordinates in
// coords, and reports whether it went to the end. Subtrees without wanted keys are
// not entered.
func (a *Array) walk(ctx context.Context, key []byte, coords []int64, d int, opts kv.ListOptions, fn func(string, error) bool) bool {
	if d == len(coords) {
		if err := ctx.Err(); err != nil {
			return fn("", err)
		}
		return !opts.Has(string(key)) || fn(string(key), nil)
	}
	// Numbers in the order of their decimal digits: 1, 10, 11, 2.
	var number func(n int64) bool
	number = func(n int64) bool {
		if n >= a.Counts[d] {
			return true
		}
		coords[d] = n
		next := strconv.AppendInt(slices.Clip(key), n, 10)
		if d < len(coords)-1 {
			next = append(next, a.Separator)
		}
		// "1." and "1/" come before "10", because the separators do before digits.
		if opts.HasBelow(string(next)) && !a.walk(ctx, next, coords, d+1, opts, fn) {
			return false
		}
		if n == 0 || n > (1<<62)/10 {
			return true
		}
		for digit := range int64(10) {
			if !number(n*10 + digit) {
				return false
			}
		}
		return true
	}
	for n := range min(int64(10), a.Counts[d]) {
		if !number(n) {
			return false
		}
	}
	return true
}

func (t *Tree) Entries(ctx context.Context) iter.Seq2[refs.Entry, error] {
	return func(yield func(refs.Entry, error) bool) {
		for _, key := range t.names {
			if !yield(refs.Entry{Key: key, Reference: refs.Reference{Data: t.docs[key]}}, nil) {
				return
			}
		}
		for _, prefix := range t.order {
			a := t.arrays[prefix]
			for key, err := range a.List(ctx, kv.ListOptions{}) {
				e := refs.Entry{Key: key}
				if err == nil {
					e.Reference, err = t.Lookup(ctx, key)
				}
				if !yield(e, err) || err != nil {
					return
				}
			}
		}
	}
}
