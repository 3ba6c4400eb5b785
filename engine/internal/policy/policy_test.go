package policy

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/zarrdb/zarrdb/engine/internal/names"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/txn"
)

func arrayV3(changes ...string) string {
	doc := `{"zarr_format":3,"node_type":"array","shape":[10,10],"data_type":"int32",` +
		`"chunk_grid":{"name":"regular","configuration":{"chunk_shape":[4,5]}},` +
		`"chunk_key_encoding":{"name":"default","configuration":{"separator":"/"}},` +
		`"fill_value":0,"codecs":[{"name":"bytes","configuration":{"endian":"little"}}],"attributes":{"a":1,"b":2}}`
	return replaced(doc, changes...)
}

func arrayV2(changes ...string) string {
	doc := `{"zarr_format":2,"shape":[10,10],"chunks":[4,5],"dtype":"<i4","compressor":{"id":"zlib","level":1},` +
		`"fill_value":0,"order":"C","filters":null}`
	return replaced(doc, changes...)
}

// replaced replaces pairs of old and new text, each of which must be there.
func replaced(s string, changes ...string) string {
	for i := 0; i < len(changes); i += 2 {
		if !strings.Contains(s, changes[i]) {
			panic("no " + changes[i])
		}
		s = strings.ReplaceAll(s, changes[i], changes[i+1])
	}
	return s
}

func TestPolicyForms(t *testing.T) {
	for _, c := range []struct {
		name, doc string
		want      []txn.Form
	}{
		{names.V3, arrayV3(), []txn.Form{{Prefix: "c/", Sep: '/', Rank: 2}}},
		{names.V3, arrayV3(`"separator":"/"`, `"separator":"."`), []txn.Form{{Prefix: "c.", Sep: '.', Rank: 2}}},
		{names.V3, arrayV3(`"name":"default"`, `"name":"v2"`), []txn.Form{{Prefix: "", Sep: '/', Rank: 2}}},
		{names.V3, arrayV3(`"name":"bytes"`, `"name":"unheard-of"`), []txn.Form{{Prefix: "c/", Sep: '/', Rank: 2}}},
		{names.V3, `{"zarr_format":3,"node_type":"group"}`, nil},
		{names.V3, `{"zarr_format":3`, nil},
		{names.V3, "", nil},
		{names.V2Array, arrayV2(), []txn.Form{{Prefix: "", Sep: '.', Rank: 2}}},
		{names.V2Array, arrayV2(`"order"`, `"dimension_separator":"/","order"`), []txn.Form{{Prefix: "", Sep: '/', Rank: 2}}},
		{names.V2Group, `{"zarr_format":2}`, nil},
		{names.V2Attrs, `{"shape":[1]}`, nil},
		{names.V1Array, `{"zarr_format":1,"shape":[5],"chunks":[2],"dtype":"<i4"}`, []txn.Form{{Prefix: "", Sep: '.', Rank: 1}}},
	} {
		if got := (Policy{}).Forms(c.name, []byte(c.doc)); !slices.Equal(got, c.want) {
			t.Errorf("%s %.60s: forms %v, want %v", c.name, c.doc, got, c.want)
		}
	}
}

// Only what chunk bytes depend on is part of the structure.
func TestPolicyStructure(t *testing.T) {
	for _, c := range []struct {
		what, name string
		a, b       string
		same       bool
	}{
		{"attributes", names.V3, arrayV3(), arrayV3(`"a":1`, `"a":2`), true},
		{"shape", names.V3, arrayV3(), arrayV3(`[10,10]`, `[20,10]`), true},
		{"white space and order", names.V3, arrayV3(), arrayV3(`"name":"regular","configuration":{"chunk_shape":[4,5]}`, ` "configuration" : {"chunk_shape":[ 4,5]} , "name":"regular"`), true},
		{"data type", names.V3, arrayV3(), arrayV3(`int32`, `uint32`), false},
		{"fill value", names.V3, arrayV3(), arrayV3(`"fill_value":0`, `"fill_value":1`), false},
		{"codecs", names.V3, arrayV3(), arrayV3(`"little"`, `"big"`), false},
		{"chunk shape", names.V3, arrayV3(), arrayV3(`[4,5]`, `[5,4]`), false},
		{"chunk keys", names.V3, arrayV3(), arrayV3(`"separator":"/"`, `"separator":"."`), false},
		{"compressor", names.V2Array, arrayV2(), arrayV2(`"level":1`, `"level":2`), false},
		{"order", names.V2Array, arrayV2(), arrayV2(`"C"`, `"F"`), false},
		{"shape of v2", names.V2Array, arrayV2(), arrayV2(`[10,10]`, `[10,30]`), true},
	} {
		a, ok1 := (Policy{}).Structure(c.name, []byte(c.a))
		b, ok2 := (Policy{}).Structure(c.name, []byte(c.b))
		if !ok1 || !ok2 {
			t.Errorf("%s: no structure", c.what)
		}
		if same := string(a.Key) == string(b.Key); same != c.same {
			t.Errorf("%s: the same structure: %v", c.what, same)
		}
	}
	s, _ := (Policy{}).Structure(names.V3, []byte(arrayV3()))
	if !slices.Equal(s.Grid, []int64{3, 2}) {
		t.Errorf("grid %v", s.Grid)
	}
	for _, doc := range []string{`{"zarr_format":3,"node_type":"group"}`, "", "[]", `{"shape":`, `{"node_type":"array"}`} {
		if _, ok := (Policy{}).Structure(names.V3, []byte(doc)); ok {
			t.Errorf("%s has a structure", doc)
		}
	}
	if _, ok := (Policy{}).Structure(names.V2Attrs, []byte(`{"shape":[1]}`)); ok {
		t.Error("attributes have a structure")
	}
}

func TestPolicyMergeDocument(t *testing.T) {
	copies := func(docs ...string) string {
		var members []string
		for i := 0; i < len(docs); i += 2 {
			members = append(members, fmt.Sprintf("%q:%s", docs[i], docs[i+1]))
		}
		return `{"zarr_consolidated_format":1,"metadata":{` + strings.Join(members, ",") + `}}`
	}
	inline := func(attrs string, docs ...string) string {
		return fmt.Sprintf(`{"zarr_format":3,"node_type":"group","attributes":%s,"consolidated_metadata":{"kind":"inline","must_understand":false,"metadata":%s}}`,
			attrs, replaced(copies(docs...), `{"zarr_consolidated_format":1,"metadata":`, "", "}}}", "}}"))
	}
	for _, c := range []struct {
		what, name         string
		base, ours, theirs string
		strict             bool
		want               string   // "" for ours
		conflicts          []string // fields
	}{
		{
			what: "attributes of different names", name: names.V3,
			base: arrayV3(), ours: arrayV3(`"a":1`, `"a":5`), theirs: arrayV3(`"b":2`, `"c":3`),
			want: arrayV3(`"a":1,"b":2`, `"a":5,"c":3`),
		},
		{
			what: "the same change", name: names.V3,
			base: arrayV3(), ours: arrayV3(`"a":1`, `"a":5`), theirs: arrayV3(`"a":1`, `"a": 5`),
			want: arrayV3(`"a":1`, `"a":5`),
		},
		{
			what: "the same change, strict", name: names.V3, strict: true,
			base: arrayV3(), ours: arrayV3(`"a":1`, `"a":5`), theirs: arrayV3(`"a":1`, `"a": 5`),
			want: arrayV3(`"a":1`, `"a":5`), conflicts: []string{"attributes.a"},
		},
		{
			what: "equal and other changes, strict", name: names.V3, strict: true,
			base: arrayV3(), ours: arrayV3(`"a":1`, `"a":5`, `[10,10]`, `[20,10]`), theirs: arrayV3(`"b":2`, `"b":3`, `[10,10]`, `[20,10]`),
			want: arrayV3(`"a":1`, `"a":5`, `"b":2`, `"b":3`, `[10,10]`, `[20,10]`), conflicts: []string{"shape"},
		},
		{
			what: "equal along one axis, strict", name: names.V2Array, strict: true,
			base: arrayV2(), ours: arrayV2(`[10,10]`, `[20,10]`), theirs: arrayV2(`[10,10]`, `[20,30]`),
			want: arrayV2(`[10,10]`, `[20,10]`), conflicts: []string{"shape"},
		},
		{
			what: "along two axes, strict", name: names.V2Array, strict: true,
			base: arrayV2(), ours: arrayV2(`[10,10]`, `[20,10]`), theirs: arrayV2(`[10,10]`, `[10,30]`),
			want: arrayV2(`[10,10]`, `[20,30]`),
		},
		{
			what: "the same attribute removed, strict", name: names.V3, strict: true,
			base: arrayV3(), ours: arrayV3(`"a":1,`, ``), theirs: arrayV3(`"a":1,`, ``, `"b":2`, `"b":3`),
			want: arrayV3(`"a":1,`, ``, `"b":2`, `"b":3`),
		},
		{what: "the same empty v2 group made, strict", name: names.V2Group, strict: true, ours: `{"zarr_format":2}`, theirs: `{"zarr_format":2}`, want: `{"zarr_format":2}`},
		{what: "the same empty attributes made, strict", name: names.V2Attrs, strict: true, ours: `{}`, theirs: `{}`, want: `{}`},
		{what: "the same attributes made, strict", name: names.V2Attrs, strict: true, ours: `{"a":1}`, theirs: `{"a":1}`, want: `{"a":1}`, conflicts: []string{"a"}},
		{
			what: "the same empty group made, strict", name: names.V3, strict: true,
			ours: inline(`{}`, "x", arrayV3()), theirs: inline(`{}`, "x", arrayV3()), want: inline(`{}`, "x", arrayV3()),
		},
		{
			what: "the same group with attributes made, strict", name: names.V3, strict: true,
			ours: inline(`{"a":1}`, "x", arrayV3()), theirs: inline(`{"a":1}`, "x", arrayV3()), want: inline(`{"a":1}`, "x", arrayV3()), conflicts: []string{"attributes.a"},
		},
		{what: "the same array made, strict", name: names.V3, strict: true, ours: arrayV3(), theirs: arrayV3(), want: arrayV3(), conflicts: []string{""}},
		{what: "the same v2 array made, strict", name: names.V2Array, strict: true, ours: arrayV2(), theirs: arrayV2(), want: arrayV2(), conflicts: []string{""}},
		{what: "another document, the same, strict", name: "notes.json", strict: true, base: `{}`, ours: `{"a":1}`, theirs: `{"a":1}`, want: `{"a":1}`, conflicts: []string{""}},
		{
			what: "the same inline copies, strict", name: names.V3, strict: true,
			base: inline(`{}`, "old", arrayV3()), ours: inline(`{}`, "x", arrayV3()), theirs: inline(`{}`, "x", arrayV3()), want: inline(`{}`, "x", arrayV3()),
		},
		{
			what: "one attribute", name: names.V3,
			base: arrayV3(), ours: arrayV3(`"a":1`, `"a":5`), theirs: arrayV3(`"a":1`, `"a":6`),
			want: arrayV3(`"a":1`, `"a":5`), conflicts: []string{"attributes.a"},
		},
		{
			what: "changed and removed attribute", name: names.V3,
			base: arrayV3(), ours: arrayV3(`"a":1,`, ``), theirs: arrayV3(`"a":1`, `"a":6`),
			want: arrayV3(`"a":1,`, ``), conflicts: []string{"attributes.a"},
		},
		{
			what: "shape along two axes", name: names.V3,
			base: arrayV3(), ours: arrayV3(`[10,10]`, `[20,10]`), theirs: arrayV3(`[10,10]`, `[10,5]`),
			want: arrayV3(`[10,10]`, `[20,5]`),
		},
		{
			what: "shape along one axis", name: names.V2Array,
			base: arrayV2(), ours: arrayV2(`[10,10]`, `[20,10]`), theirs: arrayV2(`[10,10]`, `[30,10]`),
			want: arrayV2(`[10,10]`, `[20,10]`), conflicts: []string{"shape"},
		},
		{
			what: "attributes against shape", name: names.V3,
			base: arrayV3(), ours: arrayV3(`[10,10]`, `[20,10]`), theirs: arrayV3(`"b":2`, `"b":3`),
			want: arrayV3(`[10,10]`, `[20,10]`, `"b":2`, `"b":3`),
		},
		{
			what: "codecs twice", name: names.V3,
			base: arrayV3(), ours: arrayV3(`"little"`, `"big"`), theirs: arrayV3(`"bytes"`, `"other"`),
			want: arrayV3(`"little"`, `"big"`), conflicts: []string{"codecs"},
		},
		{
			what: "v2 attributes", name: names.V2Attrs,
			base: `{"a":1}`, ours: `{"a":1,"x":NaN}`, theirs: `{"a":1,"attributes":{"deep":1}}`,
			want: `{"a":1,"x":NaN,"attributes":{"deep":1}}`,
		},
		{
			what: "nested attributes are one value", name: names.V2Attrs,
			base: `{"attributes":{"a":1}}`, ours: `{"attributes":{"a":2}}`, theirs: `{"attributes":{"b":1}}`,
			want: `{"attributes":{"a":2}}`, conflicts: []string{"attributes"},
		},
		{
			what: "attributes that both begin", name: names.V2Attrs,
			ours: `{"a":1}`, theirs: `{"b":1}`, want: `{"a":1,"b":1}`,
		},
		{what: "no JSON", name: names.V3, base: "a", ours: "b", theirs: "c", want: "b", conflicts: []string{""}},
		{what: "another document", name: "notes.json", base: `{}`, ours: `{"a":1}`, theirs: `{"b":1}`, want: `{"a":1}`, conflicts: []string{""}},
		{
			what: "copies of v2", name: names.V2Metadata,
			base:   copies(".zgroup", `{"zarr_format":2}`, "x/.zarray", arrayV2(), "x/.zattrs", `{"a":1}`),
			ours:   copies(".zgroup", `{"zarr_format":2}`, "x/.zarray", arrayV2(`[10,10]`, `[20,10]`), "x/.zattrs", `{"a":1,"b":2}`, "y/.zgroup", `{"zarr_format":2}`),
			theirs: copies(".zgroup", `{"zarr_format":2}`, "x/.zarray", arrayV2(`[10,10]`, `[10,5]`), "x/.zattrs", `{}`),
			want:   copies(".zgroup", `{"zarr_format":2}`, "x/.zarray", arrayV2(`[10,10]`, `[20,5]`), "x/.zattrs", `{"b":2}`, "y/.zgroup", `{"zarr_format":2}`),
		},
		{
			what: "copies of v2 that disagree", name: names.V2Metadata,
			base:   copies("x/.zattrs", `{"a":1}`),
			ours:   copies("x/.zattrs", `{"a":2}`),
			theirs: copies("x/.zattrs", `{"a":3}`),
			want:   copies("x/.zattrs", `{"a":2}`), conflicts: []string{""},
		},
		{
			what: "copies of v2, one gone and changed", name: names.V2Metadata,
			base:   copies("x/.zattrs", `{"a":1}`, "y/.zattrs", `{}`),
			ours:   copies("y/.zattrs", `{}`),
			theirs: copies("x/.zattrs", `{"a":3}`, "y/.zattrs", `{}`),
			want:   copies("y/.zattrs", `{}`), conflicts: []string{""},
		},
		{
			what: "inline copies", name: names.V3,
			base:   inline(`{}`, "x", arrayV3(), "old", arrayV3()),
			ours:   inline(`{"o":1}`, "x", arrayV3(`"a":1`, `"a":7`), "old", arrayV3(), "new", arrayV3()),
			theirs: inline(`{"t":1}`, "x", arrayV3(`[10,10]`, `[10,30]`)),
			want:   inline(`{"o":1,"t":1}`, "x", arrayV3(`"a":1`, `"a":7`, `[10,10]`, `[10,30]`), "new", arrayV3()),
		},
		{
			what: "inline copies that disagree are left out", name: names.V3,
			base:   inline(`{}`, "x", arrayV3()),
			ours:   inline(`{}`, "x", arrayV3(`"a":1`, `"a":7`)),
			theirs: inline(`{}`, "x", arrayV3(`"a":1`, `"a":8`)),
			want:   `{"zarr_format":3,"node_type":"group","attributes":{}}`,
		},
		{
			what: "an inline copy that one side removed is left out", name: names.V3,
			base:   inline(`{}`, "x", arrayV3()),
			ours:   `{"zarr_format":3,"node_type":"group","attributes":{}}`,
			theirs: inline(`{}`, "x", arrayV3(`"a":1`, `"a":8`)),
			want:   `{"zarr_format":3,"node_type":"group","attributes":{}}`,
		},
	} {
		var base []byte
		if c.base != "" {
			base = []byte(c.base)
		}
		merged, conflicts, err := (Policy{}).MergeDocument(c.name, base, []byte(c.ours), []byte(c.theirs), c.strict)
		if err != nil {
			t.Errorf("%s: %v", c.what, err)
			continue
		}
		var fields []string
		for _, f := range conflicts {
			fields = append(fields, f.Field)
			if f.Ours == "" && f.Theirs == "" {
				t.Errorf("%s: a conflict without values", c.what)
			}
		}
		if !slices.Equal(fields, c.conflicts) {
			t.Errorf("%s: conflicts %q, want %q", c.what, fields, c.conflicts)
		}
		if !equalJSON(merged, []byte(c.want)) {
			t.Errorf("%s:\n got %s\nwant %s", c.what, merged, c.want)
		}
	}
}

// Attributes merge name by name: an attribute that only one side changed has the value of that
// side.
func TestPolicyMergeAttributes(t *testing.T) {
	for _, c := range []struct{ base, ours, theirs, want, conflicts string }{
		{`{}`, `{}`, `{}`, `{}`, `[]`},
		{`{"a":1}`, `{"a":1,"b":2}`, `{"a":1,"c":3}`, `{"a":1,"b":2,"c":3}`, `[]`},
		{`{"a":1,"b":1}`, `{"a":2,"b":1}`, `{"a":1,"b":3}`, `{"a":2,"b":3}`, `[]`},
		{`{"a":1}`, `{"a":2}`, `{"a":2}`, `{"a":2}`, `[]`},
		{`{"a":1}`, `{"a":2}`, `{"a":3}`, `{"a":2}`, `[a]`},
		{`{}`, `{"a":2}`, `{"a":3}`, `{"a":2}`, `[a]`},
		{`{"a":1}`, `{}`, `{"a":1}`, `{}`, `[]`},
		{`{"a":1}`, `{"a":1}`, `{}`, `{}`, `[]`},
		{`{"a":1}`, `{}`, `{"a":2}`, `{}`, `[a]`},
		{`{"a":1}`, `{"a":2}`, `{}`, `{"a":2}`, `[a]`},
		{`{"a":1}`, `{}`, `{}`, `{}`, `[]`},
		{`{"a":[1, 2]}`, `{"a":[1,2]}`, `{"a":[3]}`, `{"a":[3]}`, `[]`},
	} {
		merged, conflicts, err := (Policy{}).MergeDocument(names.V2Attrs, []byte(c.base), []byte(c.ours), []byte(c.theirs), false)
		fields := []string{}
		for _, f := range conflicts {
			fields = append(fields, f.Field)
		}
		if err != nil || !equalJSON(merged, []byte(c.want)) || fmt.Sprint(fields) != c.conflicts {
			t.Errorf("%s: %s + %s = %s, conflicts %v, %v; want %s, %s", c.base, c.ours, c.theirs, merged, fields, err, c.want, c.conflicts)
		}
	}
}

// equalJSON compares documents whatever the order of members; NaN may stand bare.
func equalJSON(a, b []byte) bool {
	var x, y any
	fix := func(b []byte) []byte { return []byte(strings.ReplaceAll(string(b), "NaN", `"NaN"`)) }
	if json.Unmarshal(fix(a), &x) != nil || json.Unmarshal(fix(b), &y) != nil {
		return string(a) == string(b)
	}
	return reflect.DeepEqual(x, y)
}

func FuzzMergeDocument(f *testing.F) {
	f.Add(names.V3, arrayV3(), arrayV3(`"a":1`, `"a":2`), arrayV3(`[10,10]`, `[1,10]`))
	f.Add(names.V2Attrs, `{"a":1}`, `{}`, `{"a":NaN,"b":[{}]}`)
	f.Add(names.V2Metadata, `{"metadata":{}}`, `{"metadata":{"a/.zattrs":{}}}`, `{"metadata":{"a/.zattrs":{"x":1}}}`)
	f.Add(names.V3, `{}`, `{"consolidated_metadata":{"metadata":{"a":[]}}}`, `{"consolidated_metadata":{"metadata":{"a":{}}}}`)
	f.Fuzz(func(t *testing.T, name, base, ours, theirs string) {
		p := Policy{}
		merged, conflicts, err := p.MergeDocument(name, []byte(base), []byte(ours), []byte(theirs), false)
		must.Do(t, err)
		if len(conflicts) > 0 || !mergeable(name) {
			return
		}
		if _, err := ParseObject(merged); err != nil {
			t.Fatalf("%s merged to %s", name, merged)
		}
		back, conflicts, err := p.MergeDocument(name, []byte(base), []byte(theirs), []byte(ours), false)
		if err != nil || len(conflicts) > 0 {
			t.Fatalf("the other way round: %v %v", conflicts, err)
		}
		a, _ := ParseObject(merged)
		b, _ := ParseObject(back)
		for _, k := range UnionKeys(a, b) {
			if !equalJSON(a.Values[k], b.Values[k]) {
				t.Fatalf("%s: %s, the other way round %s", k, a.Values[k], b.Values[k])
			}
		}
		p.Forms(name, merged)
		p.Structure(name, merged)
	})
}
