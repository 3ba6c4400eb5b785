package convert

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/zarrdb/zarrdb/engine/internal/names"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/zarr"
	"github.com/zarrdb/zarrdb/zarr/meta"
	"github.com/zarrdb/zarrdb/zarr/ome"
)

// OME-Zarr describes images by attributes of groups. Version 0.4, for Zarr v2, has an
// attribute for each kind of metadata, with a version inside. Version 0.5, for Zarr v3, has
// the same members inside of one attribute, with one version:
//
//	0.4  {"multiscales": [{"version": "0.4", "axes": […]}], "omero": {…}}
//	0.5  {"ome": {"version": "0.5", "multiscales": [{"axes": […]}], "omero": {…}}}
//
// In 0.5 the dimensions of the arrays of an image have the names of the image's axes. In 0.4
// the chunk keys of these arrays have the separator '/'. Versions 0.1 to 0.3 are first made 0.4:
// axes become objects, levels get the scale that their shapes have, and wells their indices.
// Attributes of other conventions are not changed.

// omeVersioned are the members that contain a version in 0.4.
var omeVersioned = []string{"multiscales", "omero", "plate", "well", "image-label"}

// axesOf returns the names of the axes of the image that an array is a level of, nil for an array
// of no image. problem says why an image does not describe the array.
func axesOf(ctx context.Context, a *zarr.Array) (axes []*string, problem, err error) {
	l, err := a.Image(ctx)
	switch {
	case errors.Is(err, ome.ErrMetadata):
		var at *zarr.Error
		if errors.As(err, &at) {
			err = at.Err
		}
		return nil, err, nil
	case errors.Is(err, zarr.ErrMetadata) || l == nil:
		return nil, nil, nil // a group that cannot be read is an error of its own
	}
	for _, name := range l.Names() {
		axes = append(axes, &name)
	}
	return axes, nil, err
}

// convertOME converts the OME-Zarr metadata of the group c, which was converted from another
// format of Zarr and lies at path, to the version of OME-Zarr for c's format. shape returns the
// shape of the array at a path below the group, nil without one. An error names
// the part that has no form in that version; the attributes are then unchanged.
func convertOME(c *zarr.Meta, from zarr.Version, path string, shape func(string) []int64) error {
	if c.Array || (c.Version == zarr.V3) == (from == zarr.V3) {
		return nil
	}
	convert := ome04
	if c.Version == zarr.V3 {
		convert = ome05
	}
	attrs, err := convert(c.Attributes, path[strings.LastIndexByte(path, '/')+1:], shape)
	if err == nil {
		c.Attributes = attrs
	}
	return err
}

// shapesBelow returns a function that returns the shapes of the arrays below a group.
func shapesBelow(ctx context.Context, view kv.Reader, group string, o *zarr.OpenOptions) func(string) []int64 {
	return func(path string) []int64 {
		a, err := zarr.OpenArray(ctx, view, names.Dir(group)+path, o)
		if err != nil {
			return nil
		}
		return a.Meta().Shape
	}
}

// ome05 converts the attributes of a group from 0.4 to 0.5. group is the name of the group.
func ome05(attrs zarr.Attributes, group string, shape func(string) []int64) (zarr.Attributes, error) {
	out := attrs
	made, err := zarr.ParseAttributes([]byte(`{"version":"0.5"}`))
	if err != nil {
		return attrs, err
	}
	for name, text := range attrs.All() {
		text, err := inOME04(attrs, name, text, group, shape)
		if err != nil {
			return attrs, fmt.Errorf("OME-Zarr 0.5: %w", err)
		}
		if text == nil {
			continue
		}
		if err := setVersioned(&made, name, text, ""); err != nil {
			return attrs, err
		}
		out.Delete(name)
	}
	if made.Len() == 1 {
		return attrs, nil
	}
	if _, both := attrs.Get(ome.Attribute); both {
		return attrs, fmt.Errorf("OME-Zarr 0.5: there is an attribute %q already", ome.Attribute)
	}
	return out, out.Set(ome.Attribute, made.Text())
}

// inOME04 returns an attribute as OME-Zarr 0.4 has it, nil if it is no OME-Zarr metadata. An error
// says why it has no form there.
func inOME04(attrs zarr.Attributes, name string, text json.RawMessage, group string, shape func(string) []int64) (json.RawMessage, error) {
	var list []string
	var object map[string]json.RawMessage
	is := name == "bioformats2raw.layout"
	switch name {
	case "multiscales":
		g, err := ome.Parse(attrs)
		if g == nil || len(g.Images) == 0 || err != nil {
			return nil, err
		}
		return images04(text, g.Images, shape)
	case "omero":
		g, _ := ome.Parse(attrs)
		is = g != nil && len(g.Images) > 0 && json.Unmarshal(text, &object) == nil
	case "image-label":
		is = json.Unmarshal(text, &object) == nil
	case "well":
		is = json.Unmarshal(text, &object) == nil && object["images"] != nil
	case "plate":
		if json.Unmarshal(text, &object) == nil && object["wells"] != nil && object["rows"] != nil {
			return plate04(text)
		}
	case "labels":
		is = group == "labels" && json.Unmarshal(text, &list) == nil
	case "series":
		is = group == "OME" && json.Unmarshal(text, &list) == nil
	}
	if !is {
		return nil, nil
	}
	return text, nil
}

// images04 returns "multiscales" with axes as objects and a scale for each level, which versions before
// 0.4 do not have.
func images04(text json.RawMessage, images []ome.Image, shape func(string) []int64) (json.RawMessage, error) {
	var list []json.RawMessage
	if err := json.Unmarshal(text, &list); err != nil {
		return nil, err
	}
	changed := false
	for i, m := range images {
		for _, l := range m.Levels {
			if l.Bare && m.Objects {
				return nil, fmt.Errorf("multiscales[%d]: dataset %q has no coordinateTransformations", i, l.Path)
			}
		}
		if m.Objects {
			continue
		}
		if m.Axes == nil {
			return nil, fmt.Errorf("multiscales[%d]: axes without names", i)
		}
		image, err := zarr.ParseAttributes(list[i])
		if err != nil {
			return nil, err
		}
		var axes []zarr.Attributes
		for _, a := range m.Axes {
			var axis zarr.Attributes
			if err = axis.Set("name", a.Name); err == nil && a.Type != "" {
				err = axis.Set("type", a.Type)
			}
			if err != nil {
				return nil, err
			}
			axes = append(axes, axis)
		}
		var datasets []zarr.Attributes
		old, _ := image.Get("datasets")
		if err := json.Unmarshal(old, &datasets); err != nil {
			return nil, fmt.Errorf("multiscales[%d].datasets: %w", i, err)
		}
		finest := shape(m.Levels[0].Path)
		for k, l := range m.Levels {
			scale := scaleOf(finest, shape(l.Path))
			if len(scale) != len(axes) {
				return nil, fmt.Errorf("multiscales[%d]: %q is no array with the axes %s", i, l.Path, strings.Join(l.Names(), ", "))
			}
			if err := datasets[k].Set("coordinateTransformations", []any{map[string]any{"type": "scale", "scale": scale}}); err != nil {
				return nil, err
			}
		}
		if err := errors.Join(image.Set("axes", axes), image.Set("datasets", datasets)); err != nil {
			return nil, err
		}
		list[i], changed = image.Text(), true
	}
	if !changed {
		return text, nil
	}
	return json.Marshal(list)
}

// scaleOf returns how many elements of the finest level are one element of a coarser one on each axis:
// whole numbers where the coarser length is rounded. It is nil for levels that do not fit.
func scaleOf(finest, level []int64) (scale []float64) {
	if len(finest) != len(level) {
		return nil
	}
	for d, n := range level {
		f := 1.0
		if n > 0 && finest[d] > 0 {
			f = float64(finest[d]) / float64(n)
			if whole := math.Round(f); whole >= 1 && math.Abs(float64(finest[d])/whole-float64(n)) < 1 {
				f = whole
			}
		}
		scale = append(scale, f)
	}
	return scale
}

// plate04 returns "plate" with the indices of rows and columns of wells, which versions before 0.4 name
// in the path only.
func plate04(text json.RawMessage) (json.RawMessage, error) {
	plate, err := zarr.ParseAttributes(text)
	if err != nil {
		return nil, err
	}
	var axes struct{ Rows, Columns []struct{ Name string } }
	var wells []zarr.Attributes
	list, _ := plate.Get("wells")
	if err := errors.Join(json.Unmarshal(text, &axes), json.Unmarshal(list, &wells)); err != nil {
		return nil, fmt.Errorf("plate: %w", err)
	}
	rows, columns := map[string]int{}, map[string]int{}
	for i, n := range axes.Rows {
		rows[n.Name] = i
	}
	for i, n := range axes.Columns {
		columns[n.Name] = i
	}
	changed := false
	for i, well := range wells {
		_, row := well.Get("rowIndex")
		if _, column := well.Get("columnIndex"); row && column {
			continue
		}
		var path string
		where, _ := well.Get("path")
		_ = json.Unmarshal(where, &path)
		name, rest, _ := strings.Cut(path, "/")
		r, isRow := rows[name]
		c, isColumn := columns[rest]
		if !isRow || !isColumn {
			return nil, fmt.Errorf("plate.wells[%d]: the path %q is no row and column of the plate", i, path)
		}
		if err := errors.Join(well.Set("rowIndex", r), well.Set("columnIndex", c)); err != nil {
			return nil, err
		}
		wells[i], changed = well, true
	}
	if !changed {
		return text, nil
	}
	err = plate.Set("wells", wells)
	return plate.Text(), err
}

// ome04 converts the attributes of a group from 0.5 to 0.4. group is the name of the group.
func ome04(attrs zarr.Attributes, group string, shape func(string) []int64) (zarr.Attributes, error) {
	text, ok := attrs.Get(ome.Attribute)
	from, err := zarr.ParseAttributes(text)
	if !ok || err != nil { // of another convention, or of a version for Zarr v2
		out := attrs
		for name, text := range attrs.All() {
			made, err := inOME04(attrs, name, text, group, shape)
			if err == nil && made != nil && !bytes.Equal(made, text) {
				err = setVersioned(&out, name, made, "0.4")
			}
			if err != nil {
				return attrs, fmt.Errorf("OME-Zarr 0.4: %w", err)
			}
		}
		return out, nil
	}
	version, has := from.Get("version")
	if !has { // as ome-zarr-py leaves it out of the group "labels"
		for name, text := range from.All() {
			if text, err := inOME04(from, name, text, group, shape); text != nil && err == nil {
				version = json.RawMessage(`"0.5"`)
			}
		}
		if version == nil {
			return attrs, nil
		}
	}
	if string(version) != `"0.5"` && !strings.HasPrefix(string(version), `"0.5.`) {
		return attrs, fmt.Errorf("OME-Zarr 0.4: %s.version is %s, only 0.5 is known", ome.Attribute, version)
	}
	from.Delete("version")
	inside := map[string]bool{}
	for name := range from.All() {
		inside[name] = true
	}
	for name := range attrs.All() {
		if inside[name] {
			return attrs, fmt.Errorf("OME-Zarr 0.4: there is an attribute %q already", name)
		}
	}
	for _, name := range omeVersioned {
		if text, has := from.Get(name); has {
			if err := setVersioned(&from, name, text, "0.4"); err != nil {
				return attrs, fmt.Errorf("OME-Zarr 0.4: %w", err)
			}
		}
	}
	out := attrs
	out.Delete(ome.Attribute)
	return meta.MergeAttributes(zarr.Attributes{}, from, out), nil
}

// setVersioned sets a member. A version inside of the member becomes version, or is removed if
// version is "".
func setVersioned(to *zarr.Attributes, name string, text json.RawMessage, version string) error {
	if !slices.Contains(omeVersioned, name) {
		return to.Set(name, text)
	}
	var objects []json.RawMessage
	if name != "multiscales" {
		objects = []json.RawMessage{text}
	} else if err := json.Unmarshal(text, &objects); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	for i, text := range objects {
		object, err := zarr.ParseAttributes(text)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if object.Delete("version"); version != "" {
			if err := object.Set("version", version); err != nil {
				return err
			}
		}
		objects[i] = object.Text()
	}
	if name == "multiscales" {
		return to.Set(name, objects)
	}
	return to.Set(name, objects[0])
}

// checkAxes returns an error if OME-Zarr 0.5 does not allow the array c in an image with
// these axes. axes are nil for an array of no image.
func checkAxes(c *zarr.Meta, axes []*string) error {
	if c.Version == zarr.V3 && axes != nil && !slices.EqualFunc(c.DimensionNames, axes, sameName) {
		return errors.New("OME-Zarr 0.5: the dimensions of the array do not have the names of the axes of its image")
	}
	return nil
}

// omeXML is the name of a file in the group "OME". OME-Zarr defines it; it is no Zarr metadata.
const omeXML = "METADATA.ome.xml"

// isOMEXML reports whether a key is the key of OME-XML in a group "OME".
func isOMEXML(key string) bool { return strings.HasSuffix("/"+key, "/OME/"+omeXML) }

// omeDocument returns the OME-XML of a group, or nil for a group without OME-XML.
func omeDocument(ctx context.Context, view kv.Reader, path string) ([]byte, error) {
	key := names.Dir(path) + omeXML
	if !isOMEXML(key) {
		return nil, nil
	}
	doc, err := kv.Get(ctx, view, key)
	if errors.Is(err, kv.ErrNotFound) {
		err = nil
	}
	return doc, err
}

// separatorV2 returns the dimension_separator of an array in v2: '/' for an array of an image,
// which has axes.
func separatorV2(axes []*string) byte {
	if axes != nil {
		return '/'
	}
	return '.'
}
