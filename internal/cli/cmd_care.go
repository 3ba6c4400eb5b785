package cli

import (
	"fmt"
	"iter"
	"time"

	"github.com/spf13/cobra"

	"github.com/zarrdb/zarrdb/engine"
)

func statsCmd() *cobra.Command {
	var asJSON, versions bool
	cmd := &cobra.Command{
		Use:   "stats DB[@REV]",
		Short: "Count what a database holds",
		Long: `Count what a version holds, and what the database takes on disk. --versions lists the
versions, newest first, with the keys that each changed and the bytes that it stored.`,
		Example: `  zarrdb stats weather.zdb
  zarrdb stats weather.zdb --versions`,
		Args: argCount(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withDB(cmd, args[0], readOnly, func(t target, db *engine.DB) error {
				if versions {
					return printVersions(cmd, db.VersionStats(cmd.Context(), t.rev), asJSON)
				}
				st, err := db.Stats(cmd.Context(), t.rev)
				if err != nil {
					return err
				}
				if asJSON {
					return printJSON(cmd, st)
				}
				say(cmd, "branches %d, tags %d, commits %d, sessions %d", st.Branches, st.Tags, st.Commits, st.Sessions)
				for _, l := range st.Kept {
					say(cmd, "kept as %s: %s", l.Name, keptLine(l.Commit, l.Since, l.By))
				}
				say(cmd, "groups %d, arrays %d", st.Groups, st.Arrays)
				if st.Unreadable > 0 {
					say(cmd, "nodes that cannot be read %d", st.Unreadable)
				}
				say(cmd, "keys %d: %d inline, %d native, %d virtual", st.Keys, st.Inline, st.Native, st.Virtual)
				say(cmd, "stored bytes of this version: %s", size(st.Bytes))
				say(cmd, "on disk: %s: index %s, packs %s in %s, checkpoints %s, other files %s", size(st.DiskBytes), size(st.IndexBytes), size(st.PackBytes),
					count(int64(st.Packs), "file"), size(st.CheckpointBytes), size(st.DiskBytes-st.IndexBytes-st.PackBytes-st.CheckpointBytes))
				m := st.Memory
				say(cmd, "memory of this process: %s of %s: chunks %s, pages %s, index %s, sessions %s, requests %s", size(m.Used), size(m.Limit),
					size(m.Chunks), size(m.Pages), size(m.Index), size(m.Sessions), size(m.Requests))
				for _, e := range st.CareErrors {
					warn(cmd, e)
				}
				return nil
			})
		},
	}
	cmd.Flags().BoolVar(&versions, "versions", false, "list what each version changed")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print as JSON; with --versions one object a line")
	return cmd
}

func printVersions(cmd *cobra.Command, list iter.Seq2[engine.VersionStats, error], asJSON bool) error {
	if asJSON {
		return printJSONLines(cmd, list)
	}
	for v, err := range list {
		if err != nil {
			return err
		}
		what := fmt.Sprintf("%10s in %s", size(v.Bytes), count(v.Keys, "key"))
		if v.Expired {
			what = "  (expired)"
		}
		say(cmd, "%s %s %s %s", short(v.ID), v.Time.In(time.Local).Format(time.DateTime), what, firstLine(v.Message))
	}
	return nil
}
