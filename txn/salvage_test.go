package txn

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/zarrdb/zarrdb/internal/crashtest"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/internal/race"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/index"
	"github.com/zarrdb/zarrdb/txn/internal/care"
	"github.com/zarrdb/zarrdb/txn/internal/catalog"
)

// salvageHistory makes a database with an array, of which the first commits are
// in a checkpoint and the last ones are not, and returns it closed.
func salvageHistory(t *testing.T, fs vfs.FS) (atCheckpoint, last map[string]string) {
	t.Helper()
	db := must.Get(Create("db", testOptions(fs)))(t)
	// Before its chunks, so that these say whose they are.
	update(t, db, "main", map[string]string{"a/b/zarr.json": "array f=c/:/:2"})
	values := map[string]string{"doc": payload("doc")}
	for i := range 12 {
		values[fmt.Sprintf("a/b/c/%d/%d", i/6, i%6)] = payload(fmt.Sprint("chunk ", i, "."))
	}
	update(t, db, "main", values)
	c := update(t, db, "main", map[string]string{"a/b/c/0/1": payload("new")})
	must.Do(t, db.CreateTag(bg, "v1", c.ID))
	must.Do(t, db.Checkpoint(bg))
	atCheckpoint = at(t, db, "main")
	update(t, db, "main", map[string]string{"a/b/c/0/1": payload("newer"), "a/b/c/7/7": payload("far"), "note": payload("note")})
	update(t, db, "main", map[string]string{"a/b/c/0/1": payload("newest"), "small": "not in a pack"})
	last = at(t, db, "main")
	must.Do(t, db.Close())
	return atCheckpoint, last
}

func indexFiles(t *testing.T, fs vfs.FS, prefix string) (out []string) {
	t.Helper()
	names := must.Get(fs.List("db/index"))(t)
	for _, n := range names {
		if strings.HasPrefix(n, prefix) {
			out = append(out, "db/index/"+n)
		}
	}
	slices.Sort(out)
	if len(out) == 0 {
		t.Fatalf("no file %s in %v", prefix, names)
	}
	return out
}

func overwrite(t *testing.T, fs vfs.FS, path string, b []byte) {
	t.Helper()
	if err := fs.Remove(path); err != nil { // the name, not what a checkpoint links
		t.Fatal(err)
	}
	writeFile(t, fs, path, b)
}

func writeFile(t *testing.T, fs vfs.FS, path string, b []byte) {
	t.Helper()
	f := must.Get(fs.Create(path, vfs.WriteCategoryUnspecified))(t)
	must.Get(f.Write(b))(t)
	must.Do(t, f.Close())
}

// newestMove is when a branch or tag but lost+found was moved last.
func newestMove(t *testing.T, o *Options) (last time.Time) {
	t.Helper()
	db := must.Get(Open("db", o))(t)
	defer db.Close()
	newer := func(moves iter.Seq2[RefMove, error]) {
		for m, err := range moves {
			must.Do(t, err)
			if m.Time.After(last) {
				last = m.Time
			}
		}
	}
	for _, b := range branchesOf(db) {
		if b.Name != LostAndFound {
			newer(db.Reflog(bg, b.Name))
		}
	}
	for _, tag := range tagsOf(db) {
		newer(db.TagReflog(bg, tag.Name))
	}
	return last
}

// A damaged format file is found to be one, and made again.
func TestSalvageFormatFile(t *testing.T) {
	fs := vfs.NewMem()
	salvageHistory(t, fs)
	overwrite(t, fs, "db/"+FormatFile, []byte("zarrdc 1\n"))
	o := testOptions(fs)
	if _, err := Open("db", o); !errors.Is(err, ErrIndexLost) || !errors.Is(err, kv.ErrCorrupt) {
		t.Fatalf("open: %v", err)
	}
	r, err := Salvage(bg, "db", SalvageOptions{Options: *o})
	if err != nil || r.Source != indexDir || r.Found != 0 {
		t.Fatalf("%+v %v", r, err)
	}
	db := must.Get(Open("db", o))(t)
	db.Close()
}

// However the index is lost, opening names the command, and salvage brings back
// every version of the checkpoint and the payloads that are newer.
func TestSalvageLostIndex(t *testing.T) {
	ways := map[string]func(t *testing.T, fs vfs.FS){
		"directory deleted": func(t *testing.T, fs vfs.FS) { remove(t, fs, "db/index") },
		"lists deleted":     func(t *testing.T, fs vfs.FS) { remove(t, fs, indexFiles(t, fs, "MANIFEST")...) },
		"lists empty": func(t *testing.T, fs vfs.FS) {
			for _, path := range indexFiles(t, fs, "MANIFEST") {
				overwrite(t, fs, path, nil)
			}
		},
		"lists garbage": func(t *testing.T, fs vfs.FS) {
			for _, path := range indexFiles(t, fs, "MANIFEST") {
				overwrite(t, fs, path, []byte(strings.Repeat("garbage ", 100)))
			}
		},
	}
	for name, lose := range ways {
		t.Run(name, func(t *testing.T) {
			fs := vfs.NewMem()
			old, last := salvageHistory(t, fs)
			lose(t, fs)
			o := testOptions(fs)
			_, err := Open("db", o)
			if !errors.Is(err, ErrIndexLost) || !errors.Is(err, kv.ErrCorrupt) || !strings.Contains(err.Error(), "zarrdb fsck --salvage db") {
				t.Fatalf("open: %v", err)
			}
			r, err := Salvage(bg, "db", SalvageOptions{Options: *o})
			if err != nil {
				t.Fatalf("%v: %+v", err, r)
			}
			if !strings.HasPrefix(r.Source, "checkpoints/") || len(r.Problems) != 0 || r.Found != 4 || r.Arrays != 1 {
				t.Errorf("%+v", r)
			}
			if asOf := newestMove(t, o); !r.AsOf.Equal(asOf) {
				t.Errorf("as of %v, the newest move was at %v", r.AsOf, asOf)
			}
			checkSalvaged(t, fs, "db", o, old, last)
			if _, err := Salvage(bg, "db", SalvageOptions{Options: *o}); !errors.Is(err, ErrSound) {
				t.Errorf("again: %v", err)
			}
		})
	}
}

func remove(t *testing.T, fs vfs.FS, paths ...string) {
	t.Helper()
	for _, p := range paths {
		must.Do(t, fs.RemoveAll(p))
	}
}

// checkSalvaged compares a salvaged database with what was lost, and writes on.
func checkSalvaged(t *testing.T, fs vfs.FS, dir string, o *Options, old, last map[string]string) {
	t.Helper()
	db, err := Open(dir, o)
	must.Do(t, err)
	mustBeSound(t, db)
	for _, i := range db.packs.Infos() {
		if i.ID.Incarnation() == db.incarnation || !i.Sealed {
			t.Errorf("pack %v may be another one in the old database", i.ID)
		}
	}
	if got := at(t, db, "main"); !maps.Equal(got, old) {
		t.Errorf("main has %d keys, the checkpoint had %d", len(got), len(old))
	}
	if got := at(t, db, "v1"); !maps.Equal(got, old) {
		t.Errorf("v1 has %d keys", len(got))
	}
	array := ""
	var older []string
	found := at(t, db, LostAndFound)
	for key, value := range found {
		parts := strings.Split(key, "/")
		switch parts[0] {
		case "arrays":
			array = parts[0] + "/" + parts[1] + "/"
		case "older":
			older = append(older, value)
		}
	}
	want := map[string]string{
		array + "zarr.json": last["a/b/zarr.json"],
		array + "c/0/1":     last["a/b/c/0/1"],
		array + "c/7/7":     last["a/b/c/7/7"],
		"documents/note":    last["note"],
	}
	for key, value := range want {
		if found[key] != value {
			t.Errorf("%s is %.20q, want %.20q", key, found[key], value)
		}
	}
	if len(older) != 1 || older[0] != payload("newer") || len(found) != len(want)+1 {
		t.Errorf("%d older values, %d keys", len(older), len(found))
	}
	update(t, db, "main", map[string]string{"more": payload("more")})
	closeChecked(t, db)
	if db, err = Open(dir, o); err != nil {
		t.Fatal(err)
	}
	if got := at(t, db, "main")["more"]; got != payload("more") {
		t.Errorf("what was written after the salvage: %.20q", got)
	}
	closeChecked(t, db)
}

// Salvage into a new directory leaves the old one as it is.
func TestSalvageTo(t *testing.T) {
	fs := vfs.NewMem()
	old, last := salvageHistory(t, fs)
	remove(t, fs, indexFiles(t, fs, "MANIFEST")...)
	before := tree0(t, fs, "db")
	o := testOptions(fs)
	must.Get(Salvage(bg, "db", SalvageOptions{Options: *o, To: "new"}))(t)
	checkSalvaged(t, fs, "new", o, old, last)
	if after := tree0(t, fs, "db"); !slices.Equal(before, after) {
		t.Errorf("before %v, after %v", before, after)
	}
	if _, err := Salvage(bg, "db", SalvageOptions{Options: *o, To: "new"}); !errors.Is(err, ErrExists) {
		t.Errorf("onto a database: %v", err)
	}
	// A salvage that fails leaves nothing that the next one would refuse.
	stopped, stop := context.WithCancel(bg)
	stop()
	for _, failing := range []struct {
		ctx  context.Context
		dir  string
		want error
	}{{bg, "new", ErrSound}, {stopped, "db", context.Canceled}} {
		if _, err := Salvage(failing.ctx, failing.dir, SalvageOptions{Options: *o, To: "other"}); !errors.Is(err, failing.want) {
			t.Errorf("of %s: %v", failing.dir, err)
		}
		if _, err := fs.Stat("other"); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("of %s: %v", failing.dir, err)
		}
	}
}

// tree0 lists the files below a directory, but for locks.
func tree0(t *testing.T, fs vfs.FS, dir string) (out []string) {
	t.Helper()
	names := must.Get(fs.List(dir))(t)
	for _, n := range names {
		path := fs.PathJoin(dir, n)
		fi := must.Get(fs.Stat(path))(t)
		if fi.IsDir() {
			out = append(out, tree0(t, fs, path)...)
		} else if n != "LOCK" {
			out = append(out, fmt.Sprint(path, " ", fi.Size()))
		}
	}
	slices.Sort(out)
	return out
}

// Without any checkpoint everything that is in packs is found.
func TestSalvageWithoutCheckpoint(t *testing.T) {
	fs := vfs.NewMem()
	_, last := salvageHistory(t, fs)
	remove(t, fs, "db/index", "db/checkpoints")
	o := testOptions(fs)
	r := must.Get(Salvage(bg, "db", SalvageOptions{Options: *o}))(t)
	if r.Source != "" || r.Found != 12+1+1+4 {
		t.Errorf("%+v", r)
	}
	db := must.Get(Open("db", o))(t)
	defer closeChecked(t, db)
	found := at(t, db, LostAndFound)
	for key, value := range last {
		if name, ok := strings.CutPrefix(key, "a/b/c/"); ok {
			ok = slices.ContainsFunc(slices.Collect(maps.Keys(found)), func(k string) bool {
				return strings.HasPrefix(k, "arrays/") && strings.HasSuffix(k, "/c/"+name) && found[k] == value
			})
			if !ok {
				t.Errorf("chunk %s is not found", key)
			}
		}
	}
	if found["documents/doc"] != last["doc"] {
		t.Error("the document is not found")
	}
}

// A damaged newest checkpoint is passed over, and kept.
func TestSalvageOlderCheckpoint(t *testing.T) {
	fs := vfs.NewMem()
	o := testOptions(fs)
	db, err := Create("db", o)
	must.Do(t, err)
	for i := range 2 {
		update(t, db, "main", map[string]string{"a": payload(fmt.Sprint(i))})
		must.Do(t, db.Checkpoint(bg))
	}
	names := checkpointNames(t, db)
	must.Do(t, db.Close())
	files := must.Get(fs.List("db/checkpoints/" + names[1]))(t)
	for _, n := range files {
		if strings.HasPrefix(n, "MANIFEST") {
			remove(t, fs, "db/checkpoints/"+names[1]+"/"+n)
		}
	}
	remove(t, fs, "db/index")
	r := must.Get(Salvage(bg, "db", SalvageOptions{Options: *o}))(t)
	if r.Source != "checkpoints/"+names[0] || r.Found != 1 || len(r.Refused) != 2 {
		t.Errorf("%+v", r)
	}
	if kept, err := fs.List("db/quarantine"); err != nil || len(kept) != 1 || !strings.HasPrefix(kept[0], names[1]) {
		t.Errorf("quarantine holds %v, %v", kept, err)
	}
	if db, err = Open("db", o); err != nil {
		t.Fatal(err)
	}
	if got := at(t, db, "main")["a"]; got != payload("0") {
		t.Errorf("main has %.9q", got)
	}
	closeChecked(t, db)
}

// A checkpoint that opens is looked into: one with a damaged page is passed over for
// an older one, and is taken if there is no better one.
func TestSalvageLooksIntoCheckpoints(t *testing.T) {
	for _, older := range []bool{true, false} {
		fs := vfs.NewMem()
		o := testOptions(fs)
		db := must.Get(Create("db", o))(t)
		for i := range 2 {
			update(t, db, "main", map[string]string{"a/k": fmt.Sprint(i)})
			must.Do(t, db.Checkpoint(bg))
		}
		names := checkpointNames(t, db)
		c := must.Get(db.Lookup(bg, mustHead(t, db)))(t)
		must.Do(t, db.Close())
		newest := must.Get(index.Open("db/checkpoints/"+names[1], &index.Options{FS: fs}))(t)
		setRecord(t, &DB{idx: newest}, index.SpacePage, c.Root.Name[:], []byte("damaged"))
		must.Do(t, newest.Close())
		want, problems := names[1], 1
		if older {
			want, problems = names[0], 0
		} else {
			remove(t, fs, "db/checkpoints/"+names[0])
		}
		remove(t, fs, "db/index")
		r, err := Salvage(bg, "db", SalvageOptions{Options: *o})
		if err != nil || r.Source != "checkpoints/"+want || len(r.Problems) != problems {
			t.Errorf("older %v: %+v, %v", older, r, err)
		}
		if db, err = Open("db", o); err != nil {
			t.Fatal(err)
		}
		if got := checkReport(t, db, CheckOptions{}); got.Found != int64(problems) {
			t.Errorf("older %v: %v", older, got.Problems)
		}
		must.Do(t, db.Close())
	}
}

// Payloads that are damaged are counted and not put on the branch; those that a
// process wrote and did not sync are on disk when the branch is.
func TestSalvageOfWhatIsNewer(t *testing.T) {
	mem := vfs.NewCrashableMem()
	o := testOptions(mem)
	db := must.Get(Create("db", o))(t)
	update(t, db, "main", map[string]string{"old": payload("old")})
	must.Do(t, db.Checkpoint(bg))
	update(t, db, "main", map[string]string{"good": payload("good"), "bad": payload("bad")})
	damageOf(t, db, mem, "main", "bad")
	s := mustBegin(t, db)
	set(t, s, map[string]string{"unsynced": payload("unsynced")})
	v := must.Get(s.home.lookup(bg, "unsynced"))(t)
	if _, _, err := db.packs.Locate(catalog.AddressOf(v)); err != nil { // it is written
		t.Fatal(err)
	}
	must.Do(t, db.Close())
	remove(t, mem, "db/index")
	r, err := Salvage(bg, "db", SalvageOptions{Options: *o})
	if err != nil || r.Found != 2 || r.Damaged == 0 {
		t.Errorf("%+v, %v", r, err)
	}
	if db, err = Open("db", testOptions(mem.CrashClone(vfs.CrashCloneCfg{}))); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"documents/good": payload("good"), "documents/unsynced": payload("unsynced")}
	if got := at(t, db, LostAndFound); !maps.Equal(got, want) {
		t.Errorf("found %v", slices.Sorted(maps.Keys(got)))
	}
	closeChecked(t, db)
}

// A checkpoint knows packs that the collection has removed for which it was made.
// They are not missed, and nothing that was let go comes back.
func TestSalvageAfterGC(t *testing.T) {
	fs := vfs.NewMem()
	o := testOptions(fs)
	o.PackBytes = 64 << 10
	db := must.Get(Create("db", o))(t)
	values := map[string]string{}
	for round := range 2 {
		for i := range 20 {
			values[fmt.Sprint("k", i)] = strings.Repeat(fmt.Sprint(round, i), 5000)
		}
		update(t, db, "main", values)
	}
	packs := len(packFiles(t, fs))
	mustExpire(t, db, ExpireOptions{Keep: 1})
	if r := mustGC(t, db); r.Removed == 0 || len(packFiles(t, fs)) >= packs {
		t.Fatalf("%+v", r)
	}
	closeChecked(t, db)
	remove(t, fs, "db/index")
	r, err := Salvage(bg, "db", SalvageOptions{Options: *o})
	if err != nil || len(r.Problems) != 0 || r.Found != 0 {
		t.Errorf("%+v, %v", r, err)
	}
	if db, err = Open("db", o); err != nil {
		t.Fatal(err)
	}
	if got := at(t, db, "main"); !maps.Equal(got, values) {
		t.Errorf("%d keys, want %d", len(got), len(values))
	}
	closeChecked(t, db)
}

// A power cut at any write of a salvage leaves the index lost as before, or all of
// it done but for a new checkpoint; run again, it completes. What it takes away is
// in the quarantine.
func TestSalvagePowerCut(t *testing.T) {
	if race.Enabled {
		t.Skip("the work of one goroutine, many times")
	}
	mem := vfs.NewCrashableMem()
	old, last := salvageHistory(t, mem)
	remove(t, mem, indexFiles(t, mem, "MANIFEST")...)
	// A checkpoint that is newer, and no good.
	const newer = "ffffffffffffff00-00000000"
	must.Do(t, mem.MkdirAll("db/checkpoints/"+newer, 0o755))
	writeFile(t, mem, "db/checkpoints/"+newer+"/FORMAT", []byte(readFile(t, mem, "db/index/FORMAT")))
	must.Do(t, index.SyncDir(mem, "db/index"))
	mem = all(mem)
	var images []*vfs.MemFS
	n := 0
	o := testOptions(crashtest.NewDisk(mem, func(d *crashtest.Disk, op errorfs.Op) error {
		// All that is done where everybody looks, and some of what is done in an index.
		inIndex := slices.ContainsFunc([]string{"index.salvage", indexDir, checkpointDir}, func(dir string) bool {
			return strings.HasPrefix(op.Path, "db/"+dir+"/")
		})
		if n++; inIndex && n%12 != 0 {
			return nil
		}
		percent := 0 // what was not synced is lost, or nothing is
		if len(images)%3 == 0 {
			percent = 100
		}
		images = append(images, d.Cut(percent, percent, nil))
		return nil
	}))
	must.Get(Salvage(bg, "db", SalvageOptions{Options: *o}))(t)
	images = append(images, mem.CrashClone(vfs.CrashCloneCfg{}))
	step := 1
	if testing.Short() || race.Enabled {
		step = 1 + len(images)/25
	}
	done := 0
	for i := len(images) - 1; i >= 0; i -= step {
		o := testOptions(images[i])
		db, err := Open("db", o)
		switch {
		case err == nil:
			done++
			must.Do(t, db.Close())
		case i == len(images)-1:
			t.Fatalf("after a salvage: %v", err)
		case errors.Is(err, ErrIndexLost):
			if _, err := Salvage(bg, "db", SalvageOptions{Options: *o}); err != nil {
				t.Fatalf("image %d of %d: again: %v", i, len(images), err)
			}
		default:
			t.Fatalf("image %d of %d: %v", i, len(images), err)
		}
		kept, err := images[i].List("db/quarantine")
		for _, prefix := range []string{"index-", newer} {
			if !slices.ContainsFunc(kept, func(n string) bool { return strings.HasPrefix(n, prefix) }) {
				t.Errorf("the quarantine holds %v, %v", kept, err)
			}
		}
		if list, err := care.ListCheckpoints(images[i], "db"); err != nil || len(list) == 0 || list[len(list)-1].Name >= newer {
			t.Errorf("checkpoints %v, %v", list, err)
		}
		checkSalvaged(t, images[i], "db", o, old, last)
		if t.Failed() {
			t.Fatalf("image %d of %d", i, len(images))
		}
	}
	if done == 0 || done == len(images) {
		t.Errorf("%d of %d were done", done, len(images))
	}
}

// What must not be salvaged.
func TestSalvageRefuses(t *testing.T) {
	fs := vfs.NewMem()
	o := testOptions(fs)
	if _, err := Salvage(bg, "nothing", SalvageOptions{Options: *o}); !errors.Is(err, ErrNotDatabase) {
		t.Errorf("nothing: %v", err)
	}
	salvageHistory(t, fs)
	if _, err := Salvage(bg, "db", SalvageOptions{Options: *o}); !errors.Is(err, ErrSound) {
		t.Errorf("a sound one: %v", err)
	}
	db := must.Get(Open("db", o))(t)
	if _, err := Salvage(bg, "db", SalvageOptions{Options: *o}); err == nil || errors.Is(err, ErrSound) {
		t.Errorf("an open one: %v", err)
	}
	closeChecked(t, db)
}
