package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/txn"
)

func initCmd() *cobra.Command {
	return &cobra.Command{
		Use:     "init DB",
		Short:   "Make a new, empty database",
		Example: `  zarrdb init weather.zdb`,
		Args:    argCount(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			db, err := engine.Create(args[0], nil)
			if err != nil {
				return err
			}
			return db.Close()
		},
	}
}

func importCmd() *cobra.Command {
	var src sourceFlags
	var o engine.ImportOptions
	var session string
	cmd := &cobra.Command{
		Use:   "import DB SOURCE",
		Short: "Copy a store into a database",
		Long: `Copy a Zarr store of any version into a database, as one commit: nothing is
seen of it before it is complete. SOURCE is a TARGET; its format is detected.
Chunks are copied as they are, without decoding. DB is made if it is missing.

An import that is interrupted leaves the database as it was, and what it copied
in a session: the same command with --resume goes on from there.`,
		Example: `  zarrdb import weather.zdb ./era5.zarr
  zarrdb import weather.zdb 'file:///d/x.zip|zip:a/' --to x --branch incoming -m "first delivery"`,
		Args: argCount(2, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			from, err := src.open(ctx, args[1])
			if err != nil {
				return err
			}
			defer from.Close()
			db, err := engine.Open(args[0], &engine.Options{Create: true, Author: o.Author})
			if err != nil {
				return err
			}
			defer db.Close()
			if o.Message == "" {
				o.Message = "import " + args[1]
			}
			if session != "" {
				id, err := txn.ParseSessionID(session)
				if err != nil {
					return err
				}
				o.Session = &id
			}
			bar := newProgress(cmd, "importing")
			o.Progress = bar.update
			res, err := db.Import(ctx, from, o)
			bar.finish(err)
			if errors.Is(err, engine.ErrResumable) {
				return fmt.Errorf("%w: what was copied is kept, add --resume to go on", err)
			}
			if err != nil {
				return err
			}
			report(cmd, res.Commit)
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.To, "to", "", "put it at this `PATH` (default the root)")
	f.StringVar(&o.Branch, "branch", "", "import onto this branch (default main)")
	f.StringVarP(&o.Message, "message", "m", "", "what the commit does")
	f.StringVar(&o.Author, "author", "", "who did it (default user@host)")
	f.BoolVar(&o.Overwrite, "overwrite", false, "replace what is at PATH")
	f.BoolVar(&o.Resume, "resume", false, "go on with an import that was interrupted")
	f.StringVar(&session, "session", "", "import into the open session with this `ID` instead of committing")
	return cmd
}

func exportCmd() *cobra.Command {
	var src sourceFlags
	var o engine.ExportOptions
	cmd := &cobra.Command{
		Use:   "export TARGET DEST",
		Short: "Copy any version out to a Zarr store",
		Long: `Copy what TARGET names to a directory, or to a zip file if DEST ends in .zip.
Keys and bytes are written as they were imported or written, so that any Zarr
program reads the result. An interrupted export goes on with --resume.`,
		Example: `  zarrdb export weather.zdb@v1.0 ./v1.zarr
  zarrdb export weather.zdb:temp temp.zip`,
		Args: argCount(2, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := src.open(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			defer s.Close()
			bar := newProgress(cmd, "exporting")
			o.Progress = bar.update
			_, err = engine.Export(cmd.Context(), s, args[1], o)
			bar.finish(err)
			return err
		},
	}
	f := cmd.Flags()
	f.BoolVar(&o.Overwrite, "overwrite", false, "replace DEST")
	f.BoolVar(&o.Resume, "resume", false, "go on with an export that was interrupted")
	src.register(cmd)
	return cmd
}

func versionCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the versions of the program and of its formats",
		Args:  argCount(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			cmd.Printf("zarrdb %s, database format %d\n", version(), txn.Format)
			return nil
		},
	}
}

func statsCmd() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "stats DB[@REV]",
		Short:   "Count what a database holds",
		Example: `  zarrdb stats weather.zdb`,
		Args:    argCount(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withDB(args[0], readOnly, func(t target, db *engine.DB) error {
				st, err := db.Stats(cmd.Context(), t.rev)
				if err != nil {
					return err
				}
				if asJSON {
					return printJSON(cmd, st)
				}
				cmd.Printf("branches %d, tags %d, commits %d, sessions %d\n", st.Branches, st.Tags, st.Commits, st.Sessions)
				cmd.Printf("groups %d, arrays %d\n", st.Groups, st.Arrays)
				cmd.Printf("keys %d: %d inline, %d native, %d virtual\n", st.Keys, st.Inline, st.Native, st.Virtual)
				cmd.Printf("stored bytes of this version: %s\n", size(st.Bytes))
				cmd.Printf("on disk: index %s, packs %s in %d files\n", size(st.IndexBytes), size(st.PackBytes), st.Packs)
				return nil
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print as JSON")
	return cmd
}

func fsckCmd() *cobra.Command {
	var o txn.CheckOptions
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "fsck DB",
		Short: "Verify a database",
		Long: `Verify that every commit, page and value that a ref, the reflog or a session
reaches is there and is what its name says. --full also reads every payload and
compares it with its checksum and hash. Exit code 5 if anything is damaged.`,
		Example: `  zarrdb fsck weather.zdb --full`,
		Args:    argCount(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withDB(args[0], readOnly, func(_ target, db *engine.DB) error {
				o.Found = func(p txn.Problem) { cmd.PrintErrln(p.Error()) }
				r, err := db.Check(cmd.Context(), o)
				if err != nil {
					return err
				}
				if asJSON {
					err = printJSON(cmd, map[string]int64{
						"refs": r.Refs, "commits": r.Commits, "sessions": r.Sessions, "pages": r.Pages, "values": r.Values,
						"payloads": r.Payloads, "payload_bytes": r.PayloadBytes, "problems": int64(len(r.Problems)),
					})
				} else {
					cmd.Printf("%d refs, %d commits, %d sessions, %d pages, %d values, %d payloads of %s\n",
						r.Refs, r.Commits, r.Sessions, r.Pages, r.Values, r.Payloads, size(r.PayloadBytes))
				}
				if n := len(r.Problems); n > 0 {
					return fmt.Errorf("%s: %d problems, the first: %w", args[0], n, engine.Damaged(r.Problems[0]))
				}
				return err
			})
		},
	}
	cmd.Flags().BoolVar(&o.Payloads, "full", false, "read every payload")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the counts as JSON")
	return cmd
}
