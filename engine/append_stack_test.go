package engine

import (
	"testing"
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
		{[]string{"r1", "nan"}, "fixed_length_utf32[12]", ""},
	} {
		l, err := newLabels(c.labels)
		if err != nil || l.t.String() != c.typ || l.units != c.units {
			t.Errorf("%q: %v %q, %v, want %s %q", c.labels, l.t, l.units, err, c.typ, c.units)
		}
	}
}
