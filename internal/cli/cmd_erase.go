package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/txn"
)

func eraseCmd() *cobra.Command {
	var o txn.EraseOptions
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "erase DB:PATH",
		Short: "Take an array or a key out of all history",
		Long: `Take an array, a group or a key out of every version of all branches and tags: a subject
who withdraws, a secret. Commits that had it, and all that follow, are made again with
the same author, time and message, and get new ids; consolidated metadata loses it
too. All branches and tags move at once, or none does. "zarrdb rm" only takes it out of
the next version.

The old versions expire: "zarrdb undo" and revisions such as main@{1} do not bring them
back. "zarrdb gc" then removes every byte that only they had from the files of the
database, as soon as no program has such a version open.

It is refused while a session is based on a version that has it, while such a version is
kept by name, while a branch or tag that has it is protected, and, without --force, while
a bucket has it, as far as the last push or pull told. Clones, backups and buckets keep
what they have: erase it there too, or push with --force. An array that had another name
in earlier versions stays there under that name, which is printed.`,
		Example: `  zarrdb erase study.zdb:subject-17 --dry-run
  zarrdb erase study.zdb:subject-17 && zarrdb gc study.zdb`,
		Args: argCount(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := parseDB(args[0])
			if err != nil {
				return err
			}
			switch {
			case t.rev != "":
				return usagef("erase: it is about all versions, leave out @%s", t.rev)
			case strings.Trim(t.path, "/") == "":
				return usagef("erase: what? zarrdb erase %s:PATH", shellWord(t.db))
			}
			var access *engine.Options
			if o.DryRun {
				access = readOnly
			}
			return t.with(cmd, access, func(t target, db *engine.DB) error {
				r, err := db.Erase(cmd.Context(), strings.Trim(t.path, "/"), o)
				if err != nil {
					return err
				}
				if asJSON {
					return printJSON(cmd, eraseJSON(r))
				}
				for _, m := range r.Moves {
					say(cmd, "%s: %s -> %s", refText(m.Ref), m.Old.Short(), orNew(m.New))
				}
				say(cmd, "%s %s again", would(o.DryRun, "made", "would make"), count(r.Rewritten, "commit"))
				if r.Dropped > 0 {
					say(cmd, "%s that no branch or tag reaches %s", count(r.Dropped, "version"), would(o.DryRun, "expired", "would expire"))
				}
				for _, path := range r.Elsewhere {
					say(cmd, "the same array is at %s in other versions: erase that too", path)
				}
				for _, name := range r.Remotes {
					say(cmd, "%s has it still: \"zarrdb push --force\" replaces it", name)
				}
				if !o.DryRun {
					say(cmd, "zarrdb gc %s removes what only that had; clones and backups have it still", shellWord(t.db))
				}
				return nil
			})
		},
	}
	cmd.Flags().BoolVar(&o.Force, "force", false, "erase here what a bucket has")
	cmd.Flags().BoolVar(&o.DryRun, "dry-run", false, "only print what would move")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print as JSON")
	return cmd
}

// refText names the ref of a move for people.
func refText(ref string) string {
	if tag, ok := strings.CutPrefix(ref, "tags/"); ok {
		return "tag " + tag
	}
	return strings.TrimPrefix(ref, "heads/")
}

func orNew(id txn.CommitID) string {
	if id.IsZero() {
		return "(new)"
	}
	return id.Short()
}

func eraseJSON(r *txn.EraseReport) map[string]any {
	moves := []map[string]any{}
	for _, m := range r.Moves {
		kind, name := "branch", refText(m.Ref)
		if short, ok := strings.CutPrefix(name, "tag "); ok {
			kind, name = "tag", short
		}
		move := map[string]any{"kind": kind, "name": name, "old": m.Old.String()}
		if !m.New.IsZero() {
			move["new"] = m.New.String()
		}
		moves = append(moves, move)
	}
	return map[string]any{
		"moves": moves, "rewritten": r.Rewritten, "dropped": r.Dropped,
		"elsewhere": append([]string{}, r.Elsewhere...), "remotes": append([]string{}, r.Remotes...),
	}
}
