package convert

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/zarrdb/zarrdb/engine/internal/names"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/zarr"
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
// the chunk keys of these arrays have the separator '/'. Attributes of other conventions and
// of other versions of OME-Zarr are not changed.

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
// format of Zarr and lies at path, to the version of OME-Zarr for c's format. An error names
// the part that has no form in that version; the attributes are then unchanged.
func convertOME(c *zarr.Meta, from zarr.Version, path string) error {
	if c.Array || (c.Version == zarr.V3) == (from == zarr.V3) {
		return nil
	}
	convert := ome04
	if c.Version == zarr.V3 {
		convert = ome05
	}
	attrs, err := convert(c.Attributes, path[strings.LastIndexByte(path, '/')+1:])
	if err == nil {
		c.Attributes = attrs
	}
	return err
}

// ome05 converts the attributes of a group from 0.4 to 0.5. group is the name of the group.
func ome05(attrs zarr.Attributes, group string) (zarr.Attributes, error) {
	out := attrs
	made, err := zarr.ParseAttributes([]byte(`{"version":"0.5"}`))
	if err != nil {
		return attrs, err
	}
	for name, text := range attrs.All() {
		is, err := inOME04(attrs, name, text, group)
		if err != nil {
			return attrs, fmt.Errorf("OME-Zarr 0.5: %w", err)
		}
		if !is {
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

// inOME04 reports whether an attribute is OME-Zarr metadata. An error says why 0.5 has no
// form for it.
func inOME04(attrs zarr.Attributes, name string, text json.RawMessage, group string) (bool, error) {
	var list []string
	var object map[string]json.RawMessage
	switch name {
	case "multiscales":
		g, err := ome.Parse(attrs)
		if g == nil || err != nil {
			return false, err
		}
		for i, m := range g.Images {
			if !m.Objects {
				return false, fmt.Errorf("multiscales[%d]: version %s has no axes that are objects with names", i, m.Version)
			}
			for _, l := range m.Levels {
				if l.Bare {
					return false, fmt.Errorf("multiscales[%d]: dataset %q has no coordinateTransformations", i, l.Path)
				}
			}
		}
		return len(g.Images) > 0, nil
	case "omero":
		g, _ := ome.Parse(attrs)
		return g != nil && len(g.Images) > 0 && json.Unmarshal(text, &object) == nil, nil
	case "image-label":
		return json.Unmarshal(text, &object) == nil, nil
	case "well":
		return json.Unmarshal(text, &object) == nil && object["images"] != nil, nil
	case "plate":
		if json.Unmarshal(text, &object) != nil || object["wells"] == nil || object["rows"] == nil {
			return false, nil
		}
		var wells []struct {
			Row    *int64 `json:"rowIndex"`
			Column *int64 `json:"columnIndex"`
		}
		if err := json.Unmarshal(object["wells"], &wells); err != nil {
			return false, fmt.Errorf("plate.wells: %w", err)
		}
		for i, w := range wells {
			if w.Row == nil || w.Column == nil {
				return false, fmt.Errorf("plate.wells[%d]: no rowIndex and columnIndex, as before version 0.4", i)
			}
		}
		return true, nil
	case "labels":
		return group == "labels" && json.Unmarshal(text, &list) == nil, nil
	case "series":
		return group == "OME" && json.Unmarshal(text, &list) == nil, nil
	}
	return name == "bioformats2raw.layout", nil
}

// ome04 converts the attributes of a group from 0.5 to 0.4. group is the name of the group.
func ome04(attrs zarr.Attributes, group string) (zarr.Attributes, error) {
	text, ok := attrs.Get(ome.Attribute)
	from, err := zarr.ParseAttributes(text)
	if !ok || err != nil {
		return attrs, nil // of another convention
	}
	version, has := from.Get("version")
	if !has { // as ome-zarr-py leaves it out of the group "labels"
		for name, text := range from.All() {
			if is, err := inOME04(from, name, text, group); is && err == nil {
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
	out := attrs
	out.Delete(ome.Attribute)
	for name, text := range from.All() {
		if name == "version" {
			continue
		}
		if _, both := attrs.Get(name); both {
			return attrs, fmt.Errorf("OME-Zarr 0.4: there is an attribute %q already", name)
		}
		if err := setVersioned(&out, name, text, "0.4"); err != nil {
			return attrs, fmt.Errorf("OME-Zarr 0.4: %w", err)
		}
	}
	return out, nil
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
