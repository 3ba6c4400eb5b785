package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/zarrdb/zarrdb/internal/picture"
	"github.com/zarrdb/zarrdb/zarr"
	"github.com/zarrdb/zarrdb/zarr/cf"
)

// parseSelection reads a selection of the array by numbers and labels. It prints
// ranges of labels that select nothing to standard error. beside opens the
// coordinates: [engine.Source.Sibling], or the result of [engine.Beside].
func parseSelection(cmd *cobra.Command, text string, a *zarr.Array, beside cf.Opener) (zarr.Selection, error) {
	parse := cf.ParseSelection
	if m := cmd.Flags().Lookup("method"); m != nil && m.Value.String() != "" {
		if m.Value.String() != "nearest" {
			return zarr.Selection{}, usagef("%s: --method is nearest or not given", cmd.CommandPath())
		}
		parse = cf.NearestSelection
	}
	sel, empty, err := parse(cmd.Context(), text, a, beside)
	switch {
	case errors.Is(err, zarr.ErrSelection), errors.Is(err, cf.ErrLabel):
		if quoted, ok := cf.QuoteLabels(text); ok {
			err = fmt.Errorf("%w; labels need quotes, and the shell needs others around them: --select \"%s\"", err, quoted)
		}
		return sel, usageError{err}
	case err != nil:
		return sel, err
	}
	for _, line := range empty {
		note(cmd, "%s", line)
	}
	return sel, nil
}

// dimensionName returns the name of a dimension, or one made of its number.
func dimensionName(a *zarr.Array, dim int) string { return picture.DimensionName(a, dim) }

// methodFlag adds the flag that [parseSelection] reads.
func methodFlag(cmd *cobra.Command) {
	cmd.Flags().String("method", "", "\"nearest\": a label names the element whose label is nearest")
}
