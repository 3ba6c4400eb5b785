package cf

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/zarrdb/zarrdb/zarr"
	"github.com/zarrdb/zarrdb/zarr/ome"
)

// Opener opens a node by its name in the group of an array: the coordinates of
// the array are there. A node that is missing is [zarr.ErrNotFound].
type Opener func(ctx context.Context, name string) (*zarr.Node, error)

// labelForm matches DIM='a', DIM='a':'b' and either half of a range, with a
// step behind it.
var labelForm = regexp.MustCompile(`([^,'"=]+)=\s*('[^']*'|"[^"]*")?\s*(?:(:)\s*('[^']*'|"[^"]*")?\s*(:\s*[+-]?\d*)?)?`)

// ParseSelection is [zarr.ParseSelection] of a text in which dimensions may be
// selected by the labels of their coordinates: time='2020-02', lat='50':'45'.
// See [Labels.Find] and Labels.findRange for their elements. beside opens the
// coordinates.
//
// empty has a line for each range without labels: this is no error, but often a
// mistake. Errors are [zarr.ErrSelection] or [ErrLabel] for a text that selects
// nothing in any array, [zarr.ErrNotFound] for a label or a coordinate that is
// missing, or errors of reading the coordinate.
func ParseSelection(ctx context.Context, text string, a *zarr.Array, beside Opener) (sel zarr.Selection, empty []string, err error) {
	return parseSelection(ctx, text, a, beside, false)
}

// NearestSelection is [ParseSelection] in which one label names the element of the nearest label, see
// [Labels.Nearest]. Ranges are not changed.
func NearestSelection(ctx context.Context, text string, a *zarr.Array, beside Opener) (sel zarr.Selection, empty []string, err error) {
	return parseSelection(ctx, text, a, beside, true)
}

func parseSelection(ctx context.Context, text string, a *zarr.Array, beside Opener, nearest bool) (sel zarr.Selection, empty []string, err error) {
	names := a.DimensionNames()
	var failed error
	plain := labelForm.ReplaceAllStringFunc(text, func(item string) string {
		p := labelForm.FindStringSubmatch(item)
		if failed != nil || p[2] == "" && p[4] == "" {
			return item
		}
		name := strings.TrimSpace(strings.TrimLeft(p[1], " ["))
		l, err := readBeside(ctx, a, names, name, beside)
		if err == nil && strings.Contains(p[5], "-") {
			err = fmt.Errorf("%w: a range of labels has no negative step", zarr.ErrSelection)
		}
		var lo, hi int64
		one := false
		switch {
		case err != nil:
		case p[3] == "" && nearest:
			lo, err = l.Nearest(*unquote(p[2]))
			one = true
		case p[3] == "":
			lo, hi, one, err = l.Find(*unquote(p[2]))
		default:
			if lo, hi, err = l.findRange(unquote(p[2]), unquote(p[4])); err == nil && lo == hi {
				empty = append(empty, fmt.Sprintf("%s selects nothing: %s", strings.TrimSpace(item), l.describe()))
			}
		}
		if err != nil {
			failed = fmt.Errorf("select %s: %w", strings.TrimSpace(item), err)
			return item
		}
		if one {
			return fmt.Sprintf("%s=%d", p[1], lo)
		}
		return fmt.Sprintf("%s=%d:%d%s", p[1], lo, hi, p[5])
	})
	if failed == nil {
		sel, failed = zarr.ParseSelection(plain, names)
	}
	if failed != nil { // the missing names may be axes of an image
		if _, err := a.Image(ctx); errors.Is(err, ome.ErrMetadata) {
			failed = fmt.Errorf("%w (%w)", failed, err)
		}
	}
	return sel, empty, failed
}

// timeOfDay matches a label with colons of its own.
var timeOfDay = regexp.MustCompile(`\d[T ]\d`)

// QuoteLabels returns a selection with quotes around texts that can only be
// labels: time=2020-01-02 becomes time='2020-01-02'. ok is false without such
// texts.
func QuoteLabels(text string) (quoted string, ok bool) {
	items := strings.Split(text, ",")
	for i, item := range items {
		name, value, named := strings.Cut(item, "=")
		if !named || strings.ContainsAny(value, `'"`) {
			continue
		}
		parts := strings.Split(value, ":")
		if timeOfDay.MatchString(value) {
			parts = []string{value}
		}
		label := func(s string) bool {
			_, err := strconv.ParseInt(strings.TrimSpace(s), 10, 64)
			return err != nil && strings.TrimSpace(s) != ""
		}
		if !slices.ContainsFunc(parts[:min(len(parts), 2)], label) {
			continue
		}
		for k, part := range parts[:min(len(parts), 2)] {
			if part = strings.TrimSpace(part); part != "" {
				parts[k] = "'" + part + "'"
			}
		}
		items[i], ok = name+"="+strings.Join(parts, ":"), true
	}
	return strings.Join(items, ","), ok
}

// readBeside reads the labels of a dimension.
func readBeside(ctx context.Context, a *zarr.Array, names []string, name string, beside Opener) (*Labels, error) {
	if !slices.Contains(names, name) {
		return nil, fmt.Errorf("no dimension is named %q: %w", name, zarr.ErrNotFound)
	}
	n, err := beside(ctx, name)
	if err != nil {
		return nil, err
	}
	l, err := ReadLabels(ctx, n)
	if err != nil {
		return nil, err
	}
	if d := slices.Index(names, name); a.Shape()[d] != l.Len() {
		return nil, fmt.Errorf("%w: the dimension %s has %d elements and %d labels", zarr.ErrSelection, name, a.Shape()[d], l.Len())
	}
	return l, nil
}

// unquote returns the text between quotes, nil without quotes.
func unquote(s string) *string {
	if s == "" {
		return nil
	}
	s = s[1 : len(s)-1]
	return &s
}
