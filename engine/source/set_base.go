package source

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"path"
	"strings"

	"github.com/zarrdb/zarrdb/engine/internal/names"
	"github.com/zarrdb/zarrdb/engine/internal/virtual"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/refs"
)

// Writers of parquet sets do not agree on the base of a relative URL:
//
//	data/set.parq/t/refs.0.parq       fsspec, kerchunk   data/
//	                                  other writers      data/set.parq/
//	                                  GDAL               data/set.parq/t/
//
// The first of these folders that has the file of the first reference is the base
// of the whole set. If it is not the first folder, a warning names it.

// chooseBase sets the base of the relative URLs of a parquet set to the folder
// that has the file of the first of them. It is called while opening is taken.
func (e *Env) chooseBase(ctx context.Context, s *Set, at Place) error {
	first, err := firstReference(ctx, s)
	if err != nil || first.URL == "" {
		return err
	}
	name := path.Base(names.Clean(at.Path))
	if url := urlOf(at); url != virtual.Inside {
		name = path.Base(url)
	}
	for _, folder := range []func(key string) string{
		func(string) string { return "." },
		func(string) string { return name },
		func(key string) string { return path.Join(name, path.Dir(key)) },
	} {
		m := movedSet{s.view, folder}
		url := m.url(first.Key, first.URL)
		moved := url != path.Clean(first.URL)
		to, err := s.opts.Rules.Resolve(url)
		if err != nil {
			continue // it leads elsewhere
		}
		_, err = s.opts.Open(ctx, to.Root, to.Path)
		if errors.Is(err, kv.ErrNotFound) {
			continue
		}
		if err != nil || !moved {
			return nil // an error comes again when the value is read
		}
		s.foreign, s.dir = m, nil
		if s.view, err = refs.NewView(m, &s.opts); err == nil && e.Warn != nil {
			e.Warn(fmt.Sprintf("relative URLs of %s are not relative to the folder that holds it: %s is read as %s", at.URL.Redacted(), first.URL, to.URL()))
		}
		return err
	}
	return nil // missing everywhere: reading says so
}

// firstReference is the first reference of a set if its URL is relative, else empty.
func firstReference(ctx context.Context, s *Set) (refs.Entry, error) {
	for e, err := range s.view.Entries(ctx) {
		if err != nil {
			return refs.Entry{}, err
		}
		if e.Inline() {
			continue
		}
		if !isRelative(e.URL) {
			break
		}
		return e, nil
	}
	return refs.Entry{}, nil
}

// movedSet is a set whose relative URLs are relative to another folder.
type movedSet struct {
	*refs.View
	folder func(key string) string // of the reference of a key, below the base of the set
}

func (m movedSet) url(key, url string) string {
	if !isRelative(url) {
		return url
	}
	return path.Join(m.folder(key), url)
}

func (m movedSet) Lookup(ctx context.Context, key string) (refs.Reference, error) {
	ref, err := m.View.Lookup(ctx, key)
	ref.URL = m.url(key, ref.URL)
	return ref, err
}

func (m movedSet) Entries(ctx context.Context) iter.Seq2[refs.Entry, error] {
	return func(yield func(refs.Entry, error) bool) {
		for e, err := range m.View.Entries(ctx) {
			e.URL = m.url(e.Key, e.URL)
			if !yield(e, err) {
				return
			}
		}
	}
}

// isRelative reports whether the URL of a reference names a file below the base of
// its set.
func isRelative(url string) bool {
	return url != "" && !strings.Contains(url, "://") && !strings.HasPrefix(url, "/") && !strings.HasPrefix(url, "file:")
}
