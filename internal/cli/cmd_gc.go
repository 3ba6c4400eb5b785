package cli

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/engine/zurl"
	"github.com/zarrdb/zarrdb/txn"
)

func expireCmd() *cobra.Command {
	var o txn.ExpireOptions
	var older, policy string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "expire DB",
		Short: "Let old versions go",
		Long: `Mark old versions, so that "zarrdb gc" can free what only they hold. What
--older-than or --keep says stays, and so do heads, tags and bases of
sessions, and the merge bases of branches and tags, which merges and rebases
need. --drop-bases lets merge bases go: a merge then has to decide every
difference. The log keeps its entries; a version that has expired cannot be
opened any more. An age is a number with s, m, h, d or w, or a date.

--policy keeps the newest version of each of the last hours, days, weeks, months or
years (UTC) that have versions, of each branch: "keep 7 daily 4 weekly 12 monthly".
Several of the three options keep what any of them keeps. --policy alone keeps the last
entry of each reflog only, so that "zarrdb undo" has nothing to go back to: give
--older-than 7d too.`,
		Example: `  zarrdb expire weather.zdb --older-than 30d
  zarrdb expire weather.zdb --keep 10 --branch main --dry-run
  zarrdb expire weather.zdb --policy "keep 7 daily 4 weekly 12 monthly, tags" --older-than 7d`,
		Args: argCount(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if older == "" && o.Keep <= 0 && policy == "" {
				return usagef("expire: --older-than, --keep (1 or more) or --policy must be given")
			}
			if policy != "" {
				var err error
				if o.Policy, err = txn.ParseKeepPolicy(policy); err != nil {
					return usageError{err}
				}
			}
			if older != "" {
				var err error
				if o.Before, err = parseAge(older, time.Now()); err != nil {
					return usagef("--older-than: %w", err)
				}
			}
			var access *engine.Options
			if o.DryRun {
				access = readOnly
			}
			return withOnlyDB(cmd, args[0], access, func(db *engine.DB) error {
				r, err := db.Expire(cmd.Context(), o)
				if err != nil {
					return err
				}
				if asJSON {
					return printJSON(cmd, map[string]any{
						"expired": r.Expired, "kept": r.Kept, "expired_before": r.Earlier, "reflog_entries": r.Reflog,
						"holders": holdersJSON(r.Holders),
					})
				}
				say(cmd, "%s %s and %s of the reflog; %d stay", would(o.DryRun, "expired", "would expire"),
					count(r.Expired, "version"), entries(r.Reflog), r.Kept)
				for _, h := range r.Holders {
					say(cmd, "%s keeps %s", strings.TrimSpace(h.Kind+" "+h.Name), count(h.Versions, "version"))
				}
				return nil
			})
		},
	}
	cmd.Flags().StringVar(&older, "older-than", "", "age, such as 30d or 12h, or a date")
	cmd.Flags().IntVar(&o.Keep, "keep", 0, "number of the newest versions of each branch to keep")
	cmd.Flags().StringVar(&policy, "policy", "", "which versions of each branch to keep, such as 'keep 7 daily 4 weekly 12 monthly, tags'")
	cmd.Flags().StringSliceVar(&o.Branches, "branch", nil, "only versions of this branch; may be repeated")
	cmd.Flags().BoolVar(&o.DropBases, "drop-bases", false, "let merge bases of branches go too")
	cmd.Flags().BoolVar(&o.DryRun, "dry-run", false, "only count")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print as JSON")
	return cmd
}

func gcCmd() *cobra.Command {
	var o txn.GCOptions
	var most byteSize
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "gc DB",
		Short: "Free data that no version needs any more",
		Long: `Remove index pages and payloads that nothing reaches: no version that has not
expired, no session. Space goes back to the file system, by holes in
files where it can. It can be interrupted at any moment and run again.
--explain lists what holds the rest, with the bytes that nothing else holds, and
what all files of the database take on disk.

In a lazy clone, --away removes the chunks that were fetched, and --away-size changes
how much of them is kept. At the URL of a remote this is about its cache.`,
		Example: `  zarrdb gc weather.zdb
  zarrdb gc weather.zdb --dry-run --explain`,
		Args: argCount(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var access *engine.Options
			if o.DryRun {
				access = readOnly
			}
			o.AwaySize = int64(most)
			if engine.IsRemote(args[0]) {
				if !o.Away && most == 0 {
					return usagef("%s: nothing is collected in a remote yet; --away frees what was fetched from there", cmd.CommandPath())
				}
				dir := engine.RemoteCacheDir(args[0])
				if dir == "" {
					return fmt.Errorf("%s: %w: there is no cache of it", zurl.Redact(args[0]), engine.ErrNotFound)
				}
				args[0] = dir
			}
			return withOnlyDB(cmd, args[0], access, func(db *engine.DB) error {
				bar := newPhases(cmd)
				o.Progress = func(p txn.GCProgress) { bar.update(p.Phase, p.Done) }
				r, err := db.GC(cmd.Context(), o)
				bar.finish()
				if err != nil {
					return err
				}
				if asJSON {
					return printJSON(cmd, gcJSON(r))
				}
				printGC(cmd, r, o.DryRun)
				return nil
			})
		},
	}
	cmd.Flags().BoolVar(&o.DryRun, "dry-run", false, "only print what would be freed")
	cmd.Flags().BoolVar(&o.Away, "away", false, "also remove what a lazy clone has fetched of chunks")
	cmd.Flags().Var(&most, "away-size", "from now on, keep at most `SIZE`, such as 10GiB, of chunks that a lazy clone fetches")
	cmd.Flags().BoolVar(&o.Erase, "erase", false, "remove every byte of what is dead, as after zarrdb erase")
	cmd.Flags().BoolVar(&o.Explain, "explain", false, "list what holds the rest")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print as JSON")
	return cmd
}

func would(dry bool, did, would string) string {
	if dry {
		return would
	}
	return did
}

func entries(n int64) string {
	if n == 1 {
		return "1 entry"
	}
	return fmt.Sprintf("%d entries", n)
}

func printGC(cmd *cobra.Command, r *txn.GCReport, dry bool) {
	say(cmd, "%s %s (%s) and %s of payloads", would(dry, "freed", "would free"),
		count(r.DeletedPages, "page"), size(r.DeletedPageBytes), size(r.FreedBytes))
	say(cmd, "packs: %d removed, %d with new holes, %d rewritten", r.Removed, r.Punched, r.Rewritten)
	say(cmd, "in use: %s (%s) and %s of payloads", count(r.Pages, "page"), size(r.PageBytes), size(r.LiveBytes))
	if r.AwayBytes > 0 {
		say(cmd, "%s %s of what was fetched from the remote", would(dry, "removed", "would remove"), size(r.AwayBytes))
	}
	if r.HeldBytes > 0 {
		why := ""
		if r.Linked+r.Leased > 0 {
			why = fmt.Sprintf(" (packs with a second link: %d, read by other processes: %d)", r.Linked, r.Leased)
		}
		say(cmd, "dead, but kept for now: %s%s", size(r.HeldBytes), why)
	}
	if r.Erased && !dry {
		say(cmd, "what was erased is not all gone: a program has a version or a session open, or a file has a second link; run gc again when that has ended")
	}
	if r.Quarantine != "" {
		say(cmd, "%s has files that fsck put aside, and may have what was erased: only you may remove them", r.Quarantine)
	}
	for _, h := range r.Holders {
		say(cmd, "%s holds %s alone, in %s", strings.TrimSpace(h.Kind+" "+h.Name), size(h.OnlyBytes), count(h.Versions, "version"))
	}
	if u := &r.Disk; r.Holders != nil {
		say(cmd, "on disk: %s: index %s, packs %s in %s", size(u.Total()), size(u.IndexBytes), size(u.PackBytes), count(int64(u.Packs), "file"))
		say(cmd, "checkpoints take %s: old tables of the index, which fsck --salvage may need; gc replaces checkpoints with many", size(u.CheckpointBytes))
		say(cmd, "other files take %s, such as quarantine, which only you may remove", size(u.OtherBytes))
	}
}

func gcJSON(r *txn.GCReport) map[string]any {
	out := map[string]any{
		"pages": r.Pages, "page_bytes": r.PageBytes, "deleted_pages": r.DeletedPages, "deleted_page_bytes": r.DeletedPageBytes,
		"live_bytes": r.LiveBytes, "freed_bytes": r.FreedBytes, "held_bytes": r.HeldBytes,
		"removed": r.Removed, "punched": r.Punched, "rewritten": r.Rewritten, "linked": r.Linked, "leased": r.Leased,
		"pinned": 0, "stopped": false, // for programs that read them; there are no pins any more
	}
	if r.Erased {
		out["erased_remains"] = true
	}
	if r.Quarantine != "" {
		out["quarantine"] = r.Quarantine
	}
	if r.AwayBytes > 0 {
		out["away_bytes"] = r.AwayBytes
	}
	if r.Holders != nil {
		out["holders"] = holdersJSON(r.Holders)
		out["index_bytes"], out["pack_bytes"], out["checkpoint_bytes"], out["disk_bytes"] = r.Disk.IndexBytes, r.Disk.PackBytes, r.Disk.CheckpointBytes, r.Disk.Total()
	}
	return out
}

type holderJSON struct {
	Kind     string `json:"kind"`
	Name     string `json:"name,omitempty"`
	Versions int64  `json:"versions"`
	Only     int64  `json:"only_bytes,omitempty"`
}

func holdersJSON(holders []txn.Holder) []holderJSON {
	list := []holderJSON{}
	for _, h := range holders {
		list = append(list, holderJSON{h.Kind, h.Name, h.Versions, h.OnlyBytes})
	}
	return list
}

// parseAge reads an age before now, or a point in time.
func parseAge(s string, now time.Time) (time.Time, error) {
	if age, err := txn.ParseAge(s); err == nil {
		return now.Add(-age), nil
	}
	at, err := txn.ParseTime(s)
	if err != nil {
		return at, fmt.Errorf("%q is neither an age such as 30d nor a date", s)
	}
	return at, nil
}
