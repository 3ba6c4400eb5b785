package main

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestMain makes the test binary the program where the environment says so.
func TestMain(m *testing.M) {
	if os.Getenv("ZARRDB_TEST_MAIN") != "" {
		main()
	}
	os.Exit(m.Run())
}

func TestExitCodes(t *testing.T) {
	for _, c := range []struct {
		args   []string
		code   int
		output string
	}{
		{[]string{"version"}, 0, "database format"},
		{[]string{"no-such-command"}, 2, "unknown command"},
		{[]string{"ls", "missing.zdb@main"}, 4, "missing.zdb"},
	} {
		cmd := exec.Command(os.Args[0], c.args...)
		cmd.Env, cmd.Dir = append(os.Environ(), "ZARRDB_TEST_MAIN=1"), t.TempDir()
		out, err := cmd.CombinedOutput()
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
		if code := cmd.ProcessState.ExitCode(); code != c.code || !strings.Contains(string(out), c.output) {
			t.Errorf("%q: exit code %d, %s", c.args, code, out)
		}
	}
}
