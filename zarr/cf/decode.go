package cf

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
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
	unsigned bool     // integers count as unsigned
	missing  []uint64 // bits of missing values, as integers or float64
	scaled   bool
	scale    float64
	offset   float64
	time     *timeUnits
	res      int64 // of decoded times, in nanoseconds
}

// NewDecoder reads the attributes scale_factor, add_offset, _FillValue,
// missing_value, _Unsigned, units and calendar of an array. The fill value of a
// v2 array with dimension names is used as _FillValue, as in xarray, unless it
// is zero, the default of writers.
//
// Integers and floats become float64, missing ones NaN; counts of time since a
// moment become datetime64, missing ones NaT. The least int64 is always NaT in
// counts of time, since numpy and xarray store it so. Other arrays and data
// types are not converted. Errors are [ErrAttribute], or errors.ErrUnsupported
// for a calendar or unit that is not known, and name the attribute.
func NewDecoder(m *zarr.Meta) (*Decoder, error) {
	d := &Decoder{in: m.Type, out: m.Type, scale: 1}
	switch m.Type.Kind() {
	case dtype.Int, dtype.Uint:
		d.unsigned = m.Type.Kind() == dtype.Uint
	case dtype.Float:
		if m.Type.Format() != "" {
			return d, nil
		}
	default:
		return d, nil
	}
	a := attributes{m.Attributes}
	if text, ok := a.text("_Unsigned"); ok && m.Type.Kind() != dtype.Float {
		switch strings.ToLower(text) {
		case "true":
			d.unsigned = true
		case "false":
			d.unsigned = false
		default:
			return nil, fmt.Errorf("%w: _Unsigned: %q is neither true nor false", ErrAttribute, text)
		}
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
	units, _ := a.text("units")
	cal, _ := a.text("calendar")
	u, ok, err := parseUnits(units, cal)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrAttribute, err)
	case ok:
		d.time, d.res = &u, 1e3
		unit := "us"
		if u.step < 1e3 {
			d.res, unit = 1, "ns"
		}
		d.out, err = dtype.NewDatetime(unit, 1)
	case d.scaled || len(d.missing) > 0 || d.unsigned != (m.Type.Kind() == dtype.Uint):
		d.out = dtype.NewFloat(64)
	}
	return d, err
}

// setMissing collects the missing values.
func (d *Decoder) setMissing(m *zarr.Meta, a attributes) error {
	own := false
	for _, name := range []string{"_FillValue", "missing_value"} {
		raw, ok := a.Get(name)
		if !ok || string(raw) == "null" {
			continue
		}
		own = own || name == "_FillValue"
		var list []json.RawMessage
		if json.Unmarshal(raw, &list) != nil {
			list = []json.RawMessage{raw}
		}
		for _, raw := range list {
			switch bits, err := d.bits(raw); {
			case err == nil:
				d.missing = append(d.missing, bits)
			case err != errBeyond: // no element is equal to one beyond the type
				return fmt.Errorf("%w: %s: %s is no %v", ErrAttribute, name, raw, d.in)
			}
		}
	}
	if !own && m.Version != zarr.V3 && m.Version != zarr.Draft3 && m.DimensionNames != nil && !m.NullFill && !bytes.Equal(m.Fill, m.Type.Zero()) {
		d.missing = append(d.missing, d.raw(m.Fill))
	}
	return nil
}

// errBeyond means that an integer is out of the range of the data type.
var errBeyond = errors.New("out of range")

// bits reads a value of an attribute in the form that raw gives.
func (d *Decoder) bits(text json.RawMessage) (uint64, error) {
	var s string
	if json.Unmarshal(text, &s) == nil && d.in.Kind() == dtype.Float {
		// xarray stores floats in v3 as base64 of a float64.
		if b, err := base64.StdEncoding.DecodeString(s); err == nil && len(b) == 8 {
			return binary.LittleEndian.Uint64(b), nil
		}
	} else if s != "" {
		text = json.RawMessage(s)
	}
	if d.in.Kind() == dtype.Float {
		elem, _, err := d.in.ParseFillV2(text)
		if err != nil {
			return 0, err
		}
		return d.raw(elem), nil
	}
	width := 8 * d.in.Size()
	mask := uint64(math.MaxUint64) >> (64 - width)
	if n, err := strconv.ParseUint(string(text), 10, 64); err == nil {
		if n > mask {
			return 0, errBeyond
		}
		return n, nil
	}
	n, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil {
		f, err := strconv.ParseFloat(string(text), 64)
		if err != nil || f != math.Trunc(f) {
			return 0, ErrAttribute
		}
		if f < -1<<63 || f >= 1<<63 {
			return 0, errBeyond
		}
		n = int64(f)
	}
	// The value may be signed or unsigned.
	if n < math.MinInt64>>(64-width) || n > 0 && uint64(n) > mask {
		return 0, errBeyond
	}
	return uint64(n) & mask, nil
}

// raw is an element as its bits: those of a float64 for floats.
func (d *Decoder) raw(elem []byte) uint64 {
	var b [8]byte
	copy(b[:], elem)
	bits := binary.LittleEndian.Uint64(b[:])
	if d.in.Kind() == dtype.Float {
		return math.Float64bits(d.in.FloatValue(bits))
	}
	return bits
}

// Type is the data type of decoded elements: that of the array if there is
// nothing to decode, else float64 or datetime64 in us or ns.
func (d *Decoder) Type() dtype.Type { return d.out }

// Calendar is the name of the calendar of decoded times, "" for other values.
// Only counts of standard and proleptic_gregorian are those of numpy.
func (d *Decoder) Calendar() string {
	if d.time == nil {
		return ""
	}
	return d.time.calendar.name
}

// Append decodes packed elements of the array's type and appends them to dst as
// elements of [Decoder.Type], in memory layout. Times that do not fit are
// errors.
func (d *Decoder) Append(dst, src []byte) ([]byte, error) {
	if d.out.Equal(d.in) {
		return append(dst, src...), nil
	}
	for size := d.in.Size(); len(src) >= size; src = src[size:] {
		bits, ok := d.one(src[:size])
		if !ok {
			return dst, fmt.Errorf("%w: units: the time %s does not fit datetime64", ErrAttribute, d.plain(src[:size]))
		}
		dst = binary.LittleEndian.AppendUint64(dst, bits)
	}
	return dst, nil
}

func (d *Decoder) plain(elem []byte) []byte {
	text, _ := d.in.AppendJSON(nil, elem) // of the right length
	return text
}

// one decodes one element.
func (d *Decoder) one(elem []byte) (uint64, bool) {
	raw := d.raw(elem)
	gone := d.isMissing(raw) || d.time != nil && d.in.Kind() == dtype.Int && d.signed(raw) == NaT && !d.unsigned
	switch {
	case gone && d.time != nil:
		return 1 << 63, true
	case gone:
		return math.Float64bits(math.NaN()), true
	case d.time != nil && !d.scaled && d.in.Kind() != dtype.Float && (!d.unsigned || raw < 1<<63):
		c, ok := d.time.count(d.signed(raw), d.res)
		return uint64(c), ok
	}
	f := math.Float64frombits(raw)
	switch {
	case d.in.Kind() == dtype.Float:
	case d.unsigned:
		f = float64(raw)
	default:
		f = float64(d.signed(raw))
	}
	f = f*d.scale + d.offset
	if d.time == nil {
		return math.Float64bits(f), true
	}
	if math.IsNaN(f) {
		return 1 << 63, true
	}
	c, ok := d.time.fractional(f, d.res)
	return uint64(c), ok
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
		if m == raw || d.in.Kind() == dtype.Float && same(math.Float64frombits(m), math.Float64frombits(raw)) {
			return true
		}
	}
	return false
}

// same counts every NaN as one value.
func same(a, b float64) bool { return a == b || a != a && b != b }

// AppendText appends a decoded element for people: times in their calendar,
// without a fraction that is zero; anything else as JSON.
func (d *Decoder) AppendText(dst, elem []byte) ([]byte, error) {
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
type attributes struct{ zarr.Attributes }

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
