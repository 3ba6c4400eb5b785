package engine

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/zarrdb/zarrdb/engine/internal/names"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/txn"
	"github.com/zarrdb/zarrdb/zarr"
)

// folderDB is a database with the arrays a and g/b, whose chunks are what tests say.
func folderDB(t *testing.T, db *DB) {
	t.Helper()
	must.Get(db.Update(bg, "", "arrays", func(s *Session) error {
		for _, path := range []string{"a", "g/b"} {
			if _, err := s.CreateArray(bg, path, zarr.Spec{Shape: []int64{100}, Chunks: []int64{1}, DataType: "int8"}); err != nil {
				return err
			}
		}
		return s.Set(bg, "a/c/0", []byte("zero"))
	}))(t)
}

// folderFiles are the files of a folder by key.
func folderFiles(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	must.Do(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || e.Name()[0] == '.' {
			return err
		}
		b, err := os.ReadFile(path)
		rel, _ := filepath.Rel(dir, path)
		out[filepath.ToSlash(rel)] = string(b)
		return err
	}))
	return out
}

// versionFiles are the values of a version by key.
func versionFiles(t *testing.T, db *DB, rev string) map[string]string {
	t.Helper()
	out := map[string]string{}
	must.Do(t, db.View(bg, rev, func(s *Snapshot) error {
		for key, err := range s.List(bg, kv.ListOptions{}) {
			if err != nil {
				return err
			}
			b, err := s.Get(bg, key, kv.All())
			if err != nil {
				return err
			}
			out[key] = string(b)
		}
		return nil
	}))
	return out
}

func sameFiles(t *testing.T, what string, got, want map[string]string) {
	t.Helper()
	for key := range got {
		if w, ok := want[key]; !ok || w != got[key] {
			t.Errorf("%s: %s is %q, want %q (%v)", what, key, got[key], w, ok)
		}
	}
	for key := range want {
		if _, ok := got[key]; !ok {
			t.Errorf("%s: %s is missing", what, key)
		}
	}
	if t.Failed() {
		t.FailNow()
	}
}

// toolSets writes a file as a tool does: in place, or beside and renamed. "" removes it.
func toolSets(t *testing.T, dir, key, value string, rename bool) {
	t.Helper()
	path := filepath.Join(dir, filepath.FromSlash(key))
	if value == "" {
		if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
			must.Do(t, err)
		}
		return
	}
	must.Do(t, os.MkdirAll(filepath.Dir(path), 0o777))
	if !rename {
		must.Do(t, os.WriteFile(path, []byte(value), 0o666))
		return
	}
	must.Do(t, os.WriteFile(path+".partial", []byte(value), 0o666))
	must.Do(t, os.Rename(path+".partial", path))
}

// Folder and database agree after every commit of a random history, in which a tool and others write, at the same chunks too.
func TestFolderHistory(t *testing.T) {
	rounds := 60
	if testing.Short() {
		rounds = 15
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	db := openDB(t, nil)
	folderDB(t, db)
	dir := filepath.Join(t.TempDir(), "d.zarr")
	must.Get(db.Checkout(bg, "", dir, CheckoutOptions{}))(t)
	value := func() string { return strings.Repeat(string('x'+rune(r.IntN(3))), r.IntN(4)) }
	key := func() string { return fmt.Sprintf("%s/c/%d", []string{"a", "g/b"}[r.IntN(2)], r.IntN(6)) }
	for range rounds {
		base := versionFiles(t, db, "")
		sameFiles(t, "clean folder", folderFiles(t, dir), base)
		var others map[string]string
		for range r.IntN(3) { // commits of others
			must.Get(db.Update(bg, "", "others", func(s *Session) error {
				for range 1 + r.IntN(2) {
					if k, v := key(), value(); v != "" {
						must.Do(t, s.Set(bg, k, []byte(v)))
					} else {
						must.Do(t, s.Delete(bg, k))
					}
				}
				return nil
			}))(t)
		}
		others = versionFiles(t, db, "")
		for range r.IntN(5) {
			toolSets(t, dir, key(), value(), r.IntN(2) == 0)
		}
		must.Do(t, os.WriteFile(filepath.Join(dir, "a", ".DS_Store"), nil, 0o666))
		mine := folderFiles(t, dir)
		differs := func(m map[string]string, k string) bool { v, ok := m[k]; w, is := base[k]; return ok != is || v != w }
		conflict, changed := false, false
		want, ours := maps.Clone(others), maps.Clone(others)
		for k := range mergedKeys(base, mine) {
			if !differs(mine, k) {
				continue
			}
			changed = true
			conflict = conflict || differs(others, k)
			if v, ok := mine[k]; ok {
				want[k] = v
			} else {
				delete(want, k)
			}
			if !differs(others, k) {
				ours[k] = want[k]
				if _, ok := mine[k]; !ok {
					delete(ours, k)
				}
			}
		}
		status := must.Get(StatusOfFolder(bg, dir, r.IntN(2) == 0))(t)
		if (len(status.Changes) > 0) != changed {
			t.Fatalf("status %v, changed %v", status.Changes, changed)
		}
		o := FolderCommitOptions{CommitOptions: CommitOptions{Message: "tool"}}
		out, err := db.CommitFolder(bg, dir, o)
		if conflict != errors.Is(err, ErrConflict) || err != nil && !conflict {
			t.Fatalf("conflict %v, %v", conflict, err)
		}
		if conflict {
			sameFiles(t, "after a conflict", folderFiles(t, dir), mine)
			_, err := db.Checkout(bg, "", dir, CheckoutOptions{})
			if errors.Is(err, ErrConflict) != changedDiffers(mine, others, base) {
				t.Fatalf("changes would be lost: %v", err)
			}
			if err == nil { // both have made the same of it
				sameFiles(t, "carried changes", folderFiles(t, dir), ours)
				must.Get(db.Checkout(bg, "", dir, CheckoutOptions{Discard: []string{"/"}}))(t)
				continue
			}
			sameFiles(t, "after a refused checkout", folderFiles(t, dir), mine)
			side := []txn.Choice{txn.Ours, txn.Theirs}[r.IntN(2)]
			o.Choices = []txn.PathChoice{{Choice: side}}
			if side == txn.Ours {
				want = ours
			}
			out = must.Get(db.CommitFolder(bg, dir, o))(t)
		}
		if !changed {
			must.Get(db.Checkout(bg, "", dir, CheckoutOptions{}))(t)
			want = others
		} else if out.Base == out.Commit.ID && !conflict {
			t.Fatal("no commit was made")
		}
		sameFiles(t, "head", versionFiles(t, db, ""), want)
		if r.IntN(4) == 0 {
			toolSets(t, dir, key(), value(), false)
			must.Get(db.Checkout(bg, "main~1", dir, CheckoutOptions{Discard: []string{"/"}}))(t)
			sameFiles(t, "an older version", folderFiles(t, dir), versionFiles(t, db, "main~1"))
			must.Get(db.Checkout(bg, "main", dir, CheckoutOptions{}))(t)
		}
	}
	if kept := must.Get(db.KeptVersions(bg))(t); len(kept) != 1 {
		t.Errorf("%d versions are kept", len(kept))
	}
}

// changedDiffers reports whether a file that differs from the base differs from what others made of it.
func changedDiffers(mine, others, base map[string]string) bool {
	for k := range mergedKeys(mine, mergedKeys(others, base)) {
		if mine[k] != base[k] && others[k] != base[k] && mine[k] != others[k] {
			return true
		}
	}
	return false
}

func mergedKeys(a, b map[string]string) map[string]string {
	out := maps.Clone(a)
	maps.Copy(out, b)
	return out
}

// After a power cut at any change of the folder, in a checkout, a commit that is merged, and the move that follows, the same command
// goes on: the folder agrees with the branch, and each commit was made once.
func TestFolderPowerCut(t *testing.T) {
	defer func() { folderFault = nil }()
	cut := errors.New("power cut")
	step := 1
	if testing.Short() {
		step = 5
	}
	for at, done := 0, false; !done; at += step {
		mem := vfs.NewCrashableMem()
		o := func() *Options { o := memOptions(); o.FS = mem; return o }
		db := must.Get(Open(bg, "db", o()))(t)
		folderDB(t, db)
		dir := filepath.Join(t.TempDir(), "d.zarr")
		n, where := 0, ""
		folderFault = func(what string) error {
			if n++; n == at+1 {
				where = what
				return cut
			}
			return nil
		}
		again := func(fn func() error) {
			err := fn()
			if !errors.Is(err, cut) {
				must.Do(t, err)
				return
			}
			mem = mem.CrashClone(vfs.CrashCloneCfg{}) // what was not synced is gone
			_ = db.Close()
			db = must.Get(Open(bg, "db", o()))(t)
			must.Do(t, fn())
		}
		look := func(what string, want map[string]string) {
			sameFiles(t, fmt.Sprintf("cut %d at %s: %s", at, where, what), folderFiles(t, dir), want)
		}
		again(func() error { _, err := db.Checkout(bg, "", dir, CheckoutOptions{}); return err })
		look("checkout", versionFiles(t, db, ""))
		toolSets(t, dir, "a/c/1", "one", true)
		toolSets(t, dir, "a/c/0", "", true)
		must.Get(db.Update(bg, "", "others", func(s *Session) error {
			return errors.Join(s.Set(bg, "g/b/c/7", []byte("seven")), s.Set(bg, "g/b/c/8", []byte("eight")))
		}))(t)
		again(func() error {
			_, err := db.CommitFolder(bg, dir, FolderCommitOptions{CommitOptions: CommitOptions{Message: "tool"}})
			return err
		})
		want := versionFiles(t, db, "")
		look("commit", want)
		if want["a/c/1"] != "one" || want["a/c/0"] != "" || want["g/b/c/8"] != "eight" {
			t.Fatalf("cut %d at %s: %v", at, where, want)
		}
		made := 0
		for c, err := range db.Log(bg, "") {
			must.Do(t, err)
			if c.Message == "tool" {
				made++
			}
		}
		if made != 1 {
			t.Fatalf("cut %d at %s: %d commits", at, where, made)
		}
		again(func() error { _, err := db.Checkout(bg, "main~2", dir, CheckoutOptions{}); return err })
		look("older version", versionFiles(t, db, "main~2"))
		if st := must.Get(StatusOfFolder(bg, dir, true))(t); len(st.Changes) > 0 || st.Unfinished {
			t.Fatalf("cut %d at %s: %+v", at, where, st)
		}
		must.Do(t, db.Close())
		done = where == ""
	}
}

// A folder of some arrays has the groups above without copies of what is not there, and a commit makes the copies again.
func TestFolderOnly(t *testing.T) {
	db := openDB(t, nil)
	folderDB(t, db)
	must.Get(db.Update(bg, "", "consolidate", func(s *Session) error { return zarr.Consolidate(bg, s, "", nil) }))(t)
	dir := filepath.Join(t.TempDir(), "d.zarr")
	must.Get(db.Checkout(bg, "", dir, CheckoutOptions{Only: []string{"g/b"}}))(t)
	files := folderFiles(t, dir)
	if keys := slices.Sorted(maps.Keys(files)); !slices.Equal(keys, []string{"g/b/zarr.json", "g/zarr.json", "zarr.json"}) || strings.Contains(files["zarr.json"], "consolidated") {
		t.Fatal(keys, files["zarr.json"])
	}
	toolSets(t, dir, "g/b/zarr.json", strings.Replace(files["g/b/zarr.json"], "100", "200", 1), true)
	toolSets(t, dir, "zarr.json", strings.Replace(files["zarr.json"], `"attributes": {}`, `"attributes": {"x":1}`, 1), true)
	must.Get(db.CommitFolder(bg, dir, FolderCommitOptions{}))(t)
	root := versionFiles(t, db, "")["zarr.json"]
	for _, has := range []string{`"a"`, "200", `"x"`, "consolidated_metadata"} {
		if !strings.Contains(root, has) {
			t.Errorf("%s is not in %s", has, root)
		}
	}
	toolSets(t, dir, "a/c/3", "outside", true)
	if _, err := db.CommitFolder(bg, dir, FolderCommitOptions{}); !errors.Is(err, ErrConflict) || !strings.Contains(err.Error(), "only g/b was checked out") {
		t.Error(err)
	}
}

// theirs commits values of keys, as another program does.
func theirs(t *testing.T, db *DB, pairs ...string) {
	t.Helper()
	must.Get(db.Update(bg, "", "others", func(s *Session) error {
		for i := 0; i < len(pairs); i += 2 {
			must.Do(t, s.Set(bg, pairs[i], []byte(pairs[i+1])))
		}
		return nil
	}))(t)
}

// A file that a program changes is committed, also if it has the size and the time of before, and its inode.
func TestFolderTimeSetBack(t *testing.T) {
	db := openDB(t, nil)
	folderDB(t, db)
	dir := filepath.Join(t.TempDir(), "d.zarr")
	must.Get(db.Checkout(bg, "", dir, CheckoutOptions{}))(t)
	file := filepath.Join(dir, "a", "c", "0")
	at := must.Get(os.Stat(file))(t).ModTime()
	for _, value := range []string{"four", "five", "nine"} {
		if value == "nine" {
			must.Do(t, os.Remove(file)) // most file systems give its inode to the next file
		}
		toolSets(t, dir, "a/c/0", value, false)
		must.Do(t, os.Chtimes(file, at, at))
		must.Get(db.CommitFolder(bg, dir, FolderCommitOptions{}))(t)
		if got := versionFiles(t, db, "")["a/c/0"]; got != value {
			t.Fatalf("%q was committed, want %q", got, value)
		}
	}
}

// A version that links other bytes is another one, also where the server tells no versions of its files.
func TestFolderLinks(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.ServeContent(w, r, "", time.Time{}, strings.NewReader(strings.Repeat(path.Base(r.URL.Path), 4)))
	}))
	defer server.Close()
	o := memOptions()
	o.Follow = Follow{Allow: []string{server.URL + "/"}}
	db, dir, set := openDB(t, o), filepath.Join(t.TempDir(), "d.zarr"), filepath.Join(t.TempDir(), "r.json")
	for _, name := range []string{"x", "y"} {
		must.Do(t, os.WriteFile(set, fmt.Appendf(nil, `{"v/.zarray": "{\"zarr_format\":2,\"shape\":[4],\"chunks\":[4],\"dtype\":\"|i1\",\"fill_value\":0,\"order\":\"C\",\"compressor\":null,\"filters\":null}", "v/0": [%q, 0, 4]}`, server.URL+"/"+name), 0o666))
		src := must.Get(OpenSource(bg, set, &SourceOptions{Follow: o.Follow}))(t)
		must.Get(db.Import(bg, src, ImportOptions{Link: true, Overwrite: true, Validate: ValidateNone}))(t)
		must.Do(t, src.Close())
		must.Get(db.Checkout(bg, "", dir, CheckoutOptions{}))(t)
		if got := folderFiles(t, dir)["v/0"]; got != strings.Repeat(name, 4) {
			t.Errorf("the folder has %q of the version that links %s", got, name)
		}
	}
}

// A change of a chunk is not carried to a version in which its array is another one: the chunk of that number has another place there.
func TestFolderShifted(t *testing.T) {
	db := openDB(t, nil)
	must.Get(db.Update(bg, "", "", func(s *Session) error {
		_, err := s.CreateArray(bg, "t", zarr.Spec{Shape: []int64{10}, Chunks: []int64{1}, DataType: "int8", DimensionNames: []string{"time"}})
		return errors.Join(err, s.Set(bg, "t/c/8", []byte("eight")))
	}))(t)
	dir := filepath.Join(t.TempDir(), "d.zarr")
	must.Get(db.Checkout(bg, "", dir, CheckoutOptions{}))(t)
	toolSets(t, dir, "t/c/5", "five", false)
	must.Get(db.Update(bg, "", "", func(s *Session) error { _, err := s.DropFront(bg, "", "time", "2"); return err }))(t)
	if _, err := db.Checkout(bg, "", dir, CheckoutOptions{}); !errors.Is(err, ErrConflict) || !strings.Contains(err.Error(), "t/c/5") {
		t.Errorf("a chunk of before the shift: %v", err)
	}
	must.Get(db.Checkout(bg, "", dir, CheckoutOptions{Keep: []string{"t/c/5"}}))(t)
	must.Get(db.CommitFolder(bg, dir, FolderCommitOptions{}))(t)
	if files := versionFiles(t, db, ""); files["t/c/5"] != "five" || files["t/c/6"] != "eight" {
		t.Error(files)
	}
}

// Where the version that a folder stands at has expired, or left its branch, the error names a way on, for parts of a database too.
func TestFolderBaseGone(t *testing.T) {
	for _, o := range []CheckoutOptions{{}, {Path: "g"}, {Only: []string{"/g/b"}}} {
		for _, expire := range []bool{false, true} {
			db := openDB(t, nil)
			folderDB(t, db)
			theirs(t, db, "g/b/c/0", "old")
			dir := filepath.Join(t.TempDir(), "d.zarr")
			must.Get(db.Checkout(bg, "", dir, o))(t)
			toolSets(t, dir, strings.TrimPrefix("g/b/c/1", names.Dir(o.Path)), "mine", false)
			must.Get(db.Reset(bg, "", "main~1"))(t)
			theirs(t, db, "g/b/c/2", "theirs")
			if expire {
				for _, k := range must.Get(db.KeptVersions(bg))(t) {
					must.Do(t, db.EndKept(bg, k.Name))
				}
				must.Get(db.Expire(bg, txn.ExpireOptions{Keep: 1}))(t)
			}
			_, err := db.CommitFolder(bg, dir, FolderCommitOptions{})
			if err == nil || !strings.Contains(err.Error(), `"zarrdb checkout `) || !strings.Contains(err.Error(), "@main "+dir) {
				t.Fatalf("%+v, expired %v: %v", o, expire, err)
			}
			must.Get(db.Checkout(bg, "main", dir, CheckoutOptions{}))(t)
			must.Get(db.CommitFolder(bg, dir, FolderCommitOptions{}))(t)
			if files := versionFiles(t, db, ""); files["g/b/c/1"] != "mine" || files["g/b/c/2"] != "theirs" || files["g/b/c/0"] != "" || files["a/c/0"] != "zero" {
				t.Errorf("%+v, expired %v: %v", o, expire, files)
			}
		}
	}
}

// A tool that writes while a commit goes on, to a file that others have changed, loses nothing, and the error names what helps.
func TestFolderChangedMeanwhile(t *testing.T) {
	defer func() { folderFault = nil }()
	db := openDB(t, nil)
	folderDB(t, db)
	dir := filepath.Join(t.TempDir(), "d.zarr")
	must.Get(db.Checkout(bg, "", dir, CheckoutOptions{}))(t)
	toolSets(t, dir, "a/c/1", "one", false)
	folderFault = func(what string) error {
		if what == "commit" {
			theirs(t, db, "a/c/0", "theirs")
			toolSets(t, dir, "a/c/0", "mine", false)
		}
		return nil
	}
	_, err := db.CommitFolder(bg, dir, FolderCommitOptions{})
	folderFault = nil
	if !errors.Is(err, ErrConflict) || !strings.Contains(err.Error(), "is committed") || !strings.Contains(err.Error(), `"zarrdb checkout" again with --keep PATH`) {
		t.Fatal(err)
	}
	must.Get(db.Checkout(bg, "", dir, CheckoutOptions{Keep: []string{"a"}}))(t)
	must.Get(db.CommitFolder(bg, dir, FolderCommitOptions{}))(t)
	if files := versionFiles(t, db, ""); files["a/c/0"] != "mine" || files["a/c/1"] != "one" {
		t.Error(files)
	}
}

// What cannot be taken back is refused: metadata that is written right now, names that cannot be files, and links that lead out.
func TestFolderRefuses(t *testing.T) {
	db := openDB(t, nil)
	folderDB(t, db)
	dir := filepath.Join(t.TempDir(), "d.zarr")
	must.Get(db.Checkout(bg, "", dir, CheckoutOptions{}))(t)
	whole := folderFiles(t, dir)["a/zarr.json"]
	toolSets(t, dir, "a/zarr.json", whole[:20], false)
	if _, err := db.CommitFolder(bg, dir, FolderCommitOptions{}); !errors.Is(err, zarr.ErrMetadata) {
		t.Error(err)
	}
	toolSets(t, dir, "a/zarr.json", whole, false)
	must.Do(t, os.Symlink(t.TempDir(), filepath.Join(dir, "out")))
	if _, err := db.CommitFolder(bg, dir, FolderCommitOptions{}); err == nil || !strings.Contains(err.Error(), "leads out") {
		t.Error(err)
	}
	must.Do(t, os.Remove(filepath.Join(dir, "out")))
	must.Do(t, os.Symlink("a", filepath.Join(dir, "latest")))
	if _, err := db.CommitFolder(bg, dir, FolderCommitOptions{}); err == nil || !strings.Contains(err.Error(), "a symbolic link leads to") {
		t.Error(err)
	}
	must.Do(t, os.Remove(filepath.Join(dir, "latest")))
	if _, err := db.Checkout(bg, "", filepath.Join(t.TempDir(), "none"), CheckoutOptions{Path: "g", Only: []string{"g/b"}}); !errors.Is(err, ErrNotFound) {
		t.Errorf("a path that is not below the folder's: %v", err)
	}
	must.Get(db.Update(bg, "", "long name", func(s *Session) error { return s.Set(bg, strings.Repeat("n", 300), []byte("x")) }))(t)
	before := folderFiles(t, dir)
	other := filepath.Join(t.TempDir(), "other")
	for _, to := range []string{dir, other} {
		if _, err := db.Checkout(bg, "", to, CheckoutOptions{}); !errors.Is(err, kv.ErrInvalidKey) {
			t.Error(err)
		}
	}
	sameFiles(t, "after a refused checkout", folderFiles(t, dir), before)
	if left := must.Get(os.ReadDir(filepath.Dir(other)))(t); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}
