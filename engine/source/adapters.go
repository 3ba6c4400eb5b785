package source

import (
	"context"
	"slices"

	"github.com/zarrdb/zarrdb/engine/zurl"
)

// Root opens the first part of a pipeline.
type Root func(ctx context.Context, e *Env, part zurl.Part) (Place, error)

// Adapter is one step of a pipeline.
type Adapter struct {
	// Open follows the step from a place. The URL of the result is filled in
	// by the caller.
	Open func(ctx context.Context, e *Env, from Place, part zurl.Part) (Place, error)
	// Detect reports whether a place is in the format, given the evidence about
	// it; nil if the format is never detected.
	Detect func(Evidence) bool
	// Files are the files of a directory that Detect wants to look into.
	Files []string
}

// Adapters maps URL schemes to functions that open them. Registering is not
// safe for concurrent use and comes first.
type Adapters struct {
	roots map[string]Root
	steps map[string]Adapter
}

// NewAdapters returns a registry without schemes.
func NewAdapters() *Adapters {
	return &Adapters{roots: map[string]Root{}, steps: map[string]Adapter{}}
}

// DefaultAdapters returns a new registry with the built-in schemes.
func DefaultAdapters() *Adapters {
	a := NewAdapters()
	for scheme, r := range builtinRoots() {
		a.RegisterRoot(scheme, r)
	}
	for scheme, s := range builtinAdapters() {
		a.RegisterAdapter(scheme, s)
	}
	return a
}

// RegisterRoot adds a root scheme. A scheme that is taken is a bug and panics.
func (a *Adapters) RegisterRoot(scheme string, r Root) {
	if a.roots[scheme] != nil || r == nil {
		panic("source: root scheme " + scheme + " registered twice or without a function")
	}
	a.roots[scheme] = r
}

// ReplaceRoot replaces the function of a root scheme, such as one of [RemoteRoots].
func (a *Adapters) ReplaceRoot(scheme string, r Root) { a.roots[scheme] = r }

// RegisterAdapter adds an adapter. A scheme that is taken is a bug and panics.
func (a *Adapters) RegisterAdapter(scheme string, s Adapter) {
	if _, ok := a.steps[scheme]; ok || s.Open == nil {
		panic("source: adapter " + scheme + " registered twice or without a function")
	}
	a.steps[scheme] = s
}

// HasRoot reports whether a scheme begins a pipeline.
func (a *Adapters) HasRoot(scheme string) bool { return a.roots[scheme] != nil }

// Schemes lists the root schemes and the adapters, sorted.
func (a *Adapters) Schemes() (roots, adapters []string) {
	for s := range a.roots {
		roots = append(roots, s)
	}
	for s := range a.steps {
		adapters = append(adapters, s)
	}
	slices.Sort(roots)
	slices.Sort(adapters)
	return roots, adapters
}
