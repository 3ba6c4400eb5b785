package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/zarrdb/zarrdb/engine/internal/extent"
	"github.com/zarrdb/zarrdb/engine/zurl"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/zarr"
)

// Kind is what kind of resource a URL names (ZEP 8, "Resource kinds").
type Kind uint8

// The kinds. Either is a path of which only the store can tell.
const (
	Either Kind = iota
	File
	Directory
	Dataset
)

// Place is how far a URL pipeline has been followed.
type Place struct {
	// URL is the pipeline up to here.
	URL zurl.URL
	// View is the store that the place is in.
	View kv.Reader
	// Path is the key of a file, or the path of a directory or node, in View,
	// without slashes around it.
	Path string
	Kind Kind
	// Version is the only format that a Dataset may be in, 0 for any.
	Version zarr.Version
	// OSPath is where the place is on this machine, "" if it is not a plain
	// file or directory.
	OSPath string
	// database says that View is a version of a database, which holds nodes of
	// any format.
	database bool
	// db is that database, where it was opened for the source.
	db *DB
	// Value is what a Dataset is made of if that is one piece of text, so that
	// it can be read as a file too; else nil.
	Value kv.Value
	// store is the directory in another view that the View of a Dataset shows;
	// else nil.
	store *Place
	// origin is the file in a store whose content, decompressed or a range of
	// it, this place is; nil if it is a file itself.
	origin *Place
	// set is the reference set that View shows.
	set *refSet
	// lies is where the bytes are that the place is made of: what the root of the
	// URL names.
	lies extent.Extent
	// through is the reference set on the way to the place, whose values lie
	// elsewhere; else nil.
	through *refSet
	// located is a file that detection has found on a server, and read the
	// beginning of; else nil.
	located kv.Value
	// looked says that detection knows the documents of a directory, and copyAlone
	// that .zmetadata is its only one.
	looked, copyAlone bool
}

// file locates the bytes of a place that is a file.
func (p Place) file(ctx context.Context) (kv.Value, error) {
	if p.Value != nil {
		return p.Value, nil
	}
	if p.located != nil {
		return p.located, nil
	}
	if p.Kind == Directory || p.Kind == Dataset {
		return nil, fmt.Errorf("%w: it is not a file", ErrFormat)
	}
	return kv.Locate(ctx, p.View, p.Path)
}

// begun is file with its first n bytes at hand, if they come in the request that finds
// the file.
func (p Place) begun(ctx context.Context, n int64) (kv.Value, error) {
	if n == 0 || p.Value != nil || p.located != nil || p.Kind == Directory || p.Kind == Dataset {
		return p.file(ctx)
	}
	v, head, err := kv.LocateRange(ctx, p.View, p.Path, kv.Span(0, n), 0)
	if err == nil && head != nil {
		v = kv.Held(v, 0, head)
	}
	return v, err
}

// dir returns the view of what is below a place that is a directory.
func (p Place) dir() kv.Reader {
	if p.Path == "" {
		return p.View
	}
	return kv.Sub(p.View, p.Path+"/")
}

// Root opens the first part of a pipeline.
type Root func(ctx context.Context, e *Env, part zurl.Part) (Place, error)

// Adapter is one step of a pipeline.
type Adapter struct {
	// Open follows the step from a place. The URL of the result is filled in
	// by the caller.
	Open func(ctx context.Context, e *Env, from Place, part zurl.Part) (Place, error)
	// Detect reports whether a place is in the format, given what was looked
	// up of it; nil if the format is never detected.
	Detect func(Evidence) bool
	// Files are the files of a directory that Detect wants to look into.
	Files []string
}

// Adapters maps URL schemes to what opens them. Registering is not safe for
// concurrent use and comes first.
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
		panic("engine: root scheme " + scheme + " registered twice or without a function")
	}
	a.roots[scheme] = r
}

// RegisterAdapter adds an adapter. A scheme that is taken is a bug and panics.
func (a *Adapters) RegisterAdapter(scheme string, s Adapter) {
	if _, ok := a.steps[scheme]; ok || s.Open == nil {
		panic("engine: adapter " + scheme + " registered twice or without a function")
	}
	a.steps[scheme] = s
}

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

// Env is what opening one URL shares: the registry, and what must be closed.
type Env struct {
	adapters *Adapters
	follow   Follow
	recall   func() (Follow, error)                               // what was allowed earlier; or nil
	openDB   func(context.Context, string, *Options) (*DB, error) // see SourceOptions.Open
	warn     func(text string)                                    // see SourceOptions.Warn
	// path says that a path was opened, not a URL. Of a path that holds metadata of
	// v2 and v3, the latter is read, with a warning; URLs must say which.
	path bool

	opening sync.Mutex
	roots   map[string]kv.Reader // what references lead below, by URL

	mu      sync.Mutex
	closers []func() error
	told    []string // keys that skipped has warned of
}

// onClose has a function called when the source is closed, last one first.
func (e *Env) onClose(fn func() error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.closers = append(e.closers, fn)
}

func (e *Env) close() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	var errs []error
	for _, fn := range slices.Backward(e.closers) {
		errs = append(errs, fn())
	}
	e.closers = nil
	return errors.Join(errs...)
}

// open follows a whole pipeline.
func (e *Env) open(ctx context.Context, u zurl.URL) (Place, error) {
	root := e.adapters.roots[u.Root().Scheme]
	if root == nil {
		return Place{}, fmt.Errorf("%s: %w: unknown scheme %q", u.Redacted(), ErrFormat, u.Root().Scheme)
	}
	at, err := root(ctx, e, u.Root())
	if err != nil {
		return at, fmt.Errorf("%s: %w", u.Redacted(), err)
	}
	if at.lies, err = extent.Of(u.Root()); err != nil {
		return at, err
	}
	at.URL = u.Prefix(0)
	for i, part := range u.Adapters() {
		if at, err = e.step(ctx, at, part); err != nil {
			return at, fmt.Errorf("%s: %w", u.Redacted(), err)
		}
		at.URL = u.Prefix(i + 1)
	}
	return at, nil
}

func (e *Env) step(ctx context.Context, at Place, part zurl.Part) (Place, error) {
	a, ok := e.adapters.steps[part.Scheme]
	if !ok {
		return at, fmt.Errorf("%w: unknown adapter %q", ErrFormat, part.Scheme)
	}
	if at.Kind == Dataset && part.Scheme != ".." {
		return at, fmt.Errorf("%w: nothing can follow a node, but %s: does", ErrFormat, part.Scheme)
	}
	next, err := a.Open(ctx, e, at, part)
	next.lies, next.through = at.lies, cmp.Or(next.set, at.through)
	return next, err
}
