package engine

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

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
