package serve

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"path"
	"sync"

	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/txn"
)

// documents caches, by version, whether consolidated metadata equals the
// metadata below it, and keeps copies that had to be rebuilt.
type documents struct {
	mu    sync.Mutex
	made  map[docKey]docValue
	bytes int // of made
}

type docKey struct {
	commit txn.CommitID
	key    string
}

// docValue is the served value of a key: b, or the stored value if as is set.
type docValue struct {
	as bool
	b  []byte
}

// Bounds of documents.
const (
	maxDocument   = 64 << 20 // longer ones are served without a check
	maxRemembered = 4096
	maxKept       = 64 << 20 // bytes of all copies that were made again
	maxHashed     = 64 << 10
)

// Value finds the value that clients get for a key: the one that is stored, or true
// consolidated metadata; see [View.TrueDocument]. Errors are those of Locate.
func (v *View) Value(ctx context.Context, key string) (kv.Value, error) {
	val, err := kv.Locate(ctx, v.ReadLister, key)
	if err != nil || v.document == nil || !CarriesCopies(key) || val.Size() > maxDocument {
		return val, err
	}
	return v.documents.get(ctx, v, key, val)
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

// get returns the document of a key whose stored value is val.
func (d *documents) get(ctx context.Context, v *View, key string, val kv.Value) (kv.Value, error) {
	var at docKey
	if v.Commit != nil {
		at = docKey{v.Commit.ID, key}
		d.mu.Lock()
		have, ok := d.made[at]
		d.mu.Unlock()
		switch {
		case ok && have.as:
			return val, nil
		case ok && have.b == nil:
			return nil, kv.ErrNotFound
		case ok:
			return hashed(have.b), nil
		}
	}
	stored, err := kv.ReadValue(ctx, val, kv.AtMost(maxDocument))
	if err != nil {
		return nil, err
	}
	doc, err := v.TrueDocument(ctx, key, stored)
	gone := errors.Is(err, kv.ErrNotFound)
	if err != nil && !gone {
		return nil, err
	}
	as := !gone && string(doc) == string(stored)
	if v.Commit != nil && (as || len(doc) <= maxKept/4) {
		if as {
			d.put(at, docValue{as: true})
		} else {
			d.put(at, docValue{b: doc})
		}
	}
	switch {
	case gone:
		return nil, kv.ErrNotFound
	case as:
		return val, nil
	}
	return hashed(doc), nil
}

// hashed is a value that is no stored one, with an identity of its own.
func hashed(b []byte) kv.Value {
	return kv.FromReaderAt(bytes.NewReader(b), int64(len(b)), hash(b))
}

// put remembers one more, and forgets some others if there are too many.
func (d *documents) put(at docKey, v docValue) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.made == nil {
		d.made = map[docKey]docValue{}
	}
	for old, had := range d.made {
		if len(d.made) < maxRemembered && d.bytes+len(v.b) <= maxKept {
			break
		}
		d.bytes -= len(had.b)
		delete(d.made, old)
	}
	d.bytes += len(v.b) - len(d.made[at].b)
	d.made[at] = v
}
