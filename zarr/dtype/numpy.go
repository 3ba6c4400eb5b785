package dtype

import (
	"encoding/json"
	"slices"
	"strings"
)

// ParseNumPy parses the dtype in the configuration of a numcodecs filter.
// Writers store any argument of numpy.dtype there: in addition to the forms of
// [ParseV2], a type string without a byte order ("f8", "=f8", "|i4"), a name
// ("float64", "datetime64[s]") or a character ("d"). Without a byte order the
// type is little-endian. raw must be valid JSON. Errors are ErrType.
func ParseNumPy(raw json.RawMessage) (Type, error) {
	t, err := parseV2(raw, 0)
	if s, ok := asString(raw); err != nil && ok {
		if t, ok := numpyName(s); ok {
			return t, nil
		}
	}
	return t, err
}

// numpyNames maps names and characters of numpy to type strings, with the sizes
// of C on 64-bit Unix systems.
var numpyNames = map[string][]string{
	"b1": {"?", "bool", "bool_"},
	"i1": {"b", "int8", "byte"},
	"i2": {"h", "int16", "short"},
	"i4": {"i", "int32", "intc"},
	"i8": {"l", "q", "p", "int64", "int", "int_", "long", "longlong", "intp"},
	"u1": {"B", "uint8", "ubyte"},
	"u2": {"H", "uint16", "ushort"},
	"u4": {"I", "uint32", "uintc"},
	"u8": {"L", "Q", "P", "uint64", "uint", "ulong", "ulonglong", "uintp"},
	"f2": {"e", "float16", "half"},
	"f4": {"f", "float32", "single"},
	"f8": {"d", "float64", "float", "double"},
	"c8": {"F", "complex64", "csingle"}, "c16": {"D", "complex128", "complex", "cdouble"},
}

// numpyName parses forms that parseTypestr does not accept.
func numpyName(s string) (Type, bool) {
	order, name := "<", s
	if s != "" && strings.IndexByte("<>=|", s[0]) >= 0 {
		if name = s[1:]; s[0] == '>' {
			order = ">"
		}
	}
	for short, names := range numpyNames {
		// A byte order goes with characters, and not with names.
		if i := slices.Index(names, name); i >= 0 && (name == s || len(name) == 1) {
			name = short
			break
		}
	}
	for long, kind := range map[string]string{"datetime64": "M8", "timedelta64": "m8"} {
		if unit, ok := strings.CutPrefix(name, long); ok && name == s {
			name = kind + unit
		}
	}
	t, err := parseTypestr(order + name)
	return t, err == nil
}
