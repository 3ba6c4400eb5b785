package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
	"golang.org/x/sys/unix"
)

// openTerminal returns both ends of a pseudo-terminal: what is written to terminal
// can be read from screen.
func openTerminal(t *testing.T) (screen, terminal *os.File) {
	t.Helper()
	screen, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip("no pseudo-terminals:", err)
	}
	t.Cleanup(func() { screen.Close() })
	must.Do(t, unix.IoctlSetPointerInt(int(screen.Fd()), unix.TIOCSPTLCK, 0))
	n := must.Get(unix.IoctlGetInt(int(screen.Fd()), unix.TIOCGPTN))(t)
	if terminal, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0); err != nil {
		t.Skip("no pseudo-terminals:", err)
	}
	must.Do(t, unix.IoctlSetWinsize(int(screen.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 200}))
	return screen, terminal
}

// onScreen runs the program with standard error on a terminal, calls seen once that
// shows the text until, and returns all that it shows.
func onScreen(t *testing.T, ctx context.Context, until string, seen func(), args ...string) (code int, shown string) {
	t.Helper()
	screen, terminal := openTerminal(t)
	var b bytes.Buffer
	read := make(chan struct{})
	go func() {
		defer close(read)
		once := sync.OnceFunc(seen)
		for buf := make([]byte, 4096); ; {
			n, err := screen.Read(buf)
			b.Write(buf[:n])
			if strings.Contains(b.String(), until) {
				once()
			}
			if err != nil { // the terminal was closed
				return
			}
		}
	}()
	code = run(ctx, args, strings.NewReader(""), io.Discard, terminal)
	terminal.Close()
	<-read
	return code, b.String()
}

// read -o FILE and write show on a terminal how far they are, and nothing anywhere
// else.
func TestProgressOfReadAndWrite(t *testing.T) {
	dir := t.TempDir()
	db, file := filepath.Join(dir, "w.zdb"), filepath.Join(dir, "a.npy")
	ctx := t.Context()
	for _, args := range [][]string{
		{"init", db}, {"create", db + ":a", "--shape", "30000,1000", "--chunks", "500,1000", "--dtype", "float32"},
		{"create", db + ":s", "--shape", "3", "--dtype", "string"},
	} {
		if code := run(ctx, args, nil, io.Discard, io.Discard); code != exitOK {
			t.Fatalf("%q: %d", args, code)
		}
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"write", db + ":a", "--value", "1", "--all"}, "writing 30000000 / 30000000 elements"},
		{[]string{"write", db + ":s", "--value", `"x"`, "--all"}, "writing 3 / 3 elements"},
		{[]string{"read", db + ":a", "-o", file}, "reading 30000000 / 30000000 elements"},
		{[]string{"write", db + ":a", "-i", file}, "writing 30000000 / 30000000 elements"},
		{[]string{"read", db + ":a", "-s", "0:100", "-o", filepath.Join(dir, "a.csv")}, "reading 100000 / 100000 elements"},
	} {
		if code, shown := onScreen(t, ctx, c.want, func() {}, c.args...); code != exitOK || !strings.Contains(shown, c.want) {
			t.Errorf("%q: %d: no %q in %q", c.args, code, c.want, shown)
		}
		var errs bytes.Buffer
		if code := run(ctx, c.args, nil, io.Discard, &errs); code != exitOK || errs.Len() > 0 {
			t.Errorf("%q: %d, on a pipe: %q", c.args, code, errs.String())
		}
	}
	// An interrupted read leaves the terminal on a new line. It waits for the reader of
	// a pipe until it is interrupted.
	out := filepath.Join(dir, "b.npy")
	must.Do(t, unix.Mkfifo(out, 0o600))
	pipe := must.Get(os.OpenFile(out, os.O_RDWR, 0))(t)
	defer pipe.Close()
	stopped, stop := context.WithCancel(ctx)
	code, shown := onScreen(t, stopped, "reading", func() {
		stop()
		go func() { _, _ = io.Copy(io.Discard, pipe) }()
	}, "read", db+":a", "-o", out)
	if code != exitInterrupted || !strings.HasSuffix(shown, "\nzarrdb: interrupted\r\n") {
		t.Errorf("%d, %q", code, shown)
	}
}
