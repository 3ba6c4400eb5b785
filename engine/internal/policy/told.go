package policy

import (
	"context"
	"errors"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/zarrdb/zarrdb/engine/internal/listing"
	"github.com/zarrdb/zarrdb/engine/internal/names"
	"github.com/zarrdb/zarrdb/internal/ctxlock"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/zarr/meta"
)

// WithTold returns a view of a store of foreign origin. The view adds the documents of nodes
// that have keys in the store, but a document only in the consolidated metadata of the root:
// other programs open these nodes by that copy. Entries of the copy without keys are out of
// date, and stay hidden. A view that cannot be listed is returned unchanged.
func WithTold(base kv.Reader) kv.Reader {
	list, ok := base.(kv.ReadLister)
	if !ok {
		return base
	}
	t := &told{base: list}
	t.Documents = listing.Documents{Reader: base, Told: t.find}
	return t
}

// told is a view with documents of consolidated metadata. The copy is read when a document
// below the root is missing, or keys are listed.
type told struct {
	listing.Documents
	base kv.ReadLister

	mu   ctxlock.Lock
	docs map[string][]byte // documents in the copy, by key; nil before the copy was read
	keys []string          // of docs, sorted
}

var (
	_ kv.ReadLister = (*told)(nil)
	_ kv.DirLister  = (*told)(nil)
)

// copied returns the documents in the copy, and their sorted keys. A copy that cannot be
// parsed counts as empty: opening the root reports its error.
func (t *told) copied(ctx context.Context) (map[string][]byte, []string, error) {
	if err := t.mu.Lock(ctx); err != nil {
		return nil, nil, err
	}
	defer t.mu.Unlock()
	if t.docs != nil {
		return t.docs, t.keys, nil
	}
	most := kv.AtMost(MaxDocument)
	found, err := kv.GetMany(ctx, t.base, []kv.Request{{Key: names.V2Metadata, Range: most}, {Key: names.V3, Range: most}})
	if err != nil {
		return nil, nil, err
	}
	docs := map[string][]byte{}
	if found[0] != nil {
		if list, err := meta.ConsolidatedDocuments(found[0]); err == nil {
			maps.Copy(docs, list)
		}
	}
	if copies, _ := (Policy{}).Copies(names.V3, found[1]); copies != nil {
		if inline, err := ParseObject(copies); err == nil {
			if list, err := ParseObject(inline.Values["metadata"]); err == nil {
				for path, doc := range list.Values {
					_, docs[names.Dir(names.Clean(path))+names.V3] = Policy{}.Copies(names.V3, doc)
				}
			}
		}
	}
	maps.DeleteFunc(docs, func(key string, _ []byte) bool { return names.Parent(key) == "" })
	t.docs, t.keys = docs, slices.Sorted(maps.Keys(docs))
	return t.docs, t.keys, nil
}

// find returns the document under a key that has no value in the store: the document of a node
// that only the copy has, or kv.ErrNotFound.
func (t *told) find(ctx context.Context, key string) ([]byte, error) {
	node := names.Parent(key)
	if node == "" || !names.IsDocument(key) {
		return nil, kv.ErrNotFound
	}
	docs, _, err := t.copied(ctx)
	if err != nil {
		return nil, err
	}
	doc, ok := docs[key]
	if !ok {
		return nil, kv.ErrNotFound
	}
	switch alone, err := t.copyAlone(ctx, names.Dir(node)); {
	case errors.Is(err, kv.ErrInvalidKey): // the store cannot have such a node
		return nil, kv.ErrNotFound
	case err != nil:
		return nil, err
	case !alone:
		return nil, kv.ErrNotFound
	}
	return doc, nil
}

// copyAlone reports whether the store has keys in a directory, and no document of a node.
func (t *told) copyAlone(ctx context.Context, dir string) (bool, error) {
	for _, name := range []string{names.V3, names.V2Array, names.V2Group} {
		if in, err := kv.Exists(ctx, t.base, dir+name); in || err != nil {
			return false, err
		}
	}
	some, err := kv.Any(ctx, t.base, dir)
	if errors.Is(err, errors.ErrUnsupported) {
		return true, nil
	}
	return some, err
}

// ListDir implements [kv.DirLister]. A node of the copy has keys, so its directory is there.
func (t *told) ListDir(ctx context.Context, prefix string) iter.Seq2[kv.DirEntry, error] {
	return func(yield func(kv.DirEntry, error) bool) {
		var more []kv.DirEntry
		for _, name := range []string{names.V2Array, names.V2Attrs, names.V2Group, names.V3} { // in order
			switch _, err := t.find(ctx, prefix+name); {
			case err == nil:
				more = append(more, kv.DirEntry{Name: name})
			case !errors.Is(err, kv.ErrNotFound):
				yield(kv.DirEntry{}, err)
				return
			}
		}
		for e, err := range kv.ListDir(ctx, t.base, prefix) {
			for ; err == nil && len(more) > 0 && more[0].Name <= e.Name; more = more[1:] {
				if (more[0].Name < e.Name || e.Prefix) && !yield(more[0], nil) {
					return
				}
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
		for _, e := range more {
			if !yield(e, nil) {
				return
			}
		}
	}
}

// List implements [kv.Lister].
func (t *told) List(ctx context.Context, o kv.ListOptions) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		_, keys, err := t.copied(ctx)
		if err != nil {
			yield("", err)
			return
		}
		i, _ := slices.BinarySearch(keys, max(o.Prefix, o.After))
		keys = keys[i:]
		// until yields the documents that only the copy has and that come before a key, or
		// with "" all. It returns false to stop.
		until := func(key string) bool {
			for ; len(keys) > 0 && (key == "" && strings.HasPrefix(keys[0], o.Prefix) || keys[0] < key); keys = keys[1:] {
				if !o.Has(keys[0]) {
					continue
				}
				_, err := t.find(ctx, keys[0])
				if errors.Is(err, kv.ErrNotFound) {
					continue
				}
				if !yield(keys[0], err) || err != nil {
					return false
				}
			}
			return true
		}
		for key, err := range t.base.List(ctx, o) {
			if err == nil && !until(key) {
				return
			}
			if err == nil && len(keys) > 0 && keys[0] == key {
				keys = keys[1:]
			}
			if !yield(key, err) || err != nil {
				return
			}
		}
		until("")
	}
}
