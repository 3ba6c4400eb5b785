package cli

import (
	"bytes"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
)

// On a terminal, long output has colours and goes through a pager, which may be left early. In a pipe there is neither.
func TestPager(t *testing.T) {
	db := filepath.Join(t.TempDir(), "w.zdb")
	must.Get(runProcess("init", db))(t)
	must.Get(runProcess("put", db, "k", "pager_linux_test.go", "-m", "one\n"+strings.Repeat("a long message\n", 6_000)))(t)
	show := func(args ...string) string {
		t.Helper()
		screen, terminal := openTerminal(t)
		var b bytes.Buffer
		read := make(chan struct{})
		go func() {
			defer close(read)
			_, _ = io.Copy(&b, screen) // it ends with an error
		}()
		var errs bytes.Buffer
		code := run(t.Context(), args, nil, terminal, &errs)
		_ = terminal.Close()
		<-read
		if code != exitOK || errs.Len() > 0 {
			t.Errorf("%q: %d, %s", args, code, errs.String())
		}
		return strings.ReplaceAll(b.String(), "\r", "")
	}
	const yellow = "\x1b[33m"
	t.Setenv("TERM", "xterm")
	t.Setenv("NO_COLOR", "")
	t.Setenv("PAGER", "sed s/^/P/")
	for _, c := range []struct {
		name, value, want string
		args              []string
	}{
		{"LESS", "", "P" + yellow, []string{"log", db, "--oneline"}},
		{"LESS", "", yellow, []string{"log", db, "--oneline", "--no-pager"}},
		{"LESS", "", "{", []string{"log", db, "--json", "-n", "1"}},
		{"LESS", "", "P\x1b[36m~ / other keys: 1\x1b[m\n", []string{"diff", db, "main~1"}},
		{"ZARRDB_PAGER", "cat", yellow + "commit ", []string{"log", db, "-n", "1"}},
		{"ZARRDB_PAGER", "no-such-program", yellow + "commit ", []string{"log", db, "-n", "1"}},
		{"ZARRDB_PAGER", "head -n 1", yellow + "commit ", []string{"log", db}},
		{"NO_COLOR", "1", "commit ", []string{"log", db}},
		{"NO_COLOR", "1", "k", []string{"keys", db}},
	} {
		t.Setenv(c.name, c.value)
		got := show(c.args...)
		if c.args[0] == "diff" {
			got = got[strings.Index(got, "\n")+1:]
		}
		if !strings.HasPrefix(got, c.want) {
			t.Errorf("%s=%s %q shows %.80q, want %q", c.name, c.value, c.args, got, c.want)
		}
	}
	if got := must.Get(runProcess("log", db, "--oneline"))(t); strings.Contains(got, "\x1b") {
		t.Errorf("a pipe has %q", got)
	}
}
