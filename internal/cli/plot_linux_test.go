package cli

import (
	"bytes"
	"io"
	"path/filepath"
	"strings"
	"testing"
)

// A terminal gets a picture as wide as the terminal is, in the colours that the environment
// names, and none with NO_COLOR.
func TestPlotOnTerminal(t *testing.T) {
	db := filepath.Join(t.TempDir(), "w.zdb")
	for _, args := range [][]string{{"init", db}, {"create", db + ":a", "--shape", "10,200", "--dtype", "float32", "--fill", "1"}} {
		if code := run(t.Context(), args, nil, io.Discard, io.Discard); code != exitOK {
			t.Fatalf("%q: %d", args, code)
		}
	}
	for _, c := range []struct{ env, want string }{
		{"COLORTERM=truecolor", "\x1b[38;2;"},
		{"TERM=xterm-256color", "\x1b[38;5;"},
		{"NO_COLOR=1", strings.Repeat("+", 200) + "\r\n"},
		{"TERM=dumb", strings.Repeat("+", 200) + "\r\n"},
	} {
		screen, terminal := openTerminal(t)
		var b bytes.Buffer
		read := make(chan struct{})
		go func() { defer close(read); _, _ = io.Copy(&b, screen) }()
		for _, name := range []string{"TERM", "COLORTERM", "NO_COLOR"} {
			t.Setenv(name, "")
		}
		name, value, _ := strings.Cut(c.env, "=")
		t.Setenv(name, value)
		code := run(t.Context(), []string{"plot", db + ":a"}, nil, terminal, io.Discard)
		terminal.Close()
		<-read
		shown := b.String()
		if code != exitOK || !strings.Contains(shown, c.want) || strings.Contains(shown, "\x1b") != strings.Contains(c.want, "\x1b") {
			t.Errorf("%s: %d, %q", c.env, code, shown)
		}
		if n := strings.Count(shown, "▀"); strings.Contains(shown, "\x1b") && n != 200*20+24 {
			t.Errorf("%s: %d cells", c.env, n)
		}
	}
}
