package dirkv

import (
	"errors"
	"strings"
	"testing"

	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/internal/temp"
)

// TestKeyTranslation has the examples of the specification, "Key translation",
// and its borders.
func TestKeyTranslation(t *testing.T) {
	for _, c := range []struct {
		form      Form
		key, path string
	}{
		{Posix, "foo/bar", "foo/bar"},
		{Windows, "foo/bar", `foo\bar`},
		{Posix, `a\b`, `a\b`},
		{Posix, "c:/CON/x.", "c:/CON/x."},
		{Posix, "..a/b..", "..a/b.."},
		{Windows, "COM/LPT/CONSOLE/nul0/com10/.x", `COM\LPT\CONSOLE\nul0\com10\.x`},
	} {
		if path, err := c.form.rel(c.key); err != nil || path != c.path {
			t.Errorf("%c: rel(%q) = %q, %v, want %q", c.form, c.key, path, err, c.path)
		}
	}
	both := []string{"", "/", "/a", "a/", "a//b", ".", "..", "../a", "a/..", "a/../b", "a/./b", "./a", "a\x00b", "\xff", temp.Prefix + "1", "a/" + temp.Prefix}
	for _, key := range both {
		for _, form := range []Form{Posix, Windows} {
			if path, err := form.rel(key); !errors.Is(err, kv.ErrInvalidKey) {
				t.Errorf("%c: rel(%q) = %q, %v, want ErrInvalidKey", form, key, path, err)
			}
		}
	}
	for _, key := range []string{
		`a\b`, `..\a`, `\a`, "c:", "a:stream", "a?", "a*", "a<", "a>", `a"`, "a|b", "a\nb", "a.", "a ", "a/b./c", "CON", "con.txt", "x/NUL", "aux.tar.gz", "COM1", "lpt9.x", "com²", "CONIN$", "nul .txt",
	} {
		if path, err := Windows.rel(key); !errors.Is(err, kv.ErrInvalidKey) {
			t.Errorf("Windows: rel(%q) = %q, %v, want ErrInvalidKey", key, path, err)
		}
	}
}

func TestURI(t *testing.T) {
	for _, c := range []struct {
		form      Form
		path, uri string
	}{
		// The specification's examples.
		{Posix, "/my data", "file:///my%20data"},
		{Windows, `c:\my data`, "file:///c:/my%20data"},
		{Posix, "/", "file:///"},
		{Posix, "/a/b.zarr/", "file:///a/b.zarr/"},
		{Posix, "/100%/a?b#c", "file:///100%25/a%3Fb%23c"},
		{Posix, "/a|b", "file:///a%7Cb"},
		{Posix, "/é/\xff", "file:///%C3%A9/%FF"},
		{Posix, `/a\b`, "file:///a%5Cb"},
		{Posix, "/a+b@c:d;e=f,g!h$i&j'k(l)m*n~o-p_q.r", "file:///a+b@c:d;e=f,g!h$i&j'k(l)m*n~o-p_q.r"},
		{Posix, "//host/x", "file:////host/x"},
		{Posix, "/a\nb", "file:///a%0Ab"},
		{Windows, `C:\`, "file:///C:/"},
		{Windows, `C:\a b\c%d`, "file:///C:/a%20b/c%25d"},
	} {
		uri, err := c.form.URI(c.path)
		if err != nil || uri != c.uri {
			t.Errorf("URI(%q) = %q, %v, want %q", c.path, uri, err, c.uri)
		}
	}
	for _, c := range []struct {
		form Form
		path string
	}{
		{Posix, ""}, {Posix, "a"}, {Posix, "./a"}, {Posix, "/a\x00b"}, {Windows, `\\host\share\a`}, {Windows, `\a`}, {Windows, `c:a`}, {Windows, "c:"}, {Windows, "a"},
	} {
		if uri, err := c.form.URI(c.path); err == nil {
			t.Errorf("%c: URI(%q) = %q", c.form, c.path, uri)
		}
	}
}

// FuzzURI checks that a URI is ASCII and holds nothing that stands for something
// else.
func FuzzURI(f *testing.F) {
	for _, s := range []string{"/my data", `c:\my data`, "/a|b\xff", "//host/x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, form := range []Form{Posix, Windows} {
			uri, err := form.URI(s)
			if err == nil && strings.ContainsFunc(uri, func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune(`|?#\`, r) }) {
				t.Errorf("%c: URI(%q) = %q is not canonical", form, s, uri)
			}
		}
	})
}

// FuzzRel checks that the path of a key stays below its base, and that no two keys
// share one.
func FuzzRel(f *testing.F) {
	for _, s := range []string{"a/b", "../x", `a\..\b`, "con", "a//b", "é", "a./b", ".zarrdb-tmp-1/x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, key string) {
		for _, form := range []Form{Posix, Windows} {
			path, err := form.rel(key)
			if err != nil {
				if !errors.Is(err, kv.ErrInvalidKey) {
					t.Errorf("rel(%q): %v", key, err)
				}
				continue
			}
			for name := range strings.SplitSeq(path, string(rune(form))) {
				if name == "" || name == ".." || name == "." {
					t.Errorf("%c: rel(%q) = %q", form, key, path)
				}
			}
			if back := strings.ReplaceAll(path, string(rune(form)), "/"); back != key {
				t.Errorf("%c: %q → %q → %q", form, key, path, back)
			}
		}
	})
}
