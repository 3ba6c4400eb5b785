package cli

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
)

// say prints a line of text for people, as fmt.Printf would. The format is ours;
// the arguments may be anybody's: names, messages and values of a store that
// somebody sent, and errors that quote them. What of them would do something to
// a terminal in place of being shown is escaped.
//
// Every command prints through say, lineWriter, printJSON or reading.print, which all do so.
// Bytes that were asked for as they are, such as those of get, are written as
// they are.
func say(cmd *cobra.Command, format string, args ...any) { sayTo(cmd.OutOrStdout(), format, args) }

// note says something on standard error, after what was said before.
func note(cmd *cobra.Command, format string, args ...any) {
	if out, ok := cmd.OutOrStdout().(*stdoutWriter); ok {
		_ = out.flush() // it remembers the error
	}
	sayTo(cmd.ErrOrStderr(), format, args)
}

// warn says on standard error what is no failure.
func warn(cmd *cobra.Command, text string) { note(cmd, "zarrdb: warning: %s", here(cmd).shown(text)) }

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

// shown is an argument of say, of which characters in keep need no escape.
type shown struct {
	v    any
	keep string
}

// Format implements fmt.Formatter.
func (s shown) Format(f fmt.State, verb rune) {
	directive := fmt.FormatString(f, verb)
	if text, ok := s.v.(string); ok && verb != 'q' { // its width is what is seen of it
		fmt.Fprintf(f, directive, escape(text, s.keep))
		return
	}
	io.WriteString(f, escape(fmt.Sprintf(directive, s.v), s.keep))
}

// escape writes the characters of a text that a terminal would obey rather than
// show as \u001b or, as far as there are names for them, \n. Bytes that are no
// UTF-8 become \xff. Everything else stays as it is, and so does what is in keep.
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
			fmt.Fprintf(&b, `\u%04x`, r) // which JSON knows too; all lie in the first plane
		}
		s = s[i+n:]
	}
	b.WriteString(s)
	return b.String()
}

// unsafeAt finds the first character that is unsafe, or byte that is no UTF-8;
// -1 if there is none.
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
