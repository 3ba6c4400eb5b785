package meta

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Zarr v3 core, Node names.
func TestCheckName(t *testing.T) {
	for _, ok := range []string{"a", "foo.bar", ".a", "a.", "_a", "a__", "Ünï", "漢字", " ", "zarr.json", "c", "..a", "...", "__", "__a"} {
		if err := CheckName(ok); err != nil {
			t.Errorf("%q: %v", ok, err)
		}
	}
	for _, bad := range []string{"", ".", "..", "a/b", "/", "\xff"} {
		if err := CheckName(bad); !errors.Is(err, ErrPath) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestCleanPath(t *testing.T) {
	for in, want := range map[string]string{"": "", "/": "", "a": "a", "/a/b": "a/b", "a/b.c": "a/b.c"} {
		if got, err := CleanPath(in); err != nil || got != want {
			t.Errorf("%q: %q, %v", in, got, err)
		}
	}
	for _, bad := range []string{"//", "a/", "a//b", "//a", "a/../b", "a/.", ".."} {
		if got, err := CleanPath(bad); !errors.Is(err, ErrPath) {
			t.Errorf("%q: %q, %v", bad, got, err)
		}
	}
}

// Zarr v2, Logical storage paths.
func TestDepth(t *testing.T) {
	deep := strings.TrimSuffix(strings.Repeat("a/", maxDepth), "/")
	for _, clean := range []func(string) (string, error){CleanPath, CleanPathV2} {
		if got, err := clean(deep); err != nil || got != deep {
			t.Errorf("%d names: %v", maxDepth, err)
		}
		if _, err := clean(deep + "/a"); !errors.Is(err, ErrPath) {
			t.Errorf("%d names: %v, want ErrPath", maxDepth+1, err)
		}
	}
}

func TestCleanPathV2(t *testing.T) {
	for in, want := range map[string]string{
		`\a\b`: "a/b", "/a//b/": "a/b", "a": "a", "": "", "///": "", `a\\b//c`: "a/b/c", "a/__b/...": "a/__b/...", `\`: "",
	} {
		got, err := CleanPathV2(in)
		if err != nil || got != want {
			t.Errorf("%q: %q, %v", in, got, err)
		}
		if again, err := CleanPathV2(got); err != nil || again != got {
			t.Errorf("%q is not normal: %q", got, again)
		}
	}
	for _, bad := range []string{"a/..", ".", "a/./b", `..\x`, `a\.`} {
		if got, err := CleanPathV2(bad); !errors.Is(err, ErrPath) {
			t.Errorf("%q: %q, %v", bad, got, err)
		}
	}
}

// documentNames are those of metadata documents by the formats in which no node
// gets them.
var documentNames = map[string][]Version{
	"zarr.json": {V1, V2, V3}, ".zarray": {V1, V2, V3}, ".zgroup": {V1, V2, V3}, ".zattrs": {V1, V2, V3}, ".zmetadata": {V1, V2, V3},
	"meta": {V1}, "attrs": {V1},
}

func TestCheckNewPath(t *testing.T) {
	for _, v := range []Version{V1, V2, V3} {
		for name, in := range documentNames {
			for _, path := range []string{name, "a/" + name, name + "/a"} {
				err := CheckNewPath(v, path)
				if bad := slices.Contains(in, v); bad != errors.Is(err, ErrPath) || bad && !strings.Contains(err.Error(), strconv.Quote(name)) {
					t.Errorf("%v: %s: %v", v, path, err)
				}
			}
		}
		for _, ok := range []string{"", "a", "a/zarr.json2", ".zarrays/zarr", "metadata/c/0", "Meta"} {
			if err := CheckNewPath(v, ok); err != nil {
				t.Errorf("%v: %s: %v", v, ok, err)
			}
		}
		for _, reserved := range []string{"...", "__", "__zarr", "a/__b/c"} {
			if err := CheckNewPath(v, reserved); (v == V3) != errors.Is(err, ErrPath) {
				t.Errorf("%v: %s: %v", v, reserved, err)
			}
		}
	}
}

func FuzzCleanPath(f *testing.F) {
	for _, s := range []string{"a/b", `\a\\b/`, "..", "__a", "a/./b", "//"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if p, err := CleanPathV2(s); err == nil {
			if again, err := CleanPathV2(p); err != nil || again != p || strings.HasPrefix(p, "/") || strings.HasSuffix(p, "/") || strings.Contains(p, "//") {
				t.Fatalf("%q is cleaned to %q", s, p)
			}
		}
		if p, err := CleanPath(s); err == nil {
			if again, err := CleanPath(p); err != nil || again != p {
				t.Fatalf("%q is cleaned to %q", s, p)
			}
			if v2, err := CleanPathV2(p); err == nil && !strings.Contains(p, `\`) && v2 != p {
				t.Fatalf("%q is a v3 path, but in v2 %q", p, v2)
			}
		}
	})
}
