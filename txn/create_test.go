package txn

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/zarrdb/zarrdb/internal/crashtest"
	"github.com/zarrdb/zarrdb/internal/must"
)

// filesIn reads the files in a directory, nil if it is not there.
func filesIn(t *testing.T, fs vfs.FS, dir string) map[string]string {
	t.Helper()
	names, err := fs.List(dir)
	if err != nil {
		return nil
	}
	got := map[string]string{}
	for _, name := range names {
		path := fs.PathJoin(dir, name)
		if fi, err := fs.Stat(path); err != nil {
			t.Fatal(err)
		} else if fi.IsDir() {
			continue
		}
		f := must.Get(fs.Open(path))(t)
		b, err := io.ReadAll(f)
		if err = errors.Join(err, f.Close()); err != nil {
			t.Fatal(err)
		}
		got[name] = string(b)
	}
	return got
}

// What is left of a database is not built upon, whatever it lost: the payloads
// stay, the error names the command that restores them, and that does.
func TestCreateLeavesAloneWhatIsLeft(t *testing.T) {
	// A value in a pack is found again without an index, one in it is not.
	for name, lose := range map[string]func(fs vfs.FS){
		"index":                           func(fs vfs.FS) { remove(t, fs, "db/FORMAT", "db/index") },
		"files of the index":              func(fs vfs.FS) { removeBut(t, fs, "db/index"); remove(t, fs, "db/FORMAT") },
		"all of it but the lock":          func(fs vfs.FS) { removeBut(t, fs, "db/index", "LOCK"); remove(t, fs, "db/FORMAT") },
		"both formats":                    func(fs vfs.FS) { remove(t, fs, "db/FORMAT", "db/index/FORMAT") },
		"the format of databases":         func(fs vfs.FS) { remove(t, fs, "db/FORMAT") },
		"format, with small values":       func(fs vfs.FS) { remove(t, fs, "db/FORMAT") },
		"both formats, with small values": func(fs vfs.FS) { remove(t, fs, "db/FORMAT", "db/index/FORMAT") },
	} {
		fs := vfs.NewMem()
		db, err := Create("db", testOptions(fs))
		must.Do(t, err)
		value := big("payload", 70_000)
		if strings.Contains(name, "small") {
			value = "small"
		}
		update(t, db, "main", map[string]string{"a": value})
		closeChecked(t, db)
		other := must.Get(Create("other", testOptions(fs)))(t)
		update(t, other, "main", map[string]string{"b": big("other", 70_000)})
		must.Get(other.Backup(bg, "saved", TransferOptions{}))(t)
		lose(fs)
		before := filesIn(t, fs, "db/packs")
		for what, make := range map[string]func() error{
			"create": func() error {
				db, err := Create("db", testOptions(fs))
				if err == nil {
					err = db.Close()
				}
				return err
			},
			"clone":   func() error { _, err := other.Clone(bg, "db", TransferOptions{}); return err },
			"backup":  func() error { _, err := other.Backup(bg, "db", TransferOptions{}); return err },
			"restore": func() error { _, err := Restore(bg, "saved", "db", testOptions(fs), TransferOptions{}); return err },
		} {
			if err := make(); !errors.Is(err, ErrExists) || !strings.Contains(err.Error(), "zarrdb fsck --salvage db") {
				t.Errorf("without %s: %s: %v", name, what, err)
			}
			if after := filesIn(t, fs, "db/packs"); !maps.Equal(before, after) {
				t.Fatalf("without %s: %s changed the packs: %d files, then %d", name, what, len(before), len(after))
			}
		}
		closeChecked(t, other)
		if _, err := Salvage(bg, "db", SalvageOptions{Options: *testOptions(fs)}); err != nil {
			t.Errorf("without %s: %v", name, err)
			continue
		}
		if db, err = Open("db", testOptions(fs)); err != nil {
			t.Fatal(err)
		}
		found := at(t, db, "main")["a"]
		if _, err := db.Head(bg, LostAndFound); err == nil {
			found += at(t, db, LostAndFound)["documents/a"]
		}
		if found != value && (value != "small" || strings.HasPrefix(name, "format")) {
			t.Errorf("without %s: salvage found %d bytes", name, len(found))
		}
		closeChecked(t, db)
	}
}

// removeBut empties a directory, but for some files.
func removeBut(t *testing.T, fs vfs.FS, dir string, but ...string) {
	t.Helper()
	kept := strings.Join(but, "\n")
	for name := range filesIn(t, fs, dir) {
		if name != kept {
			remove(t, fs, fs.PathJoin(dir, name))
		}
	}
}

// A copy that was interrupted is taken up by the same command and by no other.
func TestCreateLeavesAloneACopy(t *testing.T) {
	mem := vfs.NewCrashableMem()
	src := must.Get(Create("src", testOptions(mem)))(t)
	update(t, src, "main", map[string]string{"a": big("payload", 70_000)})
	closeChecked(t, src)
	// The moments after its payloads and before the file that says what it is.
	var images []*vfs.MemFS
	fs := crashtest.NewDisk(mem, func(_ *crashtest.Disk, op errorfs.Op) error {
		if strings.HasPrefix(op.Path, "copy/") && len(filesIn(t, mem, "copy/packs")) > 0 {
			images = append(images, all(mem))
		}
		return nil
	})
	run := func(fs vfs.FS) error {
		return withSrc(fs, false, func(db *DB) error {
			_, err := db.Clone(bg, "copy", TransferOptions{})
			return err
		})
	}
	must.Do(t, run(fs))
	if len(images) < 10 {
		t.Errorf("only %d moments", len(images))
	}
	for i, image := range images {
		if _, err := image.Stat("copy/" + FormatFile); err == nil {
			continue
		}
		before := filesIn(t, image, "copy/packs")
		db, err := Create("copy", testOptions(image))
		if err == nil {
			err = db.Close()
		}
		if !errors.Is(err, ErrExists) {
			t.Errorf("moment %d: %v", i, err)
		}
		if after := filesIn(t, image, "copy/packs"); !maps.Equal(before, after) {
			t.Errorf("moment %d: %d packs, then %d", i, len(before), len(after))
		}
		if err := run(image); err != nil {
			t.Errorf("moment %d: %v", i, err)
		}
		closeChecked(t, openPlain(t, image, "copy"))
	}
}

// Whatever fails in a salvage without a checkpoint, the payloads stay.
func TestSalvageThatFailsKeepsPayloads(t *testing.T) {
	mem := vfs.NewCrashableMem()
	salvageHistory(t, mem)
	want := filesIn(t, mem, "db/packs")
	step := int64(2)
	if testing.Short() {
		step = 9
	}
	first := rand.Int64N(step)
	t.Logf("every %d from %d", step, first)
	for k := first; ; k += step {
		image := all(mem)
		remove(t, image, "db/index", "db/checkpoints")
		f := crashtest.Faults{At: k, Once: true}
		o := testOptions(f.Wrap(image))
		_, err := Salvage(bg, "db", SalvageOptions{Options: *o})
		got := filesIn(t, image, "db/packs")
		for name, b := range want {
			if got[name] != b {
				t.Fatalf("operation %d: pack %s is gone: %v", k, name, err)
			}
		}
		if f.Hits.Load() == 0 {
			break
		}
	}
}

// Whatever fails while a database is made, for once or for good, the next creation
// makes one. It finds none if the first one failed, as on a full disk.
func TestFaultWhileCreating(t *testing.T) {
	step := int64(1)
	if testing.Short() {
		step = 9
	}
	for _, forGood := range []bool{false, true} {
		late := 0 // failed behind the rename that makes the database: at the syncs behind it, and at the last of the log
		for k := int64(0); ; k += step {
			mem := vfs.NewMem()
			f := crashtest.Faults{At: k, Once: !forGood}
			o := testOptions(f.Wrap(mem))
			o.CheckpointCommits = 0
			db, failed := Create("db", o)
			if failed == nil {
				failed = db.Close()
			}
			db, err := Create("db", testOptions(mem))
			if err == nil {
				err = db.Close()
			}
			if errors.Is(err, ErrExists) && failed != nil {
				late++
			} else if err != nil && !errors.Is(err, ErrExists) {
				t.Errorf("after operation %d (and later: %v) failed: %v", k, forGood, err)
				continue
			}
			closeChecked(t, openPlain(t, mem, "db"))
			if f.Hits.Load() == 0 {
				break
			}
		}
		if late > 8 {
			t.Errorf("later: %v: %d creations that failed have made a database", forGood, late)
		}
	}
}

// A creation that takes up an interrupted one removes no files of others, wherever
// they lie.
func TestCreateLeavesFilesOfOthers(t *testing.T) {
	otherPack := "db/packs/" + strings.Repeat("0", 31) + "1.pack"
	for _, path := range []string{
		"db/notes", "db/index/notes", "db/index/sub/notes", "db/packs/notes", "db/packs/notes.pack", otherPack, "db/checkpoints/notes",
	} {
		mem := vfs.NewCrashableMem()
		var images []crashed
		db := must.Get(Create("db", testOptions(crashtest.NewDisk(mem, func(d *crashtest.Disk, op errorfs.Op) error {
			images = append(images, crashed{fs: d.Cut(100, 100, nil), op: fmt.Sprint(op.Kind, " ", op.Path)})
			return nil
		}))))(t)
		closeChecked(t, db)
		for _, image := range images {
			must.Do(t, image.fs.MkdirAll(image.fs.PathDir(path), 0o755))
			writeFile(t, image.fs, path, []byte("precious"))
			db, err := Create("db", testOptions(image.fs))
			if err == nil {
				err = db.Close()
			}
			if err != nil && !errors.Is(err, ErrExists) {
				t.Errorf("%s: at %s: %v", path, image.op, err)
			}
			if got := filesIn(t, image.fs, mem.PathDir(path))[mem.PathBase(path)]; got != "precious" {
				t.Errorf("%s: at %s: it is %q", path, image.op, got)
			}
		}
	}
}

// A database that lost the file that makes it one, and holds nothing, is taken up
// as a creation that was interrupted.
func TestCreateTakesUpWhatIsBlank(t *testing.T) {
	mem := vfs.NewMem()
	db, err := Create("db", testOptions(mem))
	must.Do(t, err)
	head := mustHead(t, db)
	closeChecked(t, db)
	remove(t, mem, "db/FORMAT")
	if db, err = Create("db", testOptions(mem)); err != nil {
		t.Fatal(err)
	}
	if mustHead(t, db) != head {
		t.Error("it is another one")
	}
	closeChecked(t, db)
}
