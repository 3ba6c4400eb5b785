package txn

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/zarrdb/zarrdb/internal/crashtest"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv/index"
	"github.com/zarrdb/zarrdb/txn/internal/care"
)

func checkpointNames(t *testing.T, db *DB) []string {
	t.Helper()
	list := must.Get(db.Checkpoints())(t)
	var names []string
	for _, c := range list {
		names = append(names, c.Name)
	}
	return names
}

// failCheckpoints fails an operation on the list of tables of a checkpoint, once it is on.
func failCheckpoints(kind errorfs.OpKind, err error) *crashtest.Faults {
	f := &crashtest.Faults{Err: err, Match: func(op errorfs.Op) bool {
		return op.Kind == kind && strings.Contains(op.Path, checkpointDir+"/") && strings.Contains(op.Path, "MANIFEST")
	}}
	f.Off.Store(true)
	return f
}

// A young database is copied often, an old one every so many commits, over
// processes; two copies are kept.
func TestCheckpointSchedule(t *testing.T) {
	fs := vfs.NewMem()
	o := testOptions(fs)
	o.CheckpointCommits = 4
	db, err := Create("db", o)
	must.Do(t, err)
	made := map[string]bool{}
	for i := range 16 {
		update(t, db, "main", map[string]string{"k": fmt.Sprint(i)})
		names := checkpointNames(t, db)
		if len(names) > care.KeptCheckpoints {
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
		moves, _ := care.ParseCheckpoint(n)
		got = append(got, moves)
	}
	slices.Sort(got)
	if want := []uint64{1, 2, 3, 4, 6, 8, 11, 14}; !slices.Equal(got, want) {
		t.Errorf("copied after %v moves of refs, want %v", got, want)
	}
}

// A database has a checkpoint as soon as it is one, whichever way it was made, and a backup one of what the last
// backup brought. Without the index, salvage gives all of it.
func TestFirstCheckpoint(t *testing.T) {
	mem := vfs.NewCrashableMem()
	o := testOptions(mem)
	o.CheckpointCommits = 0
	src := must.Get(Create("created", o))(t)
	update(t, src, "main", map[string]string{"k": "small"})
	must.Get(src.Clone(bg, "cloned", TransferOptions{}))(t)
	must.Get(src.Backup(bg, "saved", TransferOptions{}))(t)
	must.Get(Restore(bg, "saved", "restored", o, TransferOptions{}))(t)
	must.Get(src.Backup(bg, "saved twice", TransferOptions{}))(t)
	update(t, src, "main", map[string]string{"k": "again"})
	must.Get(src.Backup(bg, "saved twice", TransferOptions{}))(t)
	for dir, want := range map[string]string{"created": "again", "cloned": "small", "saved": "small", "restored": "small", "saved twice": "again"} {
		image := all(mem) // src is open
		if dir == "created" {
			closeChecked(t, must.Get(Create("fresh", o))(t))
			dir, want, image = "fresh", "", all(mem)
		}
		remove(t, image, dir+"/index")
		plain := testOptions(image)
		r, err := Salvage(bg, dir, SalvageOptions{Options: *plain})
		if err != nil || !strings.HasPrefix(r.Source, checkpointDir) {
			t.Errorf("%s: %+v, %v", dir, r, err)
			continue
		}
		db := must.Get(Open(dir, plain))(t)
		if got := at(t, db, "main")["k"]; got != want {
			t.Errorf("%s: %q, want %q", dir, got, want)
		}
		closeChecked(t, db)
	}
	closeChecked(t, src)
}

// After a copy commits are not copied again at once, until Close.
func TestCheckpointRests(t *testing.T) {
	fs := vfs.NewMem()
	o := testOptions(fs)
	o.CheckpointCommits = 2
	db, err := Create("db", o)
	must.Do(t, err)
	db.care.Checkpoints.RestUntil(time.Now().Add(time.Hour))
	for i := range 8 {
		update(t, db, "main", map[string]string{"k": fmt.Sprint(i)})
	}
	if names := checkpointNames(t, db); len(names) != 1 {
		t.Errorf("%v while it rests", names)
	}
	closeChecked(t, db)
	if db, err = Open("db", o); err != nil {
		t.Fatal(err)
	}
	defer closeChecked(t, db)
	names := checkpointNames(t, db)
	if len(names) != 2 || db.care.Checkpoints.Due() {
		t.Errorf("%v after Close", names)
	}
}

// Commits go on while a copy is made, and every one that was acknowledged
// before Close is in the last copy.
func TestCheckpointBehindCommits(t *testing.T) {
	fs := vfs.NewMem()
	o := testOptions(fs)
	o.CheckpointCommits = 1
	db := must.Get(Create("db", o))(t)
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
	list, err := care.ListCheckpoints(fs, "db")
	if err != nil || len(list) == 0 {
		t.Fatalf("%v, %v", list, err)
	}
	// The first move made the database.
	if last := list[len(list)-1].Moves; last != 1+workers*each {
		t.Errorf("the last copy is of %d moves", last)
	}
}

// What gc calls leaves two copies, which are newer than everything before them.
func TestCheckpointForReclaim(t *testing.T) {
	fs := vfs.NewMem()
	db := openTest(t, testOptions(fs))
	for range 3 {
		must.Do(t, db.Checkpoint(bg))
	}
	before := checkpointNames(t, db)
	if len(before) != 2 {
		t.Fatalf("%v", before)
	}
	// An attempt that a crash ended.
	must.Do(t, fs.MkdirAll("db/checkpoints/0000000000000001-0000000a", 0o755))
	if now := checkpointNames(t, db); !slices.Equal(now, before) {
		t.Errorf("half a checkpoint is listed: %v, before %v", now, before)
	}
	must.Do(t, db.care.Checkpoints.ForReclaim())
	after := checkpointNames(t, db)
	if len(after) != 2 || after[0] <= before[1] {
		t.Errorf("%v, before %v", after, before)
	}
	all, err := fs.List("db/checkpoints")
	if err != nil || len(all) != 2 {
		t.Errorf("%v %v", all, err)
	}
	// A collection that gives payloads back calls it.
	update(t, db, "main", map[string]string{"k": payload("old"), "large": strings.Repeat("large", 50_000)})
	must.Do(t, db.Checkpoint(bg))
	update(t, db, "main", map[string]string{"k": payload("new"), "large": ""})
	mustExpire(t, db, ExpireOptions{Keep: 1})
	if r := mustGC(t, db); r.FreedBytes == 0 {
		t.Fatalf("%+v", r)
	}
	if list := checkpointNames(t, db); len(list) != 2 {
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
	must.Do(t, db.Checkpoint(bg))
	idx := must.Get(index.Open("db/checkpoints/"+checkpointNames(t, db)[0], &index.Options{FS: fs, ReadOnly: true}))(t)
	defer idx.Close()
	if id, err := idx.Get(index.SpaceRef, []byte("heads/main")); err != nil || CommitID(id) != c.ID {
		t.Errorf("main is %x, %v", id, err)
	}
}

// A copy that cannot be read is none: it is removed, and the others stay.
func TestCheckpointIsVerified(t *testing.T) {
	mem := vfs.NewMem()
	f := failCheckpoints(errorfs.OpOpen, nil)
	fs := f.Wrap(mem)
	db := openTest(t, testOptions(fs))
	for i := range 2 {
		update(t, db, "main", map[string]string{"k": payload(fmt.Sprint(i))})
		must.Do(t, db.Checkpoint(bg))
	}
	before := checkpointNames(t, db)
	update(t, db, "main", map[string]string{"k": payload("new")})
	f.Off.Store(false)
	if err := db.Checkpoint(bg); !errors.Is(err, errorfs.ErrInjected) {
		t.Errorf("checkpoint: %v", err)
	}
	f.Off.Store(true)
	list, err := care.ListCheckpoints(fs, "db")
	if err != nil || len(list) != 2 || len(before) != 2 || list[0].Name != before[0] || list[1].Name != before[1] {
		t.Errorf("%v, %v, before %v", list, err, before)
	}
}

// noLinksFS has no hard links, as FAT and exFAT.
type noLinksFS struct{ vfs.FS }

func (noLinksFS) Link(oldname, newname string) error {
	return &os.LinkError{Op: "link", Old: oldname, New: newname, Err: syscall.EPERM}
}

// Without hard links checkpoints are copies, and a lost index comes back from them.
func TestCheckpointWithoutLinks(t *testing.T) {
	fs := noLinksFS{vfs.NewMem()}
	o := testOptions(fs)
	o.CheckpointCommits = 1
	db, err := Create("db", o)
	must.Do(t, err)
	for i := range 4 {
		update(t, db, "main", map[string]string{"k": fmt.Sprint(i)})
		checkpointNames(t, db) // waits for one that is made behind the commit
	}
	closeChecked(t, db)
	checkpointsAreSound(t, o)
	if list, err := care.ListCheckpoints(fs, "db"); err != nil || len(list) != care.KeptCheckpoints {
		t.Fatalf("%v, %v", list, err)
	}
	must.Do(t, fs.RemoveAll("db/"+indexDir))
	must.Get(Salvage(bg, "db", SalvageOptions{Options: *o}))(t)
	if db, err = Open("db", o); err != nil {
		t.Fatal(err)
	}
	defer closeChecked(t, db)
	if got := at(t, db, "main"); got["k"] != "3" {
		t.Errorf("%v", got)
	}
}

// That a checkpoint could not be made is told at once, and in later processes, until one
// is made.
func TestCareErrors(t *testing.T) {
	f := failCheckpoints(errorfs.OpCreate, nil)
	o := testOptions(f.Wrap(vfs.NewMem()))
	var mu sync.Mutex
	var told []string
	o.CareFailed = func(e CareError) {
		mu.Lock()
		defer mu.Unlock()
		told = append(told, e.Work)
	}
	o.CheckpointCommits = 1
	db, err := Create("db", o)
	must.Do(t, err)
	f.Off.Store(false)
	update(t, db, "main", map[string]string{"k": "1"})
	closeChecked(t, db)
	if len(told) == 0 || told[0] != "checkpoint" {
		t.Errorf("told: %q", told)
	}
	fails := func(db *DB, want int) {
		t.Helper()
		if errs := db.CareErrors(); len(errs) != want || want > 0 && !strings.Contains(errs[0].Error(), errorfs.ErrInjected.Error()) {
			t.Errorf("%v, want %d", errs, want)
		}
	}
	fails(db, 1)
	ro := *o
	ro.ReadOnly = true
	told = nil
	if db, err = Open("db", &ro); err != nil {
		t.Fatal(err)
	}
	fails(db, 1)
	closeChecked(t, db)
	f.Off.Store(true)
	if db, err = Open("db", o); err != nil {
		t.Fatal(err)
	}
	update(t, db, "main", map[string]string{"k": "2"})
	if names := checkpointNames(t, db); len(names) != 2 { // waits for it
		t.Errorf("%q", names)
	}
	fails(db, 0)
	closeChecked(t, db)
	if len(told) == 0 {
		t.Error("what is remembered is not told")
	}
	if db, err = Open("db", &ro); err != nil {
		t.Fatal(err)
	}
	fails(db, 0)
	closeChecked(t, db)
}

// A collection gives back the space of old tables, of checkpoints and of logs, while the
// database is open, and DiskUse counts every file.
func TestGCIndexSpace(t *testing.T) {
	if testing.Short() {
		t.Skip("the work of one goroutine, many times")
	}
	o := testOptions(nil)
	o.CheckpointCommits = 200
	dir := t.TempDir() + "/db"
	db := must.Get(Create(dir, o))(t)
	defer closeChecked(t, db)
	const keys = 400
	rng := rand.New(rand.NewPCG(1, 2))
	for range 3 {
		for range 500 {
			s := mustBegin(t, db)
			for range 4 {
				b := make([]byte, 256)
				for i := range b {
					b[i] = byte(rng.Uint32())
				}
				must.Do(t, s.Set(bg, fmt.Sprint("c/", rng.IntN(keys)), b))
			}
			must.Get(s.Commit(bg, CommitOptions{}))(t)
		}
		before := allocated(t, dir)
		mustExpire(t, db, ExpireOptions{Keep: 1})
		r := mustGC(t, db)
		const reserve = 4 << 20
		most := 2*r.PageBytes + 3<<20 + reserve
		n := allocated(t, dir)
		for range 2000 { // old tables are removed behind the compaction
			if n <= most {
				break
			}
			time.Sleep(5 * time.Millisecond)
			n = allocated(t, dir)
		}
		t.Logf("%d bytes on disk, %d before, pages %d", n, before, r.PageBytes)
		if n > most {
			t.Errorf("%d bytes on disk, at most %d", n, most)
		}
		use := db.DiskUse()
		if total := use.Total(); total != n {
			t.Errorf("%+v: %d bytes, %d on disk", use, total, n)
		}
		if list := checkpointNames(t, db); len(list) != care.KeptCheckpoints {
			t.Errorf("checkpoints %q", list)
		}
	}
	for _, name := range checkpointNames(t, db) {
		if err := care.VerifyCheckpoint(index.DefaultFS, dir+"/"+checkpointDir+"/"+name, false); err != nil {
			t.Error(err)
		}
	}
}

// A collection that only wants to renew checkpoints keeps the old ones if it cannot.
func TestFailedRenewalKeepsCheckpoints(t *testing.T) {
	f := failCheckpoints(errorfs.OpCreate, nil)
	db := openTest(t, testOptions(f.Wrap(vfs.NewMem())))
	for i := range 2 {
		s := mustBegin(t, db)
		for k := range 5000 {
			must.Do(t, s.Set(bg, fmt.Sprint("c/", k), bytes.Repeat([]byte{byte(i + k)}, 500)))
		}
		must.Get(s.Commit(bg, CommitOptions{}))(t)
		must.Do(t, db.Checkpoint(bg))
	}
	before := checkpointNames(t, db)
	mustExpire(t, db, ExpireOptions{Keep: 1})
	f.Off.Store(false)
	mustGC(t, db)
	if errs := db.CareErrors(); len(errs) != 1 {
		t.Errorf("%v: no renewal was tried", errs)
	}
	f.Off.Store(true)
	if list, err := care.ListCheckpoints(db.opts.FS, "db"); err != nil || len(list) != 2 || list[1].Name != before[1] {
		t.Errorf("%v, %v, before %q", list, err, before)
	}
	mustGC(t, db)
	if after := checkpointNames(t, db); len(after) != 2 || after[0] <= before[1] {
		t.Errorf("%q after a renewal, before %q", after, before)
	}
}

// A collection that cannot make checkpoints keeps the old ones and what they reach. Only on a
// full disk the old ones go.
func TestFailedCheckpointBeforeReclaim(t *testing.T) {
	for _, fault := range []error{errorfs.ErrInjected, syscall.ENOSPC} {
		f := failCheckpoints(errorfs.OpCreate, fault)
		db := openTest(t, testOptions(f.Wrap(vfs.NewMem())))
		update(t, db, "main", map[string]string{"large": strings.Repeat("large", 50_000)})
		for _, info := range db.packs.Infos() {
			must.Do(t, core{db}.SealPack(info.ID))
		}
		must.Do(t, db.Checkpoint(bg))
		update(t, db, "main", map[string]string{"large": ""})
		mustExpire(t, db, ExpireOptions{Keep: 1})
		f.Off.Store(false)
		r, err := db.GC(bg, GCOptions{})
		f.Off.Store(true)
		list := must.Get(care.ListCheckpoints(db.opts.FS, "db"))(t)
		if fault == syscall.ENOSPC {
			if err != nil || r.FreedBytes == 0 || len(list) > 0 {
				t.Errorf("full disk: %+v, %v, checkpoints %v", r, err, list)
			}
			continue
		}
		if !errors.Is(err, fault) || r.FreedBytes > 0 || len(list) != 1 {
			t.Errorf("%+v, %v, checkpoints %v", r, err, list)
		}
		if r := mustGC(t, db); r.FreedBytes == 0 {
			t.Errorf("after the fault: %+v", r)
		}
	}
}

// While a database is being removed, neither a copy nor the error of one is made behind the removal.
func TestNoCheckpointBehindRemoval(t *testing.T) {
	mem := vfs.NewMem()
	o := testOptions(mem)
	o.CheckpointCommits = 1 << 20
	db := must.Get(Create("db", o))(t)
	update(t, db, "main", map[string]string{"k": "1"})
	must.Do(t, errors.Join(mem.Remove("db/"+FormatFile), mem.RemoveAll("db/"+checkpointDir)))
	db.care.Checkpoints.Counted(0, 1<<30)
	db.care.Checkpoints.Stop()
	if err := db.Checkpoint(bg); err == nil {
		t.Error("a checkpoint of a database that was removed")
	}
	if names, err := mem.List("db/" + checkpointDir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v, %v", names, err)
	}
	must.Do(t, db.Close())
}
