// Package chunklist lists keys of chunks that are made from numbers, in the order of their
// bytes, which differs from the order of the numbers:
//
//	t/0  t/1  t/10  t/100  t/101 …  t/11  t/110 …  t/2  t/20 …
package chunklist

import (
	"bytes"
	"context"
	"iter"
	"math"
	"slices"
	"sort"

	"github.com/zarrdb/zarrdb/kv"
)

// Array is the keys of the chunks of an array: Prefix and the coordinates, which are below
// Counts, with Separator between them. It has one dimension or more.
type Array struct {
	Prefix    string
	Separator byte
	Counts    []int64
	// Enter, if not nil, reports whether there may be chunks with the first of these
	// coordinates and a last coordinate that begins with the digits of the last one here.
	// Other chunks are left out.
	Enter func(coords []int64) bool
}

// Walk calls fn with the keys of a listing and their coordinates, which belong to Walk. It
// goes down a tree of digits, and not into branches without such a key. It returns the first
// error of fn, or the error of ctx.
func (a *Array) Walk(ctx context.Context, o kv.ListOptions, fn func(key []byte, coords []int64) error) error {
	w := walk{Array: a, ctx: ctx, prefix: []byte(o.Prefix), after: []byte(o.After), fn: fn, key: []byte(a.Prefix), coords: make([]int64, len(a.Counts))}
	if !w.wanted() || slices.Contains(a.Counts, 0) {
		return nil
	}
	return w.dimension(0)
}

// walk is a walk at a key.
type walk struct {
	*Array
	ctx           context.Context
	prefix, after []byte
	fn            func(key []byte, coords []int64) error
	key           []byte
	coords        []int64
	steps         int
}

// wanted reports whether the listing may include keys that begin with the current one.
func (w *walk) wanted() bool {
	if len(w.prefix)+len(w.after) == 0 {
		return true
	}
	return (bytes.HasPrefix(w.key, w.prefix) || bytes.HasPrefix(w.prefix, w.key)) && (string(w.key) > string(w.after) || bytes.HasPrefix(w.after, w.key))
}

// dimension walks through the coordinates of dimension d, which follow the key.
func (w *walk) dimension(d int) error {
	n := len(w.key)
	for v := range min(10, w.Counts[d]) {
		if err := w.digits(d, v, n); err != nil {
			return err
		}
	}
	return nil
}

// digits walks through the coordinates of dimension d that begin with the digits of v, of
// which the last follows n bytes of the key.
func (w *walk) digits(d int, v int64, n int) error {
	if w.steps++; w.steps%256 == 1 {
		if err := w.ctx.Err(); err != nil {
			return err
		}
	}
	w.key, w.coords[d] = append(w.key[:n], byte('0'+v%10)), v
	if !w.wanted() || w.Enter != nil && !w.Enter(w.coords[:d+1]) {
		return nil
	}
	if d < len(w.Counts)-1 { // a separator comes before a digit
		w.key = append(w.key, w.Separator)
		if err := w.dimension(d + 1); err != nil {
			return err
		}
	} else if bytes.HasPrefix(w.key, w.prefix) && (len(w.after) == 0 || string(w.key) > string(w.after)) {
		if err := w.fn(w.key, w.coords); err != nil {
			return err
		}
	}
	if v == 0 || v > w.Counts[d]/10 {
		return nil // no number has a leading zero
	}
	for next := 10 * v; next < 10*v+10 && next < w.Counts[d]; next++ {
		if err := w.digits(d, next, n+1); err != nil {
			return err
		}
	}
	return nil
}

// ParseNumber reads a number as keys spell it: in decimal digits without leading zeros.
func ParseNumber(s string) (n int64, ok bool) {
	if s == "" || len(s) > 19 || s[0] == '0' && len(s) > 1 {
		return 0, false
	}
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' || n > (math.MaxInt64-9)/10 {
			return 0, false
		}
		n = n*10 + int64(s[i]-'0')
	}
	return n, true
}

// Merge yields documents and the keys of arrays in the order of their bytes. Both are sorted:
// docs by key, arrays by the prefix of all their keys, which follow each other but for
// documents and arrays between them. keys yields the keys of an array. The sequence ends
// after the first error, which may be the error of ctx.
func Merge[D, A any](ctx context.Context, o kv.ListOptions, docs []D, key func(*D) string, arrays []A, prefix func(*A) string, keys func(*A) iter.Seq2[string, error]) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		from := max(o.Prefix, o.After)
		docs, arrays := docs[sort.Search(len(docs), func(i int) bool { return key(&docs[i]) >= from }):], arrays
		steps := 0
		// before yields the items before a key; "" is behind all keys.
		var before func(end string) bool
		before = func(end string) bool {
			for len(docs)+len(arrays) > 0 {
				if steps++; steps%256 == 1 && ctx.Err() != nil {
					yield("", ctx.Err())
					return false
				}
				hasDoc := len(docs) > 0 && (end == "" || key(&docs[0]) < end)
				hasArray := len(arrays) > 0 && (end == "" || prefix(&arrays[0]) < end)
				switch {
				case hasArray && !(hasDoc && key(&docs[0]) < prefix(&arrays[0])):
					a := &arrays[0]
					arrays = arrays[1:]
					if !o.HasBelow(prefix(a)) {
						continue
					}
					for key, err := range keys(a) {
						if err == nil && !before(key) || !yield(key, err) || err != nil {
							return false
						}
					}
				case hasDoc:
					doc := key(&docs[0])
					docs = docs[1:]
					if o.Has(doc) && !yield(doc, nil) {
						return false
					}
				default:
					return true
				}
			}
			return true
		}
		before("")
	}
}
