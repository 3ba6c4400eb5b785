package metatest_test

import (
	"testing"

	"github.com/zarrdb/zarrdb/zarr/internal/metatest"
)

// Edit replaces members in place, adds others at the end, and removes them.
func TestEdit(t *testing.T) {
	const doc = `{"a":1,"b":[2],"c":3}`
	for want, set := range map[string][]string{
		doc:                           nil,
		`{"a":1,"b":{},"c":3}`:        {"b", "{}"},
		`{"a":1,"c":3}`:               {"b", ""},
		`{"a":1,"b":[2],"c":3,"d":4}`: {"d", "4"},
		`{"b":[2],"c":0,"d":"x"}`:     {"c", "0", "a", "", "d", `"x"`},
	} {
		if got := metatest.Edit(t, doc, set...); got != want {
			t.Errorf("%q: %s, want %s", set, got, want)
		}
	}
}
