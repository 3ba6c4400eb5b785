package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/txn"
)

// transferFlags are those that the commands which carry versions share.
type transferFlags struct {
	o    txn.TransferOptions
	json bool
}

func (f *transferFlags) add(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().BoolVar(&f.json, "json", false, "print as JSON")
	return cmd
}

// run shows progress and prints the report.
func (f *transferFlags) run(cmd *cobra.Command, did string, fn func(context.Context, txn.TransferOptions) (*txn.TransferReport, error)) error {
	if f.o.Depth < 0 || cmd.Flags().Changed("depth") && f.o.Depth == 0 {
		return usagef("--depth: it must be at least 1")
	}
	bar := newPhases(cmd)
	o := f.o
	o.Progress = func(p txn.TransferProgress) { bar.update(p.Phase, p.Done) }
	r, err := fn(cmd.Context(), o)
	bar.finish()
	if err != nil {
		return err
	}
	if f.json {
		return printJSON(cmd, map[string]int64{
			"commits": r.Commits, "records": r.Records, "pages": r.Pages, "page_bytes": r.PageBytes,
			"payload_bytes": r.PayloadBytes, "present_bytes": r.PresentBytes, "packs": r.Packs, "verified": r.Verified,
			"refs": int64(len(r.Moves)),
		})
	}
	cmd.Printf("%s %s: %s of index, %s of payloads; %s verified; %s moved\n", did, count(r.Commits, "version"),
		size(r.PageBytes), size(r.PayloadBytes), count(r.Verified, "payload"), count(int64(len(r.Moves)), "ref"))
	return nil
}

func backupCmd() *cobra.Command {
	var f transferFlags
	return f.add(&cobra.Command{
		Use:   "backup DB DEST",
		Short: "Copy everything that is new to a backup",
		Long: `Make a backup of a database in the directory DEST, or bring the one that is
there up to date: all versions, branches, tags and reflogs, as of one moment.
Only what is new is copied; each payload is read back and compared. A backup is
a database, and commands that read take it as one. Open sessions and pins are
not part of it. One that was interrupted leaves the last backup as it was.

If DEST ends in .zip, it is a new zip file with everything, for "zarrdb restore".`,
		Example: `  zarrdb backup weather.zdb /mnt/disk/weather.zdb
  zarrdb backup weather.zdb weather-$(date +%F).zip`,
		Args: argCount(2, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withOnlyDB(cmd, args[0], readOnly, func(db *engine.DB) error {
				return f.run(cmd, "copied", func(ctx context.Context, o txn.TransferOptions) (*txn.TransferReport, error) {
					if strings.HasSuffix(args[1], ".zip") {
						return db.BackupZip(ctx, args[1], o)
					}
					return db.Backup(ctx, args[1], o)
				})
			})
		},
	})
}

func restoreCmd() *cobra.Command {
	var f transferFlags
	return f.add(&cobra.Command{
		Use:   "restore BACKUP DB",
		Short: "Make a database of a backup",
		Long: `Make the new database DB of a backup, a directory or a zip file, with everything
that is in it, and verify it. A restore that was interrupted is taken up by the same command.`,
		Example: `  zarrdb restore /mnt/disk/weather.zdb weather.zdb`,
		Args:    argCount(2, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.run(cmd, "restored", func(ctx context.Context, o txn.TransferOptions) (*txn.TransferReport, error) {
				return txn.Restore(ctx, args[0], args[1], nil, o)
			})
		},
	})
}

func cloneCmd() *cobra.Command {
	var f transferFlags
	cmd := f.add(&cobra.Command{
		Use:   "clone DB NEW",
		Short: "Copy a database with its history",
		Long: `Make the new database NEW with the branches and tags of another and all of
their history, and verify it. Commits keep their ids, so that push and pull
between the two move only what is missing.

--branch takes one branch, with the tags among its versions. --depth N takes the
contents of only the newest N versions of each branch or tag: older ones are in
the log, and cannot be opened. An interrupted clone is taken up by the same
command.`,
		Example: `  zarrdb clone weather.zdb copy.zdb
  zarrdb clone weather.zdb small.zdb --branch main --depth 1`,
		Args: argCount(2, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withOnlyDB(cmd, args[0], readOnly, func(db *engine.DB) error {
				return f.run(cmd, "copied", func(ctx context.Context, o txn.TransferOptions) (*txn.TransferReport, error) {
					return db.Clone(ctx, args[1], o)
				})
			})
		},
	})
	cmd.Flags().StringVar(&f.o.Branch, "branch", "", "only this branch")
	cmd.Flags().IntVar(&f.o.Depth, "depth", 0, "how many generations of versions are copied with contents")
	return cmd
}

func pushCmd() *cobra.Command {
	var f transferFlags
	return f.exchange(&cobra.Command{
		Use:   "push DB OTHER [BRANCH]",
		Short: "Bring another database's branch up to date",
		Long: `Copy the versions of a branch (main) that OTHER lacks to it, and move its branch
of the same name, which is made if it is not there. If that branch has versions
that DB does not have, nothing is done, and the exit code is 3: pull and merge
first, or drop them with --force; the reflog still has them.`,
		Example: `  zarrdb push weather.zdb /mnt/shared/weather.zdb
  zarrdb push weather.zdb /mnt/shared/weather.zdb trial`,
	}, false)
}

func pullCmd() *cobra.Command {
	var f transferFlags
	return f.exchange(&cobra.Command{
		Use:   "pull DB OTHER [BRANCH]",
		Short: "Bring a branch up to date from another database",
		Long: `Copy the versions of a branch (main) that DB lacks from OTHER, and move the
branch of the same name, which is made if it is not there. If the branch has
versions that OTHER does not have, nothing is done, and the exit code is 3.`,
		Example: `  zarrdb pull copy.zdb /mnt/shared/weather.zdb
  zarrdb pull copy.zdb /mnt/shared/weather.zdb trial --depth 1`,
	}, true)
}

// exchange adds what push and pull share; other says that OTHER is the source.
func (f *transferFlags) exchange(cmd *cobra.Command, other bool) *cobra.Command {
	cmd.Args = argCount(2, 3)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) > 2 {
			f.o.Branch = args[2]
		}
		from, to, did := args[0], args[1], "pushed"
		if other {
			from, to, did = to, from, "pulled"
		}
		return withOnlyDB(cmd, from, readOnly, func(src *engine.DB) error {
			return withOnlyDB(cmd, to, nil, func(dst *engine.DB) error {
				return f.run(cmd, did, func(ctx context.Context, o txn.TransferOptions) (*txn.TransferReport, error) {
					return txn.Push(ctx, src.DB, dst.DB, o)
				})
			})
		})
	}
	cmd.Flags().IntVar(&f.o.Depth, "depth", 0, "how many generations of versions are copied with contents")
	cmd.Flags().BoolVar(&f.o.Force, "force", false, "drop versions that only the branch which is moved has")
	return f.add(cmd)
}
