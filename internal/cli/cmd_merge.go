package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/txn"
)

// choiceFlags are the flags of every command that merges.
type choiceFlags struct {
	ours, theirs []string
	dryRun, json bool

	decided []decision
	healed  int64
}

// decision is a conflict that the flags decided.
type decision struct {
	Take string `json:"take"` // ours or theirs
	txn.Conflict
}

// note records that a choice was made. A conflict may be asked about several times.
func (f *choiceFlags) note(c txn.Conflict, choice txn.Choice) {
	d := decision{map[txn.Choice]string{txn.Ours: "ours", txn.Theirs: "theirs"}[choice], c}
	same := func(o decision) bool { return o.Kind == c.Kind && o.Path == c.Path }
	if len(f.decided) < maxDecided && !slices.ContainsFunc(f.decided, same) {
		f.decided = append(f.decided, d)
	}
}

// maxDecided bounds the decisions that are listed.
const maxDecided = 1000

func (f *choiceFlags) register(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&f.ours, "ours", nil, "where both sides changed `PATH` or below (/ for all), keep what the branch has")
	cmd.Flags().StringArrayVar(&f.theirs, "theirs", nil, "where both sides changed `PATH` or below (/ for all), take what comes to it")
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "list the conflicts but change nothing")
	cmd.Flags().BoolVar(&f.json, "json", false, "print the result as JSON, with conflicts")
}

// choices returns the decisions of the flags, nil without any.
func (f *choiceFlags) choices(cmd *cobra.Command) (rules []txn.PathChoice, err error) {
	seen := map[string]bool{}
	for _, side := range []struct {
		paths  []string
		choice txn.Choice
	}{{f.ours, txn.Ours}, {f.theirs, txn.Theirs}} {
		for _, p := range side.paths {
			p = strings.Trim(p, "/")
			if seen[p] {
				return nil, usagef("%s: two choices for /%s", cmd.CommandPath(), p)
			}
			seen[p] = true
			rules = append(rules, txn.PathChoice{Path: p, Choice: side.choice})
		}
	}
	return rules, nil
}

// merges completes a command that brings the version of its second argument, or of rev,
// to the branch of its first one. run does it.
func (f *choiceFlags) merges(cmd *cobra.Command, rev *string, run func(db *engine.DB, branch string, id txn.CommitID, choices []txn.PathChoice) (*txn.Commit, error)) *cobra.Command {
	f.register(cmd)
	cmd.Args = argCount(1, 2)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		choices, err := f.choices(cmd)
		if err != nil {
			return err
		}
		args = append(args, *rev)
		if len(args) == 3 && *rev != "" {
			return usagef("%s: one of REV and --to", cmd.CommandPath())
		} else if args[1] == "" {
			return argCount(2, 2)(cmd, args[:1])
		}
		return withDB(cmd, args[0], nil, func(t target, db *engine.DB) error {
			id, err := db.Resolve(cmd.Context(), args[1])
			if err != nil {
				return err
			}
			base, err := db.Head(cmd.Context(), t.rev)
			if err != nil {
				return onlyBranches(db, t.rev, err)
			}
			c, err := run(db, t.rev, id, choices)
			return f.told(cmd, t.rev, c, base, err)
		})
	}
	return cmd
}

// pickCmd is revert and cherry-pick, which differ in direction. to is the version that
// --to names.
func pickCmd(to *string, pick func(*txn.DB, context.Context, string, txn.CommitID, int, txn.CommitOptions) (*txn.Commit, error), cmd *cobra.Command) *cobra.Command {
	var o txn.CommitOptions
	var flags choiceFlags
	var parent int
	commitFlags(cmd, &o.Message, &o.Author)
	cmd.Flags().IntVar(&parent, "parent", 0, "which parent of a merge commit counts, from 1")
	return flags.merges(cmd, to, func(db *engine.DB, branch string, id txn.CommitID, choices []txn.PathChoice) (*txn.Commit, error) {
		o.Choices, o.Decided, o.DryRun = choices, flags.note, flags.dryRun
		if *to != "" {
			return db.Versions().RevertTo(cmd.Context(), branch, id, o)
		}
		return pick(db.Versions(), cmd.Context(), branch, id, parent, o)
	})
}

func revertCmd() *cobra.Command {
	var to string
	cmd := &cobra.Command{
		Use: "revert DB[@BRANCH] REV", Short: "Undo one commit, or all after a version, by a new commit",
		Long: `Undo the changes of commit REV, on top of all later commits. With --to REV, make a
new commit that holds what version REV held. The branch goes forward, so that pulls
and pushes pass the undoing on; after "reset" or "undo", a pull would bring the
commits back.`,
		Example: `  zarrdb revert weather.zdb main~2
  zarrdb revert weather.zdb main~2 --ours temp
  zarrdb revert weather.zdb --to v1.0 -m "back to the release"`,
	}
	cmd.Flags().StringVar(&to, "to", "", "go back to version `REV` as a whole")
	return pickCmd(&to, (*txn.DB).Revert, cmd)
}

func cherryPickCmd() *cobra.Command {
	return pickCmd(new(string), (*txn.DB).CherryPick, &cobra.Command{
		Use: "cherry-pick DB[@BRANCH] REV", Short: "Repeat one commit on another branch",
		Long:    "Make the change of commit REV again, on top of a branch (default main).",
		Example: `  zarrdb cherry-pick weather.zdb experiment~1`,
	})
}

func mergeCmd() *cobra.Command {
	var o txn.CommitOptions
	var flags choiceFlags
	var base string
	var force bool
	cmd := &cobra.Command{
		Use:   "merge DB[@BRANCH] REV",
		Short: "Bring another branch's changes in",
		Long: `Merge version REV into a branch (default main). Changes that do not touch each
other are combined; where both sides changed the same chunk or the same field,
nothing is done and every conflict is listed (exit code 3), unless --ours or
--theirs say for its path what to take. The longest path decides. Each conflict
that was decided is printed; what one side alone changed stays. Without a common
ancestor that is kept, every difference is a conflict.`,
		Example: `  zarrdb merge weather.zdb experiment -m "take the new calibration"
  zarrdb merge weather.zdb experiment --dry-run
  zarrdb merge weather.zdb experiment --theirs temp --ours temp/qc`,
	}
	commitFlags(cmd, &o.Message, &o.Author)
	cmd.Flags().StringVar(&base, "base", "", "compare both sides with this `REV` (default their best common ancestor)")
	cmd.Flags().BoolVar(&force, "force", false, "let --base be no ancestor of both sides, and undo what a side lacks of it")
	return flags.merges(cmd, new(string), func(db *engine.DB, branch string, id txn.CommitID, choices []txn.PathChoice) (c *txn.Commit, err error) {
		o.Choices, o.Decided, o.DryRun = choices, flags.note, flags.dryRun
		if base != "" {
			if o.Base, err = db.Resolve(cmd.Context(), base); err != nil {
				return nil, err
			}
		}
		if o.Message == "" {
			o.Message = fmt.Sprintf("merge %s into %s", cmd.Flags().Arg(1), orMain(branch))
		}
		c, err = db.Versions().Merge(cmd.Context(), branch, id, o)
		var undone *txn.BaseError
		switch {
		case !errors.As(err, &undone):
		case force:
			warn(cmd, undone.Error())
			o.ForceBase = true
			return db.Versions().Merge(cmd.Context(), branch, id, o)
		default:
			err = fmt.Errorf("%w (--force does it)", err)
		}
		return c, err
	})
}

func rebaseCmd() *cobra.Command {
	var flags choiceFlags
	var onto, message string
	var squash bool
	cmd := &cobra.Command{
		Use:   "rebase DB[@BRANCH] UPSTREAM",
		Short: "Repeat a branch's commits on top of another",
		Long: `Take the commits of a branch (default main) that UPSTREAM has not, repeat them
one by one on top of UPSTREAM, or of the version given with --onto, and move the
branch there. All are repeated or none: a conflict names its commit and changes
nothing (exit code 3). "zarrdb undo" goes back. --squash makes one commit of them,
also where UPSTREAM is a version of the branch itself.`,
		Example: `  zarrdb rebase weather.zdb@experiment main
  zarrdb rebase weather.zdb main~5 --squash -m "the five days"
  zarrdb rebase weather.zdb@experiment main~2 --onto main`,
	}
	cmd.Flags().StringVar(&onto, "onto", "", "where the commits go: a `REV` (default UPSTREAM)")
	cmd.Flags().BoolVar(&squash, "squash", false, "make one commit of all")
	cmd.Flags().StringVarP(&message, "message", "m", "", "message of the one commit (default all of theirs)")
	return flags.merges(cmd, new(string), func(db *engine.DB, branch string, upstream txn.CommitID, choices []txn.PathChoice) (c *txn.Commit, err error) {
		if message != "" && !squash {
			return nil, usagef("%s: --message needs --squash: commits keep theirs", cmd.CommandPath())
		}
		o := txn.RebaseOptions{Choices: choices, Decided: flags.note, DryRun: flags.dryRun, Squash: squash, Message: message}
		if onto != "" {
			if o.Onto, err = db.Resolve(cmd.Context(), onto); err != nil {
				return nil, err
			}
		}
		return db.Versions().Rebase(cmd.Context(), branch, upstream, o)
	})
}

func commitCmd() *cobra.Command {
	var o engine.FolderCommitOptions
	var flags choiceFlags
	var amend bool
	var at string
	cmd := &cobra.Command{
		Use:   "commit DIR | DB[@BRANCH] --amend",
		Short: "Commit a folder that was checked out, or change the last commit",
		Long: `Commit what changed in a folder of "zarrdb checkout": files that were added, changed or removed, as one commit on the version
that was checked out, merged with the branch as any other, and move the folder to the new commit. Where both changed the
same, the conflicts are listed (exit code 3) and nothing is done, unless --ours or --theirs say for its path what to take.
Files count as changed by size, time and inode, then by their bytes; --verify compares the bytes of all. Hidden and temporary
files and locks are left out. --dry-run lists what changed and commits nothing.

With --amend, make the last commit of a branch (default main) again, with another message, author
or time, and the same contents. What is not given stays. The old commit stays in
the reflog: "zarrdb undo" goes back. Tags and branches that name it still do, and a
copy that has pulled it has to be pushed to with --force.

Every other command that writes commits by itself; "zarrdb session" collects the writes of several.`,
		Example: `  zarrdb commit era5.zarr --dry-run
  zarrdb commit era5.zarr -m "levels of the pyramid"
  zarrdb commit weather.zdb --amend -m "first day, corrected"`,
		Args: argCount(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if at != "" {
				t, err := txn.ParseTime(at)
				if err != nil {
					return usagef("--time: %w", err)
				}
				o.Time = t
			}
			other := usagef("commit: commands that write commit by themselves; --amend changes the last commit, \"zarrdb session commit\" publishes a session, and \"zarrdb commit DIR\" a folder of \"zarrdb checkout\"")
			t := parseTarget(args[0])
			switch {
			case !amend && t.db != "":
				return other
			case !amend:
				err := commitFolder(cmd, args[0], o, &flags)
				if errors.Is(err, engine.ErrNoFolder) && isAbsent(args[0]) {
					return other
				}
				return err
			case flags.dryRun || o.Verify || o.Branch != "" || len(flags.ours)+len(flags.theirs) > 0:
				return usagef("commit: --amend goes with --message, --author, --time and --json alone")
			}
			return withDB(cmd, args[0], nil, func(t target, db *engine.DB) error {
				base, err := db.Head(cmd.Context(), t.rev)
				if err != nil {
					return onlyBranches(db, t.rev, err)
				}
				c, err := db.Amend(cmd.Context(), t.rev, o.CommitOptions)
				return flags.told(cmd, t.rev, c, base, err)
			})
		},
	}
	commitFlags(cmd, &o.Message, &o.Author)
	flags.register(cmd)
	cmd.Flags().Lookup("dry-run").Usage = "list what changed in the folder, and commit nothing"
	cmd.Flags().BoolVar(&amend, "amend", false, "change the last commit")
	cmd.Flags().StringVar(&at, "time", "", "when it was made, such as '2026-01-31 12:00'")
	cmd.Flags().StringVar(&o.Branch, "branch", "", "branch that the folder is committed to (default the one that was checked out)")
	cmd.Flags().BoolVar(&o.Verify, "verify", false, "compare the bytes of all files of the folder")
	return cmd
}
