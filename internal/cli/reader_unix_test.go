//go:build unix

package cli

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestReadingWithoutPermission runs the reading commands as a user without write
// permission. It needs root to change the user.
func TestReadingWithoutPermission(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can run a command as another user; kv/index tests the lock for others")
	}
	self, err := os.Executable()
	if err != nil {
		t.Skip("the test program is not known:", err)
	}
	dir := t.TempDir()
	for _, d := range []string{dir, filepath.Dir(dir)} {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	// Both users make sockets here. The path of a socket must be short.
	sockets, err := os.MkdirTemp("", "z")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(sockets) })
	if err := os.Chmod(sockets, 0o777|os.ModeSticky); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", sockets)
	b, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	exe, db := filepath.Join(dir, "zarrdb"), filepath.Join(dir, "w.zdb") // by its name the test program is the program
	if err := os.WriteFile(exe, b, 0o755); err != nil {
		t.Fatal(err)
	}
	run := func(uid uint32, args ...string) (string, error) {
		cmd := exec.Command(exe, args...)
		cmd.Dir, cmd.Env = "/", append(os.Environ(), "HOME=/nonexistent")
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	for _, args := range [][]string{
		{"init", db}, {"create", db + ":t", "--shape", "4", "--chunks", "2", "--dtype", "int32"}, {"tag", db, "v1"},
	} {
		if out, err := run(0, args...); err != nil {
			t.Fatalf("%q: %v: %s", args, err, out)
		}
	}
	const nobody = 65534
	read := []struct {
		args []string
		want string
	}{
		{[]string{"tree", db}, "t int32"},
		{[]string{"read", db + ":t"}, "[0, 0, 0, 0]"},
		{[]string{"info", db + ":t"}, "array"},
		{[]string{"log", db}, "create t"},
		{[]string{"tag", db}, "v1"},
		{[]string{"branch", db}, "main"},
		{[]string{"diff", db, "main~1", "main"}, "+ /t"},
		{[]string{"show", db}, "+ /t"},
		{[]string{"fsck", db, "--full"}, "2 commits"},
		{[]string{"log", db, "--follow", "--", "t"}, "create t"},
		{[]string{"reflog", db}, "main@{0}"},
		{[]string{"blame", db + ":t"}, "create t"},
		{[]string{"stats", db, "--json"}, `"commits": 2`},
		{[]string{"session", "list", db}, ""},
		{[]string{"gc", db, "--dry-run"}, "would free"},
		{[]string{"expire", db, "--keep", "1", "--dry-run"}, "would expire"},
	}
	for _, c := range read {
		if out, err := run(nobody, c.args...); err != nil || !strings.Contains(out, c.want) {
			t.Errorf("%q: %v: %s", c.args, err, out)
		}
	}
	if out, err := run(nobody, "tag", db, "v2"); err == nil || !strings.Contains(out, "permission denied; without permission to write, it can be opened for reading only") {
		t.Errorf("writing: %v: %s", err, out)
	}
	// One that a user may not even look into is not taken for a file that is missing.
	if err := os.Chmod(db, 0o700); err != nil {
		t.Fatal(err)
	}
	if out, err := run(nobody, "read", db+":t"); err == nil || !strings.Contains(out, "w.zdb/FORMAT: permission denied") {
		t.Errorf("reading a private one: %v: %s", err, out)
	}
	if err := os.Chmod(db, 0o755); err != nil {
		t.Fatal(err)
	}
	// The same while a process of another user has the database open, whose umask gives
	// nothing to others.
	was := syscall.Umask(0o077)
	holding(t, db)
	syscall.Umask(was)
	own := filepath.Join(dir, "own")
	if err := errors.Join(os.Mkdir(own, 0o755), os.Chown(own, nobody, nobody)); err != nil {
		t.Fatal(err)
	}
	copied := func(n int) string { return filepath.Join(own, fmt.Sprint(n, ".zdb")) }
	for _, c := range append(read, []struct {
		args []string
		want string
	}{
		{[]string{"clone", db, copied(1)}, "copied 2 versions"},
		{[]string{"backup", db, copied(2)}, "copied 2 versions"},
		{[]string{"restore", db, copied(3)}, "restored 2 versions"},
		{[]string{"import", copied(4), db}, ""},
		{[]string{"push", db, copied(1), "main:new"}, "new: (none) -> "},
		{[]string{"pull", copied(1), db, "v1:v1-copy"}, "v1-copy: (none) -> "},
	}...) {
		if out, err := run(nobody, c.args...); err != nil || !strings.Contains(out, c.want) {
			t.Errorf("%q beside a holder: %v: %s", c.args, err, out)
		}
	}
	// A database of that user may be open too.
	cmd := exec.Command(exe, "serve", copied(1), "--local", "--idle", "0s")
	cmd.Dir, cmd.SysProcAttr = "/", &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	awaitServed(t, copied(1))
	if out, err := run(nobody, "push", db, copied(1), "main:newer"); err != nil || !strings.Contains(out, "newer: (none) -> ") {
		t.Errorf("push to a database that is open: %v: %s", err, out)
	}
}
