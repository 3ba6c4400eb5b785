package convert

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/zarrdb/zarrdb/codecs/builtin"
	"github.com/zarrdb/zarrdb/engine/internal/transfer"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/zarr"
)

const (
	omeAxes = `"axes":[{"name":"c","type":"channel"},{"name":"y","type":"space"},{"name":"x","type":"space"}]`
	omeSets = `"datasets":[{"path":"0","coordinateTransformations":[{"type":"scale","scale":[1,1.0,5e-1]}]}]`
	omeRest = `"name":"i",` + omeAxes + `,` + omeSets
	omePath = `"rows":[{"name":"A"}],"columns":[{"name":"1"}],"wells":[{"path":"A/1","rowIndex":0,"columnIndex":0}]`
	omeNuc  = `"colors":[{"label-value":1,"rgba":[255,0,0,255]}]`
)

// omeStores are one collection in both versions: the attributes of each group.
var omeStores = map[zarr.Version]map[string]string{
	zarr.V2: {
		"":                      `{"mine":{"a":1},"plate":{"version":"0.4",` + omePath + `},"bioformats2raw.layout":3}`,
		"A/1":                   `{"well":{"version":"0.4","images":[{"path":"0"}]}}`,
		"A/1/0":                 `{"multiscales":[{"version":"0.4",` + omeRest + `}],"omero":{"version":"0.4","channels":[]},"plate":"not OME-Zarr"}`,
		"A/1/0/labels":          `{"labels":["deep/nuc"]}`,
		"A/1/0/labels/deep":     `{"labels":["no OME-Zarr"],"series":["a"],"omero":{},"well":1}`,
		"A/1/0/labels/deep/nuc": `{"multiscales":[{"version":"0.4",` + omeRest + `}],"image-label":{"version":"0.4",` + omeNuc + `}}`,
		"OME":                   `{"series":["A/1/0"]}`,
	},
	zarr.V3: {
		"":                      `{"mine":{"a":1},"ome":{"version":"0.5","plate":{` + omePath + `},"bioformats2raw.layout":3}}`,
		"A/1":                   `{"ome":{"version":"0.5","well":{"images":[{"path":"0"}]}}}`,
		"A/1/0":                 `{"plate":"not OME-Zarr","ome":{"version":"0.5","multiscales":[{` + omeRest + `}],"omero":{"channels":[]}}}`,
		"A/1/0/labels":          `{"ome":{"version":"0.5","labels":["deep/nuc"]}}`,
		"A/1/0/labels/deep":     `{"labels":["no OME-Zarr"],"series":["a"],"omero":{},"well":1}`,
		"A/1/0/labels/deep/nuc": `{"ome":{"version":"0.5","multiscales":[{` + omeRest + `}],"image-label":{` + omeNuc + `}}}`,
		"OME":                   `{"ome":{"version":"0.5","series":["A/1/0"]}}`,
	},
}

func omeStore(t *testing.T, v zarr.Version) *kv.Mem {
	t.Helper()
	store := kv.NewMem()
	set := func(key, doc string) {
		must.Do(t, store.Set(t.Context(), strings.TrimPrefix(key, "/"), []byte(doc)))
	}
	for path, attrs := range omeStores[v] {
		if v == zarr.V2 {
			set(path+"/.zgroup", `{"zarr_format":2}`)
			set(path+"/.zattrs", attrs)
		} else {
			set(path+"/zarr.json", `{"zarr_format":3,"node_type":"group","attributes":`+attrs+`}`)
		}
	}
	set("OME/METADATA.ome.xml", "<OME/>")
	for _, path := range []string{"A/1/0", "A/1/0/labels/deep/nuc"} {
		if v == zarr.V2 {
			set(path+"/0/.zarray", `{"zarr_format":2,"shape":[2,2,2],"chunks":[1,2,2],"dtype":"|u1","fill_value":0,"order":"C","compressor":null,"filters":null,"dimension_separator":"/"}`)
			set(path+"/0/1/0/0", "abcd")
		} else {
			set(path+"/0/zarr.json", `{"zarr_format":3,"node_type":"array","shape":[2,2,2],"data_type":"uint8","chunk_grid":{"name":"regular","configuration":{"chunk_shape":[1,2,2]}},"chunk_key_encoding":{"name":"default"},"fill_value":0,"codecs":[{"name":"bytes"}],"dimension_names":["c","y","x"],"attributes":{}}`)
			set(path+"/0/c/1/0/0", "abcd")
		}
	}
	return store
}

func contents(t *testing.T, store kv.ReadLister) map[string]string {
	t.Helper()
	out := map[string]string{}
	for key, err := range store.List(t.Context(), kv.ListOptions{}) {
		must.Do(t, err)
		doc := must.Get(kv.Get(t.Context(), store, key))(t)
		out[key] = string(doc)
	}
	return out
}

// OME-Zarr metadata moves to where the version for the format has it, in exports and views.
func TestOME(t *testing.T) {
	open := &zarr.OpenOptions{Registry: builtin.Registry()}
	for from, to := range map[zarr.Version]zarr.Version{zarr.V2: zarr.V3, zarr.V3: zarr.V2} {
		store := omeStore(t, from)
		plan := must.Get(New(t.Context(), store, "", open, to, Options{Written: 1 << 20}))(t)
		if err := plan.LeaveKeys(store.List(t.Context(), kv.ListOptions{})); err != nil || plan.AllNotes != 0 || plan.AllBehind != 0 {
			t.Errorf("to v%v: %q, left behind %q, %v", to, plan.Notes, plan.Behind, err)
		}
		out := kv.NewMem()
		report := func(int64) {}
		must.Do(t, plan.CopyChunks(t.Context(), out, transfer.NewPool(2), report))
		must.Do(t, plan.CopyDocuments(t.Context(), out, report))
		got := contents(t, out)
		want := contents(t, omeStore(t, to))
		view := contents(t, NewView(store, open, to, true))
		for _, key := range slices.Sorted(maps.Keys(want)) {
			if !sameDocument(got[key], want[key]) {
				t.Errorf("to v%v: %s is %s, not %s", to, key, got[key], want[key])
			}
			if listed := view[key]; got[key] != listed {
				t.Errorf("to v%v: %s of the view is %s, not %s", to, key, listed, got[key])
			}
		}
		for key := range got {
			if _, ok := want[key]; !ok && (!strings.HasSuffix(key, ".zattrs") || got[key] != "{}" && got[key] != "{}\n") {
				t.Errorf("to v%v: %s came from nowhere", to, key)
			}
		}
	}
}

// sameDocument compares JSON by its values, numbers by their text, and other bytes as they are.
func sameDocument(a, b string) bool {
	values := func(text string) string {
		d := json.NewDecoder(strings.NewReader(text))
		d.UseNumber()
		var v any
		if d.Decode(&v) != nil {
			return text
		}
		if m, ok := v.(map[string]any); ok {
			delete(m, "chunk_key_encoding") // its defaults may be left out
			if m["attributes"] != nil && len(m["attributes"].(map[string]any)) == 0 {
				delete(m, "attributes")
			}
		}
		return fmt.Sprint(v)
	}
	return values(a) == values(b)
}

// Metadata without a form in the other version stays as it is, and is named.
func TestOMEWithoutForm(t *testing.T) {
	for _, c := range []struct {
		from  zarr.Version
		attrs string
		want  string // text of the note; empty if the attributes are not of OME-Zarr, so that no note is made
	}{
		{zarr.V2, `{"multiscales":[{"version":"0.3","axes":["y","x"],"datasets":[{"path":"0"}]}],"omero":{}}`, `multiscales[0]: "0" is no array with the axes y, x`},
		{zarr.V2, `{"multiscales":[{"version":"0.4",` + omeAxes + `,"datasets":[{"path":"0"}]}]}`, `dataset "0" has no coordinateTransformations`},
		{zarr.V2, `{"multiscales":[{"version":"0.4",` + omeRest + `}],"ome":1}`, `attribute "ome" already`},
		{zarr.V2, `{"multiscales":[{"datasets":[{"path":"0","level":0}],"type":"reduce"}],"omero":1}`, ""},
		{zarr.V2, `{"plate":{"rows":[],"columns":[],"wells":[{"path":"A/1"}]}}`, `plate.wells[0]: the path "A/1" is no row and column`},
		{zarr.V2, `{"plate":1,"well":[],"labels":["a"],"series":2,"image-label":[]}`, ""},
		{zarr.V3, `{"ome":{"version":"0.6","multiscales":[]}}`, `ome.version is "0.6"`},
		{zarr.V3, `{"ome":{"version":"0.5","well":{}},"well":1}`, `attribute "well" already`},
		{zarr.V3, `{"ome":{"version":"0.5","plate":3}}`, "plate: not an object"},
		{zarr.V3, `{"ome":"a company"}`, ""},
		{zarr.V3, `{"ome":{"multiscales":1}}`, ""},
	} {
		store, to := kv.NewMem(), zarr.V2
		docs := map[string]string{"zarr.json": `{"zarr_format":3,"node_type":"group","attributes":` + c.attrs + `}`}
		if c.from == zarr.V2 {
			docs, to = map[string]string{".zgroup": `{"zarr_format":2}`, ".zattrs": c.attrs}, zarr.V3
		}
		for key, doc := range docs {
			must.Do(t, store.Set(t.Context(), key, []byte(doc)))
		}
		open := &zarr.OpenOptions{Registry: builtin.Registry()}
		plan, err := New(t.Context(), store, "", open, to, Options{})
		if err != nil {
			t.Errorf("%s: %v", c.attrs, err)
			continue
		}
		if c.want == "" && plan.AllNotes != 0 || c.want != "" && (plan.AllNotes != 1 || !strings.Contains(plan.Notes[0], c.want)) {
			t.Errorf("%s: notes %q, not %q", c.attrs, plan.Notes, c.want)
		}
		n := must.Get(zarr.Open(t.Context(), plan.Documents, "", open))(t)
		if got := string(n.Meta().Attributes.Text()); !sameDocument(got, c.attrs) {
			t.Errorf("%s became %s", c.attrs, got)
		}
	}
}

// Versions before 0.4 become what 0.4 and 0.5 have: axes are objects, levels have the scale of their
// shapes, and wells have indices.
func TestOMEBefore04(t *testing.T) {
	open := &zarr.OpenOptions{Registry: builtin.Registry()}
	level := func(path, rest string, scale ...float64) string {
		text, _ := json.Marshal(scale)
		return `{"path":"` + path + `"` + rest + `,"coordinateTransformations":[{"scale":` + string(text) + `,"type":"scale"}]}`
	}
	axes := strings.Replace(omeAxes, "axes", "name\":\"i\",\"axes", 1)
	tczyx := `"axes":[{"name":"t","type":"time"},{"name":"c","type":"channel"},{"name":"z","type":"space"},{"name":"y","type":"space"},{"name":"x","type":"space"}]`
	for _, c := range []struct {
		attrs, inside, version string
		shapes                 []string
	}{
		{`{"multiscales":[{"version":"0.3","name":"i","axes":["c","y","x"],"datasets":[{"path":"0","k":1},{"path":"1"}]}],"omero":{}}`,
			`"multiscales":[{` + axes + `,"datasets":[` + level("0", `,"k":1`, 1, 1, 1) + `,` + level("1", "", 1, 2, 2) + `]}],"omero":{}`, "0.4", []string{"[2,5,8]", "[2,3,4]"}},
		{`{"multiscales":[{"version":"0.1","datasets":[{"path":"0"},{"path":"1"}]}]}`,
			`"multiscales":[{"datasets":[` + level("0", "", 1, 1, 1, 1, 1) + `,` + level("1", "", 1, 1, 1, 2, 1.6) + `],` + tczyx + `}]`, "0.4", []string{"[1,1,1,4,8]", "[1,1,1,2,5]"}},
		{`{"multiscales":[{"version":"0.2","datasets":[{"path":"0"}]}],"image-label":{"version":"0.2"}}`,
			`"multiscales":[{"datasets":[` + level("0", "", 1, 1, 1, 1, 1) + `],` + tczyx + `}],"image-label":{}`, "0.4", []string{"[1,1,0,4,8]"}},
		{`{"plate":{"version":"0.3","rows":[{"name":"A"},{"name":"B"}],"columns":[{"name":"1"}],"wells":[{"path":"B/1"}]}}`,
			`"plate":{"rows":[{"name":"A"},{"name":"B"}],"columns":[{"name":"1"}],"wells":[{"path":"B/1","rowIndex":1,"columnIndex":0}]}`, "0.4", nil},
	} {
		store := kv.NewMem()
		docs := map[string]string{".zgroup": `{"zarr_format":2}`, ".zattrs": c.attrs}
		for i, shape := range c.shapes {
			docs[fmt.Sprint(i, "/.zarray")] = `{"zarr_format":2,"shape":` + shape + `,"chunks":` + strings.ReplaceAll(shape, "0", "1") + `,"dtype":"|u1","fill_value":0,"order":"C","compressor":null,"filters":null}`
		}
		for key, doc := range docs {
			must.Do(t, store.Set(t.Context(), key, []byte(doc)))
		}
		plan := must.Get(New(t.Context(), store, "", open, zarr.V3, Options{}))(t)
		n := must.Get(zarr.Open(t.Context(), plan.Documents, "", open))(t)
		want := `{"ome":{"version":"0.5",` + c.inside + `}}`
		if got := string(n.Meta().Attributes.Text()); !sameDocument(got, want) || plan.AllNotes != 0 {
			t.Errorf("%s became\n%s, want\n%s; notes %q", c.attrs, got, want, plan.Notes)
		}
		if len(c.shapes) == 0 {
			continue
		}
		a := must.Get(zarr.OpenArray(t.Context(), plan.Documents, "0", open))(t)
		if l, err := a.Image(t.Context()); err != nil || l == nil || strings.Join(a.DimensionNames(), "") != strings.Join(l.Names(), "") || l.Scale == nil {
			t.Errorf("%s: dimensions %q, %v", c.attrs, a.DimensionNames(), err)
		}
		view := must.Get(zarr.Open(t.Context(), NewView(store, open, zarr.V3, true), "", open))(t)
		if got := string(view.Meta().Attributes.Text()); !sameDocument(got, want) {
			t.Errorf("%s: a view has %s", c.attrs, got)
		}
	}
}

// An array has the names of its image's axes if only the array is converted, and none of
// another image or of another number of dimensions.
func TestOMEAxes(t *testing.T) {
	open := &zarr.OpenOptions{Registry: builtin.Registry()}
	store := omeStore(t, zarr.V2)
	plan, err := New(t.Context(), store, "A/1/0/0", open, zarr.V3, Options{})
	must.Do(t, err)
	a := must.Get(zarr.OpenArray(t.Context(), plan.Documents, "", open))(t)
	if d := a.Meta().DimensionNames; len(d) != 3 || *d[0] != "c" || *d[2] != "x" {
		t.Errorf("dimensions %v", d)
	}
	m := a.Meta().Clone()
	m.DimensionNames = m.DimensionNames[:2]
	if err := checkAxes(m, a.Meta().DimensionNames); err == nil {
		t.Error("other dimensions than axes are not named")
	}
	doc := strings.Replace(contents(t, store)["A/1/0/0/.zarray"], `[2,2,2]`, `[2,2]`, 1)
	must.Do(t, store.Set(t.Context(), "A/1/0/0/.zarray", []byte(strings.Replace(doc, `[1,2,2]`, `[2,2]`, 1))))
	if plan, err = New(t.Context(), store, "", open, zarr.V3, Options{}); err != nil || plan.AllNotes != 1 || !strings.HasPrefix(plan.Notes[0], "/A/1/0/0: ") {
		t.Errorf("notes %q, %v", plan.Notes, err)
	}
}

// ome-zarr-py writes the group of labels without a version.
func TestOMELabelsWithoutVersion(t *testing.T) {
	attrs := must.Get(zarr.ParseAttributes([]byte(`{"ome":{"labels":["nuclei"]}}`)))(t)
	got, err := ome04(attrs, "labels", nil)
	if text := string(got.Text()); err != nil || text != `{"labels":["nuclei"]}` {
		t.Errorf("%s, %v", text, err)
	}
	// Metadata for Zarr v2 in a group of v3.
	attrs = must.Get(zarr.ParseAttributes([]byte(`{"multiscales":[{"version":"0.3","axes":["x"],"datasets":[{"path":"0"}]}]}`)))(t)
	got, err = ome04(attrs, "", func(string) []int64 { return []int64{4} })
	if text := string(got.Text()); err != nil || text != `{"multiscales":[{"axes":[{"name":"x","type":"space"}],"datasets":[{"path":"0","coordinateTransformations":[{"scale":[1],"type":"scale"}]}],"version":"0.4"}]}` {
		t.Errorf("%s, %v", text, err)
	}
}
