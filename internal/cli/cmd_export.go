package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/engine/zurl"
	"github.com/zarrdb/zarrdb/zarr"
)

// exportFlags are those of export.
type exportFlags struct {
	src      sourceFlags
	format   string
	o        engine.ExportOptions
	refs     engine.ExportReferencesOptions
	asStored bool
	skip     []string
}

// referenceFormats are those of export --format that are reference sets.
var referenceFormats = map[string]engine.ExportReferencesOptions{
	"kerchunk-json":    {},
	"kerchunk-json-v1": {Version: 1},
	"kerchunk-parquet": {Parquet: true},
}

// zarrFormats are those that are versions of Zarr.
var zarrFormats = map[string]zarr.Version{"zarr2": zarr.V2, "zarr3": zarr.V3}

// exportFormats lists all formats.
func exportFormats(lastly string) string {
	return "zarr2, zarr3, " + strings.Join(engine.ForeignExports(), ", ") + ", kerchunk-json, kerchunk-json-v1 " + lastly + " kerchunk-parquet"
}

func exportCmd() *cobra.Command {
	var e exportFlags
	cmd := &cobra.Command{
		Use:   "export TARGET DEST",
		Short: "Copy any version out to a Zarr store",
		Long: `Copy what TARGET names to a directory, to a zip file if DEST ends in .zip or .ozx,
or to a bucket if it is a URL such as s3://bucket/path or gs://bucket/path.
Keys and bytes are written as they were imported or written, so that any Zarr
program reads the result. Metadata comes last: what an interrupted export left
does not pass for a store, and --resume completes it. A DEST that ends as files of
another format do, such as .nc, .tif or .csv, needs --format.

--overwrite replaces a store of any of these formats, or a zip file, at DEST: the new
one is written beside it and takes its place when it is complete. In a bucket there is
no such exchange: values are overwritten, and keys that are no more go last. DEST must
lie apart from what is read, from files that it refers to, and from databases.

--format writes arrays and groups in another Zarr format, whatever they are in.
Chunks keep their bytes where the format can say what they are (c/0/1 becomes
0.1, dimension_names become _ARRAY_DIMENSIONS, OME-Zarr 0.5 becomes 0.4, and back); what it cannot say is
named before anything is written. --recode encodes such chunks anew: shards
become plain chunks, filters go, the compressor stays if the format has it.

--skip PATH leaves out an array, or a group with all below it, which the format may
have no form for. PATH is relative to TARGET, as in the messages of export. What stays
behind is named at the end: skipped arrays and groups, members of metadata without a
form, and keys that belong to no array or group. Consolidated metadata is made again.

--format precomputed writes a volume of Neuroglancer, of an array or of those in a
group as scales, as it is or --sharded; dimensions called x, y, z and c are put in
that order. Of an image of OME-Zarr, the levels become scales, with its units, scales
and translations; its labels are left out. What it cannot say is named before
anything is written.

--format kerchunk-json, kerchunk-json-v1 and kerchunk-parquet write a version of a
database, a file such as FILE.nc or another set as a reference set: chunks of a file are
ranges of the file, virtual chunks keep their URLs, and chunks of the database are ranges of its files, linked at DEST.packs and not copied, unless
--inline puts them into the set. URLs below A are written as those below B with
--url-map A=B, those of DEST.packs too; so are virtual chunks with --format icechunk. With --inline-threshold values of at most that
many bytes stand in the set, those of virtual chunks too. Arrays and groups of
Zarr v3 become Zarr v2 ones, which is what xarray's engine "kerchunk" and parquet
sets are for. --as-stored leaves them in Zarr v3, in a JSON set; xarray opens that
as open_dataset("reference://", engine="zarr", storage_options={"fo": DEST}).

--format icechunk writes an Icechunk repository, which icechunk-python opens, with one
version, and with --history all versions, branches and tags of a database: a commit
becomes a snapshot on its first parent; a merge names the others in its metadata.
Virtual chunks of a database stay virtual. Arrays and groups of Zarr v2 become Zarr v3
ones; with --history they must be Zarr v3. An export that fails or is interrupted leaves
no repository.`,
		Example: `  zarrdb export weather.zdb@v1.0 ./v1.zarr
  zarrdb export weather.zdb old.zip --format zarr2 --recode
  zarrdb export weather.zdb:temp temp.zip
  zarrdb export weather.zdb weather.icechunk --format icechunk --history
  zarrdb export weather.zdb refs.json --format kerchunk-json --inline-threshold 300
  zarrdb export june.nc june.json --format kerchunk-json`,
		Args: argCount(2, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := e.check(cmd); err != nil {
				return err
			}
			if err := e.ending(args[0], args[1]); err != nil {
				return err
			}
			if _, ok := referenceFormats[e.format]; ok {
				return e.references(cmd, args)
			}
			return e.store(cmd, args)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&e.o.Overwrite, "overwrite", false, "replace the store or zip file at DEST")
	f.BoolVar(&e.o.Resume, "resume", false, "go on with an export that was interrupted")
	f.StringVar(&e.format, "format", "", "write `FORMAT`: "+exportFormats("or")+" (default as it is stored)")
	f.StringVar(&e.o.Foreign.Compression, "compression", "", "with --sharded, how chunks are compressed: raw or gzip (default gzip)")
	f.BoolVar(&e.o.Foreign.Sharded, "sharded", false, "with --format precomputed, write shards, not a file for each chunk")
	f.BoolVar(&e.o.Foreign.History, "history", false, "write all versions, branches and tags with --format icechunk")
	f.BoolVar(&e.refs.Inline, "inline", false, "put all chunks of the database into the reference set")
	f.Int64Var(&e.refs.InlineThreshold, "inline-threshold", 0, "put values of at most so many `BYTES` into the reference set (default 512, and no virtual ones)")
	f.BoolVar(&e.asStored, "as-stored", false, "leave Zarr v3 in a reference set, do not make Zarr v2 of it")
	f.BoolVar(&e.o.Recode, "recode", false, "encode chunks anew where the format has no form for them")
	f.StringArrayVar(&e.skip, "skip", nil, "leave out the array or group at `PATH` with --format zarr2, zarr3, "+strings.Join(engine.ForeignSkips(), ", ")+" or kerchunk-…; may be repeated")
	e.src.register(cmd)
	return cmd
}

// check refuses flags that do not go together, and sets the format in the options.
func (e *exportFlags) check(cmd *cobra.Command) error {
	_, references := referenceFormats[e.format]
	_, isZarr := zarrFormats[e.format]
	foreign := slices.Contains(engine.ForeignExports(), e.format)
	switch {
	case engine.ForeignReadOnly(e.format):
		return usagef("export: --format %s: %s is read only: use %s", e.format, e.format, exportFormats("or"))
	case e.format != "" && !references && !isZarr && !foreign:
		return usagef("export: --format %s: %s are possible", e.format, exportFormats("and"))
	case e.o.Foreign.Sharded && e.format != "precomputed":
		return usagef("export: --sharded needs --format precomputed")
	case e.o.Foreign.Compression != "" && !e.o.Foreign.Sharded:
		return usagef("export: --compression needs --format precomputed with --sharded")
	case e.o.Foreign.History && !slices.Contains(engine.ForeignHistories(), e.format):
		return usagef("export: --history needs --format %s", strings.Join(engine.ForeignHistories(), " or "))
	case references && (e.o.Overwrite || e.o.Resume || e.o.Recode):
		return usagef("export: --format %s goes with --inline, --inline-threshold or --as-stored alone", e.format)
	case references && e.refs.InlineThreshold < 0:
		return usagef("export: --inline-threshold %d", e.refs.InlineThreshold)
	case !references && (e.refs.Inline || e.asStored || cmd.Flags().Changed("inline-threshold")):
		return usagef("export: --inline, --inline-threshold and --as-stored need --format kerchunk-json or kerchunk-parquet")
	case len(e.skip) > 0 && (e.asStored || !references && !isZarr && !slices.Contains(engine.ForeignSkips(), e.format)):
		return usagef("export: --skip needs --format zarr2, zarr3, %s, kerchunk-json or kerchunk-parquet, without --as-stored", strings.Join(engine.ForeignSkips(), ", "))
	case foreign && (e.o.Resume || e.o.Recode):
		return usagef("export: --format %s goes with neither --resume nor --recode", e.format)
	case e.format == "" && e.o.Recode:
		return usagef("export: --recode needs --format")
	case isZarr && e.o.Resume:
		return usagef("export: --resume cannot go on with a conversion: use --overwrite")
	case foreign:
		e.o.Foreign.Format = e.format
	}
	e.o.Format, e.o.Skip = zarrFormats[e.format], e.skip
	return nil
}

// references exports a reference set.
func (e *exportFlags) references(cmd *cobra.Command, args []string) error {
	o := referenceFormats[e.format]
	o.Skip = e.skip
	if !e.asStored {
		o.Format = zarr.V2
	}
	if o.Inline = e.refs.Inline; cmd.Flags().Changed("inline-threshold") {
		o.InlineThreshold = cmp.Or(e.refs.InlineThreshold, -1)
	}
	err := e.run(cmd, args[0], "keys", func(s *engine.Source, report func(engine.Progress)) (*engine.ExportResult, error) {
		o.Progress = report
		return engine.ExportReferences(cmd.Context(), s, args[1], o)
	})
	if errors.Is(err, engine.ErrConvert) {
		return fmt.Errorf("%w (--format kerchunk-json --as-stored leaves it in Zarr v3; --format zarr2 --recode makes a copy that Zarr v2 can hold; --skip PATH leaves it out)", err)
	}
	return err
}

// otherFormats are endings of the names of files that are no stores of Zarr, and what writes such a
// file, if anything does: a format of export, or read.
var otherFormats = map[string]string{
	".nc": "", ".nc4": "", ".cdf": "", ".h5": "", ".hdf5": "", ".hdf": "", ".he5": "", ".tif": "", ".tiff": "", ".grib": "", ".grib2": "", ".grb": "", ".grb2": "", ".npz": "",
	".mat": "", ".tar": "", ".gz": "", ".tgz": "", ".jpg": "", ".jpeg": "", ".csv": "read", ".npy": "read", ".jsonl": "read", ".png": "read",
	".json": "kerchunk-json", ".parquet": "kerchunk-parquet", ".parq": "kerchunk-parquet", ".n5": "", ".ocdbt": "", ".icechunk": "icechunk",
}

// ending refuses names without --format that would say something else than what is in the directory.
func (e *exportFlags) ending(target, dest string) error {
	dest = strings.TrimRight(zurl.Redact(dest), "/")
	ext := strings.ToLower(filepath.Ext(dest))
	by, ok := otherFormats[ext]
	if !ok || e.format != "" {
		return nil
	}
	switch by {
	case "":
		by = "no format of export makes " + ext + " files"
	case "read":
		by = fmt.Sprintf("\"zarrdb read %s -o %s\" makes such a file of an array", shellWord(zurl.Redact(target)), shellWord(dest))
	default:
		by = "--format " + by + " makes what the name says"
	}
	return usagef("export: %s would be a directory of Zarr: %s; choose a name such as %s.zarr, or --format zarr2 or zarr3 for a directory of this name",
		dest, by, dest[:len(dest)-len(ext)])
}

// store exports a store in any other format.
func (e *exportFlags) store(cmd *cobra.Command, args []string) error {
	unit := "keys"
	if e.o.Foreign.History {
		unit = "versions"
	}
	err := e.run(cmd, args[0], unit, func(s *engine.Source, report func(engine.Progress)) (*engine.ExportResult, error) {
		e.o.Progress = report
		return engine.Export(cmd.Context(), s, args[1], e.o)
	})
	switch {
	case errors.Is(err, fs.ErrExist) && e.format == "" && !e.o.Resume && !engine.IsArchive(args[1]):
		return fmt.Errorf("%w (--resume goes on with an export that was interrupted)", err)
	case errors.Is(err, engine.ErrRecode) && e.format == "icechunk":
		return fmt.Errorf("%w: export --format zarr3 --recode makes a copy that can be", err)
	case errors.Is(err, engine.ErrRecode):
		return fmt.Errorf("%w: use --recode, or --skip PATH to leave it out", err)
	case errors.Is(err, engine.ErrConvert) && e.o.Format != 0:
		return fmt.Errorf("%w (--skip PATH leaves it out)", err)
	case errors.Is(err, engine.ErrConvert) && e.o.Foreign.History:
		return fmt.Errorf("%w (without --history one version is converted to Zarr v3)", err)
	}
	return err
}

// run opens what is to be exported, shows how far the export is and says what came of
// it.
func (e *exportFlags) run(cmd *cobra.Command, target, unit string, export func(*engine.Source, func(engine.Progress)) (*engine.ExportResult, error)) error {
	s, err := e.src.open(cmd, target)
	if err != nil {
		return err
	}
	defer s.Close()
	bar := newProgress(cmd, "exporting", unit)
	res, err := export(s, bar.update)
	bar.finish(err)
	if err != nil {
		return err
	}
	leftOut(cmd, res.LeftOut)
	for _, note := range res.Notes {
		say(cmd, "not the same: %s", note)
	}
	if more := res.AllNotes - int64(len(res.Notes)); more > 0 {
		say(cmd, "not the same: %d more", more)
	}
	for _, path := range res.Stale {
		note(cmd, "exported as it is: consolidated metadata of /%s, which differs from the nodes below; --format zarr2 or zarr3 makes it again", path)
	}
	if more := res.AllStale - int64(len(res.Stale)); more > 0 {
		note(cmd, "exported as it is: consolidated metadata of %s more", count(more, "group"))
	}
	for _, name := range res.Behind {
		note(cmd, "left behind: %s", name)
	}
	if more := res.AllBehind - int64(len(res.Behind)); more > 0 {
		note(cmd, "left behind: %d more, %d in all", more, res.AllBehind)
	}
	if res.Expired > 0 {
		say(cmd, "left out: %s without contents", count(res.Expired, "expired version"))
	}
	if e.o.Foreign.History {
		say(cmd, "%s, %s, %s", count(res.Versions, "version"), count(res.Keys, "key"), size(res.Bytes))
	} else {
		say(cmd, "%s, %s", count(res.Keys, "key"), size(res.Bytes))
	}
	return nil
}
