//go:build !windows

package osfs

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/zarrdb/zarrdb/internal/must"
)

// What root makes in the directory of another user is that user's; what was there, or
// lies where a link leads, is not given away.
func TestOwnerOfTheDirectory(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give files away")
	}
	const user, group = 12345, 12346
	dir := t.TempDir()
	secret := filepath.Join(t.TempDir(), "secret")
	for _, name := range []string{secret, filepath.Join(dir, "kept")} {
		must.Do(t, os.WriteFile(name, []byte("root's"), 0o600))
	}
	must.Do(t, os.Symlink(secret, filepath.Join(dir, "link")))
	must.Do(t, os.Chown(dir, user, group))
	for _, name := range []string{"created", "HOLDER"} {
		f := must.Get(FS.Create(filepath.Join(dir, name), vfs.WriteCategoryUnspecified))(t)
		_ = f.Close()
	}
	for _, name := range []string{"opened", "kept", "link"} {
		f := must.Get(FS.OpenReadWrite(filepath.Join(dir, name), vfs.WriteCategoryUnspecified))(t)
		_ = f.Close()
	}
	must.Do(t, FS.MkdirAll(filepath.Join(dir, "a", "b"), 0o755))
	for name, want := range map[string]uint32{
		"created": user, "opened": user, "a": user, "a/b": user, "HOLDER": 0, "kept": 0, "../" + filepath.Base(dir): user,
	} {
		fi := must.Get(os.Stat(filepath.Join(dir, name)))(t)
		if st := fi.Sys().(*syscall.Stat_t); st.Uid != want || want == user && st.Gid != group {
			t.Errorf("%s belongs to %d:%d, want %d", name, st.Uid, st.Gid, want)
		}
	}
	if fi, err := os.Stat(secret); err != nil || fi.Sys().(*syscall.Stat_t).Uid != 0 {
		t.Errorf("what a link leads to: %v, %v", fi, err)
	}
}

// Members of a group can share a database: files and directories have the rights and the group of their directory,
// whatever the umask of the program is. The directory of the database itself has those of the umask.
func TestRightsOfTheDirectory(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0o077))
	for _, mode := range []os.FileMode{0o770 | os.ModeSetgid, 0o750, 0o755, 0o700, 0o777 | os.ModeSticky} {
		dir := t.TempDir()
		must.Do(t, os.Chmod(dir, mode))
		f := must.Get(FS.Create(filepath.Join(dir, "file"), vfs.WriteCategoryUnspecified))(t)
		_ = f.Close()
		must.Do(t, FS.MkdirAll(filepath.Join(dir, "a", "b"), 0o755))
		must.Do(t, MkdirTop(FS, filepath.Join(dir, "top")))
		for name, want := range map[string]os.FileMode{"file": mode & 0o664, "a": mode & 0o775, "a/b": mode & 0o775, "top": 0o700} {
			if fi := must.Get(os.Stat(filepath.Join(dir, name)))(t); fi.Mode().Perm() != want {
				t.Errorf("in a directory %v, %s is %v, want %v", mode, name, fi.Mode().Perm(), want)
			}
		}
	}
	kept := filepath.Join(t.TempDir(), "kept")
	must.Do(t, os.WriteFile(kept, []byte("contents"), 0o600))
	must.Do(t, os.Chmod(filepath.Dir(kept), 0o755))
	f := must.Get(FS.OpenReadWrite(kept, vfs.WriteCategoryUnspecified))(t)
	_ = f.Close()
	if fi := must.Get(os.Stat(kept))(t); fi.Mode().Perm() != 0o600 {
		t.Errorf("an older file is %v", fi.Mode().Perm())
	}
}
