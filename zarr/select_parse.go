package zarr

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// ParseSelection parses a basic selection in the syntax of the command line:
//
//	0:24,::2,5        one item per dimension, as between numpy's brackets
//	..., -1           an ellipsis; negative numbers count from the end
//	::-1, newaxis     steps of either sign; a new dimension of length 1
//	time=0:24,lat=5   by dimension name; other dimensions are whole
//
// Names and positions cannot be mixed. Spaces around items and one pair of
// brackets around everything are allowed; the empty string selects everything.
// dimNames are the names of the dimensions of the array, nil or "" where it has
// none. The error is [ErrSelection]. A name may contain "=" but no comma. Labels of
// coordinates, as in time='2020-02', are read by ParseSelection of package cf.
func ParseSelection(s string, dimNames []string) (Selection, error) {
	text := strings.TrimSpace(s)
	if len(text) >= 2 && text[0] == '[' && text[len(text)-1] == ']' {
		text = strings.TrimSpace(text[1 : len(text)-1])
	}
	if text == "" {
		return Sel(), nil
	}
	items := strings.Split(text, ",")
	if last := len(items) - 1; last > 0 && strings.TrimSpace(items[last]) == "" {
		items = items[:last] // as in numpy, a[1,] is a[1]
	}
	named := strings.LastIndexByte(items[0], '=') >= 0
	var index []Index
	if named {
		index = make([]Index, len(dimNames))
	}
	seen := make(map[string]bool)
	for _, item := range items {
		eq := strings.LastIndexByte(item, '=')
		if named != (eq >= 0) {
			return Selection{}, fmt.Errorf("%w: %q mixes dimension names and positions", ErrSelection, s)
		}
		x, err := parseIndex(strings.TrimSpace(item[eq+1:]))
		if err != nil {
			return Selection{}, fmt.Errorf("%w: %q: %v", ErrSelection, s, err)
		}
		if !named {
			index = append(index, x)
			continue
		}
		name := strings.TrimSpace(item[:eq])
		if x.kind == indexEllipsis || x.kind == indexNewAxis {
			return Selection{}, fmt.Errorf("%w: %q: %q selects nothing along a dimension", ErrSelection, s, item)
		}
		if seen[name] {
			return Selection{}, fmt.Errorf("%w: %q: dimension %q twice", ErrSelection, s, name)
		}
		seen[name] = true
		d, err := findName(name, dimNames)
		if err != nil {
			return Selection{}, fmt.Errorf("%w: %q: %v", ErrSelection, s, err)
		}
		index[d] = x
	}
	return Sel(index...), nil
}

func findName(name string, dimNames []string) (int, error) {
	at := -1
	for d, n := range dimNames {
		if n != name || n == "" {
			continue
		}
		if at >= 0 {
			return 0, fmt.Errorf("dimensions %d and %d are both named %q", at, d, name)
		}
		at = d
	}
	if at < 0 {
		return 0, fmt.Errorf("no dimension is named %q", name)
	}
	return at, nil
}

func parseIndex(item string) (Index, error) {
	switch item {
	case "...":
		return Ellipsis(), nil
	case "newaxis", "None":
		return NewAxis(), nil
	case ":", "::":
		return All(), nil
	}
	parts := strings.Split(item, ":")
	if len(parts) > 3 {
		return Index{}, fmt.Errorf("%q has more than two colons", item)
	}
	var v [3]int64
	for i, p := range parts {
		p = strings.TrimSpace(p)
		if p == "" && len(parts) > 1 {
			v[i] = None
			continue
		}
		n, err := strconv.ParseInt(p, 10, 64)
		if err != nil {
			return Index{}, fmt.Errorf("%q is not an integer", p)
		}
		v[i] = max(n, -math.MaxInt64) // the smallest int64 means None
	}
	if len(parts) == 1 {
		return At(v[0]), nil
	}
	if len(parts) == 2 || v[2] == None {
		v[2] = 1
	}
	if v[2] == 0 {
		return Index{}, fmt.Errorf("%q has step 0", item)
	}
	return Slice(v[0], v[1], v[2]), nil
}
