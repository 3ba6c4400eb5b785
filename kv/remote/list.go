package remote

import (
	"strings"
	"unicode/utf8"

	"github.com/zarrdb/zarrdb/kv"
)

// ListArguments returns what a server can be sent of a listing's options: it
// takes text, and a listing may be narrowed to half a character. The server
// then lists more than is wanted, never less; what it lists is still to be
// compared with the options.
func ListArguments(opts kv.ListOptions) (prefix, after string) {
	prefix, _ = sendable(opts.Prefix)
	after, cut := sendable(opts.After)
	if cut > 0xf4 {
		// No character has that byte, so it is a bound behind all that begins
		// with what comes before. Here is one that can be sent.
		after += string(utf8.MaxRune)
	}
	return prefix, after
}

// sendable returns the beginning of s that is text without NUL, and the byte
// behind it, 0 if that is all.
func sendable(s string) (text string, cut byte) {
	for i, r := range s {
		if r == 0 || r == utf8.RuneError && !strings.HasPrefix(s[i:], string(utf8.RuneError)) {
			return s[:i], s[i]
		}
	}
	return s, 0
}
