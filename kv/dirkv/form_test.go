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
		form            Form
		base, key, path string
	}{
		{Posix, "/data", "foo/bar", "/data/foo/bar"},
		{Windows, `C:\data`, "foo/bar", `C:\data\foo\bar`},
		{Posix, "/", "a", "/a"},
		{Posix, "/data/", "a", "/data/a"},
		{Posix, "", "a/b", "a/b"},
		{Windows, `C:\`, "a/b", `C:\a\b`},
		{Windows, `C:/data`, "a", `C:/data\a`},
		{Posix, "/d", `a\b`, `/d/a\b`},
		{Posix, "/d", "c:/CON/x.", "/d/c:/CON/x."},
		{Posix, "/d", "..a/b..", "/d/..a/b.."},
		{Windows, `C:\d`, "COM/LPT/CONSOLE/nul0/com10/.x", `C:\d\COM\LPT\CONSOLE\nul0\com10\.x`},
	} {
		path, err := c.form.KeyToPath(c.base, c.key)
		if err != nil || path != c.path {
			t.Errorf("KeyToPath(%q, %q) = %q, %v, want %q", c.base, c.key, path, err, c.path)
		}
		key, err := c.form.PathToKey(c.base, c.path)
		if err != nil || key != c.key {
			t.Errorf("PathToKey(%q, %q) = %q, %v, want %q", c.base, c.path, key, err, c.key)
		}
	}
	both := []string{"", "/", "/a", "a/", "a//b", ".", "..", "../a", "a/..", "a/../b", "a/./b", "./a", "a\x00b", "\xff", temp.Prefix + "1", "a/" + temp.Prefix}
	for _, key := range both {
		for _, form := range []Form{Posix, Windows} {
			if path, err := form.KeyToPath("/d", key); !errors.Is(err, kv.ErrInvalidKey) {
				t.Errorf("%c: KeyToPath(%q) = %q, %v, want ErrInvalidKey", form, key, path, err)
			}
		}
	}
	for _, key := range []string{
		`a\b`, `..\a`, `\a`, "c:", "a:stream", "a?", "a*", "a<", "a>", `a"`, "a|b", "a\nb", "a.", "a ", "a/b./c", "CON", "con.txt", "x/NUL", "aux.tar.gz", "COM1", "lpt9.x", "com²", "CONIN$", "nul .txt",
	} {
		if path, err := Windows.KeyToPath(`C:\d`, key); !errors.Is(err, kv.ErrInvalidKey) {
			t.Errorf("Windows.KeyToPath(%q) = %q, %v, want ErrInvalidKey", key, path, err)
		}
	}
	for _, c := range []struct {
		form       Form
		base, path string
	}{
		{Posix, "/data", "/data"}, {Posix, "/data", "/data/"}, {Posix, "/data", "/database/x"}, {Posix, "/data", "/x"}, {Posix, "/data", "/data/../x"}, {Posix, "/data", "/data//x"},
		{Windows, `C:\data`, `D:\data\x`}, {Windows, `C:\data`, `C:\data\..\x`},
	} {
		if key, err := c.form.PathToKey(c.base, c.path); err == nil {
			t.Errorf("PathToKey(%q, %q) = %q", c.base, c.path, key)
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
		path, err := c.form.FromURI(c.uri)
		if err != nil || path != c.path {
			t.Errorf("FromURI(%q) = %q, %v, want %q", c.uri, path, err, c.path)
		}
	}
	for _, c := range []struct {
		form      Form
		uri, path string
	}{
		{Posix, "file:/a/b", "/a/b"}, {Posix, "FILE:///a", "/a"}, {Posix, "file://localhost/a", "/a"}, {Posix, "file://LOCALHOST/a", "/a"},
		{Posix, "file:a/b", "a/b"}, {Posix, "file:///%61%2e%c3%a9", "/a.é"}, {Posix, "file:///a b/é", "/a b/é"},
		{Posix, "a/b", "a/b"}, {Posix, "/a%20b", "/a%20b"}, {Posix, "./a:b", "./a:b"}, {Posix, "1:x", "1:x"}, {Posix, "~/x?y#z", "~/x?y#z"}, {Posix, "a_b:c", "a_b:c"},
		{Windows, "file:/c:/a", `c:\a`}, {Windows, "file:c:/a", `c:\a`}, {Windows, "file://localhost/c:/a", `c:\a`}, {Windows, "file:///c:", `c:\`}, {Windows, "file:///c%3A/a", `c:\a`},
		{Windows, `c:\a b`, `c:\a b`}, {Windows, "c:/a", "c:/a"}, {Windows, "file:a/b", `a\b`}, {Windows, `\\host\a`, `\\host\a`},
	} {
		path, err := c.form.FromURI(c.uri)
		if err != nil || path != c.path {
			t.Errorf("FromURI(%q) = %q, %v, want %q", c.uri, path, err, c.path)
		}
	}
	for _, c := range []struct {
		form Form
		uri  string
	}{
		{Posix, ""}, {Posix, "file:"}, {Posix, "file://"}, {Posix, "file://localhost"}, {Posix, "file://host/a"}, {Posix, "file://relative/path"}, {Posix, "file://127.0.0.1/a"},
		{Posix, "http://x/a"}, {Posix, "s3://bucket/a"}, {Posix, "a:b"}, {Posix, "c:/a"}, {Posix, "file:///a?b"}, {Posix, "file:///a#b"}, {Posix, "file:///a|zip:"},
		{Posix, "file:///%"}, {Posix, "file:///%4"}, {Posix, "file:///%zz"}, {Posix, "file:///a%00b"}, {Posix, "file:///a%2Fb"}, {Posix, "file:///a\x00"}, {Posix, "/a\x00"},
		{Posix, "file://user@localhost/a"}, {Posix, "file://localhost:80/a"},
		{Windows, "file:///a"}, {Windows, "file:////host/a"}, {Windows, "file://host/a"}, {Windows, "file:///c:a"}, {Windows, "file:///c:/a%5Cb"}, {Windows, `file:///c:\a`}, {Windows, "http://x/"},
	} {
		if path, err := c.form.FromURI(c.uri); !errors.Is(err, ErrURI) {
			t.Errorf("%c: FromURI(%q) = %q, %v, want ErrURI", c.form, c.uri, path, err)
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

// FuzzURI checks that what can be written can be read back, and that whatever
// is read has one canonical spelling.
func FuzzURI(f *testing.F) {
	for _, s := range []string{"/my data", "file:///my%20data", `c:\my data`, "file:///c:/my%20data", "file://localhost/%C3%A9", "/a|b\xff", "file:c:/x", "file:////a/b"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, form := range []Form{Posix, Windows} {
			if uri, err := form.URI(s); err == nil {
				path, err := form.FromURI(uri)
				want := s
				if form == Windows {
					want = strings.ReplaceAll(s, "/", `\`)
				}
				if err != nil || path != want {
					t.Errorf("%c: %q → %q → %q, %v", form, s, uri, path, err)
				}
				if strings.ContainsAny(uri, "|?# \\") {
					t.Errorf("%c: URI(%q) = %q is not canonical", form, s, uri)
				}
			}
			path, err := form.FromURI(s)
			if err != nil {
				continue
			}
			if strings.IndexByte(path, 0) >= 0 {
				t.Errorf("%c: FromURI(%q) has a NUL", form, s)
			}
			if uri, err := form.URI(path); err == nil {
				again, err := form.FromURI(uri)
				if err != nil || form.canonical(again) != form.canonical(path) {
					t.Errorf("%c: %q → %q → %q → %q, %v", form, s, path, uri, again, err)
				}
			}
		}
	})
}

func (f Form) canonical(path string) string {
	if f == Windows {
		return strings.ReplaceAll(path, "/", `\`)
	}
	return path
}

// FuzzKeyToPath checks that a path stays below its base and leads back to its
// key.
func FuzzKeyToPath(f *testing.F) {
	for _, s := range []string{"a/b", "../x", `a\..\b`, "con", "a//b", "é", "a./b", ".zarrdb-tmp-1/x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, key string) {
		for _, c := range []struct {
			form Form
			base string
		}{{Posix, "/d"}, {Windows, `C:\d`}} {
			path, err := c.form.KeyToPath(c.base, key)
			if err != nil {
				if !errors.Is(err, kv.ErrInvalidKey) {
					t.Errorf("KeyToPath(%q): %v", key, err)
				}
				continue
			}
			for _, name := range strings.FieldsFunc(path[len(c.base):], func(r rune) bool { return r < 128 && c.form.isSeparator(byte(r)) }) {
				if name == ".." || name == "." {
					t.Errorf("%c: KeyToPath(%q) = %q", c.form, key, path)
				}
			}
			if back, err := c.form.PathToKey(c.base, path); err != nil || back != key {
				t.Errorf("%c: %q → %q → %q, %v", c.form, key, path, back, err)
			}
		}
	})
}
