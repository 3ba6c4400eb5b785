package engine

import (
	"io/fs"

	"github.com/zarrdb/zarrdb/internal/fault"
	"github.com/zarrdb/zarrdb/txn"
)

// Errors of every layer are one of these where they are of the kind, however deep
// they were wrapped; errors.Is finds it. The packages below have narrower ones, such
// as zarr.ErrNotFound and txn.ErrNoRef.
var (
	// ErrNotFound means that there is no such node, key, branch, tag, commit,
	// session or database.
	ErrNotFound = fault.ErrNotFound
	// ErrExists means that the name, path or destination is taken.
	ErrExists = fault.ErrExists
	// ErrConflict means that another session changed the same; see
	// [ConflictError] and [ChangedError].
	ErrConflict = fault.ErrConflict
	// ErrCorrupt means that stored bytes are damaged or gone.
	ErrCorrupt = fault.ErrCorrupt
	// ErrLocked means that another process has the database open. The error is a
	// *[LockedError], which names it.
	ErrLocked = fault.ErrLocked
	// ErrMoved means that the directory of the database was moved, removed or replaced
	// while it was open: see [txn.ErrMoved].
	ErrMoved = txn.ErrMoved
	// ErrFailed means that a write failed, and that nothing is written until the database is opened
	// again: see [txn.ErrFailed].
	ErrFailed = txn.ErrFailed
	// ErrAway means that something is in the remote that a lazy clone was made of, and could not be fetched: see [txn.AwayError].
	ErrAway = txn.ErrAway
	// ErrReadOnly means a write to a database or view opened for reading.
	ErrReadOnly = fault.ErrReadOnly
	// ErrClosed means the use of a database after Close, or of a session after
	// Commit or Abort.
	ErrClosed = fault.ErrClosed
)

// errThere means that there is something at a destination.
var errThere = fault.New("file already exists", fs.ErrExist, fault.ErrExists)
