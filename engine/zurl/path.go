package zurl

import (
	"errors"
	"fmt"
	"strings"
)

var errNUL = errors.New("a NUL in a path")

// join applies an absolute or relative path, percent-encoded, to the last part.
// An empty one changes nothing.
func (u URL) join(path string) (URL, error) {
	if path == "" {
		return u, nil
	}
	last := u.Last()
	rooted := strings.HasPrefix(last.Path, "/") || len(u.parts) == 1 && hosted(last.Scheme)
	full := path
	if !strings.HasPrefix(path, "/") {
		full = last.Path[:strings.LastIndexByte(last.Path, '/')+1] + path
	}
	clean, err := removeDots(full)
	if err != nil {
		return u, err
	}
	if rooted {
		clean = "/" + clean
	}
	return u.withPath(clean), nil
}

// removeDots resolves "." and ".." in a path and drops its first slash. A path
// that leaves its store is an error.
func removeDots(path string) (string, error) {
	var kept []string
	segments := strings.Split(strings.TrimPrefix(path, "/"), "/")
	for i, s := range segments {
		end := i == len(segments)-1
		switch s {
		case "..":
			if len(kept) == 0 {
				return "", errors.New("the path leaves its store")
			}
			kept = kept[:len(kept)-1]
			if end {
				kept = append(kept, "")
			}
		case ".":
			if end {
				kept = append(kept, "")
			}
		default:
			kept = append(kept, s)
		}
	}
	return strings.Join(kept, "/"), nil
}

// plain reports whether a byte stands for itself in a path: RFC 3986 pchar and
// the slash, without what pipelines need for themselves.
func plain(c byte) bool {
	switch {
	case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		return true
	}
	return strings.IndexByte("-._~!$&'()*+,;=:@/", c) >= 0
}

const upperHex = "0123456789ABCDEF"

// escape percent-encodes a path.
func escape(s string) string {
	var b strings.Builder
	for i := range len(s) {
		if c := s[i]; plain(c) {
			b.WriteByte(c)
		} else {
			b.WriteString(string([]byte{'%', upperHex[c>>4], upperHex[c&15]}))
		}
	}
	return b.String()
}

// unescape decodes a path.
func unescape(s string) (string, error) {
	if !strings.Contains(s, "%") {
		return s, nil
	}
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] != '%' {
			b = append(b, s[i])
			continue
		}
		c, ok := hexByte(s[i:])
		if !ok {
			return "", fmt.Errorf("bad percent-encoding %q", s[i:min(len(s), i+3)])
		}
		b = append(b, c)
		i += 2
	}
	return string(b), nil
}

// hexByte reads "%XX".
func hexByte(s string) (c byte, ok bool) {
	if len(s) < 3 {
		return 0, false
	}
	for _, d := range []byte(s[1:3]) {
		switch {
		case '0' <= d && d <= '9':
			d -= '0'
		case 'a' <= d && d <= 'f':
			d -= 'a' - 10
		case 'A' <= d && d <= 'F':
			d -= 'A' - 10
		default:
			return 0, false
		}
		c = c<<4 | d
	}
	return c, true
}

// canonical checks the percent-encoding of a path and spells it in one way:
// what stands for itself is not encoded, unless that would change what the path
// means, everything else is, in capitals.
func canonical(s string) (string, error) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c == 0 {
			return "", errNUL
		}
		if c == '?' || c == '#' { // a query stays as it is
			b.WriteString(s[i:])
			break
		}
		if c != '%' {
			b.WriteString(escape(s[i : i+1]))
			continue
		}
		d, ok := hexByte(s[i:])
		switch {
		case !ok:
			return "", fmt.Errorf("bad percent-encoding %q", s[i:min(len(s), i+3)])
		case d == 0:
			return "", errNUL
		case plain(d) && d != '/' && d != '@' && d != ':' && d != '.':
			b.WriteByte(d)
		default:
			b.WriteString(string([]byte{'%', upperHex[d>>4], upperHex[d&15]}))
		}
		i += 2
	}
	return b.String(), nil
}
