//go:build unix

package cli

import (
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
		{[]string{"fsck", db}, "2 commits"},
	}
	for _, c := range read {
		if out, err := run(nobody, c.args...); err != nil || !strings.Contains(out, c.want) {
			t.Errorf("%q: %v: %s", c.args, err, out)
		}
	}
	if out, err := run(nobody, "tag", db, "v2"); err == nil || !strings.Contains(out, "permission denied") {
		t.Errorf("writing: %v: %s", err, out)
	}
	// The same while a process of another user has the database open.
	holding(t, db)
	for _, c := range read[:len(read)-1] {
		if out, err := run(nobody, c.args...); err != nil || !strings.Contains(out, c.want) {
			t.Errorf("%q beside a holder: %v: %s", c.args, err, out)
		}
	}
}
