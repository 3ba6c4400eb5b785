// Package ome reads the metadata of OME-Zarr (https://ngff.openmicroscopy.org), versions 0.1 to 0.5,
// from the attributes of groups: the axes, units and transforms of images, as the section
// "multiscales" has them. It does no I/O. Callers must not change the slices in its values.
//
//	0.1, 0.2  {"multiscales": [{"version": "0.1", "datasets": […]}]}            axes t, c, z, y, x
//	0.3       {"multiscales": [{"version": "0.3", "axes": ["y", "x"], …}]}
//	0.4       {"multiscales": [{"version": "0.4", "axes": [{"name": "y", …}], …}]}
//	0.5       {"ome": {"version": "0.5", "multiscales": [{"axes": [{"name": "y", …}], …}]}}
package ome

import (
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"regexp"
	"strings"

	"github.com/zarrdb/zarrdb/zarr/internal/jsontext"
	"github.com/zarrdb/zarrdb/zarr/meta"
)

// Attribute is the attribute with all metadata of version 0.5.
const Attribute = "ome"

// ErrMetadata means that OME-Zarr metadata has an unknown version, or another number of axes than
// its array has dimensions.
var ErrMetadata = errors.New("metadata of OME-Zarr")

// Group is the metadata of a group.
type Group struct {
	// Members are the members of the attribute "ome" if Inside, else all attributes.
	Members meta.Attributes
	// Inside says that the metadata is in the attribute "ome", as from version 0.5 on.
	Inside bool
	// Images are the elements of "multiscales".
	Images []Image
	// Label says that the group has "image-label": the elements of its images are identifiers.
	Label bool

	levels map[string]*Level // of Images, by path
}

// Image is an element of "multiscales".
type Image struct {
	Version string // "" if it has none
	// Axes are nil if the metadata does not name them.
	Axes []Axis
	// Objects says that axes are objects, as from version 0.4 on.
	Objects bool
	// Levels are the elements of "datasets", usually the finest first.
	Levels []Level
}

// Axis is a dimension of all levels. Type is "space", "time", "channel", another word or "". Unit is "" if the
// metadata has none.
type Axis struct{ Name, Type, Unit string }

// Level is an array of an image.
type Level struct {
	// Path leads from the group to the array, without slashes around it.
	Path string
	// Axes are the axes of the image.
	Axes []Axis
	// Scale and Translation have a number for each axis, in its unit: of an element, and of the
	// centre of the first element. They are nil if the metadata has no scale.
	Scale, Translation []float64
	// Unread describes the "coordinateTransformations" that Scale and Translation leave out.
	Unread []string
	// Bare says that the dataset has no transforms of its own.
	Bare bool
	// Label means that the image is a label, as its group says.
	Label bool
}

// Names returns the names of the axes. The caller owns the slice.
func (l *Level) Names() []string {
	list := make([]string, len(l.Axes))
	for i, a := range l.Axes {
		list[i] = a.Name
	}
	return list
}

// Level returns the level of the array at a path below the group: of the first image that has
// one, nil if none has. g may be nil.
func (g *Group) Level(path string) *Level {
	if g == nil {
		return nil
	}
	return g.levels[path]
}

// known matches the versions that this package reads.
var known = regexp.MustCompile(`^0\.[1-5]($|[.-])`)

// kinds are the types of axes that had none before version 0.4.
var kinds = map[string]string{"t": "time", "c": "channel", "z": "space", "y": "space", "x": "space"}

// Parse reads the attributes of a group. It returns nil for a group without OME-Zarr metadata. The
// error is [ErrMetadata] for an unknown version.
func Parse(attrs meta.Attributes) (*Group, error) {
	g := &Group{Members: attrs}
	stated := ""
	if text, ok := attrs.Get(Attribute); ok {
		members, err := meta.ParseAttributes(text)
		_, within := members.Get("multiscales")
		if _, beside := attrs.Get("multiscales"); err == nil && (within || !beside) {
			g.Members, g.Inside = members, true
			version, _ := members.Get("version")
			if stated, err = knownVersion(version); err != nil {
				return nil, err
			}
		}
	}
	label, has := g.Members.Get("image-label")
	var object map[string]json.RawMessage
	g.Label = has && json.Unmarshal(label, &object) == nil
	text, ok := g.Members.Get("multiscales")
	if !ok {
		if g.Inside || g.Label {
			return g, nil
		}
		return nil, nil
	}
	var list []struct {
		Version    json.RawMessage `json:"version"`
		Axes       json.RawMessage `json:"axes"`
		Transforms []transform     `json:"coordinateTransformations"`
		Datasets   []struct {
			Path       string      `json:"path"`
			Transforms []transform `json:"coordinateTransformations"`
		} `json:"datasets"`
	}
	if json.Unmarshal(jsontext.AppendStrict(nil, text), &list) != nil {
		return nil, nil
	}
	g.levels = map[string]*Level{}
	for _, m := range list {
		version, err := knownVersion(m.Version)
		switch {
		case len(m.Datasets) == 0 || m.Axes == nil && m.Version == nil:
			return nil, nil // of another convention
		case err != nil:
			return nil, err
		case version == "":
			version = stated
		}
		image := Image{Version: version}
		image.Axes, image.Objects = axes(m.Axes)
		for _, d := range m.Datasets {
			l := Level{Path: strings.Trim(path.Clean("/"+d.Path), "/"), Axes: image.Axes, Bare: len(d.Transforms) == 0, Label: g.Label}
			l.compose(append(d.Transforms, m.Transforms...))
			image.Levels = append(image.Levels, l)
		}
		for i := range image.Levels {
			if l := &image.Levels[i]; g.levels[l.Path] == nil {
				g.levels[l.Path] = l
			}
		}
		g.Images = append(g.Images, image)
	}
	return g, nil
}

// knownVersion returns the version of some metadata, "" without one.
func knownVersion(text json.RawMessage) (v string, err error) {
	if len(text) == 0 || json.Unmarshal(text, &v) == nil && v == "" {
		return "", nil
	}
	if v == "" {
		v = string(text) // a number
	}
	if !known.MatchString(v) {
		return v, fmt.Errorf("%w: version %q is not known, 0.1 to 0.5 are", ErrMetadata, v)
	}
	return v, nil
}

// axes reads the axes of an image. objects is false for the forms before version 0.4.
func axes(text json.RawMessage) (list []Axis, objects bool) {
	if text == nil {
		for _, name := range []string{"t", "c", "z", "y", "x"} {
			list = append(list, Axis{Name: name, Type: kinds[name]})
		}
		return list, false
	}
	var names []string
	if json.Unmarshal(text, &names) == nil {
		for _, name := range names {
			list = append(list, Axis{Name: name, Type: kinds[name]})
		}
		return list, false
	}
	var read []struct {
		Name       *string
		Type, Unit string
	}
	if json.Unmarshal(text, &read) != nil {
		return nil, false
	}
	for _, a := range read {
		if a.Name == nil {
			return nil, false
		}
		list = append(list, Axis{*a.Name, a.Type, a.Unit})
	}
	return list, true
}

type transform struct {
	Type        string    `json:"type"`
	Scale       []float64 `json:"scale"`
	Translation []float64 `json:"translation"`
}

// compose applies a list of transforms, one after the other, to the scale and the translation.
func (l *Level) compose(list []transform) {
	for _, t := range list {
		switch {
		case t.Type == "identity":
		case t.Type == "scale" && len(t.Scale) == len(l.Axes) && positive(t.Scale):
			if l.Scale == nil {
				l.Scale, l.Translation = make([]float64, len(l.Axes)), make([]float64, len(l.Axes))
				for i := range l.Scale {
					l.Scale[i] = 1
				}
			}
			for i, v := range t.Scale {
				l.Scale[i] *= v
				l.Translation[i] *= v
			}
		case t.Type == "translation" && len(t.Translation) == len(l.Axes) && l.Scale != nil:
			for i, v := range t.Translation {
				l.Translation[i] += v
			}
		default:
			l.Unread = append(l.Unread, fmt.Sprintf("%s of %s", t.Type, l.Path))
		}
	}
}

func positive(list []float64) bool {
	for _, v := range list {
		if !(v > 0) {
			return false
		}
	}
	return true
}

// OfArray returns the level that the attributes "axes" and "scale" of an array describe, as this
// project makes them for the images of TIFF. It is nil without these attributes.
func OfArray(attrs meta.Attributes) *Level {
	text, has := attrs.Get("axes")
	scale, scaled := attrs.Get("scale")
	if !has || !scaled {
		return nil
	}
	list, objects := axes(text)
	t := transform{Type: "scale"}
	if !objects || json.Unmarshal(scale, &t.Scale) != nil {
		return nil
	}
	l := &Level{Axes: list}
	l.compose([]transform{t})
	return l
}

// nanometres are the lengths of the units of OME-Zarr for space, and of usual short forms.
var nanometres = map[string]float64{
	"yoctometer": 1e-15, "zeptometer": 1e-12, "attometer": 1e-9, "femtometer": 1e-6, "picometer": 1e-3, "angstrom": 0.1, "nanometer": 1,
	"micrometer": 1e3, "millimeter": 1e6, "centimeter": 1e7, "decimeter": 1e8, "meter": 1e9, "dekameter": 1e10, "hectometer": 1e11,
	"kilometer": 1e12, "megameter": 1e15, "gigameter": 1e18, "terameter": 1e21, "petameter": 1e24, "exameter": 1e27, "zettameter": 1e30, "yottameter": 1e33,
	"inch": 25.4e6, "foot": 304.8e6, "yard": 914.4e6, "mile": 1609.344e9, "parsec": 3.0856775814913673e25,
	"nm": 1, "um": 1e3, "µm": 1e3, "μm": 1e3, "micron": 1e3, "mm": 1e6, "cm": 1e7, "m": 1e9, "pm": 1e-3, "Å": 0.1,
	"nanometre": 1, "micrometre": 1e3, "millimetre": 1e6, "metre": 1e9,
}

// Nanometres returns the length of a unit of an axis in nanometres. ok is false for an unknown unit.
func Nanometres(unit string) (n float64, ok bool) {
	n, ok = nanometres[unit]
	return n, ok
}
