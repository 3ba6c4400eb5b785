package cli

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/internal/fault"
	"github.com/zarrdb/zarrdb/internal/report"
	"github.com/zarrdb/zarrdb/txn"
)

func fsckCmd() *cobra.Command {
	var o txn.CheckOptions
	var asJSON, salvage, repair bool
	var to, from string
	cmd := &cobra.Command{
		Use:   "fsck DB|URL",
		Short: "Verify a database",
		Long: `Verify that everything that a ref, the reflog or a session reaches is there and
fits its name: commits, their parents, pages of the index. Chunks must
lie inside packs that are there and long enough; --full also reads every one and
compares it with its checksums and its hash.

Problems are listed one a line: what it is (array, chunk, key), where it lies
(pack, offset), which versions have it, and why it is one; then how many chunks
of each array are damaged. The exit code is 5.

--repair makes a damaged database as usable as it can be and takes nothing away:
index pages and commits come back from checkpoints, and a branch that does not
open gets its newest sound version on branch repair/NAME. Damaged chunks that DB
has no second time stay, and reading them stays an error; no branch is moved.
DB/quarantine gets a record of what is affected.

--from COPY takes damaged and missing chunks, and index pages, from another
database, such as a clone or a backup, in whatever place it has them. They are
right in every version then. --from reads every chunk, as --full does.

--salvage makes a database with a lost or damaged index one that opens again,
in place or with --to as a new one. The newest sound checkpoint of the index is
restored; payloads that are newer go to the branch lost+found. What was damaged
is kept in DB/quarantine.

At the URL of a remote, fsck looks for all objects that the manifest lists, and for
the versions of branches and tags. With --full it compares pages and commits with
their names. "zarrdb clone" compares payloads.`,
		Example: `  zarrdb fsck weather.zdb
  zarrdb fsck weather.zdb --full
  zarrdb fsck weather.zdb --full --repair
  zarrdb fsck weather.zdb --repair --from /mnt/disk/weather.zdb
  zarrdb fsck --salvage weather.zdb --to rescued.zdb
  zarrdb fsck s3://bucket/weather`,
		Args: argCount(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if engine.IsRemote(args[0]) {
				if salvage || repair || from != "" || to != "" {
					return usagef("%s: a remote is not repaired; push to a new URL from a database that has its versions", cmd.CommandPath())
				}
				return fsckRemote(cmd, args[0], o.Payloads, asJSON)
			}
			if salvage && (repair || o.Payloads || asJSON) {
				return usagef("%s: --salvage goes with no flag but --to", cmd.CommandPath())
			}
			if salvage {
				return salvageDB(cmd, args[0], to)
			}
			if from != "" && !repair {
				return usagef("%s: --from goes with --repair", cmd.CommandPath())
			}
			if to != "" {
				return usagef("%s: --to goes with --salvage", cmd.CommandPath())
			}
			open := readOnly
			if repair {
				open = nil
			}
			return withOnlyDB(cmd, args[0], open, func(db *engine.DB) error {
				check := func(from ...*engine.DB) error {
					r, err := fsck(cmd, db, o, repair, asJSON, from...)
					if err != nil {
						return err
					}
					return damaged(args[0], r)
				}
				if from == "" {
					return check()
				}
				return withOnlyDB(cmd, from, readOnly, func(src *engine.DB) error { return check(src) })
			})
		},
	}
	cmd.Flags().BoolVar(&o.Payloads, "full", false, "read every payload")
	cmd.Flags().BoolVar(&repair, "repair", false, "restore what checkpoints of the index have")
	cmd.Flags().StringVar(&from, "from", "", "database `COPY` that chunks and pages are taken from")
	cmd.Flags().BoolVar(&salvage, "salvage", false, "restore a lost or damaged index")
	cmd.Flags().StringVar(&to, "to", "", "directory for the salvaged `DB`; default in place")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print counts and problems as JSON")
	return cmd
}

// fsckRemote checks a remote, and prints the problems.
func fsckRemote(cmd *cobra.Command, url string, full, asJSON bool) error {
	r, err := engine.CheckRemote(cmd.Context(), url, full, alone(cmd, nil))
	if err != nil {
		return err
	}
	if asJSON {
		problems := []string{}
		for _, p := range r.Problems {
			problems = append(problems, fault.OneLine(p))
		}
		err = printJSON(cmd, map[string]any{"bundles": r.Bundles, "segments": r.Segments, "pages": r.Pages, "commits": r.Commits, "unlisted": r.Unlisted, "problems": problems, "more": r.More})
	} else {
		for _, p := range r.Problems {
			say(cmd, "%s", fault.OneLine(p))
		}
		say(cmd, "%s, %s, %s that nothing lists", count(int64(r.Bundles), "bundle"), count(int64(r.Segments), "segment"), count(int64(r.Unlisted), "object"))
		if len(r.Problems) == 0 && full {
			say(cmd, "%s and %s have their names; no problems found", count(int64(r.Pages), "page"), count(int64(r.Commits), "commit"))
		} else if len(r.Problems) == 0 {
			say(cmd, "no problems found; --full compares pages and commits too")
		}
	}
	if err == nil && len(r.Problems) > 0 {
		err = fmt.Errorf("%s: %s, the first: %w", url, count(int64(len(r.Problems)+r.More), "problem"), r.Problems[0])
	}
	return err
}

// salvageDB restores a lost index and prints the result.
func salvageDB(cmd *cobra.Command, dir, to string) error {
	bar := newByteProgress(cmd, "searched")
	r, err := engine.Salvage(cmd.Context(), dir, to, alone(cmd, nil), func(p txn.CheckProgress) { bar.bytesDone(p.Bytes, p.TotalBytes) })
	bar.finish(err)
	if errors.Is(err, txn.ErrSound) {
		say(cmd, "%s: the index is sound, there is nothing to salvage", dir)
		return nil
	}
	if err != nil {
		return err
	}
	for _, s := range r.Refused {
		candidate, why, _ := strings.Cut(s, ": ")
		say(cmd, "not usable: %s: %s", candidate, fault.OneLine(errors.New(why)))
	}
	switch {
	case r.Source == "":
		say(cmd, "there is no usable copy of the index: history and metadata are lost")
	case r.AsOf.IsZero() || r.Source == "index":
		say(cmd, "index restored from %s", r.Source)
	default:
		say(cmd, "index restored from %s, as of %s: commits made later are lost, but for their newer payloads",
			r.Source, r.AsOf.In(time.Local).Format(time.DateTime))
	}
	if r.Quarantine != "" {
		say(cmd, "the damaged index is kept in %s", r.Quarantine)
	}
	if r.Damaged > 0 {
		say(cmd, "%s in packs that cannot be read", count(r.Damaged, "place"))
	}
	if r.Found > 0 {
		say(cmd, "%s of %s, in %s, put on branch %s of %s",
			count(r.Found, "newer payload"), size(r.FoundBytes), count(r.Arrays, "array"), txn.LostAndFound, r.Dir)
	}
	for _, p := range r.Problems {
		say(cmd, "%s", fault.OneLine(p))
	}
	if n := len(r.Problems); n > 0 {
		return fmt.Errorf("%s: %s left, the first: %w", r.Dir, count(int64(n), "problem"), engine.Damaged(r.Problems[0]))
	}
	return nil
}

// fsck checks a database, repairs it with --repair, and prints the problems.
func fsck(cmd *cobra.Command, db *engine.DB, o txn.CheckOptions, repair, asJSON bool, from ...*engine.DB) (*txn.CheckReport, error) {
	arrays := map[string]int64{} // number of damaged chunks of each
	if !asJSON {
		o.Found = func(p txn.Problem) {
			say(cmd, "%s", fault.OneLine(p))
			if p.Chunk != nil {
				arrays[p.Array]++
			}
		}
	}
	bar := newByteProgress(cmd, "verified")
	o.Progress = func(p txn.CheckProgress) { bar.bytesDone(p.Bytes, p.TotalBytes) }
	var r *txn.CheckReport
	var fixed *txn.RepairReport
	var err error
	if repair {
		fixed, err = db.Repair(cmd.Context(), o, from...)
	} else {
		r, err = db.Check(cmd.Context(), o)
	}
	bar.finish(err)
	if err != nil {
		return nil, err
	}
	if repair {
		r = fixed.After
	}
	out := report.NewFsck(db, r, fixed)
	if asJSON {
		return r, printJSON(cmd, out)
	}
	if repair {
		for _, s := range fixed.Done {
			say(cmd, "repaired: %s", s)
		}
		if fixed.Record != "" {
			say(cmd, "recorded in %s", fixed.Record)
		}
	}
	if !repair { // its report has the problems before and after
		for _, path := range slices.Sorted(maps.Keys(arrays)) {
			say(cmd, "/%s: %s damaged", path, count(arrays[path], "chunk"))
		}
	}
	say(cmd, "%s, %s, %s, %s, %s, %s of %s", count(r.Refs, "ref"), count(r.Commits, "commit"), count(r.Sessions, "session"),
		count(r.Pages, "page"), count(r.Values, "value"), count(r.Payloads, "payload"), size(r.PayloadBytes))
	if r.AwayPages+r.AwayPayloads > 0 {
		say(cmd, "%s and %s are in the remote, and were not looked at", count(r.AwayPages, "page"), count(r.AwayPayloads, "payload"))
	}
	if r.OrphanPages > 0 {
		say(cmd, "%s of %s for gc to collect", count(r.OrphanPages, "page"), size(r.OrphanBytes))
	}
	for _, text := range out.CareErrors {
		warn(cmd, text)
	}
	switch {
	case len(r.Problems) > 0:
	case o.Payloads || len(from) > 0:
		say(cmd, "no problems found")
	default:
		say(cmd, "no problems found; --full reads the payloads too")
	}
	return r, nil
}

// damaged is the error of a database with problems, nil without.
func damaged(name string, r *txn.CheckReport) error {
	if len(r.Problems) == 0 {
		return nil
	}
	return fmt.Errorf("%s: %s, the first: %w", name, count(r.Found, "problem"), engine.Damaged(r.Problems[0]))
}
