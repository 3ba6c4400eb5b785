package cf

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/zarrdb/zarrdb/zarr"
	"github.com/zarrdb/zarrdb/zarr/dtype"
)

// ErrAttribute means that an attribute violates the CF conventions.
var ErrAttribute = errors.New("cf: bad attribute")

// Decoder converts stored elements to the values that the CF attributes define.
// Safe for concurrent use.
type Decoder struct {
	in, out  dtype.Type
	plain    bool     // decoded elements equal stored elements
	complex  []byte   // of complex numbers, the missing one
	unsigned bool     // integers count as unsigned
	flipped  bool     // _Unsigned gives integers the other sign
	masked   bool     // an attribute or the fill value names missing values, of the type or not
	missing  []uint64 // bits of missing values, as integers or float64
	named    bool     // a missing value of floats is a number, of the type or not
	scaled   bool
	scale    float64
	offset   float64
	time     *timeUnits
	res      int64 // of decoded times and spans, in nanoseconds
	span     int64 // of a count of spans of time, in nanoseconds; 0: they are none
	spanUnit string
}

// NewDecoder reads the attributes scale_factor, add_offset, _FillValue,
// missing_value, _Unsigned, units, calendar and dtype of an array. Decoded elements
// equal the elements that xarray shows:
//
//	attributes                           decoded type
//	units "hours since 2020-01-01"       datetime64[us], or [ns] if counts are shorter
//	units "hours", dtype "timedelta64…"  timedelta64 of the unit in dtype, from s to ns; ns
//	                                     where counts may be no whole ones
//	dtype "bool"                         bool
//	scale_factor or add_offset           float64; the float itself if all missing values
//	                                     that are named are NaN
//	missing values                       the float itself; float32 for integers of 8
//	                                     and 16 bits, float64 for longer ones
//	_Unsigned alone                      the integer of the other sign
//
// A missing value is NaN, or NaT in times and spans. The fill value of a v2 array with
// dimension names, other than null, is its _FillValue, in place of that attribute. The
// least int64 is always NaT in counts of time, since numpy and xarray store it so.
// Other arrays are not converted. Errors are [ErrAttribute], or errors.ErrUnsupported
// for a calendar or unit that is not known, and name the attribute.
func NewDecoder(m *zarr.Meta) (*Decoder, error) {
	d := &Decoder{in: m.Type, out: m.Type, plain: true, scale: 1}
	switch m.Type.Kind() {
	case dtype.Int, dtype.Uint:
	case dtype.Float:
		if m.Type.Format() != "" {
			return d, nil
		}
	case dtype.Complex:
		if m.Type.Format() == "" {
			d.setComplex(m)
		}
		return d, nil
	default:
		return d, nil
	}
	a := attributes{m.Attributes, m.Version == zarr.V3}
	if err := d.setSign(a); err != nil {
		return nil, err
	}
	for name, to := range map[string]*float64{"scale_factor": &d.scale, "add_offset": &d.offset} {
		has, err := a.number(name, to)
		if err != nil {
			return nil, err
		}
		d.scaled = d.scaled || has
	}
	if err := d.setMissing(m, a); err != nil {
		return nil, err
	}
	return d, d.setType(a)
}

// NewDecoderBeside is [NewDecoder] for an array in a group that beside opens nodes of. Where
// a coordinate of its dimensions names it as its bounds, it has units and calendar of the
// coordinate, as in xarray, unless it has units.
func NewDecoderBeside(ctx context.Context, a *zarr.Array, beside Opener) (*Decoder, error) {
	m := *a.Meta()
	if _, has := m.Attributes.Get("units"); has || len(m.Shape) < 2 {
		return NewDecoder(&m)
	}
	name := path.Base(a.Path())
	for _, dim := range a.DimensionNames() {
		n, err := beside(ctx, dim)
		if err != nil {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			continue // a dimension without coordinate
		}
		of := attributes{n.Meta().Attributes, false}
		units, _ := of.text("units")
		if bounds, _ := of.text("bounds"); bounds != name || !strings.Contains(units, "since") {
			continue
		}
		err = m.Attributes.Set("units", units)
		if calendar, ok := of.text("calendar"); ok && err == nil {
			if _, has := m.Attributes.Get("calendar"); !has {
				err = m.Attributes.Set("calendar", calendar)
			}
		}
		if err != nil {
			return nil, err
		}
	}
	return NewDecoder(&m)
}

// setSign reads the sign of integers from their type and the attribute _Unsigned.
func (d *Decoder) setSign(a attributes) error {
	stored := d.in.Kind() == dtype.Uint
	d.unsigned = stored
	text, ok := a.text("_Unsigned")
	if !ok || d.in.Kind() == dtype.Float {
		return nil
	}
	switch strings.ToLower(text) {
	case "true":
		d.unsigned = true
	case "false":
		d.unsigned = false
	default:
		return fmt.Errorf("%w: _Unsigned: %q is neither true nor false", ErrAttribute, text)
	}
	d.flipped = d.unsigned != stored
	return nil
}

// setType sets the type of decoded elements.
func (d *Decoder) setType(a attributes) error {
	units, _ := a.text("units")
	cal, _ := a.text("calendar")
	kind, _ := a.text("dtype")
	u, isTime, err := parseUnits(units, cal)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrAttribute, err)
	}
	resolution, isSpan := strings.CutPrefix(kind, "timedelta64")
	isSpan = isSpan && spanUnits[units] != ""
	d.plain = false
	switch {
	case isTime:
		d.time, d.res = &u, 1e3
		unit := "us"
		if u.step < 1e3 {
			d.res, unit = 1, "ns"
		}
		d.out, err = dtype.NewDatetime(unit, 1)
	case isSpan:
		d.span, d.spanUnit = spans[units], spanUnits[units]
		unit := strings.Trim(resolution, "[]")
		switch unit {
		case "ms", "us", "ns":
		case "ps", "fs", "as", "":
			unit = "ns"
		default:
			unit = "s"
		}
		if d.scaled || d.in.Kind() == dtype.Float || d.span < spans[unit] { // a count may be no whole one
			unit = "ns"
		}
		d.res = spans[unit]
		d.out, err = dtype.NewTimedelta(unit, 1)
	case kind == "bool":
		d.out = dtype.NewBool()
	case d.scaled && d.masked && !d.named && d.in.Kind() == dtype.Float:
		// xarray keeps the stored type if NaN is the only missing value, and computes in that type.
		d.scale, d.offset = d.round(d.scale), d.round(d.offset)
	case d.scaled, d.masked && d.in.Kind() != dtype.Float && d.in.Size() > 2:
		d.out = dtype.NewFloat(64)
	case d.masked && d.in.Kind() != dtype.Float:
		d.out = dtype.NewFloat(32)
	case len(d.missing) > 0:
	case d.in.Kind() == dtype.Int && d.unsigned:
		d.out = dtype.NewUint(d.in.Bits())
	case d.in.Kind() == dtype.Uint && !d.unsigned:
		d.out = dtype.NewInt(d.in.Bits())
	default:
		d.plain = true
	}
	return err
}

// spanUnits are the units of spans of time by the names that xarray takes, in numpy's
// spelling.
var spanUnits = map[string]string{
	"days": "D", "hours": "h", "minutes": "m", "seconds": "s", "milliseconds": "ms", "microseconds": "us", "nanoseconds": "ns",
}

// setMissing collects the missing values.
func (d *Decoder) setMissing(m *zarr.Meta, a attributes) error {
	if FillIsMissing(m) {
		d.masked = true
		d.addMissing(d.raw(m.Fill))
	} else if err := d.addAttribute(a, FillAttribute); err != nil {
		return err
	}
	return d.addAttribute(a, "missing_value")
}

// setComplex sets the missing value of complex numbers.
func (d *Decoder) setComplex(m *zarr.Meta) {
	d.complex = m.Fill
	if !FillIsMissing(m) {
		d.complex, _ = MissingElement(m)
	}
	d.plain = d.complex == nil
}

// appendComplex decodes complex numbers: missing ones are NaN in both parts.
func (d *Decoder) appendComplex(dst, src []byte) []byte {
	part := dtype.NewFloat(d.in.Bits() / 2)
	value := func(elem []byte) (re, im float64) {
		var words [2][8]byte
		half := d.in.Size() / 2
		copy(words[0][:], elem[:half])
		copy(words[1][:], elem[half:])
		return part.FloatValue(binary.LittleEndian.Uint64(words[0][:])), part.FloatValue(binary.LittleEndian.Uint64(words[1][:]))
	}
	missRe, missIm := value(d.complex)
	bits, _ := part.RoundFloat(math.NaN())
	nan := binary.LittleEndian.AppendUint64(nil, bits)[:part.Size()]
	for size := d.in.Size(); len(src) >= size; src = src[size:] {
		if re, im := value(src); re == missRe && im == missIm {
			dst = append(append(dst, nan...), nan...)
		} else {
			dst = append(dst, src[:size]...)
		}
	}
	return dst
}

// addAttribute adds the missing values that an attribute names. As in xarray, a text names no
// element, nor does a list with a text in it, but decoded elements are then floats as well.
func (d *Decoder) addAttribute(a attributes, name string) error {
	raw, ok := a.Get(name)
	if !ok || string(raw) == "null" {
		return nil
	}
	fill := name == FillAttribute
	values, err := d.parseMissing(raw, fill && a.v3)
	if err != nil {
		return fmt.Errorf("%w: %s: %s is not a value of %v", ErrAttribute, name, raw, d.in)
	}
	float := d.in.Kind() == dtype.Float
	d.masked = d.masked || float
	for _, v := range values {
		if v == "NaN" && !float {
			continue
		}
		d.masked = true
		if bits, ok := d.bits(v, fill && a.v3, fill && d.flipped); ok {
			d.addMissing(bits)
		} else {
			d.named = true
		}
	}
	return nil
}

// noElement stands for a text in place of missing values.
const noElement = ""

// parseMissing returns the numbers in the value of an attribute that names missing values, in
// lists of any depth: true and false are 1 and 0, null is left out. Texts are one noElement. In
// the attribute _FillValue of v3, coded, a text is a float64 in base64 or an error.
func (d *Decoder) parseMissing(raw json.RawMessage, coded bool) (values []string, err error) {
	strict, err := zarr.StrictJSON(raw)
	if err != nil {
		return nil, err
	}
	float := d.in.Kind() == dtype.Float
	words := !json.Valid(raw) || coded && float // NaN and infinities are numbers
	dec := json.NewDecoder(bytes.NewReader(strict))
	dec.UseNumber()
	var all any
	if err := dec.Decode(&all); err != nil {
		return nil, err
	}
	if s, ok := all.(string); ok && coded && float {
		if b, err := base64.StdEncoding.DecodeString(s); err == nil && len(b) == 8 {
			return []string{codedFloat + strconv.FormatUint(binary.LittleEndian.Uint64(b), 16)}, nil
		}
	}
	text := false
	var add func(v any) error
	add = func(v any) error {
		switch v := v.(type) {
		case nil:
		case json.Number:
			values = append(values, v.String())
		case bool:
			values = append(values, map[bool]string{true: "1", false: "0"}[v])
		case string:
			if words && (v == "NaN" || v == "Infinity" || v == "-Infinity") {
				values = append(values, v)
			} else if text = true; coded {
				return ErrAttribute
			}
		case []any:
			for _, v := range v {
				if err := add(v); err != nil {
					return err
				}
			}
		default:
			return ErrAttribute
		}
		return nil
	}
	if err := add(all); err != nil {
		return nil, err
	}
	if text {
		return []string{noElement}, nil
	}
	return values, nil
}

// codedFloat begins the bits of a number that was stored as a float64, and is not rounded to the type.
const codedFloat = "="

// MoveFill moves the attribute _FillValue to missing_value, which names the same elements in
// every version of Zarr. The numbers of both are one list.
func MoveFill(a *zarr.Attributes) error {
	raw, ok := a.Get(FillAttribute)
	a.Delete(FillAttribute)
	if !ok || string(raw) == "null" {
		return nil
	}
	d := &Decoder{}
	values, err := d.parseMissing(raw, false)
	other, ok := a.Get("missing_value")
	if !ok || string(other) == "null" || err != nil {
		return a.Set("missing_value", raw)
	}
	more, err := d.parseMissing(other, false)
	switch {
	case err != nil || slices.Contains(values, noElement):
		return nil
	case slices.Contains(more, noElement):
		return a.Set("missing_value", raw)
	}
	return a.Set("missing_value", json.RawMessage("["+strings.Join(append(more, values...), ",")+"]"))
}

// FillAttribute is the attribute that names a missing value: in v3 for xarray as base64
// of a little-endian float64 if elements are floats.
const FillAttribute = "_FillValue"

// FillIsMissing reports whether the fill value of an array is a missing value, and its
// attribute _FillValue none: in v2 unless it is null, for arrays that xarray opens, which
// have names of dimensions or no dimensions.
func FillIsMissing(m *zarr.Meta) bool {
	return (m.Version == zarr.V1 || m.Version == zarr.V2) && !m.NullFill && HasNames(m)
}

// HasNames reports whether an array has names of dimensions, or no dimensions.
func HasNames(m *zarr.Meta) bool { return m.DimensionNames != nil || len(m.Shape) == 0 }

// MissingElement returns the element that the attribute _FillValue of an array names, in
// memory layout. Without an attribute that fits the type of the array, ok is false.
func MissingElement(m *zarr.Meta) (elem []byte, ok bool) {
	raw, has := m.Attributes.Get(FillAttribute)
	if !has || string(raw) == "null" {
		return nil, false
	}
	switch k := m.Type.Kind(); {
	case (k == dtype.Float || k == dtype.Complex) && m.Type.Format() != "":
		return nil, false
	case k == dtype.Complex && m.Version == zarr.V3:
		return complexElement(m.Type, raw)
	case k != dtype.Float && k != dtype.Int && k != dtype.Uint:
		elem, null, err := m.Type.ParseFillV2(raw)
		return elem, err == nil && !null
	}
	d := &Decoder{in: m.Type}
	_ = d.setSign(attributes{m.Attributes, m.Version == zarr.V3}) // a Decoder reports the error
	values, err := d.parseMissing(raw, m.Version == zarr.V3)
	if err != nil || len(values) != 1 {
		return nil, false
	}
	bits, ok := d.bits(values[0], m.Version == zarr.V3, d.flipped)
	if !ok {
		return nil, false
	}
	if m.Type.Kind() == dtype.Float {
		bits, _ = m.Type.RoundFloat(math.Float64frombits(bits)) // bits are of the type
	}
	return binary.LittleEndian.AppendUint64(nil, bits)[:m.Type.Size()], true
}

// complexElement reads a complex number that xarray stored in v3: both parts in base64.
func complexElement(t dtype.Type, raw json.RawMessage) (elem []byte, ok bool) {
	var parts []string
	if json.Unmarshal(raw, &parts) != nil || len(parts) != 2 {
		return nil, false
	}
	part := dtype.NewFloat(t.Bits() / 2)
	for _, p := range parts {
		b, err := base64.StdEncoding.DecodeString(p)
		if err != nil || len(b) != 8 {
			return nil, false
		}
		bits, ok := part.RoundFloat(math.Float64frombits(binary.LittleEndian.Uint64(b)))
		if !ok {
			return nil, false
		}
		elem = append(elem, binary.LittleEndian.AppendUint64(nil, bits)[:part.Size()]...)
	}
	return elem, true
}

// FillAttributeV3 returns an element, in memory layout, as xarray stores it in the attribute
// _FillValue of v3: floats as base64 of a little-endian float64. It is nil if xarray opens no array
// of the type with one. It keeps the exact value of the element: the shortest text of a narrower
// float would be another float64.
func FillAttributeV3(t dtype.Type, elem []byte) json.RawMessage {
	if t.Format() != "" {
		return nil
	}
	switch t.Kind() {
	case dtype.Float:
		var word [8]byte
		copy(word[:], elem)
		return floatAttributeV3(t.FloatValue(binary.LittleEndian.Uint64(word[:])))
	case dtype.Complex:
		half := t.Size() / 2
		part := dtype.NewFloat(t.Bits() / 2)
		parts := []json.RawMessage{FillAttributeV3(part, elem[:half]), FillAttributeV3(part, elem[half:])}
		return fmt.Appendf(nil, "[%s,%s]", parts[0], parts[1])
	case dtype.Bool, dtype.Int, dtype.Uint:
		text, err := t.AppendJSON(nil, elem)
		if err != nil {
			return nil
		}
		return text
	}
	return nil
}

func floatAttributeV3(f float64) json.RawMessage {
	b := binary.LittleEndian.AppendUint64(nil, math.Float64bits(f))
	return json.RawMessage(strconv.Quote(base64.StdEncoding.EncodeToString(b)))
}

// addMissing adds a missing value. NaN decodes to itself.
func (d *Decoder) addMissing(bits uint64) {
	if f := math.Float64frombits(bits); d.in.Kind() != dtype.Float || f == f {
		d.missing, d.named = append(d.missing, bits), true
	}
}

// bits reads a number as the bits of an element, or of a float64 if elements are floats. ok is
// false if no element is equal to it: a float is compared as a float64, so that 1e20 is no float32,
// unless fill rounds it to the type; an integer is compared with decoded elements, so that -1 is no
// uint8; with either, it may have the sign that elements are stored with as well.
func (d *Decoder) bits(number string, fill, either bool) (bits uint64, ok bool) {
	number, exact := strings.CutPrefix(number, codedFloat)
	f, err := strconv.ParseFloat(number, 64)
	switch {
	case exact:
		coded, err := strconv.ParseUint(number, 16, 64)
		if err != nil {
			return 0, false
		}
		f = math.Float64frombits(coded)
	case err != nil && !errors.Is(err, strconv.ErrRange):
		return 0, false
	case f != f:
		f = math.Float64frombits(0x7ff8 << 48) // as numpy's; ParseFloat gives another one
	}
	if d.in.Kind() == dtype.Float {
		rounded, ok := d.in.RoundFloat(f)
		value := d.in.FloatValue(rounded)
		return math.Float64bits(value), ok && (fill && !exact || value == f || f != f)
	}
	width := 8 * d.in.Size()
	mask := uint64(math.MaxUint64) >> (64 - width)
	least, most := int64(math.MinInt64)>>(64-width), mask
	if d.unsigned && !either {
		least = 0
	}
	if !d.unsigned && !either {
		most = mask >> 1
	}
	if n, err := strconv.ParseUint(number, 10, 64); err == nil {
		return n, n <= most
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil {
		if f != f || f != math.Trunc(f) && !fill || f < -1<<63 || f >= 1<<63 {
			return 0, false
		}
		n = int64(f)
	}
	return uint64(n) & mask, n >= least && (n <= 0 || uint64(n) <= most)
}

// raw returns the bits of an element, or of a float64 if elements are floats.
func (d *Decoder) raw(elem []byte) uint64 {
	var b [8]byte
	copy(b[:], elem)
	bits := binary.LittleEndian.Uint64(b[:])
	if d.in.Kind() == dtype.Float {
		return math.Float64bits(d.in.FloatValue(bits))
	}
	return bits
}

// Type is the data type of decoded elements, see [NewDecoder].
func (d *Decoder) Type() dtype.Type { return d.out }

// Plain reports whether decoded elements are the stored ones.
func (d *Decoder) Plain() bool { return d.plain }

// Falls reports whether greater stored elements decode to lesser values.
func (d *Decoder) Falls() bool { return d.scale < 0 }

// HasText reports whether [Decoder.AppendText] is more than JSON: for times and spans.
func (d *Decoder) HasText() bool { return d.time != nil || d.span > 0 }

// Append decodes packed elements of the array's type and appends them to dst as
// elements of [Decoder.Type], in memory layout. Times that do not fit are
// errors.
func (d *Decoder) Append(dst, src []byte) ([]byte, error) {
	if d.plain {
		return append(dst, src...), nil
	}
	if d.complex != nil {
		return d.appendComplex(dst, src), nil
	}
	to := d.out.Size()
	for size := d.in.Size(); len(src) >= size; src = src[size:] {
		bits, ok := d.one(src[:size])
		if !ok {
			text, _ := d.in.AppendJSON(nil, src[:size]) // of the right length
			return dst, fmt.Errorf("%w: units: the time %s does not fit %v", ErrAttribute, text, d.out)
		}
		var word [8]byte
		binary.LittleEndian.PutUint64(word[:], bits)
		dst = append(dst, word[:to]...)
	}
	return dst, nil
}

// InNumpy returns an error if a decoded time has no datetime64 of numpy: because its
// calendar has other days, or because it lies before the days of the standard calendar
// that numpy counts alike, from 1582-10-15 on. decoded are elements of [Decoder.Type].
func (d *Decoder) InNumpy(decoded []byte) error {
	if d.time == nil || d.time.calendar == &gregorian {
		return nil
	}
	if d.time.calendar != &mixed {
		return fmt.Errorf("times of the calendar %s have no datetime64", d.time.calendar.name)
	}
	first := reform * (day / d.res)
	for ; len(decoded) >= 8; decoded = decoded[8:] {
		if c := int64(binary.LittleEndian.Uint64(decoded)); c < first && c != NaT {
			text, _ := d.AppendText(nil, decoded[:8])
			return fmt.Errorf("the time %s of the calendar standard has no datetime64, it lies before 1582-10-15", text)
		}
	}
	return nil
}

// one decodes one element.
func (d *Decoder) one(elem []byte) (bits uint64, ok bool) {
	raw := d.raw(elem)
	counts := d.time != nil || d.span > 0
	gone := d.isMissing(raw) || counts && d.in.Kind() == dtype.Int && d.signed(raw) == NaT && !d.unsigned
	switch {
	case gone && counts:
		return 1 << 63, true
	case gone:
		return d.float(math.NaN()), true
	case counts && !d.scaled && d.in.Kind() != dtype.Float && (!d.unsigned || raw < 1<<63):
		return d.count(d.signed(raw))
	case d.out.Kind() == dtype.Int || d.out.Kind() == dtype.Uint:
		return raw, true
	}
	f := math.Float64frombits(raw)
	switch {
	case d.in.Kind() == dtype.Float:
	case d.unsigned:
		f = float64(raw)
	default:
		f = float64(d.signed(raw))
	}
	f = d.round(f*d.scale) + d.offset // two roundings, as numpy
	switch {
	case !counts:
		return d.float(f), true
	case math.IsNaN(f):
		return 1 << 63, true
	case d.time != nil:
		c, ok := d.time.fractional(f, d.res)
		return uint64(c), ok
	}
	n := math.Trunc(f) // of nanoseconds xarray drops the fraction
	if d.span > d.res {
		n = math.Round(f * float64(d.span) / float64(d.res))
	}
	return uint64(int64(n)), math.Abs(n) < 1<<63
}

// count decodes a whole count of times or spans.
func (d *Decoder) count(n int64) (uint64, bool) {
	if d.time != nil {
		c, ok := d.time.count(n, d.res)
		return uint64(c), ok
	}
	k := d.span / d.res
	return uint64(n * k), n*k/k == n && n*k != NaT
}

// float is a decoded number in the form of the decoded type.
func (d *Decoder) float(f float64) uint64 {
	if d.out.Kind() == dtype.Bool {
		if f == 0 {
			return 0
		}
		return 1
	}
	bits, _ := d.out.RoundFloat(f) // missing values alone are no float of the type
	return bits
}

// round rounds a number to the decoded type, if that is a float.
func (d *Decoder) round(f float64) float64 {
	if d.out.Kind() != dtype.Float || d.out.Bits() == 64 {
		return float64(f)
	}
	bits, _ := d.out.RoundFloat(f)
	return d.out.FloatValue(bits)
}

// signed extends the bits of a narrow integer.
func (d *Decoder) signed(raw uint64) int64 {
	if d.unsigned {
		return int64(raw)
	}
	shift := 64 - 8*d.in.Size()
	return int64(raw<<shift) >> shift
}

func (d *Decoder) isMissing(raw uint64) bool {
	for _, m := range d.missing {
		if m == raw || d.in.Kind() == dtype.Float && math.Float64frombits(m) == math.Float64frombits(raw) {
			return true
		}
	}
	return false
}

// AppendText appends a decoded element for people: times in their calendar,
// without a fraction that is zero; spans of time in the unit that they are stored in, if
// they are whole; anything else as JSON.
func (d *Decoder) AppendText(dst, elem []byte) ([]byte, error) {
	if d.span > 0 && len(elem) == 8 {
		count := int64(binary.LittleEndian.Uint64(elem))
		t := d.out
		if per := d.span / d.res; per > 0 && count%per == 0 && count != NaT {
			t, _ = dtype.NewTimedelta(d.spanUnit, 1)
			count /= per
		}
		return AppendTimedelta(dst, t, count), nil
	}
	if d.time == nil || len(elem) != 8 {
		return d.out.AppendJSON(dst, elem)
	}
	n := len(dst)
	dst = appendDatetime(dst, d.out, int64(binary.LittleEndian.Uint64(elem)), d.time.calendar)
	if text, whole := bytes.CutSuffix(dst[n:], []byte("000")); whole { // mostly there is no fraction
		text = bytes.TrimSuffix(bytes.TrimRight(text, "0"), []byte("."))
		dst = dst[:n+len(text)]
	}
	return dst, nil
}

// parseTime reads a time such as 2020-02 or 2020-02-01T12 in the calendar of the
// decoded times: it means the counts from first up to, but not including, end,
// and so many nanoseconds.
func (d *Decoder) parseTime(text string) (first, end, span int64, err error) {
	c := &gregorian
	if d.time != nil {
		c = d.time.calendar
	}
	at, span, err := c.parseTime(text)
	if err != nil {
		return 0, 0, 0, err
	}
	res := d.resolution()
	if res == 0 {
		return 0, 0, 0, fmt.Errorf("times of %v: %w", d.out, errors.ErrUnsupported)
	}
	first, ok := at.count(res)
	end, ok2 := moment{at.day + span/day, at.nanos + span%day}.count(res)
	if !ok || !ok2 {
		return 0, 0, 0, fmt.Errorf("%w that fits %v: %q", errTime, d.out, text)
	}
	return first, max(end, first+1), span, nil
}

// resolution is one count of decoded times in nanoseconds, 0 if that is no whole
// number of them.
func (d *Decoder) resolution() int64 {
	unit, scale := d.out.Unit()
	return map[string]int64{"us": 1e3, "ns": 1, "ms": 1e6, "s": 1e9, "m": 60e9, "h": 3600e9, "D": day}[unit] * scale
}

// attributes are the attributes of an array.
type attributes struct {
	zarr.Attributes
	v3 bool
}

// text is the value of an attribute that is a string.
func (a attributes) text(name string) (string, bool) {
	raw, ok := a.Get(name)
	var s string
	if !ok || json.Unmarshal(raw, &s) != nil {
		return "", false
	}
	return s, true
}

// number reads an attribute that is a number, or a list of one.
func (a attributes) number(name string, to *float64) (bool, error) {
	raw, ok := a.Get(name)
	if !ok {
		return false, nil
	}
	var list []float64
	if json.Unmarshal(raw, to) != nil {
		if json.Unmarshal(raw, &list) != nil || len(list) != 1 {
			return false, fmt.Errorf("%w: %s: %s is not a number", ErrAttribute, name, raw)
		}
		*to = list[0]
	}
	return true, nil
}
