package names

import (
	"testing"

	"github.com/zarrdb/zarrdb/zarr/meta"
)

func TestPaths(t *testing.T) {
	for _, c := range []struct{ what, got, want string }{
		{"directory of the root", Dir(""), ""},
		{"directory of a node", Dir("a/b"), "a/b/"},
		{"group above a node", Parent("a/b"), "a"},
		{"group above a node of the root", Parent("a"), ""},
		{"node below the root", Join("", "a"), "a"},
		{"node below a group", Join("a", "b"), "a/b"},
		{"group itself", Join("a", ""), "a"},
		{"node as its group sees it", Relative("a/b/c", "a"), "b/c"},
		{"group as itself sees it", Relative("a", "a"), ""},
		{"slashes around", Clean("/a/b/"), "a/b"},
	} {
		if c.got != c.want {
			t.Errorf("%s: %q, want %q", c.what, c.got, c.want)
		}
	}
}

func TestIsDocument(t *testing.T) {
	for key, want := range map[string]bool{
		"zarr.json": true, "a/.zarray": true, "a/.zmetadata": true, "a/meta": true, "meta/root/a.array.json": true,
		"a/c/0/0": false, "a/0.0": false, "zarr.json/c": false,
	} {
		if got := IsDocument(key); got != want {
			t.Errorf("%s: %v", key, got)
		}
	}
}

func TestCheckPath(t *testing.T) {
	for _, c := range []struct {
		v    meta.Version
		path string
		ok   bool
	}{
		{meta.V3, "a/b", true}, {meta.V2, "a/b", true}, {meta.V3, "a//b", false}, {meta.V2, "a/../b", false}, {meta.V3, "/a", false}, {meta.V3, "__a", true}, {meta.V2, "__a", true},
	} {
		if err := CheckPath(c.v, c.path); (err == nil) != c.ok {
			t.Errorf("%v %q: %v", c.v, c.path, err)
		}
	}
}
