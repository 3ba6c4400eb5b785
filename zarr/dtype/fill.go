package dtype

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
	"unicode/utf8"
)

// ErrValue means that a fill value is not one of its data type.
var ErrValue = errors.New("dtype: bad value")

func badValue(format string, args ...any) error {
	return &reason{ErrValue, fmt.Sprintf(format, args...)}
}

// ParseFillV3 parses the fill_value of Zarr v3 metadata and returns one element
// in memory layout (for a variable-length type its bytes), which the caller
// owns. raw must be valid JSON, but for a bare NaN, Infinity or -Infinity,
// which counts as the string. Numbers are rounded to the nearest float, but a
// number beyond the largest, like an integer outside the range, is refused.
//
// The bytes of a struct may be base64, as in the older data type "structured";
// they are read as little-endian. If IsBase64 is true and the bytes codec of the
// array is big-endian, the caller must call [Type.Swap].
//
// Zarr v3, Data types, Permitted fill values, and the registered extensions.
// Errors are ErrValue.
func (t Type) ParseFillV3(raw json.RawMessage) ([]byte, error) {
	raw = bytes.TrimSpace(raw)
	switch t.kind {
	case String, Bytes:
		return t.variableV2(raw)
	case Invalid, Ragged, JSON, subarray:
		return nil, fmt.Errorf("fill value of %s: %w", t, ErrNoForm)
	}
	elem := make([]byte, t.size)
	if err := t.fillV3(elem, raw); err != nil {
		return nil, err
	}
	return elem, nil
}

// ReadFillV3 is [Type.ParseFillV3] for stored documents. It also takes other forms
// that zarr-python 3 takes: an integer written as 7.0, numbers in strings such as
// "7", and zero for false. Other numbers are no bool, although zarr-python takes them
// for true: the specification and other readers refuse them.
func (t Type) ReadFillV3(raw json.RawMessage) ([]byte, error) {
	raw = bytes.TrimSpace(raw)
	switch t.kind {
	case Bool:
		if isNumber(raw) {
			digits, _, _ := bytes.Cut(bytes.ToLower(raw), []byte{'e'})
			if !bytes.ContainsAny(digits, "123456789") {
				raw = json.RawMessage("false")
			}
		}
	case Int, Uint:
		raw = integral(unquoted(raw))
	case Float:
		raw = unquoted(raw)
	}
	return t.ParseFillV3(raw)
}

// IsBase64 reports whether a v3 fill value gives the elements of a Struct as
// base64 of their bytes.
func (t Type) IsBase64(fill json.RawMessage) bool {
	fill = bytes.TrimSpace(fill)
	return t.kind == Struct && len(fill) > 0 && fill[0] == '"'
}

func (t Type) fillV3(elem []byte, raw json.RawMessage) error {
	switch t.kind {
	case Bool:
		switch string(raw) {
		case "true":
			elem[0] = 1
		case "false":
		default:
			return badValue("neither true nor false")
		}
		return nil
	case Int, Uint:
		return t.parseInt(elem, raw)
	case Float:
		return t.parseFloat(elem, raw)
	case Complex:
		return t.parseComplex(elem, raw)
	case Datetime, Timedelta:
		return parseTime(elem, raw)
	case FixedUTF32:
		return parseUTF32(elem, raw)
	case Raw, FixedBytes:
		p, err := parseBytes(raw)
		if err != nil {
			return err
		}
		return t.setBytes(elem, p)
	case Struct:
		return t.parseStructFill(elem, raw)
	}
	return fmt.Errorf("fill value of %s: %w", t, ErrNoForm)
}

// setBytes puts p into elem, padding a type that may be shorter.
func (t Type) setBytes(elem, p []byte) error {
	if len(p) > t.size || len(p) < t.size && t.kind != FixedBytes {
		return badValue("%d bytes for an element of %d", len(p), t.size)
	}
	copy(elem, p)
	return nil
}

func (t Type) parseInt(elem []byte, raw []byte) error {
	if !isNumber(raw) {
		return badValue("not an integer")
	}
	var v uint64
	var err error
	if t.kind == Int {
		var n int64
		n, err = strconv.ParseInt(string(raw), 10, int(t.bits))
		v = uint64(n)
	} else {
		v, err = strconv.ParseUint(string(raw), 10, int(t.bits))
		if string(raw) == "-0" {
			v, err = 0, nil
		}
	}
	switch {
	case bytes.ContainsAny(raw, ".eE"):
		return badValue("%s is not an integer", clip(string(raw)))
	case err != nil:
		return badValue("%s is outside the range of %s", clip(string(raw)), t)
	}
	storeUint(elem, v)
	return nil
}

func parseTime(elem, raw []byte) error {
	if string(raw) == `"NaT"` {
		storeUint(elem, 1<<63)
		return nil
	}
	return NewInt(64).parseInt(elem, raw)
}

// parseFloat parses a number, "NaN", "Infinity", "-Infinity" or "0x…".
func (t Type) parseFloat(elem, raw []byte) error {
	if s, ok := asString(raw); ok {
		return t.floatString(elem, s)
	}
	if n := bareNumber(raw); n > 0 && n == len(raw) {
		return t.floatString(elem, string(raw))
	}
	if !isNumber(raw) {
		return badValue("not a number")
	}
	v, err := t.roundFloat(string(raw))
	if err != nil {
		return badValue("%s: %v in %s", clip(string(raw)), err, t)
	}
	storeUint(elem, v)
	return nil
}

// roundFloat returns the bits of the number nearest to the decimal s.
func (t Type) roundFloat(s string) (uint64, error) {
	switch t.bits {
	case 64:
		v, err := strconv.ParseFloat(s, 64)
		if err != nil {
			return 0, errRange
		}
		return math.Float64bits(v), nil
	case 32:
		v, err := strconv.ParseFloat(s, 32)
		if err != nil {
			return 0, errRange
		}
		return uint64(math.Float32bits(float32(v))), nil
	}
	v, err := parseOdd(s)
	if err != nil {
		return 0, err
	}
	return t.floatFormat().encode(v)
}

func (t Type) floatString(elem []byte, s string) error {
	var v uint64
	ok := true
	switch s {
	case "NaN":
		v, ok = t.floatFormat().nan()
	case "Infinity":
		v, ok = t.floatFormat().inf(1)
	case "-Infinity":
		v, ok = t.floatFormat().inf(-1)
	default:
		digits, hex := strings.CutPrefix(s, "0x")
		n, err := strconv.ParseUint(digits, 16, 64)
		if !hex || err != nil || len(digits) != 2*t.size {
			return badValue("%q is neither a number nor %d hexadecimal digits", clip(s), 2*t.size)
		}
		v, ok = n, t.bits == 64 || n < 1<<t.bits
	}
	if !ok {
		return badValue("%s has no %s", t, clip(s))
	}
	storeUint(elem, v)
	return nil
}

func (t Type) parseComplex(elem, raw []byte) error {
	pair, ok := asListNaN(raw)
	if !ok || len(pair) != 2 {
		return badValue("not a pair of numbers")
	}
	p := t.part()
	for i, r := range pair {
		if err := p.parseFloat(elem[i*p.size:(i+1)*p.size], r); err != nil {
			return err
		}
	}
	return nil
}

// asListNaN is asList for short lists that may hold a bare NaN or infinity.
func asListNaN(raw []byte) ([]json.RawMessage, bool) {
	if l, ok := asList(raw); ok {
		return l, true
	}
	if len(raw) < 2 || len(raw) > 2*maxLiteral || raw[0] != '[' || raw[len(raw)-1] != ']' {
		return nil, false
	}
	var l []json.RawMessage
	for _, p := range bytes.Split(raw[1:len(raw)-1], []byte{','}) {
		p = bytes.TrimSpace(p)
		if bareNumber(p) != len(p) && !json.Valid(p) {
			return nil, false
		}
		l = append(l, p)
	}
	return l, true
}

func parseUTF32(elem, raw []byte) error {
	s, ok := asString(raw)
	if !ok {
		return badValue("not a string")
	}
	if n := utf8.RuneCountInString(s); n > len(elem)/4 {
		return badValue("%d code points for an element of %d", n, len(elem)/4)
	}
	i := 0
	for _, r := range s {
		binary.LittleEndian.PutUint32(elem[i:], uint32(r))
		i += 4
	}
	return nil
}

// parseBytes parses base64 or a list of numbers up to 255.
func parseBytes(raw []byte) ([]byte, error) {
	if s, ok := asString(raw); ok {
		p, err := base64.StdEncoding.Strict().DecodeString(s)
		if err != nil {
			return nil, badValue("not base64")
		}
		return p, nil
	}
	list, ok := asList(raw)
	if !ok {
		return nil, badValue("neither base64 nor a list of bytes")
	}
	p := make([]byte, len(list))
	for i, r := range list {
		n, err := strconv.ParseUint(string(r), 10, 8)
		if err != nil {
			return nil, badValue("element %d is not a byte", i)
		}
		p[i] = byte(n)
	}
	return p, nil
}

func (t Type) parseStructFill(elem, raw []byte) error {
	if t.IsBase64(raw) {
		p, err := parseBytes(raw)
		if err != nil {
			return err
		}
		return t.setBytes(elem, p)
	}
	obj, ok := asObject(raw)
	if !ok {
		return badValue("not an object of fields")
	}
	for _, f := range t.fields {
		v, ok := obj[f.Name]
		if !ok {
			return badValue("field %q is missing", clip(f.Name))
		}
		if err := f.Type.fillV3(elem[f.Offset:f.Offset+f.Type.size], v); err != nil {
			return fmt.Errorf("field %q: %w", clip(f.Name), err)
		}
	}
	if len(obj) != len(t.fields) {
		return badValue("%d members for %d fields", len(obj), len(t.fields))
	}
	return nil
}

// PrintFillV3 prints one element in memory layout as a v3 fill_value, such
// that ParseFillV3 gives back the same bytes: floats in their shortest form,
// NaNs other than the canonical one in hexadecimal. It fails with ErrNoForm
// for types without a v3 form and with ErrValue for bytes that are no element.
func (t Type) PrintFillV3(elem []byte) (json.RawMessage, error) {
	if err := t.checkElem(elem); err != nil {
		return nil, err
	}
	switch t.kind {
	case String:
		return AppendString(nil, string(elem)), nil
	case Bytes:
		return appendBase64([]byte{'"'}, elem), nil
	}
	return t.appendFillV3(nil, elem)
}

func (t Type) appendFillV3(dst, elem []byte) ([]byte, error) {
	switch t.kind {
	case Bool, Int, Uint:
		return t.appendValue(dst, elem), nil
	case Float, Complex:
		return t.appendExact(dst, elem), nil
	case Datetime, Timedelta:
		if loadInt(elem) == math.MinInt64 {
			return append(dst, `"NaT"`...), nil
		}
		return t.appendValue(dst, elem), nil
	case FixedUTF32:
		return appendUTF32(dst, elem), nil
	case FixedBytes:
		return appendBase64(append(dst, '"'), trimZeros(elem)), nil
	case Raw:
		if t.alias != "" {
			return appendBase64(append(dst, '"'), elem), nil
		}
		for i, b := range elem {
			c := byte(',')
			if i == 0 {
				c = '['
			}
			dst = strconv.AppendUint(append(dst, c), uint64(b), 10)
		}
		return append(dst, ']'), nil
	case Struct:
		for i, f := range t.fields {
			c := byte(',')
			if i == 0 {
				c = '{'
			}
			dst = append(AppendString(append(dst, c), f.Name), ':')
			var err error
			if dst, err = f.Type.appendFillV3(dst, elem[f.Offset:f.Offset+f.Type.size]); err != nil {
				return nil, err
			}
		}
		return append(dst, '}'), nil
	}
	return nil, fmt.Errorf("fill value of %s: %w", t, ErrNoForm)
}

// appendExact appends a Float or Complex so that every bit of it comes back.
func (t Type) appendExact(dst, elem []byte) []byte {
	if t.kind == Float {
		return t.appendFloatValue(dst, elem, true)
	}
	p := t.part()
	dst = p.appendFloatValue(append(dst, '['), elem[:p.size], true)
	dst = p.appendFloatValue(append(dst, ','), elem[p.size:], true)
	return append(dst, ']')
}

// checkElem checks that elem is an element of t: its length, and that its bytes
// are a valid value.
func (t Type) checkElem(elem []byte) error {
	switch t.kind {
	case Invalid:
		return badValue("no data type")
	case String:
		if !utf8.Valid(elem) {
			return badValue("text is not UTF-8")
		}
		return nil
	case JSON:
		if !validJSON(elem) {
			return badValue("text is not JSON")
		}
		return nil
	case Ragged:
		if len(elem)%t.elem.size != 0 {
			return badValue("%d bytes are not whole elements of %s", len(elem), t.elem)
		}
		for ; len(elem) > 0; elem = elem[t.elem.size:] {
			if err := t.elem.checkElem(elem[:t.elem.size]); err != nil {
				return err
			}
		}
		return nil
	case Bytes:
		return nil
	}
	if len(elem) != t.size {
		return badValue("%d bytes are not an element of %s", len(elem), t)
	}
	return t.checkFixed(elem)
}

func (t Type) checkFixed(elem []byte) error {
	ok := true
	switch t.kind {
	case Bool:
		ok = elem[0] <= 1
	case Int:
		s := 64 - t.bits
		ok = loadInt(elem) == int64(loadUint(elem)<<s)>>s
	case Uint:
		ok = t.bits == 64 || loadUint(elem) < 1<<t.bits
	case Float:
		ok = t.bits == 64 || loadUint(elem) < 1<<t.bits
	case Complex:
		p := t.part()
		ok = p.checkFixed(elem[:p.size]) == nil && p.checkFixed(elem[p.size:]) == nil
	case FixedUTF32:
		for ; len(elem) > 0; elem = elem[4:] {
			ok = ok && utf8.ValidRune(rune(binary.LittleEndian.Uint32(elem)))
		}
	case Struct:
		for _, f := range t.fields {
			if err := f.Type.checkFixed(elem[f.Offset : f.Offset+f.Type.size]); err != nil {
				return err
			}
		}
	case subarray:
		for ; len(elem) > 0; elem = elem[t.elem.size:] {
			if err := t.elem.checkFixed(elem[:t.elem.size]); err != nil {
				return err
			}
		}
	}
	if !ok {
		return badValue("bytes are not a value of %s", t)
	}
	return nil
}
