package txn

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/zarrdb/zarrdb/kv/index"
)

func checkpointNames(t *testing.T, db *DB) []string {
	t.Helper()
	list, err := db.Checkpoints()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, c := range list {
		names = append(names, c.Name)
	}
	return names
}

// A young database is copied often, an old one every so many commits, over
// processes; two copies are kept.
func TestCheckpointSchedule(t *testing.T) {
	fs := vfs.NewMem()
	o := testOptions(fs)
	o.CheckpointCommits = 4
	db, err := Create("db", o)
	if err != nil {
		t.Fatal(err)
	}
	made := map[string]bool{}
	for i := range 16 {
		update(t, db, "main", map[string]string{"k": fmt.Sprint(i)})
		names := checkpointNames(t, db)
		if len(names) > keptCheckpoints {
			t.Fatalf("%d checkpoints are kept", len(names))
		}
		for _, n := range names {
			made[n] = true
		}
		if i%3 == 0 { // the count survives
			closeChecked(t, db)
			if db, err = Open("db", o); err != nil {
				t.Fatal(err)
			}
		}
	}
	closeChecked(t, db)
	var got []uint64
	for n := range made {
		moves, _ := parseCheckpoint(n)
		got = append(got, moves)
	}
	slices.Sort(got)
	if want := []uint64{2, 3, 4, 6, 8, 11, 14}; !slices.Equal(got, want) {
		t.Errorf("copied after %v moves of refs, want %v", got, want)
	}
}

// After a copy commits are not copied again at once, until Close.
func TestCheckpointRests(t *testing.T) {
	fs := vfs.NewMem()
	o := testOptions(fs)
	o.CheckpointCommits = 2
	db, err := Create("db", o)
	if err != nil {
		t.Fatal(err)
	}
	c := &db.checkpoints
	c.behind.Lock()
	c.rests, c.rest = true, time.Now().Add(time.Hour)
	c.behind.Unlock()
	for i := range 8 {
		update(t, db, "main", map[string]string{"k": fmt.Sprint(i)})
	}
	if names := checkpointNames(t, db); len(names) != 0 {
		t.Errorf("%v while it rests", names)
	}
	closeChecked(t, db)
	if db, err = Open("db", o); err != nil {
		t.Fatal(err)
	}
	defer closeChecked(t, db)
	names := checkpointNames(t, db)
	if len(names) != 1 || db.checkpoints.due() {
		t.Errorf("%v after Close", names)
	}
}

// Commits go on while a copy is made, and every one that was acknowledged
// before Close is in the last copy.
func TestCheckpointBehindCommits(t *testing.T) {
	fs := vfs.NewMem()
	o := testOptions(fs)
	o.CheckpointCommits = 1
	db, err := Create("db", o)
	if err != nil {
		t.Fatal(err)
	}
	const workers, each = 4, 10
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for i := range each {
				s, err := db.Begin(bg, "main")
				if err == nil {
					if err = s.Set(bg, fmt.Sprint(w), fmt.Append(nil, i)); err == nil {
						_, err = s.Commit(bg, CommitOptions{})
					}
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	closeChecked(t, db)
	list, err := listCheckpoints(fs, "db")
	if err != nil || len(list) == 0 {
		t.Fatalf("%v, %v", list, err)
	}
	// The first move made the database.
	if last := list[len(list)-1].Moves; last != 1+workers*each {
		t.Errorf("the last copy is of %d moves", last)
	}
}

// What gc calls leaves one copy, which is newer than everything before it.
func TestCheckpointForReclaim(t *testing.T) {
	fs := vfs.NewMem()
	db := openTest(t, testOptions(fs))
	for range 3 {
		if err := db.Checkpoint(bg); err != nil {
			t.Fatal(err)
		}
	}
	before := checkpointNames(t, db)
	if len(before) != 2 {
		t.Fatalf("%v", before)
	}
	// An attempt that a crash ended.
	if err := fs.MkdirAll("db/checkpoints/0000000000000001-0000000a", 0o755); err != nil {
		t.Fatal(err)
	}
	if now := checkpointNames(t, db); !slices.Equal(now, before) {
		t.Errorf("half a checkpoint is listed: %v, before %v", now, before)
	}
	if err := db.checkpointForReclaim(); err != nil {
		t.Fatal(err)
	}
	after := checkpointNames(t, db)
	if len(after) != 1 || after[0] <= before[1] {
		t.Errorf("%v, before %v", after, before)
	}
	all, err := fs.List("db/checkpoints")
	if err != nil || len(all) != 1 {
		t.Errorf("%v %v", all, err)
	}
	// A collection that gives payloads back calls it.
	update(t, db, "main", map[string]string{"k": payload("old"), "large": strings.Repeat("large", 50_000)})
	if err := db.Checkpoint(bg); err != nil {
		t.Fatal(err)
	}
	update(t, db, "main", map[string]string{"k": payload("new"), "large": ""})
	mustExpire(t, db, ExpireOptions{Keep: 1})
	if r := mustGC(t, db); r.FreedBytes == 0 {
		t.Fatalf("%+v", r)
	}
	if list := checkpointNames(t, db); len(list) != 1 {
		t.Errorf("%v", list)
	}
	checkpointsAreSound(t, testOptions(fs))
}

// A checkpoint is an index with all commits that were acknowledged.
func TestCheckpointHoldsEverything(t *testing.T) {
	for _, d := range []Durability{DurabilitySync, DurabilityNone} {
		checkpointHoldsEverything(t, d)
	}
}

func checkpointHoldsEverything(t *testing.T, d Durability) {
	fs := vfs.NewMem()
	db := openTest(t, delayedOptions(fs, d))
	c := update(t, db, "main", map[string]string{"a": "1"})
	if err := db.Checkpoint(bg); err != nil {
		t.Fatal(err)
	}
	idx, err := index.Open("db/checkpoints/"+checkpointNames(t, db)[0], &index.Options{FS: fs, ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer idx.Close()
	if id, err := idx.Get(index.SpaceRef, []byte("heads/main")); err != nil || CommitID(id) != c.ID {
		t.Errorf("main is %x, %v", id, err)
	}
}

// A copy that cannot be read is none: it is removed, and the others stay.
func TestCheckpointIsVerified(t *testing.T) {
	mem := vfs.NewMem()
	var on atomic.Bool
	fs := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if on.Load() && op.Kind == errorfs.OpOpen && strings.Contains(op.Path, checkpointDir+"/") && strings.Contains(op.Path, "MANIFEST") {
			return errorfs.ErrInjected
		}
		return nil
	}))
	db := openTest(t, testOptions(fs))
	for i := range 2 {
		update(t, db, "main", map[string]string{"k": payload(fmt.Sprint(i))})
		if err := db.Checkpoint(bg); err != nil {
			t.Fatal(err)
		}
	}
	before := checkpointNames(t, db)
	update(t, db, "main", map[string]string{"k": payload("new")})
	on.Store(true)
	if err := db.Checkpoint(bg); !errors.Is(err, errorfs.ErrInjected) {
		t.Errorf("checkpoint: %v", err)
	}
	on.Store(false)
	list, err := listCheckpoints(fs, "db")
	if err != nil || len(list) != 2 || len(before) != 2 || list[0].Name != before[0] || list[1].Name != before[1] {
		t.Errorf("%v, %v, before %v", list, err, before)
	}
}
