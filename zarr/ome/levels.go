package ome

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/zarrdb/zarrdb/zarr/internal/jsontext"
	"github.com/zarrdb/zarrdb/zarr/meta"
)

// maxLevels bounds the levels that Pyramid returns.
const maxLevels = 32

// Pyramid returns the paths, from a group, of the nodes that show one picture at several
// resolutions, in the order of its attributes: the levels of its first image or, without OME-Zarr
// metadata, the arrays or groups that the attribute "multiscales" lists as GeoZarr or old programs
// have it. A group without levels has none. The error is as for [Parse].
func Pyramid(attrs meta.Attributes) (paths []string, err error) {
	g, err := Parse(attrs)
	switch {
	case err != nil:
		return nil, err
	case g != nil && len(g.Images) > 0:
		for _, l := range g.Images[0].Levels {
			paths = append(paths, l.Path)
		}
	default:
		paths = otherLevels(attrs)
	}
	paths = slices.DeleteFunc(paths, func(p string) bool { return strings.Trim(p, "/") == "" || slices.Contains(strings.Split(p, "/"), "..") })
	for i, p := range paths {
		paths[i] = strings.Trim(p, "/")
	}
	return paths[:min(len(paths), maxLevels)], nil
}

// text is a string of JSON; other values are "".
type text string

func (t *text) UnmarshalJSON(b []byte) error {
	_ = json.Unmarshal(b, (*string)(t))
	return nil
}

// otherLevels reads the conventions that are not OME-Zarr:
//
//	{"layout": [{"asset": "0"}, …]}                                the convention of GeoZarr
//	{"tile_matrix_set": {"tileMatrices": [{"id": "0"}, …]}}        its earlier drafts
//	{"tile_matrix_set": "NAME", "tile_matrix_limits": {"0": …}}
//	[{"datasets": [{"path": "0"}, …]}]                             OME-Zarr without version and axes
func otherLevels(attrs meta.Attributes) (paths []string) {
	raw, _ := attrs.Get("multiscales")
	raw = jsontext.AppendStrict(nil, raw)
	var list []struct{ Datasets []struct{ Path text } }
	var scales struct {
		Layout []struct{ Asset text }
		Set    json.RawMessage `json:"tile_matrix_set"`
		Limits meta.Attributes `json:"tile_matrix_limits"`
	}
	var set struct {
		Matrices []struct{ ID text } `json:"tileMatrices"`
	}
	switch {
	case len(raw) == 0:
	case json.Unmarshal(raw, &list) == nil && len(list) > 0:
		for _, d := range list[0].Datasets {
			paths = append(paths, string(d.Path))
		}
	case json.Unmarshal(raw, &scales) != nil:
	case len(scales.Layout) > 0:
		for _, l := range scales.Layout {
			paths = append(paths, string(l.Asset))
		}
	case json.Unmarshal(scales.Set, &set) == nil && len(set.Matrices) > 0:
		for _, m := range set.Matrices {
			paths = append(paths, string(m.ID))
		}
	default:
		paths = scales.Limits.Keys()
	}
	return paths
}
