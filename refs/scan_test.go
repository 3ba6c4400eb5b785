package refs

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
)

// TestDump compares with what Python prints; testdata/generate.py asked it.
func TestDump(t *testing.T) {
	b := must.Get(os.ReadFile("testdata/dumps.json"))(t)
	var table struct{ Values [][3]string }
	must.Do(t, json.Unmarshal(b, &table))
	for _, v := range table.Values {
		for i, style := range []*dumpStyle{&ujsonStyle, &pythonStyle} {
			got, err := style.dump(nil, &cursor{b: []byte(v[0]), eof: true}, 0)
			if err != nil || string(got) != v[i+1] {
				t.Errorf("%s is printed\n%s, %v, want\n%s", v[0], got, err, v[i+1])
			}
		}
	}
	if len(table.Values) < 500 {
		t.Errorf("%d values", len(table.Values))
	}
}

// oracle reads a set with the standard library. ok is false for what it, or
// the format, does not allow. Of a key that is there twice the last value counts,
// and all must be allowed.
func oracle(text []byte) (out map[string]any, ok bool) {
	var top map[string]json.RawMessage
	if err := json.Unmarshal(text, &top); err != nil || top == nil {
		return nil, false
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	if _, err := dec.Token(); err != nil {
		return nil, false
	}
	out = map[string]any{}
	for dec.More() {
		name, err := dec.Token()
		key, isText := name.(string)
		var v any
		if err != nil || !isText || dec.Decode(&v) != nil || checkKey(key) != nil || !allowed(v) {
			return nil, false
		}
		out[key] = v
	}
	return out, true
}

// allowed reports whether a set may have a value.
func allowed(v any) bool {
	switch v := v.(type) {
	case string, map[string]any:
		return true
	case []any:
		if len(v) != 1 && len(v) != 3 {
			return false
		}
		if u, ok := v[0].(string); !ok || u == "" {
			return false
		}
		for _, n := range v[1:] {
			if n, ok := n.(json.Number); !ok {
				return false
			} else if i, err := n.Int64(); err != nil || i < 0 {
				return false
			}
		}
		return true
	}
	return false
}

// collect reads a set with the package, into the form of oracle.
func collect(ctx context.Context, set []byte, window int) (map[string]any, error) {
	out := map[string]any{}
	for e, err := range ReadJSON(ctx, kv.Bytes(set), &ReadOptions{MaxValue: 1 << 16, MaxGenerated: 1000, window: window}) {
		if err != nil {
			return out, err
		}
		switch {
		case e.Whole():
			out[e.Key] = []any{e.URL}
		case e.Inline() && e.Form == FormText:
			out[e.Key] = string(e.Data)
		case e.Inline():
			out[e.Key] = e.Data
		default:
			out[e.Key] = []any{e.URL, json.Number(fmt.Sprint(e.Offset)), json.Number(fmt.Sprint(e.Length))}
		}
	}
	return out, nil
}

var textSeeds = []string{
	`{}`, ` { } `, `{"a":"b"}`, `{"a":["u"],"b":["u",1,2]}`, "{\n\t\"a\" : [ \"u\" , 0 , 18446744073709551616 ] }", `{"a":{"b":[1,2.5e3,null,true]}}`,
	`{"a":"\u00e9\ud83d\ude00\/\\\"\b\f\n\r\t"}`, `{"a":"\ud800"}`, `{"a":"é漢😀"}`, `{"a":"base64:AAEC"}`, `{"a":"base64:!"}`, `{"a":["u",-1,2]}`, `{"a":["u",01,2]}`,
	`{"a":["u",1.0,2]}`, `{"a":["u",-0,2]}`, `{"a":[]}`, `{"a":[1]}`, `{"a":["u",1]}`, `{"a":["u",1,2,3]}`, `{"a":1}`, `{"a":null}`, `[]`, `{`, `{"a"`, `{"a":`, `{"a":"`, `{"a":"b",}`,
	`{"a":"b"} x`, `{"a":"b" "c":"d"}`, `{"":"x"}`, `{"a/":"x"}`, `{"a":"x","a":"y"}`, "{\"a\":\"\x01\"}", "{\"a\":\"\xff\"}", `{"a/../b":"x"}`, `{"version":1,"refs":{"a":["{{u}}/x"]},"templates":{"u":"v"}}`,
	`{"version":1,"templates":{"u":"v"},"refs":{"a":["{{u}}/x",1,2]},"gen":[{"key":"k{{i}}","url":"{{u}}","dimensions":{"i":{"stop":3}}}]}`,
	`{"version":1,"refs":{},"gen":[{"key":"k{{i}}","url":"{{i}}","offset":"{{i}}","length":"1","dimensions":{"i":[1,"a",2.5]}}]}`,
	`{"a":1,"a":"y"}`, `{"a":[],"a":"y"}`, `{"a":{"b":[1,2.5e333,-1e999]}}`, `{"a":{"b":"c/d","e":NaN}}`, `{"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa":["uuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuu/é",123456789012345678,1234567890123456789]}`,
}

func TestAgainstStd(t *testing.T) {
	for _, s := range textSeeds {
		againstStd(t, []byte(s))
	}
}

// FuzzJSON compares the scanner with encoding/json, and a large window with
// one that holds some bytes.
func FuzzJSON(f *testing.F) {
	for _, s := range textSeeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) { againstStd(t, b) })
}

func againstStd(t *testing.T, b []byte) {
	got, err := collect(t.Context(), b, 1<<16)
	slow, err2 := collect(t.Context(), b, 5)
	if fmt.Sprint(err) != fmt.Sprint(err2) || !reflect.DeepEqual(got, slow) {
		t.Fatalf("%q: at once %v, %v, in small windows %v, %v", b, got, err, slow, err2)
	}
	twice, err3 := map[string]any{}, error(nil)
	for e, err := range ReadJSON(t.Context(), kv.Bytes(b), &ReadOptions{MaxValue: 1 << 16, MaxGenerated: 1000}) {
		if err3 = err; err == nil {
			twice[e.Key] = nil
		}
	}
	if err == nil && (err3 != nil || len(twice) != len(got)) && !bytes.Contains(b, []byte(`"`)) {
		t.Fatalf("%q: read twice %v, %v", b, twice, err3)
	}
	var syntax *syntaxError
	if err != nil && !errors.Is(err, ErrInvalid) && !errors.Is(err, ErrLimit) {
		t.Fatalf("%q: %v is neither invalid nor a limit", b, err)
	}
	if isGzip(b) || len(b) >= 4 && isZstd(b[:4]) || bytes.HasPrefix(b, []byte("\ufeff")) {
		return
	}
	want, ok := oracle(b)
	v1 := bytes.Contains(b, []byte(`/"`)) // "0" is put behind a key
	for _, k := range []string{"version", "templates", "gen", "refs"} {
		v1 = v1 || strings.Contains(string(b), k) || bytes.Contains(b, []byte(`\u`))
	}
	switch {
	case v1:
		// The oracle knows version 0 only, and keys as they are.
	case err != nil && ok && !errors.As(err, &syntax):
		// Bad base64, and text that the standard library mends.
		if !strings.Contains(err.Error(), "base64") && !errors.Is(err, ErrLimit) {
			t.Fatalf("%q: %v, want %v", b, err, want)
		}
	case err != nil && ok:
		if utf8.Valid(b) && !errors.Is(err, ErrLimit) {
			t.Fatalf("%q: %v, want %v", b, err, want)
		}
	case err == nil && !ok:
		// NaN and its like, and numbers that are too large only here.
		if !bytes.Contains(b, []byte("NaN")) && !bytes.Contains(b, []byte("Infinity")) {
			t.Fatalf("%q: read %v, which is invalid", b, got)
		}
	case err == nil:
		if len(got) != len(want) {
			t.Fatalf("%q: read %v, want %v", b, got, want)
		}
		for key, w := range want {
			g := got[key]
			if text, ok := g.(string); ok {
				if _, ok := w.(map[string]any); ok {
					dec := json.NewDecoder(strings.NewReader(text))
					dec.UseNumber()
					var v any
					if dec.Decode(&v) == nil && reflect.DeepEqual(stripNumbers(v), stripNumbers(w)) {
						continue
					}
					if large(w) && strings.Contains(text, "Infinity") {
						continue // as Python prints what is beyond all floats
					}
				}
			}
			if _, ok := g.([]byte); ok {
				continue // base64
			}
			if !reflect.DeepEqual(g, w) && !(fmt.Sprint(w) == strings.ReplaceAll(fmt.Sprint(g), " 0", " -0")) && !sameNumbers(g, w) {
				t.Fatalf("%q: key %q is %v, want %v", b, key, g, w)
			}
		}
	}
}

// stripNumbers replaces numbers by their values: a dump prints 1.50 as 1.5.
func stripNumbers(v any) any {
	switch v := v.(type) {
	case json.Number:
		f, err := v.Float64()
		if err != nil {
			return "large"
		}
		return f
	case []any:
		for i := range v {
			v[i] = stripNumbers(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = stripNumbers(v[k])
		}
	}
	return v
}

// large reports whether a number is too large for a float.
func large(v any) bool {
	switch v := v.(type) {
	case json.Number:
		_, err := v.Float64()
		return err != nil
	case []any:
		return slices.ContainsFunc(v, large)
	case map[string]any:
		for _, v := range v {
			if large(v) {
				return true
			}
		}
	}
	return false
}

func sameNumbers(a, b any) bool { return reflect.DeepEqual(stripNumbers(a), stripNumbers(b)) }

// TestScalarKey reads keys as VirtualiZarr 2.5.1 writes those of scalars.
func TestScalarKey(t *testing.T) {
	for _, window := range []int{5, 1 << 10} {
		got, err := collect(t.Context(), []byte(`{"a/":["u",1,2],"b/c\/":["v"],"a//0":"x","d":"y"}`), window)
		want := map[string]any{"a/0": []any{"u", json.Number("1"), json.Number("2")}, "b/c/0": []any{"v"}, "a//0": "x", "d": "y"}
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("in windows of %d: %v, %v", window, got, err)
		}
	}
	if _, err := collect(t.Context(), []byte(`{"/":"x"}`), 100); !errors.Is(err, ErrInvalid) {
		t.Errorf("a slash alone: %v", err)
	}
}

func TestSkipFast(t *testing.T) {
	for _, v := range []string{`1`, `-1.5e3`, `"a"`, `""`, `"\\"`, `"\\\""`, `"a\"b"`, `{}`, `[]`, `{"a":[1,{"b":"]}\""}],"c":"\\"}`, `true`, `null`, `[[[[]]],"\\\\\\"]`} {
		for _, size := range []int{8, 9, 16, 1 << 10} {
			s := &scanner{ctx: t.Context(), r: strings.NewReader(v + ` , "next"`), buf: make([]byte, size), max: 1 << 10}
			if err := s.skipFast(); err != nil {
				t.Errorf("%s in windows of %d: %v", v, size, err)
				continue
			}
			if x, err := s.peek(); err != nil || x != ',' {
				t.Errorf("%s in windows of %d: then %c, %v", v, size, x, err)
			}
		}
	}
}
