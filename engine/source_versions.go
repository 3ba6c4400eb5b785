package engine

import (
	"context"
	"iter"

	"github.com/zarrdb/zarrdb/formats"
)

// SourceVersion is one version of a store in a foreign format that has versions.
type SourceVersion = formats.Version

// SourceName is a branch or tag of such a store.
type SourceName = formats.Name

// History yields the version of a store in a foreign format, such as ocdbt or icechunk,
// that the source lies in, and its ancestors, newest first. The sequence ends after the
// first error, which is errors.ErrUnsupported if no format on the way has versions.
// Versions of a database are [DB.Log]'s.
func (s *Source) History(ctx context.Context) iter.Seq2[SourceVersion, error] {
	return func(yield func(SourceVersion, error) bool) {
		v, err := s.env.Versioned(ctx, s.at)
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
	v, err := s.env.Versioned(ctx, s.at)
	if err != nil {
		return nil, err
	}
	return v.Names(ctx)
}
