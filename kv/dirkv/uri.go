package dirkv

import (
	"fmt"
	"strings"
)

// URI returns the canonical URI of an absolute path: [Form.URI] of the native
// form.
func URI(path string) (string, error) { return Native.URI(path) }

// URI returns the canonical URI of an absolute path (specification, "Canonical
// URI"; RFC 8089): "/my data" is file:///my%20data, `c:\my data` is
// file:///c:/my%20data. Every byte that RFC 3986 does not allow in a path is
// percent-encoded, so the result is ASCII and has no "|". A relative path and a
// path on another host have no such URI.
func (f Form) URI(path string) (string, error) {
	fail := func(reason string) (string, error) {
		return "", fmt.Errorf("dirkv: no file URI for path %q: %s", path, reason)
	}
	if strings.IndexByte(path, 0) >= 0 {
		return fail("NUL in the path")
	}
	if f == Windows {
		path := strings.ReplaceAll(path, `\`, "/")
		switch {
		case strings.HasPrefix(path, "//"):
			return fail("it is on another host")
		case !hasDrive(path) || len(path) < 3 || path[2] != '/':
			return fail("it is not absolute")
		}
		return "file:///" + path[:2] + escape(path[2:]), nil
	}
	if !strings.HasPrefix(path, "/") {
		return fail("it is not absolute")
	}
	return "file://" + escape(path), nil
}

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }
func isDigit(c byte) bool  { return '0' <= c && c <= '9' }
func hasDrive(p string) bool {
	return len(p) >= 2 && isLetter(p[0]) && p[1] == ':'
}

// escape percent-encodes all bytes but the characters pchar of RFC 3986 and the
// slash.
func escape(path string) string {
	const hex = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(path) {
		c := path[i]
		if isLetter(c) || isDigit(c) || strings.IndexByte("/-._~!$&'()*+,;=:@", c) >= 0 {
			b.WriteByte(c)
			continue
		}
		b.WriteByte('%')
		b.WriteByte(hex[c>>4])
		b.WriteByte(hex[c&15])
	}
	return b.String()
}
