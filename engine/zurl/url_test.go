package zurl

import (
	"encoding/json"
	"errors"
	"github.com/zarrdb/zarrdb/internal/must"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func readJSON(t *testing.T, file string, into any) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(b, into)
	}
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}

// The cases of the specification (ZEP 8, "Examples").
func TestSpecification(t *testing.T) {
	var spec struct {
		Cases []struct {
			Base, Relative, Resolved string
			Error                    string
		}
		Normalize [][2]string
	}
	readJSON(t, "testdata/relative_urls.json", &spec)
	if len(spec.Cases) == 0 || len(spec.Normalize) == 0 {
		t.Fatal("no cases")
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

// TestRealURLs parses the URLs of real stores, of which some are wrong and can
// be seen to be.
func TestRealURLs(t *testing.T) {
	var urls []struct{ Case, URL, Resolved, Error string }
	readJSON(t, "testdata/urls.json", &urls)
	wrong := map[string]error{
		"arr3/|zarr3:|..:|..:":  errAboveRoot,
		"arr3/|zarr3:../../x":   errAboveRoot,
		"d.gz|gzip:x":           ErrURL,
		"d.gz|byte-range:20-10": ErrURL,
		"d.json|json:a":         ErrURL,
	}
	seen := 0
	for _, c := range urls {
		u, err := parseIn("/case", c.URL)
		if want := wrong[c.URL]; want != nil {
			seen++
			if !errors.Is(err, want) || c.Error == "" {
				t.Errorf("%s: %s is %v, %v, want %v", c.Case, c.URL, u, err, want)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %s: %v", c.Case, c.URL, err)
			continue
		}
		if abs, err := Parse("file:///case/" + c.URL); err != nil || abs.String() != u.String() {
			t.Errorf("%s: %s is %s, and absolute it is %s, %v", c.Case, c.URL, u, abs, err)
		}
		if c.Resolved == "" {
			continue
		}
		// What detection adds comes behind what is there.
		resolved, err := parseIn("/case", c.Resolved)
		if want := "file:///case/" + c.Resolved; err != nil || resolved.String() != want || !strings.HasPrefix(want, u.String()) {
			t.Errorf("%s: %s is %s, and with its formats %s, %v", c.Case, c.URL, u, resolved, err)
		}
		if resolved.Last().Kind() != kindDataset {
			t.Errorf("%s: %s is a %s", c.Case, resolved, resolved.Last().Kind())
		}
	}
	if seen != 5 {
		t.Errorf("%d wrong URLs", seen)
	}
}

func TestParse(t *testing.T) {
	for in, want := range map[string]string{
		// file (RFC 8089)
		"file:///a/b":                "file:///a/b",
		"file:/a/b/":                 "file:///a/b/",
		"FILE://localhost/a%20b":     "file:///a%20b",
		"file:///":                   "file:///",
		"file:///a/./b/../c//d/.":    "file:///a/c//d/",
		"file:///%7Ea/%c3%a9 é":      "file:///~a/%C3%A9%20%C3%A9",
		"file:///a%3fb%23c%25%7c%5C": "file:///a%3Fb%23c%25%7C%5C",
		"file:///%2e%2E/x":           "",
		"file:///c:/x":               "file:///c:/x",
		// paths
		"/a b/c":      "file:///a%20b/c",
		"/a%b?c#d":    "file:///a%25b%3Fc%23d",
		"/../x/./y":   "file:///x/y",
		"x.zarr":      "file:///data/dir/x.zarr",
		"./x.zarr/":   "file:///data/dir/x.zarr/",
		"../x":        "file:///data/x",
		".":           "file:///data/dir/",
		"..":          "file:///data/",
		"../../../x":  "file:///x",
		"~/x":         "file:///data/dir/~/x",
		"a_b:c":       "file:///data/dir/a_b:c",
		"file:x%20y":  "file:///data/dir/x%20y",
		"file:../x":   "file:///data/x",
		`c:\a b\x`:    "file:///c:/a%20b/x",
		"C:/a":        "file:///C:/a",
		"x.zip|zip:a": "file:///data/dir/x.zip|zip:a",
		// adapters
		"/d/x.zip|zip":                    "file:///d/x.zip|zip:",
		"/d/x.zip|ZIP:a/|zarr3:b":         "file:///d/x.zip|zip:a/|zarr3:b",
		"/d/x|zarr":                       "file:///d/x/|zarr:",
		"/d/x.zip|zip:a|zarr2:b":          "file:///d/x.zip|zip:a/|zarr2:b",
		"/d/x.zip|zip:/a":                 "file:///d/x.zip|zip:a",
		"/d/x.zip|zip:a:b@c":              "file:///d/x.zip|zip:a:b@c",
		"/d/x.zip|zip://a":                "file:///d/x.zip|zip:%2Fa",
		"/d/x.zip|zip:%7e%c3%a9%2f":       "file:///d/x.zip|zip:~%C3%A9/",
		"/d/x.zip|zip:a/../b/./c/":        "file:///d/x.zip|zip:b/c/",
		"/d|zarr3:/a/b":                   "file:///d/|zarr3:a/b",
		"/d|n5:a":                         "file:///d/|n5:a",
		"/d/v|neuroglancer-precomputed":   "file:///d/v/|neuroglancer-precomputed:",
		"/d.gz|gzip|byte-range:010-20":    "file:///d.gz|gzip:|byte-range:10-20",
		"/d|byte-range:0-0":               "file:///d|byte-range:0-0",
		"/d.json|json":                    "file:///d.json|json:",
		"/d.json|json:/a~1b/../%C3%A9//":  "file:///d.json|json:/a~1b/../%C3%A9//",
		"/d.json|json:%2Fa":               "file:///d.json|json:/a",
		"/r.json|kerchunk:|zarr:":         "file:///r.json|kerchunk:|zarr:",
		"/r/|kerchunk:a|zarr:":            "file:///r/|kerchunk:a/|zarr:",
		"/x|newformat:a/b":                "file:///x|newformat:a/b",
		"/x|newformat:a/b|zarr:":          "file:///x|newformat:a/b/|zarr:",
		"/o.zip|zip:p/i.zip|zip:|..:../x": "file:///o.zip|zip:x",
		"/o.zip|zip:p/i|..:":              "file:///o.zip",
		"/o.zip|zip:p/i|..":               "file:///o.zip",
		"/db|ocdbt:|..:x":                 "file:///db/x",
		"/a/b.zip|zip:|..:/c":             "file:///c",
		// versions
		"/r|icechunk:@branch.main/":                    "file:///r/|icechunk:@branch.main/",
		"/r|icechunk:@tag.v5":                          "file:///r/|icechunk:@tag.v5/",
		"/r|icechunk:@branch.a%2Fb c/x":                "file:///r/|icechunk:@branch.a%2Fb%20c/x",
		"/r|icechunk:@4N0217AZA4VNPYD0HR0G/|zarr3:a":   "file:///r/|icechunk:@4N0217AZA4VNPYD0HR0G/|zarr3:a",
		"/r|ocdbt:%40a":                                "file:///r/|ocdbt:%40a",
		"/r|ocdbt:./@a":                                "file:///r/|ocdbt:%40a",
		"/r|ocdbt:b/@a":                                "file:///r/|ocdbt:b/@a",
		"/r|ocdbt:@v1/a":                               "file:///r/|ocdbt:@v1/a",
		"/r|ocdbt:@v001/@a":                            "file:///r/|ocdbt:@v1/@a",
		"/r|ocdbt:@v1//a":                              "file:///r/|ocdbt:@v1/%2Fa",
		"/r|ocdbt:@2025-01-01T01:23:45.678Z/p|zarr3:a": "file:///r/|ocdbt:@2025-01-01T01:23:45.678Z/p/|zarr3:a",
		"/w.zdb|zarrdb:@branch.main/temp":              "file:///w.zdb/|zarrdb:@branch.main/temp",
		"/w.zdb|zarrdb:@main~3/temp":                   "file:///w.zdb/|zarrdb:@main~3/temp",
		"/w.zdb|zarrdb:temp":                           "file:///w.zdb/|zarrdb:temp",
		"/x.zip|zip:@a":                                "file:///x.zip|zip:@a",
		// other roots
		"s3://b":                        "s3://b/",
		"S3://Bucket/Key":               "s3://Bucket/Key",
		"s3://b/a/../c%2Fd":             "s3://b/c/d",
		"s3://b//a":                     "s3://b//a",
		"gs://b/a b|zip:":               "gs://b/a%20b|zip:",
		"s3+https://H.example:443/b/k":  "s3+https://h.example/b/k",
		"http://H.Example:80":           "http://h.example/",
		"https://u:P@H:80/p?q=1|zip:":   "https://u:P@h:80/p?q=1|zip:",
		"https://h?q":                   "https://h/?q",
		"https://h/a%2fb%7Ec/../d?x y%": "",
		"https://h/a%2fb%7Ec/../d?x y":  "https://h/d?x%20y",
		"https://h/../../x%2F..":        "https://h/x%2F..",
		"https://h/x/%2e%2e/y":          "https://h/y",
		"https://h/a|zarr":              "https://h/a/|zarr:",
		"https://h/a?s=1|zarr":          "https://h/a/?s=1|zarr:",
		"http://[::1]:8080/x":           "http://[::1]:8080/x",
		"http://[::1]:/x":               "http://[::1]/x",
		"memory:x/y":                    "memory:x/y",
		"memory:/x":                     "memory:/x",
		"memory:/%2Fx":                  "memory:/%2Fx",
		"az://c/p":                      "az://c/p",
		"new:a/b":                       "new:a/b",
	} {
		u, err := parseIn("/data/dir", in)
		if want == "" {
			if !errors.Is(err, ErrURL) {
				t.Errorf("%s is %v, %v; want an error", in, u, err)
			}
			continue
		}
		if err != nil || u.String() != want {
			t.Errorf("%s is %v, %v; want %s", in, u, err, want)
			continue
		}
		again, err := Parse(u.String())
		if err != nil || again.String() != want {
			t.Errorf("%s does not read back: %v, %v", want, again, err)
		}
	}
}

func TestParseErrors(t *testing.T) {
	for in, want := range map[string]struct {
		err  error
		part string
		text string
	}{
		"":                                    {text: "it is empty"},
		"|zip:":                               {text: "it is empty"},
		"..:x":                                {text: "begins with ..:"},
		"zip:x":                               {text: "zip: is an adapter"},
		"file://other/x":                      {text: "another host (other)"},
		"file://relative":                     {text: "no path"},
		"file:///a?b":                         {text: "must be written %3F"},
		"file:///a#b|zip:":                    {part: "file:///a#b", text: "must be written %23"},
		"file:///a%2Fb":                       {text: "escaped slash"},
		"file:///a/../../b":                   {err: errAboveRoot},
		"s3:/b":                               {text: "followed by //"},
		"s3:///b":                             {text: "no host or bucket"},
		"gs:":                                 {text: "followed by //"},
		"gs://b/k?x":                          {text: "%3F"},
		"gs://b k/x":                          {text: "' '"},
		"gs://b/../x":                         {err: errAboveRoot},
		"http:///x":                           {text: "no host"},
		"http://:80/x":                        {text: "no host"},
		"http://h:99999/x":                    {text: "port"},
		"http://h/x#y":                        {text: "%23"},
		"memory://x/y":                        {text: "has no host"},
		"/a\x00b":                             {text: "NUL"},
		"file:///a\nb":                        {text: `'\n'`},
		"/a||zip:":                            {part: "", text: "name of an adapter"},
		"/a|":                                 {text: "name of an adapter"},
		"/a|1x:":                              {text: "name of an adapter"},
		"/a|:x":                               {text: "name of an adapter"},
		"/a|a b":                              {text: "name of an adapter"},
		"/a|file:///x":                        {part: "file:///x", text: "file: is not an adapter"},
		"/a|s3://x/y":                         {part: "s3://x/y", text: "can only come first"},
		"/a|..:":                              {part: "..:", err: errAboveRoot},
		"/a|zip:|..:|..:":                     {err: errAboveRoot},
		"/a|zip:%zz":                          {part: "zip:%zz", text: `"%zz"`},
		"/a|zip:%4":                           {text: `"%4"`},
		"/a|zip:a%":                           {text: `"%"`},
		"/a|zip:%00":                          {text: "NUL"},
		"/a|zip:../x":                         {err: errAboveRoot},
		"/a|zip:%2e%2e/x":                     {err: errAboveRoot},
		"/a|zip:..%2Fx":                       {err: errAboveRoot},
		"/a|zip:b|..:../../../x":              {err: errAboveRoot},
		"/a|zip:b|..:c:d":                     {text: "colon"},
		"/a|zip:b|..://x":                     {text: "//"},
		"/a|gzip:|zip:|..:x":                  {text: "gzip: has no path"},
		"/a/|zip:":                            {err: errKind, text: "zip: needs a file"},
		"/a.zip|zip:|zip:":                    {err: errKind},
		"/a.zip|zip:b/|gzip:":                 {err: errKind},
		"/a|gzip:|zarr3:":                     {err: errKind, text: "zarr3: needs a directory"},
		"/a|zarr3:b|zarr3:":                   {err: errKind, text: "nothing can follow"},
		"/a|zarr3:b|newformat:":               {err: errKind},
		"/a.png|png:|json:":                   {err: errKind},
		"/a.png|png:x":                        {text: "png: takes no path"},
		"/v|neuroglancer-precomputed:":        {part: "-"},
		"/r|ocdbt:@":                          {text: "not a version of ocdbt"},
		"/r|ocdbt:@x/p":                       {text: `"@x" is not a version of ocdbt`},
		"/r|ocdbt:@v/p":                       {text: "not a version"},
		"/r|ocdbt:@v-1/p":                     {text: "not a version"},
		"/r|ocdbt:@branch.main/p":             {text: "not a version"},
		"/r|icechunk:@branch./p":              {text: "not a version"},
		"/r|icechunk:@a-b/p":                  {text: "not a version"},
		"/r|zarrdb:@/p":                       {text: "not a version"},
		"/a|byte-range:":                      {text: "two numbers"},
		"/a|byte-range:10":                    {text: "two numbers"},
		"/a|byte-range:-10":                   {text: "two numbers"},
		"/a|byte-range:1--2":                  {text: "two numbers"},
		"/a|byte-range:0x1-2":                 {text: "two numbers"},
		"/a|byte-range:20-10":                 {text: "ends before"},
		"/a|byte-range:0-9223372036854775808": {text: "two numbers"},
		"/a|json:a":                           {text: "begins with a slash"},
		"/a|json:/a~":                         {text: "~0"},
		"/a|json:/a~2b":                       {text: "~0"},
		"/a" + strings.Repeat("|gzip", 65):    {text: "more than 64"},
	} {
		u, err := Parse(in)
		if want.part == "-" {
			if err != nil {
				t.Errorf("%q: %v", in, err)
			}
			continue
		}
		var e *Error
		if !errors.Is(err, ErrURL) || !errors.As(err, &e) || e.URL != in || want.err != nil && !errors.Is(err, want.err) ||
			want.part != "" && e.Part != want.part || !strings.Contains(err.Error(), want.text) {
			t.Errorf("%q is %v, %v; want %+v", in, u, err, want)
		}
	}
	if _, err := Parse("/" + strings.Repeat("x", 10_000) + "\x00"); err == nil || len(err.Error()) > 1000 {
		t.Errorf("a message of %d bytes", len(err.Error()))
	}
}

func TestWorkingDirectory(t *testing.T) {
	cwd := must.Get(os.Getwd())(t)
	want := must.Get(File(cwd + string(filepath.Separator)))(t)
	if u, err := Parse("x/y"); err != nil || u.String() != want.String()+"x/y" {
		t.Errorf("x/y is %v, %v", u, err)
	}
	if u, err := File("a|b%20c"); err != nil || u.String() != want.String()+"a%7Cb%2520c" {
		t.Errorf("the file a|b%%20c is %v, %v", u, err)
	}
	if u, err := parseIn("relative", "x"); !errors.Is(err, ErrURL) {
		t.Errorf("below a relative directory: %v, %v", u, err)
	}
	if u, err := parseIn(`c:\d`, "x"); err != nil || u.String() != "file:///c:/d/x" {
		t.Errorf("below a drive: %v, %v", u, err)
	}
	path, err := want.Root().OSPath()
	if err != nil || filepath.Clean(path) != cwd {
		t.Errorf("OSPath %q, %v, want %q", path, err, cwd)
	}
}

func TestResolve(t *testing.T) {
	const base = "gs://b/p/a.zip|zip:d/e|zarr3:f/g"
	const inZip = "gs://b/p/a.zip|zip:d/e/"
	for _, c := range []struct{ base, rel, want string }{
		{base, "", inZip + "|zarr3:f/g"},
		{base, "h", inZip + "|zarr3:f/h"},
		{base, "../h/", inZip + "|zarr3:h/"},
		{base, "..", inZip + "|zarr3:"},
		{base, ".", inZip + "|zarr3:f/"},
		{base, "/h", inZip + "|zarr3:h"},
		{base, "./a:b", inZip + "|zarr3:f/a:b"},
		{base, "%2e%2E/h", inZip + "|zarr3:h"},
		{base, "..:x", "gs://b/p/a.zip|zip:d/e/x"},
		{base, "..:", inZip},
		{base, "..:../x|zarr2:", "gs://b/p/a.zip|zip:d/x/|zarr2:"},
		{base, "..:/x", "gs://b/p/a.zip|zip:x"},
		{base, "..:|..:/q", "gs://b/q"},
		{base, "..:|..:../of/other.zip|zip:o/|zarr3:", "gs://b/of/other.zip|zip:o/|zarr3:"},
		{base, "file:///z", "file:///z"},
		{base, "S3://z", "s3://z/"},
		{"gs://b/p", "|zip:", "gs://b/p|zip:"},
		{"gs://b/p/", "a|zip", "gs://b/p/a|zip:"},
		{"gs://b", "a", "gs://b/a"},
		{"/a/b", "../c", "file:///c"},
		{"/a/b", "/c", "file:///c"},
		{"/a/b", "c:d", "c:d"}, // absolute, if of no known scheme
		{"/r|ocdbt:@v1/a/b", "c", "file:///r/|ocdbt:@v1/a/c"},
		{"/r|ocdbt:@v1/a/b", "/c", "file:///r/|ocdbt:@v1/c"},
		{"/r|ocdbt:a", "@c", "file:///r/|ocdbt:%40c"},
		{"/j|json:/a/b", "c", "file:///j|json:/a/c"},
		{"/j|json:/a/b", "/c", "file:///j|json:/c"},
		{"/j|json:/a/../b", "c", "file:///j|json:/a/../c"},
		{"/j|json:/a/b", "../../c", ""},
		{"/j|json:", "c", ""},
		{"https://h/a/b?q=1", "c", "https://h/a/c"},
		{"https://h/a/b?q=1", "c?r=1:2", "https://h/a/c?r=1:2"},
		{"https://h/a/b?q=1", "?r", "https://h/a/b?r"},
		{"https://h/a/b?q=1", "", "https://h/a/b?q=1"},
		{"https://h/a/b", "../../../c", "https://h/c"},
		{"https://h/a/b", "c#d", ""},
		{"memory:x/y", "z", "memory:x/z"},
		{"memory:x/y", "/z", "memory:z"},
		{"memory:/x/y", "/z", "memory:/z"},
	} {
		got, err := Resolve(c.base, c.rel)
		if got != c.want || (err != nil) != (c.want == "") || err != nil && !errors.Is(err, ErrURL) {
			t.Errorf("%s + %q is %s, %v; want %s", c.base, c.rel, got, err, c.want)
		}
	}
	for _, rel := range []string{"../../../x", "..:../../../x", "|..:|..:|..:", "%", "|:", "zip:b", "1:b", "//h/x", "a\x00", "c?d", "|"} {
		if got, err := Resolve(base, rel); !errors.Is(err, ErrURL) {
			t.Errorf("%q is %s, %v", rel, got, err)
		}
	}
	// The base does not change.
	u := must.Get(Parse(base))(t)
	before := u.String()
	for _, rel := range []string{"x", "..:y", "|..:z|zip:"} {
		if _, err := u.Resolve(rel); err != nil && u.String() != before {
			t.Errorf("%q changed the base to %s", rel, u)
		}
	}
}

func TestParts(t *testing.T) {
	u := must.Get(Parse("s3://b/k%20é|zip:a/@b|ocdbt:@v7/x%25|byte-range:5-7"))(t)
	if r := u.Root(); r.Scheme != "s3" || r.Host != "b" || r.Path != "/k%20%C3%A9" {
		t.Errorf("root %+v", r)
	}
	for i, want := range []string{"a/@b/", "x%", "5-7"} {
		if key, err := u.Adapters()[i].Key(); err != nil || key != want {
			t.Errorf("key %d is %q, %v, want %q", i, key, err, want)
		}
	}
	if start, end, ok := u.Last().ByteRange(); start != 5 || end != 7 || !ok {
		t.Errorf("byte range %d, %d, %v", start, end, ok)
	}
	if _, _, ok := u.Root().ByteRange(); ok {
		t.Error("a byte range of s3")
	}
	if got := u.Prefix(1).String(); got != "s3://b/k%20%C3%A9|zip:a/@b/" {
		t.Errorf("Prefix(1) is %s", got)
	}
	// Appending to a prefix leaves the rest alone.
	whole := u.String()
	if got := u.Prefix(0).Append(Part{Scheme: "zarr3"}).String(); got != "s3://b/k%20%C3%A9/|zarr3:" {
		t.Errorf("Append gives %s", got)
	}
	if u.String() != whole {
		t.Errorf("Append changed %s to %s", whole, u)
	}
	if got := u.AsDirectory().String(); got != whole {
		t.Errorf("a byte range as directory is %s", got)
	}
	if p, err := (Part{Scheme: "json", Path: "/a~1b/%C3%A9"}).Pointer(); err != nil || p != "/a~1b/é" {
		t.Errorf("pointer %q, %v", p, err)
	}
	if _, err := (Part{Scheme: "zip", Path: "%z"}).Key(); !errors.Is(err, ErrURL) {
		t.Errorf("a part with a broken escape: %v", err)
	}
}

func TestKind(t *testing.T) {
	for in, want := range map[string]Kind{
		"/a": kindUnknown, "/a/": kindDirectory, "/": kindDirectory, "s3://b": kindDirectory, "s3://b/a": kindUnknown, "gs://b/a/": kindDirectory,
		"https://h/a": kindUnknown, "https://h/a/": kindUnknown, "https://h": kindUnknown, "s3+https://h": kindDirectory,
		"/a|zip:": kindDirectory, "/a|zip:b": kindUnknown, "/a|zip:b/": kindDirectory, "/a|ocdbt:": kindUnknown, "/a|ocdbt:b": kindUnknown,
		"/a|icechunk:@tag.x/": kindDirectory, "/a|icechunk:b": kindUnknown, "/a|zarr3:": kindDataset, "/a|zarr2:b/": kindDataset, "/a|zarr:b": kindDataset, "/a|n5:": kindDataset,
		"/a|gzip:": kindFile, "/a|zstd": kindFile, "/a|byte-range:1-2": kindFile, "/a|json:/x/": kindDataset, "/a|tiff:": kindDataset, "/a|neuroglancer-precomputed:": kindDataset,
		"/a|zarrdb:": kindDirectory, "/a|kerchunk:": kindDirectory, "/a|other:x": kindUnknown,
	} {
		u, err := Parse(in)
		if err != nil || u.Last().Kind() != want {
			t.Errorf("%s is a %s, %v, want %s", in, u.Last().Kind(), err, want)
		}
	}
}

func TestVersions(t *testing.T) {
	for in, want := range map[string]Version{
		"/r|ocdbt:a":                              {},
		"/r|ocdbt:@v0042/a":                       {generation, "42"},
		"/r|ocdbt:@2025-01-01T01:23:45.678Z":      {Time, "2025-01-01T01:23:45.678Z"},
		"/r|icechunk:@branch.x%2Fy/a":             {Branch, "x/y"},
		"/r|icechunk:@tag.branch.z/a":             {Tag, "branch.z"},
		"/r|icechunk:@4N0217AZA4VNPYD0HR0G/":      {id, "4N0217AZA4VNPYD0HR0G"},
		"/r|icechunk:":                            {},
		"/r|zarrdb:@branch.main":                  {Branch, "main"},
		"/r|zarrdb:@tag.v1/t":                     {Tag, "v1"},
		"/r|zarrdb:@1a2b3c/t":                     {id, "1a2b3c"},
		"/r|zarrdb:@2025-01-01T01:23:45%2B02:00/": {Time, "2025-01-01T01:23:45+02:00"},
		"/r|zip:@v1":                              {},
	} {
		u, err := Parse(in)
		if err != nil || u.Last().At() != want {
			t.Errorf("%s is at %+v, %v, want %+v", in, u.Last().At(), err, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{
		"file:///a|zip:b|..:../c", "x|zarrdb:@branch.main/a%2fb", "s3://b/%41?x|gzip", "/r|ocdbt:@2025-01-01T01:23:45.678Z/p", "memory:/%2Fx", "a://b//c|d:%2F",
		"https://u@H:443/a%2fb/../c?d=%7e", "/j|json:/a~1/../b", "/x|byte-range:01-2", `c:\x|zip`, "new:////a", "/r|ocdbt:./@x", "/é\xff|zip:%ff", "http://0::", "http://[::1]:80/",
	} {
		f.Add(s, "../x|zip:")
		f.Add(s, "..:/%2e%2e/y?z|..:")
	}
	f.Fuzz(func(t *testing.T, s, rel string) {
		u, err := parseIn("/d", s)
		if err != nil {
			if !errors.Is(err, ErrURL) {
				t.Errorf("%q: %v is not ErrURL", s, err)
			}
			return
		}
		checkNormal(t, s, u)
		v, err := u.Resolve(rel)
		if err != nil {
			if !errors.Is(err, ErrURL) {
				t.Errorf("%q + %q: %v is not ErrURL", s, rel, err)
			}
			return
		}
		if _, _, absolute := cutScheme(rel); !absolute || !strings.HasPrefix(v.String(), "file:") {
			checkNormal(t, s+" + "+rel, v)
		}
	})
}

// checkNormal checks what is promised of every URL.
func checkNormal(t *testing.T, from string, u URL) {
	t.Helper()
	once := u.String()
	again, err := Parse(once)
	if err != nil || again.String() != once {
		t.Errorf("%q is %q, which is %v, %v", from, once, again, err)
		return
	}
	if len(again.parts) != len(u.parts) {
		t.Fatalf("%q is %d parts, and read back %d", from, len(u.parts), len(again.parts))
	}
	for i, p := range u.parts {
		if p != again.parts[i] {
			t.Errorf("%q: part %d is %+v, and read back %+v", from, i, p, again.parts[i])
		}
		path, err := p.Pointer()
		if err != nil {
			t.Errorf("%q: %v", from, err)
		}
		for name := range strings.SplitSeq(path, "/") {
			if (name == ".." || name == ".") && schemes[p.Scheme].syntax != pointer && !schemes[p.Scheme].web {
				t.Errorf("%q: part %d is %s", from, i, p)
			}
		}
	}
	for _, c := range []byte(once) {
		if c <= ' ' || c >= 0x7f || strings.IndexByte("\"<>\\^`{}#", c) >= 0 {
			t.Errorf("%q is printed as %q", from, once)
			break
		}
	}
}

// TestRedacted makes sure that nothing which gives access is printed, well
// formed or not.
func TestRedacted(t *testing.T) {
	for in, want := range map[string]string{
		"https://joe:pw@h:1/a?sig=x|zip:b/|zarr3:": "https://h:1/a?…|zip:b/|zarr3:",
		"http://joe@h/a":             "http://h/a",
		"s3://bucket/a@b":            "s3://bucket/a@b",
		"s3+https://k:s@h/b/a":       "s3+https://h/b/a",
		"memory:x|zip:who@where":     "memory:x|zip:who@where",
		"file:///a@b/c/|zarrdb:@x/y": "file:///a@b/c/|zarrdb:@x/y",
	} {
		u := must.Get(Parse(in))(t)
		if got := u.Redacted(); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
	for _, in := range []string{
		"https://joe:pw@h/a?sig=pw#f", "https://joe:pw@h/%zz?pw", "http://joe:pw@/x?pw", "http://pw@h:port/?pw=pw", "https://pw@h/a?pw|nope nope", "other://pw@h/?pw|zip:|json|x:",
		"https://joe:pw/x@h/a", "https://joe:pw?x@h/a", "https://joe:a:pw/x@h/a", "https://joe:x/pw@h/a",
	} {
		_, err := Parse(in)
		if err == nil || strings.Contains(err.Error(), "pw") {
			t.Errorf("%s: %v", in, err)
		}
	}
}
