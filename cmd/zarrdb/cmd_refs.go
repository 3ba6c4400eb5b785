package main

import (
	"bufio"

	"github.com/spf13/cobra"

	"github.com/zarrdb/zarrdb/engine"
)

func refsCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "refs",
		Short: "Work with reference sets and virtual chunks",
		Long: `Reference sets (kerchunk) say for each key of a store which bytes of which file
are its value. import --link keeps them in a database as virtual chunks.

References are followed only below the folder of their set, below the targets of
--url-map, and below prefixes that --allow names.`,
		Example: `  zarrdb refs expand refs.json`,
		Args:    subcommandOnly,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(refsExpandCmd())
	return cmd
}

func refsExpandCmd() *cobra.Command {
	var src sourceFlags
	cmd := &cobra.Command{
		Use:   "expand FILE",
		Short: "Print a JSON reference set as version 0",
		Long: `Print a JSON reference set in the form of version 0: templates rendered and
generators written out. FILE may be compressed with gzip or zstd.`,
		Example: `  zarrdb refs expand refs.json.zst > v0.json`,
		Args:    argCount(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := src.open(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			defer s.Close()
			out := bufio.NewWriterSize(cmd.OutOrStdout(), 1<<16)
			if err := engine.ExpandReferences(cmd.Context(), s, out); err != nil {
				return err
			}
			return out.Flush()
		},
	}
	return cmd
}
