package dtype

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// ParseV2 parses the dtype of Zarr v2 or v1 metadata: a numpy type string such
// as "<i4", or a list of fields. object is the meaning of the object data type
// "|O", see [ObjectV2]; if it is the zero Type, "|O" is refused. raw must be
// valid JSON. Errors are ErrType.
//
// Narrow floats and integers go by their plain names ("bfloat16", "int4"), as
// numpy has no type strings for them.
func ParseV2(raw json.RawMessage, object Type) (Type, error) {
	if s, ok := asString(raw); ok && (s == "|O" || s == "|O8") {
		if object.kind == Invalid {
			return Type{}, badType("%q needs a filter that encodes objects", s)
		}
		return object, nil
	}
	return parseV2(raw, 0)
}

// ObjectV2 returns the meaning of the object data type for elements encoded by
// the given v2 filter, and whether the filter encodes objects at all. Filters
// that run code to decode, such as pickle, are refused.
func ObjectV2(filter json.RawMessage) (Type, bool) {
	obj, _ := asObject(filter)
	switch id, _ := asString(obj["id"]); id {
	case "vlen-utf8", "categorize", "fill_hdf_strings":
		return NewString(), true
	case "vlen-bytes":
		return NewBytes(), true
	case "json", "json2", "msgpack", "msgpack2":
		return NewJSON(), true
	case "vlen-array":
		elem, err := ParseNumPy(obj["dtype"])
		if err != nil {
			return Type{}, false
		}
		t, err := NewRagged(elem)
		return t, err == nil
	}
	return Type{}, false
}

func parseV2(raw json.RawMessage, depth int) (Type, error) {
	if depth > maxDepth {
		return Type{}, badType("nested deeper than %d", maxDepth)
	}
	if s, ok := asString(raw); ok {
		return parseTypestr(s)
	}
	list, ok := asList(raw)
	if !ok {
		return Type{}, badType("neither a type string nor a list of fields")
	}
	if len(list) > maxWords {
		return Type{}, badType("more than %d fields", maxWords)
	}
	fields := make([]Field, len(list))
	for i, item := range list {
		f, err := parseFieldV2(item, i, depth)
		if err != nil {
			return Type{}, fmt.Errorf("field %d: %w", i, err)
		}
		fields[i] = f
	}
	return NewStruct(fields)
}

// parseFieldV2 parses [name, dtype] or [name, dtype, shape].
func parseFieldV2(raw json.RawMessage, i, depth int) (Field, error) {
	item, ok := asList(raw)
	if !ok || len(item) < 2 || len(item) > 3 {
		return Field{}, badType("not [name, dtype] or [name, dtype, shape]")
	}
	name, ok := asString(item[0])
	if !ok {
		return Field{}, badType("name is not a string")
	}
	if name == "" {
		name = "f" + strconv.Itoa(i) // numpy's rule; padding of aligned structs has no name
	}
	t, err := parseV2(item[1], depth+1)
	if err != nil || len(item) == 2 {
		return Field{Name: name, Type: t}, err
	}
	dims, ok := asList(item[2])
	if !ok {
		dims = []json.RawMessage{item[2]} // a bare length
	}
	if len(dims) == 0 {
		return Field{Name: name, Type: t}, nil
	}
	shape := make([]int, min(len(dims), maxDepth+1))
	for j := range shape {
		n, err := asInt(dims[j])
		if err != nil || n < 1 || n > maxSize {
			return Field{}, badType("shape[%d] is not between 1 and %d", j, maxSize)
		}
		shape[j] = int(n)
	}
	t, err = NewSubarray(t, shape)
	return Field{Name: name, Type: t}, err
}

// parseTypestr parses a numpy type string: byte order, kind, size, unit.
func parseTypestr(s string) (Type, error) {
	if t, ok := plainV2(s); ok {
		return t, nil
	}
	if len(s) < 3 {
		return Type{}, badType("type string %q", s)
	}
	var order Order
	switch s[0] {
	case '<':
		order = Little
	case '>':
		order = Big
	case '|':
	default:
		return Type{}, badType("type string %q does not begin with a byte order", clip(s))
	}
	digits, unit := s[2:], ""
	if i := strings.IndexByte(digits, '['); i >= 0 && strings.HasSuffix(digits, "]") {
		digits, unit = digits[:i], digits[i+1:len(digits)-1]
	}
	n, err := strconv.ParseInt(digits, 10, 32)
	if err != nil || strconv.FormatInt(n, 10) != digits {
		return Type{}, badType("type string %q: size is not a number", clip(s))
	}
	t, err := typeV2(s[1], int(n), unit)
	if err != nil {
		return Type{}, fmt.Errorf("type string %q: %w", clip(s), err)
	}
	if t.hasOrder() {
		if order == None {
			return Type{}, badType("type string %q has no byte order", clip(s))
		}
		t.order = order
	}
	return t, nil
}

// typeV2 makes the type of a numpy kind character, a size in the units of that
// kind, and the text in brackets.
func typeV2(kind byte, n int, unit string) (Type, error) {
	switch kind {
	case 'm', 'M':
		if n != 8 || unit == "" {
			return Type{}, badType("a time has 8 bytes and a unit")
		}
		return timeV2(kind, unit)
	}
	switch {
	case unit != "":
	case kind == 'b' && n == 1:
		return NewBool(), nil
	case kind == 'i' && (n == 1 || n == 2 || n == 4 || n == 8):
		return NewInt(8 * n), nil
	case kind == 'u' && (n == 1 || n == 2 || n == 4 || n == 8):
		return NewUint(8 * n), nil
	case kind == 'f' && (n == 2 || n == 4 || n == 8):
		return NewFloat(8 * n), nil
	case kind == 'c' && (n == 8 || n == 16):
		return NewComplex(8 * n), nil
	case kind == 'S' || kind == 'a':
		return NewFixedBytes(n)
	case kind == 'U':
		return NewFixedUTF32(n)
	case kind == 'V':
		return NewRaw(n)
	}
	return Type{}, badType("not supported")
}

// timeV2 parses a numpy unit, which may begin with a count: "10s".
func timeV2(kind byte, unit string) (Type, error) {
	i := 0
	for i < len(unit) && unit[i] >= '0' && unit[i] <= '9' {
		i++
	}
	scale := int64(1)
	if i > 0 {
		var err error
		if scale, err = strconv.ParseInt(unit[:i], 10, 64); err != nil || unit[0] == '0' {
			return Type{}, badType("count of units %q", clip(unit))
		}
	}
	if unit[i:] == "generic" {
		return Type{}, badType("a time needs a unit")
	}
	if kind == 'M' {
		return NewDatetime(unit[i:], scale)
	}
	return NewTimedelta(unit[i:], scale)
}

// plainV2 returns the types that v2 metadata names because numpy itself does
// not have them.
func plainV2(name string) (Type, bool) {
	switch name {
	case "int2", "int4", "uint2", "uint4":
		return Named(name)
	}
	t, err := NewNarrowFloat(name)
	if t.hasOrder() {
		t.order = Little
	}
	return t, err == nil
}

// PrintV2 prints t as the dtype of v2 metadata; variable-length types become
// "|O". A byte order of None is printed as little-endian. ErrNoForm if numpy
// has no such type: narrow complex numbers, times without a unit, a Subarray
// that is not a field.
func (t Type) PrintV2() (json.RawMessage, error) {
	if t.Variable() {
		return json.RawMessage(`"|O"`), nil
	}
	return t.appendV2(nil)
}

func (t Type) appendV2(dst []byte) ([]byte, error) {
	if t.kind == Struct {
		dst = append(dst, '[')
		for i, f := range t.fields {
			if i > 0 {
				dst = append(dst, ',')
			}
			var err error
			if dst, err = f.appendV2(dst); err != nil {
				return nil, fmt.Errorf("field %q: %w", clip(f.Name), err)
			}
		}
		return append(dst, ']'), nil
	}
	s, err := t.typestr()
	if err != nil {
		return nil, err
	}
	return AppendString(dst, s), nil
}

// flat returns the element type and the whole shape of nested subarrays, which
// numpy joins to one.
func (t Type) flat() (Type, []int) {
	var shape []int
	for t.kind == subarray {
		shape = append(shape, t.shape...)
		t = *t.elem
	}
	return t, shape
}

func (f Field) appendV2(dst []byte) ([]byte, error) {
	t, shape := f.Type.flat()
	dst = append(AppendString(append(dst, '['), f.Name), ',')
	dst, err := t.appendV2(dst)
	if err != nil {
		return nil, err
	}
	for i, n := range shape {
		sep := ","
		if i == 0 {
			sep = ",["
		}
		dst = strconv.AppendInt(append(dst, sep...), int64(n), 10)
	}
	if shape != nil {
		dst = append(dst, ']')
	}
	return append(dst, ']'), nil
}

// typestr returns the numpy type string of a type that is not composed of other
// types.
func (t Type) typestr() (string, error) {
	c, n := byte(0), t.size
	switch t.kind {
	case Bool:
		c = 'b'
	case Int, Uint:
		if t.bits < 8 {
			return t.v3Name(), nil
		}
		c = 'i'
		if t.kind == Uint {
			c = 'u'
		}
	case Float:
		if t.format != "" {
			if t.order == Big {
				break
			}
			return t.format, nil
		}
		c = 'f'
	case Complex:
		if t.format == "" && t.bits >= 64 {
			c = 'c'
		}
	case FixedBytes:
		c = 'S'
	case FixedUTF32:
		c, n = 'U', n/4
	case Raw:
		c = 'V'
	case Datetime, Timedelta:
		if t.unit == "generic" {
			break
		}
		c = 'M'
		if t.kind == Timedelta {
			c = 'm'
		}
	}
	if c == 0 {
		return "", fmt.Errorf("%s: %w", t, ErrNoForm)
	}
	s := t.orderMark() + string(c) + strconv.Itoa(n)
	switch {
	case t.unit == "":
	case t.scale == 1:
		s += "[" + t.unit + "]"
	default:
		s += "[" + strconv.FormatInt(t.scale, 10) + t.unit + "]"
	}
	return s, nil
}

func (t Type) orderMark() string {
	switch {
	case !t.hasOrder():
		return "|"
	case t.order == Big:
		return ">"
	}
	return "<"
}

// NumPy returns the descr of a .npy header for elements in memory layout, as a
// Python literal: '<i4' with its quotes, or a list of tuples. Types that numpy
// has no name for are given as opaque bytes ('|V2' for bfloat16) or as the
// integer that they are kept in; ok is false for variable-length types.
func (t Type) NumPy() (descr string, ok bool) {
	if t.Variable() || t.kind == Invalid {
		return "", false
	}
	var b strings.Builder
	t.WithOrder(None).writeNumPy(&b)
	return b.String(), true
}

func (t Type) writeNumPy(b *strings.Builder) {
	switch t.kind {
	case Struct:
		b.WriteByte('[')
		for i, f := range t.fields {
			if i > 0 {
				b.WriteString(", ")
			}
			elem, shape := f.Type.flat()
			b.WriteByte('(')
			b.WriteString(pythonString(f.Name))
			b.WriteString(", ")
			elem.writeNumPy(b)
			for i, n := range shape {
				if i == 0 {
					b.WriteString(", (")
				}
				fmt.Fprintf(b, "%d,", n)
			}
			if shape != nil {
				b.WriteByte(')')
			}
			b.WriteByte(')')
		}
		b.WriteByte(']')
		return
	case Int, Uint:
		t.bits = uint16(8 * t.size)
	case Datetime, Timedelta:
		if t.unit == "generic" {
			b.WriteString(map[Kind]string{Datetime: "'<M8'", Timedelta: "'<m8'"}[t.kind])
			return
		}
	}
	s, err := t.typestr()
	if err != nil || t.format != "" {
		s = "|V" + strconv.Itoa(t.size)
	}
	b.WriteString("'" + s + "'")
}

// pythonString quotes s as a Python string literal of ASCII characters: the
// header of a .npy file is Latin-1 or UTF-8, by its version.
func pythonString(s string) string {
	var b strings.Builder
	b.WriteByte('\'')
	for _, r := range s {
		switch {
		case r == '\'' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r < ' ' || r == 0x7f:
			fmt.Fprintf(&b, `\x%02x`, r)
		case r > 0xffff:
			fmt.Fprintf(&b, `\U%08x`, r)
		case r > 0x7f:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('\'')
	return b.String()
}
