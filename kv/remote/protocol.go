package remote

import (
	"context"
	"net/http"
)

// Version is what a server says of which bytes a key has, in the form of
// [kv.Validator]: "etag:…", "modified:…"; "" if it says nothing.
type Version string

// VersionOf reads the usual headers.
func VersionOf(h http.Header) Version {
	if tag := h.Get("ETag"); tag != "" {
		return Version("etag:" + tag)
	}
	if at := h.Get("Last-Modified"); at != "" {
		return Version("modified:" + at)
	}
	return ""
}

// Condition sets the header that has a server refuse to give another version,
// if there is one: an entity tag that is strong (RFC 9110, 8.8.3 and 13.1.1).
// Servers may ignore it, so answers are checked all the same.
func (v Version) Condition(h http.Header) {
	if len(v) > 6 && v[:6] == `etag:"` {
		h.Set("If-Match", string(v[5:]))
	}
}

// Info is what is known of a key without reading it.
type Info struct {
	Size    int64
	Version Version
}

// Protocol is how one kind of server is asked. Safe for concurrent use.
type Protocol interface {
	// Request makes a request for the value of key: method is GET, HEAD, PUT
	// or DELETE. pin, if not empty, is the version that is wanted. A key that
	// cannot be asked for is kv.ErrInvalidKey.
	Request(ctx context.Context, method, key string, pin Version) (*http.Request, error)

	// Version reads the headers of an answer.
	Version(h http.Header) Version

	// Missing reports whether an answer means that the key has no value.
	Missing(resp *http.Response) bool

	// Code returns what an answer calls its failure, or "". It may read from
	// the body, with a bound.
	Code(resp *http.Response) string
}

// Stater is an optional interface of a Protocol with a way of its own to find
// a key. The others are asked with HEAD.
type Stater interface {
	// Stat returns what is known of key, or kv.ErrNotFound.
	Stat(ctx context.Context, key string) (Info, error)
}
