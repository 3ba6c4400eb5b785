package cli

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
)

// say prints a line of text for people, as fmt.Printf would. The format is
// trusted. The arguments are not: names, messages and values of a store, and
// errors that quote them. Their control characters are escaped.
//
// Every command prints through say, printJSON, reading.print or sayFigure, or escapes itself
// as keys, which all escape. Only raw bytes, such as those of get, are written without
// escapes.
func say(cmd *cobra.Command, format string, args ...any) { sayTo(cmd.OutOrStdout(), format, args) }

// note prints to standard error, after the earlier output.
func note(cmd *cobra.Command, format string, args ...any) {
	if out, ok := cmd.OutOrStdout().(*stdoutWriter); ok {
		_ = out.flush() // it remembers the error
	}
	sayTo(cmd.ErrOrStderr(), format, args)
}

// warn prints a warning to standard error.
func warn(cmd *cobra.Command, text string) { note(cmd, "zarrdb: warning: %s", text) }

func sayTo(w io.Writer, format string, args []any) {
	safe := make([]any, len(args))
	for i, a := range args {
		switch a.(type) {
		case shown, int: // a number may be the width of another argument
			safe[i] = a
		default:
			safe[i] = shown{a, ""}
		}
	}
	fmt.Fprintf(w, format+"\n", safe...)
}

// shown is an argument of say whose characters in keep are not escaped.
type shown struct {
	v    any
	keep string
}

func (s shown) Format(f fmt.State, verb rune) {
	directive := fmt.FormatString(f, verb)
	if text, ok := s.v.(string); ok && verb != 'q' { // the width is that of the escaped text
		fmt.Fprintf(f, directive, escape(text, s.keep))
		return
	}
	io.WriteString(f, escape(fmt.Sprintf(directive, s.v), s.keep))
}

// escape escapes control characters as \u001b, or by name as \n. Bytes that are no
// UTF-8 become \xff. Other characters, and those in keep, are not changed.
func escape(s, keep string) string {
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
// of ASCII and Latin-1, which move cursors and ring bells, those that begin other
// lines, and those that turn the direction of the text after them.
func obeyed(r rune) bool {
	switch {
	case r < ' ', 0x7f <= r && r <= 0x9f:
		return true
	case r == 0x2028, r == 0x2029: // line and paragraph separator
		return true
	}
	return 0x202a <= r && r <= 0x202e || 0x2066 <= r && r <= 0x2069 // embeddings, overrides, isolates
}
