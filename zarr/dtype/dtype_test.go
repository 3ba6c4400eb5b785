package dtype

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
)

func mustV2(t testing.TB, s string) Type {
	t.Helper()
	typ, err := ParseV2(json.RawMessage(s), Type{})
	if err != nil {
		t.Fatalf("ParseV2(%s): %v", s, err)
	}
	return typ
}

func mustV3(t testing.TB, s string) Type {
	t.Helper()
	typ, err := ParseV3(json.RawMessage(s))
	if err != nil {
		t.Fatalf("ParseV3(%s): %v", s, err)
	}
	return typ
}

// Forms that other software writes; print is "" where it is the input.
var v3Forms = []struct {
	in, print, str string
	kind           Kind
	bits, size     int
}{
	{`"bool"`, "", "bool", Bool, 8, 1},
	{`"int2"`, "", "int2", Int, 2, 1},
	{`"int4"`, "", "int4", Int, 4, 1},
	{`"int8"`, "", "int8", Int, 8, 1},
	{`"int16"`, "", "int16", Int, 16, 2},
	{`"int32"`, "", "int32", Int, 32, 4},
	{`"int64"`, "", "int64", Int, 64, 8},
	{`"uint2"`, "", "uint2", Uint, 2, 1},
	{`"uint4"`, "", "uint4", Uint, 4, 1},
	{`"uint8"`, "", "uint8", Uint, 8, 1},
	{`"uint16"`, "", "uint16", Uint, 16, 2},
	{`"uint32"`, "", "uint32", Uint, 32, 4},
	{`"uint64"`, "", "uint64", Uint, 64, 8},
	{`"float16"`, "", "float16", Float, 16, 2},
	{`"float32"`, "", "float32", Float, 32, 4},
	{`"float64"`, "", "float64", Float, 64, 8},
	{`"bfloat16"`, "", "bfloat16", Float, 16, 2},
	{`"float8_e3m4"`, "", "float8_e3m4", Float, 8, 1},
	{`"float8_e4m3"`, "", "float8_e4m3", Float, 8, 1},
	{`"float8_e4m3fn"`, "", "float8_e4m3fn", Float, 8, 1},
	{`"float8_e4m3b11fnuz"`, "", "float8_e4m3b11fnuz", Float, 8, 1},
	{`"float8_e4m3fnuz"`, "", "float8_e4m3fnuz", Float, 8, 1},
	{`"float8_e5m2"`, "", "float8_e5m2", Float, 8, 1},
	{`"float8_e5m2fnuz"`, "", "float8_e5m2fnuz", Float, 8, 1},
	{`"float8_e8m0fnu"`, "", "float8_e8m0fnu", Float, 8, 1},
	{`"float6_e2m3fn"`, "", "float6_e2m3fn", Float, 6, 1},
	{`"float6_e3m2fn"`, "", "float6_e3m2fn", Float, 6, 1},
	{`"float4_e2m1fn"`, "", "float4_e2m1fn", Float, 4, 1},
	{`"complex64"`, "", "complex64", Complex, 64, 8},
	{`"complex128"`, "", "complex128", Complex, 128, 16},
	{`"complex_float16"`, "", "complex_float16", Complex, 32, 4},
	{`"complex_float32"`, "", "complex64", Complex, 64, 8},
	{`"complex_float64"`, "", "complex128", Complex, 128, 16},
	{`"complex_bfloat16"`, "", "complex_bfloat16", Complex, 32, 4},
	{`"complex_float8_e4m3"`, "", "complex_float8_e4m3", Complex, 16, 2},
	{`"complex_float6_e2m3fn"`, "", "complex_float6_e2m3fn", Complex, 12, 2},
	{`"r8"`, "", "r8", Raw, 0, 1},
	{`"r128"`, "", "r128", Raw, 0, 16},
	{`{"name":"raw_bytes","configuration":{"length_bytes":3}}`, "", "r24", Raw, 0, 3},
	{`{"name":"null_terminated_bytes","configuration":{"length_bytes":6}}`, "", "null_terminated_bytes[6]", FixedBytes, 0, 6},
	{`{"name":"fixed_length_utf32","configuration":{"length_bytes":20}}`, "", "fixed_length_utf32[20]", FixedUTF32, 0, 20},
	{`{"name":"numpy.datetime64","configuration":{"unit":"s","scale_factor":10}}`, "", "numpy.datetime64[10s]", Datetime, 64, 8},
	{`{"name":"numpy.timedelta64","configuration":{"unit":"D","scale_factor":1}}`, "", "numpy.timedelta64[D]", Timedelta, 64, 8},
	{`{"name":"numpy.datetime64","configuration":{"unit":"μs","scale_factor":1}}`, "", "numpy.datetime64[us]", Datetime, 64, 8},
	{`{"name":"numpy.datetime64","configuration":{"unit":"generic","scale_factor":1}}`, "", "numpy.datetime64[generic]", Datetime, 64, 8},
	{`"string"`, "", "string", String, 0, 0},
	{`"bytes"`, "", "bytes", Bytes, 0, 0},
	{`"variable_length_bytes"`, "", "bytes", Bytes, 0, 0},
	{`{"name": "float64"}`, `"float64"`, "float64", Float, 64, 8},
	{`{"name": "bytes", "configuration": {}}`, `"bytes"`, "bytes", Bytes, 0, 0},
	{`{"name": "int8", "must_understand": true}`, `"int8"`, "int8", Int, 8, 1},
	{`{"name":"struct","configuration":{"fields":[{"name":"a","data_type":"int32"},{"name":"b","data_type":{"name":"null_terminated_bytes","configuration":{"length_bytes":3}}}]}}`,
		"", "struct{a: int32, b: null_terminated_bytes[3]}", Struct, 0, 7},
	{`{"name":"structured","configuration":{"fields":[["x","float32"],["y","float32"]]}}`,
		`{"name":"struct","configuration":{"fields":[{"name":"x","data_type":"float32"},{"name":"y","data_type":"float32"}]}}`,
		"struct{x: float32, y: float32}", Struct, 0, 8},
}

func TestV3Forms(t *testing.T) {
	for _, c := range v3Forms {
		typ := mustV3(t, c.in)
		if typ.Kind() != c.kind || typ.Bits() != c.bits || typ.Size() != c.size || typ.String() != c.str {
			t.Errorf("%s: kind %d bits %d size %d %s", c.in, typ.Kind(), typ.Bits(), typ.Size(), typ)
		}
		if typ.Variable() != (c.size == 0) || typ.Order() != None {
			t.Errorf("%s: variable %v, order %d", c.in, typ.Variable(), typ.Order())
		}
		want := c.print
		if want == "" {
			want = c.in
		}
		got, err := typ.PrintV3()
		if err != nil || string(got) != want {
			t.Errorf("PrintV3(%s) = %s, %v", c.in, got, err)
		}
		if !mustV3(t, string(got)).Equal(typ) {
			t.Errorf("%s: printed form is another type", c.in)
		}
	}
}

func TestV3Refused(t *testing.T) {
	deep := strings.Repeat(`{"name":"struct","configuration":{"fields":[{"name":"a","data_type":`, 40) + `"int8"` + strings.Repeat(`}]}}`, 40)
	for _, in := range []string{
		`"int3"`, `"int128"`, `"float"`, `"float128"`, `"complex"`, `"complex32"`, `"r"`, `"r0"`, `"r7"`, `"r08"`, `"r+8"`, `"r1000000000"`,
		`"int"`, `"uint"`, `"loat32"`, `"32"`, `"Float32"`, `""`, `"<i4"`, `1`, `null`, `[]`, `true`, `{}`, `{"name":1}`,
		`"raw_bytes"`, `"struct"`, `"numpy.datetime64"`, `"complex_"`, `"complex_int8"`,
		`{"name":"int8","configuration":{"x":1}}`, `{"name":"int8","configuration":null}`, `{"name":"int8","extra":1}`,
		`{"name":"int8","must_understand":false}`, `{"configuration":{}}`,
		`{"name":"raw_bytes","configuration":{}}`, `{"name":"raw_bytes","configuration":{"length_bytes":0}}`,
		`{"name":"raw_bytes","configuration":{"length_bytes":-1}}`, `{"name":"raw_bytes","configuration":{"length_bytes":1.5}}`,
		`{"name":"raw_bytes","configuration":{"length_bytes":99999999999999999999}}`, `{"name":"raw_bytes","configuration":{"length_bytes":16777217}}`,
		`{"name":"raw_bytes","configuration":{"length_bytes":1,"h_bytes":1}}`,
		`{"name":"fixed_length_utf32","configuration":{"length_bytes":6}}`,
		`{"name":"numpy.datetime64","configuration":{"unit":"s"}}`, `{"name":"numpy.datetime64","configuration":{"unit":"sec","scale_factor":1}}`,
		`{"name":"numpy.datetime64","configuration":{"unit":"s","scale_factor":0}}`, `{"name":"numpy.datetime64","configuration":{"unit":"s","scale_factor":2147483648}}`,
		`{"name":"struct"}`, `{"name":"struct","configuration":{"fields":[]}}`, `{"name":"struct","configuration":{"fields":{}}}`,
		`{"name":"struct","configuration":{"fields":[{"name":"","data_type":"int8"}]}}`,
		`{"name":"struct","configuration":{"fields":[{"name":"a"}]}}`,
		`{"name":"struct","configuration":{"fields":[{"name":"a","data_type":"int8","x":1}]}}`,
		`{"name":"struct","configuration":{"fields":[["a","int8","int8"]]}}`,
		`{"name":"struct","configuration":{"fields":[{"name":"a","data_type":"string"}]}}`,
		`{"name":"struct","configuration":{"fields":[{"name":"a","data_type":"int8"},{"name":"a","data_type":"int8"}]}}`,
		deep,
	} {
		if typ, err := ParseV3(json.RawMessage(in)); !errors.Is(err, ErrType) {
			t.Errorf("ParseV3(%.100s) = %v, %v", in, typ, err)
		}
	}
}

var v2Forms = []struct {
	in, print, str string
	kind           Kind
	size           int
	order          Order
}{
	{`"|b1"`, "", "bool", Bool, 1, None},
	{`"|i1"`, "", "int8", Int, 1, None},
	{`"<i1"`, `"|i1"`, "int8", Int, 1, None},
	{`">u1"`, `"|u1"`, "uint8", Uint, 1, None},
	{`"<i2"`, "", "int16", Int, 2, Little},
	{`">i4"`, "", "int32", Int, 4, Big},
	{`"<i8"`, "", "int64", Int, 8, Little},
	{`">u2"`, "", "uint16", Uint, 2, Big},
	{`"<u4"`, "", "uint32", Uint, 4, Little},
	{`">u8"`, "", "uint64", Uint, 8, Big},
	{`"<f2"`, "", "float16", Float, 2, Little},
	{`">f4"`, "", "float32", Float, 4, Big},
	{`"<f8"`, "", "float64", Float, 8, Little},
	{`">c8"`, "", "complex64", Complex, 8, Big},
	{`"<c16"`, "", "complex128", Complex, 16, Little},
	{`"<M8[ns]"`, "", "numpy.datetime64[ns]", Datetime, 8, Little},
	{`">M8[10s]"`, "", "numpy.datetime64[10s]", Datetime, 8, Big},
	{`"<m8[Y]"`, "", "numpy.timedelta64[Y]", Timedelta, 8, Little},
	{`"<m8[μs]"`, `"<m8[us]"`, "numpy.timedelta64[us]", Timedelta, 8, Little},
	{`"|S5"`, "", "null_terminated_bytes[5]", FixedBytes, 5, None},
	{`"<U5"`, "", "fixed_length_utf32[20]", FixedUTF32, 20, Little},
	{`">U1"`, "", "fixed_length_utf32[4]", FixedUTF32, 4, Big},
	{`"|V16"`, "", "r128", Raw, 16, None},
	{`"bfloat16"`, "", "bfloat16", Float, 2, Little},
	{`"float8_e5m2"`, "", "float8_e5m2", Float, 1, None},
	{`"int4"`, "", "int4", Int, 1, None},
	{`[["r", "|u1"], ["g", "<i4"]]`, `[["r","|u1"],["g","<i4"]]`, "struct{r: uint8, g: int32}", Struct, 5, None},
	{`[["x","<f4"],["z",">f4",[2,3]]]`, "", "struct{x: float32, z: float32[2 3]}", Struct, 28, None},
	{`[["x: int8, y","<f4"]]`, "", `struct{"x: int8, y": float32}`, Struct, 4, None},
	{`[["x","<f4",3]]`, `[["x","<f4",[3]]]`, "struct{x: float32[3]}", Struct, 12, None},
	{`[["x","<f4",[]]]`, `[["x","<f4"]]`, "struct{x: float32}", Struct, 4, None},
	{`[["","|V3"],["n",[["p","<f8",[2]],["q","|S2"]]]]`, `[["f0","|V3"],["n",[["p","<f8",[2]],["q","|S2"]]]]`, "struct{f0: r24, n: struct{p: float64[2], q: null_terminated_bytes[2]}}", Struct, 21, None},
}

func TestV2Forms(t *testing.T) {
	for _, c := range v2Forms {
		typ := mustV2(t, c.in)
		if typ.Kind() != c.kind || typ.Size() != c.size || typ.Order() != c.order || typ.String() != c.str {
			t.Errorf("%s: kind %d size %d order %d %s", c.in, typ.Kind(), typ.Size(), typ.Order(), typ)
		}
		want := c.print
		if want == "" {
			want = c.in
		}
		got, err := typ.PrintV2()
		if err != nil || string(got) != want {
			t.Errorf("PrintV2(%s) = %s, %v", c.in, got, err)
		}
		if !mustV2(t, string(got)).Equal(typ) {
			t.Errorf("%s: printed form is another type", c.in)
		}
	}
}

func TestV2Refused(t *testing.T) {
	for _, in := range []string{
		`"i4"`, `"=i4"`, `"|i4"`, `"<z9"`, `"<i3"`, `"<i16"`, `"<f16"`, `"<c32"`, `"<c4"`, `"<b2"`, `"<i"`, `"<"`, `""`, `"<i04"`, `"<i+4"`, `"<i4 "`,
		`"|O"`, `"|S0"`, `"<U0"`, `"|S2147483647"`, `"<U2147483647"`, `"|S99999999999"`, `"|V-1"`,
		`"<M8"`, `"<M8[]"`, `"<M8[generic]"`, `"<M4[s]"`, `"<M8[0s]"`, `"<M8[s/2]"`, `"<M8[9999999999s]"`, `"|M8[s]"`, `"<i4[s]"`, `"<M8[s"`,
		`[]`, `[["a"]]`, `[["a","<i4"],["a","<i4"]]`, `[["a","|O"]]`, `[["a","<i4",[1],1]]`, `[["a","<i4",[0]]]`, `[["a","<i4",[-1]]]`, `[["a","<i4",[1.5]]]`,
		`[["a","<i4",[65536,65536,65536,65536]]]`, `[["a","|S1000",[1000000]]]`, `[[["t","a"],"<i4"]]`, `[["a",["<i4",[2]]]]`, `["<i4"]`,
		`[["a",[["x","|u1"],["y","<i2"]],[1000000]]]`,
		`1`, `null`, `{}`, `{"name":"x"}`,
		strings.Repeat(`[["a",`, 40) + `"<i4"` + strings.Repeat(`]]`, 40),
	} {
		if typ, err := ParseV2(json.RawMessage(in), Type{}); !errors.Is(err, ErrType) {
			t.Errorf("ParseV2(%.100s) = %v, %v", in, typ, err)
		}
	}
}

func TestObjects(t *testing.T) {
	for in, want := range map[string]string{
		`{"id":"vlen-utf8"}`:                              "string",
		`{"id":"vlen-bytes"}`:                             "bytes",
		`{"id":"json2","encoding":"utf-8"}`:               "json",
		`{"id":"msgpack2"}`:                               "json",
		`{"id":"vlen-array","dtype":"<i4"}`:               "ragged<int32>",
		`{"id":"categorize","dtype":"|O","labels":["a"]}`: "string",
		`{"id":"pickle","protocol":5}`:                    "",
		`{"id":"vlen-array","dtype":"|O"}`:                "",
		`{"id":"vlen-array"}`:                             "",
		`{"id":"delta","dtype":"<i4"}`:                    "",
		`{}`:                                              "",
		`[]`:                                              "",
		`{"id":"vlen-array","dtype":[["a","<i4"],["b","|b1"]]}`: "ragged<struct{a: int32, b: bool}>",
	} {
		obj, ok := ObjectV2(json.RawMessage(in))
		if ok != (want != "") || ok && obj.String() != want {
			t.Errorf("ObjectV2(%s) = %s, %v", in, obj, ok)
			continue
		}
		typ, err := ParseV2(json.RawMessage(`"|O"`), obj)
		if ok && (err != nil || !typ.Equal(obj)) || !ok && !errors.Is(err, ErrType) {
			t.Errorf("%s: ParseV2 = %s, %v", in, typ, err)
		}
		if !ok {
			continue
		}
		if p, err := typ.PrintV2(); err != nil || string(p) != `"|O"` {
			t.Errorf("%s: PrintV2 = %s, %v", in, p, err)
		}
	}
	if p, err := mustObject(t, `{"id":"json2"}`).PrintV3(); !errors.Is(err, ErrNoForm) {
		t.Errorf("json as v3: %s, %v", p, err)
	}
}

func mustObject(t testing.TB, filter string) Type {
	t.Helper()
	typ, ok := ObjectV2(json.RawMessage(filter))
	if !ok {
		t.Fatalf("ObjectV2(%s)", filter)
	}
	return typ
}

func TestNoForm(t *testing.T) {
	for _, in := range []string{`"complex_float16"`, `"complex_bfloat16"`, `{"name":"numpy.datetime64","configuration":{"unit":"generic","scale_factor":1}}`} {
		if p, err := mustV3(t, in).PrintV2(); !errors.Is(err, ErrNoForm) {
			t.Errorf("%s as v2: %s, %v", in, p, err)
		}
	}
	if p, err := mustV2(t, `[["a","<i4",[2]]]`).PrintV3(); !errors.Is(err, ErrNoForm) {
		t.Errorf("subarray as v3: %s, %v", p, err)
	}
}

func TestWords(t *testing.T) {
	for _, c := range []struct {
		in   string
		want []Word
	}{
		{`"|u1"`, nil},
		{`"|S9"`, nil},
		{`"|V4"`, nil},
		{`">i4"`, []Word{{0, 4, 1, Big}}},
		{`"<c16"`, []Word{{0, 8, 2, Little}}},
		{`">U3"`, []Word{{0, 4, 3, Big}}},
		{`"<M8[s]"`, []Word{{0, 8, 1, Little}}},
		{`[["a","|u1"],["b",">i2"],["c",">i2"],["d","<i2"],["e","|S3"],["f","<f8"]]`,
			[]Word{{1, 2, 2, Big}, {5, 2, 1, Little}, {10, 8, 1, Little}}},
		{`[["x","<f4"],["z","<f4",[2,2]]]`, []Word{{0, 4, 5, Little}}},
		{`[["n",[["p","|u1"],["q",">u2"]],[2]],["r",">u2"]]`, []Word{{1, 2, 1, Big}, {4, 2, 2, Big}}},
		{`[["n",[["p",">u2"]],[3]]]`, []Word{{0, 2, 3, Big}}},
		{`[["n","|u1",[1000000]]]`, nil},
	} {
		if got := mustV2(t, c.in).Words(); !reflect.DeepEqual(got, c.want) {
			t.Errorf("Words(%s) = %v, want %v", c.in, got, c.want)
		}
	}
}

func TestSwapAndOrder(t *testing.T) {
	typ := mustV2(t, `[["a",">i2"],["b","<c8"],["c","|S1"]]`)
	e := []byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}
	typ.Swap(e)
	if want := []byte{2, 1, 6, 5, 4, 3, 10, 9, 8, 7, 11}; !bytes.Equal(e, want) {
		t.Errorf("Swap: %v", e)
	}
	plain := typ.WithOrder(None)
	if plain.Equal(typ) || !plain.WithOrder(Little).Equal(mustV2(t, `[["a","<i2"],["b","<c8"],["c","|S1"]]`)) {
		t.Error("WithOrder")
	}
	if !mustV2(t, `">i4"`).WithOrder(None).Equal(mustV3(t, `"int32"`)) || mustV2(t, `"|u1"`).WithOrder(Big).Order() != None {
		t.Error("WithOrder of a scalar")
	}
	if typ.Fields()[0].Type.Order() != Big {
		t.Error("WithOrder changed its receiver")
	}
}

func TestEqual(t *testing.T) {
	all := []string{`"<i4"`, `">i4"`, `"<u4"`, `"<f4"`, `"bfloat16"`, `"<f2"`, `"|S4"`, `"|V4"`, `"<U1"`, `"<M8[s]"`, `"<M8[2s]"`, `"<M8[ms]"`, `"<m8[s]"`,
		`[["a","<i4"]]`, `[["b","<i4"]]`, `[["a",">i4"]]`, `[["a","<i4",[1]]]`, `[["a","<i4",[2]]]`, `[["a","<i4",[1,2]]]`}
	for i, a := range all {
		for j, b := range all {
			if mustV2(t, a).Equal(mustV2(t, b)) != (i == j) {
				t.Errorf("Equal(%s, %s) = %v", a, b, i != j)
			}
		}
	}
	for _, p := range [][2]string{{`"bytes"`, `"variable_length_bytes"`}, {`"r16"`, `{"name":"raw_bytes","configuration":{"length_bytes":2}}`}, {`"complex64"`, `"complex_float32"`}} {
		if !mustV3(t, p[0]).Equal(mustV3(t, p[1])) {
			t.Errorf("%s and %s are the same type", p[0], p[1])
		}
	}
}

func TestNumPy(t *testing.T) {
	for in, want := range map[string]string{
		`">i4"`:      `'<i4'`,
		`"|b1"`:      `'|b1'`,
		`"<c16"`:     `'<c16'`,
		`">U3"`:      `'<U3'`,
		`"|S3"`:      `'|S3'`,
		`"<M8[2s]"`:  `'<M8[2s]'`,
		`"bfloat16"`: `'|V2'`,
		`"int4"`:     `'|i1'`,
		`[["a'\\é",">i2"],["n",[["p","<f8",[2]],["q","|V2"]],[3,1]]]`: `[('a\'\\\u00e9', '<i2'), ('n', [('p', '<f8', (2,)), ('q', '|V2')], (3,1,))]`,
	} {
		if got, ok := mustV2(t, in).NumPy(); !ok || got != want {
			t.Errorf("NumPy(%s) = %s, %v, want %s", in, got, ok, want)
		}
	}
	for _, in := range []string{`"string"`, `"bytes"`} {
		if got, ok := mustV3(t, in).NumPy(); ok {
			t.Errorf("NumPy(%s) = %s", in, got)
		}
	}
	if got, ok := mustV3(t, `"complex_float16"`).NumPy(); !ok || got != `'|V4'` {
		t.Errorf("NumPy(complex_float16) = %s", got)
	}
}

func TestOf(t *testing.T) {
	type celsius float32
	type id [2]int
	check := func(got Type, ok bool, want string) {
		t.Helper()
		if ok != (want != "") || ok && got.String() != want {
			t.Errorf("Of = %s, %v, want %s", got, ok, want)
		}
	}
	for _, c := range []struct {
		of   func() (Type, bool)
		want string
	}{
		{Of[bool], "bool"}, {Of[int8], "int8"}, {Of[uint64], "uint64"}, {Of[celsius], "float32"}, {Of[complex64], "complex64"},
		{Of[complex128], "complex128"}, {Of[string], "string"}, {Of[[]byte], "bytes"}, {Of[int], ""}, {Of[id], ""}, {Of[[]int8], ""}, {Of[any], ""},
	} {
		got, ok := c.of()
		check(got, ok, c.want)
	}
}

func TestConstructorsPanicOnBugs(t *testing.T) {
	for _, f := range []func(){func() { NewInt(3) }, func() { NewUint(128) }, func() { NewFloat(8) }, func() { NewComplex(16) }} {
		func() {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			f()
		}()
	}
}

// TestNames: every name is the one that its type prints, whether it stands alone
// or needs a configuration.
func TestNames(t *testing.T) {
	configs := map[string]string{
		"null_terminated_bytes": `{"length_bytes":3}`, "fixed_length_utf32": `{"length_bytes":8}`,
		"numpy.datetime64": `{"unit":"s","scale_factor":1}`, "numpy.timedelta64": `{"unit":"ns","scale_factor":10}`,
		"struct": `{"fields":[{"name":"a","data_type":"int8"}]}`,
	}
	seen := map[string]bool{}
	for _, name := range Names() {
		raw := `"` + name + `"`
		if c := configs[name]; c != "" {
			raw = `{"name":"` + name + `","configuration":` + c + `}`
		}
		typ, err := ParseV3(json.RawMessage(raw))
		if err != nil {
			t.Errorf("%s: %v", raw, err)
			continue
		}
		if got, err := typ.PrintV3(); err != nil || string(got) != raw || seen[name] {
			t.Errorf("%s prints as %s (%v), seen before: %v", raw, got, err, seen[name])
		}
		seen[name] = true
	}
	for _, name := range []string{"bool", "uint64", "float16", "float64", "bfloat16", "float4_e2m1fn", "complex_float16", "complex64", "complex128", "complex_float8_e5m2", "string", "bytes"} {
		if !seen[name] {
			t.Errorf("%s is missing", name)
		}
	}
}
