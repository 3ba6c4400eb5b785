package jsontext

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// Texts that are JSON, and texts that are not, for tests and as seeds.
var (
	goodJSON = []string{
		`{}`, `[]`, `0`, `-0`, `-0.0e+10`, `1E5`, `"a"`, `""`, `true`, `false`, `null`, " \t\r\n{ } ", `[1,[2,[]],{}]`, `{"a":{"b":[1,2.5,null]}}`,
		`"\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00"`, `"é漢😀"`, `{"":1}`, `[ 1 , 2 ]`, `{ "a" : 1 , "b" : 2 }`, `"\ud800"`, `{"a":"}","b":"\""}`, `[[[[]]]]`,
		`1e400`, `123456789012345678901234567890`, "\"\u2028\x7f\"",
	}
	badJSON = []string{
		``, ` `, `{`, `}`, `[`, `]`, `{"a"}`, `{"a":}`, `{"a":1,}`, `{,}`, `{a:1}`, `{"a" 1}`, `[1,]`, `[,]`, `[1 2]`, `{"a":1 "b":2}`, `01`, `+1`, `.5`, `1.`, `1e`, `1e+`,
		`-`, `--1`, `0x1`, `tru`, `truee`, `nul`, `"`, `"a`, `"\x"`, `"\u12"`, `"\u12g4"`, "\"\n\"", "\"\x00\"", `'a'`, `{} {}`, `1 2`, "\ufeff{}", "\xff", "\"\xc3\"", `{"a":1]`, `[1}`, "\x00",
	}
)

func TestCheckJSON(t *testing.T) {
	for _, text := range goodJSON {
		if err := Check([]byte(text)); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
	for _, text := range badJSON {
		if err := Check([]byte(text)); err == nil {
			t.Errorf("%q accepted", text)
		}
	}
	for _, text := range []string{`NaN`, `[NaN,Infinity,-Infinity]`, `{"a":NaN}`} {
		if err := Check([]byte(text)); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
	for _, text := range []string{`Nan`, `-NaN`, `+Infinity`, `Inf`, `{NaN:1}`, `NaNN`, `--Infinity`} {
		if err := Check([]byte(text)); err == nil {
			t.Errorf("%q accepted", text)
		}
	}
}

func TestCheckJSONLimits(t *testing.T) {
	deep := func(n int, open, middle, end string) []byte {
		return []byte(strings.Repeat(open, n) + middle + strings.Repeat(end, n))
	}
	for _, text := range [][]byte{deep(maxNesting, "[", "1", "]"), deep(maxNesting, `{"a":`, "1", "}")} {
		if err := Check(text); err != nil {
			t.Error(err)
		}
	}
	for _, text := range [][]byte{deep(maxNesting+1, "[", "1", "]"), deep(100_000, `{"a":`, "1", "}"), bytes.Repeat([]byte("["), 1<<20), make([]byte, MaxDocument+1)} {
		if err := Check(text); err == nil {
			t.Errorf("%.20q… accepted", text)
		}
	}
	var many strings.Builder
	for i := range 100_000 {
		fmt.Fprintf(&many, `"%d":1,`, i)
	}
	if err := Check([]byte("{" + many.String() + `"x":1}`)); err != nil {
		t.Error(err)
	}
	for _, last := range []string{"99999", "3", `\u0033`} {
		if err := Check([]byte("{" + many.String() + `"` + last + `":1}`)); err == nil {
			t.Errorf("%s twice among many accepted", last)
		}
	}
	// The same name in different objects is fine.
	if err := Check([]byte(`{"a":{"a":{"a":1},"b":{"a":1}},"b":[{"a":1},{"a":1}]}`)); err != nil {
		t.Error(err)
	}
}

// FuzzJSON compares the scanner with encoding/json, and what cuts and prints
// checked text with what went in.
func FuzzJSON(f *testing.F) {
	for _, s := range goodJSON {
		f.Add([]byte(s))
	}
	for _, s := range badJSON {
		f.Add([]byte(s))
	}
	f.Add([]byte(`{"a":[NaN,{"b":"x\\\"y"}],"c":-Infinity}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		err := Check(text)
		if err == nil && !json.Valid(AppendStrict(nil, text)) {
			t.Fatalf("%q is not JSON", text)
		}
		if err != nil {
			if json.Valid(text) && utf8.Valid(text) && !strings.Contains(err.Error(), "twice") && !strings.Contains(err.Error(), "deeper") && !strings.Contains(err.Error(), "not text") {
				t.Fatalf("%q is JSON: %v", text, err)
			}
			return
		}
		want := Canonical(text)
		if err := Check(want); err != nil {
			t.Fatalf("%q has the canonical form %q: %v", text, want, err)
		}
		pretty := AppendIndented(nil, text, "  ", 0)
		if got := Canonical(pretty); !bytes.Equal(got, want) {
			t.Fatalf("%q indented is %q: %q instead of %q", text, pretty, got, want)
		}
		if again := Canonical(want); !bytes.Equal(again, want) {
			t.Fatalf("%q is not canonical: %q", want, again)
		}
		if list, ok := Members(text); ok {
			if got := Canonical(Join(list)); !bytes.Equal(got, want) {
				t.Fatalf("%q has members %q", text, got)
			}
		}
		if list, ok := Items(text); ok {
			got := append(append([]byte{'['}, bytes.Join(rawBytes(list), []byte{','})...), ']')
			if got = Canonical(got); !bytes.Equal(got, want) {
				t.Fatalf("%q has elements %q", text, got)
			}
		}
	})
}

func rawBytes(list []json.RawMessage) [][]byte {
	var out [][]byte
	for _, r := range list {
		out = append(out, r)
	}
	return out
}

func TestAppendIndented(t *testing.T) {
	got := string(AppendIndented(nil, json.RawMessage(`{"a":[1, {"b" : "x: {,"}],"c":{},"d":[ ],"e":NaN}`), "  ", 0))
	want := "{\n  \"a\": [\n    1,\n    {\n      \"b\": \"x: {,\"\n    }\n  ],\n  \"c\": {},\n  \"d\": [],\n  \"e\": NaN\n}"
	if got != want {
		t.Errorf("%s", got)
	}
}

func TestShow(t *testing.T) {
	long := strings.Repeat("é", 100)
	for in, want := range map[string]string{"{\n \"a\":\t1\n}": `{ "a": 1 }`, long: long[:60] + "…"} {
		if got := Show(json.RawMessage(in)); got != want {
			t.Errorf("%q is shown as %q", in, got)
		}
	}
	for in, want := range map[string]string{"abc_1": "abc_1", "a b": `"a b"`, "a\nb": `"a\nb"`, "a.b": `"a.b"`} {
		if got := FieldName(in); got != want {
			t.Errorf("%q is named %s", in, got)
		}
	}
}

// A member is found without a look at what follows, and not in text that is not JSON.
func TestFirst(t *testing.T) {
	for doc, want := range map[string]string{
		`{"a": 1, "b": {"c": 2}, "c": [3]}`: `[3]`, ` { "x" : "c" , "c" : "d" }`: `"d"`, `{"c": 1, "c": 2, nonsense`: `1`, `{"\u0063":4}`: `4`,
		`{"x": {"c": 1}}`: ``, `{}`: ``, `["c", 1]`: ``, `"c"`: ``, ``: ``, `{"x": 1 "c": 2}`: ``, `{"c"`: ``, `{"c":`: ``, `{x: 1, "c": 2}`: ``,
	} {
		if got := First([]byte(doc), "c"); string(got) != want {
			t.Errorf("%s: %s, want %s", doc, got, want)
		}
	}
	for _, text := range badJSON {
		First([]byte(text), "c")
	}
}

// A name that stands twice is found in objects of any size, wherever it stands.
func TestCheckNamesTwice(t *testing.T) {
	for _, n := range []int{2, 16, 17, 32, 33, 1000, 100_000} {
		names := make([]string, n)
		for i := range names {
			names[i] = fmt.Sprintf(`"k%d":{"k":1}`, i)
		}
		if err := Check([]byte("{" + strings.Join(names, ",") + "}")); err != nil {
			t.Fatal(n, err)
		}
		for _, at := range []int{0, n / 2, n - 2} {
			twice := append(slices.Clone(names), fmt.Sprintf(`"\u006b%d":0`, at))
			if err := Check([]byte("{" + strings.Join(twice, ",") + "}")); err == nil || !strings.Contains(err.Error(), fmt.Sprintf(`member "k%d" stands twice`, at)) {
				t.Errorf("%d of %d: %v", at, n, err)
			}
		}
	}
}
