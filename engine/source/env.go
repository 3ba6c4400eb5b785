package source

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/zarrdb/zarrdb/engine/internal/extent"
	"github.com/zarrdb/zarrdb/engine/internal/names"
	"github.com/zarrdb/zarrdb/engine/zurl"
	"github.com/zarrdb/zarrdb/formats"
	"github.com/zarrdb/zarrdb/internal/ctxlock"
	"github.com/zarrdb/zarrdb/kv"
)

// Env is the state shared by opening one URL: the registry, the allowed references, and the stores
// to close. Its fields are set before it is used; then it is safe for concurrent use.
type Env struct {
	// Adapters resolves URL schemes; it must not be nil.
	Adapters *Adapters
	// Follow says where references may lead, and Recall, if set, returns what was
	// allowed earlier.
	Follow Follow
	Recall func() (Follow, error)
	// Database opens a version of the database in a directory, until the Env is closed;
	// nil without any.
	Database func(ctx context.Context, dir string, version zurl.Version) (kv.ReadLister, error)
	// Warn, if set, is called with a text for the user that is not an error. It may be
	// called from several goroutines.
	Warn func(text string)
	// FromPath says that a path was opened, not a URL. Of a path that holds metadata of
	// v2 and v3, v3 is read, with a warning; URLs must say which.
	FromPath bool

	opening ctxlock.Lock
	roots   map[string]kv.Reader // roots of references, by URL

	mu      sync.Mutex
	closers []func() error
	told    []string // keys that skipped has warned of
}

// OnClose has a function called when the source is closed, last one first.
func (e *Env) OnClose(fn func() error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.closers = append(e.closers, fn)
}

// Close closes everything that was opened on the way, last one first.
func (e *Env) Close() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	var errs []error
	for _, fn := range slices.Backward(e.closers) {
		errs = append(errs, fn())
	}
	e.closers = nil
	return errors.Join(errs...)
}

// Open follows a whole pipeline. Formats that it leaves out are left to Env.dataset.
func (e *Env) Open(ctx context.Context, u zurl.URL) (Place, error) {
	root := e.Adapters.roots[u.Root().Scheme]
	if root == nil {
		return Place{}, unknownScheme(u.Root().String())
	}
	at, err := root(ctx, e, u.Root())
	if err != nil {
		return at, fmt.Errorf("%s: %w", u.Redacted(), err)
	}
	if at.Extent, err = extent.Of(u.Root()); err != nil {
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
	a, ok := e.Adapters.steps[part.Scheme]
	if !ok {
		return at, fmt.Errorf("%w: unknown adapter %q", ErrFormat, part.Scheme)
	}
	if at.Kind == dataset && part.Scheme != ".." {
		return at, fmt.Errorf("%w: nothing can follow a node, but %s: does", ErrFormat, part.Scheme)
	}
	next, err := a.Open(ctx, e, at, part)
	next.Extent, next.through = at.Extent, cmp.Or(next.set, at.through)
	return next, err
}

// Dataset follows a place to a node of a hierarchy, by detecting the formats that its
// URL leaves out. The error is ErrFormat if none or several fit.
func (e *Env) Dataset(ctx context.Context, at Place) (Place, error) {
	for at.Kind != dataset {
		if at.Database {
			at.Kind = dataset
			break
		}
		next, err := e.detect(ctx, at)
		if err != nil {
			return at, err
		}
		at = next
	}
	return at, nil
}

// ErrNoReferences is the ErrFormat of a place that leads to no references.
var ErrNoReferences = fmt.Errorf("%w: it is neither a reference set nor a foreign format, and only those can be linked", ErrFormat)

// ReferenceSet follows a place to the first reference set, and returns the prefix of
// the keys in the set that the place names. The error is [ErrNoReferences] if the set lacks them.
func (e *Env) ReferenceSet(ctx context.Context, at Place) (set *Set, prefix string, err error) {
	for from := at; ; {
		if at.set == nil && at.Store != nil && at.Store.set != nil { // a Zarr hierarchy in the set
			at.set, at.Path = at.Store.set, names.Join(at.Store.Path, at.Path)
		}
		if at.set != nil {
			if at.set.dir != nil {
				_, err = at.set.open(ctx) // which may find that its URLs are relative to another folder
			}
			return at.set, names.Dir(at.Path), err
		}
		next, err := e.detect(ctx, at)
		if err != nil {
			return nil, "", err
		}
		if next.set == nil && (next.Kind == dataset || next.Database) {
			return nil, "", fmt.Errorf("%s: %w", from.URL.Redacted(), ErrNoReferences)
		}
		at = next
	}
}

// Versioned returns the store in a format with versions that a place lies in. Formats
// are detected as far as one is found. The error is errors.ErrUnsupported if there is
// none.
func (e *Env) Versioned(ctx context.Context, at Place) (formats.Versioned, error) {
	for from := at; ; {
		if at.through != nil {
			if v := at.through.Versions(); v != nil {
				return v, nil
			}
		}
		if at.Kind == dataset || at.Database {
			return nil, fmt.Errorf("%s: no format on the way has versions: %w", from.URL.Redacted(), errors.ErrUnsupported)
		}
		next, err := e.detect(ctx, at)
		if err != nil {
			return nil, err
		}
		at = next
	}
}
