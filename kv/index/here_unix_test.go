//go:build unix

package index

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// putOne commits one record.
func putOne(x *Index, key string) error {
	b := x.NewBatch()
	defer b.Close()
	b.Set(SpaceMeta, []byte(key), make([]byte, 1000))
	return b.Commit(true)
}

func openIn(t *testing.T, dir string) *Index {
	t.Helper()
	x, err := Open(dir, &Options{Create: true, MemTableBytes: 256 << 10, MinFreeBytes: 1})
	if err != nil {
		t.Fatal(err)
	}
	if err := putOne(x, "first"); err != nil {
		t.Fatal(err)
	}
	return x
}

// An index whose directory is not at its path any more acknowledges nothing, and changes
// nothing under that path, when it is used and when it is closed.
func TestMovedAway(t *testing.T) {
	rename := func(t *testing.T, dir string) {
		if err := os.Rename(dir, dir+".away"); err != nil {
			t.Fatal(err)
		}
	}
	for name, leave := range map[string]func(t *testing.T, dir string){
		"moved": rename,
		"removed": func(t *testing.T, dir string) {
			if err := os.RemoveAll(dir); err != nil {
				t.Fatal(err)
			}
		},
		"replaced": func(t *testing.T, dir string) {
			rename(t, dir)
			// Under another name, since this process has the lock of the name.
			other := openIn(t, dir+".other")
			if err := errors.Join(other.Flush(), other.Close(), os.Rename(dir+".other", dir)); err != nil {
				t.Fatal(err)
			}
		},
		"copied": func(t *testing.T, dir string) {
			rename(t, dir)
			if err := os.CopyFS(dir, os.DirFS(dir+".away")); err != nil {
				t.Fatal(err)
			}
		},
	} {
		for _, use := range []string{"commit", "flush", "ingest", "checkpoint", "files", "close"} {
			t.Run(name+"/"+use, func(t *testing.T) {
				dir := filepath.Join(t.TempDir(), "index")
				x := openIn(t, dir)
				if err := x.Here(); err != nil {
					t.Fatal(err)
				}
				leave(t, dir)
				before := listing(t, dir)
				var err error
				switch use {
				case "commit":
					err = putOne(x, "second")
				case "flush": // Pebble makes a table, and removes a log
					err = x.Flush()
				case "ingest":
					err = x.Ingest(func(func(Page, error) bool) {})
				case "checkpoint":
					err = x.Checkpoint(filepath.Join(filepath.Dir(dir), "checkpoints", "1"))
				case "files":
					_, err = x.FS().Create(filepath.Join(dir, "pack"), WriteCategory)
					for _, more := range []error{
						x.FS().MkdirAll(dir, 0o777), x.FS().Remove(filepath.Join(dir, formatFile)), x.FS().RemoveAll(dir),
						x.FS().Rename(dir, dir+"2"), x.FS().Link(filepath.Join(dir, formatFile), dir+"2"),
					} {
						if !errors.Is(more, ErrMoved) {
							t.Errorf("a file is changed: %v", more)
						}
					}
				case "close":
					err = x.Here()
				}
				var moved *MovedError
				if !errors.Is(err, ErrMoved) || !errors.As(err, &moved) || moved.Dir == "" {
					t.Errorf("%s: %v", use, err)
				}
				if err := x.Close(); err != nil {
					t.Errorf("close: %v", err)
				}
				if after := listing(t, dir); !slices.Equal(before, after) {
					t.Errorf("files under the old path:\n%v\nthen\n%v", before, after)
				}
				if _, err := os.Stat(filepath.Join(filepath.Dir(dir), "checkpoints")); err == nil {
					t.Error("a directory was made")
				}
			})
		}
	}
}

// listing returns the files in a directory with their sizes and identities.
func listing(t *testing.T, dir string) (list []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	for _, e := range entries {
		id, _ := identify(filepath.Join(dir, e.Name()))
		fi, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, e.Name()+" "+id.String()+" "+fi.ModTime().String())
	}
	return list
}

// The system would give this process the lock of a moved directory once more.
func TestOwnLockUnderAnotherName(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "index")
	x := openIn(t, dir)
	away := dir + ".away"
	if err := os.Rename(dir, away); err != nil {
		t.Fatal(err)
	}
	_, err := Open(away, nil)
	var locked *LockedError
	if !errors.As(err, &locked) || !locked.Own {
		t.Fatalf("a second open in one process: %v", err)
	}
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := Open(away, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if _, err := again.Get(SpaceMeta, []byte("first")); err != nil {
		t.Errorf("what was committed before the move: %v", err)
	}
}

// The identity of a lock file stays when the directory is moved, and differs in a copy.
func TestLockFile(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "index")
	if got := LockFile(dir); got != "" {
		t.Errorf("without an index: %q", got)
	}
	x := openIn(t, dir)
	id := x.LockFile()
	if id == "" || LockFile(dir) != id {
		t.Errorf("open %q, by stat %q", id, LockFile(dir))
	}
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Rename(dir, dir+"2"), os.CopyFS(dir, os.DirFS(dir+"2"))); err != nil {
		t.Fatal(err)
	}
	if moved, copied := LockFile(dir+"2"), LockFile(dir); moved != id || copied == id || copied == "" {
		t.Errorf("was %q, moved %q, copied %q", id, moved, copied)
	}
}
