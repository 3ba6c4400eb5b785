package cli

import (
	"bytes"
	"context"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"
)

// fullWriter is standard output on a full disk.
type fullWriter struct{}

var errFull = errors.New("no space left on device")

func (fullWriter) Write([]byte) (int, error) { return 0, errFull }

// A command whose output is lost has failed, and says so once.
func TestFullStandardOutput(t *testing.T) {
	dir := t.TempDir()
	db := filepath.Join(dir, "w.zdb")
	zarrdb := func(stdout io.Writer, args ...string) (int, string) {
		var stderr bytes.Buffer
		code := run(context.Background(), args, strings.NewReader("{}"), stdout, &stderr)
		return code, stderr.String()
	}
	for _, args := range [][]string{
		{"init", db},
		{"create", db + ":a", "--shape", "9", "--dtype", "int8"},
		{"write", db + ":a", "--value", "3"},
		{"put", db, "key"},
	} {
		if code, stderr := zarrdb(io.Discard, args...); code != exitOK {
			t.Fatalf("%v: %d %s", args, code, stderr)
		}
	}
	a := db + ":a"
	for _, line := range []string{
		"help", "help log", "version",
		"info " + a, "info --json " + a, "ls " + db, "ls -l " + db, "ls --json " + db, "tree " + db, "attrs " + a,
		"read " + a, "read -o - " + a, "read -o - -s 0:2 " + a,
		"get " + db + " key", "keys " + db, "cat " + db + "/|zarrdb:key",
		"log " + db, "log --oneline " + db, "log --json " + db, "show " + db, "diff " + db + "@main~2", "diff --json " + db + "@main~2",
		"blame " + a, "branch " + db, "tag --json " + db, "reflog " + db, "session begin " + db, "session list " + db,
		"stats " + db, "fsck " + db, "fsck --json " + db, "gc --dry-run --explain " + db, "expire --dry-run --keep 1 " + db,
		"url normalize file:///d/x", "merge --dry-run --json " + db + " main", "refs check " + db,
	} {
		args := strings.Fields(line)
		var shown bytes.Buffer
		if code, stderr := zarrdb(&shown, args...); code != exitOK {
			t.Errorf("%s: %d %s", line, code, stderr)
		}
		want := exitFailed
		if shown.Len() == 0 { // nothing to lose
			want = exitOK
		}
		code, stderr := zarrdb(fullWriter{}, args...)
		if code != want || want != exitOK && stderr != "zarrdb: standard output: no space left on device\n" {
			t.Errorf("%s: exit code %d, not %d: %q", line, code, want, stderr)
		}
	}
}
