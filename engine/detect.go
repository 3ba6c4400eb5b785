package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/zarrdb/zarrdb/engine/zurl"
	"github.com/zarrdb/zarrdb/kv"
)

// headBytes is how much of a file's beginning format detection looks at.
const headBytes = 64

// Evidence is what format detection knows of a place: one look serves all
// adapters.
type Evidence struct {
	// Directory says that the place is a directory; Has then tells which of
	// the names that adapters asked about are in it.
	Directory bool
	has       map[string]bool
	// Head is the beginning of a file.
	Head []byte
}

// Has reports whether a directory holds a file of that name.
func (e Evidence) Has(name string) bool { return e.has[name] }

// detect adds the one adapter that fits a place.
func (e *Env) detect(ctx context.Context, at Place) (Place, error) {
	ev, at, err := e.look(ctx, at)
	if err != nil {
		return at, fmt.Errorf("%s: %w", at.URL, err)
	}
	var match []string
	for scheme, a := range e.adapters.steps {
		if a.Detect != nil && a.Detect(ev) {
			match = append(match, scheme)
		}
	}
	slices.Sort(match)
	switch len(match) {
	case 0:
		return at, fmt.Errorf("%s: %w", at.URL, ErrFormat)
	case 1:
	default:
		return at, fmt.Errorf("%s: %w: it could be %s; add one of them to the URL", at.URL, ErrFormat, strings.Join(match, " or "))
	}
	part := zurl.Part{Scheme: match[0]}
	next, err := e.step(ctx, at, part)
	if err != nil {
		return at, fmt.Errorf("%s: %w", at.URL, err)
	}
	next.URL = at.URL.Append(part)
	return next, nil
}

// look gathers evidence, and finds out whether a place is a file or a directory.
func (e *Env) look(ctx context.Context, at Place) (Evidence, Place, error) {
	if at.Kind != Directory {
		v, err := kv.Locate(ctx, at.View, at.Path)
		if err == nil {
			at.Kind = File
			ev := Evidence{}
			err = v.View(ctx, kv.Span(0, min(headBytes, v.Size())), func(b []byte) error {
				ev.Head = slices.Clone(b)
				return nil
			})
			return ev, at, err
		}
		if !errors.Is(err, kv.ErrNotFound) && !errors.Is(err, kv.ErrInvalidKey) || at.Kind == File {
			return Evidence{}, at, err
		}
		at.Kind = Directory
		at.URL = at.URL.AsDirectory()
	}
	ev := Evidence{Directory: true, has: map[string]bool{}}
	below := at.dir()
	for _, a := range e.adapters.steps {
		for _, name := range a.Files {
			if _, seen := ev.has[name]; seen {
				continue
			}
			_, err := kv.Locate(ctx, below, name)
			if err != nil && !errors.Is(err, kv.ErrNotFound) {
				return ev, at, err
			}
			ev.has[name] = err == nil
		}
	}
	return ev, at, nil
}
