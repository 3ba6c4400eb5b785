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
	// From has the value Want, and Files[i] the value Got[i].
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
	text := fmt.Sprintf("/%s: %s is %s in %s, but ", e.Path, e.Field, e.Want, e.From)
	for i, file := range e.Files {
		switch {
		case i == maxFilesShown:
			return fmt.Sprintf("%s and %d more", text, len(e.Files)-i)
		case i > 0:
			text += ", "
		}
		if i == 0 || e.Got[i] != e.Got[i-1] {
			text += e.Got[i] + " in "
		}
		text += file
	}
	return text
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

// add adds a difference. copied means that the difference prevents linking, but not copying.
func (m *misfits) add(path, field string, copied bool, want, got misfitValue) {
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
	e.Files, e.Got, e.Copied = append(e.Files, got.where), append(e.Got, got.value), e.Copied || copied
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
	differ := func(field string, copied bool, want, got string) {
		p.bad.add(b.path, field, copied, misfitValue{b.from, want}, misfitValue{file, got})
	}
	is := b.meaning()
	times, equal := cf.SameTimes(is, as)
	common, hasCommon := cf.CommonType(b.meta.Type, o.Type)
	numbers := hasCommon && b.meta.Type.Kind() <= dtype.Float
	lossless := b.meta.Codecs.Lossless()
	free := b.axis < 0 || !p.link || b.small // elements are read, so they may be converted
	fields := b.meta.Diff(o)
	for _, field := range fields {
		copied := !free
		switch field {
		case "zarr_format", "dimension_names":
			copied = false
		case "data_type":
			if hasCommon && free && (b.axis < 0 || b.widen(common) == nil) {
				continue
			}
			copied = copied && hasCommon
		case "fill_value":
			if free || metaText(b.meta, field) == metaText(o, field) && slices.Contains(fields, "data_type") { // the type is named
				continue
			}
		case "codecs":
			if b.axis < 0 || free && lossless {
				continue
			}
			copied = copied && lossless
		case "chunk_grid":
			if free || p.rectilinear && b.meta.Version == zarr.V3 || b.meta.Grid.Regular() == nil {
				continue
			}
		case "shape":
			copied = false
			shape := slices.Clone(o.Shape)
			if b.axis >= 0 && len(shape) == len(b.meta.Shape) {
				shape[b.axis] = b.meta.Shape[b.axis]
			}
			if slices.Equal(shape, b.meta.Shape) {
				continue
			}
		default:
			continue // does not concern values, or is compared below
		}
		differ(field, copied, metaText(b.meta, field), metaText(o, field))
	}
	ours, theirs := maps.Collect(b.meta.Attributes.All()), maps.Collect(o.Attributes.All())
	for _, name := range attributeNames(ours, theirs) {
		copied := false
		if name == cf.FillAttribute || name == "missing_value" {
			// Missing values are converted, and NaN has no meaning beside itself. An attribute
			// that xarray does not read, since the fill value replaces it, is compared.
			read := name != cf.FillAttribute || !cf.FillIsMissing(is) && !cf.FillIsMissing(as)
			if r, err := cf.NewRecoder(as, is); err == nil && numbers && read {
				if free || r == nil {
					continue
				}
				copied = true
			}
		}
		if (name == "units" || name == "calendar") && times {
			if equal || free {
				continue
			}
			copied = true
		}
		if !sameAttribute(ours[name], theirs[name]) {
			differ("attribute "+name, copied, jsonText(ours[name]), jsonText(theirs[name]))
		}
	}
}

// recoder returns how elements of o become elements of an array with the metadata is, nil
// if they are that already. Both have the units that they have from a coordinate.
func recoder(is, o *zarr.Meta) (*cf.Recoder, error) {
	same := is.Type.Equal(o.Type) && bytes.Equal(is.Fill, o.Fill) && is.NullFill == o.NullFill
	for _, name := range []string{"units", "calendar", cf.FillAttribute, "missing_value"} {
		x, _ := is.Attributes.Get(name)
		y, _ := o.Attributes.Get(name)
		same = same && sameAttribute(x, y)
	}
	if same {
		return nil, nil // also if they cannot be decoded
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

func (a *appendArray) meaning() *zarr.Meta {
	if a.base.parent == nil || a.piece.arrays[a.base.parent.path] == nil {
		return a.meta
	}
	return withUnits(a.meta, a.piece.arrays[a.base.parent.path].meta)
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
// "Parametric Vertical Coordinate", "Compression by Gathering"). Other
// attributes describe or tell a history: the first piece's stay.
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

// attributeNames are the telling attributes that one of two arrays has.
func attributeNames(ours, theirs map[string]json.RawMessage) (list []string) {
	has := func(name string) bool { return ours[name] != nil || theirs[name] != nil }
	for _, name := range telling {
		if has(name) {
			list = append(list, name)
		}
	}
	if !slices.ContainsFunc(systems, has) {
		return list
	}
	all := maps.Clone(ours)
	maps.Copy(all, theirs)
	for _, name := range slices.Concat(telling, describing) {
		delete(all, name)
	}
	return append(list, slices.Sorted(maps.Keys(all))...)
}

// jsonText is the JSON of an attribute or of a member of a document, "missing" without it.
func jsonText(raw json.RawMessage) string {
	if raw == nil {
		return "missing"
	}
	var out bytes.Buffer
	if json.Compact(&out, raw) != nil { // a bare NaN
		return string(raw)
	}
	return out.String()
}

// sameAttribute compares the values of an attribute, nil if it is missing; 1 and
// 1.0 are equal.
func sameAttribute(x, y json.RawMessage) bool {
	if x == nil || y == nil || bytes.Equal(x, y) {
		return (x == nil) == (y == nil)
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
		list := make([]string, len(m.DimensionNames))
		for i, d := range m.DimensionNames {
			if list[i] = "null"; d != nil {
				list[i] = strconv.Quote(*d)
			}
		}
		return fmt.Sprint(list)
	case "chunk_grid":
		if shape := m.Grid.Regular(); shape != nil {
			return fmt.Sprint(shape)
		}
		return "not regular"
	}
	docs, _ := m.Print() // none after an error
	doc, members := docs[names.V3], []string{field}
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
		text := jsonText(o.Values[name])
		if len(members) > 1 {
			text = name + " " + text
		}
		out = append(out, text)
	}
	return strings.Join(out, ", ")
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
