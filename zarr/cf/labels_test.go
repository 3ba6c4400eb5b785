package cf

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"slices"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/zarr"
)

// coordinate stores an array of one dimension named x; values are elements as
// JSON.
func coordinate(t *testing.T, dataType, attrs string, values ...json.RawMessage) *zarr.Node {
	t.Helper()
	ctx, store := t.Context(), kv.NewMem()
	at := must.Get(zarr.ParseAttributes([]byte(attrs)))(t)
	a := must.Get(zarr.Create(ctx, store, "x", zarr.Spec{Shape: []int64{int64(len(values))}, DataType: dataType, Attributes: at}, nil))(t)
	for i, v := range values {
		must.Do(t, a.WriteValue(ctx, zarr.Sel(zarr.At(int64(i))), v))
	}
	n := must.Get(zarr.Open(ctx, store, "x", nil))(t)
	return n
}

func labels(t *testing.T, dataType, attrs string, values ...json.RawMessage) *Labels {
	t.Helper()
	l := must.Get(ReadLabels(t.Context(), coordinate(t, dataType, attrs, values...)))(t)
	return l
}

// Labels select what xarray's sel selects.
func TestLabelsAsXarray(t *testing.T) {
	text := must.Get(os.ReadFile("testdata/labels.json"))(t)
	var golden struct {
		Cases []struct {
			Dtype  string
			Attrs  json.RawMessage
			Values []json.RawMessage
			Labels []struct {
				Label any
				Want  []int64 // nil after a KeyError
				One   bool
			}
		}
	}
	must.Do(t, json.Unmarshal(text, &golden))
	if len(golden.Cases) < 50 {
		t.Fatalf("%d cases", len(golden.Cases))
	}
	for _, c := range golden.Cases {
		l := labels(t, c.Dtype, string(c.Attrs), c.Values...)
		for _, q := range c.Labels {
			var lo, hi int64
			var one bool
			var err error
			single, isOne := q.Label.(string)
			if isOne {
				lo, hi, one, err = l.Find(single)
			} else {
				var ends [2]*string
				for i, end := range q.Label.([]any) {
					if s, ok := end.(string); ok {
						ends[i] = &s
					}
				}
				lo, hi, err = l.findRange(ends[0], ends[1])
			}
			got := []int64{}
			for i := lo; i < hi; i++ {
				got = append(got, i)
			}
			followed := true // a slice can be what is wanted
			for i := range q.Want {
				followed = followed && q.Want[i] == q.Want[0]+int64(i)
			}
			switch {
			case q.Want == nil, isOne && len(q.Want) == 0:
				// An empty result of one label says less than an error.
				if !errors.Is(err, zarr.ErrNotFound) && !errors.Is(err, errors.ErrUnsupported) {
					t.Errorf("%s %s %s, %v: %v, %v, want an error", c.Dtype, c.Attrs, c.Values, q.Label, got, err)
				}
			case !followed:
				if !errors.Is(err, errors.ErrUnsupported) {
					t.Errorf("%s %s %s, %v: %v, %v, want an error", c.Dtype, c.Attrs, c.Values, q.Label, got, err)
				}
			case err != nil || !slices.Equal(got, q.Want) || one != q.One:
				t.Errorf("%s %s %s, %v: %v (one %v), %v, want %v (%v)", c.Dtype, c.Attrs, c.Values, q.Label, got, one, err, q.Want, q.One)
			}
		}
	}
}

// What xarray has no answer to, or another one by an accident of its types.
func TestLabelsBeyondXarray(t *testing.T) {
	raw := func(list ...string) (out []json.RawMessage) {
		for _, s := range list {
			out = append(out, json.RawMessage(s))
		}
		return out
	}
	const days = `{"units":"days since 2020-01-30"}`
	for _, c := range []struct {
		dataType, attrs string
		values          []json.RawMessage
		first, last     string // "-" is an open end
		lo, hi          int64
	}{
		// Descending times, as of any other descending coordinate.
		{"int32", days, raw("3", "2", "1", "0"), "2020-02", "2020-01", 0, 4},
		{"int32", days, raw("3", "2", "1", "0"), "2020-02-01", "2020-01-31", 1, 3},
		{"int32", days, raw("3", "2", "1", "0"), "2020-02", "-", 0, 4},
		{"int32", days, raw("3", "2", "1", "0"), "-", "2020-02", 0, 2},
		{"int32", days, raw("3", "2", "1", "0"), "2020-01", "2020-02", 2, 2},
		// Texts, in the order of their bytes.
		{"string", `{}`, raw(`"a"`, `"b"`, `"d"`), "b", "c", 1, 2},
		{"string", `{}`, raw(`"d"`, `"b"`, `"a"`), "c", "a", 1, 3},
		{"string", `{}`, raw(`""`, `"b"`), "", "a", 0, 1},
		{"<U2", `{}`, raw(`"ä"`, `"b"`, `"cc"`), "b", "cc", 1, 3},
		// A scale factor that is no binary fraction: 3 × 0.1 is 0.3.
		{"int16", `{"scale_factor":0.1}`, raw("1", "3", "6"), "0.3", "0.6", 1, 3},
		// Integers that no float64 holds.
		{"int64", `{}`, raw("9007199254740992", "9007199254740993", "9007199254740994"), "9007199254740993", "9007199254740993", 1, 2},
		{"uint64", `{}`, raw("1", "9223372036854775808", "18446744073709551615"), "9223372036854775808", "-", 1, 3},
		{"uint64", `{}`, raw("0", "18446744073709551615"), "-1", "1.5", 0, 1},
		// Spans between two counts, which pandas cuts to whole ones at the lower end.
		{"int32", `{"units":"seconds","dtype":"timedelta64[s]"}`, raw("0", "1", "2", "3"), "1500ms", "2500ms", 2, 3},
		{`{"name":"numpy.timedelta64","configuration":{"unit":"h","scale_factor":1}}`, `{}`, raw("0", "1", "2", "3"), "90m", "150m", 2, 3},
	} {
		end := func(s string) *string {
			if s == "-" {
				return nil
			}
			return &s
		}
		lo, hi, err := labels(t, c.dataType, c.attrs, c.values...).findRange(end(c.first), end(c.last))
		if err != nil || lo != c.lo || hi != c.hi {
			t.Errorf("%s %s, %q to %q: %d to %d, %v", c.dataType, c.values, c.first, c.last, lo, hi, err)
		}
	}
	hours := labels(t, `{"name":"numpy.timedelta64","configuration":{"unit":"h","scale_factor":1}}`, `{}`, raw("0", "1", "2", "36")...)
	for _, label := range []string{"90m", "35h30m", "-30m", "1ns"} {
		if lo, hi, _, err := hours.Find(label); !errors.Is(err, zarr.ErrNotFound) {
			t.Errorf("%s among hours: %d to %d, %v", label, lo, hi, err)
		}
	}
	if lo, hi, _, err := hours.Find("1.5D"); err != nil || lo != 3 || hi != 4 {
		t.Errorf("1.5D among hours: %d to %d, %v", lo, hi, err)
	}
	// A label that is not the only one of its grain names a range.
	for label, want := range map[string]bool{"2020-01": false, "2020-02-01": true, "2020-02-01T00": true} {
		if _, _, one, err := labels(t, "int32", days, raw("1", "2", "3")...).Find(label); err != nil || one != want {
			t.Errorf("%s: one is %v, %v", label, one, err)
		}
	}
	l := labels(t, "int32", `{}`, raw("1", "2", "1")...)
	if _, _, _, err := l.Find("1"); !errors.Is(err, errors.ErrUnsupported) {
		t.Error(err)
	}
	for _, label := range []string{"", "x", "nan", "2020-01"} {
		if _, _, _, err := l.Find(label); !errors.Is(err, ErrLabel) {
			t.Errorf("%q: %v", label, err)
		}
	}
	if _, err := ReadLabels(t.Context(), coordinate(t, "bool", `{}`, raw("true")...)); !errors.Is(err, errors.ErrUnsupported) {
		t.Error(err)
	}
}

func TestParseSelection(t *testing.T) {
	ctx, store := t.Context(), kv.NewMem()
	lat := must.Get(zarr.Create(ctx, store, "lat", zarr.Spec{Shape: []int64{4}, DataType: "float32"}, nil))(t)
	must.Do(t, zarr.Write(ctx, lat, zarr.Sel(), []float32{90, 45, 0, -45}))
	a := must.Get(zarr.Create(ctx, store, "a", zarr.Spec{Shape: []int64{4, 3}, DataType: "int8", DimensionNames: []string{"lat", "short"}}, nil))(t)
	beside := func(ctx context.Context, name string) (*zarr.Node, error) {
		if name == "short" { // has four labels, the dimension three elements
			name = "lat"
		}
		return zarr.Open(ctx, store, name, nil)
	}
	for text, want := range map[string]string{
		"lat='50':'0'":           "1:3",
		`[lat="50":"0",short=2]`: "1:3,2",
		"lat='90':'-45':2":       "0:4:2",
		"lat='45'":               "1",
		"lat=:'45'":              "0:2",
		"lat=1:2":                "1:2",
		"1:2":                    "1:2",
	} {
		got, empty, err := ParseSelection(ctx, text, a, beside)
		sel, _ := zarr.ParseSelection(want, nil)
		gotShape, err2 := a.Resolve(got)
		wantShape, _ := a.Resolve(sel)
		if err != nil || err2 != nil || !slices.Equal(gotShape, wantShape) || len(empty) > 0 {
			t.Errorf("%s: %v %q, %v", text, got, empty, err)
		}
	}
	sel, empty, err := ParseSelection(ctx, "lat='0':'50'", a, beside)
	if shape, _ := a.Resolve(sel); err != nil || len(empty) != 1 || shape[0] != 0 || empty[0] != "lat='0':'50' selects nothing: lat goes down from 90 to -45" {
		t.Errorf("%v %q, %v", shape, empty, err)
	}
	for text, want := range map[string]error{
		"lat='46'":         zarr.ErrNotFound,
		"depth='1'":        zarr.ErrNotFound,
		"lat='north'":      ErrLabel,
		"lat='":            zarr.ErrSelection,
		"lat='45':'0':-1":  zarr.ErrSelection,
		"short='45'":       zarr.ErrSelection,
		"lat='45',lat='0'": zarr.ErrSelection,
	} {
		if _, _, err := ParseSelection(ctx, text, a, beside); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", text, err, want)
		}
	}
}

func TestQuoteLabels(t *testing.T) {
	for text, want := range map[string]string{
		"time=2020-01-02":                "time='2020-01-02'",
		"time=2020-01:2020-02,lat=5":     "time='2020-01':'2020-02',lat=5",
		"time=2020-01-02T00:30,lat=-1.5": "time='2020-01-02T00:30',lat='-1.5'",
		"time=2020-01:":                  "time='2020-01':",
		"time=2020:2021-02:1":            "time='2020':'2021-02':1",
		"time='2020-01',lat=a b":         "time='2020-01',lat='a b'",
		"time=1:5,lat=-3":                "",
		"time='2020-01-02'":              "",
		"2020-01-02":                     "",
		"time=::x":                       "",
		"":                               "",
	} {
		if got, ok := QuoteLabels(text); ok != (want != "") || ok && got != want {
			t.Errorf("%s: %s, %v", text, got, ok)
		}
	}
}
