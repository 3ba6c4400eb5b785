package cli

import (
	"bufio"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/engine/zurl"
	"github.com/zarrdb/zarrdb/zarr"
)

func refsCmd() *cobra.Command {
	return grouping(&cobra.Command{
		Use:   "refs",
		Short: "Work with reference sets and virtual chunks",
		Long: `Reference sets (kerchunk) say for each key of a store which bytes of which file
are its value. import --link keeps them in a database as virtual chunks.

References are followed only below the folder of their set, below the targets of
--url-map, and below prefixes that --allow or "refs allow" names.

HTTPS servers get the bearer token of the variable ZARRDB_TOKEN_HOST (as in
ZARRDB_TOKEN_data_example_org; a hyphen becomes two underscores), else login and
password of the host in the file NETRC or ~/.netrc.`,
		Example: `  zarrdb refs list era5.zdb
  zarrdb refs expand refs.json`,
	}, refsAllowCmd(), refsListCmd(), refsExpandCmd(), refsCheckCmd(), refsLocalizeCmd())
}

func refsAllowCmd() *cobra.Command {
	var remove bool
	cmd := &cobra.Command{
		Use:   "allow DB [PREFIX...]",
		Short: "Let the virtual chunks of a database be read from elsewhere",
		Long: `Let every program of yours on this machine follow the references of a database
below these URLs or folders; a PREFIX is written as for --allow. The list is kept in your
configuration, not in the database, so it changes nothing for other users. A server reads
with the list of the user that runs the server.

The command prints all allowed prefixes, and FROM=TO for each --url-map. Without PREFIX
nothing is changed.`,
		Example: `  zarrdb refs allow era5.zdb s3://era5-pds/
  zarrdb refs allow era5.zdb
  zarrdb refs allow era5.zdb --remove s3://era5-pds/`,
		Args: argCount(1, -1),
		RunE: func(cmd *cobra.Command, args []string) error {
			follow, err := (&followFlags{allow: args[1:]}).follow()
			if err != nil {
				return err
			}
			return withOnlyDB(cmd, args[0], readOnly, func(db *engine.DB) error {
				var err error
				if remove {
					err = db.Revoke(follow.Allow...)
				} else {
					err = db.Grant(follow)
				}
				if err != nil {
					return err
				}
				all, err := db.Granted()
				for _, prefix := range all.Allow {
					say(cmd, "%s", zurl.Redact(prefix))
				}
				for _, m := range all.Map {
					say(cmd, "%s=%s", zurl.Redact(m.From), zurl.Redact(m.To))
				}
				return err
			})
		},
	}
	cmd.Flags().BoolVar(&remove, "remove", false, "allow them no more")
	return cmd
}

func refsListCmd() *cobra.Command {
	var src sourceFlags
	var asJSON bool
	cmd := src.reads(&cobra.Command{
		Use:   "list TARGET",
		Short: "List the files that references name",
		Long: `List the prefixes and the files that the references at and below TARGET name, a
version of a database or a reference set, with how many references there are and how
many bytes they refer to. Nothing is asked of the files, so that the sizes of those
that are referred to as a whole are not known. Of more than 65536 files, those in the
deepest folders are listed by folder.`,
		Example: `  zarrdb refs list weather.zdb
  zarrdb refs list weather.zdb@v1.0:temp --json`,
		Args: argCount(1, 1),
	}, func(cmd *cobra.Command, s *engine.Source, _ []string) error {
		bar := newProgress(cmd, "listing", "keys")
		files, err := s.Referred(cmd.Context(), bar.update)
		bar.finish(err)
		if err != nil {
			return err
		}
		type counts struct {
			URL        string `json:"url"`
			Files      int64  `json:"files,omitempty"` // of a prefix
			References int64  `json:"references"`
			Whole      int64  `json:"whole"` // of them, to whole files
			Bytes      int64  `json:"bytes"` // of the others
		}
		out := struct {
			Prefixes []counts `json:"prefixes"`
			Files    []counts `json:"files"`
		}{[]counts{}, []counts{}}
		for _, f := range files {
			n := len(out.Prefixes)
			if n == 0 || out.Prefixes[n-1].URL != f.Prefix {
				out.Prefixes, n = append(out.Prefixes, counts{URL: f.Prefix}), n+1
			}
			p := &out.Prefixes[n-1]
			p.Files, p.References, p.Whole, p.Bytes = p.Files+1, p.References+f.References, p.Whole+f.Whole, p.Bytes+f.Bytes
			out.Files = append(out.Files, counts{URL: f.URL, References: f.References, Whole: f.Whole, Bytes: f.Bytes})
		}
		if asJSON {
			return printJSON(cmd, out)
		}
		text := func(c counts) string {
			s := fmt.Sprintf("%s, %s", count(c.References, "reference"), size(c.Bytes))
			if c.Whole > 0 {
				s += fmt.Sprintf(" and %s", count(c.Whole, "whole file"))
			}
			return s
		}
		left := out.Files
		for _, p := range out.Prefixes {
			say(cmd, "%s  %s, %s", zurl.Redact(p.URL), count(p.Files, "file"), text(p))
			for _, f := range left[:p.Files] {
				say(cmd, "  %s  %s", zurl.Redact(f.URL), text(f))
			}
			left = left[p.Files:]
		}
		return nil
	})
	cmd.Flags().BoolVar(&asJSON, "json", false, "print as JSON")
	return cmd
}

func refsExpandCmd() *cobra.Command {
	var src sourceFlags
	cmd := &cobra.Command{
		Use:   "expand FILE",
		Short: "Print a JSON reference set as version 0",
		Long: `Print a JSON reference set in the form of version 0: templates rendered and
generators written out. FILE may be compressed with gzip or zstd.`,
		Example: `  zarrdb refs expand refs.json.zst > v0.json`,
		Args:    argCount(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := src.open(cmd, args[0])
			if err != nil {
				return err
			}
			defer s.Close()
			out := bufio.NewWriterSize(cmd.OutOrStdout(), 1<<16)
			if err := engine.ExpandReferences(cmd.Context(), s, out); err != nil {
				return err
			}
			return out.Flush()
		},
	}
	return cmd
}

func refsCheckCmd() *cobra.Command {
	var src sourceFlags
	var o engine.RefCheckOptions
	var asJSON bool
	cmd := src.reads(&cobra.Command{
		Use:   "check TARGET",
		Short: "Check that the referenced files and ranges exist",
		Long: `Ask for every file that the references at and below TARGET name, a version of a
database or a reference set: it must exist, be what it was when it was imported,
and have the bytes that are referred to. Nothing is read of the files. What is
wrong is printed, a line for each file with one of its references and how many more
there are; --json has all of them. A check that is interrupted says where --from
goes on; with --json that is "next".`,
		Example: `  zarrdb refs check weather.zdb:temp
  zarrdb refs check refs.json --allow s3://noaa/`,
		Args: argCount(1, 1),
		PreRunE: func(*cobra.Command, []string) error {
			if o.From < 0 {
				return usagef("refs check: --from %d is negative", o.From)
			}
			return nil
		},
	}, func(cmd *cobra.Command, s *engine.Source, _ []string) error {
		bar := newProgress(cmd, "checking", "keys")
		o.Progress = bar.update
		out := refCheckOutput{cmd: cmd, json: asJSON}
		o.Problem = out.problem
		r, err := s.CheckReferences(cmd.Context(), o)
		bar.finish(err)
		if r == nil {
			return err
		}
		return out.end(r, o.From, err)
	})
	cmd.Flags().Int64Var(&o.From, "from", 0, "leave out the first `N` references")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print counts and problems as JSON")
	return cmd
}

func refsLocalizeCmd() *cobra.Command {
	var wf writeFlags
	var selections []string
	cmd := &cobra.Command{
		Use:   "localize TARGET... [--select SEL]...",
		Short: "Copy the bytes of virtual chunks into the database",
		Long: `Copy the bytes of the virtual chunks at and below the path of each TARGET into the
database, as one commit. The arrays read the same, and need the files no more.
Versions from before still refer to them.

--select takes only the chunks, or shards, of an array that hold something of
SEL, which is as for read. One is for every TARGET; several are for one each, in
their order.`,
		Example: `  zarrdb refs localize weather.zdb:temp -m "keep temp here"
  zarrdb refs localize weather.zdb:temp weather.zdb:wind --select "time='2020-01':'2020-03'"`,
		Args: argCount(1, -1),
		RunE: func(cmd *cobra.Command, args []string) error {
			parts, err := localizedParts(args, selections)
			if err != nil {
				return err
			}
			var keys, bytes int64
			err = wf.update(cmd, parts[0].target, localizeMessage(parts), func(db *engine.DB, s *engine.Session) (err error) {
				keys, bytes, err = localize(cmd, db, s, parts)
				return err
			})
			if err == nil {
				say(cmd, "%s, %s", count(keys, "chunk"), size(bytes))
			}
			return err
		},
	}
	wf.register(cmd)
	cmd.Flags().StringArrayVarP(&selections, "select", "s", nil, "which part of an array, `SEL` (default all at and below the path)")
	return cmd
}

// localizedPart is the part that one argument of localize names.
type localizedPart struct {
	target
	sel string
}

func (p localizedPart) String() string {
	if p.sel == "" {
		return "/" + p.path
	}
	return "/" + p.path + "[" + p.sel + "]"
}

// localizedParts pairs targets, which are of one branch, with selections.
func localizedParts(targets, selections []string) ([]localizedPart, error) {
	if len(selections) > 1 && len(selections) != len(targets) {
		return nil, usagef("localize: %d selections for %d targets: one for all or one for each is possible", len(selections), len(targets))
	}
	parts := make([]localizedPart, len(targets))
	for i, arg := range targets {
		t, err := parseDB(arg)
		if err != nil {
			return nil, err
		}
		if first := parts[0].target; i > 0 && (t.rev != first.rev || t.db != first.db && !sameFile(t.db, first.db)) {
			return nil, usagef("localize: %s and %s are not of one branch of one database, and it is one commit", targets[0], arg)
		}
		parts[i].target = t
		if n := len(selections); n > 0 {
			parts[i].sel = selections[min(i, n-1)]
		}
	}
	return parts, nil
}

// localizeMessage is the default message of the commit.
func localizeMessage(parts []localizedPart) string {
	const named = 3
	var names []string
	for _, p := range parts[:min(len(parts), named)] {
		names = append(names, p.String())
	}
	message := "localize " + strings.Join(names, ", ")
	if more := len(parts) - named; more > 0 {
		message = fmt.Sprintf("%s (and %d more)", message, more)
	}
	return message
}

// localize copies the parts. It checks all selections before it copies.
func localize(cmd *cobra.Command, db *engine.DB, s *engine.Session, parts []localizedPart) (keys, bytes int64, err error) {
	which := make([]*zarr.Selection, len(parts))
	for i, p := range parts {
		if which[i], err = p.selection(cmd, s); err != nil {
			return 0, 0, err
		}
	}
	bar := newProgress(cmd, "copying", "keys")
	defer func() { bar.finish(err) }()
	for i, p := range parts {
		before := engine.Progress{Keys: keys, Bytes: bytes}
		k, n, err := db.Localize(cmd.Context(), s, p.path, engine.LocalizeOptions{Select: which[i], Progress: func(done engine.Progress) {
			bar.update(engine.Progress{Keys: before.Keys + done.Keys, Bytes: before.Bytes + done.Bytes})
		}})
		if err != nil {
			return 0, 0, err
		}
		keys, bytes = keys+k, bytes+n
	}
	return keys, bytes, nil
}

// selection parses the selection of the array at the path; nil without one.
func (p localizedPart) selection(cmd *cobra.Command, s *engine.Session) (*zarr.Selection, error) {
	if p.sel == "" {
		return nil, nil
	}
	n, err := s.Node(cmd.Context(), p.path)
	if err != nil {
		return nil, err
	}
	a, ok := n.Array()
	if !ok {
		return nil, usagef("localize /%s: --select needs an array, and it is a group", p.path)
	}
	sel, err := parseSelection(cmd, p.sel, a, engine.Beside(s, p.path))
	return &sel, err
}
