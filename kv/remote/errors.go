package remote

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/zarrdb/zarrdb/kv/redact"
)

// ErrAnswer means that a server's answer contradicts itself or the request.
var ErrAnswer = errors.New("remote: impossible answer")

// ErrRedirect means that a redirect was not followed.
var ErrRedirect = errors.New("remote: redirect refused")

// errStalled ends a try that received no byte for Options.Stall.
var errStalled = errors.New("remote: the server sends nothing")

// Error is a request that failed.
type Error struct {
	Method string
	// URL is the address without secrets, see [Redact].
	URL string
	// Status is that of the answer, 0 without an answer.
	Status int
	// Code is an object store's name of the error, such as "AccessDenied".
	Code string
	// Credentials says how credentials are given, if Status is 401.
	Credentials string
	// Err is the reason, nil if it is the status.
	Err error
}

// Error implements error.
func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s", e.Method, e.URL)
	if e.Status != 0 && (e.Err == nil || e.Status >= 300) {
		fmt.Fprintf(&b, ": %d %s", e.Status, http.StatusText(e.Status))
	}
	if e.Code != "" {
		fmt.Fprintf(&b, " (%s)", e.Code)
	}
	if e.Credentials != "" {
		fmt.Fprintf(&b, "; %s", e.Credentials)
	}
	if e.Err != nil {
		fmt.Fprintf(&b, ": %v", e.Err)
	}
	return b.String()
}

// Unwrap returns the reason.
func (e *Error) Unwrap() error { return e.Err }

// Denied reports whether the server answered that the credentials do not allow the request.
func (e *Error) Denied() bool {
	return e.Status == http.StatusUnauthorized || e.Status == http.StatusForbidden
}

// Redact prints a URL as [redact.URL] does, without its fragment, which is not
// sent.
func Redact(u *url.URL) string {
	c := *u
	c.User, c.Fragment, c.RawFragment = nil, "", ""
	return redact.URL(c.String())
}

// transient marks an error after which a request is tried again.
type transient struct {
	err error
	// after is the server's Retry-After, 0 without one.
	after time.Duration
}

func (t *transient) Error() string { return t.err.Error() }
func (t *transient) Unwrap() error { return t.err }
