package cli

import (
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/zarrdb/zarrdb/internal/report"
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
	if !isSet(cmd, "quiet") {
		sayError(cmd, format, args)
	}
}

func sayError(cmd *cobra.Command, format string, args []any) {
	if out, ok := cmd.OutOrStdout().(*stdoutWriter); ok {
		_ = out.flush() // it remembers the error
	}
	sayTo(cmd.ErrOrStderr(), format, args)
}

// warn prints a warning to standard error.
func warn(cmd *cobra.Command, text string) { sayError(cmd, "zarrdb: warning: %s", []any{text}) }

// isSet reports whether a flag of all commands is given.
func isSet(cmd *cobra.Command, name string) bool {
	set, _ := cmd.Root().PersistentFlags().GetBool(name)
	return set
}

// quieted are the commands whose output --quiet leaves out: it only says what they did.
var quieted = map[string]bool{
	"import": true, "export": true, "write": true, "put": true, "create": true, "resize": true, "mv": true, "cp": true, "rm": true, "gc": true, "expire": true,
	"erase": true, "clone": true, "push": true, "pull": true, "backup": true, "restore": true,
}

// quiet makes a command say nothing, if that is asked for.
func quiet(cmd *cobra.Command, args []string) {
	says := quieted[cmd.Name()] || cmd.Name() == "attrs" && (cmd.Flags().Changed("set") || cmd.Flags().Changed("delete"))
	if !given(cmd, "json") && isSet(cmd, "quiet") && says && !slices.Contains(args, "-") {
		cmd.SetOut(io.Discard)
	}
}

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
		fmt.Fprintf(f, directive, report.Escape(text, s.keep))
		return
	}
	io.WriteString(f, report.Escape(fmt.Sprintf(directive, s.v), s.keep))
}
