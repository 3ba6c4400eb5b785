package jsontext

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"github.com/zarrdb/zarrdb/zarr/dtype"
)

// AppendIndented appends checked JSON text with every member and element on
// its own line, as Python's json module does, and tokens as they are.
func AppendIndented(dst []byte, raw json.RawMessage, indent string, level int) []byte {
	newline := func(n int) {
		dst = append(dst, '\n')
		for range n {
			dst = append(dst, indent...)
		}
	}
	for s := (scanner{text: raw}); ; {
		s.space()
		from := s.at
		switch c := s.peek(); c {
		case 0:
			return dst
		case '{', '[':
			s.at++
			s.space()
			dst = append(dst, c)
			if e := s.peek(); e == '}' || e == ']' {
				s.at++
				dst = append(dst, e)
				continue
			}
			level++
			newline(level)
		case '}', ']':
			s.at++
			level--
			newline(level)
			dst = append(dst, c)
		case ',':
			s.at++
			dst = append(dst, c)
			newline(level)
		case ':':
			s.at++
			dst = append(dst, ": "...)
		default:
			s.skip()
			dst = append(dst, raw[from:s.at]...)
		}
	}
}

// Sort orders members by name.
func Sort(list []Member) {
	slices.SortFunc(list, func(a, b Member) int { return strings.Compare(a.Name, b.Name) })
}

// Canonical returns checked JSON text in a form that is the same for values
// that mean the same: no space, members ordered by name, strings without
// needless escapes. Numbers stay as they are.
func Canonical(raw json.RawMessage) json.RawMessage { return AppendCanonical(nil, raw) }

// AppendCanonical is [Canonical] that appends to dst.
func AppendCanonical(dst []byte, raw json.RawMessage) []byte {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 {
		return dst
	}
	switch raw[0] {
	case '{':
		list, _ := Members(raw)
		Sort(list)
		dst = append(dst, '{')
		for i, m := range list {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(dtype.AppendString(dst, m.Name), ':')
			dst = AppendCanonical(dst, m.Value)
		}
		return append(dst, '}')
	case '[':
		list, _ := Items(raw)
		dst = append(dst, '[')
		for i, v := range list {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = AppendCanonical(dst, v)
		}
		return append(dst, ']')
	case '"':
		if halfPair(raw) {
			return append(dst, raw...) // half a pair alone is lost when unquoted
		}
		return dtype.AppendString(dst, string(unquote(raw)))
	}
	return append(dst, raw...)
}

// escapes finds the escapes of a JSON string, a surrogate pair as one.
var escapes = regexp.MustCompile(`\\u[dD][89abAB]..\\u[dD][c-fC-F]..|\\u....|\\.`)

// halfPair reports whether a checked JSON string has a surrogate without the
// other. It is no text; unquoting turns it into U+FFFD.
func halfPair(quoted []byte) bool {
	if !bytes.Contains(quoted, []byte(`\u`)) {
		return false
	}
	return slices.ContainsFunc(escapes.FindAll(quoted, -1), isHalf)
}

// isHalf reports whether one of the escapes is a surrogate without the other.
func isHalf(e []byte) bool { return len(e) == 6 && e[2]|0x20 == 'd' && e[3] >= '8' }

// AppendStrict appends checked JSON text with bare NaN, Infinity and -Infinity
// as strings, so that every JSON reader takes it.
func AppendStrict(dst []byte, raw json.RawMessage) []byte {
	for s := (scanner{text: raw}); s.at < len(raw); {
		from := s.at
		switch s.peek() {
		case '{', '[', '}', ']', ',', ':', ' ', '\t', '\n', '\r':
			s.at++
			dst = append(dst, raw[from])
			continue
		}
		s.skip()
		token := raw[from:s.at]
		switch string(token) {
		case "NaN", "Infinity", "-Infinity":
			dst = append(append(append(dst, '"'), token...), '"')
		default:
			dst = append(dst, token...)
		}
	}
	return dst
}

// Same reports whether two checked texts mean the same. 1 and 1.0 differ.
func Same(a, b json.RawMessage) bool {
	return bytes.Equal(a, b) || bytes.Equal(Canonical(a), Canonical(b))
}
