package index

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/zarrdb/zarrdb/internal/must"
)

// holdForParent is the other process of TestLockedByProcess.
func holdForParent(dir string) {
	x, err := Open(dir, &Options{Program: "other"})
	if err != nil {
		fmt.Println("open:", err)
		os.Exit(1)
	}
	fmt.Println("open")
	_, _ = io.Copy(io.Discard, os.Stdin)
	if err := x.Close(); err != nil {
		fmt.Println("close:", err)
		os.Exit(1)
	}
}

func TestLockedByProcess(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "d")
	mustClose(t, mustOpen(t, dir, &Options{Create: true}))
	exe, err := os.Executable()
	if err != nil {
		t.Skip(err)
	}
	for _, kill := range []bool{false, true} {
		cmd := exec.Command(exe)
		cmd.Env = append(os.Environ(), "ZARRDB_INDEX_HOLD="+dir)
		in := must.Get(cmd.StdinPipe())(t)
		out := must.Get(cmd.StdoutPipe())(t)
		must.Do(t, cmd.Start())
		if line, _ := bufio.NewReader(out).ReadString('\n'); line != "open\n" {
			t.Fatalf("other process: %q", line)
		}
		for _, o := range []*Options{nil, {Create: true}, {ReadOnly: true}} {
			_, err := Open(dir, o)
			var locked *LockedError
			if !errors.Is(err, ErrLocked) || !errors.As(err, &locked) {
				t.Fatalf("second process: %v", err)
			}
			if h := locked.Holder; h.PID != cmd.Process.Pid || h.Program != "other" || h.Since.IsZero() {
				t.Errorf("holder %+v, want process %d", h, cmd.Process.Pid)
			}
		}
		if kill {
			must.Do(t, cmd.Process.Kill())
			_ = cmd.Wait()
		} else {
			in.Close()
			must.Do(t, cmd.Wait())
		}
		// What a killed holder left does not block others.
		mustClose(t, mustOpen(t, dir, nil))
	}
	if _, err := os.Stat(filepath.Join(dir, holderFile)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("holder is left: %v", err)
	}
}

func TestLockedInProcess(t *testing.T) {
	parent := t.TempDir()
	dir := filepath.Join(parent, "d")
	x := mustOpen(t, dir, &Options{Create: true, Program: "me"})
	names := []string{dir, filepath.Join(parent, "d", "..", "d")}
	if link := filepath.Join(parent, "link"); os.Symlink(dir, link) == nil {
		names = append(names, link)
	}
	for _, name := range names {
		_, err := Open(name, nil)
		var locked *LockedError
		if !errors.As(err, &locked) || locked.Holder.PID != os.Getpid() || locked.Holder.Program != "me" {
			t.Errorf("second open of %s: %v", name, err)
		}
	}
	// A failed open gives up nothing of the first one's.
	must.Do(t, put(x, SpaceMeta, "k", "v", true))
	mustClose(t, x)
	mustClose(t, mustOpen(t, dir, nil))

	mem := vfs.NewMem()
	x = mustOpen(t, "d", small(mem))
	if _, err := Open("d", small(mem)); !errors.Is(err, ErrLocked) {
		t.Errorf("second open in memory: %v", err)
	}
	// A holder file of any content does not matter.
	must.Do(t, writeSmall(mem, "d/"+holderFile, []byte("{]")))
	var locked *LockedError
	if _, err := Open("d", small(mem)); !errors.As(err, &locked) || locked.Holder != (Holder{}) {
		t.Errorf("unreadable holder: %v", err)
	}
	mustClose(t, x)
	must.Do(t, writeSmall(mem, "d/"+holderFile, []byte("{]")))
	mustClose(t, mustOpen(t, "d", small(mem)))
}

// noLockFS is a file system without locks.
type noLockFS struct {
	vfs.FS
	err error
}

func (f noLockFS) Lock(string) (io.Closer, error) { return nil, f.err }

// A file system without locks is named, not taken for a database in use. Reading goes on, and writing where the user
// says that no other process uses the database.
func TestFileSystemWithoutLocks(t *testing.T) {
	for _, err := range []error{syscall.ENOLCK, syscall.ENOSYS, syscall.EOPNOTSUPP} {
		dir := t.TempDir()
		fs := noLockFS{vfs.Default, err}
		_, got := lock(fs, dir, "test", "", false)
		var locked *LockedError
		if !errors.Is(got, err) || errors.As(got, &locked) || !strings.Contains(got.Error(), NoLockVariable) {
			t.Errorf("to write: %v", got)
		}
		l, got := lock(fs, dir, "test", "", true)
		if got != nil {
			t.Fatalf("to read: %v", got)
		}
		must.Do(t, l.Close())
		t.Setenv(NoLockVariable, "1")
		l, got = lock(fs, dir, "test", "", false)
		if got != nil {
			t.Fatalf("to write, alone: %v", got)
		}
		must.Do(t, l.Close())
		t.Setenv(NoLockVariable, "")
	}
}
