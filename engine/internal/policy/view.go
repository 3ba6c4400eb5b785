package policy

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"path"

	"github.com/zarrdb/zarrdb/engine/internal/names"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/zarr/meta"
)

// Some v2 stores have no metadata but .zmetadata, the copy of all documents, and some
// documents lack a member. Here they are views with the right documents.

// MaxDocument is the most bytes of a document that is read from a foreign store.
const MaxDocument = 64 << 20

// WithDocuments returns a view of a v2 store that has the documents which its
// .zmetadata copies, if that is all the metadata it has, and otherwise the view.
// alone says that .zmetadata is alone, as detection found; else it is looked up.
func WithDocuments(ctx context.Context, base kv.Reader, alone bool) (kv.Reader, error) {
	most := kv.AtMost(MaxDocument)
	if !alone {
		docs, err := kv.GetMany(ctx, base, []kv.Request{{Key: names.V2Group, Range: most}, {Key: names.V2Array, Range: most}})
		if err != nil || docs[0] != nil || docs[1] != nil {
			return base, nil // opening the node returns the error
		}
	}
	doc, err := base.Get(ctx, names.V2Metadata, most)
	if err != nil {
		return base, nil
	}
	docs, err := meta.ConsolidatedDocuments(doc)
	if err != nil {
		if alone {
			return nil, err
		}
		return base, nil
	}
	if docs[names.V2Group] == nil && docs[names.V2Array] == nil {
		docs[names.V2Group] = []byte(`{"zarr_format":2}`)
	}
	mem := kv.NewMem()
	for key, text := range docs {
		if err := mem.Set(ctx, key, text); err != nil {
			return nil, err
		}
	}
	return newDocuments(base, mem), nil
}

// WithSeparators returns a view of a store of foreign origin whose v2 documents name the
// separator of the chunk keys that are there; see [Separators].
func WithSeparators(base kv.Reader) kv.Reader {
	switch base.(type) {
	case documents, listedDocuments:
		return base
	}
	return newDocuments(base, nil)
}

func newDocuments(base kv.Reader, docs *kv.Mem) kv.Reader {
	d := documents{Reader: base, docs: docs, separators: NewSeparators(base)}
	if list, ok := base.(kv.Lister); ok {
		return listedDocuments{d, list}
	}
	return d
}

// documents is a view with documents of its own, if docs is not nil, and corrected ones.
type documents struct {
	kv.Reader
	docs       *kv.Mem
	separators *Separators
}

type listedDocuments struct {
	documents
	list kv.Lister
}

var (
	_ kv.Locator      = documents{}
	_ kv.BatchReader  = documents{}
	_ kv.RangeLocator = documents{}
	_ kv.Gatherer     = documents{}
	_ kv.Spacer       = documents{}
	_ kv.ReadLister   = listedDocuments{}
	_ kv.DirLister    = listedDocuments{}
)

// own reports whether a key has a document that the base has not.
func (d documents) own(ctx context.Context, key string) bool {
	if d.docs == nil {
		return false
	}
	_, err := d.docs.Locate(ctx, key)
	return err == nil
}

// of returns the view that has a key.
func (d documents) of(ctx context.Context, key string) kv.Reader {
	if d.own(ctx, key) {
		return d.docs
	}
	return d.Reader
}

func (d documents) Get(ctx context.Context, key string, rng kv.Range) ([]byte, error) {
	b, err := d.of(ctx, key).Get(ctx, key, rng)
	if err == nil {
		b, err = d.separators.Correct(ctx, key, b)
	}
	return b, err
}

func (d documents) Locate(ctx context.Context, key string) (kv.Value, error) {
	v, err := kv.Locate(ctx, d.of(ctx, key), key)
	if err != nil || !hasSeparators(key) || d.separators.sound(key) || v.Size() > MaxDocument {
		return v, err
	}
	text, err := kv.ReadValue(ctx, v, kv.All())
	if err != nil {
		return nil, err
	}
	fixed, err := d.separators.Correct(ctx, key, text)
	if err != nil || len(fixed) == len(text) {
		return v, err
	}
	one := kv.NewMem()
	if err := one.Set(ctx, key, fixed); err != nil {
		return nil, err
	}
	return one.Locate(ctx, key)
}

func (d documents) LocateRange(ctx context.Context, key string, rng kv.Range, limit int64) (kv.Value, []byte, error) {
	if hasSeparators(key) {
		v, err := d.Locate(ctx, key)
		return v, nil, err
	}
	return kv.LocateRange(ctx, d.of(ctx, key), key, rng, limit)
}

func (d documents) GetMany(ctx context.Context, reqs []kv.Request) ([][]byte, error) {
	out := make([][]byte, len(reqs))
	var rest []kv.Request
	var at []int
	for i, r := range reqs {
		if d.docs == nil {
			rest, at = append(rest, r), append(at, i)
			continue
		}
		switch b, err := d.docs.Get(ctx, r.Key, r.Range); {
		case err == nil:
			out[i] = b
		case errors.Is(err, kv.ErrNotFound):
			rest, at = append(rest, r), append(at, i)
		default:
			return nil, err
		}
	}
	more, err := kv.GetMany(ctx, d.Reader, rest)
	if err != nil {
		return nil, err
	}
	for i, b := range more {
		out[at[i]] = b
	}
	arrays := map[string]json.RawMessage{} // their chunks are looked for together
	for i, b := range out {
		switch dir, name := path.Split(reqs[i].Key); {
		case b == nil:
		case name == names.V2Array:
			arrays[dir] = b
		case name == names.V2Metadata:
			if out[i], err = d.separators.Correct(ctx, reqs[i].Key, b); err != nil {
				return nil, err
			}
		}
	}
	if arrays, err = d.separators.correct(ctx, arrays); err != nil {
		return nil, err
	}
	for i, r := range reqs {
		if dir, name := path.Split(r.Key); name == names.V2Array && arrays[dir] != nil {
			out[i] = arrays[dir]
		}
	}
	return out, nil
}

func (d documents) Gathers(ctx context.Context, key string) bool {
	return !hasSeparators(key) && kv.Gathers(ctx, d.of(ctx, key), key)
}

// Gather implements [kv.Gatherer]. Documents are read one by one.
func (d documents) Gather(ctx context.Context, wants []kv.Want, g kv.Gathering) error {
	ours := func(key string) bool { return hasSeparators(key) || d.own(ctx, key) }
	return kv.GatherApart(ctx, d.Reader, wants, g, ours, d.Locate)
}

// Spacing implements [kv.Spacer].
func (d documents) Spacing() (gap, most int64) { return kv.Spacing(d.Reader) }

// ListDir implements [kv.DirLister].
func (d listedDocuments) ListDir(ctx context.Context, prefix string) iter.Seq2[kv.DirEntry, error] {
	if d.docs == nil {
		return kv.ListDir(ctx, d.list, prefix)
	}
	return func(yield func(kv.DirEntry, error) bool) { yield(kv.DirEntry{}, errors.ErrUnsupported) }
}

func (d listedDocuments) List(ctx context.Context, opts kv.ListOptions) iter.Seq2[string, error] {
	if d.docs == nil {
		return d.list.List(ctx, opts)
	}
	return func(yield func(string, error) bool) {
		next, stop := iter.Pull2(d.docs.List(ctx, opts))
		defer stop()
		doc, err, more := next()
		for key, lerr := range d.list.List(ctx, opts) {
			for ; more && err == nil && lerr == nil && doc <= key; doc, err, more = next() {
				if doc < key && !yield(doc, nil) {
					return
				}
			}
			if !yield(key, errors.Join(err, lerr)) || err != nil || lerr != nil {
				return
			}
		}
		for ; more; doc, err, more = next() {
			if !yield(doc, err) || err != nil {
				return
			}
		}
	}
}
