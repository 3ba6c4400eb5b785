//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd || solaris

package index

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
)

// unprivileged returns a function that makes commands of this program for a user
// who may not write the directory. For root it is another user; any other user loses
// the permission by chmod.
func unprivileged(t *testing.T, dir string) func(env string) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Skip("the test program is not known:", err)
	}
	root := os.Getuid() == 0
	bin := t.TempDir()
	for _, d := range []string{bin, filepath.Dir(bin)} { // the test's are only for its user
		must.Do(t, os.Chmod(d, 0o755))
	}
	if root {
		b := must.Get(os.ReadFile(exe))(t)
		exe = filepath.Join(bin, "reader.test")
		must.Do(t, os.WriteFile(exe, b, 0o755))
	} else {
		chmodAll(t, dir, 0o555, 0o444)
		t.Cleanup(func() { chmodAll(t, dir, 0o755, 0o644) })
	}
	return func(env string) *exec.Cmd {
		cmd := exec.Command(exe)
		cmd.Env = append(os.Environ(), env)
		if cmd.Dir = "/"; root {
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		}
		return cmd
	}
}

func chmodAll(t *testing.T, dir string, dirs, files os.FileMode) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if e.IsDir() {
			return os.Chmod(path, dirs|0o200) // what is in it is still to be changed
		}
		return os.Chmod(path, files)
	})
	must.Do(t, errors.Join(err, os.Chmod(dir, dirs)))
}

// filesOf describes all files of a directory, to see whether one changes.
func filesOf(t *testing.T, dir string) string {
	t.Helper()
	var out strings.Builder
	must.Do(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		fi, err := e.Info()
		if err == nil {
			fmt.Fprintln(&out, path, fi.Size(), fi.ModTime())
		}
		return err
	}))
	return out.String()
}

// Several users without write permission open an index to read, and change nothing in it.
// Readers and a writer exclude each other.
func TestReaderWithoutPermission(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "d")
	x := mustOpen(t, dir, &Options{Create: true})
	must.Do(t, put(x, SpaceMeta, "k", "v", true))
	mustClose(t, x)
	reader := unprivileged(t, dir)
	const env = "ZARRDB_INDEX_READ="
	before := filesOf(t, dir)
	var stop []func()
	for range 2 {
		cmd := reader(env + dir)
		in := must.Get(cmd.StdinPipe())(t)
		out := must.Get(cmd.StdoutPipe())(t)
		if err := cmd.Start(); err != nil {
			t.Skip("no process of another user can be started:", err)
		}
		line, _ := bufio.NewReader(out).ReadString('\n')
		stop = append(stop, func() {
			in.Close()
			if err := cmd.Wait(); err != nil {
				t.Error("reader:", err)
			}
		})
		if line != "open <nil>\n" {
			t.Fatalf("reader: %q", line)
		}
		if os.Getuid() != 0 {
			continue
		}
		var locked *LockedError
		if _, err := Open(dir, nil); !errors.As(err, &locked) || locked.Holder.PID == 0 {
			t.Fatalf("a writer beside readers: %v", err)
		}
	}
	for _, s := range stop {
		s()
	}
	if after := filesOf(t, dir); os.Getuid() != 0 && after != before {
		t.Errorf("files were\n%sand are\n%s", before, after)
	}
	if os.Getuid() != 0 {
		return
	}
	x = mustOpen(t, dir, &Options{Program: "writer"})
	out, err := reader(env + dir).Output()
	if err == nil || !strings.Contains(string(out), "in use by writer") {
		t.Errorf("a reader beside a writer: %q, %v", out, err)
	}
	mustClose(t, x)
	// Without a file to be locked there is no writer.
	must.Do(t, os.Remove(filepath.Join(dir, lockFile)))
	before = filesOf(t, dir)
	if out, err := reader(env + dir).Output(); err != nil {
		t.Errorf("without a lock file: %q, %v", out, err)
	}
	if after := filesOf(t, dir); after != before {
		t.Errorf("files were\n%sand are\n%s", before, after)
	}
}

// The description of the process that has an index open can be read by those who may
// list the directory, whatever the umask is.
func TestHolderMode(t *testing.T) {
	for mode, want := range map[fs.FileMode]fs.FileMode{0o700: 0o600, 0o750: 0o640, 0o755: 0o644} {
		dir := t.TempDir()
		must.Do(t, os.Chmod(dir, mode))
		was := syscall.Umask(0o077)
		x, err := Open(dir, &Options{Create: true})
		syscall.Umask(was)
		must.Do(t, err)
		fi, err := os.Stat(filepath.Join(dir, holderFile))
		if err != nil || fi.Mode().Perm() != want {
			t.Errorf("in a directory of mode %o: %v, %v; want %o", mode, fi.Mode(), err, want)
		}
		if err := x.Close(); err != nil {
			t.Error(err)
		}
	}
}
