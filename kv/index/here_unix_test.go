//go:build unix

package index

import (
	"errors"
	"github.com/zarrdb/zarrdb/internal/must"
	"os"
	"path/filepath"
	"slices"
	"strings"
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
	x := must.Get(Open(dir, &Options{Create: true, MemTableBytes: 256 << 10, MinFreeBytes: 1}))(t)
	must.Do(t, putOne(x, "first"))
	return x
}

// An index whose directory is not at its path any more acknowledges nothing, and changes
// nothing under that path, when it is used and when it is closed.
func TestMovedAway(t *testing.T) {
	rename := func(t *testing.T, dir string) {
		must.Do(t, os.Rename(dir, dir+".away"))
	}
	for name, leave := range map[string]func(t *testing.T, dir string){
		"moved": rename,
		"removed": func(t *testing.T, dir string) {
			must.Do(t, os.RemoveAll(dir))
		},
		"being removed": func(t *testing.T, dir string) {
			must.Do(t, os.Remove(filepath.Join(filepath.Dir(dir), "WHOLE")))
		},
		"replaced": func(t *testing.T, dir string) {
			rename(t, dir)
			// Under another name, since this process has the lock of the name.
			other := openIn(t, dir+".other")
			must.Do(t, errors.Join(other.Flush(), other.Close(), os.Rename(dir+".other", dir)))
		},
		"copied": func(t *testing.T, dir string) {
			rename(t, dir)
			must.Do(t, os.CopyFS(dir, os.DirFS(dir+".away")))
		},
	} {
		for _, use := range []string{"commit", "flush", "ingest", "checkpoint", "files", "close"} {
			t.Run(name+"/"+use, func(t *testing.T) {
				dir := filepath.Join(t.TempDir(), "index")
				x := openIn(t, dir)
				whole := filepath.Join(filepath.Dir(dir), "WHOLE")
				must.Do(t, os.WriteFile(whole, nil, 0o600))
				x.PartOf(whole)
				must.Do(t, x.Here())
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
				after := listing(t, dir)
				if name == "being removed" { // what was open is written to
					before, after = names(before), names(after)
				}
				if !slices.Equal(before, after) {
					t.Errorf("files under the old path:\n%v\nthen\n%v", before, after)
				}
				if _, err := os.Stat(filepath.Join(filepath.Dir(dir), "checkpoints")); err == nil {
					t.Error("a directory was made")
				}
			})
		}
	}
}

func names(list []string) (out []string) {
	for _, s := range list {
		name, _, _ := strings.Cut(s, " ")
		out = append(out, name)
	}
	return out
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
		fi := must.Get(e.Info())(t)
		list = append(list, e.Name()+" "+id.String()+" "+fi.ModTime().String())
	}
	return list
}

// The system would give this process the lock of a moved directory once more.
func TestOwnLockUnderAnotherName(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "index")
	x := openIn(t, dir)
	away := dir + ".away"
	must.Do(t, os.Rename(dir, away))
	_, err := Open(away, nil)
	var locked *LockedError
	if !errors.As(err, &locked) || !locked.Own {
		t.Fatalf("a second open in one process: %v", err)
	}
	must.Do(t, x.Close())
	again := must.Get(Open(away, nil))(t)
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
	must.Do(t, x.Close())
	must.Do(t, errors.Join(os.Rename(dir, dir+"2"), os.CopyFS(dir, os.DirFS(dir+"2"))))
	if moved, copied := LockFile(dir+"2"), LockFile(dir); moved != id || copied == id || copied == "" {
		t.Errorf("was %q, moved %q, copied %q", id, moved, copied)
	}
}
