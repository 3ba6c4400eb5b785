package engine

import (
	"context"

	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/txn"
)

type (
	// Expect is the condition of a write.
	Expect = txn.Expect
	// ChangedError means that the value of a key is not the expected one.
	ChangedError = txn.ChangedError
)

// SetIf is Set if the key has the expected value, else the error is a
// *[ChangedError]. It excludes other conditional writes of the key, and writers
// of arrays opened from the session. It returns the identity of the new value.
func (s *Session) SetIf(ctx context.Context, key string, value []byte, want Expect) (kv.ID, error) {
	if value == nil {
		value = []byte{}
	}
	return s.putIf(ctx, key, value, want)
}

// DeleteIf is Delete under the same condition.
func (s *Session) DeleteIf(ctx context.Context, key string, want Expect) error {
	_, err := s.putIf(ctx, key, nil, want)
	return err
}

func (s *Session) putIf(ctx context.Context, key string, value []byte, want Expect) (id kv.ID, err error) {
	unlock, err := s.nodes.open.Locks.Lock(ctx, key)
	if err != nil {
		return id, err
	}
	defer unlock()
	defer s.noteKey(key)()
	return s.tx.SetIf(ctx, key, value, want)
}
