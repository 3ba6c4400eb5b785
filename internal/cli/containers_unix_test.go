//go:build unix

package cli

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"fmt"
	"github.com/zarrdb/zarrdb/internal/must"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zarrdb/zarrdb/txn"
)

// container returns a command that shares the directory with others, and neither the directory
// for temporary files nor host name and process numbers.
func container(t *testing.T, dir, setup string, args ...string) *exec.Cmd {
	t.Helper()
	tmp := filepath.Join(t.TempDir(), "tmp")
	must.Do(t, os.Mkdir(tmp, 0o755))
	script := fmt.Sprintf(`hostname "c$$" 2>/dev/null; mount --bind %q "$TMPDIR" && cd %q && %s exec "$@"`, tmp, dir, setup)
	return exec.Command("unshare", append([]string{"-Urmpfu", "--mount-proc", "--kill-child", "sh", "-c", script, "sh"}, args...)...)
}

// Processes in containers that share the volume of a database use it together.
func TestContainers(t *testing.T) {
	if out, err := exec.Command("unshare", "-Urmpfu", "--mount-proc", "--kill-child", "mount", "--bind", t.TempDir(), os.TempDir()).CombinedOutput(); err != nil {
		t.Skipf("containers cannot be made: %v: %s", err, out)
	}
	t.Setenv("TMPDIR", t.TempDir())
	t.Setenv("XDG_RUNTIME_DIR", "")
	dir := t.TempDir()
	db := filepath.Join(dir, "w.zdb")
	must.Get(runProcess("init", db))(t)
	const readOnly = "mount --bind w.zdb w.zdb && mount -o remount,bind,ro w.zdb && "
	run := func(setup string, args ...string) string {
		t.Helper()
		c := container(t, dir, setup, args...)
		c.Stdin = strings.NewReader("value")
		var out, messages bytes.Buffer
		c.Stdout, c.Stderr = &out, &messages
		if err := c.Run(); err != nil {
			t.Errorf("%q: %v: %s", args, err, &messages)
		}
		return out.String()
	}
	serve := func() *exec.Cmd {
		c := container(t, dir, "", "zarrdb", "serve", "w.zdb", "--local", "--idle", "0s")
		must.Do(t, c.Start())
		t.Cleanup(func() {
			_ = c.Process.Kill()
			_ = c.Wait()
		})
		awaitHolder(t, db)
		return c
	}
	for i := range 2 { // the second time after a kill
		holder := serve()
		key := fmt.Sprint("key", i)
		run("", "zarrdb", "put", "w.zdb", key)
		if got := run("", "zarrdb", "get", "w.zdb", key); got != "value" {
			t.Errorf("another container reads %q", got)
		}
		if got, err := runProcess("get", db, key); err != nil || got != "value" {
			t.Errorf("outside: %q, %v", got, err)
		}
		if got := run(readOnly, "zarrdb", "get", "w.zdb", key); got != "value" {
			t.Errorf("with a read-only mount: %q", got)
		}
		if run("", "zarrdb", "serve", "w.zdb", "--local"); t.Failed() {
			return
		}
		must.Do(t, holder.Process.Kill())
		_ = holder.Wait()
		if got := run(readOnly, "zarrdb", "get", "w.zdb", key); got != "value" {
			t.Errorf("with a read-only mount alone: %q", got)
		}
		_ = os.Remove(filepath.Join(db, "index", "HOLDER"))
	}
	// A socket that a killed process left does not hinder the next process.
	if out, err := runProcess("fsck", db, "--full"); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	if _, err := os.Lstat(filepath.Join(db, "index", "SOCKET")); err == nil {
		t.Error("the socket that a killed process left is still there")
	}
}

// The program works as a foreign user in a root that is read-only and has nothing else, as the recipe runs it, and
// beside another container of the volume.
func TestContainerRecipe(t *testing.T) {
	recipe := mustAbs(t, "../../examples/operations/container.sh")
	dir := t.TempDir()
	run := func(args ...string) *exec.Cmd { return exec.Command("sh", append([]string{recipe, dir}, args...)...) }
	if out, err := run("version").CombinedOutput(); err != nil {
		t.Skipf("containers cannot be made, or the program is not static: %v: %s", err, out)
	}
	for _, args := range [][]string{{"init", "/data/w.zdb"}, {"create", "/data/w.zdb:a", "--shape", "2", "--dtype", "int8", "-m", "a"}} {
		if out, err := run(args...).CombinedOutput(); err != nil {
			t.Fatalf("%q: %v: %s", args, err, out)
		}
	}
	server := run("serve", "/data/w.zdb", "--local", "--idle", "0s")
	must.Do(t, server.Start())
	defer func() {
		_ = server.Process.Kill()
		_ = server.Wait()
	}()
	awaitHolder(t, filepath.Join(dir, "w.zdb"))
	if out, err := run("write", "/data/w.zdb:a", "--all", "--value", "7", "-m", "seven").CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	if out, err := run("read", "/data/w.zdb:a").CombinedOutput(); err != nil || string(out) != "[7, 7]\n" {
		t.Errorf("%q, %v", out, err)
	}
	if out, err := run("init", "/x.zdb").CombinedOutput(); err == nil || !strings.Contains(string(out), "read-only file system") {
		t.Errorf("outside of the volume: %q, %v", out, err)
	}
}

// A backup waits for another one to the same place, which has it open and serves no other process.
func TestBackupsWait(t *testing.T) {
	dir := t.TempDir()
	db, dest := filepath.Join(dir, "w.zdb"), filepath.Join(dir, "backup.zdb")
	must.Get(runProcess("init", db))(t)
	must.Get(runProcess("backup", db, dest))(t)
	other := must.Get(txn.Open(dest, nil))(t)
	second := exec.Command("zarrdb", "backup", db, dest)
	messages := must.Get(second.StderrPipe())(t)
	must.Do(t, second.Start())
	line, err := bufio.NewReader(messages).ReadString('\n')
	if err != nil || !strings.Contains(line, "waiting for the backup to "+dest) {
		t.Errorf("%q, %v", line, err)
	}
	must.Do(t, other.Close())
	if err := second.Wait(); err != nil {
		t.Error(err)
	}
}

// awaitHolder waits until a process describes itself as the one that has a database open.
func awaitHolder(t *testing.T, db string) {
	t.Helper()
	for begun := time.Now(); time.Since(begun) < time.Minute; time.Sleep(time.Millisecond) {
		if _, err := os.Stat(filepath.Join(db, "index", "HOLDER")); err == nil {
			return
		}
	}
	t.Fatal("no process opens the database")
}

// A process is reached wherever its directory for temporary files is, and whatever is in the
// place of its socket.
func TestPlacesOfSockets(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", "")
	long := filepath.Join(t.TempDir(), strings.Repeat("long", 30))
	must.Do(t, os.Mkdir(long, 0o700))
	for name, c := range map[string]struct {
		tmp    string
		before func(socket string) error
		after  func(socket string) error
	}{
		"long directory": {tmp: long},
		"no directory":   {tmp: "/nonexistent"},
		"a foreign file": {before: func(socket string) error { return os.WriteFile(socket, []byte("foreign"), 0o600) }},
		"removed":        {after: os.Remove},
	} {
		t.Run(name, func(t *testing.T) {
			if c.tmp == "" {
				c.tmp = t.TempDir()
			}
			db := filepath.Join(t.TempDir(), "w.zdb")
			must.Get(runProcess("init", db))(t)
			t.Setenv("TMPDIR", c.tmp)
			at := must.Get(filepath.EvalSymlinks(db))(t)
			folder := filepath.Join(c.tmp, fmt.Sprint("zarrdb-", os.Getuid()))
			socket := filepath.Join(folder, fmt.Sprintf("%x", sha256.Sum256([]byte(at)))[:20])
			if c.before != nil {
				must.Do(t, os.Mkdir(folder, 0o700))
				must.Do(t, c.before(socket))
			}
			holding(t, db)
			if c.after != nil {
				must.Do(t, c.after(socket))
			}
			if out, err := runProcess("tag", db, "v1"); err != nil {
				t.Errorf("%v: %s", err, out)
			}
			if b, err := os.ReadFile(socket); c.before != nil && string(b) != "foreign" {
				t.Errorf("the foreign file: %q, %v", b, err)
			}
		})
	}
}

// A server that finds no place for its socket ends, and says why.
func TestNoPlaceForASocket(t *testing.T) {
	db := filepath.Join(t.TempDir(), "w.zdb")
	must.Get(runProcess("init", db))(t)
	t.Setenv("XDG_RUNTIME_DIR", "")
	t.Setenv("TMPDIR", "/nonexistent")
	socket := filepath.Join(db, "index", "SOCKET")
	must.Do(t, os.WriteFile(socket, []byte("foreign"), 0o600))
	if _, err := runProcess("serve", db, "--local"); err == nil || !strings.Contains(err.Error(), "exit status 1") || !strings.Contains(err.Error(), "SOCKET is not a socket; remove it") {
		t.Error(err)
	}
	if b, err := os.ReadFile(socket); string(b) != "foreign" {
		t.Errorf("the foreign file: %q, %v", b, err)
	}
	if out, err := runProcess("tag", db, "v1"); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}
