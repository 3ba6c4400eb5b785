package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/zarrdb/zarrdb/zarr"
	"github.com/zarrdb/zarrdb/zarr/cf"
)

// parseSelection reads a selection of the array by numbers and labels. It notes on
// standard error which ranges of labels select nothing. beside opens the
// coordinates: [engine.Source.Sibling], or what besideNode returns.
func parseSelection(cmd *cobra.Command, text string, a *zarr.Array, beside cf.Opener) (zarr.Selection, error) {
	sel, empty, err := cf.ParseSelection(cmd.Context(), text, a, beside)
	switch {
	case errors.Is(err, zarr.ErrSelection), errors.Is(err, cf.ErrLabel):
		if quoted, ok := cf.QuoteLabels(text); ok {
			err = fmt.Errorf("%w; labels stand in quotes, around which the shell needs others: --select \"%s\"", err, quoted)
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

// nodes is a version of a database or a session.
type nodes interface {
	Node(ctx context.Context, path string) (*zarr.Node, error)
}

// besideNode opens the neighbours of a node.
func besideNode(in nodes, path string) cf.Opener {
	return func(ctx context.Context, name string) (*zarr.Node, error) {
		group := strings.LastIndexByte(path, '/') + 1
		if path == "" || name == "" || strings.Contains(name, "/") {
			return nil, fmt.Errorf("%s: beside /%s: %w", name, path, zarr.ErrNotFound)
		}
		return in.Node(ctx, path[:group]+name)
	}
}

// axis is a dimension of a result: which elements of which dimension of the
// array it goes through. dim is -1 for a new one.
type axis struct {
	dim         int
	start, step int64
}

// axesOf says what a basic selection, as it prints, does with each dimension.
func axesOf(sel zarr.Selection, shape []int64) []axis {
	var items []string
	if text := sel.String(); text != "" {
		items = strings.Split(text, ",")
	}
	used := 0
	for _, item := range items {
		if item = strings.TrimSpace(item); item != "..." && item != "newaxis" && item != "None" {
			used++
		}
	}
	var axes []axis
	d := 0
	whole := func(n int) {
		for range n {
			axes = append(axes, axis{d, 0, 1})
			d++
		}
	}
	for _, item := range items {
		switch item = strings.TrimSpace(item); {
		case item == "...":
			whole(len(shape) - used)
			used = len(shape)
		case item == "newaxis" || item == "None":
			axes = append(axes, axis{-1, 0, 1})
		case strings.Contains(item, ":"):
			parts := append(strings.Split(item, ":"), "")
			step, err := strconv.ParseInt(parts[2], 10, 64)
			if err != nil {
				step = 1
			}
			start, err := strconv.ParseInt(parts[0], 10, 64)
			switch {
			case err != nil && step < 0:
				start = shape[d] - 1
			case err != nil:
				start = 0
			case start < 0:
				start = max(start+shape[d], 0)
			}
			axes = append(axes, axis{d, min(start, max(shape[d]-1, 0)), step})
			d++
		default:
			d++ // a single element
		}
	}
	whole(len(shape) - d)
	return axes
}

// dimensionName is what a dimension is called, or a name by its number.
func dimensionName(a *zarr.Array, dim int) string {
	if names := a.DimensionNames(); dim >= 0 && dim < len(names) && names[dim] != "" && !slices.Contains(names[:dim], names[dim]) {
		return names[dim]
	}
	if dim < 0 {
		return "newaxis"
	}
	return "dim_" + strconv.Itoa(dim)
}
