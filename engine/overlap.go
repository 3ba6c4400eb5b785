package engine

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/zarrdb/zarrdb/engine/internal/extent"
	"github.com/zarrdb/zarrdb/engine/internal/names"
	"github.com/zarrdb/zarrdb/engine/internal/virtual"
	"github.com/zarrdb/zarrdb/engine/source"
	"github.com/zarrdb/zarrdb/txn"
)

// ErrOverlap means that a destination is, holds or lies in the source, or that
// it holds or lies in a database; or that references to link lead into the
// database itself. Nothing was written.
var ErrOverlap = extent.ErrOverlap

// Apart returns [ErrOverlap] if a file of this machine that is to be written is, or lies in, a file
// or directory that the source reads, or lies in a database. A file that exists must not be one
// that values of the source refer to, either: that costs a pass over all of them.
func (s *Source) Apart(ctx context.Context, file string) error {
	at, err := s.dataset(ctx)
	if err != nil {
		return err
	}
	dest := extent.Extent{Path: file}
	if err := extent.Separate(dest, at.Extent); err != nil {
		return err
	}
	if info, err := os.Stat(file); err != nil || !info.Mode().IsRegular() {
		return nil // nothing is replaced
	}
	return s.unreferred(ctx, at, dest)
}

// unreferred returns ErrOverlap if dest, where there is something, is or holds a
// file that virtual values or references of a place of the source lead to. It
// costs a pass over all of them.
func (s *Source) unreferred(ctx context.Context, at source.Place, dest extent.Extent) error {
	var files *virtual.Resolver
	var urls func(yield func(string, error) bool)
	if v, of := versionOf(at); v != nil {
		files, urls = of, virtualURLs(v.Values(ctx, names.Dir(at.Path)))
	} else {
		set := at.References()
		if set == nil {
			return nil
		}
		files = set.Files()
		urls = func(yield func(string, error) bool) {
			for e, err := range set.Entries(ctx) {
				if !yield(e.URL, err) {
					return
				}
			}
		}
	}
	o := extent.Against(dest)
	last := ""
	for url, err := range urls {
		if err != nil {
			return err
		}
		if url == "" || url == last {
			continue
		}
		last = strings.Clone(url) // it may be a part of a larger string
		to, err := files.PlaceOf(last)
		if err != nil {
			continue // it may not be followed, so nothing is read there
		}
		var lies extent.Extent
		if to.Root == virtual.Inside {
			if lies.Store = at.Extent.Store; lies.Store == "" {
				continue // a member of the archive, which was compared
			}
			lies.Path = names.Join(names.Parent(at.Extent.Path), to.Path)
		} else {
			u, err := source.ReferredURL(to.URL())
			if err == nil {
				lies, err = extent.Of(u.Root())
			}
			if err != nil {
				continue // as above
			}
		}
		if err := o.With(lies); err != nil {
			return fmt.Errorf("%w, which values refer to", err)
		}
	}
	return nil
}

// virtualURLs yields the URL of each virtual value, and "" for other values.
func virtualURLs(values func(func(txn.KeyValue, error) bool)) func(yield func(string, error) bool) {
	return func(yield func(string, error) bool) {
		values(func(v txn.KeyValue, err error) bool { return yield(v.URL, err) })
	}
}
