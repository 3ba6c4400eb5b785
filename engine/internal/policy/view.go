package policy

import (
	"context"
	"errors"
	"iter"

	"github.com/zarrdb/zarrdb/engine/internal/names"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/zarr/meta"
)

// Some v2 stores have no metadata but .zmetadata, the copy of all documents. Here
// they are views with those documents.

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
			return base, nil // opening the node says what is wrong
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
	d := documents{Reader: base, docs: kv.NewMem()}
	for key, text := range docs {
		if err := d.docs.Set(ctx, key, text); err != nil {
			return nil, err
		}
	}
	if list, ok := base.(kv.Lister); ok {
		return listedDocuments{d, list}, nil
	}
	return d, nil
}

// documents is a view with documents of its own.
type documents struct {
	kv.Reader
	docs *kv.Mem
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
	_ kv.ReadLister   = listedDocuments{}
)

// of returns the view that has a key.
func (d documents) of(ctx context.Context, key string) kv.Reader {
	if _, err := d.docs.Locate(ctx, key); err == nil {
		return d.docs
	}
	return d.Reader
}

func (d documents) Get(ctx context.Context, key string, rng kv.Range) ([]byte, error) {
	return d.of(ctx, key).Get(ctx, key, rng)
}

func (d documents) Locate(ctx context.Context, key string) (kv.Value, error) {
	return kv.Locate(ctx, d.of(ctx, key), key)
}

func (d documents) LocateRange(ctx context.Context, key string, rng kv.Range, limit int64) (kv.Value, []byte, error) {
	return kv.LocateRange(ctx, d.of(ctx, key), key, rng, limit)
}

func (d documents) GetMany(ctx context.Context, reqs []kv.Request) ([][]byte, error) {
	out := make([][]byte, len(reqs))
	var rest []kv.Request
	var at []int
	for i, r := range reqs {
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
	return out, nil
}

func (d documents) Gathers(ctx context.Context, key string) bool {
	return kv.Gathers(ctx, d.of(ctx, key), key)
}

// Gather implements [kv.Gatherer]. It is asked for keys that Gathers takes, which
// are those of the base.
func (d documents) Gather(ctx context.Context, wants []kv.Want, g kv.Gathering) error {
	return kv.Gather(ctx, d.Reader, wants, g)
}

func (d listedDocuments) List(ctx context.Context, opts kv.ListOptions) iter.Seq2[string, error] {
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
