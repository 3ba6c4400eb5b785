package dirkv

import (
	"errors"
	"fmt"
	"strings"
)

// ErrURI means that a string is no file URI of this machine. The error's text
// quotes it.
var ErrURI = errors.New("dirkv: not a file URI of this machine")

// URI returns the canonical URI of an absolute path: [Form.URI] of the native
// form.
func URI(path string) (string, error) { return Native.URI(path) }

// FromURI returns the path that a file URI names: [Form.FromURI] of the native
// form.
func FromURI(s string) (string, error) { return Native.FromURI(s) }

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

// FromURI returns the path that a file URI names. A string without a scheme is
// a path already and is returned as it is; on Windows, so is one that begins
// with a drive. file:/p, file:///p, file://localhost/p and (relative) file:p
// are understood.
//
// Everything else is [ErrURI]: other schemes, other hosts, a query or a
// fragment, broken escapes, an escaped separator and NUL.
func (f Form) FromURI(s string) (string, error) {
	fail := func(reason string) (string, error) { return "", fmt.Errorf("%w: %q: %s", ErrURI, s, reason) }
	if s == "" {
		return fail("it is empty")
	}
	if strings.IndexByte(s, 0) >= 0 {
		return fail("NUL in it")
	}
	scheme, rest, ok := cutScheme(s)
	if !ok || f == Windows && len(scheme) == 1 {
		return s, nil
	}
	if !strings.EqualFold(scheme, "file") {
		return fail("the scheme is " + scheme)
	}
	if authority, isAuthority := strings.CutPrefix(rest, "//"); isAuthority {
		slash := strings.IndexByte(authority, '/')
		if slash < 0 {
			return fail("no path")
		}
		if host := authority[:slash]; host != "" && !strings.EqualFold(host, "localhost") {
			return fail("the file is on host " + host)
		}
		rest = authority[slash:]
	}
	if i := strings.IndexAny(rest, "?#|"); i >= 0 {
		return fail(fmt.Sprintf("%q must be escaped", rest[i]))
	}
	path, err := f.unescape(rest)
	if err != nil {
		return fail(err.Error())
	}
	if path == "" {
		return fail("no path")
	}
	if f == Posix {
		return path, nil
	}
	if strings.HasPrefix(path, "/") && hasDrive(path[1:]) {
		path = path[1:]
	}
	switch {
	case strings.HasPrefix(path, "//"):
		return fail("the file is on another host")
	case strings.HasPrefix(path, "/"):
		return fail("no drive")
	case hasDrive(path) && len(path) == 2:
		path += "/"
	case hasDrive(path) && path[2] != '/':
		return fail("a path relative to a drive")
	}
	return strings.ReplaceAll(path, "/", `\`), nil
}

// cutScheme splits "scheme:rest" (RFC 3986, 3.1).
func cutScheme(s string) (scheme, rest string, ok bool) {
	scheme, rest, ok = strings.Cut(s, ":")
	if !ok || scheme == "" || !isLetter(scheme[0]) {
		return "", s, false
	}
	for i := range len(scheme) {
		if c := scheme[i]; !isLetter(c) && !isDigit(c) && c != '+' && c != '-' && c != '.' {
			return "", s, false
		}
	}
	return scheme, rest, true
}

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }
func isDigit(c byte) bool  { return '0' <= c && c <= '9' }
func hasDrive(p string) bool {
	return len(p) >= 2 && isLetter(p[0]) && p[1] == ':'
}

// escape percent-encodes what may not stand in a path: all but the characters
// pchar of RFC 3986 and the slash.
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

// unescape decodes percent-encoded bytes, but none that would make a separator
// or end the string: those cannot be part of a file name.
func (f Form) unescape(s string) (string, error) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c == '\\' && f == Windows {
			return "", errors.New("a backslash in it")
		}
		if c == '%' {
			if i+2 >= len(s) || unhex(s[i+1]) < 0 || unhex(s[i+2]) < 0 {
				return "", fmt.Errorf("broken escape %q", s[i:min(i+3, len(s))])
			}
			c = byte(unhex(s[i+1])<<4 | unhex(s[i+2]))
			if c == 0 || f.isSeparator(c) {
				return "", fmt.Errorf("escaped %q in it", c)
			}
			i += 2
		}
		b.WriteByte(c)
	}
	return b.String(), nil
}

func unhex(c byte) int {
	switch {
	case isDigit(c):
		return int(c - '0')
	case 'a' <= c|0x20 && c|0x20 <= 'f':
		return int(c|0x20-'a') + 10
	}
	return -1
}
