package builtin_test

import (
	"slices"
	"testing"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/codecs/builtin"
	"github.com/zarrdb/zarrdb/codecs/filter"
	"github.com/zarrdb/zarrdb/codecs/object"
)

// TestRegistry looks up the names of all packages in a registry, and registers one
// more: other registries do not get it.
func TestRegistry(t *testing.T) {
	r := builtin.Registry()
	var v2, v3 []string
	for _, e := range slices.Concat(codecs.Entries(), filter.Entries(), object.Entries()) {
		if e.V2 != "" {
			v2 = append(v2, e.V2)
		}
		v3 = append(v3, e.V3...)
	}
	got2, got3 := r.Names()
	for _, names := range [][]string{v2, v3, got2, got3} {
		slices.Sort(names)
	}
	if !slices.Equal(got2, v2) || !slices.Equal(got3, v3) {
		t.Errorf("names are %v and %v, want %v and %v", got2, got3, v2, v3)
	}
	for _, name := range []string{"zlib", "delta", "vlen-utf8"} { // one of each package
		if e, ok := r.Lookup(name, true); !ok || e.V2 != name {
			t.Errorf("%q is not registered", name)
		}
	}
	e, _ := r.Lookup("zlib", true)
	r.Register(codecs.Entry{V2: "own", Kind: e.Kind, Parse: e.Parse})
	if _, ok := builtin.Registry().Lookup("own", true); ok {
		t.Error("registries share their codecs")
	}
}
