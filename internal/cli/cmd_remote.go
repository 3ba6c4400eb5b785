package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/txn"
)

// remoteDirCmd is for programs that read a remote by its URL through the process that has its cache open.
func remoteDirCmd() *cobra.Command {
	return &cobra.Command{
		Use:    "remote-dir TARGET",
		Short:  "Print where the cache of a remote is, which it makes or brings up to date",
		Args:   argCount(1, 1),
		Hidden: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			t := parseTarget(args[0])
			if !engine.IsRemote(t.db) {
				return fmt.Errorf("%s: no remote is there: %w", args[0], txn.ErrNotDatabase)
			}
			db, err := openDB(cmd, t.db, readOnly)
			if err != nil {
				return err
			}
			defer db.Close()
			return printJSON(cmd, map[string]string{"url": t.db, "dir": db.Dir()})
		},
	}
}
