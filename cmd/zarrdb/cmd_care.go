package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/txn"
)

func statsCmd() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "stats DB[@REV]",
		Short:   "Count what a database holds",
		Example: `  zarrdb stats weather.zdb`,
		Args:    argCount(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withDB(cmd, args[0], readOnly, func(t target, db *engine.DB) error {
				st, err := db.Stats(cmd.Context(), t.rev)
				if err != nil {
					return err
				}
				if asJSON {
					return printJSON(cmd, st)
				}
				cmd.Printf("branches %d, tags %d, commits %d, sessions %d\n", st.Branches, st.Tags, st.Commits, st.Sessions)
				cmd.Printf("groups %d, arrays %d\n", st.Groups, st.Arrays)
				if st.Unreadable > 0 {
					cmd.Printf("nodes that cannot be read %d\n", st.Unreadable)
				}
				cmd.Printf("keys %d: %d inline, %d native, %d virtual\n", st.Keys, st.Inline, st.Native, st.Virtual)
				cmd.Printf("stored bytes of this version: %s\n", size(st.Bytes))
				cmd.Printf("on disk: index %s, packs %s in %d files\n", size(st.IndexBytes), size(st.PackBytes), st.Packs)
				return nil
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print as JSON")
	return cmd
}

func fsckCmd() *cobra.Command {
	var o txn.CheckOptions
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "fsck DB",
		Short: "Verify a database",
		Long: `Verify that every commit, page and value that a ref, the reflog or a session
reaches is there and is what its name says. --full also reads every payload and
compares it with its checksum and hash. Problems are listed one a line, and the
exit code is 5.`,
		Example: `  zarrdb fsck weather.zdb --full`,
		Args:    argCount(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withOnlyDB(cmd, args[0], readOnly, func(db *engine.DB) error {
				if !asJSON {
					o.Found = func(p txn.Problem) { cmd.Println(p.Error()) }
				}
				r, err := db.Check(cmd.Context(), o)
				if err != nil {
					return err
				}
				if asJSON {
					err = printJSON(cmd, fsckJSON(r))
				} else {
					cmd.Printf("%d refs, %d commits, %d sessions, %d pages, %d values, %d payloads of %s\n",
						r.Refs, r.Commits, r.Sessions, r.Pages, r.Values, r.Payloads, size(r.PayloadBytes))
				}
				if n := len(r.Problems); n > 0 {
					return fmt.Errorf("%s: %s, the first: %w", args[0], count(int64(n), "problem"), engine.Damaged(r.Problems[0]))
				}
				return err
			})
		},
	}
	cmd.Flags().BoolVar(&o.Payloads, "full", false, "read every payload")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print counts and problems as JSON")
	return cmd
}

func fsckJSON(r *txn.CheckReport) map[string]any {
	type problem struct {
		What  string `json:"what"`
		Error string `json:"error"`
	}
	problems := []problem{}
	for _, p := range r.Problems {
		problems = append(problems, problem{p.What, p.Err.Error()})
	}
	return map[string]any{
		"refs": r.Refs, "commits": r.Commits, "sessions": r.Sessions, "pages": r.Pages, "values": r.Values,
		"payloads": r.Payloads, "payload_bytes": r.PayloadBytes, "problems": problems,
	}
}
