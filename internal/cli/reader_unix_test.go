//go:build unix

package cli

import (
	"errors"
	"fmt"
	"github.com/zarrdb/zarrdb/internal/must"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// nobody is the id of a user without permissions, on most systems the user "nobody".
const nobody = 65534

// forAll is this program for several users, and a database.
type forAll struct{ dir, exe, db string }

// command returns a command of a user.
func (p *forAll) command(uid uint32, args ...string) *exec.Cmd {
	cmd := exec.Command(p.exe, args...)
	cmd.Dir, cmd.Env = "/", append(os.Environ(), "HOME=/nonexistent")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
	return cmd
}

func (p *forAll) run(uid uint32, args ...string) (string, error) {
	out, err := p.command(uid, args...).CombinedOutput()
	return string(out), err
}

// forUsers needs root to change the user.
func forUsers(t *testing.T) *forAll {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("only root can run a command as another user; kv/index tests the lock for others")
	}
	self, err := os.Executable()
	if err != nil {
		t.Skip("the test program is not known:", err)
	}
	dir := t.TempDir()
	for _, d := range []string{dir, filepath.Dir(dir)} {
		must.Do(t, os.Chmod(d, 0o755))
	}
	// Both users make sockets here.
	sockets := must.Get(os.MkdirTemp("", "z"))(t)
	t.Cleanup(func() { os.RemoveAll(sockets) })
	must.Do(t, os.Chmod(sockets, 0o777|os.ModeSticky))
	t.Setenv("TMPDIR", sockets)
	b := must.Get(os.ReadFile(self))(t)
	p := &forAll{dir: dir, exe: filepath.Join(dir, "zarrdb"), db: filepath.Join(dir, "w.zdb")} // by its name the test program is the program
	must.Do(t, os.WriteFile(p.exe, b, 0o755))
	return p
}

// Users without write permission who read give way to a user who writes, and go on.
func TestReaderGivesWay(t *testing.T) {
	p := forUsers(t)
	for _, args := range [][]string{
		{"init", p.db}, {"create", p.db + ":a", "--shape", "4000000", "--chunks", "1000", "--dtype", "int8", "--fill", "7"},
	} {
		if out, err := p.run(0, args...); err != nil {
			t.Fatalf("%q: %v: %s", args, err, out)
		}
	}
	var readers []*exec.Cmd
	var outputs []io.Reader
	for range 2 {
		c := p.command(nobody, "read", p.db+":a", "-o", "-")
		out, err := c.StdoutPipe()
		if err == nil {
			err = c.Start()
		}
		must.Do(t, err)
		if _, err := io.ReadFull(out, make([]byte, 1)); err != nil { // it has the database open
			t.Fatal(err)
		}
		readers, outputs = append(readers, c), append(outputs, out)
	}
	for _, args := range [][]string{{"tag", p.db, "v1"}, {"tag", p.db, "v2", "--wait", "1m"}} {
		if out, err := p.run(0, args...); err != nil {
			t.Errorf("%q: %v: %s", args, err, out)
		}
	}
	for i, c := range readers {
		b, err := io.ReadAll(outputs[i])
		if err = errors.Join(err, c.Wait()); err != nil || len(b) != 4000000-1 || strings.Trim(string(b), "\x07") != "" {
			t.Errorf("a reader got %d bytes, %v", len(b), err)
		}
	}
	if out, err := p.run(nobody, "tag", p.db); err != nil || !strings.Contains(out, "v2") {
		t.Errorf("%v: %s", err, out)
	}
	// So does a server of a user who may only read.
	server := p.command(nobody, "serve", p.db, "--local", "--idle", "0s")
	must.Do(t, server.Start())
	awaitServedBy(t, p.db, nobody)
	if out, err := p.run(0, "tag", p.db, "v3"); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	ended(t, server, exitOK)
}

// awaitServedBy waits until a process of another user serves a database.
func awaitServedBy(t *testing.T, db string, uid int) {
	t.Helper()
	for begun := time.Now(); time.Since(begun) < time.Minute; time.Sleep(time.Millisecond) {
		list, err := os.ReadDir(filepath.Join(os.TempDir(), fmt.Sprint("zarrdb-", uid)))
		if err == nil && len(list) == 1 && len(list[0].Name()) == 20 {
			return
		}
	}
	t.Fatal("it does not serve " + db)
}

// TestReadingWithoutPermission runs the reading commands as a user without write
// permission.
func TestReadingWithoutPermission(t *testing.T) {
	p := forUsers(t)
	dir, exe, db, run := p.dir, p.exe, p.db, p.run
	for _, args := range [][]string{
		{"init", db}, {"create", db + ":t", "--shape", "4", "--chunks", "2", "--dtype", "int32"}, {"tag", db, "v1"},
	} {
		if out, err := run(0, args...); err != nil {
			t.Fatalf("%q: %v: %s", args, err, out)
		}
	}
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
	must.Do(t, os.Chmod(db, 0o700))
	if out, err := run(nobody, "read", db+":t"); err == nil || !strings.Contains(out, "w.zdb/FORMAT: permission denied") {
		t.Errorf("reading a private one: %v: %s", err, out)
	}
	must.Do(t, os.Chmod(db, 0o755))
	// The same while a process of another user has the database open, whose umask gives
	// nothing to others.
	was := syscall.Umask(0o077)
	holding(t, db)
	syscall.Umask(was)
	own := filepath.Join(dir, "own")
	must.Do(t, errors.Join(os.Mkdir(own, 0o755), os.Chown(own, nobody, nobody)))
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
	must.Do(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	awaitServed(t, copied(1))
	if out, err := run(nobody, "push", db, copied(1), "main:newer"); err != nil || !strings.Contains(out, "newer: (none) -> ") {
		t.Errorf("push to a database that is open: %v: %s", err, out)
	}
}
