package engine

import (
	"bytes"
	"compress/zlib"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/zarr"
	"github.com/zarrdb/zarrdb/zarr/meta"
)

// smallSet is a reference set in memory, all of whose values stand in it: by
// key, documents as what JSON makes of them, chunks as their bytes.
type smallSet map[string]any

// array adds an array of Zarr v2, whose members may be replaced by others.
func (s smallSet) array(path, dtype string, shape, chunks []int, dims []string, chunk map[string]string) {
	s[path+"/.zarray"] = map[string]any{
		"zarr_format": 2, "shape": shape, "chunks": chunks, "dtype": dtype, "compressor": nil, "filters": nil, "fill_value": 0, "order": "C",
	}
	s[path+"/.zattrs"] = map[string]any{"_ARRAY_DIMENSIONS": dims}
	for key, data := range chunk {
		s[path+"/"+key] = []byte(data)
	}
}

// doc is the ".zarray" of an array, attrs its attributes.
func (s smallSet) doc(path string) map[string]any   { return s[path+"/.zarray"].(map[string]any) }
func (s smallSet) attrs(path string) map[string]any { return s[path+"/.zattrs"].(map[string]any) }

// rename gives an array another path.
func (s smallSet) rename(from, to string) {
	for _, key := range slices.Collect(maps.Keys(s)) {
		if rest, ok := strings.CutPrefix(key, from+"/"); ok {
			if to != "" {
				s[to+"/"+rest] = s[key]
			}
			delete(s, key)
		}
	}
}

// write writes the set and returns its path.
func (s smallSet) write(t testing.TB, name string) string {
	t.Helper()
	text := maps.Clone(s)
	for key, v := range s {
		if b, ok := v.([]byte); ok {
			text[key] = "base64:" + base64.StdEncoding.EncodeToString(b)
		}
	}
	b := must.Get(json.Marshal(text))(t)
	return folder(t, map[string]string{name: string(b)}) + "/" + name
}

// dailySet is the set of a file as there is one a day: two times, a field, what is
// the same in all of them, and a group with times of its own.
func dailySet(day int) smallSet {
	n := byte(2 * day)
	s := smallSet{".zgroup": map[string]any{"zarr_format": 2}, "g/.zgroup": map[string]any{"zarr_format": 2}}
	s.array("time", "|i1", []int{2}, []int{2}, []string{"time"}, map[string]string{"0": string([]byte{n, n + 1})})
	s.array("t", "<i2", []int{2, 2}, []int{1, 2}, []string{"time", "x"}, map[string]string{"0.0": string([]byte{n, 1, n, 2}), "1.0": string([]byte{n + 1, 1, n + 1, 2})})
	s.array("x", "|i1", []int{2}, []int{2}, []string{"x"}, map[string]string{"0": "ab"})
	s.array("crs", "|i1", []int{}, []int{}, []string{}, map[string]string{"0": "c"})
	s.array("g/time", "|i1", []int{1}, []int{1}, []string{"time"}, map[string]string{"0": string([]byte{n})})
	return s
}

// textOf are the bytes of all elements.
func textOf(t testing.TB, a *zarr.Array) string {
	t.Helper()
	n := a.Type().Size()
	for _, d := range a.Shape() {
		n *= int(d)
	}
	b := make([]byte, n)
	must.Do(t, a.ReadBytes(bg, zarr.Sel(), b))
	return string(b)
}

// joins appends sets, linked and, if copied, in the other way too, at once and one
// after the other, and calls done with the database after each.
func joins(t *testing.T, sets []smallSet, copied bool, done func(mode string, db *DB, err error)) {
	t.Helper()
	pieces, links := pieces(t, sets...), []bool{true}
	if copied {
		links = append(links, false)
	}
	for _, link := range links {
		for _, step := range []int{1, len(pieces)} {
			db := openDB(t, nil)
			var err error
			for lo := 0; lo < len(pieces) && err == nil; lo += step {
				before := head(t, db, "")
				if _, err = appendAll(db, "time", link, ImportOptions{}, pieces[lo:min(lo+step, len(pieces))]...); err != nil {
					unchanged(t, db, before)
				}
			}
			done(fmt.Sprintf("link %v, %d at a time", link, step), db, err)
		}
	}
}

// Attributes that define the meaning of numbers are compared, whichever piece has them.
// Attributes that only describe are not compared.
func TestAppendAttributes(t *testing.T) {
	if testing.Short() {
		t.Skip("the work of one goroutine, many times")
	}
	type edit = func(attrs map[string]any)
	set := func(name string, v any) edit { return func(a map[string]any) { a[name] = v } }
	both := func(a, b edit) edit { return func(m map[string]any) { a(m); b(m) } }
	type test struct {
		path          string
		first, second edit
		want          string // "" if it fits
	}
	nothing := func(map[string]any) {}
	tests := map[string]test{
		"integer and float":  {"t", set("scale_factor", 1), set("scale_factor", json.RawMessage("1.0")), ""},
		"spelling":           {"t", set("scale_factor", json.RawMessage("10.0")), set("scale_factor", json.RawMessage("1e1")), ""},
		"long integers":      {"t", set("_FillValue", json.RawMessage("9223372036854775807")), set("_FillValue", json.RawMessage("9223372036854775806")), "_FillValue is 9223372036854775807 in f0.json, but 9223372036854775806 in f1.json"},
		"nearly the same":    {"t", set("scale_factor", json.RawMessage("0.1")), set("scale_factor", json.RawMessage("0.1000000001")), "scale_factor is 0.1 in f0.json, but 0.1000000001 in f1.json"},
		"text and number":    {"t", set("scale_factor", "1"), set("scale_factor", 1), `scale_factor is "1" in f0.json, but 1 in f1.json`},
		"texts":              {"t", set("units", "K"), set("units", "degC"), `units is "K" in f0.json, but "degC" in f1.json`},
		"lists":              {"t", set("valid_range", []int{0, 5}), set("valid_range", []int{0, 6}), "valid_range is [0,5] in f0.json, but [0,6] in f1.json"},
		"of what stays":      {"x", set("units", "m"), set("units", "km"), `/x: attribute units is "m" in f0.json, but "km" in f1.json`},
		"in a group":         {"g/time", set("units", "days"), set("units", "hours"), `/g/time: attribute units is "days" in f0.json, but "hours" in f1.json`},
		"history":            {"t", set("history", "made"), set("history", "made again"), ""},
		"long_name":          {"t", set("long_name", "a"), nothing, ""},
		"a number elsewhere": {"crs", set("earth_radius", 1), set("earth_radius", 2), ""},
	}
	for _, name := range []string{
		"scale_factor", "add_offset", "_Unsigned", "units", "units_metadata", "calendar", "month_lengths", "leap_month", "leap_year",
		"_FillValue", "missing_value", "valid_min", "valid_max", "valid_range", "flag_values", "flag_masks", "flag_meanings",
		"positive", "standard_name", "grid_mapping", "formula_terms", "compress",
	} {
		tests[name+" differs"] = test{"t", set(name, 1), set(name, 2), "/t: attribute " + name + " is 1 in f0.json, but 2 in f1.json"}
		tests[name+" is missing"] = test{"t", set(name, 1), nothing, "/t: attribute " + name + " is 1 in f0.json, but missing in f1.json"}
		tests[name+" is new"] = test{"t", nothing, set(name, 1), "/t: attribute " + name + " is missing in f0.json, but 1 in f1.json"}
		tests[name+" is the same"] = test{"t", set(name, 1), set(name, 1), ""}
	}
	for _, name := range []string{"grid_mapping_name", "crs_wkt", "spatial_ref"} {
		system := set(name, "here")
		tests[name] = test{"crs", system, set(name, "there"), `/crs: attribute ` + name + ` is "here" in f0.json, but "there" in f1.json`}
		tests["parameter of "+name] = test{"crs", both(system, set("earth_radius", 1)), both(system, set("earth_radius", 2)), `/crs: attribute earth_radius is 1 in f0.json, but 2 in f1.json`}
		tests["more beside "+name] = test{"crs", system, both(system, set("earth_radius", 2)), `/crs: attribute earth_radius is missing in f0.json, but 2 in f1.json`}
		tests["description of "+name] = test{"crs", both(system, set("long_name", 1)), both(system, set("comment", 2)), ""}
		tests["dimensions beside "+name] = test{"crs", system, both(system, func(a map[string]any) { delete(a, "_ARRAY_DIMENSIONS") }), ""}
	}
	for name, c := range tests {
		t.Run(name, func(t *testing.T) {
			a, b := dailySet(0), dailySet(1)
			c.first(a.attrs(c.path))
			c.second(b.attrs(c.path))
			_, err := PlanAppend(bg, []Piece{pieceOf(a.write(t, "f0.json"), Follow{}), pieceOf(b.write(t, "f1.json"), Follow{})}, AppendOptions{Dim: "time", Link: true})
			switch {
			case c.want == "" && err != nil:
				t.Errorf("error %v", err)
			case c.want != "" && (!errors.Is(err, ErrMisfit) || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n")):
				t.Errorf("error %v\nwant %s", err, c.want)
			}
		})
	}
}

func deflated(text string) string {
	var b bytes.Buffer
	w := zlib.NewWriter(&b)
	w.Write([]byte(text)) // into memory
	w.Close()
	return b.String()
}

// What keeps arrays from being joined is named, with what both have; what does
// not, is joined to the right values.
func TestAppendFields(t *testing.T) {
	if testing.Short() {
		t.Skip("the work of one goroutine, many times")
	}
	all := map[string]string{"time": "\x00\x01\x02\x03", "t": "\x00\x01\x00\x02\x01\x01\x01\x02\x02\x01\x02\x02\x03\x01\x03\x02", "x": "ab", "crs": "c", "g/time": "\x00\x02"}
	for _, test := range []struct {
		name string
		edit func(second smallSet)
		want string // "" if it fits
	}{
		{"the same", func(smallSet) {}, ""},
		{"byte order", func(s smallSet) { s.doc("t")["dtype"] = ">i2" }, "/t: data_type is "},
		{"sign", func(s smallSet) { s.doc("t")["dtype"] = "<u2" }, "/t: data_type is int16 in f0.json, but uint16 in f1.json"},
		{"order", func(s smallSet) { s.doc("t")["order"] = "F" }, `/t: codecs is order "C", filters null, compressor null in f0.json, but order "F", filters null, compressor null in f1.json`},
		{"compressor", func(s smallSet) { s.doc("t")["compressor"] = map[string]any{"id": "zlib", "level": 1} }, `/t: codecs is order "C", filters null, compressor null in f0.json, but order "C", filters null, compressor {"id":"zlib","level":1} in f1.json`},
		{"filters", func(s smallSet) { s.doc("t")["filters"] = []any{map[string]any{"id": "shuffle", "elementsize": 2}} }, `/t: codecs is order "C", filters null,`},
		{"fill value", func(s smallSet) { s.doc("t")["fill_value"] = 1 }, "/t: fill_value is 0 in f0.json, but 1 in f1.json"},
		{"no fill value", func(s smallSet) { s.doc("t")["fill_value"] = nil }, "/t: fill_value is 0 in f0.json, but null in f1.json"},
		{"fill value of what stays", func(s smallSet) { s.doc("x")["fill_value"] = 1 }, ""},
		{"names", func(s smallSet) { s.attrs("t")["_ARRAY_DIMENSIONS"] = []string{"time", "y"} }, `/t: dimension_names is ["time" "x"] in f0.json, but ["time" "y"] in f1.json`},
		{"no names", func(s smallSet) { delete(s.attrs("t"), "_ARRAY_DIMENSIONS") }, `/t: dimension_names is ["time" "x"] in f0.json, but [] in f1.json`},
		{"chunks", func(s smallSet) { s.doc("t")["chunks"] = []int{2, 2} }, "/t: chunk_grid is [1 2] in f0.json, but [2 2] in f1.json"},
		{"longer chunks of another dimension", func(s smallSet) { s.doc("t")["chunks"] = []int{1, 3} }, "/t: chunk_grid is [1 2] in f0.json, but [1 3] in f1.json"},
		{"shape", func(s smallSet) { s.doc("t")["shape"] = []int{2, 3} }, "/t: shape is [2 2] in f0.json, but [2 3] in f1.json"},
		{"lower rank", func(s smallSet) {
			s.array("t", "<i2", []int{2}, []int{1}, []string{"time"}, nil)
		}, "/t: shape is [2 2] in f0.json, but [2] in f1.json"},
		{"no rank", func(s smallSet) { s.array("t", "<i2", []int{}, []int{}, []string{}, nil) }, "/t: shape is [2 2] in f0.json, but [] in f1.json"},
		{"higher rank", func(s smallSet) {
			s.array("t", "<i2", []int{2, 2, 1}, []int{1, 2, 1}, []string{"time", "x", "y"}, nil)
		}, "/t: shape is [2 2] in f0.json, but [2 2 1] in f1.json"},
		{"higher rank of what stays", func(s smallSet) {
			s.array("x", "|i1", []int{2, 1}, []int{2, 1}, []string{"x", "y"}, nil)
		}, "/x: shape is [2] in f0.json, but [2 1] in f1.json"},
		{"values of what stays", func(s smallSet) { s["x/0"] = []byte("aB") }, "/x: values is one set of elements in f0.json, but another in f1.json"},
		{"value of no dimension", func(s smallSet) { s["crs/0"] = []byte("C") }, "/crs: values is one set of elements in f0.json, but another in f1.json"},
		{"no array", func(s smallSet) { s.rename("t", "") }, "/t: array is there in f0.json, but missing in f1.json"},
		{"another array", func(s smallSet) { s.rename("x", "y") }, "/y: array is missing in f0.json, but there in f1.json"},
		{"fewer that stay", func(s smallSet) { s.rename("x", "") }, ""},
		{"longer", func(s smallSet) { s.doc("t")["shape"] = []int{3, 2} }, "/time: length along time is 3 in f1.json, /t, but 2 in f1.json"},
		{"shorter", func(s smallSet) { s.doc("t")["shape"] = []int{1, 2} }, "/time: length along time is 1 in f1.json, /t, but 2 in f1.json"},
		{"other keys", func(s smallSet) {
			s.doc("t")["dimension_separator"] = "/"
			for i := range 2 {
				old := fmt.Sprintf("t/%d.0", i)
				s[fmt.Sprintf("t/%d/0", i)] = s[old]
				delete(s, old)
			}
		}, ""},
		{"chunks of what stays", func(s smallSet) {
			s.array("x", "|i1", []int{2}, []int{1}, []string{"x"}, map[string]string{"0": "a", "1": "b"})
		}, ""},
		{"codecs of what stays", func(s smallSet) {
			s.doc("x")["compressor"], s["x/0"] = map[string]any{"id": "zlib", "level": 1}, []byte(deflated("ab"))
		}, ""},
		{"a chunk that is none", func(s smallSet) { s["t/2.0"], s["t/0.1"], s["time/1"] = []byte("zzzz"), []byte("zzzz"), []byte("zz") }, ""},
		{"longer chunks of coordinates", func(s smallSet) { s.doc("time")["chunks"], s["time/0"] = []int{3}, []byte("\x02\x03z") }, ""},
		{"shorter chunks of coordinates", func(s smallSet) {
			s.doc("time")["chunks"], s["time/0"], s["time/1"] = []int{1}, []byte("\x02"), []byte("\x03")
		}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			second := dailySet(1)
			test.edit(second)
			joins(t, []smallSet{dailySet(0), second}, test.want == "", func(mode string, db *DB, err error) {
				if test.want == "" {
					if err != nil {
						t.Fatalf("%s: %v", mode, err)
					}
					s := at(t, db, "")
					for path, want := range all {
						if got := textOf(t, array(t, s, path)); got != want {
							t.Errorf("%s: /%s holds %q, want %q", mode, path, got, want)
						}
					}
					return
				}
				want := test.want
				if strings.Contains(mode, "1 at") { // compared with what is there
					path, _, _ := strings.Cut(strings.TrimPrefix(want, "/"), ":")
					want = strings.ReplaceAll(want, "in f0.json", "in /"+path+" of the database")
				}
				if !errors.Is(err, ErrMisfit) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
					t.Errorf("%s: error %v\nwant %s", mode, err, want)
				}
			})
		})
	}
}

// Very many attributes are compared in a time that grows with their number.
func TestMisfitOfManyAttributes(t *testing.T) {
	if testing.Short() {
		t.Skip("the work of one goroutine, many times")
	}
	const n = 200_000
	group := func(value int) *zarr.Meta {
		var doc strings.Builder
		doc.WriteString(`{"zarr_format":3,"node_type":"group","attributes":{"grid_mapping_name":"x"`)
		for i := range n {
			fmt.Fprintf(&doc, `,"k%06d":%d`, i, value)
		}
		doc.WriteString("}}")
		m := must.Get(meta.ParseV3([]byte(doc.String()), nil))(t)
		return m
	}
	a, b := group(1), group(2)
	begun := time.Now()
	different := 0
	ours, theirs := maps.Collect(a.Attributes.All()), maps.Collect(b.Attributes.All())
	for _, name := range attributeNames(ours, theirs) {
		if !sameAttribute(ours[name], theirs[name]) {
			different++
		}
	}
	if took := time.Since(begun); different != n || took > 20*time.Second {
		t.Errorf("%d differ, after %v", different, took)
	}
}
