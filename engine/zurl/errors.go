package zurl

import (
	"errors"
	"fmt"
)

var (
	// ErrURL is matched by every error of this package.
	ErrURL = errors.New("zurl: malformed URL")

	// ErrAboveRoot means that ".." leads above the root of a store, or "..:"
	// above the first adapter.
	ErrAboveRoot = errors.New("it leads above the root")

	// ErrKind means that an adapter stands where it cannot: it needs a file
	// and the URL before it is a directory, or the like.
	ErrKind = errors.New("wrong kind of resource")
)

// Error is what all functions return. It is [ErrURL].
type Error struct {
	// URL is the whole string that was parsed.
	URL string
	// Part is the sub-URL that is wrong, as it was written.
	Part string
	// Err says what is wrong with it.
	Err error
}

// Error implements error.
func (e *Error) Error() string {
	if e.Part == "" || e.Part == e.URL {
		return fmt.Sprintf("URL %s: %v", quote(e.URL), e.Err)
	}
	return fmt.Sprintf("URL %s: %s: %v", quote(e.URL), quote(e.Part), e.Err)
}

// Unwrap returns what is wrong.
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
