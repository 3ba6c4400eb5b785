// Package fault has the kinds of errors that all layers share, and makes messages for people of
// errors ([OneLine]). Each package keeps
// sentinels of its own, with its own text and meaning; a kind is their common
// property:
//
//	kv.ErrNotFound  zarr.ErrNotFound  txn.ErrNoRef      what happened
//	        └──────────────┼──────────────┘
//	                 fault.ErrNotFound                     engine.ErrNotFound
//
// A kind is matched with [errors.Is] only. Code below the engine compares with the
// sentinels: a version that has expired is no missing key.
package fault

import (
	"errors"
	"slices"
)

// The kinds.
var (
	ErrNotFound = errors.New("not found")
	ErrExists   = errors.New("exists already")
	ErrConflict = errors.New("conflict")
	ErrCorrupt  = errors.New("corrupt")
	ErrLocked   = errors.New("locked by another process")
	ErrReadOnly = errors.New("read-only")
	ErrClosed   = errors.New("closed")
)

// New returns a sentinel with a text that matches itself and the kinds.
func New(text string, kinds ...error) error { return &sentinel{text, kinds} }

type sentinel struct {
	text  string
	kinds []error
}

// Error implements error.
func (s *sentinel) Error() string { return s.text }

// Is reports whether target is one of the kinds.
func (s *sentinel) Is(target error) bool { return slices.Contains(s.kinds, target) }

// Matches reports whether a sentinel is target, or of that kind: for the Is method of
// error types that stand for the sentinel.
func Matches(sentinel, target error) bool { return errors.Is(sentinel, target) }
