package web

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"sync"

	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/serve"
	"github.com/zarrdb/zarrdb/txn"
)

// documents remembers for which versions the consolidated metadata was compared
// with what is below, and keeps copies that had to be made again.
type documents struct {
	mu   sync.Mutex
	made map[docKey]docValue
}

type docKey struct {
	commit txn.CommitID
	key    string
}

// docValue is what is served for a key: b, or what is stored if as is set.
type docValue struct {
	as bool
	b  []byte
}

// Bounds of what documents remember.
const (
	maxRemembered = 4096
	maxKept       = 4 << 20 // of one copy
)

// get returns the document of a key whose stored value is val.
func (d *documents) get(ctx context.Context, v *serve.View, key string, val kv.Value) (kv.Value, error) {
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
	if v.Commit != nil && (as || len(doc) <= maxKept) {
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
	sum := sha256.Sum256(b)
	return kv.FromReaderAt(bytes.NewReader(b), int64(len(b)), kv.ID(sum[:20]))
}

// put remembers one more, and forgets some others if there are too many.
func (d *documents) put(at docKey, v docValue) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.made == nil {
		d.made = map[docKey]docValue{}
	}
	for old := range d.made {
		if len(d.made) < maxRemembered {
			break
		}
		delete(d.made, old)
	}
	d.made[at] = v
}

// hashTag is an ETag made of bytes.
func hashTag(b []byte) string {
	sum := sha256.Sum256(b)
	return `"h` + hex.EncodeToString(sum[:16]) + `"`
}
