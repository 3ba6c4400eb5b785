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
	"github.com/zarrdb/zarrdb/txn/internal/care"
)

func repair(t *testing.T, db *DB) *RepairReport {
	t.Helper()
	r := must.Get(db.Repair(bg, CheckOptions{Payloads: true}))(t)
	return r
}

// Pages and commits come back from a checkpoint, exactly.
func TestRepairFromCheckpoint(t *testing.T) {
	db, fs := damagedHistory(t)
	for range 2 {
		must.Do(t, db.Checkpoint(bg))
	}
	want := at(t, db, "main")
	page := chunkPage(t, db, "a/b/")
	head := must.Get(db.Head(bg, "main"))(t)
	c := must.Get(db.Lookup(bg, head))(t)
	setRecord(t, db, index.SpacePage, page[:], []byte("damaged"))
	// The root page hides the other one.
	setRecord(t, db, index.SpacePage, c.Root.Name[:], nil)
	setRecord(t, db, index.SpaceCommit, head[:], nil)
	// The newest checkpoint is damaged too: names tell.
	names := checkpointNames(t, db)
	newest := must.Get(index.Open("db/checkpoints/"+names[len(names)-1], &index.Options{FS: fs}))(t)
	setRecord(t, &DB{idx: newest}, index.SpacePage, c.Root.Name[:], []byte("damaged"))
	setRecord(t, &DB{idx: newest}, index.SpaceCommit, head[:], []byte("damaged"))
	must.Do(t, newest.Close())
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
	before := branchesOf(db)
	damageOf(t, db, fs, "main", "a/b/c/0/1")
	r := repair(t, db)
	if len(r.Done) != 0 || r.After.Found != 1 {
		t.Errorf("%q %v", r.Done, r.After.Problems)
	}
	s := must.Get(db.At(bg, "main"))(t)
	defer s.Close()
	if _, err := s.Get(bg, "a/b/c/0/1", kv.All()); !errors.Is(err, kv.ErrCorrupt) {
		t.Errorf("read: %v", err)
	}
	if after := branchesOf(db); len(after) != len(before) || after[0] != before[0] {
		t.Errorf("branches were %v, are %v", before, after)
	}
	record := readFile(t, fs, r.Record)
	for _, word := range []string{`array "a/b"`, "(main, v1", "checksum mismatch"} {
		if !strings.Contains(record, word) {
			t.Errorf("the record does not say %s:\n%s", word, record)
		}
	}
}

func readFile(t *testing.T, fs vfs.FS, path string) string {
	t.Helper()
	fi := must.Get(fs.Stat(path))(t)
	f := must.Get(fs.Open(path))(t)
	defer f.Close()
	b := make([]byte, fi.Size())
	must.Get(f.ReadAt(b, 0))(t)
	return string(b)
}

// A branch that cannot be opened stays; what is left of it is on another one.
func TestRepairBranch(t *testing.T) {
	db, _ := damagedHistory(t)
	head := must.Get(db.Head(bg, "main"))(t)
	setRecord(t, db, index.SpaceCommit, head[:], nil)
	want := at(t, db, "v1")
	r := repair(t, db)
	if r.After.Found == 0 {
		t.Error("the commit is back from nowhere")
	}
	if id, err := db.Head(bg, "main"); err != nil || id != head {
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
	db := must.Get(Create("db", testOptions(fs)))(t)
	s := mustBegin(t, db)
	for i := range care.MaxProblems + 100 {
		must.Do(t, s.Set(bg, fmt.Sprintf("a/%04d", i), []byte(payload(fmt.Sprintf("%04d", i)))))
	}
	set(t, s, map[string]string{"z/doc": "small"})
	c := must.Get(s.Commit(bg, CommitOptions{}))(t)
	must.Do(t, db.Checkpoint(bg))
	dir, _, err := db.space.Dir(bg, c.Root, "z/")
	must.Do(t, err)
	packs := db.packs.Infos()
	b := db.idx.NewBatch()
	b.Set(index.SpacePage, dir.Name[:], []byte("damage"))
	must.Do(t, b.Commit(true))
	b.Close()
	must.Do(t, db.Close())
	for _, i := range packs { // each payload is a problem that cannot be healed
		must.Do(t, fs.Remove(fs.PathJoin("db", "packs", i.ID.String()+".pack")))
	}
	if db, err = Open("db", testOptions(fs)); err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	r := must.Get(db.Repair(bg, CheckOptions{}))(t)
	if r.Before.Found <= care.MaxProblems || len(r.Before.Problems) != care.MaxProblems || len(r.Done) != 1 {
		t.Errorf("found %d, listed %d, done %q", r.Before.Found, len(r.Before.Problems), r.Done)
	}
	snap := must.Get(db.At(bg, "main"))(t)
	defer snap.Close()
	if got, err := snap.Get(bg, "z/doc", kv.All()); err != nil || string(got) != "small" {
		t.Errorf("document is %q, %v", got, err)
	}
}
