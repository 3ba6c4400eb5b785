package refs

import (
	"cmp"
	"context"
	"encoding/binary"
	"iter"
	"math"
	"slices"
	"sort"

	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/refs/parquet"
)

// table is a whole set in memory, sorted by key: 32 bytes for each entry, its
// key, and each URL once. It is immutable.
//
//	refs   { key ─┐ offset length url ─┐ } …     sorted by key
//	keys   "…t/0.0t/0.1…"              │
//	urls   "s3://a", "s3://b" … ◄──────┘         or data, where the value is inline
type table struct {
	refs []tableRef
	keys []byte
	urls []string
	data []byte
}

type tableRef struct {
	key            uint64 // offset in table.keys
	offset, length int64  // in the file, or in table.data
	url            uint32 // number in table.urls, or inlineURL
	keyLen         uint16
	form           Form
}

const inlineURL = math.MaxUint32

// checkEvery is the number of entries between two checks of the context.
const checkEvery = 1 << 8

func (t *table) key(r *tableRef) []byte { return t.keys[r.key:][:r.keyLen] }

// find returns the number of the first key that is not below key.
func (t *table) find(key string) int {
	return sort.Search(len(t.refs), func(i int) bool { return string(t.key(&t.refs[i])) >= key })
}

func (t *table) reference(r *tableRef) Reference {
	if r.url == inlineURL {
		end := r.offset + r.length
		return Reference{Data: t.data[r.offset:end:end], Form: r.form}
	}
	return Reference{URL: t.urls[r.url], Offset: r.offset, Length: r.length}
}

func (t *table) Lookup(_ context.Context, key string) (Reference, error) {
	i := t.find(key)
	if i == len(t.refs) || string(t.key(&t.refs[i])) != key {
		return Reference{}, kv.ErrNotFound
	}
	return t.reference(&t.refs[i]), nil
}

func (t *table) List(ctx context.Context, opts kv.ListOptions) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		var keys parquet.Arena
		for i := t.find(max(opts.Prefix, opts.After)); i < len(t.refs); i++ {
			if i%checkEvery == 0 && ctx.Err() != nil {
				yield("", ctx.Err())
				return
			}
			key := t.key(&t.refs[i])
			if len(key) < len(opts.Prefix) || string(key[:len(opts.Prefix)]) != opts.Prefix {
				return
			}
			if string(key) != opts.After && !yield(keys.Text(key), nil) {
				return
			}
		}
	}
}

func (t *table) Entries(ctx context.Context) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		var keys parquet.Arena
		for i := range t.refs {
			if i%checkEvery == 0 && ctx.Err() != nil {
				yield(Entry{}, ctx.Err())
				return
			}
			r := &t.refs[i]
			if !yield(Entry{keys.Text(t.key(r)), t.reference(r)}, nil) {
				return
			}
		}
	}
}

// buildTable reads entries into a table of at most most bytes.
func buildTable(entries iter.Seq2[Entry, error], most int64) (*table, error) {
	t := &table{}
	number := map[string]uint32{}
	var urls parquet.Arena
	text := int64(0) // of URLs
	for e, err := range entries {
		if err != nil {
			return nil, err
		}
		r := tableRef{key: uint64(len(t.keys)), keyLen: uint16(len(e.Key)), offset: e.Offset, length: e.Length, url: inlineURL, form: e.Form}
		t.keys = append(t.keys, e.Key...)
		if e.Inline() {
			r.offset, r.length = int64(len(t.data)), int64(len(e.Data))
			t.data = append(t.data, e.Data...)
		} else {
			var ok bool
			if r.url, ok = number[e.URL]; !ok {
				r.url = uint32(len(t.urls))
				url := urls.Text([]byte(e.URL))
				t.urls = append(t.urls, url)
				text += int64(len(url))
				// With more URLs, each has few references, and remembering them
				// does not pay.
				if len(number) < 1<<20 {
					number[url] = r.url
				}
			}
		}
		t.refs = append(t.refs, r)
		bytes := int64(len(t.keys)) + int64(len(t.data)) + text + 32*int64(len(t.refs)) + 16*int64(len(t.urls))
		if bytes > most || len(t.refs) >= math.MaxInt32 {
			return nil, limit("the set takes more than %d bytes in memory (MaxTable)", most)
		}
	}
	t.sort()
	return t, nil
}

// sortItem is an entry while it is sorted: its number and the current eight
// bytes of its key.
type sortItem struct {
	part uint64
	i    uint32
}

// sort orders the entries by key. Of entries with equal keys it keeps the last.
func (t *table) sort() {
	sorted := true
	for i := 1; i < len(t.refs) && sorted; i++ {
		sorted = string(t.key(&t.refs[i-1])) < string(t.key(&t.refs[i]))
	}
	if sorted {
		return
	}
	items := make([]sortItem, len(t.refs))
	for i := range items {
		items[i].i = uint32(i)
	}
	items = t.sortFrom(items, items[:0], 0)
	refs := make([]tableRef, len(items))
	for i, it := range items {
		refs[i] = t.refs[it.i]
	}
	t.refs = refs
}

// sortFrom sorts items, whose keys are equal in the first bytes, and appends the
// kept items to out, which lies before items in the same memory. Comparing eight
// bytes at a time as one number avoids most comparisons of whole keys, which
// have long common prefixes and cost cache misses.
func (t *table) sortFrom(items, out []sortItem, from int) []sortItem {
	for k := range items {
		items[k].part = part(t.key(&t.refs[items[k].i]), from)
	}
	slices.SortFunc(items, func(a, b sortItem) int {
		return cmp.Or(cmp.Compare(a.part, b.part), cmp.Compare(a.i, b.i))
	})
	for len(items) > 0 {
		n := 1
		for n < len(items) && items[n].part == items[0].part {
			n++
		}
		switch {
		case n == 1:
			out = append(out, items[0])
		case byte(items[0].part) == 0: // keys have no NUL: all of them end here
			out = append(out, items[n-1])
		default:
			out = t.sortFrom(items[:n], out, from+8)
		}
		items = items[n:]
	}
	return out
}

// part returns eight bytes of a key as a number of the same order.
func part(key []byte, from int) uint64 {
	if from+8 <= len(key) {
		return binary.BigEndian.Uint64(key[from:])
	}
	var b [8]byte
	if from < len(key) {
		copy(b[:], key[from:])
	}
	return binary.BigEndian.Uint64(b[:])
}
