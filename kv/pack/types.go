package pack

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/zarrdb/zarrdb/internal/fault"
	"github.com/zarrdb/zarrdb/kv"
)

// ID names a pack for ever: 8 random bytes of the database's incarnation, and
// a counter in big-endian, so that packs of one incarnation sort by age.
type ID [16]byte

// newID puts an ID together.
func newID(incarnation [8]byte, counter uint64) (id ID) {
	copy(id[:], incarnation[:])
	binary.BigEndian.PutUint64(id[8:], counter)
	return id
}

// Incarnation is the first half of the ID.
func (id ID) Incarnation() [8]byte { return [8]byte(id[:8]) }

// Next is the ID of the pack that was begun after this one, if there is one.
func (id ID) Next() ID { return newID(id.Incarnation(), id.Counter()+1) }

// Counter is the second half of the ID.
func (id ID) Counter() uint64 { return binary.BigEndian.Uint64(id[8:]) }

// String is the name of the pack's file without extension, 32 hexadecimal
// digits.
func (id ID) String() string { return hex.EncodeToString(id[:]) }

// MarshalText implements [encoding.TextMarshaler].
func (id ID) MarshalText() ([]byte, error) { return []byte(id.String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (id *ID) UnmarshalText(b []byte) error {
	to, ok := ParseID(string(b))
	if !ok {
		return fmt.Errorf("pack: %q does not name a pack", b)
	}
	*id = to
	return nil
}

// parseName splits the name of a file of the store into the ID of its pack and the
// rest. ok is false if it does not begin with an ID.
func parseName(name string) (id ID, suffix string, ok bool) {
	stem, _, _ := strings.Cut(name, ".")
	id, ok = ParseID(stem)
	return id, name[len(stem):], ok
}

// ParseID is the inverse of [ID.String]. Upper case is no ID.
func ParseID(s string) (id ID, ok bool) {
	b, err := hex.DecodeString(s)
	if err != nil || len(b) != len(id) {
		return id, false
	}
	id = ID(b)
	return id, id.String() == s
}

// Address is the position of a payload. Offset is the offset of its first byte.
// It is logical: see [Store.Locate] for the place in a file.
type Address struct {
	Pack           ID
	Offset, Length uint64
}

// Owner identifies the key of a payload in its record. It serves salvage and
// checks; reading ignores it.
type Owner struct {
	// Array is the identity of the array.
	Array [16]byte
	// Key is the coordinates or the path of a document, at most MaxKeyBytes.
	Key []byte
}

// Info is the state of a pack.
type Info struct {
	ID ID
	// End is the durable end: everything before it survives a crash. Zero for
	// a pack that the index does not know.
	End uint64
	// Size is the end of the pack, durable or not. The index need not keep it.
	Size uint64
	// Sealed packs do not grow any more.
	Sealed bool
	// Missing means that the file does not exist. The index need not keep it.
	Missing bool
	// Failed means that bytes behind End are lost. The index need not keep it.
	Failed bool
}

var (
	// ErrFailed means that a write or sync failed. Payloads behind the durable
	// end of the failed pack are lost. See [Store.Resume].
	ErrFailed = errors.New("pack: failed")

	// ErrFull means that the disk is full. The payload was not stored; earlier
	// ones are sound, and Append and Sync may be tried again.
	ErrFull = errors.New("pack: disk full")

	// errFormat means that a pack was written by a newer version.
	errFormat = errors.New("pack: a newer zarrdb wrote it")

	// errTooLarge means a key above maxKeyBytes, or a payload above
	// MaxPayloadBytes or the address space.
	errTooLarge = errors.New("pack: too large")

	// errInUse is returned by Remove for a pack that may still grow.
	errInUse = errors.New("pack: in use")
)

// FailedError is the failure of one pack. It is [ErrFailed].
type FailedError struct {
	Pack ID
	// End is the durable end of the pack: payloads that reach beyond it are
	// lost.
	End uint64
	Op  string
	Err error
}

func (e *FailedError) Error() string {
	return fmt.Sprintf("%v: %s %v: %v (durable to %d)", ErrFailed, e.Op, e.Pack, e.Err, e.End)
}

// Is reports that a FailedError is [ErrFailed].
func (e *FailedError) Is(target error) bool { return target == ErrFailed }

// Unwrap returns the error of the file system.
func (e *FailedError) Unwrap() error { return e.Err }

// CorruptError means that a stored payload has changed or cannot be read. It is
// kv.ErrCorrupt.
type CorruptError struct {
	Pack ID
	// Offset and Length say where in the file.
	Offset, Length uint64
	Reason         string
}

func (e *CorruptError) Error() string {
	return fmt.Sprintf("%v: pack %v at %d, %d bytes: %s", kv.ErrCorrupt, e.Pack, e.Offset, e.Length, e.Reason)
}

// Unreadable reports whether err says that nothing of a pack can be read, because the header
// of its file or its extent table is damaged.
func Unreadable(err error) bool {
	var e *CorruptError
	return errors.As(err, &e) && e.Offset == 0 && e.Length == fileHeaderSize
}

// Is reports that a CorruptError is kv.ErrCorrupt.
func (e *CorruptError) Is(target error) bool { return fault.Matches(kv.ErrCorrupt, target) }
