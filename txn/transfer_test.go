package txn

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/index"
	"github.com/zarrdb/zarrdb/txn/internal/catalog"
)

// big is a value that goes to a pack.
func big(seed string, n int) string { return strings.Repeat(seed+"|", n/(len(seed)+1)+1)[:n] }

// openCopy opens a copy, which is checked when the test ends.
func openCopy(t *testing.T, fs vfs.FS, dir string) *DB {
	t.Helper()
	db := must.Get(Open(dir, testOptions(fs)))(t)
	t.Cleanup(func() { closeChecked(t, db) })
	return db
}

// sameVersions fails unless both have the same refs, by id, and every version
// behind them reads the same.
func sameVersions(t *testing.T, a, b *DB) {
	t.Helper()
	for _, prefix := range []string{catalog.HeadPrefix, catalog.TagPrefix} {
		if x, y := fmt.Sprint(a.heads.list(prefix)), fmt.Sprint(b.heads.list(prefix)); x != y {
			t.Fatalf("refs\n%s\n%s", x, y)
		}
	}
	for _, r := range a.heads.list("") {
		for c, err := range a.Log(bg, r.Commit) {
			must.Do(t, err)
			gone := must.Get(a.Expired(bg, c.ID))(t)
			if gone2, err := b.Expired(bg, c.ID); err != nil || gone2 != gone {
				t.Fatalf("commit %v: expired %v, in the copy %v, %v", c.ID, gone, gone2, err)
			}
			if gone {
				continue
			}
			if x, y := at(t, a, c.ID.String()), at(t, b, c.ID.String()); !maps.Equal(x, y) {
				t.Fatalf("commit %v differs", c.ID)
			}
		}
	}
}

// grow commits to an array of pack values, so that each version changes one.
func grow(t *testing.T, db *DB, versions, from int) {
	t.Helper()
	for i := range versions {
		update(t, db, "main", map[string]string{
			fmt.Sprintf("a/c/%d", (from+i)%7): big(fmt.Sprint("v", from+i), 3000+100*i),
			"a/note":                          fmt.Sprint(from + i),
		})
	}
}

func TestCloneHasTheSameVersions(t *testing.T) {
	fs := vfs.NewMem()
	db := openTest(t, testOptions(fs))
	grow(t, db, 10, 0)
	must.Do(t, db.CreateTag(bg, "v1", mustHead(t, db)))
	must.Do(t, db.CreateBranch(bg, "side", mustHead(t, db)))
	update(t, db, "side", map[string]string{"s": big("side", 70_000), "a/c/3": ""})
	grow(t, db, 5, 10)

	r := must.Get(db.Clone(bg, "copy", TransferOptions{}))(t)
	to := openCopy(t, fs, "copy")
	sameVersions(t, db, to)
	if r.Commits != 17 || r.Records != 0 || r.Verified != 16 || len(r.Moves) != 3 {
		t.Errorf("report %+v", *r)
	}
	if to.Incarnation() == db.Incarnation() {
		t.Error("the clone writes packs of the same names")
	}
	// It goes on by itself, and so does the source.
	grow(t, to, 3, 100)
	grow(t, db, 3, 200)
	if _, err := db.Clone(bg, "copy", TransferOptions{}); !errors.Is(err, ErrExists) {
		t.Errorf("over another database: %v", err)
	}
	if _, err := db.Clone(bg, "none", TransferOptions{Branch: "none"}); !errors.Is(err, ErrNoRef) {
		t.Errorf("of a branch that is not there: %v", err)
	}
}

func TestShallowAndSingleBranchClone(t *testing.T) {
	fs := vfs.NewMem()
	db := openTest(t, testOptions(fs))
	grow(t, db, 4, 0)
	must.Do(t, db.CreateTag(bg, "old", mustHead(t, db)))
	grow(t, db, 6, 4)
	must.Do(t, db.CreateBranch(bg, "side", mustHead(t, db)))
	update(t, db, "side", map[string]string{"s": big("side", 90_000)})

	r, err := db.Clone(bg, "shallow", TransferOptions{Branch: "main", Depth: 2})
	must.Do(t, err)
	if r.Commits != 2 || r.Records != 9 || r.PayloadBytes > 8*5000 {
		t.Errorf("report %+v", *r)
	}
	to := openCopy(t, fs, "shallow")
	if got := fmt.Sprint(to.heads.list("")); strings.Contains(got, "side") || strings.Contains(got, "old") {
		t.Errorf("refs %s", got)
	}
	for rev, want := range map[string]error{"main": nil, "main~1": nil, "main~2": ErrExpired, "main~10": ErrExpired} {
		if _, err := to.Resolve(bg, rev); !errors.Is(err, want) {
			t.Errorf("%s: %v", rev, err)
		}
	}
	if !maps.Equal(at(t, to, "main~1"), at(t, db, "main~1")) {
		t.Error("the version before differs")
	}
	// A push into a shallow clone does not make it deeper, and one from it is as any.
	grow(t, db, 2, 20)
	if r, err = db.Push(bg, to, TransferOptions{}); err != nil || r.Commits != 2 {
		t.Fatalf("push: %+v, %v", r, err)
	}
	grow(t, to, 2, 30)
	if r, err = to.Push(bg, db, TransferOptions{}); err != nil || r.Commits != 2 {
		t.Fatalf("push back: %+v, %v", r, err)
	}
	if mustHead(t, db) != mustHead(t, to) {
		t.Error("heads differ")
	}
	// A tag of a version that was below the depth brings it.
	must.Do(t, db.CreateBranch(bg, "deep", mustResolve(t, db, "old")))
	if r, err = db.Push(bg, to, TransferOptions{Refs: []RefSpec{{From: "deep"}}}); err != nil || r.Commits != 1 {
		t.Fatalf("push of an expired version: %+v, %v", r, err)
	}
	if !maps.Equal(at(t, to, "deep"), at(t, db, "old")) {
		t.Error("the old version differs")
	}
}

// A shallow copy says what it lacks, and gets it by pulls that go deeper.
func TestDeepenAShallowCopy(t *testing.T) {
	fs := vfs.NewMem()
	db := openTest(t, testOptions(fs))
	grow(t, db, 10, 0)
	must.Get(db.Clone(bg, "shallow", TransferOptions{Depth: 2}))(t)
	to := openCopy(t, fs, "shallow")
	has := func(n int) {
		t.Helper()
		mustBeSound(t, to)
		for back := range 10 {
			rev := fmt.Sprintf("main~%d", back)
			_, err := to.Resolve(bg, rev)
			if back < n && (err != nil || !maps.Equal(at(t, to, rev), at(t, db, rev))) {
				t.Errorf("%s is not right: %v", rev, err)
			}
			if back >= n && (!errors.Is(err, ErrShallow) || !errors.Is(err, ErrExpired) || !strings.Contains(err.Error(), "not in this shallow copy")) {
				t.Errorf("%s: %v", rev, err)
			}
		}
	}
	has(2)
	pull := func(o TransferOptions, commits int64) {
		t.Helper()
		if r, err := to.Pull(bg, db, o); err != nil || r.Commits != commits || r.Records != 0 {
			t.Fatalf("%+v, %v", r, err)
		}
		mustGC(t, to)
	}
	pull(TransferOptions{}, 0)
	has(2)
	pull(TransferOptions{Deepen: 3}, 3)
	has(5)
	grow(t, db, 1, 10)
	pull(TransferOptions{Deepen: 1}, 2)
	has(7)
	pull(TransferOptions{Unshallow: true}, 5) // with the first, empty one
	has(11)
	pull(TransferOptions{Unshallow: true}, 0)
	// A copy of a shallow copy is shallow too, and knows what expired from what was not copied.
	must.Get(db.Clone(bg, "second", TransferOptions{Depth: 4}))(t)
	from := openCopy(t, fs, "second")
	mustExpire(t, from, ExpireOptions{Keep: 2})
	must.Get(from.Clone(bg, "third", TransferOptions{}))(t)
	to = openCopy(t, fs, "third")
	for rev, shallow := range map[string]bool{"main~3": false, "main~4": true} {
		if _, err := to.Resolve(bg, rev); !errors.Is(err, ErrExpired) || errors.Is(err, ErrShallow) != shallow {
			t.Errorf("%s: %v", rev, err)
		}
	}
}

func TestPushIsFastForward(t *testing.T) {
	fs := vfs.NewMem()
	db := openTest(t, testOptions(fs))
	grow(t, db, 3, 0)
	must.Get(db.Clone(bg, "copy", TransferOptions{}))(t)
	to := openCopy(t, fs, "copy")
	grow(t, db, 1, 3)
	r, err := db.Push(bg, to, TransferOptions{})
	must.Do(t, err)
	if r.Commits != 1 || r.PayloadBytes < 3000 || r.PayloadBytes > 3200 || r.Pages > 6 || len(r.Moves) != 1 {
		t.Errorf("one version: %+v", *r)
	}
	if r, err = db.Push(bg, to, TransferOptions{}); err != nil || r.Commits+r.Pages+r.PayloadBytes != 0 || len(r.Moves) != 0 {
		t.Errorf("nothing: %+v, %v", *r, err)
	}
	for m, err := range to.Reflog(bg, "main") {
		if err != nil || m.Op != "push" || m.New != mustHead(t, db) {
			t.Errorf("reflog: %+v, %v", m, err)
		}
		break
	}
	// Both go on.
	grow(t, db, 1, 50)
	theirs := update(t, to, "main", map[string]string{"other": big("x", 2000)})
	_, err = db.Push(bg, to, TransferOptions{})
	if !errors.Is(err, ErrDiverged) || !errors.Is(err, ErrConflict) {
		t.Fatalf("diverged: %v", err)
	}
	if mustHead(t, to) != theirs.ID {
		t.Fatal("a refused push moved the branch")
	}
	if _, err = db.Push(bg, to, TransferOptions{Force: true}); err != nil {
		t.Fatal(err)
	}
	if mustHead(t, to) != mustHead(t, db) {
		t.Fatal("a forced push did not move the branch")
	}
	if _, err := to.Snapshot(bg, theirs.ID); err != nil {
		t.Errorf("what a forced push dropped is still in the reflog: %v", err)
	}
	if _, err := db.Push(bg, db, TransferOptions{}); err == nil {
		t.Error("push to itself")
	}
	if _, err := db.Push(bg, to, TransferOptions{Refs: []RefSpec{{From: "nope"}}}); !errors.Is(err, ErrNoRef) {
		t.Errorf("push of nothing: %v", err)
	}
}

// What the destination has given back comes again, also into its own packs.
func TestPushFillsWhatWasReclaimed(t *testing.T) {
	fs := vfs.NewMem()
	db := openTest(t, testOptions(fs))
	grow(t, db, 30, 0)
	kept := mustHead(t, db)
	must.Get(db.Clone(bg, "copy", TransferOptions{}))(t)
	to := openCopy(t, fs, "copy")
	for _, step := range []int{29, 15} {
		must.Get(db.Reset(bg, "main", mustResolve(t, db, fmt.Sprintf("%v~%d", kept, step))))(t)
		mustExpire(t, db, ExpireOptions{Keep: 1})
		gc := mustGC(t, db)
		if gc.DeletedPages == 0 || gc.Rewritten+gc.Removed == 0 {
			t.Fatalf("nothing was collected: %+v", *gc)
		}
		must.Get(to.Push(bg, db, TransferOptions{}))(t)
		if got, want := at(t, db, "main"), at(t, to, "main"); !maps.Equal(got, want) {
			t.Fatal("versions differ")
		}
		mustBeSound(t, db)
		if step == 29 {
			// All of the history again, for the second round.
			for i := range 29 {
				must.Do(t, to.CreateBranch(bg, fmt.Sprint("b", i), mustResolve(t, to, fmt.Sprintf("main~%d", i))))
				must.Get(to.Push(bg, db, TransferOptions{Refs: []RefSpec{{From: fmt.Sprint("b", i)}}}))(t)
				must.Do(t, db.DeleteBranch(bg, fmt.Sprint("b", i)))
			}
		}
	}
}

func TestBackupIsIncremental(t *testing.T) {
	fs := vfs.NewMem()
	db := openTest(t, testOptions(fs))
	grow(t, db, 20, 0)
	must.Do(t, db.CreateTag(bg, "v1", mustHead(t, db)))
	first := must.Get(db.Backup(bg, "backup", TransferOptions{}))(t)
	check := func() {
		t.Helper()
		b := must.Get(Open("backup", testOptions(fs)))(t)
		defer closeChecked(t, b)
		sameVersions(t, db, b)
		var logs [2]string
		for i, d := range []*DB{db, b} {
			for m, err := range d.Reflog(bg, "main") {
				must.Do(t, err)
				logs[i] += fmt.Sprintln(m)
			}
		}
		if logs[0] != logs[1] {
			t.Errorf("reflogs\n%s\n%s", logs[0], logs[1])
		}
	}
	check()
	again, err := db.Backup(bg, "backup", TransferOptions{})
	if err != nil || again.Commits+again.Pages+again.PayloadBytes+again.PresentBytes != 0 {
		t.Errorf("nothing new: %+v, %v", *again, err)
	}
	grow(t, db, 2, 20)
	must.Do(t, db.DeleteTag(bg, "v1"))
	next := must.Get(db.Backup(bg, "backup", TransferOptions{}))(t)
	if next.Commits != 2 || next.PayloadBytes >= first.PayloadBytes/5 || next.Pages > 12 {
		t.Errorf("two versions: %+v after %+v", *next, *first)
	}
	check()
	mustExpire(t, db, ExpireOptions{Keep: 3})
	mustGC(t, db)
	if r, err := db.Backup(bg, "backup", TransferOptions{}); err != nil || r.PayloadBytes != 0 {
		t.Fatalf("after expiry: %+v, %v", r, err)
	}
	check()

	must.Get(Restore(bg, "backup", "restored", testOptions(fs), TransferOptions{}))(t)
	restored := openCopy(t, fs, "restored")
	sameVersions(t, db, restored)
	grow(t, restored, 2, 40)
	if _, err := restored.Backup(bg, "backup", TransferOptions{}); !errors.Is(err, ErrNotBackup) {
		t.Errorf("backup of another database: %v", err)
	}
	if _, err := db.Backup(bg, "restored2/../db2", TransferOptions{}); err != nil {
		t.Errorf("a path that is not clean: %v", err)
	}
	if _, err := Restore(bg, "nowhere", "r2", testOptions(fs), TransferOptions{}); !errors.Is(err, ErrNotDatabase) {
		t.Errorf("restore of nothing: %v", err)
	}
}

// What was committed to a backup is not dropped by the next one, unless it is kept in the source
// or the backup is forced.
func TestBackupRefusesToDropCommits(t *testing.T) {
	fs := vfs.NewMem()
	db := openTest(t, testOptions(fs))
	grow(t, db, 3, 0)
	must.Get(db.Backup(bg, "backup", TransferOptions{}))(t)
	b := openPlain(t, fs, "backup")
	stray := update(t, b, "main", map[string]string{"stray": "1"})
	must.Do(t, b.CreateBranch(bg, "known", mustHead(t, db))) // drops nothing
	must.Do(t, b.CreateTag(bg, "mine", stray.ID))
	closeChecked(t, b)
	grow(t, db, 1, 10)
	for range 2 {
		_, err := db.Backup(bg, "backup", TransferOptions{})
		if !errors.Is(err, ErrDiverged) || !strings.Contains(err.Error(), `branch "main": txn: conflict`) || !strings.Contains(err.Error(), "zarrdb push backup ") {
			t.Fatalf("backup: %v", err)
		}
	}
	b = openPlain(t, fs, "backup")
	if got := mustHead(t, b); got != stray.ID {
		t.Fatalf("head %s of the backup, want %s", got, stray.ID)
	}
	must.Get(b.Push(bg, db, TransferOptions{Refs: []RefSpec{{From: "main", To: "kept"}}}))(t)
	if _, err := db.BackupTo(bg, b, TransferOptions{}); err != nil {
		t.Errorf("the source has the commits: %v", err)
	}
	sameVersions(t, db, b)

	update(t, b, "main", map[string]string{"stray": "2"})
	if _, err := db.BackupTo(bg, b, TransferOptions{}); !errors.Is(err, ErrDiverged) {
		t.Errorf("backup to an open one: %v", err)
	}
	must.Get(db.BackupTo(bg, b, TransferOptions{Force: true}))(t)
	sameVersions(t, db, b)

	// What the source alone has lost is no commit to the backup.
	must.Do(t, db.DeleteBranch(bg, "kept"))
	mustExpire(t, db, ExpireOptions{Keep: 1})
	mustGC(t, db)
	must.Get(db.BackupTo(bg, b, TransferOptions{}))(t)
	sameVersions(t, db, b)
	closeChecked(t, b)
}

// What was committed to a backup leaves its refs with a backup that is forced, and may be
// let go there.
func TestBackupLetsGoOfWhatItGot(t *testing.T) {
	fs := vfs.NewMem()
	db := openTest(t, testOptions(fs))
	grow(t, db, 3, 0)
	backup := func() *DB {
		t.Helper()
		must.Get(db.Backup(bg, "backup", TransferOptions{Force: true}))(t)
		b := openPlain(t, fs, "backup")
		sameVersions(t, db, b)
		return b
	}
	b := backup()
	stray := update(t, b, "main", map[string]string{"stray": big("stray", 100_000)})
	closeChecked(t, b)
	b = backup()
	if gone, err := b.Expired(bg, stray.ID); err != nil || gone {
		t.Fatalf("expired: %v, %v", gone, err)
	}
	mustExpire(t, b, ExpireOptions{Keep: 1})
	mustGC(t, b)
	closeChecked(t, b)
	b = backup() // the expired versions of the source come again, this one does not
	if gone, err := b.Expired(bg, stray.ID); err != nil || !gone {
		t.Errorf("expired: %v, %v", gone, err)
	}
	closeChecked(t, b)
}

// Damage in the source is found and is not carried on.
func TestTransferRefusesDamage(t *testing.T) {
	fs := vfs.NewMem()
	db := must.Get(Create("db", testOptions(fs)))(t)
	defer db.Close()
	update(t, db, "main", map[string]string{"k": big("k", 100_000)})
	flipByte(t, fs, packFiles(t, fs)[0], 50_000)
	if _, err := db.Clone(bg, "copy", TransferOptions{}); !errors.Is(err, kv.ErrCorrupt) {
		t.Fatalf("clone: %v", err)
	}
	if _, err := Open("copy", testOptions(fs)); !errors.Is(err, ErrNotDatabase) {
		t.Fatalf("the clone opens: %v", err)
	}
}

// Whatever is damaged, a push into another database ends before anything moves: a
// payload whose checksums are right, and a page that is only copied.
func TestTransferComparesHashes(t *testing.T) {
	for name, damage := range map[string]func(t *testing.T, db *DB){
		"payload": func(t *testing.T, db *DB) { mislabel(t, db, "a/c/1") },
		"page": func(t *testing.T, db *DB) {
			c := update(t, db, "main", map[string]string{"plain/k": "1"})
			dir, _, err := db.space.Dir(bg, c.Root, "plain/")
			must.Do(t, err)
			setRecord(t, db, index.SpacePage, dir.Name[:], []byte("damaged"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			fs := vfs.NewMem()
			db := must.Get(Create("db", testOptions(fs)))(t)
			defer db.Close()
			grow(t, db, 3, 0)
			must.Get(db.Clone(bg, "copy", TransferOptions{}))(t)
			to := openCopy(t, fs, "copy")
			before := refsOf(to)
			damage(t, db)
			if _, err := db.Push(bg, to, TransferOptions{}); !errors.Is(err, kv.ErrCorrupt) {
				t.Errorf("push: %v", err)
			}
			if got := refsOf(to); !maps.Equal(got, before) {
				t.Error("a ref moved")
			}
			if _, err := db.Clone(bg, "other", TransferOptions{}); !errors.Is(err, kv.ErrCorrupt) {
				t.Errorf("clone: %v", err)
			}
			if _, err := Open("other", testOptions(fs)); !errors.Is(err, ErrNotDatabase) {
				t.Errorf("the clone opens: %v", err)
			}
		})
	}
}
