package index

import (
	"errors"
	"fmt"
	"strings"

	"github.com/cockroachdb/pebble/v2"

	"github.com/zarrdb/zarrdb/internal/fault"
	"github.com/zarrdb/zarrdb/kv"
)

var (
	// ErrNotFound is returned, unwrapped, for a key without a value.
	ErrNotFound = errors.New("index: not found")

	// ErrNotExist means that there is no index in the directory and
	// Options.Create is not set.
	ErrNotExist = errors.New("index: does not exist")

	// ErrLocked is matched by every [LockedError].
	ErrLocked = fault.New("index: locked", fault.ErrLocked)

	// ErrFormat is matched by every [FormatError].
	ErrFormat = errors.New("index: unknown format")

	// ErrFailed means that a write or sync of the log or of the list of tables
	// failed earlier. After the next Open, acknowledged batches are there;
	// other batches may or may not be.
	ErrFailed = errors.New("index: failed, open again")

	// ErrFull means that a write was refused because the disk is nearly full.
	// Nothing was written, the index is sound, and batches that only delete
	// are still accepted as long as possible.
	ErrFull = errors.New("index: disk full")

	// ErrNoLocks means that the file system has no locks, so that the index can be opened for reading only.
	ErrNoLocks = errors.New("the file system has no locks")

	// errTooLarge means that a batch is larger than maxBatchBytes or a key
	// larger than maxKeyBytes.
	errTooLarge = errors.New("index: too large")
)

// FormatError means that the directory was written by a newer version. It is
// ErrFormat.
type FormatError struct {
	Dir string
	// Have is the format number found, Known the newest that this version
	// reads.
	Have, Known uint64
}

func (e *FormatError) Error() string {
	where := "the database"
	if e.Dir != "" {
		where = e.Dir
	}
	return fmt.Sprintf("index: a newer zarrdb wrote %s, in format %d, and this one knows formats up to %d; use a version whose \"zarrdb version\" says format %[2]d", where, e.Have, e.Known)
}

// Is reports that a FormatError is ErrFormat.
func (e *FormatError) Is(target error) bool { return target == ErrFormat }

// failure is the error of the first failed write.
type failure struct {
	op, path string
	err      error
}

func (f *failure) Error() string {
	if moved, ok := f.err.(*MovedError); ok {
		return moved.Error()
	}
	if f.path == "" {
		return fmt.Sprintf("%v: %s: %v", ErrFailed, f.op, f.err)
	}
	return fmt.Sprintf("%v: %s %s: %v", ErrFailed, f.op, f.path, f.err)
}

func (f *failure) Is(target error) bool { return target == ErrFailed }
func (f *failure) Unwrap() error        { return f.err }

// readError gives errors of Pebble's read paths the marks of this project.
func readError(op string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, pebble.ErrNotFound):
		return ErrNotFound
	case isDamage(err):
		return fmt.Errorf("index: %s: %w: %w", op, kv.ErrCorrupt, damage{err})
	}
	return fmt.Errorf("index: %s: %w", op, err)
}

// isDamage reports whether an error of Pebble means that a file is damaged.
// Pebble does not mark all of them as corruption: not a table of another
// length, nor another comparer or merger in the list of options.
func isDamage(err error) bool {
	text := err.Error()
	return pebble.IsCorruptionError(err) || strings.Contains(text, "object size mismatch") || strings.Contains(text, " name from file ")
}

// damage is an error of Pebble without the part that carries details for
// programs and says nothing.
type damage struct{ error }

func (d damage) Error() string {
	return strings.ReplaceAll(d.error.Error(), "\n<corruption detail carrier>", "")
}

func (d damage) Unwrap() error { return d.error }
