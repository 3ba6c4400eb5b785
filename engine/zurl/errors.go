package zurl

import (
	"errors"
	"fmt"
	"strings"
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
		return fmt.Sprintf("URL %s: %v", quote(redact(e.URL)), e.Err)
	}
	return fmt.Sprintf("URL %s: %s: %v", quote(redact(e.URL)), quote(redact(e.Part)), e.Err)
}

// redact takes out of a URL that may be malformed what may give access: user
// information, and the query where there may be one.
func redact(s string) string {
	root, adapters, more := strings.Cut(s, "|")
	name, rest, ok := cutScheme(root)
	if host, isHost := strings.CutPrefix(rest, "//"); ok && isHost && name != "file" {
		end := strings.IndexAny(host+"/", "/?#")
		host, rest = host[:end], host[end:]
		if schemes[name].domain || !schemes[name].root {
			host = host[strings.LastIndexByte(host, '@')+1:]
		}
		if path, query, ok := strings.Cut(rest, "?"); ok && query != "" {
			rest = path + "?…"
		}
		root = name + "://" + host + rest
	}
	if more {
		return root + "|" + adapters
	}
	return root
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
