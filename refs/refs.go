package refs

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/redact"
)

var (
	// ErrInvalid means that something in a reference set contradicts its
	// format. Errors about one key are a [KeyError] too.
	ErrInvalid = errors.New("refs: invalid reference set")

	// ErrForbidden means that a URL leads where the [Rules] do not allow.
	ErrForbidden = errors.New("refs: URL is not permitted")

	// ErrLimit means that reading would take more than an option allows.
	ErrLimit = errors.New("refs: limit exceeded")

	// ErrUnreachable means that the file which a reference names, or the part
	// of it, does not exist. It never matches kv.ErrNotFound: the key has a
	// value, which cannot be had.
	ErrUnreachable = errors.New("refs: referenced bytes do not exist")

	// errNoFile is ErrUnreachable where the whole file is missing.
	errNoFile = fmt.Errorf("%w: there is no file", ErrUnreachable)
)

// WholeFile is the Length of a [Reference] to everything in a file.
const WholeFile = -1

// Reference is the value of a key: bytes of its own, or a part of a file.
type Reference struct {
	// URL names the file as the set has it, templates rendered and relative
	// URLs as they are. It is empty where Data is the value.
	URL string

	// Offset and Length are in bytes. Length is WholeFile, with Offset 0,
	// where the value is the whole file.
	Offset, Length int64

	// Data is the value itself. The slice is the receiver's to keep, and must
	// not be changed.
	Data []byte

	// Form is how JSON spells Data.
	Form Form

	// Optional says that the key has no value where the file does not exist. It is
	// set by formats that know the names of their files, and not which there are.
	Optional bool
}

// Form is how a JSON set spells a value that it holds.
type Form uint8

const (
	// FormAuto leaves the choice to the writer: text where it reads as such,
	// else base64.
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

// KeyError is an error about one key of a set. It matches ErrInvalid if Err
// is about the set and not about reading.
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

// invalidError is what is wrong in a set.
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

// quote prints a key or name for an error, cut where it is long.
func quote(s string) string {
	const most = 200
	if len(s) > most {
		return fmt.Sprintf("%q… (%d bytes)", s[:most], len(s))
	}
	return fmt.Sprintf("%q", s)
}

// quoteURL is quote for URLs, without what they may have of secrets.
func quoteURL(u string) string { return quote(redact.URL(u)) }

// maxKey is the longest key, in bytes.
const maxKey = 1<<16 - 1

// checkKey returns an error for a key that no store can have or that leads out
// of it. Each caller that takes keys from a set calls it.
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
			return invalidBecause(kv.ErrInvalidKey, "segment %q leads elsewhere", name)
		}
	}
	return nil
}

// hasNUL reports whether a key is one that reading leaves out.
func hasNUL(key string) bool { return strings.IndexByte(key, 0) >= 0 }

// arena makes strings out of bytes with one allocation for many. A string that
// is kept keeps some 16 KiB of neighbours.
type arena struct{ b strings.Builder }

func (a *arena) string(p []byte) string {
	if a.b.Cap()-a.b.Len() < len(p) {
		a.b = strings.Builder{}
		a.b.Grow(max(1<<14, len(p)))
	}
	from := a.b.Len()
	a.b.Write(p)
	return a.b.String()[from:]
}

// urlTable makes strings of URLs and finds those again that it made lately:
// the same few come again and again.
type urlTable struct {
	last  string
	slots []string // by hash
	arena arena
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
		*slot = t.arena.string(raw)
	}
	t.last = *slot
	return t.last
}

// hashURL looks at the length and at 24 bytes, of which most URLs of a set
// differ in some.
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
