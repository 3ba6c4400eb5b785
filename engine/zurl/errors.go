package zurl

import (
	"errors"
	"fmt"
	"strings"

	"github.com/zarrdb/zarrdb/kv/redact"
)

var (
	// ErrURL is matched by every error of this package.
	ErrURL = errors.New("zurl: malformed URL")

	// errAboveRoot means that ".." leads above the root of a store, or "..:"
	// above the first adapter.
	errAboveRoot = errors.New("it leads above the root")

	// errKind means that an adapter is at a wrong position: it needs a file and
	// the URL before it is a directory, or the like.
	errKind = errors.New("wrong kind of resource")
)

// Error is the error of all functions. It is [ErrURL].
type Error struct {
	// URL is the whole string that was parsed.
	URL string
	// Part is the sub-URL that is wrong, as it was written.
	Part string
	// Err is the reason.
	Err error
}

// Error implements error.
func (e *Error) Error() string {
	if e.Part == "" || e.Part == e.URL {
		return fmt.Sprintf("URL %s: %v", quote(Redact(e.URL)), e.Err)
	}
	return fmt.Sprintf("URL %s: %s: %v", quote(Redact(e.URL)), quote(Redact(e.Part)), e.Err)
}

// Redact prints a pipeline, which may be malformed, for messages and records:
// its root as [redact.URL] does. A bare path is not changed.
func Redact(s string) string {
	root, adapters, more := strings.Cut(s, "|")
	if strings.Contains(root, "://") {
		root = redact.URL(root)
	}
	if more {
		return root + "|" + adapters
	}
	return root
}

// Unwrap returns Err.
func (e *Error) Unwrap() error { return e.Err }

// Is makes errors.Is(err, ErrURL) true.
func (e *Error) Is(target error) bool { return target == ErrURL }

// quote prints a string for a message, cut where it is absurdly long.
func quote(s string) string {
	const most = 300
	if len(s) > most {
		return fmt.Sprintf("%q…", s[:most])
	}
	return fmt.Sprintf("%q", s)
}
