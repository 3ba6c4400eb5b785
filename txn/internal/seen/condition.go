package seen

import (
	"fmt"

	"github.com/zarrdb/zarrdb/internal/fault"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/txn/internal/catalog"
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

// Is reports that a changed value is a conflict.
func (e *ChangedError) Is(target error) bool { return fault.Matches(catalog.ErrConflict, target) }
