package cli

import (
	"context"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/internal/report"
	"github.com/zarrdb/zarrdb/txn"
)

// withDB opens the database of a target with an optional version and without a
// path.
func withDB(cmd *cobra.Command, s string, o *engine.Options, fn func(t target, db *engine.DB) error) error {
	t, err := parseDB(s)
	if err == nil {
		err = t.wholeDB(cmd)
	}
	if err != nil {
		return err
	}
	return t.with(cmd, o, fn)
}

// withOnlyDB opens a database for a command that is about all versions.
func withOnlyDB(cmd *cobra.Command, s string, o *engine.Options, fn func(db *engine.DB) error) error {
	return withDB(cmd, s, o, func(t target, db *engine.DB) error {
		if t.rev != "" {
			return usagef("%s: it is about all versions, leave out @%s", cmd.CommandPath(), t.rev)
		}
		return fn(db)
	})
}

func (t target) with(cmd *cobra.Command, o *engine.Options, fn func(t target, db *engine.DB) error) error {
	db, err := openDB(cmd, t.db, o)
	if err != nil {
		return err
	}
	defer db.Close()
	return fn(t, db)
}

// readOnly are the options of commands that change nothing.
var readOnly = &engine.Options{ReadOnly: true}

func logCmd() *cobra.Command {
	var f logFlags
	cmd := &cobra.Command{
		Use:   "log TARGET [-- PATH]",
		Short: "List commits, newest first",
		Long: `List the commits that led to a version (default main), newest first; with a path,
those that changed what is at or below it. With --follow, arrays are followed to
where they were renamed from, and groups by the arrays in them. With --values, the
commits that changed values of an array, or of the part that --select names: values
are compared along the history of the chunks concerned, and renames are followed.

TARGET is DB[@REV][:PATH]. It may be a store in a foreign format with versions too,
of which all versions are listed that led to the one that is named: db/|ocdbt:@v7/.`,
		Example: `  zarrdb log weather.zdb
  zarrdb log weather.zdb@experiment -n 5 --oneline
  zarrdb log weather.zdb --follow -- temp
  zarrdb log weather.zdb:temp --values --select 0,100,200
  zarrdb log 's3://bucket/weather.ocdbt/|ocdbt:'`,
		Args: argCount(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			src, named, err := openVersions(cmd, args[0])
			if err != nil {
				return err
			}
			if src != nil {
				defer src.Close()
				if len(args) == 2 || f.followed || f.values {
					return usagef("%s: PATH, --follow and --values need a database", cmd.CommandPath())
				}
				return f.source(cmd, src, named)
			}
			t, err := parseDB(args[0])
			if err != nil {
				return err
			}
			if len(args) == 2 {
				if t.path != "" {
					return usagef("%s: two paths: %s and %s", cmd.CommandPath(), t.path, args[1])
				}
				t.path = strings.Trim(args[1], "/")
			}
			if f.followed && t.path == "" {
				return usagef("%s: --follow needs a path", cmd.CommandPath())
			}
			if f.sel != "" && !f.values {
				return usagef("%s: --select needs --values", cmd.CommandPath())
			}
			return t.with(cmd, readOnly, func(t target, db *engine.DB) error {
				head, err := db.Resolve(cmd.Context(), t.rev)
				if err != nil {
					return err
				}
				names, err := refNames(cmd, db)
				if err != nil {
					return err
				}
				if f.values {
					return f.ofValues(cmd, db, t, head, names)
				}
				commits := report.Log(cmd.Context(), db, head, t.path, f.followed, f.n)
				return printCommits(cmd, &f, commits, func(c report.Commit) {
					printCommit(cmd, c, names[c.ID]+strings.TrimSpace(orExpired(c.OrExpired, false)))
				},
					func(c report.Commit) string {
						return short(c.ID) + " " + names[c.ID] + firstLine(c.Message) + orExpired(c.OrExpired, false)
					})
			})
		},
	}
	cmd.Flags().IntVarP(&f.n, "number", "n", math.MaxInt, "largest number of commits")
	cmd.Flags().Lookup("number").DefValue = "all"
	cmd.Flags().BoolVar(&f.oneline, "oneline", false, "one line a commit")
	cmd.Flags().BoolVar(&f.followed, "follow", false, "follow renames to the old path")
	cmd.Flags().BoolVar(&f.values, "values", false, "the commits that changed values of an array")
	cmd.Flags().StringVarP(&f.sel, "select", "s", "", "which values, as for read (default all)")
	methodFlag(cmd)
	cmd.Flags().BoolVar(&f.json, "json", false, "one JSON object a line")
	return cmd
}

// ofValues prints the commits that changed values of an array.
func (f *logFlags) ofValues(cmd *cobra.Command, db *engine.DB, t target, head txn.CommitID, names map[string]string) error {
	sel, err := selectionOf(cmd, db, t, f.sel)
	if err != nil {
		return err
	}
	changed := func(c report.ValueCommit) string {
		return fmt.Sprintf("[%s] %s", boxText(c.Start, c.Shape), count(c.Count, "value"))
	}
	return printCommits(cmd, f, report.ValueLog(cmd.Context(), db, head, t.path, sel, f.n), func(c report.ValueCommit) {
		printCommit(cmd, c.Commit, names[c.ID]+strings.TrimSpace(orExpired(c.OrExpired, true)))
		say(cmd, "    %s\n", changed(c))
	}, func(c report.ValueCommit) string {
		return short(c.ID) + " " + names[c.ID] + changed(c) + " " + firstLine(c.Message) + orExpired(c.OrExpired, true)
	})
}

// printCommits prints commits: as JSON, in a line, or at length.
func printCommits[C any](cmd *cobra.Command, f *logFlags, commits iter.Seq2[C, error], long func(C), line func(C) string) error {
	if f.json {
		return printJSONLines(cmd, commits)
	}
	for c, err := range commits {
		switch {
		case err != nil:
			return err
		case f.oneline:
			say(cmd, "%s", line(c))
		default:
			long(c)
		}
	}
	return nil
}

// orExpired marks a commit whose change may be that of an earlier one. That of values may be one whose
// chunks cannot be read, too.
func orExpired(unsure, values bool) string {
	switch {
	case unsure && values:
		return " (or one before it that has expired or cannot be read)"
	case unsure:
		return " (or one before it that has expired)"
	}
	return ""
}

// short is the beginning of a commit id, as txn.CommitID.Short has it.
func short(id string) string { return id[:10] }

// refNames returns the names of the refs at each commit.
func refNames(cmd *cobra.Command, db *engine.DB) (map[string]string, error) {
	branches, tags, err := db.Refs(cmd.Context())
	names := map[string]string{}
	for _, r := range branches {
		names[r.Commit.String()] += "(" + r.Name + ") "
	}
	for _, r := range tags {
		names[r.Commit.String()] += "(tag " + r.Name + ") "
	}
	return names, err
}

func printCommit(cmd *cobra.Command, c report.Commit, names string) {
	say(cmd, "%s", strings.TrimRight(fmt.Sprintf("commit %v %s", c.ID, names), " "))
	if len(c.Parents) > 1 {
		line := "Merge: "
		for _, p := range c.Parents {
			line += " " + short(p)
		}
		say(cmd, "%s", line)
	}
	say(cmd, "Author: %s\nDate:   %s\n", c.Author, c.Time.In(time.Local).Format(time.RFC1123Z))
	printIndented(cmd, c.Message)
	for k, v := range sorted(c.Properties) {
		say(cmd, "    %s: %s", k, v)
	}
	say(cmd, "")
}

func showCmd() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "show DB[@REV]",
		Short:   "Show a commit and its changes",
		Example: `  zarrdb show weather.zdb@main~1`,
		Args:    argCount(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withDB(cmd, args[0], readOnly, func(t target, db *engine.DB) error {
				id, err := db.Resolve(cmd.Context(), t.rev)
				if err != nil {
					return err
				}
				c, err := db.Versions().Lookup(cmd.Context(), id)
				if err != nil {
					return err
				}
				shown := report.NewCommit(c)
				if asJSON {
					return printJSON(cmd, shown)
				}
				names, err := refNames(cmd, db)
				if err != nil {
					return err
				}
				printCommit(cmd, shown, names[shown.ID])
				if len(c.Parents) == 0 {
					return nil
				}
				return diffFlags{}.print(cmd, db, c.Parents[0], c.ID, "")
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the commit as JSON")
	return cmd
}

func diffCmd() *cobra.Command {
	var show diffFlags
	cmd := &cobra.Command{
		Use:   "diff DB[@A][:PATH] [A] [B]",
		Short: "Compare two versions",
		Long: `Say what changed from version A to version B of one database (default B: the head
of main): which arrays and groups came, went, changed or were renamed, which
metadata fields differ, and how many chunks. A stands behind @ or is an argument.
The first line names both commits. With --values, also where in an array values
differ, how many, and by how much (B minus A): only changed chunks are decoded.
With --plot, a picture of B minus A as "zarrdb plot" draws: of an array of more
than two dimensions the plane of the first elements that differ. A plane of more than
2048 rows or columns is read in part, as the title says.
With --json each line has both commits as "from_commit" and "to_commit".`,
		Example: `  zarrdb diff weather.zdb v1.0
  zarrdb diff weather.zdb@v1.0
  zarrdb diff weather.zdb:temp main~3 experiment
  zarrdb diff weather.zdb@main~1:temp --values`,
		Args: argCount(1, 3),
		RunE: func(cmd *cobra.Command, args []string) error {
			if show.plot && show.json {
				return usagef("diff: --plot draws for people, and --json is for programs: choose one")
			}
			t, err := parseDB(args[0])
			if err != nil {
				return err
			}
			revs := args[1:]
			if t.rev != "" {
				revs = append([]string{t.rev}, revs...)
			}
			switch len(revs) {
			case 0:
				return usagef("%s: which version is compared with the head of main? For the last commit: zarrdb diff %s main~1", cmd.CommandPath(), shellWord(args[0]))
			case 1:
				revs = append(revs, txn.MainBranch)
			case 3:
				return usagef("%s: three versions: %s, %s and %s", cmd.CommandPath(), revs[0], revs[1], revs[2])
			}
			return t.with(cmd, readOnly, func(t target, db *engine.DB) error {
				from, err := db.Resolve(cmd.Context(), revs[0])
				if err != nil {
					return err
				}
				to, err := db.Resolve(cmd.Context(), revs[1])
				if err != nil {
					return err
				}
				if !show.json {
					say(cmd, "from %s (%s) to %s (%s)", from.Short(), revs[0], to.Short(), revs[1])
				}
				return show.print(cmd, db, from, to, t.path)
			})
		},
	}
	cmd.Flags().BoolVar(&show.values, "values", false, "compare values too")
	cmd.Flags().BoolVar(&show.plot, "plot", false, "draw the first plane of each array whose values differ, newer minus older")
	cmd.Flags().BoolVar(&show.json, "json", false, "one JSON object a line")
	return cmd
}

// refCmd is branch and tag, which differ in little.
func refCmd(kind string, create func(*txn.DB, context.Context, string, txn.CommitID) error, remove func(*txn.DB, context.Context, string) error) *cobra.Command {
	var del, protect, freeze, unprotect string
	var asJSON, force bool
	list := func(cmd *cobra.Command, db *engine.DB) ([]txn.Ref, error) {
		branches, tags, err := db.Refs(cmd.Context())
		if kind == "tag" {
			return tags, err
		}
		return branches, err
	}
	cmd := &cobra.Command{
		Use:   kind + " DB[@REV] [NAME]",
		Short: "List, make or delete a " + kind,
		Long:  "Without NAME, list. With NAME, make a " + kind + " at REV (default main). It costs the same for a database of any size.\n\n" + protects,
		Example: fmt.Sprintf(`  zarrdb %[1]s weather.zdb
  zarrdb %[1]s weather.zdb@main~2 NAME
  zarrdb %[1]s weather.zdb --delete NAME`, kind),
		Args: argCount(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if del != "" && len(args) > 1 {
				return usagef("%s: make %s or delete %s?", cmd.CommandPath(), args[1], del)
			}
			if kind == "branch" && del == txn.MainBranch && !force {
				return usagef("%s: %s is the default branch of all commands; --force deletes it, and \"zarrdb undo\" brings it back", cmd.CommandPath(), del)
			}
			for name, p := range map[string]txn.Protection{protect: txn.Protected, freeze: txn.Frozen, unprotect: txn.Unprotected} {
				if name == "" {
					continue
				}
				if len(args) > 1 || del != "" || name != protect+freeze+unprotect {
					return usagef("%s: one thing at a time", cmd.CommandPath())
				}
				return withDB(cmd, args[0], nil, func(_ target, db *engine.DB) error {
					return db.Protect(cmd.Context(), name, kind == "tag", p)
				})
			}
			if len(args) == 1 && del == "" {
				return withDB(cmd, args[0], readOnly, func(_ target, db *engine.DB) error {
					refs := report.Refs(cmd.Context(), db, kind == "tag")
					if asJSON {
						return printJSONLines(cmd, refs)
					}
					for r, err := range refs {
						if err != nil {
							return err
						}
						line := short(r.Commit) + " " + r.Name
						if r.Protection != "" {
							line += " (" + r.Protection + ")"
						}
						say(cmd, "%s", line)
					}
					return nil
				})
			}
			return withDB(cmd, args[0], nil, func(t target, db *engine.DB) error {
				if del != "" {
					refs, err := list(cmd, db)
					if err != nil {
						return err
					}
					was := find(refs, del)
					if err := remove(db.Versions(), cmd.Context(), del); err != nil {
						return err
					}
					if !asJSON {
						back := "zarrdb undo " + shellWord(t.db+"@"+del)
						if kind == "tag" {
							back += " --tag"
						}
						say(cmd, "%s: %s -> %s (%q brings it back)", del, was.Commit.Short(), shortOrNone(txn.CommitID{}), back)
					}
					return nil
				}
				at, err := db.Resolve(cmd.Context(), t.rev)
				if err != nil {
					return err
				}
				if err := create(db.Versions(), cmd.Context(), args[1], at); err != nil {
					return err
				}
				branches, tags, err := db.Refs(cmd.Context())
				if err != nil {
					return err
				}
				if !asJSON && find(branches, args[1]).Name == find(tags, args[1]).Name {
					say(cmd, "%[1]s is a branch and a tag now: @%[1]s means the branch", args[1])
				}
				return nil
			})
		},
	}
	cmd.Flags().StringVarP(&del, "delete", "d", "", "delete the "+kind+" with this `NAME`")
	cmd.Flags().StringVar(&protect, "protect", "", "protect `NAME` from losing versions")
	cmd.Flags().StringVar(&freeze, "freeze", "", "let `NAME` not move at all")
	cmd.Flags().StringVar(&unprotect, "unprotect", "", "let `NAME` move freely again")
	if kind == "branch" {
		cmd.Flags().BoolVar(&force, "force", false, "delete the branch main too")
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "one JSON object a line")
	return cmd
}

const protects = `--protect keeps a branch going forward: commits, merges and pushes that add to it are fine, and
a reset, undo, rebase, amend, deletion or forced push is refused. A protected tag cannot be deleted. --freeze
refuses commits too. "zarrdb expire" still applies. Programs from before 0.1 do not know it. Clones, backups and
pushes do not copy it.`

// find returns the ref of a name, or the zero Ref.
func find(refs []txn.Ref, name string) txn.Ref {
	if i := slices.IndexFunc(refs, func(r txn.Ref) bool { return r.Name == name }); i >= 0 {
		return refs[i]
	}
	return txn.Ref{}
}

func branchCmd() *cobra.Command {
	return refCmd("branch", (*txn.DB).CreateBranch, (*txn.DB).DeleteBranch)
}

func tagCmd() *cobra.Command {
	return refCmd("tag", (*txn.DB).CreateTag, (*txn.DB).DeleteTag)
}

func resetCmd() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "reset DB[@BRANCH] REV",
		Short: "Move a branch to another version",
		Long: `Make REV the newest version of a branch (default main). Nothing is lost: the
reflog remembers where the branch was, and "reset DB 'main@{1}'" goes back.`,
		Example: `  zarrdb reset weather.zdb main~1`,
		Args:    argCount(2, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withDB(cmd, args[0], nil, func(t target, db *engine.DB) error {
				id, err := db.Resolve(cmd.Context(), args[1])
				if err != nil {
					return err
				}
				m, err := db.Versions().Reset(cmd.Context(), t.rev, id)
				if err != nil {
					return onlyBranches(db, t.rev, err)
				}
				return printMoved(cmd, orMain(t.rev), m, asJSON)
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the move as JSON")
	return cmd
}

func orMain(branch string) string {
	if branch == "" {
		return txn.MainBranch
	}
	return branch
}

func reflogCmd() *cobra.Command {
	var asJSON, tag bool
	cmd := &cobra.Command{
		Use:   "reflog DB[@NAME]",
		Short: "List where a branch has been",
		Long: `List every move of a branch (default main) or, with --tag, of a tag, newest
first, also of one that was deleted. Each line begins with the commit and with
the revision that names it. "zarrdb undo" takes the last move back.`,
		Example: `  zarrdb reflog weather.zdb
  zarrdb reset weather.zdb 'main@{1}'
  zarrdb branch 'weather.zdb@gone@{1}' gone`,
		Args: argCount(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withDB(cmd, args[0], readOnly, func(t target, db *engine.DB) error {
				branch, n := orMain(t.rev), 0
				moves, kind := db.Reflog, "branch"
				if tag {
					moves, kind = db.TagReflog, "tag"
				}
				for m, err := range moves(cmd.Context(), branch) {
					if err != nil {
						return err
					}
					if err := printMove(cmd, branch, n, m, asJSON); err != nil {
						return err
					}
					n++
				}
				if n == 0 {
					return fmt.Errorf("%s %q: %w", kind, branch, txn.ErrNoRef)
				}
				return nil
			})
		},
	}
	cmd.Flags().BoolVar(&tag, "tag", false, "NAME is a tag")
	cmd.Flags().BoolVar(&asJSON, "json", false, "one JSON object a line")
	return cmd
}

func undoCmd() *cobra.Command {
	var tag, asJSON bool
	cmd := &cobra.Command{
		Use:   "undo DB[@NAME]",
		Short: "Undo the last move of a branch or tag",
		Long: `Put a branch (default main) or, with --tag, a tag back to where it was before
its last move: before a commit, merge, rebase or reset; one that was deleted is
there again. A second undo undoes the first. For older moves see "zarrdb reflog".`,
		Example: `  zarrdb undo weather.zdb
  zarrdb undo weather.zdb@experiment
  zarrdb undo weather.zdb@v1.0 --tag`,
		Args: argCount(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withDB(cmd, args[0], nil, func(t target, db *engine.DB) error {
				name, undo := orMain(t.rev), db.UndoBranch
				if tag {
					undo = db.UndoTag
				}
				m, err := undo(cmd.Context(), name)
				if err != nil {
					return err
				}
				return printMoved(cmd, name, m, asJSON)
			})
		},
	}
	cmd.Flags().BoolVar(&tag, "tag", false, "NAME is a tag")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the move as JSON")
	return cmd
}

// printMoved prints a move that was just made.
func printMoved(cmd *cobra.Command, name string, m txn.RefMove, asJSON bool) error {
	if asJSON {
		return printMove(cmd, name, 0, m, true)
	}
	say(cmd, "%s: %s -> %s", name, shortOrNone(m.Old), shortOrNone(m.New))
	return nil
}

func shortOrNone(id txn.CommitID) string {
	if id.IsZero() {
		return "(none)"
	}
	return id.Short()
}

func printMove(cmd *cobra.Command, branch string, n int, m txn.RefMove, asJSON bool) error {
	if asJSON {
		out := map[string]any{"revision": fmt.Sprintf("%s@{%d}", branch, n), "op": m.Op, "author": m.Author, "time": m.Time}
		for name, id := range map[string]txn.CommitID{"old": m.Old, "new": m.New} {
			if !id.IsZero() {
				out[name] = id.String()
			}
		}
		return printJSONLine(cmd, out)
	}
	at := "(deleted) "
	if !m.New.IsZero() {
		at = m.New.Short()
	}
	say(cmd, "%s %s@{%d} %s %s (%s)", at, branch, n, m.Time.In(time.Local).Format(time.DateTime), m.Op, m.Author)
	return nil
}
