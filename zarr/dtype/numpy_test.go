package dtype

import (
	"encoding/json"
	"errors"
	"testing"
)

// What numpy.dtype makes of each spelling.
func TestParseNumPy(t *testing.T) {
	for in, want := range map[string]string{
		"float64": "<f8", "f8": "<f8", "=f8": "<f8", "<f8": "<f8", ">f8": ">f8", "d": "<f8", ">d": ">f8", "double": "<f8", "float": "<f8",
		"float32": "<f4", "f4": "<f4", "single": "<f4", "float16": "<f2", "half": "<f2", "e": "<f2",
		"int32": "<i4", "i4": "<i4", "|i4": "<i4", ">i4": ">i4", "i": "<i4", "int": "<i8", "int64": "<i8", "q": "<i8", "i8": "<i8",
		"int8": "|i1", "i1": "|i1", "b": "|i1", "<i1": "|i1", "u1": "|u1", "uint8": "|u1", "B": "|u1", ">u2": ">u2", "uint16": "<u2", "u8": "<u8",
		"bool": "|b1", "?": "|b1", "b1": "|b1", "complex64": "<c8", "M8[ns]": "<M8[ns]", "datetime64[s]": "<M8[s]", "timedelta64[D]": "<m8[D]",
	} {
		raw, _ := json.Marshal(in)
		typ, err := ParseNumPy(raw)
		if err != nil {
			t.Errorf("%s: %v", in, err)
			continue
		}
		if got, err := typ.PrintV2(); err != nil || string(got) != `"`+want+`"` {
			t.Errorf("%s is printed as %s, %v, want %s", in, got, err, want)
		}
	}
	for _, in := range []string{"", "<", "float63", "f3", ">float64", "i16", "datetime64", "<<f8", "object", "f8 "} {
		raw, _ := json.Marshal(in)
		if typ, err := ParseNumPy(raw); !errors.Is(err, ErrType) {
			t.Errorf("%q: %v, %v", in, typ, err)
		}
		// The data type of an array has one spelling.
		if typ, err := ParseV2(json.RawMessage(`"float64"`), Type{}); err == nil {
			t.Errorf("ParseV2 takes float64: %v", typ)
		}
	}
}
