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

// carries are transfers between a database and another one, or a remote.
type carries struct {
	push, pushMerging, pull, fetch func(context.Context, txn.TransferOptions) (*txn.TransferReport, error)
}

// withOther opens a database and the other side of a transfer, which is a directory or the URL of a remote. changes says that the
// database is written.
func withOther(cmd *cobra.Command, db, other string, changes bool, o engine.RemoteOptions, fn func(*engine.DB, carries) error) error {
	if !engine.IsRemote(other) {
		if o.Push {
			return both(cmd, db, other, changes, func(db, other *engine.DB) error {
				return fn(db, carries{
					push: func(ctx context.Context, o txn.TransferOptions) (*txn.TransferReport, error) {
						return db.Push(ctx, other, o)
					},
					pushMerging: func(ctx context.Context, o txn.TransferOptions) (*txn.TransferReport, error) {
						return db.PushMerging(ctx, other, o)
					},
				})
			})
		}
		return both(cmd, other, db, false, func(other, db *engine.DB) error {
			return fn(db, carries{
				pull: func(ctx context.Context, o txn.TransferOptions) (*txn.TransferReport, error) {
					return db.Pull(ctx, other, o)
				},
				fetch: func(ctx context.Context, o txn.TransferOptions) (*txn.TransferReport, error) {
					return db.Fetch(ctx, other, o)
				},
			})
		})
	}
	open := readOnly
	if changes {
		open = nil
	}
	return withOnlyDB(cmd, db, open, func(db *engine.DB) error {
		r, err := db.Remote(cmd.Context(), other, &o)
		if err != nil {
			return err
		}
		defer r.Close()
		return fn(db, carries{r.Push, r.PushMerging, r.Pull, r.Fetch})
	})
}

// both opens two databases, the second one to be written, and the first one too if changes is set.
func both(cmd *cobra.Command, from, to string, changes bool, fn func(src, dst *engine.DB) error) error {
	if sameFile(from, to) {
		return usagef("%s: %s and %s are the same database", cmd.Name(), from, to)
	}
	open := readOnly
	if changes {
		open = nil
	}
	return withOnlyDB(cmd, from, open, func(src *engine.DB) error {
		return withOnlyDB(cmd, to, nil, func(dst *engine.DB) error { return fn(src, dst) })
	})
}

func pushCmd() *cobra.Command {
	var f transferFlags
	var merge, accept bool
	cmd := f.register(&cobra.Command{
		Args:  argCount(2, -1),
		Use:   "push DB OTHER [REF…]",
		Short: "Bring another database's branches and tags up to date",
		Long: `Copy the versions of branches and tags (default: the branch main) that OTHER
lacks to it, and move its refs of the same names, which are made if they are not
there; NAME:NEWNAME gives one another name there. Each payload that was copied is
read back and compared.

OTHER is a database, or the URL of a remote, which is made if nothing is there:
s3://BUCKET/NAME, gs://BUCKET/NAME, or file:///DIR for a directory that stands for a
bucket. Others clone it and pull from it. The same command takes an interrupted push
up again, and settles one whose outcome is unknown.

With --merge, a branch that has gone on in OTHER is fetched and merged here, and
pushed again, until no other push comes between.

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
  zarrdb push weather.zdb /mnt/shared/weather.zdb --all --tags --prune --dry-run
  zarrdb push weather.zdb s3://bucket/weather --merge`,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if f.o.Refs, err = parseRefs(args[2:]); err != nil {
				return err
			}
			if f.o.Prune && !f.o.AllBranches && !f.o.AllTags {
				return usagef("%s: --prune needs --all, --tags or both", cmd.CommandPath())
			}
			if merge && (f.o.AllBranches || f.o.AllTags || f.o.Force || f.o.DryRun || len(args) > 3) {
				return usagef("%s: --merge is for one branch, without --force and --dry-run", cmd.CommandPath())
			}
			return withOther(cmd, args[0], args[1], merge, engine.RemoteOptions{Push: true, Accept: accept, DryRun: f.o.DryRun}, func(_ *engine.DB, other carries) error {
				push := other.push
				if merge {
					push = other.pushMerging
				}
				r, err := f.carry(cmd, push)
				return f.done(cmd, "pushed", r, err)
			})
		},
	})
	cmd.Flags().BoolVar(&merge, "merge", false, "fetch and merge what OTHER has beyond DB, and push again")
	cmd.Flags().BoolVar(&accept, "accept", false, "go on with a remote that went back, or is another one")
	cmd.Flags().BoolVar(&f.o.Prune, "prune", false, "delete branches and tags that DB does not have")
	return cmd
}

func pullCmd() *cobra.Command {
	var f transferFlags
	var merge, rebase, heal bool
	cmd := f.register(&cobra.Command{
		Args:  argCount(1, -1),
		Use:   "pull DB [OTHER] [REF…]",
		Short: "Bring branches and tags up to date from another database",
		Long: `Copy the versions of branches and tags (default: the branch main) that DB lacks
from OTHER, and move the refs of the same names, which are made if they are not
there; NAME:NEWNAME gives one another name here. A branch that is ahead of OTHER
is left alone. OTHER is a database, or the URL of a remote; by default the URL that DB
was cloned from.

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
  zarrdb pull copy.zdb /mnt/shared/weather.zdb --all --tags
  zarrdb pull copy.zdb s3://bucket/weather`,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if len(args) == 1 {
				from := engine.ClonedFrom(args[0])
				if from == "" {
					return usagef("%s: from where? %s was not cloned from a URL", cmd.CommandPath(), args[0])
				}
				args = append(args, from)
			}
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
			if heal {
				if engine.IsRemote(args[1]) {
					return usagef("%s: --heal needs a database in a directory: clone the remote first", cmd.CommandPath())
				}
				return both(cmd, args[1], args[0], false, func(src, dst *engine.DB) error {
					r, err := f.carry(cmd, func(ctx context.Context, o txn.TransferOptions) (*txn.TransferReport, error) {
						return dst.Pull(ctx, src, o)
					})
					if err = f.done(cmd, "pulled", r, err); err == nil {
						_, err = fsck(cmd, dst, txn.CheckOptions{Payloads: true}, true, false, src)
					}
					return err
				})
			}
			return withOther(cmd, args[0], args[1], true, engine.RemoteOptions{}, func(db *engine.DB, other carries) error {
				combine := false
				r, err := f.carry(cmd, func(ctx context.Context, o txn.TransferOptions) (*txn.TransferReport, error) {
					r, err := other.pull(ctx, o)
					if combine = (merge || rebase) && errors.Is(err, txn.ErrDiverged) && isBranch(r.Refs[0]); combine {
						return other.fetch(ctx, o)
					}
					return r, err
				})
				if err != nil || !combine {
					return f.done(cmd, "pulled", r, err)
				}
				return f.combine(cmd, db, r, args[1], rebase)
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
		if r != nil && r.Note != "" {
			err = fmt.Errorf("%w (warning: %s)", err, r.Note)
		}
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
