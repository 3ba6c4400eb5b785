package main

import (
	"bufio"
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/zarr"
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
	cmd.AddCommand(refsExpandCmd(), refsCheckCmd(), refsLocalizeCmd())
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

func refsCheckCmd() *cobra.Command {
	var src sourceFlags
	var o engine.RefCheckOptions
	cmd := &cobra.Command{
		Use:   "check TARGET",
		Short: "Make sure that what references name is there",
		Long: `Ask for every file that the references at and below TARGET name, a version of a
database or a reference set: it must exist, be what it was when it was imported,
and have the bytes that are referred to. Nothing is read of the files. What is
wrong is printed, one reference a line. A check that is interrupted says where
--from goes on.`,
		Example: `  zarrdb refs check weather.zdb:temp
  zarrdb refs check refs.json --allow s3://noaa/`,
		Args: argCount(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := src.open(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			defer s.Close()
			bar := newProgress(cmd, "checking")
			o.Progress = bar.update
			o.Problem = func(p engine.RefProblem) error {
				cmd.Printf("%s: %s\n", p.Key, oneLine(p.Err))
				return nil
			}
			r, err := s.CheckReferences(cmd.Context(), o)
			bar.finish(err)
			if err != nil {
				if r != nil && cmd.Context().Err() != nil {
					cmd.Printf("stopped after %s: go on with --from %d\n", count(r.Done, "reference"), r.Done)
				}
				return err
			}
			if r.Problems > 0 {
				return fmt.Errorf("%d of %s cannot be read", r.Problems, count(r.Done-o.From, "reference"))
			}
			cmd.Printf("%s checked\n", count(r.Done-o.From, "reference"))
			return nil
		},
	}
	src.register(cmd)
	cmd.Flags().Int64Var(&o.From, "from", 0, "leave out the first `N` references")
	return cmd
}

func refsLocalizeCmd() *cobra.Command {
	var wf writeFlags
	var sel string
	cmd := &cobra.Command{
		Use:   "localize TARGET [--select SEL]",
		Short: "Copy what virtual chunks refer to into the database",
		Long: `Copy the bytes of the virtual chunks at and below TARGET's path into the database,
as one commit. The arrays read the same, and need the files no more. Versions
from before still refer to them.

--select takes only the chunks, or shards, of an array that hold something of
SEL, which is as for read.`,
		Example: `  zarrdb refs localize weather.zdb:temp -m "keep temp here"
  zarrdb refs localize weather.zdb:temp --select "time='2020-01':'2020-03'"`,
		Args: argCount(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := parseDB(args[0])
			if err != nil {
				return err
			}
			message := "localize /" + t.path
			if sel != "" {
				message += "[" + sel + "]"
			}
			var keys, bytes int64
			err = wf.update(cmd, t, message, func(db *engine.DB, s *engine.Session) error {
				which, err := localizedPart(cmd.Context(), s, t.path, sel)
				if err != nil {
					return err
				}
				bar := newProgress(cmd, "copying")
				keys, bytes, err = db.Localize(cmd.Context(), s, t.path, engine.LocalizeOptions{Select: which, Progress: bar.update})
				bar.finish(err)
				return err
			})
			if err == nil {
				cmd.Printf("%s, %s\n", count(keys, "chunk"), size(bytes))
			}
			return err
		},
	}
	wf.register(cmd)
	cmd.Flags().StringVarP(&sel, "select", "s", "", "which part of an array (default all at and below the path)")
	return cmd
}

// localizedPart reads a selection of the array at a path of a session; nil if
// the text is empty.
func localizedPart(ctx context.Context, s *engine.Session, path, text string) (*zarr.Selection, error) {
	if text == "" {
		return nil, nil
	}
	n, err := s.Node(ctx, path)
	if err != nil {
		return nil, err
	}
	a, ok := n.Array()
	if !ok {
		return nil, usagef("localize /%s: --select needs an array, and it is a group", path)
	}
	sel, err := parseLabels(ctx, text, a, func(ctx context.Context, name string) (*coordinate, error) {
		return sessionCoordinate(ctx, s, path, name)
	})
	return &sel, err
}
