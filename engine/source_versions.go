package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/zarrdb/zarrdb/formats"
)

// SourceVersion is one version of a store in a foreign format that has versions.
type SourceVersion = formats.Version

// SourceName is a branch or tag of such a store.
type SourceName = formats.Name

// versioned returns the store with versions that the source lies in. Formats are
// detected as far as one is found.
func (s *Source) versioned(ctx context.Context) (formats.Versioned, error) {
	for at := s.at; ; {
		if set := cmp.Or(at.set, at.through); set != nil {
			if v, ok := set.foreign.(formats.Versioned); ok {
				return v, nil
			}
		}
		if at.Kind == Dataset || at.database {
			return nil, fmt.Errorf("%s: no format on the way has versions: %w", s.name(), errors.ErrUnsupported)
		}
		next, err := s.env.detect(ctx, at)
		if err != nil {
			return nil, err
		}
		at = next
	}
}

// History yields the version of a store in a foreign format, such as ocdbt or icechunk,
// that the source lies in, and its ancestors, newest first. The sequence ends after the
// first error, which is errors.ErrUnsupported if no format on the way has versions.
// Versions of a database are [DB.Log]'s.
func (s *Source) History(ctx context.Context) iter.Seq2[SourceVersion, error] {
	return func(yield func(SourceVersion, error) bool) {
		v, err := s.versioned(ctx)
		if err != nil {
			yield(SourceVersion{}, err)
			return
		}
		v.History(ctx)(yield)
	}
}

// VersionNames returns the branches and tags of the store that History is of, sorted by
// kind and name; none if its format has none.
func (s *Source) VersionNames(ctx context.Context) ([]SourceName, error) {
	v, err := s.versioned(ctx)
	if err != nil {
		return nil, err
	}
	return v.Names(ctx)
}
