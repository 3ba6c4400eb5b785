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
	"github.com/zarrdb/zarrdb/zarr/cf"
	"github.com/zarrdb/zarrdb/zarr/dtype"
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
	// Copied means that a copying append joins them.
	Copied bool
	// Others are the other differences, in the order in which they were found.
	Others []*MisfitError
}

// maxFilesShown bounds the files of a difference, and the differences, in the text of a
// MisfitError.
const maxFilesShown = 8

// Error names all differences, each with the array, the field, the values and the files.
func (e *MisfitError) Error() string {
	text := fmt.Sprintf("append along %s: %s", e.Dim, e.one())
	for i, o := range e.Others {
		if i == maxFilesShown {
			return fmt.Sprintf("%s; and %d other differences", text, len(e.Others)-i)
		}
		text += "; " + o.one()
	}
	return text
}

func (e *MisfitError) one() string {
	var b strings.Builder
	fmt.Fprintf(&b, "/%s: %s is %s in %s, but ", e.Path, e.Field, e.Want, e.From)
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

// addLinked adds a difference that prevents linking alone.
func (m *misfits) addLinked(path, field string, want, got misfitValue) {
	m.add(path, field, want, got)
	m.at[[2]string{path, field}].Copied = true
}

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

// err returns all differences.
func (m *misfits) err(dim string) error {
	if len(m.list) == 0 {
		return nil
	}
	e := *m.list[0]
	e.Dim, e.Others = dim, m.list[1:]
	return &e
}

// compare finds the differences that prevent joining an array with b. as is o with the
// units that it has from a coordinate. If o has a wider type, b gets it.
func (p *AppendPlan) compare(b *appendBase, o, as *zarr.Meta, file string) {
	add := p.bad.add
	differ := func(field, want, got string) {
		add(b.path, field, misfitValue{b.from, want}, misfitValue{file, got})
	}
	is := b.meaning()
	times, equal := cf.SameTimes(is, as)
	_, numbers := cf.CommonType(b.meta.Type, o.Type)
	numbers = numbers && b.meta.Type.Kind() <= dtype.Float
	free := b.axis < 0 || !p.link || b.small // elements are read, so they may be converted
	fields := b.meta.Diff(o)
	for _, field := range fields {
		add = p.bad.add
		if !free {
			add = p.bad.addLinked
		}
		switch field {
		case "zarr_format", "dimension_names":
			add = p.bad.add
		case "data_type":
			t, ok := cf.CommonType(b.meta.Type, o.Type)
			if ok && free && (b.axis < 0 || b.widen(t) == nil) {
				continue
			}
			if !ok {
				add = p.bad.add
			}
		case "fill_value":
			if free || metaText(b.meta, field) == metaText(o, field) && slices.Contains(fields, "data_type") { // the type is named
				continue
			}
		case "codecs":
			if b.axis < 0 || free && b.meta.Codecs.Lossless() {
				continue
			}
			if !b.meta.Codecs.Lossless() {
				add = p.bad.add
			}
		case "chunk_grid":
			if free || p.rectilinear && b.meta.Version == zarr.V3 || b.meta.Grid.Regular() == nil {
				continue
			}
		case "shape":
			add = p.bad.add
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
	ours, theirs := maps.Collect(b.meta.Attributes.All()), maps.Collect(o.Attributes.All())
	for _, name := range attributeNames(b.meta, o, ours, theirs) {
		add = p.bad.add
		if name == cf.FillAttribute || name == "missing_value" {
			// What is missing is converted, and NaN means nothing more than itself. An attribute
			// that xarray does not read, since the fill value replaces it, is compared.
			read := name != cf.FillAttribute || !cf.FillIsMissing(is) && !cf.FillIsMissing(as)
			if r, err := cf.NewRecoder(as, is); err == nil && numbers && read {
				if free || r == nil {
					continue
				}
				add = p.bad.addLinked
			}
		}
		if (name == "units" || name == "calendar") && times {
			if equal || free {
				continue
			}
			add = p.bad.addLinked
		}
		if !sameAttribute(ours[name], theirs[name]) {
			differ("attribute "+name, attributeText(ours[name]), attributeText(theirs[name]))
		}
	}
}

// recoder returns how elements of o become elements of an array with the metadata is, nil
// if they are that already. Both have the units that they have from a coordinate.
func recoder(is, o *zarr.Meta) (*cf.Recoder, error) {
	if !slices.ContainsFunc(is.Diff(o), func(field string) bool {
		return field == "data_type" || field == "fill_value" || field == "attributes"
	}) {
		return nil, nil
	}
	if times, _ := cf.SameTimes(is, o); !times && is.Type.Equal(o.Type) && bytes.Equal(is.Fill, o.Fill) && is.NullFill == o.NullFill {
		// What cannot be decoded is not converted either.
		if !slices.ContainsFunc([]string{"units", "calendar", cf.FillAttribute, "missing_value"}, func(name string) bool {
			return !sameAttribute(attribute(is, name), attribute(o, name))
		}) {
			return nil, nil
		}
	}
	return cf.NewRecoder(o, is)
}

// meaning is the metadata of the array, with the units of the coordinate whose bounds it
// has (CF conventions, "Cell Boundaries").
func (b *appendBase) meaning() *zarr.Meta {
	if b.parent == nil {
		return b.meta
	}
	return withUnits(b.meta, b.parent.meta)
}

func (p *appendPiece) meaning(a *appendArray) *zarr.Meta {
	if a.base.parent == nil || p.arrays[a.base.parent.path] == nil {
		return a.meta
	}
	return withUnits(a.meta, p.arrays[a.base.parent.path].meta)
}

func withUnits(m, parent *zarr.Meta) *zarr.Meta {
	if _, has := m.Attributes.Get("units"); has {
		return m
	}
	c := m.Clone()
	for _, name := range []string{"units", "calendar"} {
		if raw, has := parent.Attributes.Get(name); has {
			if err := c.Attributes.Set(name, raw); err != nil {
				return m
			}
		}
	}
	return c
}

// widen gives the joined array another type, which holds every element and the fill value.
func (b *appendBase) widen(t dtype.Type) error {
	if t.Equal(b.meta.Type) {
		return nil
	}
	m := b.meta.Clone()
	m.Type, m.Fill = t, t.Zero()
	plain := func(m *zarr.Meta) *zarr.Meta {
		return &zarr.Meta{Version: zarr.V3, Array: true, Type: m.Type, Fill: m.Fill}
	}
	r, err := cf.NewRecoder(plain(b.meta), plain(m))
	if err != nil {
		return err
	}
	if m.Fill, err = r.Append(nil, b.meta.Fill); err != nil {
		return err
	}
	if t.Kind() == dtype.Float && b.meta.Type.Kind() != dtype.Float {
		_, fill := b.meta.Attributes.Get(cf.FillAttribute)
		_, missing := b.meta.Attributes.Get("missing_value")
		if fill || missing || cf.FillIsMissing(b.meta) {
			return fmt.Errorf("%w: missing values of whole numbers", errors.ErrUnsupported)
		}
	}
	if b.stored != nil && b.axis >= 0 && metaSize(b.meta) > maxRewrite {
		return fmt.Errorf("%w: more than %d MiB", zarr.ErrTooLarge, maxRewrite>>20)
	}
	if err := m.Validate(); err != nil {
		return err
	}
	b.meta = m
	return nil
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

// attributeNames are the telling attributes that one of two arrays has, of which ours and
// theirs are the attributes.
func attributeNames(a, b *zarr.Meta, ours, theirs map[string]json.RawMessage) (list []string) {
	has := func(name string) bool { return ours[name] != nil || theirs[name] != nil }
	for _, name := range telling {
		if has(name) {
			list = append(list, name)
		}
	}
	if !slices.ContainsFunc(systems, has) {
		return list
	}
	listed := map[string]bool{}
	for _, name := range slices.Concat(list, describing) {
		listed[name] = true
	}
	for _, m := range []*zarr.Meta{a, b} {
		for name := range m.Attributes.All() {
			if !listed[name] {
				listed[name] = true
				list = append(list, name)
			}
		}
	}
	return list
}

// attribute is the JSON of an attribute, nil without it.
func attribute(m *zarr.Meta, name string) json.RawMessage {
	raw, _ := m.Attributes.Get(name)
	return raw
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
