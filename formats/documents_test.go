package formats_test

import (
	"math"
	"slices"
	"testing"

	"github.com/zarrdb/zarrdb/formats"
)

// Chunks of an array in one piece are in one piece too, small enough, and in a regular grid
// where that is possible.
func TestContiguous(t *testing.T) {
	for _, c := range []struct {
		shape []int64
		item  int64
		want  []int64
		grid  string
	}{
		{[]int64{}, 8, []int64{}, ""},
		{[]int64{0}, 8, []int64{1}, ""},
		{[]int64{5}, 8, []int64{5}, ""},
		{[]int64{744, 721, 1440}, 4, []int64{1, 721, 1440}, ""},
		{[]int64{744, 7210, 1440}, 4, []int64{1, 721, 1440}, ""},
		{[]int64{31, 20}, 8, []int64{31, 20}, ""},
		{[]int64{3, 512}, 8, []int64{1, 512}, ""},
		{[]int64{3, 511}, 8, []int64{3, 511}, ""},
		{[]int64{0, 721, 1440}, 4, []int64{1, 721, 1440}, ""},
		{[]int64{1 << 20}, 8, []int64{1 << 19}, ""},
		{[]int64{3, 2, 1 << 20}, 8, []int64{1, 1, 1 << 19}, ""},
		{[]int64{1000003}, 8, []int64{1 << 19}, `{"name":"rectilinear","configuration":{"kind":"inline","chunk_shapes":[[[524288,1],475715]]}}`},
		{[]int64{1 << 40, 1 << 40, 0, 1 << 40}, 8, []int64{1, 1, 1, 1 << 19}, ""},
	} {
		got := formats.Contiguous(c.shape, c.item)
		if !slices.Equal(got, c.want) {
			t.Errorf("%v: %v, want %v", c.shape, got, c.want)
		}
		if grid := string(formats.Grid(c.shape, got)); c.grid != "" && grid != c.grid {
			t.Errorf("%v: %s", c.shape, grid)
		}
	}
}

// As Python decodes with errors="replace".
func TestText(t *testing.T) {
	for in, want := range map[string]string{
		"höhe": "höhe", "": "", "a\xffb": "a\ufffdb", "\xe2\x82": "\ufffd", "\xe2\x82x": "\ufffdx", "\xe2\x28\xa1": "\ufffd(\ufffd",
		"\xed\xa0\x80": "\ufffd\ufffd\ufffd", "\xf0\x9f\x98": "\ufffd", "\xf0\x9f\x98\x80\xf0\x9f": "😀\ufffd", "\xc0\xaf": "\ufffd\ufffd",
		"\xf4\x90\x80\x80": "\ufffd\ufffd\ufffd\ufffd", "\xe0\x80": "\ufffd\ufffd", "\ufffd\xfe": "\ufffd\ufffd", "\xf1\x80\x80\xc3\xa4": "\ufffdä",
	} {
		if got := formats.Text([]byte(in)); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
	for f, want := range map[float64]string{1: "1.0", 0.01: "0.01", float64(float32(0.01)): "0.009999999776482582", math.Inf(-1): `"-Infinity"`, 1e300: "1e+300"} {
		if got := string(formats.Float(f)); got != want {
			t.Errorf("%v: %s, want %s", f, got, want)
		}
	}
}
