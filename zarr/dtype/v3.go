package dtype

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// Named returns the type of a plain v3 name: the core types, r8, r16, … and the
// registered extensions without configuration. Other names that metadata has
// used for them are accepted too.
func Named(name string) (Type, bool) {
	t, ok := named(name)
	if ok && t.v3Name() != name {
		t.alias = name
	}
	return t, ok
}

// Names returns the v3 names of all data types, as PrintV3 prints them, in the
// order of the kinds: for tables and tests. The names of raw bytes, r8, r16 and
// so on, are not among them.
func Names() []string {
	var list []string
	add := func(t Type) { list = append(list, t.v3Name()) }
	add(NewBool())
	for _, bits := range []int{2, 4, 8, 16, 32, 64} {
		add(NewInt(bits))
	}
	for _, bits := range []int{2, 4, 8, 16, 32, 64} {
		add(NewUint(bits))
	}
	var complexes []string
	for _, f := range floats {
		t := Type{kind: Float, bits: uint16(f.bits), format: f.name}
		add(t)
		t.kind, t.bits = Complex, 2*t.bits
		complexes = append(complexes, t.v3Name())
	}
	list = append(list, complexes...)
	for k := FixedBytes; k <= Bytes; k++ {
		if name := (Type{kind: k}).v3Name(); name != "" {
			list = append(list, name)
		}
	}
	return list
}

func named(name string) (Type, bool) {
	switch name {
	case "bool":
		return NewBool(), true
	case "string":
		return NewString(), true
	case "bytes", "variable_length_bytes", "binary":
		return NewBytes(), true
	case "complex_float16":
		return NewComplex(32), true
	case "complex64", "complex_float32":
		return NewComplex(64), true
	case "complex128", "complex_float64":
		return NewComplex(128), true
	}
	if bits, ok := strings.CutPrefix(name, "int"); ok {
		return width(bits, NewInt, "2", "4", "8", "16", "32", "64")
	}
	if bits, ok := strings.CutPrefix(name, "uint"); ok {
		return width(bits, NewUint, "2", "4", "8", "16", "32", "64")
	}
	if t, ok := width(strings.TrimPrefix(name, "float"), NewFloat, "16", "32", "64"); ok && name[0] == 'f' {
		return t, true
	}
	if bits, ok := strings.CutPrefix(name, "r"); ok {
		n, err := strconv.ParseInt(bits, 10, 31)
		if err != nil || n%8 != 0 || strconv.FormatInt(n, 10) != bits {
			return Type{}, false
		}
		t, err := NewRaw(int(n / 8))
		return t, err == nil
	}
	if format, ok := strings.CutPrefix(name, "complex_"); ok {
		t, err := NewNarrowComplex(format)
		return t, err == nil
	}
	t, err := NewNarrowFloat(name)
	return t, err == nil
}

// width calls make with the number in bits, if it is listed.
func width(bits string, make func(int) Type, listed ...string) (Type, bool) {
	for _, s := range listed {
		if s == bits {
			n, _ := strconv.Atoi(s)
			return make(n), true
		}
	}
	return Type{}, false
}

// v3Name returns the name that PrintV3 prints for t, "" if v3 has no such type.
func (t Type) v3Name() string {
	switch t.kind {
	case Bool:
		return "bool"
	case Int:
		return "int" + strconv.Itoa(t.Bits())
	case Uint:
		return "uint" + strconv.Itoa(t.Bits())
	case Float:
		if t.format != "" {
			return t.format
		}
		return "float" + strconv.Itoa(t.Bits())
	case Complex:
		switch {
		case t.format != "":
			return "complex_" + t.format
		case t.bits == 32:
			return "complex_float16"
		}
		return "complex" + strconv.Itoa(t.Bits())
	case Raw:
		return "r" + strconv.Itoa(8*t.size)
	case FixedBytes:
		return "null_terminated_bytes"
	case FixedUTF32:
		return "fixed_length_utf32"
	case Datetime:
		return "numpy.datetime64"
	case Timedelta:
		return "numpy.timedelta64"
	case Struct:
		return "struct"
	case String:
		return "string"
	case Bytes:
		return "bytes"
	}
	return ""
}

// ParseV3 parses the data_type of Zarr v3 metadata: a name, or an object with
// a name and a configuration. raw must be valid JSON. The byte order of the
// result is None. Errors are ErrType.
func ParseV3(raw json.RawMessage) (Type, error) { return parseV3(raw, 0) }

func parseV3(raw json.RawMessage, depth int) (Type, error) {
	if depth > maxDepth {
		return Type{}, badType("nested deeper than %d", maxDepth)
	}
	if name, ok := asString(raw); ok {
		t, ok := Named(name)
		if !ok {
			return Type{}, badType("unknown data type %q", clip(name))
		}
		return t, nil
	}
	obj, ok := asObject(raw)
	if !ok {
		return Type{}, badType("neither a name nor an object")
	}
	name, ok := asString(obj["name"])
	if !ok {
		return Type{}, badType("name is not a string")
	}
	for k, v := range obj {
		switch k {
		case "name", "configuration":
		case "must_understand":
			if string(v) != "true" {
				return Type{}, badType("must_understand can only be true for a data type")
			}
		default:
			return Type{}, badType("%s: unknown member %q", clip(name), clip(k))
		}
	}
	config := map[string]json.RawMessage{}
	if c, ok := obj["configuration"]; ok {
		if config, ok = asObject(c); !ok {
			return Type{}, badType("%s: configuration is not an object", clip(name))
		}
	}
	t, known, err := configured(name, config, depth)
	if err != nil {
		return Type{}, fmt.Errorf("%s: %w", clip(name), err)
	}
	for k := range config {
		if !slices.Contains(known, k) {
			return Type{}, badType("%s: unknown configuration %q", clip(name), clip(k))
		}
	}
	return t, nil
}

// configured makes the type of a name with its configuration, and returns the
// known members.
func configured(name string, config map[string]json.RawMessage, depth int) (t Type, known []string, err error) {
	switch name {
	case "raw_bytes", "null_terminated_bytes", "fixed_length_utf32":
		n, err := asInt(config["length_bytes"])
		if err != nil {
			return Type{}, nil, badType("length_bytes: %v", err)
		}
		if n < 1 || n > maxSize {
			return Type{}, nil, badType("length_bytes: %d is not between 1 and %d", n, maxSize)
		}
		switch name {
		case "raw_bytes":
			t, err = NewRaw(int(n))
			t.alias = name
		case "null_terminated_bytes":
			t, err = NewFixedBytes(int(n))
		default:
			if n%4 != 0 {
				return Type{}, nil, badType("length_bytes: %d is not a multiple of 4", n)
			}
			t, err = NewFixedUTF32(int(n / 4))
		}
		return t, []string{"length_bytes"}, err
	case "numpy.datetime64", "numpy.timedelta64":
		unit, ok := asString(config["unit"])
		if !ok {
			return Type{}, nil, badType("unit is not a string")
		}
		scale, err := asInt(config["scale_factor"])
		if err != nil {
			return Type{}, nil, badType("scale_factor: %v", err)
		}
		if name == "numpy.datetime64" {
			t, err = NewDatetime(unit, scale)
		} else {
			t, err = NewTimedelta(unit, scale)
		}
		return t, []string{"unit", "scale_factor"}, err
	case "struct", "structured":
		t, err = parseStruct(config["fields"], depth)
		if err == nil && name != "struct" {
			t.alias = name
		}
		return t, []string{"fields"}, err
	}
	t, ok := Named(name)
	if !ok {
		return Type{}, nil, badType("unknown data type")
	}
	return t, nil, nil
}

// parseStruct parses the fields of a struct: objects, or the pairs of the
// older name "structured".
func parseStruct(raw json.RawMessage, depth int) (Type, error) {
	list, ok := asList(raw)
	if !ok {
		return Type{}, badType("fields is not a list")
	}
	if len(list) > maxWords {
		return Type{}, badType("more than %d fields", maxWords)
	}
	fields := make([]Field, len(list))
	for i, item := range list {
		var name, typ json.RawMessage
		if pair, ok := asList(item); ok && len(pair) == 2 {
			name, typ = pair[0], pair[1]
		} else if obj, ok := asObject(item); ok && len(obj) == 2 {
			name, typ = obj["name"], obj["data_type"]
		}
		fields[i].Name, ok = asString(name)
		if !ok || typ == nil {
			return Type{}, badType("fields[%d] has not just a name and a data_type", i)
		}
		var err error
		if fields[i].Type, err = parseV3(typ, depth+1); err != nil {
			return Type{}, fmt.Errorf("fields[%d]: %w", i, err)
		}
	}
	return NewStruct(fields)
}

// Name returns the v3 name of t in its metadata, such as "bytes" or
// "variable_length_bytes", "struct" or its predecessor "structured"; "" if v3
// has no name for it.
func (t Type) Name() string {
	if t.alias == "" || t.kind == Datetime || t.kind == Timedelta {
		return t.v3Name()
	}
	return t.alias
}

// PrintV3 prints t as the data_type of v3 metadata, in the form that it was
// parsed from if the type has several. Byte orders are not part of a v3 type.
// Subarray, Ragged and JSON have no v3 form: ErrNoForm.
func (t Type) PrintV3() (json.RawMessage, error) {
	return t.appendV3(nil)
}

func (t Type) appendV3(dst []byte) ([]byte, error) {
	name := t.v3Name()
	if name == "" {
		return nil, fmt.Errorf("%s: %w", t, ErrNoForm)
	}
	switch t.kind {
	case Raw, FixedBytes, FixedUTF32:
		if t.kind != Raw || t.alias == "raw_bytes" {
			return fmt.Appendf(dst, `{"name":"%s","configuration":{"length_bytes":%d}}`, t.Name(), t.size), nil
		}
	case Datetime, Timedelta:
		unit := t.unit
		if t.alias != "" {
			unit = t.alias
		}
		return fmt.Appendf(dst, `{"name":"%s","configuration":{"unit":"%s","scale_factor":%d}}`, name, unit, t.scale), nil
	case Struct:
		// The older name must not be written: it is replaced.
		dst = append(dst, `{"name":"struct","configuration":{"fields":[`...)
		for i, f := range t.fields {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(AppendString(append(dst, `{"name":`...), f.Name), `,"data_type":`...)
			var err error
			if dst, err = f.Type.appendV3(dst); err != nil {
				return nil, fmt.Errorf("field %q: %w", clip(f.Name), err)
			}
			dst = append(dst, '}')
		}
		return append(dst, "]}}"...), nil
	}
	return AppendString(dst, t.Name()), nil
}

// String returns a short readable form: the v3 name where there is one, as in
// "int32", "numpy.datetime64[10s]", "struct{x: float32, n: int8}".
func (t Type) String() string {
	switch t.kind {
	case Invalid:
		return "invalid"
	case FixedBytes, FixedUTF32:
		return fmt.Sprintf("%s[%d]", t.v3Name(), t.size)
	case Datetime, Timedelta:
		if t.scale == 1 {
			return fmt.Sprintf("%s[%s]", t.v3Name(), t.unit)
		}
		return fmt.Sprintf("%s[%d%s]", t.v3Name(), t.scale, t.unit)
	case Struct:
		var b strings.Builder
		for i, f := range t.fields {
			if i > 0 {
				b.WriteString(", ")
			}
			name := f.Name
			if strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '_' }) {
				name = strconv.Quote(name) // so that no name looks like two
			}
			fmt.Fprintf(&b, "%s: %s", name, f.Type)
		}
		return "struct{" + b.String() + "}"
	case subarray:
		return fmt.Sprintf("%s%v", t.elem, t.shape)
	case Ragged:
		return fmt.Sprintf("ragged<%s>", t.elem)
	case JSON:
		return "json"
	}
	return t.v3Name()
}
