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

// errStalled ends a try that gave no byte for too long.
var errStalled = errors.New("remote: the server sends nothing")

// Error is a request that failed.
type Error struct {
	Method string
	// URL is the address without secrets, see [Redact].
	URL string
	// Status is that of the answer, 0 if there was none.
	Status int
	// Code is what an object store calls the failure, such as "AccessDenied".
	Code string
	// Err is the reason where that is not the status.
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
	if e.Err != nil {
		fmt.Fprintf(&b, ": %v", e.Err)
	}
	return b.String()
}

// Unwrap returns the reason.
func (e *Error) Unwrap() error { return e.Err }

// Redact prints a URL as [redact.URL] does, without its fragment, which is not
// sent.
func Redact(u *url.URL) string {
	c := *u
	c.User, c.Fragment, c.RawFragment = nil, "", ""
	return redact.URL(c.String())
}

// transient marks an error after which a request is worth another try.
type transient struct {
	err error
	// after is how long the server asks to wait, 0 if it does not say.
	after time.Duration
}

func (t *transient) Error() string { return t.err.Error() }
func (t *transient) Unwrap() error { return t.err }
