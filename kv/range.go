package kv

import (
	"fmt"
	"math"
)

// Range selects bytes of a value. The zero Range is the whole value.
type Range struct {
	kind   rangeKind
	off, n int64
}

type rangeKind uint8

const (
	rangeAll rangeKind = iota
	rangeFrom
	rangeSpan
	rangeLast
	rangeAtMost
)

// All selects the whole value.
func All() Range { return Range{} }

// AtMost selects the whole value, which must not be longer than n bytes: a
// longer one is [ErrTooLarge], and none of it is read.
func AtMost(n int64) Range { return Range{kind: rangeAtMost, n: n} }

// From selects everything from byte off on.
func From(off int64) Range { return Range{kind: rangeFrom, off: off} }

// Span selects n bytes from byte off on; n may be zero.
func Span(off, n int64) Range { return Range{kind: rangeSpan, off: off, n: n} }

// Last selects the last n bytes.
func Last(n int64) Range { return Range{kind: rangeLast, n: n} }

// IsAll reports whether the range is the whole value for every size.
func (r Range) IsAll() bool { return r.kind == rangeAll || r.kind == rangeFrom && r.off == 0 }

// Bounds returns the range before it is resolved, for views that pass it to a
// server: n bytes from byte off on, where n is -1 for "to the end" and off is -1
// for "the last n bytes". If valid is false, Resolve fails for every size. Limit
// returns the bound of AtMost.
func (r Range) Bounds() (off, n int64, valid bool) {
	switch r.kind {
	case rangeFrom:
		return r.off, -1, r.off >= 0
	case rangeSpan:
		return r.off, r.n, r.off >= 0 && r.n >= 0 && r.off <= math.MaxInt64-r.n
	case rangeLast:
		return -1, r.n, r.n >= 0
	}
	return 0, -1, true
}

// Limit returns the n of AtMost(n); ok is false for other ranges.
func (r Range) Limit() (n int64, ok bool) {
	if r.kind != rangeAtMost {
		return 0, false
	}
	return r.n, true
}

// Resolve returns the offset and length of the range in a value of size bytes.
// Errors are ErrRange if it does not lie inside, and ErrTooLarge.
func (r Range) Resolve(size int64) (off, n int64, err error) {
	switch r.kind {
	case rangeAll:
		return 0, size, nil
	case rangeFrom:
		if r.off < 0 || r.off > size {
			break
		}
		return r.off, size - r.off, nil
	case rangeSpan:
		if r.off < 0 || r.n < 0 || r.off > size || r.n > size-r.off {
			break
		}
		return r.off, r.n, nil
	case rangeLast:
		if r.n < 0 || r.n > size {
			break
		}
		return size - r.n, r.n, nil
	case rangeAtMost:
		if size > r.n {
			return 0, 0, fmt.Errorf("%w: %d bytes, over the limit of %d", ErrTooLarge, size, r.n)
		}
		return 0, size, nil
	}
	return 0, 0, fmt.Errorf("%w: %v of %d bytes", ErrRange, r, size)
}

// String prints the range as [from, to).
func (r Range) String() string {
	switch r.kind {
	case rangeFrom:
		return fmt.Sprintf("[%d, end)", r.off)
	case rangeSpan:
		return fmt.Sprintf("[%d, +%d)", r.off, r.n)
	case rangeLast:
		return fmt.Sprintf("[end-%d, end)", r.n)
	case rangeAtMost:
		return fmt.Sprintf("[0, end), at most %d", r.n)
	}
	return "[0, end)"
}
