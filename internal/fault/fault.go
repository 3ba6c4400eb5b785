// Package fault has the kinds of errors that all layers share. Each package keeps
// sentinels of its own, with its own text and meaning; a kind is what they have in
// common:
//
//	kv.ErrNotFound  zarr.ErrNotFound  txn.ErrNoRef      what happened
//	        └──────────────┼──────────────┘
//	                 fault.NotFound                     engine.ErrNotFound
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
	NotFound = errors.New("not found")
	Exists   = errors.New("exists already")
	Conflict = errors.New("conflict")
	Corrupt  = errors.New("corrupt")
	Locked   = errors.New("locked by another process")
	ReadOnly = errors.New("read-only")
	Closed   = errors.New("closed")
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
