package txn

import (
	"context"
	"errors"
	"fmt"

	"github.com/zarrdb/zarrdb/internal/fault"
	"github.com/zarrdb/zarrdb/kv"
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

// expect returns a *[ChangedError] if a key has another value than the expected one.
func (s *Session) expect(ctx context.Context, key string, want Expect) error {
	if want == (Expect{}) {
		return nil
	}
	have := kv.ID{}
	v, err := s.Locate(ctx, key)
	switch {
	case errors.Is(err, kv.ErrNotFound):
		if want.Absent {
			return nil
		}
	case err != nil:
		return err
	default:
		have = v.ID()
		if !want.Absent && have == want.ID {
			return nil
		}
	}
	return &ChangedError{Key: key, Want: want, Have: have}
}
