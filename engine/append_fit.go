package engine

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/zarrdb/zarrdb/engine/internal/convert"
	"github.com/zarrdb/zarrdb/engine/internal/names"
	"github.com/zarrdb/zarrdb/engine/internal/policy"
	"github.com/zarrdb/zarrdb/zarr"
)

// ErrMisfit means that hierarchies cannot be joined. Mostly it is a
// [*MisfitError].
var ErrMisfit = errors.New("engine: does not fit")

// MisfitError names the pieces of an append that do not fit, and the reason.
type MisfitError struct {
	// Dim is the dimension to append along.
	Dim string
	// Path is the array, Field the difference: a member of its metadata by its
	// v3 name, "attribute NAME", "values" and the like.
	Path, Field string
	// From has the value Want; each of Files, in their order, that of Got.
	From, Want string
	Files, Got []string
	// More is the number of other differing fields.
	More int
}

// maxFilesShown bounds the files in the text of a MisfitError.
const maxFilesShown = 8

// Error names the array, the field, the values and the files.
func (e *MisfitError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "append along %s: /%s: %s is %s in %s, but ", e.Dim, e.Path, e.Field, e.Want, e.From)
	for i := range e.Files {
		switch {
		case i == maxFilesShown:
			fmt.Fprintf(&b, " and %d more", len(e.Files)-i)
		case i > maxFilesShown:
		case i > 0 && e.Got[i] == e.Got[i-1]:
			fmt.Fprintf(&b, ", %s", e.Files[i])
		case i > 0:
			fmt.Fprintf(&b, ", %s in %s", e.Got[i], e.Files[i])
		default:
			fmt.Fprintf(&b, "%s in %s", e.Got[i], e.Files[i])
		}
	}
	if e.More > 0 {
		fmt.Fprintf(&b, " (and %d other fields differ)", e.More)
	}
	return b.String()
}

// Is makes it an ErrMisfit.
func (e *MisfitError) Is(target error) bool { return target == ErrMisfit }

// misfits collects differences by array and field.
type misfits struct {
	list []*MisfitError
	at   map[[2]string]*MisfitError
}

// misfitValue is a value and the pieces that have it.
type misfitValue struct{ where, value string }

func (m *misfits) add(path, field string, want, got misfitValue) {
	key := [2]string{path, field}
	e := m.at[key]
	if e == nil {
		if m.at == nil {
			m.at = map[[2]string]*MisfitError{}
		}
		e = &MisfitError{Path: path, Field: field, From: want.where, Want: want.value}
		m.at[key] = e
		m.list = append(m.list, e)
	}
	e.Files, e.Got = append(e.Files, got.where), append(e.Got, got.value)
}

// err returns the first difference.
func (m *misfits) err(dim string) error {
	if len(m.list) == 0 {
		return nil
	}
	e := *m.list[0]
	e.Dim, e.More = dim, len(m.list)-1
	return &e
}

// compare finds the differences that prevent joining an array with b.
func (m *misfits) compare(b *appendBase, o *zarr.Meta, file string) {
	differ := func(field, want, got string) {
		m.add(b.path, field, misfitValue{b.from, want}, misfitValue{file, got})
	}
	for _, field := range b.meta.Diff(o) {
		switch field {
		case "zarr_format", "data_type", "fill_value", "dimension_names":
		case "codecs":
			if b.axis < 0 {
				continue
			}
		case "chunk_grid":
			if b.axis < 0 || b.small && o.Grid.Regular() != nil {
				continue
			}
		case "shape":
			if len(b.meta.Shape) == len(o.Shape) {
				shape := slices.Clone(o.Shape)
				if b.axis >= 0 {
					shape[b.axis] = b.meta.Shape[b.axis]
				}
				if slices.Equal(shape, b.meta.Shape) {
					continue
				}
			}
		default:
			continue // does not concern values, or is compared below
		}
		differ(field, metaText(b.meta, field), metaText(o, field))
	}
	ours, theirs := attributesOf(b.meta), attributesOf(o)
	for _, name := range attributeNames(ours, theirs) {
		if !sameAttribute(ours.values[name], theirs.values[name]) {
			differ("attribute "+name, attributeText(ours.values[name]), attributeText(theirs.values[name]))
		}
	}
}

// telling are the attributes that define the meaning of stored numbers (CF
// conventions, "Packed Data", "Units", "Calendar", "Missing data", "Flags",
// "Parametric Vertical Coordinate", "Compression by Gathering"). Others describe
// or tell a history: those of the first piece stay.
var telling = []string{
	"scale_factor", "add_offset", "_Unsigned", "units", "units_metadata", "calendar", "month_lengths", "leap_month", "leap_year",
	"_FillValue", "missing_value", "valid_min", "valid_max", "valid_range", "flag_values", "flag_masks", "flag_meanings",
	"positive", "standard_name", "grid_mapping", "formula_terms", "compress",
}

// systems are attributes only of variables that describe a coordinate reference
// system, by all their attributes and not by their values (CF conventions,
// "Horizontal Coordinate Reference Systems", and what GDAL writes).
var systems = []string{"grid_mapping_name", "crs_wkt", "spatial_ref"}

// describing are attributes that say nothing about a coordinate reference
// system. Names of dimensions are compared as such.
var describing = []string{"long_name", "comment", "history", convert.ArrayDimensions}

// attributeSet is the attributes of an array for many look-ups.
type attributeSet struct {
	names  []string // in stored order
	values map[string]json.RawMessage
}

func attributesOf(m *zarr.Meta) attributeSet {
	a := attributeSet{values: make(map[string]json.RawMessage, m.Attributes.Len())}
	for name, raw := range m.Attributes.All() {
		a.names = append(a.names, name)
		a.values[name] = raw
	}
	return a
}

// attributeNames are the telling attributes that one of two arrays has.
func attributeNames(a, b attributeSet) (names []string) {
	has := func(name string) bool { return a.values[name] != nil || b.values[name] != nil }
	for _, name := range telling {
		if has(name) {
			names = append(names, name)
		}
	}
	if !slices.ContainsFunc(systems, has) {
		return names
	}
	listed := map[string]bool{}
	for _, name := range slices.Concat(names, describing) {
		listed[name] = true
	}
	for _, name := range slices.Concat(a.names, b.names) {
		if !listed[name] {
			listed[name] = true
			names = append(names, name)
		}
	}
	return names
}

// attributeText is the JSON of an attribute, "missing" without it.
func attributeText(raw json.RawMessage) string {
	if raw == nil {
		return "missing"
	}
	return string(compactJSON(raw))
}

// sameAttribute compares the values of an attribute, nil if it is missing; 1 and
// 1.0 are equal.
func sameAttribute(x, y json.RawMessage) bool {
	if x == nil || y == nil {
		return x == nil && y == nil
	}
	var one, other zarr.Attributes
	if one.Set("", x) == nil && other.Set("", y) == nil && one.Equal(other) {
		return true
	}
	if !bytes.ContainsAny(x, ".eE") && !bytes.ContainsAny(y, ".eE") {
		return false // a float64 loses the last digits of long integers
	}
	f, errX := strconv.ParseFloat(string(x), 64)
	g, errY := strconv.ParseFloat(string(y), 64)
	return errX == nil && errY == nil && f == g
}

// textAttribute is an attribute that is a string.
func textAttribute(m *zarr.Meta, name string) (text string, ok bool) {
	raw, ok := m.Attributes.Get(name)
	return text, ok && json.Unmarshal(raw, &text) == nil
}

// metaText prints a field of metadata for an error.
func metaText(m *zarr.Meta, field string) string {
	switch field {
	case "zarr_format":
		return m.Version.String()
	case "shape":
		return fmt.Sprint(m.Shape)
	case "data_type":
		return m.Type.String()
	case "dimension_names":
		names := []string{}
		for _, d := range m.DimensionNames {
			if d == nil {
				names = append(names, "null")
			} else {
				names = append(names, strconv.Quote(*d))
			}
		}
		return "[" + strings.Join(names, " ") + "]"
	case "chunk_grid":
		if shape := m.Grid.Regular(); shape != nil {
			return fmt.Sprint(shape)
		}
		return "not regular"
	}
	docs, err := m.Print()
	if err != nil {
		return "of another kind"
	}
	members := []string{field}
	doc := docs[names.V3]
	if doc == nil {
		doc = docs[names.V2Array]
		if field == "codecs" {
			members = []string{"order", "filters", "compressor"}
		}
	}
	o, err := policy.ParseObject(doc)
	if err != nil {
		return "of another kind"
	}
	var out []string
	for _, name := range members {
		text := string(compactJSON(o.Values[name]))
		if len(members) > 1 {
			text = name + " " + text
		}
		out = append(out, text)
	}
	return strings.Join(out, ", ")
}

func compactJSON(raw json.RawMessage) []byte {
	var out bytes.Buffer
	if json.Compact(&out, raw) != nil { // a bare NaN
		return raw
	}
	return out.Bytes()
}

// metaSet holds equal metadata once: thousands of pieces mostly say the same.
type metaSet map[[sha256.Size]byte]*zarr.Meta

func (s metaSet) one(m *zarr.Meta) (*zarr.Meta, error) {
	key, err := metaSum(m)
	if err != nil {
		return nil, err
	}
	if s[key] == nil {
		s[key] = m
	}
	return s[key], nil
}

// metaSum is a hash of metadata as its documents would print it.
func metaSum(m *zarr.Meta) (sum [sha256.Size]byte, err error) {
	docs, err := m.Print()
	if err != nil {
		return sum, err
	}
	h := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(docs)) {
		fmt.Fprintf(h, "%s %d\n", name, len(docs[name]))
		h.Write(docs[name])
	}
	return [sha256.Size]byte(h.Sum(nil)), nil
}
