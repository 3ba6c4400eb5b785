package txn

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/index"
	"github.com/zarrdb/zarrdb/txn/internal/catalog"
)

func repair(t *testing.T, db *DB) *RepairReport {
	t.Helper()
	r, err := db.Repair(bg, CheckOptions{Payloads: true})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Pages and commits come back from a checkpoint, exactly.
func TestRepairFromCheckpoint(t *testing.T) {
	db, fs := damagedHistory(t)
	for range 2 {
		if err := db.Checkpoint(bg); err != nil {
			t.Fatal(err)
		}
	}
	want := at(t, db, "main")
	page := chunkPage(t, db, "a/b/")
	head, err := db.Head("main")
	if err != nil {
		t.Fatal(err)
	}
	c, err := db.Lookup(bg, head)
	if err != nil {
		t.Fatal(err)
	}
	setRecord(t, db, index.SpacePage, page[:], []byte("damaged"))
	// The root page hides the other one.
	setRecord(t, db, index.SpacePage, c.Root.Name[:], nil)
	setRecord(t, db, index.SpaceCommit, head[:], nil)
	// The newest checkpoint is damaged too: names tell.
	names := checkpointNames(t, db)
	newest, err := index.Open("db/checkpoints/"+names[len(names)-1], &index.Options{FS: fs})
	if err != nil {
		t.Fatal(err)
	}
	setRecord(t, &DB{idx: newest}, index.SpacePage, c.Root.Name[:], []byte("damaged"))
	setRecord(t, &DB{idx: newest}, index.SpaceCommit, head[:], []byte("damaged"))
	if err := newest.Close(); err != nil {
		t.Fatal(err)
	}
	r := repair(t, db)
	if len(r.Done) != 3 || r.After.Found != 0 || r.Record == "" {
		t.Errorf("%q, left %v", r.Done, r.After.Problems)
	}
	if got := at(t, db, "main"); !maps.Equal(got, want) {
		t.Errorf("%d keys, want %d", len(got), len(want))
	}
	if again := repair(t, db); again.Record != "" || again.Before.Found != 0 {
		t.Errorf("again: %+v", again)
	}
}

// Damaged payloads stay errors, nothing is moved, and the record names them.
func TestRepairKeepsEvidence(t *testing.T) {
	db, fs := damagedHistory(t)
	before := db.Branches()
	damageOf(t, db, fs, "main", "a/b/c/0/1")
	r := repair(t, db)
	if len(r.Done) != 0 || r.After.Found != 1 {
		t.Errorf("%q %v", r.Done, r.After.Problems)
	}
	s, err := db.At(bg, "main")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Get(bg, "a/b/c/0/1", kv.All()); !errors.Is(err, kv.ErrCorrupt) {
		t.Errorf("read: %v", err)
	}
	if after := db.Branches(); len(after) != len(before) || after[0] != before[0] {
		t.Errorf("branches were %v, are %v", before, after)
	}
	record := readFile(t, fs, r.Record)
	for _, word := range []string{`"array": "a/b"`, `"heads/main"`, `"tags/v1"`, "checksum mismatch"} {
		if !strings.Contains(record, word) {
			t.Errorf("the record does not say %s:\n%s", word, record)
		}
	}
}

// What is taken out of the index is in the quarantine before that: a power cut at
// any write, or a write that fails, leaves it in one of the two.
func TestRepairKeepsWhatItTakesOut(t *testing.T) {
	db, fs := damagedHistory(t)
	setRecord(t, db, index.SpaceReflog, []byte("short"), []byte{0xab, 0xcd})
	setRecord(t, db, index.SpaceSession, make([]byte, 8), []byte{0xef, 0x01})
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	before := vfs.NewCrashableMem()
	if _, err := vfs.Clone(fs, before, "db", "db", vfs.CloneSync); err != nil {
		t.Fatal(err)
	}
	kept := func(mem *vfs.MemFS) {
		t.Helper()
		db := openPlain(t, mem, "db")
		defer db.Close()
		quarantine := ""
		names, _ := mem.List("db/quarantine") // it need not be there
		for _, name := range names {
			if !strings.HasSuffix(name, ".tmp") {
				quarantine += readFile(t, mem, "db/quarantine/"+name)
			}
		}
		for _, rec := range []struct {
			space      index.Space
			key, value string
		}{
			{index.SpaceReflog, "short", "abcd"},
			{index.SpaceSession, strings.Repeat("\x00", 8), "ef01"},
		} {
			_, err := db.idx.Get(rec.space, []byte(rec.key))
			if err != nil && !strings.Contains(quarantine, fmt.Sprintf(`"value": %q`, rec.value)) {
				t.Fatalf("the record %q is lost: %v", rec.key, err)
			}
		}
	}
	for k := int64(1); ; k++ {
		mem := all(before)
		var on atomic.Bool
		var n atomic.Int64
		var image *vfs.MemFS
		db := openPlain(t, crashFS(mem, func(errorfs.Op) error {
			if !on.Load() || n.Add(1) != k {
				return nil
			}
			image = mem.CrashClone(vfs.CrashCloneCfg{})
			return errorfs.ErrInjected
		}), "db")
		on.Store(true)
		r, err := db.Repair(bg, CheckOptions{})
		on.Store(false)
		_ = db.Close() // may report the failure
		if image == nil {
			if err != nil || r.After.Found != 0 {
				t.Fatalf("without trouble: %v, %v", r.After.Problems, err)
			}
			kept(mem)
			return
		}
		kept(image)
		kept(mem)
	}
}

func readFile(t *testing.T, fs vfs.FS, path string) string {
	t.Helper()
	fi, err := fs.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	f, err := fs.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b := make([]byte, fi.Size())
	if _, err := f.ReadAt(b, 0); err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// Refs, reflogs and sessions fit again, over a restart.
func TestRepairRecords(t *testing.T) {
	db, fs := damagedHistory(t)
	head, err := db.Head("main")
	if err != nil {
		t.Fatal(err)
	}
	tag, err := db.Resolve(bg, "v1")
	if err != nil {
		t.Fatal(err)
	}
	setRecord(t, db, index.SpaceRef, []byte("tags/v1"), nil)
	setRecord(t, db, index.SpaceRef, []byte("heads/main"), tag[:])
	setRecord(t, db, index.SpaceReflog, catalog.MoveKey{Ref: "heads/main", Seq: 1}.Bytes(), []byte{7, 7})
	setRecord(t, db, index.SpaceReflog, []byte("short"), []byte{7})
	setRecord(t, db, index.SpaceSession, make([]byte, 8), []byte{9})
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	o := testOptions(fs)
	o.Policy = toyPolicy{}
	if db, err = Open("db", o); err != nil {
		t.Fatal(err)
	}
	r := repair(t, db)
	if r.After.Found != 0 || len(r.Done) != 5 {
		t.Errorf("%q, left %v", r.Done, r.After.Problems)
	}
	if id, err := db.Resolve(bg, "v1"); err != nil || id != tag {
		t.Errorf("v1 is %v, %v", id, err)
	}
	// The branch is where its record said; the commit it came from is not lost.
	if id, err := db.Head("main"); err != nil || id != tag {
		t.Errorf("main is %v, %v", id, err)
	}
	if id, err := db.Resolve(bg, "main@{1}"); err != nil || id != head {
		t.Errorf("main@{1} is %v, %v; want %v", id, err, head)
	}
	if !strings.Contains(readFile(t, fs, r.Record), `"value": "0707"`) {
		t.Error("what was taken out is not in the record")
	}
	closeChecked(t, db)
	if db, err = Open("db", o); err != nil {
		t.Fatal(err)
	}
	closeChecked(t, db)
}

// A branch that cannot be opened stays; what is left of it is on another one.
func TestRepairBranch(t *testing.T) {
	db, _ := damagedHistory(t)
	head, err := db.Head("main")
	if err != nil {
		t.Fatal(err)
	}
	setRecord(t, db, index.SpaceCommit, head[:], nil)
	want := at(t, db, "v1")
	r := repair(t, db)
	if r.After.Found == 0 {
		t.Error("the commit is back from nowhere")
	}
	if id, err := db.Head("main"); err != nil || id != head {
		t.Errorf("main was moved to %v, %v", id, err)
	}
	if got := at(t, db, "repair/main"); !maps.Equal(got, want) {
		t.Errorf("repair/main has %d keys, want %d", len(got), len(want))
	}
}

// What a checkpoint has is restored, also where more problems than a report lists
// come before it.
func TestRepairHealsBehindManyProblems(t *testing.T) {
	fs := vfs.NewMem()
	db, err := Create("db", testOptions(fs))
	if err != nil {
		t.Fatal(err)
	}
	s := mustBegin(t, db)
	for i := range maxProblems + 100 {
		if err := s.Set(bg, fmt.Sprintf("a/%04d", i), []byte(payload(fmt.Sprintf("%04d", i)))); err != nil {
			t.Fatal(err)
		}
	}
	set(t, s, map[string]string{"z/doc": "small"})
	c, err := s.Commit(bg, CommitOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Checkpoint(bg); err != nil {
		t.Fatal(err)
	}
	dir, _, err := db.space.Dir(bg, c.Root, "z/")
	if err != nil {
		t.Fatal(err)
	}
	packs := db.packs.Infos()
	b := db.idx.NewBatch()
	b.Set(index.SpacePage, dir.Name[:], []byte("damage"))
	if err := b.Commit(true); err != nil {
		t.Fatal(err)
	}
	b.Close()
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	for _, i := range packs { // each payload is a problem that cannot be healed
		if err := fs.Remove(fs.PathJoin("db", "packs", i.ID.String()+".pack")); err != nil {
			t.Fatal(err)
		}
	}
	if db, err = Open("db", testOptions(fs)); err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	r, err := db.Repair(bg, CheckOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if r.Before.Found <= maxProblems || len(r.Before.Problems) != maxProblems || len(r.Done) != 1 {
		t.Errorf("found %d, listed %d, done %q", r.Before.Found, len(r.Before.Problems), r.Done)
	}
	snap, err := db.At(bg, "main")
	if err != nil {
		t.Fatal(err)
	}
	defer snap.Close()
	if got, err := snap.Get(bg, "z/doc", kv.All()); err != nil || string(got) != "small" {
		t.Errorf("document is %q, %v", got, err)
	}
}
