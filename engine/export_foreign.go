package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/zarrdb/zarrdb/formats"
	"github.com/zarrdb/zarrdb/formats/n5"
	"github.com/zarrdb/zarrdb/formats/precomputed"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/zarr"
)

// foreignSource is what is exported to a foreign format: the hierarchy at a place.
type foreignSource struct {
	src  *Source
	view kv.ReadLister
	at   Place
	open *zarr.OpenOptions
}

// foreignPlan prepares an export to a foreign format.
type foreignPlan func(ctx context.Context, in foreignSource, o ForeignOptions) (formats.Plan, error)

// foreignPlans are those of [ForeignOptions.Format].
var foreignPlans = map[string]foreignPlan{
	"n5": func(ctx context.Context, in foreignSource, o ForeignOptions) (formats.Plan, error) {
		if o.Sharded {
			return nil, formats.Unsupported("n5: shards")
		}
		return n5.NewPlan(ctx, in.view, in.at.Path, n5.WriteOptions{Compression: o.Compression, Open: in.open})
	},
	"ocdbt": planOCDBT,
	"precomputed": func(ctx context.Context, in foreignSource, o ForeignOptions) (formats.Plan, error) {
		return precomputed.NewPlan(ctx, in.view, in.at.Path, precomputed.WriteOptions{Compression: o.Compression, Sharded: o.Sharded, Open: in.open})
	},
}

// foreignHistories are the formats that can be written with [ForeignOptions.History].
var foreignHistories = map[string]bool{"ocdbt": true}

// ForeignExports returns the foreign formats that [ForeignOptions.Format] may name,
// sorted.
func ForeignExports() []string { return slices.Sorted(maps.Keys(foreignPlans)) }

// ForeignHistories returns those of [ForeignExports] that take ForeignOptions.History,
// sorted.
func ForeignHistories() []string { return slices.Sorted(maps.Keys(foreignHistories)) }

// ForeignOptions are those of an export to a foreign format. The zero value says that
// it is none.
type ForeignOptions struct {
	// Format is one of [ForeignExports]. A format that is a store of keys, such as ocdbt,
	// gets keys and bytes as they are stored. For others, arrays are encoded anew, groups
	// and attributes become what the format has for them. Something that has no form
	// there is [ErrConvert] and formats.ErrUnsupported, and nothing is written. Such an
	// export cannot be resumed.
	Format string
	// History writes a version of the format for each commit of the chain of first parents
	// that leads to the version of a database that is exported, one of [ForeignHistories].
	// Versions whose contents are gone are left out with a warning.
	History bool
	// Compression of all chunks, as the format calls it: "raw", "gzip" (default),
	// "bzip2", "xz", "lz4", "blosc" or "zstd" of n5; "raw" or "gzip" (default) of
	// precomputed with shards, which compresses nothing without.
	Compression string
	// Sharded writes the chunks of precomputed into shards, else each into a file.
	Sharded bool
}

// planForeign prepares an export to a foreign format.
func (s *Source) planForeign(ctx context.Context, view kv.ReadLister, at Place, o ForeignOptions) (formats.Plan, error) {
	plan := foreignPlans[o.Format]
	if plan == nil {
		return nil, fmt.Errorf("to format %q, of which %s are possible: %w", o.Format, strings.Join(ForeignExports(), ", "), errors.ErrUnsupported)
	}
	if o.History && !foreignHistories[o.Format] {
		return nil, fmt.Errorf("with history to format %q, of which %s are possible: %w", o.Format, strings.Join(ForeignHistories(), ", "), errors.ErrUnsupported)
	}
	open := *s.open
	open.Version = at.Version
	p, err := plan(ctx, foreignSource{s, view, at, &open}, o)
	if errors.Is(err, formats.ErrUnsupported) {
		err = fmt.Errorf("%w: %w", ErrConvert, err)
	}
	return p, err
}
