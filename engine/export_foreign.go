package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/zarrdb/zarrdb/engine/source"
	"github.com/zarrdb/zarrdb/formats"
	"github.com/zarrdb/zarrdb/kv"
)

// ForeignOptions are the options of an export to a foreign format. The zero value stands for an
// export to Zarr.
type ForeignOptions struct {
	// Format is one of [ForeignExports]. icechunk gets keys and bytes as they are stored,
	// and virtual chunks of a database stay virtual. For precomputed, arrays are encoded
	// anew, groups and attributes are stored as the format allows. Something that has
	// no form there is [ErrConvert] and formats.ErrUnsupported, and nothing is written.
	// Such an export cannot be resumed. If it fails, its files in a directory of this
	// machine are removed.
	Format string
	// History writes a version of the format for each commit of a database that branches
	// and tags reach, and the branches and tags, in one of [ForeignHistories]. Commits
	// whose contents are gone are left out and counted. Progress then counts versions.
	History bool
	// Compression of all chunks of precomputed with shards, which compresses nothing
	// without: "raw" or "gzip" (default).
	Compression string
	// Sharded writes the chunks of precomputed into shards, else each into a file.
	Sharded bool
}

// ForeignExports returns the foreign formats that [ForeignOptions.Format] may name,
// sorted.
func ForeignExports() []string { return exportNames((*formats.Format).Written) }

// ForeignHistories returns the [ForeignExports] that take ForeignOptions.History,
// sorted.
func ForeignHistories() []string {
	return exportNames(func(f *formats.Format) bool { return f.Create != nil })
}

// ForeignSkips returns the [ForeignExports] that take ExportOptions.Skip, sorted.
func ForeignSkips() []string {
	return exportNames(func(f *formats.Format) bool { return f.Plan != nil })
}

// ForeignReadOnly reports whether something is the name of a foreign format that is read and
// not written.
func ForeignReadOnly(name string) bool {
	return slices.Contains(exportNames(func(f *formats.Format) bool { return !f.Written() }), name)
}

func exportNames(wanted func(*formats.Format) bool) (list []string) {
	for _, f := range source.Formats() {
		if wanted(&f) {
			list = append(list, exportName(&f))
		}
	}
	slices.Sort(list)
	return list
}

// exportName is the name of a format in ForeignOptions: its scheme, without the program
// that it is the format of.
func exportName(f *formats.Format) string { return strings.TrimPrefix(f.Scheme, "neuroglancer-") }

// planForeign prepares an export to a foreign format.
func (ex *exporter) planForeign(ctx context.Context) (formats.Plan, error) {
	o := ex.o.Foreign
	if ForeignReadOnly(o.Format) {
		return nil, fmt.Errorf("to %s: %w: it is read only; use %s or a version of Zarr", o.Format, errors.ErrUnsupported, strings.Join(ForeignExports(), ", "))
	}
	if !slices.Contains(ForeignExports(), o.Format) {
		return nil, fmt.Errorf("to format %q, of which %s are possible: %w", o.Format, strings.Join(ForeignExports(), ", "), errors.ErrUnsupported)
	}
	if o.History && !slices.Contains(ForeignHistories(), o.Format) {
		return nil, fmt.Errorf("with history to format %q, of which %s are possible: %w", o.Format, strings.Join(ForeignHistories(), ", "), errors.ErrUnsupported)
	}
	all := source.Formats()
	f := &all[slices.IndexFunc(all, func(f formats.Format) bool { return exportName(&f) == o.Format })]
	if f.Create != nil {
		if o.Compression != "" || o.Sharded {
			return nil, fmt.Errorf("to %s with a compression or shards: %w", o.Format, errors.ErrUnsupported)
		}
		return ex.planVersions(ctx, f)
	}
	return f.Plan(ctx, ex.view, ex.at.Path, formats.WriteOptions{Compression: o.Compression, Sharded: o.Sharded, Skip: ex.o.Skip, Open: ex.open})
}

// writeForeign carries out the plan. Something that has no form in the format is
// ErrConvert.
func (ex *exporter) writeForeign(ctx context.Context, dst kv.Writer) error {
	return convertError(ex.foreign.Write(ctx, formats.Output{Dst: dst, Run: ex.pool.Run, Wrote: ex.count}))
}

func convertError(err error) error {
	if errors.Is(err, formats.ErrUnsupported) {
		err = fmt.Errorf("%w: %w", ErrConvert, err)
	}
	return err
}
