package refs

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/redact"
	"github.com/zarrdb/zarrdb/refs/parquet"
)

var (
	// ErrInvalid means that a reference set violates its format. Errors about
	// one key are a [KeyError] too.
	ErrInvalid = errors.New("refs: invalid reference set")

	// ErrForbidden means that the [Rules] do not allow a URL.
	ErrForbidden = errors.New("refs: URL is not permitted")

	// ErrLimit means that reading would exceed the limit of an option.
	ErrLimit = errors.New("refs: limit exceeded")

	// ErrUnreachable means that the file of a reference, or the referenced part,
	// does not exist. It never matches kv.ErrNotFound: the key has a value,
	// which cannot be read.
	ErrUnreachable = errors.New("refs: referenced bytes do not exist")
)

// MissingError is the [ErrUnreachable] of a file that does not exist. Place is where the [Rules]
// lead to.
type MissingError struct{ Place Place }

func (e *MissingError) Error() string {
	return ErrUnreachable.Error() + ": there is no file " + redact.URL(e.Place.URL())
}

// Is reports whether target is ErrUnreachable.
func (e *MissingError) Is(target error) bool { return target == ErrUnreachable }

// WholeFile is the Length of a [Reference] to everything in a file.
const WholeFile = -1

// Reference is the value of a key: inline bytes, or a part of a file.
type Reference struct {
	// URL names the file as in the set, with templates rendered; relative URLs
	// stay relative. It is empty if Data is the value.
	URL string

	// Offset and Length are in bytes. If the value is the whole file, Length is
	// WholeFile and Offset 0.
	Offset, Length int64

	// Data is the value itself. The caller may keep the slice but must not
	// change it.
	Data []byte

	// Form is the form of Data in JSON.
	Form Form

	// Optional means that a missing file is a key without a value, not an error.
	// Formats set it if they compute the names of files without knowing which
	// exist.
	Optional bool

	// Condition is a condition on the version of the file: kv.IfMatch or
	// kv.IfUnmodifiedSince, "" for nothing. A file that does not meet it is
	// kv.ErrChanged. Files elsewhere to which [Rules] map are not compared. Sets of
	// kerchunk have none.
	Condition string
}

// Form is the form of an inline value in a JSON set.
type Form uint8

const (
	// FormAuto leaves the choice to the writer: text if the value reads back
	// from it, else base64.
	FormAuto Form = iota
	// FormText is a string. Data that is no UTF-8 is base64 nevertheless.
	FormText
	// FormBase64 is a string that begins with "base64:".
	FormBase64
)

// Inline reports whether the value is Data.
func (r *Reference) Inline() bool { return r.URL == "" }

// Whole reports whether the value is a whole file.
func (r *Reference) Whole() bool { return r.Length < 0 }

// Entry is a key with its reference.
type Entry struct {
	// Key is valid ([kv.ValidKey]) and has no segment "." or "..".
	Key string
	Reference
}

// KeyError is an error about one key of a set. It matches ErrInvalid if the set
// is invalid, not if reading failed.
type KeyError struct {
	Key string
	Err error
}

func (e *KeyError) Error() string {
	return fmt.Sprintf("refs: key %s: %s", quote(e.Key), strings.TrimPrefix(e.Err.Error(), "refs: "))
}

// Unwrap returns Err.
func (e *KeyError) Unwrap() error { return e.Err }

func keyError(key string, err error) error {
	if err == nil {
		return nil
	}
	return &KeyError{key, err}
}

// invalidError is a violation of the format.
type invalidError struct {
	text string
	err  error // the reason, perhaps nil
}

func (e *invalidError) Error() string {
	switch {
	case e.err == nil:
		return e.text
	case e.text == "":
		return e.err.Error()
	}
	return e.text + ": " + e.err.Error()
}

func (e *invalidError) Unwrap() error        { return e.err }
func (e *invalidError) Is(target error) bool { return target == ErrInvalid }

// invalid makes an error that matches ErrInvalid.
func invalid(format string, args ...any) error {
	return &invalidError{text: fmt.Sprintf(format, args...)}
}

// invalidBecause makes an error that matches ErrInvalid and its reason.
func invalidBecause(err error, format string, args ...any) error {
	return &invalidError{fmt.Sprintf(format, args...), err}
}

func limit(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrLimit, fmt.Sprintf(format, args...))
}

// quote prints a key or name for an error, shortened if it is long.
func quote(s string) string {
	const most = 200
	if len(s) > most {
		return fmt.Sprintf("%q… (%d bytes)", s[:most], len(s))
	}
	return fmt.Sprintf("%q", s)
}

// quoteURL is quote for URLs, without their secrets.
func quoteURL(u string) string { return quote(redact.URL(u)) }

// maxKey is the longest key, in bytes.
const maxKey = 1<<16 - 1

// checkKey returns an error for a key that no store can hold or that leads out
// of it. Each reader of keys of a set calls it.
func checkKey(key string) error {
	// Most keys are ASCII without a dot at the beginning of a segment.
	plain := key != "" && key[0] != '/' && key[len(key)-1] != '/' && len(key) <= maxKey
	before := byte('/')
	for i := 0; i < len(key) && plain; i++ {
		x := key[i]
		plain = x-1 < 0x7f && (x != '.' || before != '/')
		before = x
	}
	if plain {
		return nil
	}
	if err := kv.ValidKey(key); err != nil {
		return &invalidError{"", err}
	}
	if len(key) > maxKey {
		return limit("a key of %d bytes", len(key))
	}
	for name := range strings.SplitSeq(key, "/") {
		if name == "." || name == ".." {
			return invalidBecause(kv.ErrInvalidKey, "segment %q leads out of the store", name)
		}
	}
	return nil
}

// Storable reports whether a store can hold a key, and the key leads nowhere else: see
// [Entry].
func Storable(key string) bool { return checkKey(key) == nil }

// hasNUL reports whether a key has a NUL. Reading skips such keys.
func hasNUL(key string) bool { return strings.IndexByte(key, 0) >= 0 }

// urlTable makes strings of URLs and reuses recent ones, because few URLs repeat
// often.
type urlTable struct {
	last  string
	slots []string // by hash
	arena parquet.Arena
}

const urlSlots = 1 << 10

func (t *urlTable) string(raw []byte) string {
	if string(raw) == t.last {
		return t.last
	}
	if t.slots == nil {
		t.slots = make([]string, urlSlots)
	}
	slot := &t.slots[hashURL(raw)%urlSlots]
	if *slot != string(raw) {
		*slot = t.arena.Text(raw)
	}
	t.last = *slot
	return t.last
}

// hashURL hashes the length and 24 bytes in which most URLs of a set differ.
func hashURL(b []byte) uint64 {
	const k = 0x9e3779b97f4a7c15
	n := len(b)
	h := uint64(n) * k
	if n < 16 {
		for _, x := range b {
			h = (h ^ uint64(x)) * k
		}
		return h >> 32
	}
	for _, at := range [3]int{n - 8, n - 16, (n - 8) / 2} {
		h = (h ^ binary.LittleEndian.Uint64(b[at:])) * k
		h ^= h >> 29
	}
	return h >> 32
}
