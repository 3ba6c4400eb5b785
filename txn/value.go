package txn

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/digest"
	"github.com/zarrdb/zarrdb/kv/pack"
	"github.com/zarrdb/zarrdb/kv/redact"
	"github.com/zarrdb/zarrdb/kv/tree"
	"github.com/zarrdb/zarrdb/txn/internal/catalog"
	"github.com/zarrdb/zarrdb/txn/internal/namespace"
)

// located is a [kv.Value] of a snapshot or session.
type located struct {
	db *DB
	v  tree.Value
	by readBy
}

// readBy is what a value was found under, for errors.
type readBy struct {
	key     string
	version CommitID  // of a snapshot, the base of a session
	at      *Snapshot // nil for a session
}

// ReadError says that the stored bytes of a key cannot be read or are not what
// was stored. Err names the pack and the offset; it is kv.ErrCorrupt.
type ReadError struct {
	Key string
	// Version is the commit that was read, for a session its base.
	Version CommitID
	Err     error
}

// Error implements error.
func (e *ReadError) Error() string {
	return fmt.Sprintf("key %s of version %s: %v", e.Key, e.Version.Short(), e.Err)
}

// Unwrap returns what is wrong with the bytes.
func (e *ReadError) Unwrap() error { return e.Err }

var _ kv.Value = located{}

func (l located) Size() int64 {
	if l.v.Kind == tree.KindInline {
		return int64(len(l.v.Inline))
	}
	return int64(l.v.Length)
}

func (l located) ID() kv.ID { return kv.ID(l.v.ContentSum()) }

func (l located) View(ctx context.Context, rng kv.Range, fn func([]byte) error) error {
	if l.v.Kind == tree.KindInline {
		return kv.Bytes(l.v.Inline).View(ctx, rng, fn)
	}
	off, n, err := rng.Resolve(int64(l.v.Length))
	if err != nil {
		return err
	}
	if n == 0 {
		return fn(nil)
	}
	a := catalog.AddressOf(l.v)
	// What a session reads may be part of what it writes, where damage would get new checksums.
	all := l.by.at == nil
	err = l.db.home.view(ctx, a, uint64(off), uint64(n), all, l.v.Sum, fn)
	var damage *pack.CorruptError
	if errors.As(err, &damage) {
		err = l.by.at.failed(err)
	}
	if l.by.key != "" && (errors.As(err, &damage) && damage.Pack == a.Pack || errors.Is(err, ErrAway)) {
		err = &ReadError{Key: l.by.key, Version: l.by.version, Err: err}
	}
	return err
}

var _ kv.Streamer = located{}

// Stream implements [kv.Streamer]: each part of a payload has a checksum of its own.
func (l located) Stream(ctx context.Context, fn func([]byte) error) error {
	return kv.Pieces(ctx, l, 0, l.Size(), fn)
}

var _ kv.Placed = located{}

// Placed implements [kv.Placed].
func (l located) Placed() {}

// locate makes a readable value of what a tree holds; r reads virtual ones.
func (db *DB) locate(ctx context.Context, v tree.Value, by readBy, r Resolver) (kv.Value, error) {
	switch v.Kind {
	case tree.KindInline, tree.KindNative:
		return located{db, v, by}, nil
	case tree.KindVirtual:
		if r == nil {
			return nil, fmt.Errorf("%w: %s", ErrNoVirtual, redact.URL(v.Source.URL))
		}
		return r.Locate(ctx, v.Source, v.Offset, v.Length)
	}
	return nil, catalog.Corrupt("value of kind %d", v.Kind)
}

// load reads the whole bytes of a value; the caller owns them.
func (db *DB) load(ctx context.Context, v tree.Value) ([]byte, error) {
	return db.read(ctx, v, kv.All(), readBy{})
}

func (db *DB) read(ctx context.Context, v tree.Value, rng kv.Range, by readBy) ([]byte, error) {
	l, err := db.locate(ctx, v, by, db.opts.Resolver)
	if err != nil {
		return nil, err
	}
	var out []byte
	err = l.View(ctx, rng, func(b []byte) error {
		out = slices.Clone(b)
		if out == nil {
			out = []byte{}
		}
		return nil
	})
	return out, err
}

// inlineValue makes a value that lives in a page, if the bytes are few.
func inlineValue(key string, value []byte) (tree.Value, bool) {
	if len(value) > namespace.InlineLimit(key) {
		return tree.Value{}, false
	}
	return tree.Value{Kind: tree.KindInline, Inline: slices.Clone(value)}, true
}

// store puts bytes into a pack. The owner is stored beside them: a salvage, which has only packs, names the bytes by it.
func (db *DB) store(ctx context.Context, owner pack.Owner, value []byte, sum digest.Sum) (tree.Value, error) {
	a, err := db.packs.Append(ctx, owner, value)
	if err != nil {
		if errors.Is(err, pack.ErrFailed) {
			db.afterPackFailure()
		}
		return tree.Value{}, err
	}
	return tree.Value{Kind: tree.KindNative, Sum: sum, Pack: tree.PackID(a.Pack), Offset: a.Offset, Length: a.Length}, nil
}
