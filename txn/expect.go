package txn

import (
	"context"
	"errors"

	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/tree"
	"github.com/zarrdb/zarrdb/txn/internal/seen"
)

type (
	// Expect is the condition of a write on the current value of its key. The zero
	// Expect allows any value.
	Expect = seen.Expect
	// ChangedError means that the value of a key is not the expected one. It is
	// [ErrConflict].
	ChangedError = seen.ChangedError
)

// SetIf sets a key if it has the expected value, and returns the identity of the new value. A
// nil value deletes the key. The error is a *[ChangedError] if the key has another value.
// Between the comparison and the write of a session of this process, others may write.
func (s *Session) SetIf(ctx context.Context, key string, value []byte, want Expect) (kv.ID, error) {
	return s.home.setIf(ctx, key, value, want)
}

func (s own) setIf(ctx context.Context, key string, value []byte, want Expect) (id kv.ID, err error) {
	if value == nil && want == (Expect{}) {
		return id, s.remove(ctx, key)
	}
	old, has, err := s.current(ctx, key)
	if err != nil {
		return id, err
	}
	if have, ok := s.meets(ctx, key, old, has, want); !ok {
		return id, &ChangedError{Key: key, Want: want, Have: have}
	}
	if value == nil {
		return id, s.remove(ctx, key)
	}
	v, err := s.setOver(ctx, key, value, old, has)
	if err != nil {
		return id, err
	}
	return kv.ID(v.ContentSum()), nil
}

// current is lookup where has is false for a key without a value.
func (s own) current(ctx context.Context, key string) (v tree.Value, has bool, err error) {
	v, err = s.lookup(ctx, key)
	if errors.Is(err, kv.ErrNotFound) {
		return v, false, nil
	}
	return v, err == nil, err
}

// meets reports whether the value of a key is the expected one.
func (s own) meets(ctx context.Context, key string, v tree.Value, has bool, want Expect) (have kv.ID, ok bool) {
	if !has || want == (Expect{}) {
		return have, want.ID == kv.ID{}
	}
	if have = kv.ID(v.ContentSum()); want.Absent || have == want.ID {
		return have, !want.Absent
	}
	if v.Kind == tree.KindVirtual { // its bytes have another identity
		at, err := s.db.locate(ctx, v, readBy{key: key, version: s.Base()}, s.db.opts.Resolver)
		return have, err == nil && at.ID() == want.ID
	}
	return have, false
}
