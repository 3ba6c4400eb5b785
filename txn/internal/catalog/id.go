package catalog

import (
	"encoding/hex"
	"fmt"

	"github.com/zarrdb/zarrdb/internal/fault"
	"github.com/zarrdb/zarrdb/kv/digest"
)

// ErrNoRef means that a branch, tag, commit or session does not exist.
var ErrNoRef = fault.New("txn: no such revision", fault.ErrNotFound)

// ErrConflict matches every error about changes that do not go together.
var ErrConflict = fault.New("txn: conflict", fault.ErrConflict)

// ErrClosed is returned by every operation on a closed database.
var ErrClosed = fault.New("txn: database is closed", fault.ErrClosed)

// ErrNotDatabase means that a directory holds no database.
var ErrNotDatabase = fault.New("txn: not a zarrdb database", fault.ErrNotFound)

// CommitID names a commit by the hash of its record, which holds the root, the
// parents and the message: equal ids mean equal history.
type CommitID digest.Sum

// String prints the id as 40 hexadecimal digits.
func (id CommitID) String() string { return digest.Sum(id).String() }

// Short prints the first 10 digits, for people.
func (id CommitID) Short() string { return id.String()[:10] }

// IsZero reports whether id names no commit.
func (id CommitID) IsZero() bool { return digest.Sum(id).IsZero() }

// MarshalText implements encoding.TextMarshaler.
func (id CommitID) MarshalText() ([]byte, error) { return []byte(id.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (id *CommitID) UnmarshalText(b []byte) error {
	if n, err := hex.Decode(id[:], b[:min(len(b), 2*len(id))]); err != nil || 2*n != len(b) || n != len(id) {
		return fmt.Errorf("%w: %q is not a commit id", ErrNoRef, b)
	}
	return nil
}

// SessionID names a session across processes.
type SessionID [8]byte

// String prints the id as 16 hexadecimal digits.
func (id SessionID) String() string { return hex.EncodeToString(id[:]) }

// ParseSessionID reads what String prints.
func ParseSessionID(s string) (SessionID, error) {
	b, err := hex.DecodeString(s)
	if err != nil || len(b) != len(SessionID{}) {
		return SessionID{}, fmt.Errorf("%w: %q is not a session id", ErrNoRef, s)
	}
	return SessionID(b), nil
}

// MarshalText implements encoding.TextMarshaler.
func (id SessionID) MarshalText() ([]byte, error) { return []byte(id.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (id *SessionID) UnmarshalText(b []byte) (err error) {
	*id, err = ParseSessionID(string(b))
	return err
}
