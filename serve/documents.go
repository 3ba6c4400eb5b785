package serve

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"path"

	"github.com/zarrdb/zarrdb/internal/lru"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/txn"
)

// documents caches, by version, whether consolidated metadata equals the
// metadata below it, and keeps copies that had to be rebuilt.
type documents = lru.Cache[docKey, document]

type docKey struct {
	commit txn.CommitID
	key    string
}

// document is the served value of a key: b, or the stored value if as is set, or
// nothing.
type document struct {
	as, gone bool
	b        []byte
}

const (
	maxDocument = 64 << 20 // longer ones are served without a check
	maxKept     = 64 << 20 // bytes of all cached documents
	maxHashed   = 64 << 10
)

func newDocuments() *documents {
	return lru.New[docKey](maxKept, func(d document) int64 { return int64(len(d.b)) + 256 })
}

// Value finds the value that clients get for a key: the stored value, or true
// consolidated metadata; see [View.TrueDocument]. Errors are as for Locate.
func (v *View) Value(ctx context.Context, key string) (kv.Value, error) {
	val, err := kv.Locate(ctx, v.ReadLister, key)
	if err != nil || v.document == nil || !CarriesCopies(key) || val.Size() > maxDocument {
		return val, err
	}
	return v.known(ctx, key, val)
}

// CarriesCopies reports whether a key may hold consolidated metadata.
func CarriesCopies(key string) bool {
	name := path.Base(key)
	return name == "zarr.json" || name == ".zmetadata"
}

// ContentID returns an id that only these bytes have: the identity of the value,
// or a hash of its validator, or of the bytes if they are few. It is zero if the
// value has no id.
func ContentID(ctx context.Context, v kv.Value) (kv.ID, error) {
	if id := v.ID(); id != (kv.ID{}) {
		return id, nil
	}
	if s, ok := v.(kv.Validator); ok && s.Validator() != "" {
		return hash([]byte(s.Validator())), nil
	}
	if v.Size() > maxHashed {
		return kv.ID{}, nil
	}
	var id kv.ID
	err := v.View(ctx, kv.All(), func(b []byte) error {
		id = hash(b)
		return nil
	})
	return id, err
}

func hash(b []byte) kv.ID {
	sum := sha256.Sum256(b)
	return kv.ID(sum[:len(kv.ID{})])
}

// known returns the document of a key whose stored value is val.
func (v *View) known(ctx context.Context, key string, val kv.Value) (kv.Value, error) {
	compare := func() (d document, err error) {
		stored, err := kv.ReadValue(ctx, val, kv.AtMost(maxDocument))
		if err != nil {
			return d, err
		}
		doc, err := v.TrueDocument(ctx, key, stored)
		switch {
		case errors.Is(err, kv.ErrNotFound):
			return document{gone: true}, nil
		case err == nil && string(doc) == string(stored):
			return document{as: true}, nil
		}
		return document{b: doc}, err
	}
	var d document
	var err error
	if v.Commit != nil {
		d, err = v.documents.Get(ctx, docKey{v.Commit.ID, key}, compare)
	} else {
		d, err = compare()
	}
	switch {
	case err != nil:
		return nil, err
	case d.gone:
		return nil, kv.ErrNotFound
	case d.as:
		return val, nil
	}
	return hashed(d.b), nil
}

// hashed is a value that is no stored one, with an identity of its own.
func hashed(b []byte) kv.Value {
	return kv.FromReaderAt(bytes.NewReader(b), int64(len(b)), hash(b))
}
