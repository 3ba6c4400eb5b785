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
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/zarr"
)

// foreignPlan prepares an export of the hierarchy at a path to a foreign format.
type foreignPlan func(ctx context.Context, view kv.Reader, path string, open *zarr.OpenOptions, o ForeignOptions) (formats.Plan, error)

// foreignPlans are those of [ForeignOptions.Format].
var foreignPlans = map[string]foreignPlan{
	"n5": func(ctx context.Context, view kv.Reader, path string, open *zarr.OpenOptions, o ForeignOptions) (formats.Plan, error) {
		return n5.NewPlan(ctx, view, path, n5.WriteOptions{Compression: o.Compression, Open: open})
	},
}

// ForeignExports returns the foreign formats that [ForeignOptions.Format] may name,
// sorted.
func ForeignExports() []string { return slices.Sorted(maps.Keys(foreignPlans)) }

// ForeignOptions are those of an export to a foreign format. The zero value says that
// it is none.
type ForeignOptions struct {
	// Format is one of [ForeignExports]. Arrays are encoded anew, groups and attributes
	// become what the format has for them. Something that has no form there is
	// [ErrConvert] and formats.ErrUnsupported, and nothing is written. Such an export
	// cannot be resumed.
	Format string
	// Compression of all chunks, as the format calls it: "raw", "gzip" (default),
	// "bzip2", "xz", "lz4", "blosc" or "zstd" of n5.
	Compression string
}

// planForeign prepares an export to a foreign format.
func (s *Source) planForeign(ctx context.Context, view kv.ReadLister, at Place, o ForeignOptions) (formats.Plan, error) {
	plan := foreignPlans[o.Format]
	if plan == nil {
		return nil, fmt.Errorf("to format %q, of which %s are possible: %w", o.Format, strings.Join(ForeignExports(), ", "), errors.ErrUnsupported)
	}
	open := *s.open
	open.Version = at.Version
	p, err := plan(ctx, view, at.Path, &open, o)
	if errors.Is(err, formats.ErrUnsupported) {
		err = fmt.Errorf("%w: %w", ErrConvert, err)
	}
	return p, err
}
