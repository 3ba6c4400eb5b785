package cli

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/zarrdb/zarrdb/internal/picture"
)

// paged are the commands that have colours on a terminal, and show what they print through a pager, as git does.
var paged = map[string]bool{"log": true, "diff": true, "show": true, "blame": true, "reflog": true}

// page has a command of those print through a pager. cancel ends the command when the pager is left.
func page(cmd *cobra.Command, out *stdoutWriter, cancel context.CancelFunc) {
	file, ok := out.w.w.(*os.File)
	if !ok || !paged[cmd.Name()] || !term.IsTerminal(int(file.Fd())) || given(cmd, "json") || given(cmd, "plot") {
		return
	}
	p := &pager{out: file, to: file, cancel: cancel, colours: terminalColours(os.Environ()) != picture.NoColours}
	if !isSet(cmd, "no-pager") {
		p.command = strings.Fields(pagerCommand())
	}
	out.w.w = p
}

// given reports whether a flag without a value is given to a command.
func given(cmd *cobra.Command, name string) bool {
	set, _ := cmd.Flags().GetBool(name)
	return set
}

// pagerCommand is the program that shows long output, "" for none.
func pagerCommand() string {
	set, _ := settings() // page is called after they were checked
	command := "less"
	for _, from := range []func() (string, bool){
		func() (string, bool) { return os.LookupEnv("ZARRDB_PAGER") },
		func() (string, bool) { v, ok := set["pager"]; return v, ok },
		func() (string, bool) { return os.LookupEnv("PAGER") },
	} {
		if v, ok := from(); ok {
			command = v
			break
		}
	}
	if command == "cat" {
		return ""
	}
	return command
}

// pager writes to a terminal in colours, through a program that is started at the first write.
type pager struct {
	out     *os.File
	command []string
	colours bool
	cancel  context.CancelFunc

	to   io.Writer
	cmd  *exec.Cmd
	in   io.WriteCloser // of cmd
	line []byte         // begun, and not yet written
	left bool           // the user has left the program
}

func (p *pager) Write(b []byte) (int, error) {
	if p.cmd == nil && len(p.command) > 0 {
		p.start()
	}
	end := bytes.LastIndexByte(b, '\n') + 1
	p.line = append(p.line, b[:end]...)
	if end > 0 {
		if err := p.print(); err != nil {
			return 0, err
		}
	}
	p.line = append(p.line, b[end:]...)
	return len(b), nil
}

// start starts the program. If that fails, output goes to the terminal.
func (p *pager) start() {
	cmd := exec.Command(p.command[0], p.command[1:]...)
	p.command = nil
	cmd.Stdout, cmd.Stderr, cmd.Env = p.out, os.Stderr, os.Environ()
	if _, ok := os.LookupEnv("LESS"); !ok {
		cmd.Env = append(cmd.Env, "LESS=FRX")
	}
	in, err := cmd.StdinPipe()
	if err == nil && cmd.Start() == nil {
		p.cmd, p.in, p.to = cmd, in, in
	}
}

// print writes the lines that are complete.
func (p *pager) print() error {
	text := p.line
	if p.colours {
		text = nil
		for line := range bytes.Lines(p.line) {
			text = appendColoured(text, line)
		}
	}
	p.line = p.line[:0]
	_, err := p.to.Write(text)
	if err != nil && p.cmd != nil {
		p.left = true
		p.cancel()
		return nil
	}
	return err
}

// end waits until the user leaves the program.
func (p *pager) end() {
	_ = p.print() // the rest of the last line; a terminal that is gone shows nothing
	if p.cmd != nil {
		_ = p.in.Close()
		_ = p.cmd.Wait()
	}
}

// leadingID matches the id of a commit at the beginning of a line.
var leadingID = regexp.MustCompile(`^(?:commit )?[0-9a-f]{10,40}\b`)

// appendColoured appends a line of output. What a database has stands behind the beginning of a line.
func appendColoured(dst, line []byte) []byte {
	colour, n := "", len(bytes.TrimRight(line, "\n"))
	switch {
	case n == 0:
	case line[0] == '+':
		colour = "\x1b[32m"
	case line[0] == '-':
		colour = "\x1b[31m"
	case line[0] == '~':
		colour = "\x1b[36m"
	default:
		if n = len(leadingID.Find(line)); n > 0 {
			colour = "\x1b[33m"
		}
	}
	if colour == "" {
		return append(dst, line...)
	}
	return append(append(append(append(dst, colour...), line[:n]...), "\x1b[m"...), line[n:]...)
}
