package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/txn"
)

func checkoutCmd() *cobra.Command {
	var o engine.CheckoutOptions
	var update, asJSON bool
	cmd := &cobra.Command{
		Use:   "checkout DB[@REV][:PATH] DIR",
		Short: "Write a version to a folder that \"commit\" takes back",
		Long: `Write a version to a directory of plain Zarr, for tools that take only a path; "zarrdb commit DIR" then takes what
they changed. With --only, repeated, just these arrays and groups are there. What zarrdb knows of DIR lies beside it, in
.DIR.zarrdb, so that a tool may remove DIR and make it again: move both together. The version is kept from expiring
until "zarrdb keep DB --end NAME". Files are copies.

The same command goes on with a checkout that was interrupted, and moves a folder to another version; --update moves it
to the end of its branch. Changes that the version does not touch stay. Where both changed a file nothing is done (exit
code 3), unless --keep or --discard say for its path what becomes of the folder's change.`,
		Example: `  zarrdb checkout weather.zdb era5.zarr
  zarrdb checkout weather.zdb@v1.0 part.zarr --only t2m --only u10
  zarrdb checkout --update era5.zarr`,
		Args: argCount(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			dir := args[len(args)-1]
			at := args[0]
			if update != (len(args) == 1) {
				return usagef("checkout: DB@REV and DIR, or --update DIR")
			}
			if update {
				info, err := engine.OpenFolder(cmd.Context(), dir)
				if err != nil {
					return err
				}
				if info.Branch == "" {
					return usagef("checkout --update: a version was checked out to %s, not a branch: zarrdb checkout %s@REV %[1]s", dir, shellWord(info.Database))
				}
				at = info.Database + "@" + info.Branch
			}
			t, err := parseDB(at)
			if err != nil {
				return err
			}
			if engine.IsRemote(t.db) {
				return usagef("checkout: %s is a remote, which takes no commits of folders: \"zarrdb clone\" it, or \"zarrdb export\" it", t.db)
			}
			o.Path = t.path
			bar := newProgress(cmd, "checking out", "files")
			o.Progress = bar.update
			return t.with(cmd, nil, func(t target, db *engine.DB) error {
				res, err := db.Checkout(cmd.Context(), t.rev, dir, o)
				bar.finish(err)
				switch {
				case err != nil && cmd.Context().Err() != nil:
					return againError{err}
				case err != nil:
					return err
				case asJSON:
					return printJSON(cmd, res)
				}
				say(cmd, "%s %s: %s written, %d removed, %s", short(res.Commit), dir, count(res.Written, "file"), res.Removed, size(res.Bytes))
				return nil
			})
		},
	}
	cmd.Flags().StringArrayVar(&o.Only, "only", nil, "only the node at `PATH`; repeated for several")
	cmd.Flags().BoolVar(&update, "update", false, "move the folder to the end of its branch")
	cmd.Flags().StringArrayVar(&o.Keep, "keep", nil, "where the folder and the version differ at `PATH` or below (/ for all), keep the folder's files, as changes")
	cmd.Flags().StringArrayVar(&o.Discard, "discard", nil, "drop the changes of the folder at `PATH` or below (/ for all)")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the result as JSON")
	return cmd
}

// commitFolder commits a folder, or lists its changes.
func commitFolder(cmd *cobra.Command, dir string, o engine.FolderCommitOptions, flags *choiceFlags) error {
	if flags.dryRun {
		st, err := engine.StatusOfFolder(cmd.Context(), dir, o.Verify)
		if err != nil {
			return err
		}
		if flags.json {
			return printJSON(cmd, st)
		}
		sayFolder(cmd, st)
		return nil
	}
	info, err := engine.OpenFolder(cmd.Context(), dir)
	if err != nil {
		return err
	}
	if !engine.IsDatabase(info.Database) {
		return fmt.Errorf("%s: its database %s: %w; if it was moved, \"zarrdb checkout DB@REV %[1]s\" tells the folder where it is", dir, info.Database, txn.ErrNotDatabase)
	}
	if o.Choices, err = flags.choices(cmd); err != nil {
		return err
	}
	o.Decided = flags.note
	db, err := openDB(cmd, info.Database, &engine.Options{Author: o.Author})
	if err != nil {
		return err
	}
	defer db.Close()
	discarded.Add(1)
	defer discarded.Add(-1)
	bar := newProgress(cmd, "committing", "files")
	o.Progress = bar.update
	out, err := db.CommitFolder(cmd.Context(), dir, o)
	bar.finish(err)
	if out != nil && !flags.json {
		for _, key := range out.LeftOut {
			say(cmd, "left out: %s", key)
		}
	}
	var conflict *txn.ConflictError
	if errors.As(err, &conflict) && !conflict.Rewound() {
		err = fmt.Errorf("%w; the folder is as it was: --theirs PATH commits what it has, --ours PATH takes what the branch has", err)
	}
	if out == nil || out.Commit == nil {
		if out != nil {
			return flags.told(cmd, info.Branch, nil, out.Base, err)
		}
		return err
	}
	flags.healed = out.Healed
	return errors.Join(flags.told(cmd, out.Branch, out.Commit, out.Base, nil), err)
}

// sayFolder lists the changes of a folder by array.
func sayFolder(cmd *cobra.Command, st *engine.FolderStatus) {
	if st.Unfinished {
		say(cmd, "a command that changes the folder was interrupted; the next one goes on with it")
	}
	from := st.Branch
	if from == "" {
		from = "no branch"
	}
	say(cmd, "%s of %s, %s", short(st.Commit), st.Database, from)
	byNode := map[string][]engine.FolderChange{}
	var nodes []string
	for _, c := range st.Changes {
		if byNode[c.Node] == nil {
			nodes = append(nodes, c.Node)
		}
		byNode[c.Node] = append(byNode[c.Node], c)
	}
	slices.Sort(nodes)
	for _, node := range nodes {
		ops := map[string]int{}
		for _, c := range byNode[node] {
			ops[c.Op]++
		}
		var parts []string
		for _, op := range []string{"added", "changed", "removed"} {
			if ops[op] > 0 {
				parts = append(parts, fmt.Sprintf("%d %s", ops[op], op))
			}
		}
		say(cmd, "/%s: %s", node, strings.Join(parts, ", "))
		for i, c := range byNode[node] {
			if i == maxFolderKeys {
				say(cmd, "  and %d more; --json lists them", len(byNode[node])-i)
				break
			}
			say(cmd, "  %-8s %s", c.Op, c.Key)
		}
	}
	if len(nodes) == 0 {
		say(cmd, "nothing changed")
	}
	for _, key := range st.LeftOut {
		say(cmd, "left out: %s", key)
	}
}

// maxFolderKeys bounds the changed keys of a node that are listed.
const maxFolderKeys = 20
