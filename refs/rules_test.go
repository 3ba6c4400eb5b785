package refs_test

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/zarrdb/zarrdb/refs"
)

func TestRules(t *testing.T) {
	rules := refs.Rules{
		Base: "/data/sets",
		Map: []refs.Mapping{
			{From: "s3://bucket", To: "/mirror/bucket"}, {From: "s3://bucket/deep/", To: "https://Host.org/deep"}, {From: "s3://one/file.nc", To: "/one.nc"},
		},
		Allow: []string{"gs://open/part", "https://allowed.org/", "https://Joe:Pass@Private.org/", "memory://"},
	}
	for _, c := range []struct{ url, root, path string }{
		// Below the folder of the set.
		{"a.nc", "file:///data/sets/", "a.nc"},
		{"./a/./b.nc", "file:///data/sets/", "a/b.nc"},
		{"a/../b.nc", "file:///data/sets/", "b.nc"},
		{"a b%20c.nc", "file:///data/sets/", "a b%20c.nc"},
		{"100%.nc", "file:///data/sets/", "100%.nc"},
		{"..a/b..", "file:///data/sets/", "..a/b.."},
		{"/data/sets/x/y.nc", "file:///data/sets/", "x/y.nc"},
		{"file:///data//sets/../sets/y.nc", "file:///data/sets/", "y.nc"},
		{"file:/data/sets/y.nc", "file:///data/sets/", "y.nc"},
		{"file://localhost/data/sets/y.nc", "file:///data/sets/", "y.nc"},
		{"local:///data/sets/y.nc", "file:///data/sets/", "y.nc"},
		// Mapped: the longest prefix counts, and ends between segments.
		{"s3://bucket/a/b.nc", "file:///mirror/bucket/", "a/b.nc"},
		{"S3://bucket/a/../b.nc", "file:///mirror/bucket/", "b.nc"},
		{"s3://bucket/deep/b.nc", "https://host.org/deep/", "b.nc"},
		{"s3://one/file.nc", "file:///", "one.nc"},
		// Allowed.
		{"gs://open/part/x", "gs://open/part/", "x"},
		{"https://Allowed.org/x?version=../y", "https://allowed.org/", "x?version=../y"},
		{"HTTPS://Joe:Pass@PRIVATE.org/x", "https://Joe:Pass@private.org/", "x"},
		{"https://joe:p%40@x@Allowed.org/x/y", "https://joe:p%40@x@allowed.org/", "x/y"}, // whoever asks
		{"memory://h/p/q", "memory://h/", "p/q"},
	} {
		p, err := rules.Resolve(c.url)
		if err != nil || p.Root != c.root || p.Path != c.path {
			t.Errorf("%s leads to %q + %q, %v", c.url, p.Root, p.Path, err)
		}
	}
	for _, u := range []string{
		"", ".", "a/..", "../x", "a/../../x", "/etc/passwd", "/data/setsx/y", "file:///data/sets", "file://host/data/sets/y", "file:relative",
		"%2e%2e/x", "a/%2E%2e/x", "..%2fx", "%252e%252e/x", "%2e%2e%2f%zz", `..\x`, `a\..\..\x`, "%25252525252e", "a\x00b",
		"s3://bucketx/y", "s3://other/y", "gs://open/partial/x", "gs://open/part/../x", "http://allowed.org/x", "https://allowed.org@evil.org/x",
		"https://allowed.org.evil.org/x", `https://allowed.org\@evil.org/x`, "https://joe:Pass@private.org/x", "https://private.org/x", "https://Joe:Pass@private.org@evil.org/x", "https://x@allowed.org@evil.org/x", "https://allowed.org?x/y", "https:///x", "simplecache::https://allowed.org/x", "://x", "1a://x", "https://allowed.org/",
	} {
		p, err := rules.Resolve(u)
		if u == "file:relative" {
			// A name like another, below the folder of the set.
			if err != nil || p.URL() != "file:///data/sets/file:relative" {
				t.Errorf("%q leads to %q, %v", u, p.URL(), err)
			}
			continue
		}
		if !errors.Is(err, refs.ErrForbidden) {
			t.Errorf("%q leads to %q, %v", u, p.URL(), err)
		}
	}
	// A scheme has one meaning, whichever of its names stands in the set or in a rule.
	for root, names := range map[string][]string{"b/": {"s3", "s3a", "s3n", "S3A"}, "c/": {"gs", "gcs", "Gcs"}, "/d/": {"file", "local", "FILE"}} {
		for _, a := range names {
			for _, b := range names {
				p, err := refs.Rules{Allow: []string{a + "://" + root}}.Resolve(b + "://" + root + "x")
				if want := names[0] + "://" + root + "x"; err != nil || p.URL() != want {
					t.Errorf("%s below %s leads to %q, %v", b, a, p.URL(), err)
				}
			}
		}
	}
	// What is a name in a set or a bucket may be more on a web server.
	web := refs.Rules{Base: "https://h/dir", Map: []refs.Mapping{{From: "s3://b", To: "http://m/deep"}, {From: "s3://b/one", To: "http://m/deep/"}, {From: "/local", To: "https://m/"}}}
	for u, want := range map[string]string{
		"x?y=..": "https://h/dir/x?y=..", "?y": "https://h/dir/?y", "a/b?../..": "https://h/dir/a", "..a?x": "https://h/dir/..a?x", "a/b#c": "https://h/dir/a/b#c",
		"s3://b/x?y": "http://m/deep/x?y", "/local/x?y": "https://m/x?y", "https://h/dir/x?..": "https://h/dir/x?..",
		"..?x": "", "a/..?x": "", "a/.?x": "", ".?x": "", "..?/x": "", "a/..#x": "", "s3://b/..?x": "", "s3://b/a/..?x": "", "s3://b/one/..?x": "", "/local/..?x": "",
		"file:///local/..#": "",
	} {
		p, err := web.Resolve(u)
		if want == "" && !errors.Is(err, refs.ErrForbidden) || want != "" && (err != nil || p.URL() != want) {
			t.Errorf("%q leads to %q, %v, want %q", u, p.URL(), err, want)
		}
	}
	for _, r := range []refs.Rules{{Base: "relative"}, {Allow: []string{"x"}}, {Map: []refs.Mapping{{From: "s3://a", To: "b"}}}, {Base: "file://host/x"}} {
		if _, err := r.Resolve("x"); err == nil || errors.Is(err, refs.ErrForbidden) {
			t.Errorf("%v: %v", r, err)
		}
	}
}

func TestScheme(t *testing.T) {
	for name, want := range map[string]string{
		"file": "file", "FILE": "file", "local": "file", "Local": "file", "locals": "locals", "S3": "s3", "": "",
	} {
		if got := refs.Scheme(name); got != want {
			t.Errorf("%q is %q, want %q", name, got, want)
		}
	}
}

// Who allows what an origin names can read the file, and not a whole disk.
func TestOrigin(t *testing.T) {
	for u, want := range map[string]string{
		"s3://b/x/y": "s3://b/", "HTTPS://u:p@H/x": "https://h/", "/data/a/x": "file:///data/a/", "/x": "file:///x", "C:/x": "file:///C:/x", "C:/a/x": "file:///C:/a/",
	} {
		got := refs.Origin(u)
		_, err := refs.Rules{Allow: []string{got}}.Resolve(u)
		if got != want || err != nil {
			t.Errorf("%s: %s, want %s (%v)", u, got, want, err)
		}
		if _, err := (refs.Rules{}).Resolve(u); !strings.Contains(fmt.Sprint(err), fmt.Sprintf("%q", want)) {
			t.Errorf("%s: %v, want one that names %s", u, err, want)
		}
	}
}

// anyUser is a user and a password in a URL.
var anyUser = regexp.MustCompile("^(https?://)[^/]*@")

// FuzzRules asserts what the rules are for: no URL leads out.
func FuzzRules(f *testing.F) {
	for _, s := range []string{"a/b", "../a", "/etc/passwd", "file:///data/sets/../x", "s3://bucket/x", "a/%2e%2e/b", `a\..\b`, "https://h/x?y#z", "c:/x", "::", "memory://a/b", "..#", "..?", "a/..#/x", "https://h/dir/..#", "https://h/dir/..?", "..?x", "s3://bucket/a/..?x", "a/.?b", "b?.."} {
		f.Add(s, false)
		f.Add(s, true)
	}
	rules := refs.Rules{Base: "/data/sets", Map: []refs.Mapping{{From: "s3://bucket", To: "/mirror"}}, Allow: []string{"https://h/dir", "memory://"}}
	onWeb := refs.Rules{Base: "https://h/sets", Map: []refs.Mapping{{From: "s3://bucket", To: "http://m/deep"}}}
	roots := []string{"file:///data/sets/", "file:///mirror/", "https://h/dir/", "memory://", "https://h/sets/", "http://m/deep/"}
	f.Fuzz(func(t *testing.T, u string, web bool) {
		p, err := rules.Resolve(u)
		if web {
			p, err = onWeb.Resolve(u)
		}
		if err != nil {
			if !errors.Is(err, refs.ErrForbidden) {
				t.Fatalf("%q: %v", u, err)
			}
			return
		}
		inside := false
		p.Root = anyUser.ReplaceAllString(p.Root, "$1")
		for _, root := range roots {
			// What is mapped or allowed may be a file.
			inside = inside || p.Root == root || p.URL()+"/" == root || root == "memory://" && strings.HasPrefix(p.Root, root)
		}
		path := p.Path
		if strings.HasPrefix(p.Root, "http") { // a file may be named "..#", a query ends a path
			if i := strings.IndexAny(path, "?#"); i >= 0 {
				path = path[:i]
			}
		}
		if !inside || p.Path == "" || strings.HasPrefix(path, "../") || strings.HasSuffix(path, "/..") || strings.Contains(path, "/../") || path == ".." || web && (strings.Contains("/"+path+"/", "/./")) {
			t.Fatalf("%q leads to %q + %q", u, p.Root, p.Path)
		}
	})
}
