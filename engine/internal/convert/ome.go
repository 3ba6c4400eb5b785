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

const omeAttribute = "ome"

// omeVersioned are the members that contain a version in 0.4.
var omeVersioned = []string{"multiscales", "omero", "plate", "well", "image-label"}

// multiscale is an element of the list "multiscales".
type multiscale struct {
	Version  any             `json:"version"`
	Axes     json.RawMessage `json:"axes"`
	Datasets []struct {
		Path       string            `json:"path"`
		Transforms []json.RawMessage `json:"coordinateTransformations"`
	} `json:"datasets"`
}

// axes returns the names of the axes, or nil before 0.4, where axes were no objects.
func (m *multiscale) axes() []*string {
	var list []struct {
		Name *string `json:"name"`
	}
	if json.Unmarshal(m.Axes, &list) != nil {
		return nil
	}
	var out []*string
	for _, a := range list {
		if a.Name == nil {
			return nil
		}
		out = append(out, a.Name)
	}
	return out
}

// multiscales reads the attribute "multiscales". It returns nil for the attribute of another
// convention, which has neither axes nor a version.
func multiscales(text json.RawMessage) []multiscale {
	var list []multiscale
	strict, err := zarr.StrictJSON(text)
	if err != nil || json.Unmarshal(strict, &list) != nil {
		return nil
	}
	for _, m := range list {
		if len(m.Datasets) == 0 || m.Axes == nil && m.Version == nil {
			return nil
		}
	}
	return list
}

// imageAxes returns the names of the axes of an image's arrays, by their paths below the group
// m. The result is nil for a group that is no image.
func imageAxes(m *zarr.Meta) map[string][]*string {
	attrs := m.Attributes
	if text, ok := attrs.Get(omeAttribute); ok {
		attrs, _ = zarr.ParseAttributes(text) // something else than an object is no image
	}
	text, ok := attrs.Get("multiscales")
	if m.Array || !ok {
		return nil
	}
	out := map[string][]*string{}
	for _, image := range multiscales(text) {
		for _, d := range image.Datasets {
			if axes := image.axes(); axes != nil {
				out[names.Clean(d.Path)] = axes
			}
		}
	}
	return out
}

// convertOME converts the OME-Zarr metadata of the group c, which was converted from another
// format of Zarr and lies at path, to the version of OME-Zarr for c's format. An error names
// what has no form in that version; the attributes are then unchanged.
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
	ome, err := zarr.ParseAttributes([]byte(`{"version":"0.5"}`))
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
		if err := setVersioned(&ome, name, text, ""); err != nil {
			return attrs, err
		}
		out.Delete(name)
	}
	if ome.Len() == 1 {
		return attrs, nil
	}
	if _, both := attrs.Get(omeAttribute); both {
		return attrs, fmt.Errorf("OME-Zarr 0.5: there is an attribute %q already", omeAttribute)
	}
	return out, out.Set(omeAttribute, ome.Text())
}

// inOME04 reports whether an attribute is OME-Zarr metadata. An error says why 0.5 has no
// form for it.
func inOME04(attrs zarr.Attributes, name string, text json.RawMessage, group string) (bool, error) {
	var list []string
	var object map[string]json.RawMessage
	switch name {
	case "multiscales":
		images := multiscales(text)
		for i := range images {
			if images[i].axes() == nil {
				return false, fmt.Errorf("multiscales[%d]: version %v has no axes with names", i, images[i].Version)
			}
			for _, d := range images[i].Datasets {
				if len(d.Transforms) == 0 {
					return false, fmt.Errorf("multiscales[%d]: dataset %q has no coordinateTransformations", i, d.Path)
				}
			}
		}
		return len(images) > 0, nil
	case "omero":
		image, _ := attrs.Get("multiscales")
		return multiscales(image) != nil && json.Unmarshal(text, &object) == nil, nil
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
	text, ok := attrs.Get(omeAttribute)
	ome, err := zarr.ParseAttributes(text)
	if !ok || err != nil {
		return attrs, nil // of another convention
	}
	version, has := ome.Get("version")
	if !has { // as ome-zarr-py leaves it out of the group "labels"
		for name, text := range ome.All() {
			if is, err := inOME04(ome, name, text, group); is && err == nil {
				version = json.RawMessage(`"0.5"`)
			}
		}
		if version == nil {
			return attrs, nil
		}
	}
	if string(version) != `"0.5"` && !strings.HasPrefix(string(version), `"0.5.`) {
		return attrs, fmt.Errorf("OME-Zarr 0.4: %s.version is %s, only 0.5 is known", omeAttribute, version)
	}
	out := attrs
	out.Delete(omeAttribute)
	for name, text := range ome.All() {
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

// images finds the axes of arrays in the groups above them.
type images struct {
	view kv.Reader
	open *zarr.OpenOptions
	seen map[string]map[string][]*string // what [imageAxes] returns, by the path of a group
}

// axes returns the names of the axes of the array at a path, or nil for an array of no image.
func (s *images) axes(ctx context.Context, path string) ([]*string, error) {
	for at := path; at != ""; {
		at = names.Parent(at)
		arrays, ok := s.seen[at]
		if !ok {
			n, err := zarr.Open(ctx, s.view, at, s.open)
			switch {
			case err == nil:
				arrays = imageAxes(n.Meta())
			case !errors.Is(err, zarr.ErrNotFound) && !errors.Is(err, zarr.ErrPath) && !errors.Is(err, zarr.ErrMetadata):
				return nil, err
			}
			s.seen[at] = arrays
		}
		if axes := arrays[strings.TrimPrefix(path, names.Dir(at))]; axes != nil {
			return axes, nil
		}
	}
	return nil, nil
}

// checkAxes returns an error if OME-Zarr 0.5 does not allow the array c in an image with
// these axes. axes are nil for an array of no image.
func checkAxes(c *zarr.Meta, axes []*string) error {
	if c.Version == zarr.V3 && axes != nil && !slices.EqualFunc(c.DimensionNames, axes, func(a, b *string) bool { return a != nil && *a == *b }) {
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
