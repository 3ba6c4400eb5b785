package txn

import (
	"context"
	"errors"
	"fmt"

	"github.com/zarrdb/zarrdb/internal/fault"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/tree"
)

// Expect is the condition of a write on the current value of its key. The zero
// Expect allows any value.
type Expect struct {
	// Absent expects that the key has no value.
	Absent bool
	// ID, if not zero, expects the value with this identity; see [kv.Value].
	ID kv.ID
}

// ChangedError means that the value of a key is not the expected one. It is
// [ErrConflict].
type ChangedError struct {
	Key string
	// Want was expected; Have is there, and is zero if the key has no value.
	Want Expect
	Have kv.ID
}

// Error implements error.
func (e *ChangedError) Error() string {
	switch {
	case e.Want.Absent:
		return fmt.Sprintf("set %s: the key has a value, and was to have none", e.Key)
	case e.Have == kv.ID{}:
		return fmt.Sprintf("set %s: the value that was read has been deleted since; read again", e.Key)
	}
	return fmt.Sprintf("set %s: another value was written since this one was read; read again", e.Key)
}

// Is reports that it is a conflict.
func (e *ChangedError) Is(target error) bool { return fault.Matches(ErrConflict, target) }

// SetIf sets a key if it has the expected value, and returns the identity of the new value. A
// nil value deletes the key. The error is a *[ChangedError] if the key has another value.
// Between the comparison and the write of a session of this process, others may write.
func (s *Session) SetIf(ctx context.Context, key string, value []byte, want Expect) (kv.ID, error) {
	return s.home.setIf(ctx, key, value, want)
}

func (s own) setIf(ctx context.Context, key string, value []byte, want Expect) (id kv.ID, err error) {
	if err := s.expect(ctx, key, want); err != nil {
		return id, err
	}
	if value == nil {
		return id, s.Delete(ctx, key)
	}
	if err := s.Set(ctx, key, value); err != nil {
		return id, err
	}
	v, err := s.lookup(ctx, key)
	if err != nil {
		return id, err
	}
	return kv.ID(v.ContentSum()), nil
}

// expect returns a *[ChangedError] if a key has another value than the expected one.
func (s *Session) expect(ctx context.Context, key string, want Expect) error {
	if want == (Expect{}) {
		return nil
	}
	have := kv.ID{}
	v, err := s.home.lookup(ctx, key)
	switch {
	case errors.Is(err, kv.ErrNotFound):
		if want.Absent {
			return nil
		}
	case err != nil:
		return err
	default:
		have = kv.ID(v.ContentSum())
		if !want.Absent && have == want.ID {
			return nil
		}
		if v.Kind == tree.KindVirtual && !want.Absent { // its bytes have another identity
			at, err := s.Locate(ctx, key)
			if err == nil && at.ID() == want.ID {
				return nil
			}
		}
	}
	return &ChangedError{Key: key, Want: want, Have: have}
}
