package local

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/serve"
	"github.com/zarrdb/zarrdb/serve/wire"
	"github.com/zarrdb/zarrdb/txn"
	"github.com/zarrdb/zarrdb/zarr"
)

var (
	// ErrVersion means that server and client do not speak the same protocol.
	ErrVersion = errors.New("local: the other process speaks another protocol")

	// ErrGone means that the connection has ended before the answer to a
	// request.
	ErrGone = errors.New("local: the connection to the process that has the database open has ended")

	// ErrUnknown is an [ErrGone] of a request that the other process may have begun,
	// or done.
	ErrUnknown = errors.New("local: the process that has the database open ended before it answered")

	// ErrLimit means that the connection has as much under way as it may.
	ErrLimit = errors.New("local: too much at a time")

	// ErrRequest means that a request makes no sense.
	ErrRequest = errors.New("local: bad request")
)

// codes are the errors that both sides know. Of several that match, the first one
// is sent: a narrower error stands before a wider one.
var codes = []struct {
	code string
	err  error
}{
	{"moved", engine.ErrMoved},
	{"failed", engine.ErrFailed},
	{"no_database", serve.ErrNoDatabase},
	{"not_found", kv.ErrNotFound},
	{"shallow", txn.ErrShallow},
	{"expired", txn.ErrExpired},
	{"no_ref", txn.ErrNoRef},
	{"ref_exists", txn.ErrRefExists},
	{"ref_name", txn.ErrRefName},
	{"diverged", txn.ErrDiverged},
	{"protected", txn.ErrProtected},
	{"conflict", txn.ErrConflict},
	{"other_root", txn.ErrOtherRoot},
	{"collecting", txn.ErrCollecting},
	{"peers_away", txn.ErrPeersAway},
	{"not_kept", txn.ErrNotKept},
	{"not_backup", txn.ErrNotBackup},
	{"not_database", txn.ErrNotDatabase},
	{"locked", engine.ErrLocked},
	{"session_closed", txn.ErrSessionClosed},
	{"session_busy", txn.ErrSessionBusy},
	{"lost", txn.ErrLost},
	{"forbidden", engine.ErrForbidden},
	{"unreachable", engine.ErrUnreachable},
	{"no_virtual", txn.ErrNoVirtual},
	{"closed", txn.ErrClosed},
	{"closed", os.ErrClosed},
	{"view_closed", kv.ErrClosed},
	{"denied", serve.ErrDenied},
	{"range", kv.ErrRange},
	{"too_large", kv.ErrTooLarge},
	{"value_changed", kv.ErrChanged},
	{"invalid_key", kv.ErrInvalidKey},
	{"read_only", kv.ErrReadOnly},
	{"corrupt", kv.ErrCorrupt},
	{"corrupt_data", zarr.ErrCorrupt},
	{"away", txn.ErrAway},
	{"no_node", zarr.ErrNotFound},
	{"node_exists", zarr.ErrExists},
	{"node_kind", zarr.ErrKind},
	{"metadata", zarr.ErrMetadata},
	{"path", zarr.ErrPath},
	{"selection", zarr.ErrSelection},
	{"type", zarr.ErrType},
	{"zarr_too_large", zarr.ErrTooLarge},
	{"unsupported", errors.ErrUnsupported},
	{"canceled", context.Canceled},
	{"deadline", context.DeadlineExceeded},
	{"version", ErrVersion},
	{"gone", ErrGone},
	{"limit", ErrLimit},
	{"invalid", ErrRequest},
	{"invalid", txn.ErrRequest},
	{"invalid", wire.ErrProtocol},
}

// maxUndone bounds the commits in a failure.
const maxUndone = 100

// failure describes an error for the other side.
func failure(err error) *wire.Failure {
	f := &wire.Failure{Code: "internal", Message: err.Error()}
	for _, c := range codes {
		if errors.Is(err, c.err) {
			f.Code = c.code
			break
		}
	}
	var conflict *txn.ConflictError
	var changed *engine.ChangedError
	var long *wire.TooLongError
	var damage *txn.DamageError
	var base *txn.BaseError
	switch {
	case errors.As(err, &long):
		f.Code = "too_large"
	case errors.As(err, &damage):
		f.Code = "corrupt"
		f.Damage, _ = json.Marshal(damage)
	case errors.As(err, &base):
		f.Code, f.Base = "base", base.Base.String()
		for _, c := range base.Undone[:min(len(base.Undone), maxUndone)] {
			f.Undone = append(f.Undone, *commitOut(c))
		}
	case errors.As(err, &conflict):
		f.Branch, f.Base, f.Head = conflict.Branch, conflict.Base.String(), conflict.Head.String()
		for _, c := range conflict.Conflicts {
			f.Conflicts = append(f.Conflicts, conflictOut(&c))
		}
	case errors.As(err, &changed):
		f.Code, f.Key = "changed", changed.Key
		if !changed.Want.Absent {
			f.Want = hex.EncodeToString(changed.Want.ID[:])
		}
		if changed.Have != (kv.ID{}) {
			f.Have = hex.EncodeToString(changed.Have[:])
		}
	}
	return f
}

// RemoteError is an error of the server. It is the error that it was there for
// errors.Is.
type RemoteError struct {
	Code    string
	Message string
	is      error
}

// Error implements error.
func (e *RemoteError) Error() string { return e.Message }

// Unwrap returns the error of the code, nil for an unknown code.
func (e *RemoteError) Unwrap() error { return e.is }

// remote converts a failure of the server to an error.
func remote(meta []byte) error {
	var f wire.Failure
	if err := json.Unmarshal(meta, &f); err != nil {
		return fmt.Errorf("%w: a failure that cannot be read: %v", wire.ErrProtocol, err)
	}
	switch {
	case f.Code == "not_found" && f.Message == kv.ErrNotFound.Error():
		return kv.ErrNotFound
	case f.Code == "base":
		e := &txn.BaseError{Base: commitID(f.Base)}
		for i := range f.Undone {
			e.Undone = append(e.Undone, commitIn(&f.Undone[i]))
		}
		return &RemoteError{Code: f.Code, Message: f.Message, is: e}
	case len(f.Damage) > 0:
		e := &txn.DamageError{}
		if err := json.Unmarshal(f.Damage, e); err != nil {
			return fmt.Errorf("%w: a failure that cannot be read: %v", wire.ErrProtocol, err)
		}
		return &RemoteError{Code: f.Code, Message: f.Message, is: e}
	case f.Code == "changed":
		return &engine.ChangedError{
			Key: f.Key, Want: engine.Expect{Absent: f.Want == "", ID: kv.ID(commitID(f.Want))}, Have: kv.ID(commitID(f.Have)),
		}
	case f.Code == "conflict" && f.Branch != "":
		e := &txn.ConflictError{Branch: f.Branch, Base: commitID(f.Base), Head: commitID(f.Head)}
		for _, c := range f.Conflicts {
			e.Conflicts = append(e.Conflicts, conflictIn(&c))
		}
		return e
	}
	return coded(f.Code, f.Message)
}

// coded is the error of a code.
func coded(code, message string) *RemoteError {
	e := &RemoteError{Code: code, Message: message}
	for _, c := range codes {
		if c.code == code {
			e.is = c.err
			break
		}
	}
	return e
}

func conflictOut(c *txn.Conflict) wire.Conflict {
	return wire.Conflict{
		Kind: c.Kind.String(), Path: c.Path, Also: c.Also, Chunk: c.Coords, Field: c.Field,
		Base: c.Base, Ours: c.Ours, Theirs: c.Theirs, Same: c.Same,
	}
}

func conflictIn(c *wire.Conflict) txn.Conflict {
	var kind txn.ConflictKind
	_ = kind.UnmarshalText([]byte(c.Kind))
	return txn.Conflict{
		Kind: kind, Path: c.Path, Also: c.Also, Coords: c.Chunk, Field: c.Field,
		Base: c.Base, Ours: c.Ours, Theirs: c.Theirs, Same: c.Same,
	}
}

// commitID parses the text of a commit id, or of the identity of a value; zero
// for other text.
func commitID(s string) (id txn.CommitID) {
	if b, err := hex.DecodeString(s); err == nil && len(b) == len(id) {
		copy(id[:], b)
	}
	return id
}

// SessionLostError means that a session was open in a process that has ended,
// and that some of its writes were not saved. It is [txn.ErrLost].
type SessionLostError struct {
	ID txn.SessionID
	// Saved is the time of the last savepoint, from which [txn.Remote.Resume] takes it
	// up again; zero if there was none.
	Saved time.Time
	// Committing means that a commit was sent, and that no process has answered since, or one of an
	// earlier version, whether it took place. Commit asks once more, and the log of the branch shows it.
	Committing bool
	Err        error
}

// Error implements error.
func (e *SessionLostError) Error() string {
	if e.Committing {
		return fmt.Sprintf("session %v: a commit was sent and not answered; commit again to know whether it took place, or see the log of the branch: %v", e.ID, e.Err)
	}
	if e.Saved.IsZero() {
		return fmt.Sprintf("session %v: the process that had it open has ended, and what was written is lost, because there was no savepoint; begin another session: %v", e.ID, e.Err)
	}
	return fmt.Sprintf("session %v: the process that had it open has ended, and what was written after the savepoint of %s is lost; open the session again to go on from there: %v",
		e.ID, e.Saved.Format(time.RFC3339), e.Err)
}

// Is reports that it is txn.ErrLost.
func (e *SessionLostError) Is(target error) bool { return target == txn.ErrLost }

// Unwrap returns why the connection ended.
func (e *SessionLostError) Unwrap() error { return e.Err }
