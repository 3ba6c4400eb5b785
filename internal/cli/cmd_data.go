package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/spf13/cobra"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/engine/zurl"
	"github.com/zarrdb/zarrdb/internal/fault"
	"github.com/zarrdb/zarrdb/internal/report"
	"github.com/zarrdb/zarrdb/txn"
)

func initCmd() *cobra.Command {
	return &cobra.Command{
		Use:     "init DB",
		Short:   "Make a new, empty database",
		Example: `  zarrdb init weather.zdb`,
		Args:    argCount(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			db, err := engine.Create(cmd.Context(), args[0], alone(cmd, nil))
			if err != nil {
				return err
			}
			return db.Close()
		},
	}
}

// importFlags are the flags of import.
type importFlags struct {
	src                              sourceFlags
	o                                engine.ImportOptions
	how                              engine.AppendOptions
	session, validate, prefix, stack string
	overlap                          string
	history, json                    bool
	out                              io.Writer // of JSON; nil without --json
}

const importLong = `Copy a Zarr store of any version into a database, as one commit: nothing is
seen of it before it is complete. SOURCE is a TARGET; its format is detected.
Chunks are copied as they are, without decoding, also those of arrays with
unknown codecs. DB is made if it is missing.

What is at the destination already is left alone unless you say --overwrite:
then only values that differ are stored. A database that lies in SOURCE, such as
DB, is left out.
An import that is interrupted leaves the database as it was, and what it copied
in a session: the same command with --resume goes on from there. A SOURCE
that cannot be opened leaves no new database; a later failure may leave an empty one.

A reference set (kerchunk: JSON, or a directory of parquet files) is read as the
store that it describes, and its bytes are copied. With --link they stay where
they are: the database then holds the references, as virtual chunks. They are
followed below the folder of the set, below the targets of --url-map and below
prefixes of --allow; this machine remembers that for the database. The versions
of the files are recorded, of those of this machine or as --validate says, and
reading a file that changed is an error. A file that is looked for and missing,
and a URL that nothing here reads, are refused, but with --validate none. Ten
million references take seconds, so that --resume begins anew; --overwrite
with an updated set commits what changed.

With --append-dim every SOURCE is appended along that dimension to what is at
the destination, or to each other where nothing is yet: one commit however many
there are. Several SOURCEs may be nodes or versions of one database. Chunks that
fit are renumbered, not decoded. Other elements are converted without rounding, and
encoded again as the first SOURCE has them: times in other units or from another
date, wider numbers and longer texts, other fill values, chunk lengths and
compressors; with --link only coordinates. --rectilinear keeps chunks of other
lengths as they are, as a rectilinear chunk grid. Arrays without the dimension must
hold the same. All differences that are left are named before anything is written,
with what helps: attributes such as scale_factor, calendars, shapes. So are
coordinates that repeat or go back, as when a file is appended twice, unless
--any-order is given, or --overlap replace: then steps whose labels are there go in
their place, and the others are appended. A gap in a coordinate whose steps are
regular otherwise is a warning, and with --strict an error. A long append that is stopped, by you or by a server, is kept
up to some SOURCE: --resume goes on after it.

SOURCE may be a pattern in quotes, such as 'data/*.nc' or 's3://bucket/2024/*.nc': all that fit,
by name. @FILE is a list of sources and patterns, a line each, in that order; @- is read from
standard input.

--new-dim stacks SOURCEs that have no such dimension, in the same way: it becomes the
first dimension of every array but coordinates. Its labels are the date in the name of
each SOURCE (time=%Y%m; time=tas_%Y%m%d if there are several; the fields are %Y %m %d %H
%M %S), or given values: member=1,2,3.

With --history every version of a SOURCE that has versions (icechunk, ocdbt) is
imported, with its branches and tags: as one commit each, with message, time and
author, at the root. Only changes are read. Each commit is complete when it is
seen; an import that is interrupted keeps those that it made, and the same command
goes on after them, also when the source has grown. Branches and tags get the names
that they have there, after --prefix; "_" stands for a space and what else a name
cannot have. The branch main must be new, or made by such an import.`

func importCmd() *cobra.Command {
	var f importFlags
	cmd := &cobra.Command{
		Use:   "import DB SOURCE...",
		Short: "Copy a store into a database",
		Long:  importLong,
		Example: `  zarrdb import weather.zdb ./era5.zarr
  zarrdb import weather.zdb ./june.zarr --to 2024/june -m "first delivery"
  zarrdb import weather.zdb 'file:///d/x.zip|zip:a/' --to x --branch incoming
  zarrdb import weather.zdb refs.json.zst --link --allow s3://noaa/
  zarrdb import weather.zdb june.json july.json --link --append-dim time --to era5
  zarrdb import era5.zdb 's3://bucket/tas_2001*.nc' --link --append-dim time
  zarrdb import era5.zdb @files.txt --append-dim time
  zarrdb import runs.zdb runs@v1:out runs@v2:out --new-dim member=1,2
  zarrdb import copy.zdb weather.zdb@v1.0:temp --to temp
  zarrdb import era5.zdb 's3://bucket/era5/|icechunk:' --history --link`,
		Args: argCount(2, -1),
		RunE: f.run,
	}
	set := cmd.Flags()
	f.src.followFlags.register(cmd)
	set.StringVar(&f.o.To, "to", "", "put it at this `PATH` (default the root)")
	set.StringVar(&f.o.Branch, "branch", "", "import onto this branch (default main)")
	commitFlags(cmd, &f.o.Message, &f.o.Author)
	set.BoolVar(&f.o.Overwrite, "overwrite", false, "replace what is at PATH")
	set.BoolVar(&f.o.Resume, "resume", false, "go on with an import that was interrupted; one set with --link begins anew")
	set.BoolVar(&f.o.Link, "link", false, "keep the bytes of a reference set where they are")
	set.StringVar(&f.validate, "validate", "local", "record the versions of `FILES` that are linked: local, all or none")
	set.StringVar(&f.how.Dim, "append-dim", "", "append the sources along this dimension, `NAME`, to what is at PATH")
	set.BoolVar(&f.o.AnyOrder, "any-order", false, "append coordinates that repeat or go back too")
	set.BoolVar(&f.o.Strict, "strict", false, "refuse to append where a regular coordinate has a gap, which is a warning otherwise")
	set.StringVar(&f.overlap, "overlap", "", "\"replace\" puts steps whose labels are there in their place, and appends the others")
	set.StringVar(&f.stack, "new-dim", "", "append the sources along a new dimension: `NAME=PATTERN` of a date in their names, such as time=%Y%m, or NAME=VALUE,VALUE")
	set.BoolVar(&f.how.Rectilinear, "rectilinear", false, "append chunks of other lengths as they are, with a rectilinear chunk grid (Zarr v3)")
	set.BoolVar(&f.history, "history", false, "import every version, branch and tag of SOURCE, as commits")
	set.StringVar(&f.prefix, "prefix", "", "begin the names of branches and tags of --history with this `TEXT`")
	set.StringVar(&f.session, "session", "", "import into the open session with this `ID` instead of committing")
	set.BoolVar(&f.json, "json", false, "print the commit and the counts as JSON, notes to standard error")
	return cmd
}

func (f *importFlags) run(cmd *cobra.Command, args []string) error {
	if f.json {
		f.out = cmd.OutOrStdout()
		cmd.SetOut(cmd.ErrOrStderr())
	}
	sources, err := f.src.expand(cmd, args[1:])
	if err != nil {
		return err
	}
	args = append(args[:1:1], sources...)
	if len(args) > 2 && f.how.Dim == "" && f.stack == "" {
		return usagef("import: several sources need --append-dim or --new-dim")
	}
	if f.stack != "" {
		if f.how.Dim != "" {
			return usagef("import: --new-dim and --append-dim exclude each other")
		}
		if f.how.Dim, f.how.Labels, err = newDim(f.stack, args[1:]); err != nil {
			return err
		}
	}
	dir, err := importDest(args, &f.o)
	if err != nil {
		return err
	}
	if f.session != "" {
		if f.o.Message != "" || f.o.Author != "" {
			return usagef("import: --message and --author belong to the commit of session %s", f.session)
		}
		id, err := txn.ParseSessionID(f.session)
		if err != nil {
			return err
		}
		f.o.Session = &id
	}
	var ok bool
	if f.o.Validate, ok = validations[f.validate]; !ok {
		return usagef("import: --validate %s: local, all or none is due", f.validate)
	}
	if !f.o.Link && cmd.Flags().Changed("validate") {
		return usagef("import: --validate needs --link")
	}
	if f.prefix != "" && !f.history {
		return usagef("import: --prefix needs --history")
	}
	if f.history {
		return f.versions(cmd, dir, args[1])
	}
	switch f.how.Replace = f.overlap == "replace"; {
	case f.overlap != "" && !f.how.Replace:
		return usagef("import: --overlap %s: \"replace\" is due", f.overlap)
	case f.how.Replace && (f.o.Link || f.how.Rectilinear || f.stack != ""):
		return usagef("import: --overlap excludes --link, --rectilinear and --new-dim")
	case f.o.Strict && f.o.AnyOrder:
		return usagef("import: --strict and --any-order exclude each other: gaps are looked for in coordinates that are in order")
	}
	if f.how.Dim != "" {
		return f.join(cmd, dir, args[1:])
	}
	if f.o.AnyOrder || f.how.Rectilinear || f.o.Strict || f.how.Replace {
		return usagef("import: --any-order, --rectilinear, --strict and --overlap need --append-dim or --new-dim")
	}
	return f.copy(cmd, dir, args[1])
}

// versions imports every version of a source. Flags that select or place one are refused.
func (f *importFlags) versions(cmd *cobra.Command, dir, source string) error {
	for _, name := range []string{"to", "branch", "message", "overwrite", "resume", "append-dim", "new-dim", "any-order", "rectilinear", "strict", "overlap", "session"} {
		if cmd.Flags().Changed(name) {
			return usagef("import: --%s and --history exclude each other", name)
		}
	}
	if f.o.To != "" || f.o.Branch != "" {
		return usagef("import: a history goes to the root of a database, name it alone")
	}
	return f.all(cmd, dir, source, engine.HistoryOptions{Prefix: f.prefix, Author: f.o.Author, Link: f.o.Link, Validate: f.o.Validate})
}

var validations = map[string]engine.Validate{
	"local": engine.ValidateLocal, "all": engine.ValidateAll, "none": engine.ValidateNone,
}

// importDest reads the first argument of import, which may name a branch and a
// path of a database that is there. Arguments in the wrong order are refused.
func importDest(args []string, o *engine.ImportOptions) (dir string, err error) {
	arg := args[0]
	t := parseTarget(arg)
	if t.db == "" {
		if strings.Contains(arg, "|") || rootURL.MatchString(arg) {
			return "", usagef("import: %s is a URL, a database is a directory of this machine", zurl.Redact(arg))
		}
		if len(args) == 2 && (parseTarget(args[1]).db != "" || isAbsent(args[1])) {
			info, _ := os.Stat(arg)
			if files, _ := os.ReadDir(arg); len(files) > 0 || info != nil && !info.IsDir() {
				return "", usagef("import: %s is not a database; the database comes first: zarrdb import %s %s", arg, args[1], arg)
			}
		}
		return arg, nil
	}
	if t.rev != "" {
		if o.Branch != "" && o.Branch != t.rev {
			return "", usagef("import: onto branch %s or %s?", t.rev, o.Branch)
		}
		o.Branch = t.rev
	}
	if t.path != "" {
		if o.To != "" && strings.Trim(o.To, "/") != t.path {
			return "", usagef("import: to %s or %s?", t.path, o.To)
		}
		o.To = t.path
	}
	return t.db, nil
}

// isAbsent reports whether an argument is a plain path at which there is nothing.
func isAbsent(arg string) bool {
	if strings.Contains(arg, "|") || rootURL.MatchString(arg) {
		return false
	}
	_, err := os.Lstat(arg)
	return errors.Is(err, fs.ErrNotExist)
}

func (f *importFlags) copy(cmd *cobra.Command, dir, source string) error {
	ctx, src, o := cmd.Context(), &f.src, f.o
	if t := parseTarget(source); t.db != "" && sameFile(t.db, dir) {
		return usagef("import: %s is in the same database: use zarrdb cp, with --from for another version", source)
	}
	from, err := src.open(cmd, source)
	if err != nil {
		return err
	}
	defer from.Close()
	// What cannot be imported makes no database.
	if o.Link {
		err = from.IsReferenceSet(ctx)
	} else {
		_, err = from.Survey(ctx)
	}
	if err != nil {
		return err
	}
	if o.Message == "" {
		o.Message = "import " + zurl.Redact(source)
	}
	return f.into(cmd, dir, &engine.Options{Author: o.Author}, o.Branch, func(db *engine.DB) (*engine.ImportResult, error) {
		bar := newProgress(cmd, "importing", "keys")
		o.Progress = bar.update
		res, err := db.Import(ctx, from, o)
		bar.finish(err)
		if err == nil && res.Strange != nil {
			e := res.Strange
			say(cmd, "the group /%s has format %v and hides this, of format %v, from programs that open it; for a copy in its format: zarrdb export %s copy.zarr --format zarr%v, then zarrdb import %s copy.zarr --to %s --overwrite",
				e.Group, e.Above, e.Node, shellWord(zurl.Redact(source)), e.Above, shellWord(dir), shellWord(o.To))
		}
		return res, err
	})
}

// into imports into a database and prints what came of it. A database that was
// missing is made. The source was opened and looked through before, so a new database stays
// empty only if values cannot be read or the branch is wrong.
func (f *importFlags) into(cmd *cobra.Command, dir string, o *engine.Options, branch string, run func(*engine.DB) (*engine.ImportResult, error)) error {
	o.Create = true
	db, err := openDB(cmd, dir, o)
	if err != nil {
		return err
	}
	base, _ := db.Head(cmd.Context(), branch) // a branch that is missing is an error of the import
	res, err := run(db)
	if err != nil {
		err = onlyBranches(db, branch, err)
		return errors.Join(err, db.Close())
	}
	f.imported(cmd, dir, res, base)
	out := importedJSON{Branch: orMain(branch), Nodes: res.Nodes, Keys: res.Keys, Bytes: res.Bytes, Encoded: res.Encoded, Appended: res.Appended, Replaced: res.Replaced, Gaps: res.AllGaps, Healed: res.Healed}
	if res.Commit != nil {
		c := report.NewCommit(res.Commit)
		out.Commit, out.Changed = &c, res.Commit.ID != base
	}
	return errors.Join(f.print(cmd, out), db.Close())
}

// importedJSON is the result of an import for --json. Commit is the head of the branch
// afterwards; an import into a session has none.
type importedJSON struct {
	Branch  string         `json:"branch"`
	Changed bool           `json:"changed"`
	Commit  *report.Commit `json:"commit,omitempty"`
	Nodes   int64          `json:"nodes"`
	Keys    int64          `json:"keys"`
	Bytes   int64          `json:"bytes"`
	Encoded int64          `json:"encoded,omitempty"` // bytes
	// Appended, Replaced and Gaps are those of an append.
	Appended int64 `json:"appended,omitempty"`
	Replaced int64 `json:"replaced,omitempty"`
	Gaps     int   `json:"gaps,omitempty"`
	Healed   int64 `json:"healed,omitempty"`
}

// print prints a result if --json asks for it.
func (f *importFlags) print(cmd *cobra.Command, v any) error {
	if f.out == nil {
		return nil
	}
	cmd.SetOut(f.out)
	return printJSON(cmd, v)
}

// all imports every version of a source.
func (f *importFlags) all(cmd *cobra.Command, dir, source string, o engine.HistoryOptions) error {
	ctx, src := cmd.Context(), &f.src
	from, err := src.open(cmd, source)
	if err != nil {
		return err
	}
	defer from.Close()
	if err := from.HasHistory(ctx); err != nil {
		if t := parseTarget(source); t.db != "" {
			return fmt.Errorf("%w; for a database with its history: zarrdb clone %s %s", err, shellWord(t.db), shellWord(dir))
		}
		if errors.Is(err, engine.ErrFormat) {
			err = fmt.Errorf("%w; for what it holds now: zarrdb import %s %s", err, shellWord(dir), shellWord(zurl.Redact(source)))
		}
		return err
	}
	db, err := openDB(cmd, dir, &engine.Options{Author: o.Author, Create: true})
	if err != nil {
		return err
	}
	bar := newProgress(cmd, "importing", "versions")
	o.Progress = bar.update
	res, err := db.ImportHistory(ctx, from, o)
	bar.finish(err)
	if err != nil {
		if errors.Is(err, context.Canceled) {
			err = againError{err}
		}
		return errors.Join(err, db.Close())
	}
	out := cmd.OutOrStdout()
	fmt.Fprintf(out, "%d versions imported", res.Versions)
	if res.Known > 0 {
		fmt.Fprintf(out, ", %d were here", res.Known)
	}
	fmt.Fprintf(out, "; %d keys, %s; branches %s", res.Keys, size(res.Bytes), strings.Join(res.Branches, ", "))
	if len(res.Tags) > 0 {
		fmt.Fprintf(out, "; tags %s", strings.Join(res.Tags, ", "))
	}
	fmt.Fprintln(out)
	var renamed []string
	for n, name := range res.Renamed {
		kind := "branch"
		if n.Tag {
			kind = "tag"
		}
		renamed = append(renamed, fmt.Sprintf("the %s %q is called %s here", kind, n.Name, name))
	}
	slices.Sort(renamed)
	for _, line := range renamed {
		say(cmd, "%s", line)
	}
	notFollowed(cmd, dir, res.NotGranted, res.Forbidden)
	return errors.Join(f.print(cmd, map[string]any{
		"versions": res.Versions, "known": res.Known, "keys": res.Keys, "bytes": res.Bytes, "branches": res.Branches, "tags": append([]string{}, res.Tags...),
	}), db.Close())
}

// join appends the sources along a dimension.
func (f *importFlags) join(cmd *cobra.Command, dir string, sources []string) (err error) {
	ctx, src, how, o := cmd.Context(), &f.src, f.how, f.o
	src.opened = &openOnce{}
	defer func() { err = errors.Join(err, src.opened.close()) }()
	var pieces []engine.Piece
	var comparing *phases
	var opened atomic.Int64
	for _, source := range sources {
		if t := parseTarget(source); t.db != "" && sameFile(t.db, dir) {
			return usagef("import: %s is in the same database: export what is to be appended first", source)
		}
		pieces = append(pieces, engine.Piece{Name: source, Open: func(ctx context.Context) (*engine.Source, error) {
			comparing.say(fmt.Sprintf("comparing %d of %d sources", min(opened.Add(1), int64(len(sources))), len(sources)))
			return src.openIn(ctx, cmd, source)
		}})
	}
	follow, err := src.follow()
	if err != nil {
		return err
	}
	comparing = newPhases(cmd)
	how.Link = o.Link
	plan, err := engine.PlanAppend(ctx, pieces, how)
	comparing.finish()
	if err == nil && !engine.IsDatabase(dir) {
		err = plan.Fits(ctx) // what cannot be joined makes no database
	}
	if err != nil {
		return waysOn(err)
	}
	if o.Message == "" {
		var named []string
		for _, source := range sources[:min(len(sources), 3)] {
			named = append(named, zurl.Redact(source))
		}
		o.Message = fmt.Sprintf("append %s along %s", strings.Join(named, ", "), how.Dim)
		if more := len(sources) - 3; more > 0 {
			o.Message = fmt.Sprintf("%s (and %d more)", o.Message, more)
		}
	}
	return f.into(cmd, dir, &engine.Options{Author: o.Author, Follow: follow}, o.Branch, func(db *engine.DB) (*engine.ImportResult, error) {
		bar := newProgress(cmd, "appending", "keys")
		o.Progress = bar.update
		res, err := db.Append(ctx, plan, o)
		bar.finish(err)
		if order := (*engine.OrderError)(nil); errors.As(err, &order) {
			err = fmt.Errorf("%w; --any-order joins them all the same", err)
			if !o.Link && !how.Replace && !how.Rectilinear && how.Labels == nil {
				err = fmt.Errorf("%w, and --overlap replace puts steps that are there in their place", err)
			}
		}
		return res, waysOn(err)
	})
}

// packing are the attributes from which readers compute numbers. The command does not
// propose to change them: the numbers would be others.
var packing = []string{"scale_factor", "add_offset", "_Unsigned", "_FillValue", "missing_value"}

// waysOn adds to the error of an append what the user can do about its differences.
func waysOn(err error) error {
	var none *engine.NoDimensionError
	if errors.As(err, &none) {
		return fmt.Errorf("%w; --new-dim %s=VALUE,... joins the sources along a new one, with a value for each", err, shellWord(none.Dim))
	}
	var e *engine.MisfitError
	if !errors.As(err, &e) {
		return err
	}
	var ways []string
	mends := map[string]string{} // by source
	var order []string
	for _, d := range append([]*engine.MisfitError{e}, e.Others...) {
		source, mend, way := d.Files[0], "", "--to PATH keeps the sources apart"
		switch attribute, is := strings.CutPrefix(d.Field, "attribute "); {
		case d.Copied:
			way = "without --link the sources are copied and joined"
		case is && slices.Contains(packing, attribute):
			way = "values that are packed otherwise have to be written anew, as xarray does with the encoding of the first source"
		case is && d.Want == "missing":
			mend = "attrs %s --delete " + shellWord(attribute)
		case is:
			mend = "attrs %s --set " + shellWord(attribute+"="+d.Want) + " if the numbers mean that"
		case d.Field == "array" && d.Want == "there":
			source = d.From
			fallthrough
		case d.Field == "array":
			mend = "rm %s"
		case d.Field == "values":
			mend = "write %s"
		case d.Field == "chunk_grid" && strings.HasPrefix(d.Got[0], "not to be joined"):
			way = "without --rectilinear the elements are encoded again"
		case d.Field == "zarr_format":
			way = fmt.Sprintf("zarrdb export %s NEW --format zarr%s converts a source", shellWord(source), d.Want)
		}
		if mend == "" {
			if !slices.Contains(ways, way) {
				ways = append(ways, way)
			}
			continue
		}
		path := "NEW.zdb:" + d.Path
		if there, is := strings.CutSuffix(source, " of the database"); is {
			path, source = "DB:"+strings.TrimPrefix(there, "/"), ""
		}
		if mends[source] == "" {
			order = append(order, source)
		}
		if len(mends[source]) < 400 {
			mends[source] += ", then zarrdb " + strings.Replace(mend, "%s", shellWord(path), 1)
		}
	}
	for _, source := range order {
		if source == "" {
			ways = append(ways, strings.TrimPrefix(mends[source], ", then "))
		} else {
			ways = append(ways, fmt.Sprintf("zarrdb import NEW.zdb %s%s, then append NEW.zdb in place of %[1]s", shellWord(source), mends[source]))
		}
	}
	return fmt.Errorf("%w; what helps: %s", err, strings.Join(ways[:min(len(ways), 4)], "; and "))
}

// notFollowed warns of references that were linked and are not followed.
func notFollowed(cmd *cobra.Command, dir string, notGranted error, forbidden []string) {
	if notGranted != nil {
		say(cmd, "reading needs --allow or --url-map again: %s", fault.OneLine(notGranted))
	}
	if len(forbidden) > 0 {
		args := []string{"zarrdb", "refs", "allow", shellWord(dir)}
		for _, prefix := range forbidden {
			args = append(args, shellWord(zurl.Redact(prefix)))
		}
		and := ""
		if len(forbidden) == engine.MaxForbidden {
			and = " (there may be more)"
		}
		note(cmd, "zarrdb: chunks were linked that are not read before you allow it%s: %s", and, strings.Join(args, " "))
	}
}

// imported prints what an import did.
func (f *importFlags) imported(cmd *cobra.Command, dir string, res *engine.ImportResult, base txn.CommitID) {
	if res.Commit != nil && !f.json {
		printResult(cmd, res.Commit, base, res.Healed)
	}
	notFollowed(cmd, dir, res.NotGranted, res.Forbidden)
	for i, err := range res.Unreadable {
		say(cmd, "imported as it is, and not to be read: %s", fault.OneLine(err))
		if way := report.Undecoded(err); way != "" && !slices.ContainsFunc(res.Unreadable[:i], func(err error) bool { return report.Undecoded(err) == way }) {
			note(cmd, "zarrdb: %s%s", fault.OneLine(err), way)
		}
	}
	if more := res.AllUnreadable - int64(len(res.Unreadable)); more > 0 {
		say(cmd, "imported as they are, and not to be read: %s more", count(more, "array"))
	}
	leftOut(cmd, res.LeftOut)
	for _, g := range res.Gaps {
		warn(cmd, "a gap: "+g.String())
	}
	if more := res.AllGaps - len(res.Gaps); more > 0 {
		warn(cmd, count(int64(more), "gap")+" more")
	}
	if f.json {
		return
	}
	if res.Appended+res.Replaced > 0 {
		say(cmd, "%s appended, %d replaced", count(res.Appended, "step"), res.Replaced)
	}
	what := fmt.Sprintf("%s, %s, %s", count(res.Nodes, "node"), count(res.Keys, "key"), size(res.Bytes))
	if res.Encoded > 0 {
		what += fmt.Sprintf("; values of %s encoded again", size(res.Encoded))
	}
	say(cmd, "%s", what)
}

func versionCmd() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "Print the versions of the program and of its formats",
		Example: `  zarrdb version`,
		Args:    argCount(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if asJSON {
				return printJSON(cmd, map[string]any{"version": version(), "database_format": txn.Format, "pack_format": txn.PackFormat})
			}
			say(cmd, "zarrdb version %s", versionText())
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print as JSON")
	return cmd
}

// leftOut names the databases in a copied directory that were not copied.
func leftOut(cmd *cobra.Command, databases []string) {
	for _, name := range databases {
		say(cmd, "left out: %s is a database", name)
	}
}
