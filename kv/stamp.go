package kv

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Stamp identifies the version of a value as a server or a file system reports it, for comparison
// with versions that other programs recorded. The same version may have several stamps over time;
// This module records [Validator].
type Stamp struct {
	// ETag is the entity tag (RFC 9110, 8.8.3), or "". A file of
	// this machine has the tag of the Rust crate object_store: inode, time
	// of the last change in microseconds and size, in hexadecimal digits.
	ETag string
	// Modified is the time of the last change, zero if it is not known.
	Modified time.Time
	// Changed is when a file of this machine last changed in any way, which programs cannot set as they can Modified; zero if it
	// is not known.
	Changed time.Time
}

// Stamped is an optional interface of a Value.
type Stamped interface {
	// Stamp returns the stamp of the located version.
	Stamp() Stamp
}

// StampOf returns the stamp of a value, zero if it has none.
func StampOf(v Value) Stamp {
	if s, ok := v.(Stamped); ok {
		return s.Stamp()
	}
	return Stamp{}
}

// Conditions on the version of a file are texts that stand where a text of [Validator]
// may stand, and begin like this. RFC 9110, 13.1 defines the conditions.
const (
	ifMatch           = "if-match:"
	ifUnmodifiedSince = "if-unmodified-since:"
)

// IfMatch returns the condition that a value has an entity tag. Quotes around it do not
// count.
func IfMatch(etag string) string { return ifMatch + strings.Trim(etag, `"`) }

// IfUnmodifiedSince returns the condition that a value was not changed after a time,
// which is cut to seconds.
func IfUnmodifiedSince(t time.Time) string {
	return ifUnmodifiedSince + strconv.FormatInt(t.Unix(), 10)
}

// ParseCondition takes a condition apart: etag of [IfMatch], or since of
// [IfUnmodifiedSince]. ok is false for every other text, such as one of [Validator].
func ParseCondition(text string) (etag string, since time.Time, ok bool) {
	if tag, found := strings.CutPrefix(text, ifMatch); found {
		return tag, time.Time{}, tag != ""
	}
	if s, found := strings.CutPrefix(text, ifUnmodifiedSince); found {
		seconds, err := strconv.ParseInt(s, 10, 64)
		return "", time.Unix(seconds, 0), err == nil
	}
	return "", time.Time{}, false
}

// Meets returns an error that is [ErrChanged] if a value does not meet a condition, or
// says too little of its version to tell. A text that is no condition is met.
func (s Stamp) Meets(condition string) error {
	etag, since, ok := ParseCondition(condition)
	now := strings.Trim(s.ETag, `"`)
	switch {
	case !ok:
		return nil
	case etag != "" && now == "", etag == "" && s.Modified.IsZero():
		return fmt.Errorf("%w: %q is wanted, and nothing tells the version", ErrChanged, condition)
	case etag != "" && now != etag:
		return fmt.Errorf("%w: the file with entity tag %q is wanted, and it has %q", ErrChanged, etag, now)
	case etag == "" && s.Modified.After(since):
		return fmt.Errorf("%w: the file of %s is wanted, and it was changed at %s", ErrChanged, utc(since), utc(s.Modified))
	}
	return nil
}

func utc(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }
