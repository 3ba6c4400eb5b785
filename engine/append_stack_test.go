package engine

import (
	"strings"
	"testing"

	"github.com/zarrdb/zarrdb/codecs/builtin"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/zarr/meta"
)

// Labels are dates where they begin with a year and a month, and else texts.
func TestLabelTypes(t *testing.T) {
	for _, c := range []struct {
		labels []string
		typ    string
		units  string
	}{
		{[]string{"1", "-2"}, "int64", ""},
		{[]string{"1", "2.5"}, "float64", ""},
		{[]string{"2001-02", "2001-02-03"}, "int64", dayUnits},
		{[]string{"2001-02-03", "2001-02-03T12"}, "int64", secondUnits},
		{[]string{"00Z", "12Z"}, "fixed_length_utf32[12]", ""},
		{[]string{"1-1", "1-2"}, "fixed_length_utf32[12]", ""},
		{[]string{"1", "12345678901234567890"}, "fixed_length_utf32[80]", ""},
		{[]string{"2.5", "9007199254740993"}, "fixed_length_utf32[64]", ""},
		{[]string{"r1", "nan"}, "fixed_length_utf32[12]", ""},
	} {
		l, err := newLabels(c.labels)
		if err != nil || l.t.String() != c.typ || l.units != c.units {
			t.Errorf("%q: %v %q, %v, want %s %q", c.labels, l.t, l.units, err, c.typ, c.units)
		}
	}
}

// An array gets the new dimension and keeps its attributes, also NaN and infinities, which
// Python writes without quotes.
func TestStackedAttributes(t *testing.T) {
	const attrs = `{"missing_value":NaN,"valid_range":[-Infinity,9007199254740993]`
	r := builtin.Registry()
	v2 := must.Get(meta.ParseV2Array([]byte(`{"zarr_format":2,"shape":[4,6],"chunks":[2,3],"dtype":"<f4","fill_value":NaN,"order":"C","filters":null,"compressor":null}`),
		[]byte(attrs+`,"_ARRAY_DIMENSIONS":["y","x"]}`), r))(t)
	v3 := must.Get(meta.ParseV3([]byte(`{"zarr_format":3,"node_type":"array","shape":[4,6],"data_type":"float32","fill_value":"NaN","attributes":`+attrs+`},"dimension_names":["y","x"],
		"chunk_grid":{"name":"regular","configuration":{"chunk_shape":[2,3]}},"chunk_key_encoding":{"name":"default"},
		"codecs":[{"name":"transpose","configuration":{"order":[1,0]}},{"name":"bytes","configuration":{"endian":"little"}}]}`), r))(t)
	for _, m := range []*meta.Meta{v2, v3} {
		got, err := stacked(m, "run", r)
		if err != nil {
			t.Errorf("v%v: %v", m.Version, err)
			continue
		}
		docs := must.Get(got.Print())(t)
		text := ""
		for _, doc := range docs {
			text += strings.Join(strings.Fields(string(doc)), "")
		}
		for _, want := range []string{`"missing_value":NaN`, `[-Infinity,9007199254740993]`, `["run","y","x"]`, `[1,4,6]`, `[1,2,3]`} {
			if !strings.Contains(text, want) {
				t.Errorf("v%v: %s lacks %s", m.Version, text, want)
			}
		}
	}
}
