package meta

import (
	"encoding/json"
	"fmt"
	"github.com/zarrdb/zarrdb/internal/must"
	"math"
	"slices"
	"testing"
)

func attrs(t testing.TB, text string) Attributes {
	t.Helper()
	a, err := ParseAttributes([]byte(text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return a
}

func TestAttributes(t *testing.T) {
	a := attrs(t, ` {"b": 1, "a" : [1, 2.50, NaN] ,"\u00e9": {"x":-Infinity}} `)
	if !slices.Equal(a.Keys(), []string{"b", "a", "é"}) || a.Len() != 3 {
		t.Errorf("keys %v", a.Keys())
	}
	if v, ok := a.Get("a"); !ok || string(v) != "[1, 2.50, NaN]" {
		t.Errorf("a is %s, %v", v, ok)
	}
	if v, ok := a.Get("c"); ok {
		t.Errorf("c is %s", v)
	}
	if text, err := json.Marshal(a); err != nil || string(text) != `{"b":1,"a":[1,2.50,"NaN"],"é":{"x":"-Infinity"}}` {
		t.Errorf("%s, %v", text, err)
	}
	var back Attributes
	if err := json.Unmarshal([]byte(`{"z":1,"y":"<&>"}`), &back); err != nil || !slices.Equal(back.Keys(), []string{"z", "y"}) {
		t.Errorf("%v, %v", back.Keys(), err)
	}
	if text := fmt.Sprint(string((Attributes{}).Text())); text != "{}" {
		t.Errorf("no attributes are %s", text)
	}
	var keys []string
	for k, v := range a.All() {
		keys = append(keys, k+string(v))
		if k == "a" {
			break
		}
	}
	if !slices.Equal(keys, []string{"b1", "a[1, 2.50, NaN]"}) {
		t.Errorf("All: %v", keys)
	}
}

func TestAttributesChange(t *testing.T) {
	a := attrs(t, `{"x":1,"y":2}`)
	b := a
	raw := json.RawMessage(` {"k":  "<i4"} `)
	for _, err := range []error{b.Set("x", 5), b.Set("z", "<é>"), b.Set("raw", raw)} {
		must.Do(t, err)
	}
	raw[2] = 'X'
	if !b.Delete("y") || b.Delete("y") {
		t.Error("Delete")
	}
	if got := string(b.Text()); got != `{"x":5,"z":"<é>","raw":{"k":  "<i4"}}` {
		t.Errorf("changed: %s", got)
	}
	if got := string(a.Text()); got != `{"x":1,"y":2}` {
		t.Errorf("a copy changed too: %s", got)
	}
	for _, bad := range []any{math.NaN(), json.RawMessage(`{`), json.RawMessage(`{"a":1,"a":2}`), json.RawMessage(``), func() {}} {
		if err := b.Set("bad", bad); err == nil {
			t.Errorf("%v accepted", bad)
		}
	}
}

func TestAttributesEqual(t *testing.T) {
	a := attrs(t, `{"a":{"x":1,"y":[true,"\u00e9"]},"b":2}`)
	for text, want := range map[string]bool{
		`{"b":2, "a":{"y": [true,"é"], "x":1}}`: true,
		`{"a":{"x":1,"y":["é",true]},"b":2}`:    false,
		`{"a":{"x":1.0,"y":[true,"é"]},"b":2}`:  false,
		`{"a":{"x":1,"y":[true,"é"]}}`:          false,
		`{"a":{"x":1,"y":[true,"é"]},"c":2}`:    false,
	} {
		if a.Equal(attrs(t, text)) != want {
			t.Errorf("Equal to %s is %v", text, !want)
		}
	}
	if attrs(t, `{"a":"\ud800"}`).Equal(attrs(t, `{"a":"\ud801"}`)) || !attrs(t, `{"a":"\ud83d\ude00"}`).Equal(attrs(t, `{"a":"😀"}`)) {
		t.Error("surrogates")
	}
}

func TestParseAttributesRefused(t *testing.T) {
	for _, text := range []string{``, `[]`, `1`, `{"a":1,"\u0061":2}`, `{"a":}`, `{} {}`, "{\"a\":\"\xff\"}", `{"\ud800":1,"\uD800":2}`} {
		if a, err := ParseAttributes([]byte(text)); err == nil {
			t.Errorf("%s is %v", text, a)
		}
	}
}
