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
		{posix, "foo/bar", "foo/bar"},
		{windows, "foo/bar", `foo\bar`},
		{posix, `a\b`, `a\b`},
		{posix, "c:/CON/x.", "c:/CON/x."},
		{posix, "..a/b..", "..a/b.."},
		{windows, "COM/LPT/CONSOLE/nul0/com10/.x", `COM\LPT\CONSOLE\nul0\com10\.x`},
	} {
		if path, err := c.form.rel(c.key); err != nil || path != c.path {
			t.Errorf("%c: rel(%q) = %q, %v, want %q", c.form, c.key, path, err, c.path)
		}
	}
	both := []string{"", "/", "/a", "a/", "a//b", ".", "..", "../a", "a/..", "a/../b", "a/./b", "./a", "a\x00b", "\xff", temp.Prefix + "1", "a/" + temp.Prefix}
	for _, key := range both {
		for _, form := range []Form{posix, windows} {
			if path, err := form.rel(key); !errors.Is(err, kv.ErrInvalidKey) {
				t.Errorf("%c: rel(%q) = %q, %v, want ErrInvalidKey", form, key, path, err)
			}
		}
	}
	for _, key := range []string{
		`a\b`, `..\a`, `\a`, "c:", "a:stream", "a?", "a*", "a<", "a>", `a"`, "a|b", "a\nb", "a.", "a ", "a/b./c", "CON", "con.txt", "x/NUL", "aux.tar.gz", "COM1", "lpt9.x", "com²", "CONIN$", "nul .txt",
	} {
		if path, err := windows.rel(key); !errors.Is(err, kv.ErrInvalidKey) {
			t.Errorf("Windows: rel(%q) = %q, %v, want ErrInvalidKey", key, path, err)
		}
	}
}

// FuzzRel checks that the path of a key stays below its base, and that no two keys
// share one.
func FuzzRel(f *testing.F) {
	for _, s := range []string{"a/b", "../x", `a\..\b`, "con", "a//b", "é", "a./b", ".zarrdb-tmp-1/x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, key string) {
		for _, form := range []Form{posix, windows} {
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
