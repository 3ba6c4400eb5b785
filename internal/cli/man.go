package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
)

// writeMan writes a manual page of each command into a directory.
func writeMan(c *cobra.Command, dir string) error {
	if c.Hidden {
		return nil
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, manName(c)+".1"), []byte(manPage(c)), 0o666); err != nil {
		return err
	}
	for _, sub := range c.Commands() {
		if err := writeMan(sub, dir); err != nil {
			return err
		}
	}
	return nil
}

func manName(c *cobra.Command) string { return strings.ReplaceAll(c.CommandPath(), " ", "-") }

// manPage is the manual page of a command: its help, for man(1).
func manPage(c *cobra.Command) string {
	c.InitDefaultHelpFlag()
	var b strings.Builder
	part := func(name, text string) {
		if text = strings.Trim(text, "\n"); text != "" {
			fmt.Fprintf(&b, ".SH %s\n.nf\n%s\n.fi\n", name, roff(text))
		}
	}
	fmt.Fprintf(&b, ".TH %q 1 \"\" %q\n.SH NAME\n%s \\- %s\n", strings.ToUpper(manName(c)), "zarrdb "+version(), roff(manName(c)), roff(c.Short))
	part("SYNOPSIS", c.UseLine())
	long := c.Long
	if long == "" {
		long = c.Short + "."
	}
	part("DESCRIPTION", long)
	var commands, also []string
	for _, sub := range c.Commands() {
		if !sub.Hidden {
			commands = append(commands, fmt.Sprintf("%-14s %s", sub.Name(), sub.Short))
			also = append(also, manName(sub)+"(1)")
		}
	}
	part("COMMANDS", strings.Join(commands, "\n"))
	part("OPTIONS", c.LocalFlags().FlagUsagesWrapped(100)+c.InheritedFlags().FlagUsagesWrapped(100))
	part("EXAMPLES", c.Example)
	if c.HasParent() {
		also = append([]string{manName(c.Parent()) + "(1)"}, also...)
	}
	fmt.Fprintf(&b, ".SH SEE ALSO\n%s\n", roff(strings.Join(also, ", ")))
	return b.String()
}

// roff escapes a text for man(1).
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`, "…", "...").Replace(text)
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			lines[i] = `\&` + line
		}
	}
	var b strings.Builder
	for _, r := range strings.Join(lines, "\n") {
		if r < utf8.RuneSelf {
			b.WriteRune(r)
		} else {
			fmt.Fprintf(&b, `\[u%04X]`, r)
		}
	}
	return b.String()
}
