package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/txn"
)

// register adds the flags that push and pull share.
func (f *transferFlags) register(cmd *cobra.Command) *cobra.Command {
	cmd.Args = argCount(2, -1)
	cmd.Flags().BoolVar(&f.o.AllBranches, "all", false, "all branches")
	cmd.Flags().BoolVar(&f.o.AllTags, "tags", false, "all tags, in addition to the REFs")
	cmd.Flags().IntVar(&f.o.Depth, "depth", 0, "how many generations of versions are copied with contents")
	cmd.Flags().BoolVar(&f.o.Force, "force", false, "drop versions that only the ref which is moved has")
	cmd.Flags().BoolVar(&f.o.DryRun, "dry-run", false, "only print which refs would move")
	return f.add(cmd)
}

// parseRefs takes arguments of the form [+]NAME[:NEWNAME].
func parseRefs(args []string) ([]txn.RefSpec, error) {
	var out []txn.RefSpec
	for _, arg := range args {
		var s txn.RefSpec
		s.From, s.Force = strings.CutPrefix(arg, "+")
		from, to, renamed := strings.Cut(s.From, ":")
		if s.From, s.To = from, to; from == "" || renamed && to == "" {
			return nil, usagef("%s: it must be a branch or tag, or NAME:NEWNAME", arg)
		}
		out = append(out, s)
	}
	return out, nil
}

// both opens two databases, the second one to be written.
func both(cmd *cobra.Command, from, to string, fn func(src, dst *engine.DB) error) error {
	if sameFile(from, to) {
		return usagef("%s: %s and %s are the same database", cmd.Name(), from, to)
	}
	return withOnlyDB(cmd, from, readOnly, func(src *engine.DB) error {
		return withOnlyDB(cmd, to, nil, func(dst *engine.DB) error { return fn(src, dst) })
	})
}

func pushCmd() *cobra.Command {
	var f transferFlags
	cmd := f.register(&cobra.Command{
		Use:   "push DB OTHER [REF…]",
		Short: "Bring another database's branches and tags up to date",
		Long: `Copy the versions of branches and tags (default: the branch main) that OTHER
lacks to it, and move its refs of the same names, which are made if they are not
there; NAME:NEWNAME gives one another name there. Each payload that was copied is
read back and compared.

If a branch of OTHER has versions that DB does not have, or a tag is another one,
nothing is moved and the exit code is 3: pull and merge first, or drop them with
--force, or +NAME for one; the reflog still has them. A branch of OTHER that has
only the empty first commit of "zarrdb init" counts as missing.

--prune also deletes branches of OTHER, with --all, and tags, with --tags, that DB
does not have. It is refused in the same way if DB lacks the version that one
points at, and never deletes main.`,
		Example: `  zarrdb push weather.zdb /mnt/shared/weather.zdb
  zarrdb push weather.zdb /mnt/shared/weather.zdb trial v1.0 main:mine
  zarrdb push weather.zdb /mnt/shared/weather.zdb --all --tags
  zarrdb push weather.zdb /mnt/shared/weather.zdb --all --tags --prune --dry-run`,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if f.o.Refs, err = parseRefs(args[2:]); err != nil {
				return err
			}
			if f.o.Prune && !f.o.AllBranches && !f.o.AllTags {
				return usagef("%s: --prune needs --all, --tags or both", cmd.CommandPath())
			}
			return both(cmd, args[0], args[1], func(src, dst *engine.DB) error {
				r, err := f.carry(cmd, func(ctx context.Context, o txn.TransferOptions) (*txn.TransferReport, error) {
					return src.Push(ctx, dst, o)
				})
				return f.done(cmd, "pushed", r, err)
			})
		},
	})
	cmd.Flags().BoolVar(&f.o.Prune, "prune", false, "delete branches and tags that DB does not have")
	return cmd
}

func pullCmd() *cobra.Command {
	var f transferFlags
	var merge, rebase, heal bool
	cmd := f.register(&cobra.Command{
		Use:   "pull DB OTHER [REF…]",
		Short: "Bring branches and tags up to date from another database",
		Long: `Copy the versions of branches and tags (default: the branch main) that DB lacks
from OTHER, and move the refs of the same names, which are made if they are not
there; NAME:NEWNAME gives one another name here. A branch that is ahead of OTHER
is left alone.

If a branch and that of OTHER have both gone on, nothing is moved and the exit
code is 3, unless --merge makes a commit of both, or --rebase repeats what is new
here on top of what is new there; conflicts of values are those of "zarrdb merge",
and change nothing.

A shallow clone gets the contents of N more generations of versions with --deepen N,
and of all that OTHER has with --unshallow.

A pull does not read what DB has. With --heal it does afterwards, and restores the
damaged chunks that OTHER has, as "zarrdb fsck DB --repair --from OTHER" does.`,
		Example: `  zarrdb pull copy.zdb /mnt/shared/weather.zdb
  zarrdb pull copy.zdb /mnt/shared/weather.zdb trial --merge
  zarrdb pull copy.zdb /mnt/shared/weather.zdb --all --tags`,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if f.o.Refs, err = parseRefs(args[2:]); err != nil {
				return err
			}
			if f.o.Deepen < 0 || cmd.Flags().Changed("deepen") && f.o.Deepen == 0 || f.o.Deepen > 0 && f.o.Unshallow {
				return usagef("%s: one of --deepen, with 1 or more, and --unshallow", cmd.CommandPath())
			}
			if merge && rebase || (merge || rebase) && (f.o.AllBranches || f.o.AllTags || f.o.Force || f.o.DryRun || len(args) > 3) {
				return usagef("%s: one of --merge and --rebase, for one branch", cmd.CommandPath())
			}
			if heal && (f.json || f.o.DryRun || merge || rebase) {
				return usagef("%s: --heal goes without --json, --dry-run, --merge and --rebase", cmd.CommandPath())
			}
			return both(cmd, args[1], args[0], func(src, dst *engine.DB) error {
				combine := false
				r, err := f.carry(cmd, func(ctx context.Context, o txn.TransferOptions) (*txn.TransferReport, error) {
					r, err := dst.Pull(ctx, src, o)
					if combine = (merge || rebase) && errors.Is(err, txn.ErrDiverged) && isBranch(r.Refs[0]); combine {
						return dst.Fetch(ctx, src, o)
					}
					return r, err
				})
				if err != nil || !combine {
					if err = f.done(cmd, "pulled", r, err); err == nil && heal {
						_, err = fsck(cmd, dst, txn.CheckOptions{Payloads: true}, true, false, src)
					}
					return err
				}
				return f.combine(cmd, dst, r, args[1], rebase)
			})
		},
	})
	cmd.Flags().IntVar(&f.o.Deepen, "deepen", 0, "copy the contents of so many more generations of older versions")
	cmd.Flags().BoolVar(&f.o.Unshallow, "unshallow", false, "copy the contents of all older versions")
	cmd.Flags().BoolVar(&heal, "heal", false, "read all chunks of DB afterwards, and restore damaged ones from OTHER")
	cmd.Flags().BoolVar(&merge, "merge", false, "merge if both sides have gone on")
	cmd.Flags().BoolVar(&rebase, "rebase", false, "rebase if both sides have gone on")
	return cmd
}

func isBranch(r txn.Ref) bool { return strings.HasPrefix(r.Name, "heads/") }

// done prints the counts of a transfer and the moved refs.
func (f *transferFlags) done(cmd *cobra.Command, did string, r *txn.TransferReport, err error) error {
	if err != nil {
		return err
	}
	if f.json {
		return printJSON(cmd, toTransferJSON(r))
	}
	if f.o.DryRun {
		say(cmd, "would have %s %s", did, count(r.Commits, "version"))
	} else {
		printTransfer(cmd, did, r)
	}
	for _, m := range r.Moves {
		name := strings.TrimPrefix(m.Ref, "heads/")
		if tag, ok := strings.CutPrefix(m.Ref, "tags/"); ok {
			name = "tag " + tag
		}
		say(cmd, "%s: %s -> %s", name, shortOrNone(m.Old), shortOrNone(m.New))
	}
	return nil
}

// combine merges the version of a branch that was fetched, or rebases onto it.
func (f *transferFlags) combine(cmd *cobra.Command, db *engine.DB, r *txn.TransferReport, other string, rebase bool) error {
	ctx := cmd.Context()
	branch, theirs := strings.TrimPrefix(r.Refs[0].Name, "heads/"), r.Refs[0].Commit
	base, err := db.Head(cmd.Context(), branch)
	if err != nil {
		return err
	}
	var c *txn.Commit
	if rebase {
		c, err = db.Versions().Rebase(ctx, branch, theirs, txn.RebaseOptions{})
	} else {
		c, err = db.Versions().Merge(ctx, branch, theirs, txn.CommitOptions{Message: fmt.Sprintf("merge %s of %s", branch, other)})
	}
	flags := choiceFlags{json: f.json}
	if !f.json {
		printTransfer(cmd, "fetched", r)
		return flags.told(cmd, branch, c, base, err)
	}
	out := toTransferJSON(r)
	if out.Merged = flags.outcome(branch, c, base, err); out.Merged == nil {
		return err
	}
	return listed(err, printJSON(cmd, out))
}
