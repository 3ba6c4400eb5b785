// Package report has the answers to questions about databases and stores as typed values: log,
// show, diff, blame, branches, tags, stats, info, ls, tree, fsck and refs check.
//
//	engine.DB, engine.Source ─▶ report.Log, Tree, … ─▶ typed values ─┬─▶ internal/cli: text or --json
//	                                                                 └─▶ serve/web: /-/api/…
//
// The JSON tags of a type are the fields of --json and of HTTP. stats is [engine.Stats].
package report

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"
)

// JSON returns v as JSON with a line end behind it: on one line, or with indent for each level.
// Control characters in strings are escaped.
func JSON(v any, indent string) (string, error) {
	var text strings.Builder
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", indent)
	if err := enc.Encode(v); err != nil {
		return "", err
	}
	// The escaped characters can only occur in strings, whose values do not
	// change.
	return Escape(strings.ToValidUTF8(text.String(), "\ufffd"), "\n"), nil
}

// Escape escapes control characters as \u001b, or by name as \n. Bytes that are no
// UTF-8 become \xff. Other characters, and those in keep, are not changed.
func Escape(s, keep string) string {
	i := unsafeAt(s, keep)
	if i < 0 {
		return s
	}
	var b strings.Builder
	for ; i >= 0; i = unsafeAt(s, keep) {
		b.WriteString(s[:i])
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\t':
			b.WriteString(`\t`)
		default:
			fmt.Fprintf(&b, `\u%04x`, r) // valid in JSON too; all lie in the first plane
		}
		s = s[i+n:]
	}
	b.WriteString(s)
	return b.String()
}

// unsafeAt finds the first character that is unsafe, or byte that is no UTF-8;
// -1 without any.
func unsafeAt(s, keep string) int {
	for i, r := range s {
		switch {
		case r == utf8.RuneError:
			if _, n := utf8.DecodeRuneInString(s[i:]); n == 1 {
				return i
			}
		case obeyed(r) && !strings.ContainsRune(keep, r):
			return i
		}
	}
	return -1
}

// obeyed reports whether a terminal obeys a character in place of showing it: the control characters
// of ASCII and Latin-1, which move cursors and ring bells, characters that begin
// a new line, and characters that change the direction of the text after them.
func obeyed(r rune) bool {
	switch {
	case r < ' ', 0x7f <= r && r <= 0x9f:
		return true
	case r == 0x2028, r == 0x2029: // line and paragraph separator
		return true
	}
	return 0x202a <= r && r <= 0x202e || 0x2066 <= r && r <= 0x2069 // embeddings, overrides, isolates
}
