package cli

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/internal/report"
	"github.com/zarrdb/zarrdb/zarr"
)

func blameCmd() *cobra.Command {
	var sel string
	var values, asJSON bool
	cmd := &cobra.Command{
		Use:   "blame DB[@REV]:PATH",
		Short: "Show which commit wrote each chunk of an array",
		Long: `Print which commit last changed the chunks that the selection touches (default the
whole array): the commit, its time and author, the part of the array that the chunks
hold, and the message. Neighbouring chunks of one commit are one line, or a few
where they do not fill rows of the grid. A chunk that is not stored is the commit's
that removed it or made the array. Renames are followed. With --json, "chunk" and
"key" are those of the first chunk, and "chunks" counts the chunks of each dimension.

A commit that changed one value of a chunk wrote the whole chunk. --values compares
the values themselves along the history of the chunks, and prints which commit
changed each of them last. A line says so where an earlier commit, which has expired or
whose chunks cannot be read, may have made the change. The box around the selection
may have up to 67108864 values.`,
		Example: `  zarrdb blame weather.zdb:temp --select '0,100:200'
  zarrdb blame weather.zdb:temp --select '0,100,200' --values
  zarrdb blame weather.zdb@v1.0:temp --json`,
		Args: argCount(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := parseDB(args[0])
			if err != nil {
				return err
			}
			return t.with(cmd, readOnly, func(t target, db *engine.DB) error {
				ctx := cmd.Context()
				at, err := db.Resolve(ctx, t.rev)
				if err != nil {
					return err
				}
				selection, err := selectionOf(cmd, db, t, sel)
				if err != nil {
					return err
				}
				line := func(commit string, at time.Time, author string, start, shape []int64, message string) {
					say(cmd, "%s %s %s [%s] %s", short(commit), at.In(time.Local).Format(time.DateTime), author, boxText(start, shape), firstLine(message))
				}
				if values {
					blamed := report.ValueBlame(ctx, db, at, t.path, selection)
					if asJSON {
						return printJSONLines(cmd, blamed)
					}
					for c, err := range blamed {
						if err != nil {
							return err
						}
						line(c.Commit, c.Time, c.Author, c.Start, c.Shape, firstLine(c.Message)+orExpired(c.OrExpired, true))
					}
					return nil
				}
				blamed := report.Blame(ctx, db, at, t.path, selection)
				if asJSON {
					return printJSONLines(cmd, blamed)
				}
				say(cmd, "by chunks: a commit wrote all of a chunk that it changed one value of; --values compares values")
				for c, err := range blamed {
					if err != nil {
						return err
					}
					line(c.Commit, c.Time, c.Author, c.Start, c.Shape, c.Message)
				}
				return nil
			})
		},
	}
	cmd.Flags().StringVarP(&sel, "select", "s", "", "part of the array, as for read")
	methodFlag(cmd)
	cmd.Flags().BoolVar(&values, "values", false, "compare values, not chunks")
	cmd.Flags().BoolVar(&asJSON, "json", false, "one JSON object a line")
	return cmd
}

// selectionOf reads a selection of the array that a target names.
func selectionOf(cmd *cobra.Command, db *engine.DB, t target, sel string) (zarr.Selection, error) {
	s, err := db.At(cmd.Context(), t.rev)
	if err != nil {
		return zarr.Selection{}, err
	}
	defer s.Close()
	a, err := s.Array(cmd.Context(), t.path)
	if err != nil {
		return zarr.Selection{}, near(cmd.Context(), t, s.Walk(cmd.Context(), ""), err)
	}
	return parseSelection(cmd, sel, a, engine.Beside(s, t.path))
}

// boxText prints a part of an array as a selection.
func boxText(start, shape []int64) string {
	parts := make([]string, len(start))
	for d, lo := range start {
		parts[d] = fmt.Sprintf("%d:%d", lo, lo+shape[d])
	}
	return strings.Join(parts, ",")
}
