package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/zarr"
	"github.com/zarrdb/zarrdb/zarr/cf"
	"github.com/zarrdb/zarrdb/zarr/dtype"
)

// labelForm matches DIM='a', DIM='a':'b' and either half of the latter.
var labelForm = regexp.MustCompile(`([^,'"=]+)=\s*('[^']*'|"[^"]*")?\s*(:)?\s*('[^']*'|"[^"]*")?`)

// parseLabels parses a selection in which dimensions may be selected by the
// labels of their coordinate arrays, which are quoted and which open finds.
func parseLabels(ctx context.Context, text string, a *zarr.Array, open coordinateOpener) (zarr.Selection, error) {
	if strings.ContainsAny(text, `'"`) {
		var failed error
		text = labelForm.ReplaceAllStringFunc(text, func(item string) string {
			p := labelForm.FindStringSubmatch(item)
			if failed != nil || p[2] == "" && p[4] == "" || p[3] == "" && p[4] != "" {
				return item
			}
			name := strings.TrimSpace(p[1])
			c, err := open(ctx, name)
			var lo, hi int64
			if err == nil {
				lo, hi, err = c.find(p[2], p[4], p[3] != "")
			}
			if err != nil {
				failed = fmt.Errorf("select %s: %w", strings.TrimSpace(item), err)
				return item
			}
			if hi < 0 {
				return fmt.Sprintf("%s=%d", name, lo)
			}
			return fmt.Sprintf("%s=%d:%d", name, lo, hi)
		})
		if failed != nil {
			return zarr.Selection{}, failed
		}
	}
	sel, err := zarr.ParseSelection(text, a.DimensionNames())
	if err != nil {
		return sel, usageError{err}
	}
	return sel, nil
}

// coordinate is the array that holds the labels of a dimension.
type coordinate struct {
	name   string
	dec    *cf.Decoder
	values []byte         // decoded, 8 bytes each
	texts  dtype.Variable // of labels that are text
	n      int64
}

// coordinateOpener reads the coordinate array of the dimension with a name.
type coordinateOpener func(ctx context.Context, name string) (*coordinate, error)

// maxCoordinate is how many labels are looked through.
const maxCoordinate = 16 << 20

// openCoordinate reads the array that stands beside the one that is read and
// has the name of the dimension.
func openCoordinate(ctx context.Context, s *engine.Source, target, name string) (*coordinate, error) {
	n, err := s.Sibling(ctx, name)
	if errors.Is(err, zarr.ErrNotFound) && !strings.Contains(target, "|") && !rootURL.MatchString(target) {
		beside, oerr := engine.OpenSource(ctx, filepath.Join(filepath.Dir(filepath.Clean(target)), name), nil)
		if oerr == nil {
			defer beside.Close()
			n, err = beside.Node(ctx)
		}
	}
	if err != nil {
		return nil, err
	}
	return readCoordinate(ctx, n, name)
}

// sessionCoordinate is openCoordinate in what a session holds.
func sessionCoordinate(ctx context.Context, s *engine.Session, path, name string) (*coordinate, error) {
	beside := strings.LastIndexByte(path, '/') + 1
	if path == "" || name == "" || strings.Contains(name, "/") {
		return nil, fmt.Errorf("%s: beside /%s: %w", name, path, zarr.ErrNotFound)
	}
	n, err := s.Node(ctx, path[:beside]+name)
	if err != nil {
		return nil, err
	}
	return readCoordinate(ctx, n, name)
}

// readCoordinate reads the labels that a node holds.
func readCoordinate(ctx context.Context, n *zarr.Node, name string) (_ *coordinate, err error) {
	a, ok := n.Array()
	if !ok || len(a.Shape()) != 1 || a.Shape()[0] > maxCoordinate {
		return nil, fmt.Errorf("/%s holds no labels: it is not an array of one dimension", n.Path())
	}
	c := &coordinate{name: name, n: a.Shape()[0]}
	if a.Type().Kind() == dtype.String {
		c.texts, err = a.ReadVar(ctx, zarr.Sel())
		return c, err
	}
	if c.dec, err = cf.NewDecoder(a.Meta()); err != nil {
		return nil, err
	}
	raw := make([]byte, c.n*int64(a.Type().Size()))
	if err := a.ReadBytes(ctx, zarr.Sel(), raw); err != nil {
		return nil, err
	}
	if c.values, err = c.dec.Append(nil, raw); err != nil {
		return nil, err
	}
	t := c.dec.Type()
	switch t.Kind() {
	case dtype.Datetime:
		return c, nil
	case dtype.Int, dtype.Uint, dtype.Float:
		c.values, err = asFloats(t, c.values)
		return c, err
	}
	return nil, fmt.Errorf("labels of %v: %w", t, errors.ErrUnsupported)
}

// asFloats makes float64 of packed numbers.
func asFloats(t dtype.Type, b []byte) ([]byte, error) {
	var out []byte
	for size := t.Size(); len(b) > 0; b = b[size:] {
		text, err := t.AppendJSON(nil, b[:size])
		if err != nil {
			return nil, err
		}
		f, err := strconv.ParseFloat(strings.Trim(string(text), `"`), 64)
		if err != nil {
			return nil, err
		}
		out = binary.LittleEndian.AppendUint64(out, math.Float64bits(f))
	}
	return out, nil
}

// find returns the places of the labels from first to last, both included, or
// of one label: then hi is -1. A missing bound is open.
func (c *coordinate) find(first, last string, isRange bool) (lo, hi int64, err error) {
	if !isRange {
		last = first
	}
	match, err := c.matcher(unquote(first), unquote(last))
	if err != nil {
		return 0, 0, err
	}
	found := int64(0)
	for i := range c.n {
		if !match(i) {
			continue
		}
		if found == 0 {
			lo = i
		}
		found, hi = found+1, i+1
	}
	switch {
	case found == 0 && !isRange:
		return 0, 0, fmt.Errorf("%s has no label %s: %w", c.name, first, zarr.ErrNotFound)
	case hi-lo != found:
		return 0, 0, fmt.Errorf("the labels of %s are not in order: %w", c.name, zarr.ErrSelection)
	case found == 1 && !isRange:
		return lo, -1, nil
	}
	return lo, hi, nil
}

func unquote(s string) string {
	if len(s) >= 2 {
		return s[1 : len(s)-1]
	}
	return ""
}

// matcher reports which labels lie between two.
func (c *coordinate) matcher(first, last string) (func(i int64) bool, error) {
	switch {
	case c.dec == nil:
		return func(i int64) bool {
			v := string(c.texts.At(int(i)))
			return (first == "" || v >= first) && (last == "" || v <= last)
		}, nil
	case c.dec.Type().Kind() == dtype.Datetime:
		lo, hi := int64(math.MinInt64+1), int64(math.MaxInt64)
		var err error
		if first != "" {
			if lo, _, err = c.dec.ParseTime(first); err != nil {
				return nil, usageError{err}
			}
		}
		if last != "" {
			if _, hi, err = c.dec.ParseTime(last); err != nil {
				return nil, usageError{err}
			}
		}
		return func(i int64) bool {
			v := int64(binary.LittleEndian.Uint64(c.values[8*i:]))
			return v >= lo && v < hi
		}, nil
	}
	lo, hi := math.Inf(-1), math.Inf(1)
	for _, bound := range []struct {
		text string
		to   *float64
	}{{first, &lo}, {last, &hi}} {
		if bound.text == "" {
			continue
		}
		v, err := strconv.ParseFloat(bound.text, 64)
		if err != nil {
			return nil, usagef("%q is no number, as the labels of %s are", bound.text, c.name)
		}
		*bound.to = v
	}
	return func(i int64) bool {
		v := math.Float64frombits(binary.LittleEndian.Uint64(c.values[8*i:]))
		return v >= lo && v <= hi
	}, nil
}

// text is a label for people.
func (c *coordinate) text(i int64) (string, error) {
	if c.dec == nil {
		return string(c.texts.At(int(i))), nil
	}
	v := c.values[8*i : 8*i+8]
	if c.dec.Type().Kind() == dtype.Datetime {
		b, err := elementText(c.dec.Type(), c.dec, nil, v)
		return string(b), err
	}
	return strconv.FormatFloat(math.Float64frombits(binary.LittleEndian.Uint64(v)), 'g', -1, 64), nil
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
