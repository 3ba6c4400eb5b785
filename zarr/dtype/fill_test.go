package dtype

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"github.com/zarrdb/zarrdb/internal/must"
	"math"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"
)

// One row: type, fill_value, its element in hexadecimal, what is printed ("" is
// the input).
type fillRow struct{ typ, fill, elem, print string }

const structV3 = `{"name":"struct","configuration":{"fields":[{"name":"a","data_type":"int16"},{"name":"n","data_type":{"name":"struct","configuration":{"fields":[{"name":"x","data_type":"bool"},{"name":"y","data_type":"float32"}]}}}]}}`

var fillsV3 = []fillRow{
	{`"bool"`, `true`, "01", ""},
	{`"bool"`, `false`, "00", ""},
	{`"int8"`, `-128`, "80", ""},
	{`"int4"`, `-8`, "f8", ""},
	{`"uint2"`, `3`, "03", ""},
	{`"int64"`, `9223372036854775807`, "ffffffffffffff7f", ""},
	{`"int64"`, `-9223372036854775808`, "0000000000000080", ""},
	{`"int64"`, `9007199254740993`, "0100000000002000", ""},
	{`"uint64"`, `18446744073709551615`, "ffffffffffffffff", ""},
	{`"uint8"`, `-0`, "00", "0"},
	{`"float64"`, `7`, "0000000000001c40", "7.0"},
	{`"float64"`, `0.1`, "9a9999999999b93f", ""},
	{`"float64"`, `-0.0`, "0000000000000080", ""},
	{`"float64"`, `5e-324`, "0100000000000000", ""},
	{`"float64"`, `1e-400`, "0000000000000000", "0.0"},
	{`"float64"`, `"NaN"`, "000000000000f87f", ""},
	{`"float64"`, `NaN`, "000000000000f87f", `"NaN"`},
	{`"float64"`, `"0x7ff8000000000123"`, "230100000000f87f", ""},
	{`"float64"`, `"0x3ff0000000000000"`, "000000000000f03f", "1.0"},
	{`"float64"`, `"-Infinity"`, "000000000000f0ff", ""},
	{`"float32"`, `"0x7fc00001"`, "0100c07f", ""},
	{`"float32"`, `"0x7FC00001"`, "0100c07f", `"0x7fc00001"`},
	{`"float32"`, `"0xffc00000"`, "0000c0ff", ""},
	{`"float32"`, `0.10000000149011612`, "cdcccc3d", "0.1"},
	{`"float32"`, `9.969209968386869e+36`, "0000f07c", "9.96921e+36"},
	{`"float32"`, `16777217`, "0000804b", "16777216.0"},
	{`"float16"`, `"0x7e01"`, "017e", ""},
	{`"float16"`, `0.1`, "662e", ""},
	{`"float16"`, `65519.99`, "ff7b", "65500.0"},
	{`"float16"`, `6e-8`, "0100", "6e-08"},
	{`"float16"`, `-0.0`, "0080", ""},
	{`"bfloat16"`, `"NaN"`, "c07f", ""},
	{`"bfloat16"`, `3.140625`, "4940", "3.14"},
	{`"float8_e4m3fnuz"`, `"NaN"`, "80", ""},
	{`"float8_e4m3fnuz"`, `-0.0`, "00", "0.0"},
	{`"float8_e4m3fn"`, `448`, "7e", "450.0"},
	{`"float8_e8m0fnu"`, `1`, "7f", "1.0"},
	{`"float8_e8m0fnu"`, `"0xFF"`, "ff", `"NaN"`},
	{`"float4_e2m1fn"`, `-6`, "0f", "-6.0"},
	{`"float6_e3m2fn"`, `28`, "1f", "28.0"},
	{`"complex64"`, `["0x7fc00001", "Infinity"]`, "0100c07f0000807f", `["0x7fc00001","Infinity"]`},
	{`"complex128"`, `[-1.5, NaN]`, "000000000000f8bf000000000000f87f", `[-1.5,"NaN"]`},
	{`"complex_bfloat16"`, `[1, 2]`, "803f0040", "[1.0,2.0]"},
	{`"r24"`, `[1,2,255]`, "0102ff", ""},
	{`"r24"`, `"AQL/"`, "0102ff", "[1,2,255]"},
	{`{"name":"raw_bytes","configuration":{"length_bytes":3}}`, `"AQL/"`, "0102ff", ""},
	{`{"name":"null_terminated_bytes","configuration":{"length_bytes":6}}`, `"YWI="`, "616200000000", ""},
	{`{"name":"fixed_length_utf32","configuration":{"length_bytes":12}}`, `"né"`, "6e000000e900000000000000", ""},
	{`{"name":"fixed_length_utf32","configuration":{"length_bytes":12}}`, `"\ud83d\ude00\u0000\""`, "00f601000000000022000000", "\"😀\\u0000\\\"\""},
	{`{"name":"numpy.datetime64","configuration":{"unit":"s","scale_factor":1}}`, `"NaT"`, "0000000000000080", ""},
	{`{"name":"numpy.datetime64","configuration":{"unit":"s","scale_factor":1}}`, `-9223372036854775808`, "0000000000000080", `"NaT"`},
	{`{"name":"numpy.timedelta64","configuration":{"unit":"s","scale_factor":1}}`, `-5`, "fbffffffffffffff", ""},
	{`"string"`, `"a\n\u0007é"`, "610a07c3a9", `"a\n\u0007é"`},
	{`"string"`, `""`, "", ""},
	{`"bytes"`, `"AP8="`, "00ff", ""},
	{`"variable_length_bytes"`, `[0, 255]`, "00ff", `"AP8="`},
	{structV3, `{"a":3,"n":{"x":true,"y":2.5}}`, "03000100002040", ""},
	{structV3, `{"n":{"y":2.5,"x":true},"a":3}`, "03000100002040", `{"a":3,"n":{"x":true,"y":2.5}}`},
	{structV3, `"AwABAAAgQA=="`, "03000100002040", `{"a":3,"n":{"x":true,"y":2.5}}`},
}

var fillsV2 = []fillRow{
	{`"|b1"`, `true`, "01", ""},
	{`"|b1"`, `0`, "00", "false"},
	{`"|b1"`, `1`, "01", "true"},
	{`">i2"`, `-2`, "feff", ""},
	{`"<i4"`, `7.0`, "07000000", "7"},
	{`"<i4"`, `1e3`, "e8030000", "1000"},
	{`"<u8"`, `18446744073709551615`, "ffffffffffffffff", ""},
	{`">f8"`, `"NaN"`, "000000000000f87f", ""},
	{`">f8"`, `NaN`, "000000000000f87f", `"NaN"`},
	{`"<f4"`, `-Infinity`, "000080ff", `"-Infinity"`},
	{`"<f4"`, `0`, "00000000", "0.0"},
	{`"<f4"`, `-999.0`, "00c079c4", ""},
	{`"<c8"`, `["NaN","-Infinity"]`, "0000c07f000080ff", ""},
	{`"<c8"`, `[NaN, -Infinity]`, "0000c07f000080ff", `["NaN","-Infinity"]`},
	{`"<c8"`, `0`, "0000000000000000", "[0.0,0.0]"},
	{`"<c8"`, `1.5`, "0000c03f00000000", "[1.5,0.0]"},
	{`"|S5"`, `"enp6eno="`, "7a7a7a7a7a", ""},
	{`"|S5"`, `""`, "0000000000", `"AAAAAAA="`},
	{`"|S5"`, `0`, "0000000000", `"AAAAAAA="`},
	{`"|S5"`, `"YQBi"`, "6100620000", `"YQBiAAA="`},
	{`"|V5"`, `"QUJDREU="`, "4142434445", ""},
	{`"|V2"`, `0`, "0000", `"AAA="`},
	{`">U2"`, `"é"`, "e900000000000000", ""},
	{`"<U2"`, `0`, "0000000000000000", `""`},
	{`">i2"`, `"-1"`, "ffff", "-1"},
	{`"<u2"`, `"65535"`, "ffff", "65535"},
	{`"|u1"`, `"0"`, "00", "0"},
	{`"<i8"`, `"-9223372036854775808"`, "0000000000000080", "-9223372036854775808"},
	{`"|b1"`, `"0"`, "00", "false"},
	{`"|b1"`, `"1"`, "01", "true"},
	{`">f4"`, `"0.0"`, "00000000", "0.0"},
	{`"<f8"`, `"-1e3"`, "0000000000408fc0", "-1000.0"},
	{`"<c8"`, `"1.5"`, "0000c03f00000000", "[1.5,0.0]"},
	{`"<M8[s]"`, `-9223372036854775808`, "0000000000000080", ""},
	{`"<M8[s]"`, `"NaT"`, "0000000000000080", "-9223372036854775808"},
	{`"<m8[s]"`, `0`, "0000000000000000", ""},
	{`[["bar",[["baz","<f4"],["qux","<i4"]]],["foo",">u2"]]`, `"AADAfwAAAIAAAQ=="`, "0000c07f000000800100", ""},
	{`[["z",">i2",[2]],["b","|u1"]]`, `"AAEAAgM="`, "0100020003", ""},
	{`[["z",">i2",[2]],["b","|u1"]]`, `0`, "0000000000", `"AAAAAAA="`},
}

func (r fillRow) check(t *testing.T, typ Type, parse func(json.RawMessage) ([]byte, error), print func([]byte) (json.RawMessage, error)) {
	t.Helper()
	elem, err := parse(json.RawMessage(r.fill))
	if err != nil || hex.EncodeToString(elem) != r.elem {
		t.Errorf("%s fill %s: %x, %v, want %s", typ, r.fill, elem, err, r.elem)
		return
	}
	want := r.print
	if want == "" {
		want = r.fill
	}
	got, err := print(elem)
	if err != nil || string(got) != want {
		t.Errorf("%s element %x printed as %s, %v, want %s", typ, elem, got, err, want)
	}
	again, err := parse(got)
	if err != nil || !bytes.Equal(again, elem) {
		t.Errorf("%s: %s parses to %x, %v", typ, got, again, err)
	}
}

func fillV2(typ Type) func(json.RawMessage) ([]byte, error) {
	return func(raw json.RawMessage) ([]byte, error) {
		elem, null, err := typ.ParseFillV2(raw)
		if null {
			err = errors.New("null")
		}
		return elem, err
	}
}

func TestFillsV3(t *testing.T) {
	for _, r := range fillsV3 {
		typ := mustV3(t, r.typ)
		r.check(t, typ, typ.ParseFillV3, typ.PrintFillV3)
	}
}

func TestFillsV2(t *testing.T) {
	for _, r := range fillsV2 {
		typ := mustV2(t, r.typ)
		r.check(t, typ, fillV2(typ), typ.PrintFillV2)
	}
	for filter, rows := range map[string][]fillRow{
		`{"id":"vlen-utf8"}`:  {{"", `"n/a"`, "6e2f61", ""}, {"", `0`, "", `""`}},
		`{"id":"vlen-bytes"}`: {{"", `"AP8="`, "00ff", ""}, {"", `0`, "", `""`}},
		`{"id":"json2"}`: {{"", `0`, "30", ""}, {"", `{"a": [1, NaN, "x y\""]}`, hex.EncodeToString([]byte(`{"a":[1,NaN,"x y\""]}`)), `{"a":[1,NaN,"x y\""]}`},
			{"", `" a b"`, hex.EncodeToString([]byte(`" a b"`)), ""}},
		`{"id":"vlen-array","dtype":">i2"}`: {{"", `[1,-2]`, "0100feff", ""}, {"", `0`, "", "[]"}, {"", `[]`, "", ""}},
	} {
		typ := mustObject(t, filter)
		for _, r := range rows {
			r.check(t, typ, fillV2(typ), typ.PrintFillV2)
		}
	}
}

func TestFillV2Null(t *testing.T) {
	for _, in := range []string{`"<i4"`, `"|S3"`, `[["a","<i4"]]`, `"|b1"`} {
		typ := mustV2(t, in)
		if elem, null, err := typ.ParseFillV2(json.RawMessage("null")); err != nil || !null || !bytes.Equal(elem, typ.Zero()) {
			t.Errorf("%s: %x, %v, %v", in, elem, null, err)
		}
	}
	for _, in := range []string{`"<M8[ns]"`, `">m8[D]"`} {
		if elem, null, err := mustV2(t, in).ParseFillV2(json.RawMessage("null")); err != nil || !null || hex.EncodeToString(elem) != "0000000000000080" {
			t.Errorf("%s: %x, %v, %v", in, elem, null, err)
		}
	}
	typ := mustObject(t, `{"id":"json2"}`)
	if elem, null, err := typ.ParseFillV2(json.RawMessage("null")); err != nil || !null || string(elem) != "null" {
		t.Errorf("json: %s, %v, %v", elem, null, err)
	}
}

func TestFillV1(t *testing.T) {
	s := mustV2(t, `"|S5"`)
	if elem, null, err := s.ParseFillV1(json.RawMessage(`"ab"`)); err != nil || null || string(elem) != "ab\x00\x00\x00" {
		t.Errorf("%q, %v, %v", elem, null, err)
	}
	if p, err := s.PrintFillV1([]byte("ab\x00\x00\x00")); err != nil || string(p) != `"ab"` {
		t.Errorf("%s, %v", p, err)
	}
	if p, err := s.PrintFillV1([]byte("\xff\x00\x00\x00\x00")); !errors.Is(err, ErrNoForm) {
		t.Errorf("%s, %v", p, err)
	}
	if _, _, err := s.ParseFillV1(json.RawMessage(`"abcdef"`)); !errors.Is(err, ErrValue) {
		t.Error(err)
	}
	f := mustV2(t, `"<f8"`)
	if elem, _, err := f.ParseFillV1(json.RawMessage(`1.5`)); err != nil || loadUint(elem) != math.Float64bits(1.5) {
		t.Errorf("%x, %v", elem, err)
	}
	if p, err := mustV2(t, `"|V2"`).PrintFillV1([]byte{1, 0}); !errors.Is(err, ErrNoForm) {
		t.Errorf("%s, %v", p, err)
	}
}

func TestFillsRefused(t *testing.T) {
	for typ, fills := range map[string][]string{
		`"bool"`:            {`0`, `1`, `"true"`, `null`, `[]`},
		`"int8"`:            {`128`, `-129`, `1.0`, `1e1`, `"1"`, `true`, `null`, `NaN`, `[1]`, `1 2`},
		`"uint8"`:           {`256`, `-1`, `1.5`},
		`"int4"`:            {`8`, `-9`},
		`"uint2"`:           {`4`},
		`"uint64"`:          {`18446744073709551616`},
		`"int64"`:           {`-9223372036854775809`, `1e400`},
		`"float64"`:         {`1e400`, `"nan"`, `"inf"`, `"Inf"`, `"+Infinity"`, `"0x7ff80000000000"`, `"0x7ff80000000000000"`, `"7ff8000000000000"`, `"0xzzzzzzzzzzzzzzzz"`, `"0x-ff8000000000000"`, `null`, `true`, `"1.0"`, `NaN1`, `""`, ``},
		`"float32"`:         {`3.5e38`, `"0x7fc0000000000000"`, `"0x7fc0"`},
		`"float16"`:         {`65520`, `-1e10`, `"0x7e0"`},
		`"bfloat16"`:        {`3.4e38`, `1e39`},
		`"float8_e4m3"`:     {`248`, `1e9`},
		`"float8_e4m3fn"`:   {`465`, `"Infinity"`},
		`"float8_e4m3fnuz"`: {`"Infinity"`, `"-Infinity"`, `256`},
		`"float8_e8m0fnu"`:  {`0`, `-1`, `1e-39`, `"Infinity"`, `1e39`},
		`"float4_e2m1fn"`:   {`"NaN"`, `"Infinity"`, `7.1`, `"0x10"`},
		`"float6_e2m3fn"`:   {`"0x40"`, `7.8`},
		`"complex64"`:       {`1`, `[1]`, `[1,2,3]`, `["x",1]`, `[1e40,0]`, `[NaN,]`, `"NaN"`, `{}`},
		`"r16"`:             {`[1]`, `[1,2,3]`, `[1,256]`, `[1,-1]`, `[1,1.0]`, `"AQ=="`, `0`, `"***"`, `["1","2"]`},
		`"string"`:          {`1`, `null`, `"\ud800"`, `["a"]`},
		`"bytes"`:           {`1`, `"***"`, `[300]`, `"AP8"`},
		structV3:            {`{}`, `{"a":1}`, `{"a":1,"n":{"x":true,"y":1},"z":1}`, `{"a":1,"n":{"x":1,"y":1}}`, `[1,2]`, `null`, `"AAAA"`, `0`},
		`{"name":"null_terminated_bytes","configuration":{"length_bytes":2}}`:       {`"YWJj"`, `1`, `"a"`},
		`{"name":"fixed_length_utf32","configuration":{"length_bytes":8}}`:          {`"abc"`, `1`, `"\udc00"`, `"\ud800\ud800"`},
		`{"name":"numpy.datetime64","configuration":{"unit":"s","scale_factor":1}}`: {`"nat"`, `1.5`, `9223372036854775808`, `"2020-01-01"`, `null`},
	} {
		for _, fill := range fills {
			if elem, err := mustV3(t, typ).ParseFillV3(json.RawMessage(fill)); !errors.Is(err, ErrValue) {
				t.Errorf("%s accepts %s: %x, %v", typ, fill, elem, err)
			}
		}
	}
	for typ, fills := range map[string][]string{
		`"<i4"`:         {`"x"`, `""`, `"7.5"`, `" 7"`, `"0x7"`, `"2147483648"`, `7.5`, `2147483648`, `1e300`, `[]`, `{}`},
		`"|u1"`:         {`-1`, `256`, `"256"`, `"-1"`},
		`"|b1"`:         {`2`, `"2"`, `"true"`},
		`"|S4"`:         {`"***"`, `"YWJjZGU="`, `1`, `"YWI"`},
		`"|V4"`:         {`"YWI="`, `"YWJjZGU="`, `{}`},
		`"<U2"`:         {`"abc"`, `1`},
		`"<f4"`:         {`"x"`, `"1,5"`, `"1e39"`, `[]`, `1e39`},
		`[["a","<i4"]]`: {`"AAA="`, `{"a":1}`, `1`},
		`"<c8"`:         {`[1]`, `"x"`},
		`"<M8[s]"`:      {`1.5`, `"x"`},
	} {
		for _, fill := range fills {
			if elem, _, err := mustV2(t, typ).ParseFillV2(json.RawMessage(fill)); !errors.Is(err, ErrValue) {
				t.Errorf("%s accepts %s: %x, %v", typ, fill, elem, err)
			}
		}
	}
}

// allTypes is one type of every kind and width, and mixtures.
func allTypes(t testing.TB) []Type {
	var all []Type
	for _, c := range v3Forms {
		all = append(all, mustV3(t, c.in))
	}
	for _, c := range v2Forms {
		all = append(all, mustV2(t, c.in))
	}
	for _, f := range []string{`{"id":"json2"}`, `{"id":"vlen-array","dtype":">f4"}`, `{"id":"vlen-array","dtype":[["a","<u2"],["b","|b1"]]}`} {
		all = append(all, mustObject(t, f))
	}
	return all
}

// randomElem returns an element of typ, with any bit pattern that typ allows.
func randomElem(r *rand.Rand, typ Type) []byte {
	switch typ.kind {
	case String:
		return randomText(r)
	case JSON:
		return AppendString(nil, string(randomText(r)))
	case Bytes:
		p := make([]byte, r.IntN(9))
		fillRandom(r, p)
		return p
	case Ragged:
		var p []byte
		for range r.IntN(4) {
			p = append(p, randomElem(r, *typ.elem)...)
		}
		return p
	}
	e := make([]byte, typ.size)
	randomFixed(r, typ, e)
	return e
}

func randomText(r *rand.Rand) []byte {
	var s []rune
	for range r.IntN(6) {
		s = append(s, []rune{rune(r.IntN(128)), rune(0xa0 + r.IntN(0x2000)), rune(0x1f600 + r.IntN(64))}[r.IntN(3)])
	}
	return []byte(string(s))
}

func fillRandom(r *rand.Rand, p []byte) {
	for i := range p {
		p[i] = byte(r.Uint32())
	}
}

func randomFixed(r *rand.Rand, typ Type, e []byte) {
	switch typ.kind {
	case Struct:
		for _, f := range typ.fields {
			randomFixed(r, f.Type, e[f.Offset:f.Offset+f.Type.size])
		}
		return
	case subarray:
		for ; len(e) > 0; e = e[typ.elem.size:] {
			randomFixed(r, *typ.elem, e[:typ.elem.size])
		}
		return
	case FixedUTF32:
		for i, c := range []rune(string(randomText(r))) {
			if 4*i < len(e) {
				storeUint(e[4*i:4*i+4], uint64(c))
			}
		}
		return
	case Complex:
		p := typ.part()
		randomFixed(r, p, e[:p.size])
		randomFixed(r, p, e[p.size:])
		return
	}
	fillRandom(r, e)
	if r.IntN(4) == 0 { // the ends of the range, infinities, NaNs
		edge := []byte{0, 0xff, 0x7f, 0x80}[r.IntN(4)]
		for i := range e {
			e[i] = edge
		}
	}
	switch {
	case typ.kind == Bool:
		e[0] &= 1
	case typ.kind == Int && typ.bits < 8:
		s := 8 - typ.bits
		e[0] = byte(int8(e[0]<<s) >> s)
	case typ.kind != Raw && typ.kind != FixedBytes && typ.bits < 8:
		e[0] &= 1<<typ.bits - 1
	}
}

func TestFillRoundTrip(t *testing.T) {
	seed := must.Seed(t)
	r := rand.New(rand.NewPCG(seed, 1))
	for _, typ := range allTypes(t) {
		for range 300 {
			elem := randomElem(r, typ)
			roundTrip(t, seed, typ, elem, "v3", typ.PrintFillV3, typ.ParseFillV3)
			roundTrip(t, seed, typ, elem, "v2", typ.PrintFillV2, fillV2(typ))
			line, err := typ.AppendJSON(nil, elem)
			if err != nil || !json.Valid(line) || bytes.ContainsRune(line, '\n') {
				t.Fatalf("seed %d: AppendJSON(%s, %x) = %s, %v", seed, typ, elem, line, err)
			}
		}
	}
}

func roundTrip(t *testing.T, seed uint64, typ Type, elem []byte, name string, print func([]byte) (json.RawMessage, error), parse func(json.RawMessage) ([]byte, error)) {
	t.Helper()
	text, err := print(elem)
	if errors.Is(err, ErrNoForm) {
		return
	}
	if err != nil || !json.Valid(text) {
		t.Fatalf("seed %d: %s element %x printed for %s as %s, %v", seed, typ, elem, name, text, err)
	}
	back, err := parse(text)
	if err != nil || !bytes.Equal(back, elem) {
		t.Fatalf("seed %d: %s element %x, in %s %s, came back as %x, %v", seed, typ, elem, name, text, back, err)
	}
}

// TestWideFloats compares the formats of float32 and float64 with Go's.
func TestWideFloats(t *testing.T) {
	for _, c := range []struct {
		bits        int
		largest     float64
		nan, inf    uint64
		man, lowest int
	}{{32, math.MaxFloat32, 0x7fc00000, 0x7f800000, 23, -126}, {64, math.MaxFloat64, 0x7ff8000000000000, 0x7ff0000000000000, 52, -1022}} {
		typ := NewFloat(c.bits)
		f := typ.floatFormat()
		nan, _ := f.nan()
		inf, _ := f.inf(1)
		if i := typ.FloatInfo(); nan != c.nan || inf != c.inf || i != (FloatInfo{c.man, c.lowest, c.largest, -c.largest, true, true}) {
			t.Errorf("%v: %+v, %x, %x", typ, i, nan, inf)
		}
		for range 1000 {
			b := rand.Uint64() >> (64 - c.bits)
			if v := typ.FloatValue(b); !math.IsNaN(v) && f.decode(b) != v {
				t.Fatalf("%v: %x is %v, want %v", typ, b, f.decode(b), v)
			}
		}
	}
}

// TestNarrowFloats compares every number of every narrow format with exact
// arithmetic: printing and parsing gives it back, and a decimal number goes to
// the nearest.
func TestNarrowFloats(t *testing.T) {
	seed := must.Seed(t)
	r := rand.New(rand.NewPCG(seed, 2))
	for _, f := range floats {
		if f.bits > 16 {
			continue
		}
		typ := Type{kind: Float, bits: uint16(f.bits), size: (f.bits + 7) / 8, format: f.name}
		var finite []float64
		for b := range uint64(1) << f.bits {
			elem := make([]byte, typ.size)
			storeUint(elem, b)
			v := f.decode(b)
			if !math.IsNaN(v) && !math.IsInf(v, 0) && b < 1<<(f.bits-1) && (b < 256 || b%97 == 0) {
				finite = append(finite, v)
			}
			text, err := typ.PrintFillV3(elem)
			if err != nil {
				t.Fatalf("%s %#x: %v", typ, b, err)
			}
			back, err := typ.ParseFillV3(text)
			if err != nil || !bytes.Equal(back, elem) {
				t.Fatalf("%s %#x: %s parses to %x, %v", typ, b, text, back, err)
			}
		}
		for i, lo := range finite[:len(finite)-1] {
			if hi := f.next(lo); finite[i+1] == hi {
				checkBetween(t, seed, r, typ, lo, hi)
			}
		}
	}
}

// next returns the number of the format after v, which is not the last.
func (f *floatFormat) next(v float64) float64 {
	b, err := f.encode(v)
	if err != nil {
		panic(err)
	}
	return f.decode(b + 1)
}

// checkBetween rounds the midpoint of two neighbours and what lies a hair
// beside it, which a detour through float64 gets wrong.
func checkBetween(t *testing.T, seed uint64, r *rand.Rand, typ Type, lo, hi float64) {
	t.Helper()
	mid := new(big.Float).SetPrec(400).Add(big.NewFloat(lo), big.NewFloat(hi))
	mid.Quo(mid, big.NewFloat(2))
	hair := new(big.Float).SetPrec(400).Mul(mid, big.NewFloat(math.Ldexp(1+r.Float64(), -90)))
	f := typ.floatFormat()
	for sign, want := range map[int]float64{-1: lo, 1: hi, 0: 0} {
		x := new(big.Float).SetPrec(400).Set(mid)
		switch sign {
		case -1:
			x.Sub(x, hair)
		case 1:
			x.Add(x, hair)
		default: // to even
			b, _ := f.encode(lo)
			want = lo
			if b&1 == 1 {
				want = hi
			}
			if f.special == scaling {
				want = hi // 1.5 × 2^e: the mantissa that even refers to is 2
			}
		}
		text := x.Text('e', 110)
		elem, err := typ.ParseFillV3(json.RawMessage(text))
		if err != nil {
			t.Fatalf("seed %d: %s %s: %v", seed, typ, text, err)
		}
		if got := f.decode(loadUint(elem)); got != want {
			t.Fatalf("seed %d: %s: %s rounds to %g, want %g (between %g and %g)", seed, typ, text, got, want, lo, hi)
		}
	}
}

func TestAppendJSON(t *testing.T) {
	for _, c := range []struct{ typ, elem, want string }{
		{`"<f4"`, "0100c07f", `"NaN"`},
		{`"<f4"`, "cdcccc3d", `0.1`},
		{`"|b1"`, "02", `true`},
		{`"<M8[s]"`, "0000000000000080", `-9223372036854775808`},
		{`"<c8"`, "0000803f000080ff", `[1.0,"-Infinity"]`},
		{`"int4"`, "0f", `-1`},
		{`"int2"`, "fe", `-2`},
		{`"uint4"`, "f3", `3`},
		{`"float4_e2m1fn"`, "f1", `0.5`},
		{`"<u8"`, "ffffffffffffffff", `18446744073709551615`},
		{`"|S3"`, "ff0000", `"base64:/w=="`},
		{`"|V2"`, "ff00", `"base64:/wA="`},
		{`"<U3"`, "00d80000ffff1100" + "41000000", "\"\\ud800\ufffdA\""},
		{`[["z","<i2",[2,2]],["u","|u1"]]`, "0100020003000400ff", `{"z":[[1,2],[3,4]],"u":255}`},
	} {
		elem, _ := hex.DecodeString(c.elem)
		if got, err := mustV2(t, c.typ).AppendJSON([]byte("x"), elem); err != nil || string(got) != "x"+c.want {
			t.Errorf("%s %s: %s, %v, want %s", c.typ, c.elem, got, err, c.want)
		}
	}
	for _, c := range []struct {
		typ        Type
		elem, want string
	}{
		{NewString(), "a\xffé\u2028\"\\\n\x01", "\"a\ufffdé\u2028\\\"\\\\\\n\\u0001\""},
		{NewBytes(), "\xff\x00", `"base64:/wA="`},
		{NewJSON(), "{\n \"a b\": [1, -Infinity, \"\\\" NaN \"]\n}", `{"a b":[1,-Infinity,"\" NaN "]}`},
		{NewJSON(), "{oops", `"{oops"`},
		{NewJSON(), "", `""`},
		{mustObject(t, `{"id":"vlen-array","dtype":"<i2"}`), "\x01\x00\xff\xff", `[1,-1]`},
	} {
		if got, err := c.typ.AppendJSON(nil, []byte(c.elem)); err != nil || string(got) != c.want {
			t.Errorf("%s %q: %s, %v, want %s", c.typ, c.elem, got, err, c.want)
		}
	}
	for _, typ := range []Type{{}, NewInt(32), mustObject(t, `{"id":"vlen-array","dtype":"<i2"}`)} {
		if got, err := typ.AppendJSON(nil, []byte{1, 2, 3}); !errors.Is(err, ErrValue) {
			t.Errorf("%s: %s, %v", typ, got, err)
		}
	}
}

func TestPrintFillRefused(t *testing.T) {
	for _, c := range []struct {
		typ  string
		elem []byte
	}{
		{`"bool"`, []byte{2}}, {`"int4"`, []byte{8}}, {`"uint4"`, []byte{16}}, {`"int32"`, []byte{1}}, {`"float6_e2m3fn"`, []byte{64}},
		{`"string"`, []byte{0xff}},
		{`{"name":"fixed_length_utf32","configuration":{"length_bytes":4}}`, []byte{0, 0xd8, 0, 0}},
	} {
		typ := mustV3(t, c.typ)
		if p, err := typ.PrintFillV3(c.elem); !errors.Is(err, ErrValue) {
			t.Errorf("%s %x: %s, %v", c.typ, c.elem, p, err)
		}
	}
	nan := []byte{1, 0, 0xc0, 0x7f}
	if p, err := mustV2(t, `"<f4"`).PrintFillV2(nan); !errors.Is(err, ErrNoForm) {
		t.Errorf("NaN payload in v2: %s, %v", p, err)
	}
}

func TestAppendJSONAllocates(t *testing.T) {
	typ := mustV2(t, `[["a","<f8"],["b","<U4"],["c","|S4"],["d","<i8",[2]]]`)
	elem := randomElem(rand.New(rand.NewPCG(1, 1)), typ)
	buf := make([]byte, 0, 4096)
	if n := testing.AllocsPerRun(100, func() { buf, _ = typ.AppendJSON(buf[:0], elem) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
	text := []byte("héllo \xff \" 漢字")
	if n := testing.AllocsPerRun(100, func() { buf, _ = NewString().AppendJSON(buf[:0], text) }); n > 0 {
		t.Errorf("%v allocations for a string", n)
	}
}

func FuzzParse(f *testing.F) {
	for _, c := range v3Forms {
		f.Add(c.in, "0")
	}
	for _, c := range v2Forms {
		f.Add(c.in, `"AAAA"`)
	}
	for _, r := range fillsV3 {
		f.Add(r.typ, r.fill)
	}
	for _, r := range fillsV2 {
		f.Add(r.typ, r.fill)
	}
	f.Add(strings.Repeat(`[["a",`, 100)+`"<i4"`+strings.Repeat(`]]`, 100), "null")
	f.Fuzz(func(t *testing.T, text, fill string) {
		if !json.Valid([]byte(text)) || len(text) > 4096 {
			return
		}
		if typ, err := ParseV3(json.RawMessage(text)); err == nil {
			fixedPoint(t, typ, typ.PrintV3, ParseV3)
			fillFixedPoint(t, typ, fill, typ.ParseFillV3, typ.PrintFillV3)
		}
		object, _ := ObjectV2(json.RawMessage(fill))
		parse := func(raw json.RawMessage) (Type, error) { return ParseV2(raw, object) }
		if typ, err := parse(json.RawMessage(text)); err == nil {
			fixedPoint(t, typ, typ.PrintV2, parse)
			fillFixedPoint(t, typ, fill, fillV2(typ), typ.PrintFillV2)
			if elem, null, err := typ.ParseFillV1(json.RawMessage(fill)); err == nil && !null && !typ.Variable() && len(elem) != typ.Size() {
				t.Fatalf("%s %s: %x", typ, fill, elem)
			}
		}
	})
}

func fixedPoint(t *testing.T, typ Type, print func() (json.RawMessage, error), parse func(json.RawMessage) (Type, error)) {
	t.Helper()
	text, err := print()
	if err != nil {
		t.Fatalf("%s cannot be printed: %v", typ, err)
	}
	again, err := parse(text)
	if err != nil || !again.Equal(typ) {
		t.Fatalf("%s printed as %s is %s, %v", typ, text, again, err)
	}
	if typ.Size() > maxSize || len(typ.Words()) > maxWords {
		t.Fatalf("%s is over the limits", typ)
	}
	for _, w := range typ.Words() {
		if w.Offset < 0 || w.Size < 2 || w.Count < 1 || w.Offset+w.Size*w.Count > typ.Size() {
			t.Fatalf("%s has word %v", typ, w)
		}
	}
}

func fillFixedPoint(t *testing.T, typ Type, fill string, parse func(json.RawMessage) ([]byte, error), print func([]byte) (json.RawMessage, error)) {
	t.Helper()
	if typ.Size() > 1<<16 {
		return
	}
	elem, err := parse(json.RawMessage(fill))
	if err != nil {
		return
	}
	text, err := print(elem)
	if errors.Is(err, ErrNoForm) {
		return
	}
	if err != nil {
		t.Fatalf("%s: fill %s is %x, which cannot be printed: %v", typ, fill, elem, err)
	}
	again, err := parse(text)
	if err != nil || !bytes.Equal(again, elem) {
		t.Fatalf("%s: fill %s is %x, printed as %s it is %x, %v", typ, fill, elem, text, again, err)
	}
}

func ExampleType_AppendJSON() {
	typ, _ := ParseV2(json.RawMessage(`[["name","|S3"],["at","<M8[s]"],["pos","<f4",[2]]]`), Type{})
	elem := append([]byte("ab\x00"), 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x80, 0x3f, 0, 0, 0xc0, 0x7f)
	line, _ := typ.AppendJSON(nil, elem)
	fmt.Println(string(line))
	// Output: {"name":"base64:YWI=","at":1,"pos":[1.0,"NaN"]}
}

// Fill values of stored v3 documents, as zarr-python 3 reads them.
func TestReadFillV3(t *testing.T) {
	for _, c := range []fillRow{
		{`"int16"`, `0.0`, "0000", ""}, {`"int16"`, `5.0`, "0500", ""}, {`"int16"`, `1e2`, "6400", ""}, {`"uint8"`, `"7"`, "07", ""},
		{`"int16"`, `1.5`, "", ""}, {`"int16"`, `"0x5"`, "", ""}, {`"int16"`, `40000`, "", ""}, {`"int16"`, `null`, "", ""},
		{`"bool"`, `0`, "00", ""}, {`"bool"`, `1`, "", ""}, {`"bool"`, `0.0`, "00", ""}, {`"bool"`, `0.5`, "", ""}, {`"bool"`, `0e5`, "00", ""},
		{`"bool"`, `true`, "01", ""}, {`"bool"`, `"x"`, "", ""},
		{`"float32"`, `"0"`, "00000000", ""}, {`"float32"`, `"1e3"`, "00007a44", ""}, {`"float32"`, `NaN`, "0000c07f", ""},
		{`"float32"`, `"0x00"`, "", ""}, {`"float32"`, `"abc"`, "", ""}, {`"complex64"`, `0`, "", ""},
	} {
		typ := must.Get(ParseV3(json.RawMessage(c.typ)))(t)
		elem, err := typ.ReadFillV3(json.RawMessage(c.fill))
		if got := hex.EncodeToString(elem); got != c.elem || (err == nil) != (c.elem != "") || err != nil && !errors.Is(err, ErrValue) {
			t.Errorf("%s %s: %s, %v; want %s", c.typ, c.fill, got, err, c.elem)
		}
	}
}
