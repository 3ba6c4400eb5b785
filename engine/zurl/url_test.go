package zurl

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The cases of the specification (ZEP 8, "Examples").
func TestSpecification(t *testing.T) {
	b, err := os.ReadFile("testdata/relative_urls.json")
	if err != nil {
		t.Fatal(err)
	}
	var spec struct {
		Cases []struct {
			Base, Relative, Resolved string
			Error                    string
		}
		Normalize [][2]string
	}
	if err := json.Unmarshal(b, &spec); err != nil || len(spec.Cases) == 0 || len(spec.Normalize) == 0 {
		t.Fatalf("testdata: %v", err)
	}
	for _, c := range spec.Cases {
		got, err := Resolve(c.Base, c.Relative)
		if (err != nil) != (c.Error != "") || got != c.Resolved {
			t.Errorf("%s + %s = %s, %v; want %s", c.Base, c.Relative, got, err, c.Resolved)
		}
	}
	for _, c := range spec.Normalize {
		if got, err := Normalize(c[0]); err != nil || got != c[1] {
			t.Errorf("%s is %s, %v; want %s", c[0], got, err, c[1])
		}
	}
}

func TestParse(t *testing.T) {
	cwd, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	here := "file://" + filepath.ToSlash(cwd)
	for in, want := range map[string]string{
		"file:///a/b":                     "file:///a/b",
		"file:/a/b/":                      "file:///a/b/",
		"FILE://localhost/a%20b":          "file:///a%20b",
		"/a b/c":                          "file:///a%20b/c",
		"/a%b":                            "file:///a%25b",
		"x.zarr":                          here + "/x.zarr",
		"./x.zarr/":                       here + "/x.zarr/",
		"file:x":                          here + "/x",
		"/d/x.zip|zip":                    "file:///d/x.zip|zip:",
		"/d/x.zip|ZIP:a/|zarr3:b":         "file:///d/x.zip|zip:a/|zarr3:b",
		"/d/x|zarr":                       "file:///d/x/|zarr:",
		"/d/x.zip|zip:a|zarr2:b":          "file:///d/x.zip|zip:a/|zarr2:b",
		"s3://b":                          "s3://b",
		"https://h:80/p?q=1":              "https://h:80/p?q=1",
		"memory:x/y":                      "memory:x/y",
		"/r|icechunk:@branch.main/":       "file:///r/|icechunk:@branch.main/",
		"/r|icechunk:@tag.v5":             "file:///r/|icechunk:@tag.v5/",
		"/r|ocdbt:%40a":                   "file:///r/|ocdbt:%40a",
		"/r|ocdbt:@v1/a":                  "file:///r/|ocdbt:@v1/a",
		"/d/x.zip|zip:%7e%c3%a9%2f":       "file:///d/x.zip|zip:~%C3%A9%2F",
		"/o.zip|zip:p/i.zip|zip:|..:../x": "file:///o.zip|zip:x",
		"/o.zip|zip:p/i|..:":              "file:///o.zip",
		"/d.gz|gzip|byte-range:10-20":     "file:///d.gz|gzip:|byte-range:10-20",
	} {
		if filepath.Separator != '/' && !strings.Contains(in, ":/") {
			continue // paths are spelled otherwise here
		}
		u, err := Parse(in)
		if err != nil || u.String() != want {
			t.Errorf("%s is %v, %v; want %s", in, u, err, want)
			continue
		}
		again, err := Parse(u.String())
		if err != nil || again.String() != want {
			t.Errorf("%s does not read back: %v, %v", want, again, err)
		}
	}
	for _, in := range []string{
		"", "|zip:", "..:x", "file://other/x", "s3:/b", "s3://", "gs:", "/a||zip:", "/a|", "/a|1x:", "/a|..:", "/a|zip:|..:|..:",
		"/a|zip:%zz", "/a|zip:%4", "/a|zip:%00", "/a\x00b", "/r|ocdbt:@", "/a|zip:b|..:../../../x", "http:///x",
	} {
		if u, err := Parse(in); !errors.Is(err, ErrURL) {
			t.Errorf("%q is %v, %v", in, u, err)
		}
	}
}

func TestResolve(t *testing.T) {
	const base = "gs://b/p/a.zip|zip:d/e|zarr3:f/g"
	for rel, want := range map[string]string{
		"":               base[:strings.Index(base, "d/e")] + "d/e/|zarr3:f/g",
		"h":              "gs://b/p/a.zip|zip:d/e/|zarr3:f/h",
		"../h/":          "gs://b/p/a.zip|zip:d/e/|zarr3:h/",
		"/h":             "gs://b/p/a.zip|zip:d/e/|zarr3:h",
		"./a:b":          "gs://b/p/a.zip|zip:d/e/|zarr3:f/a:b",
		"..:x":           "gs://b/p/a.zip|zip:d/e/x",
		"..:../x|zarr2:": "gs://b/p/a.zip|zip:d/x/|zarr2:",
		"..:|..:/q":      "gs://b/q",
		"file:///z":      "file:///z",
	} {
		if got, err := Resolve(base, rel); err != nil || got != want {
			t.Errorf("%q is %s, %v; want %s", rel, got, err, want)
		}
	}
	for _, rel := range []string{"../../../x", "..:../../../x", "|..:|..:|..:", "%", "|:"} {
		if got, err := Resolve(base, rel); !errors.Is(err, ErrURL) {
			t.Errorf("%q is %s, %v", rel, got, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"file:///a|zip:b|..:../c", "x|zarrdb:@branch.main/a%2fb", "s3://b/%41?x|gzip", "/r|ocdbt:@2025-01-01T01:23:45.678Z/p"} {
		f.Add(s, "../x|zip:")
	}
	f.Fuzz(func(t *testing.T, s, rel string) {
		u, err := Parse(s)
		if err != nil {
			if !errors.Is(err, ErrURL) {
				t.Errorf("%q: %v is not ErrURL", s, err)
			}
			return
		}
		once := u.String()
		again, err := Normalize(once)
		if err != nil || again != once {
			t.Errorf("%q is %q, which is %q, %v", s, once, again, err)
		}
		_, _ = Resolve(s, rel)
	})
}
