package txn

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/zarrdb/zarrdb/internal/crashtest"
	"github.com/zarrdb/zarrdb/internal/must"
)

// crashed is the disk as a power cut left it.
type crashed struct {
	fs           *vfs.MemFS
	op           string // before which the power was cut
	least, begun []int  // commits of each writer: on disk for sure, and begun
}

// imagesOf returns a disk on mem, and the images that power cuts before its changes leave; of
// every so many changes one, chosen at random.
func imagesOf(mem *vfs.MemFS, rng *rand.Rand, oneIn int) (*crashtest.Disk, *[]crashed) {
	images := new([]crashed)
	return crashtest.NewDisk(mem, func(d *crashtest.Disk, op errorfs.Op) error {
		if rng.IntN(oneIn) == 0 {
			*images = append(*images, crashed{fs: d.Cut(rng.IntN(101), rng.IntN(101), rng), op: fmt.Sprint(op.Kind, " ", op.Path)})
		}
		return nil
	}), images
}

// cutWriter commits random changes to a directory of its own. Each commit counts itself.
type cutWriter struct {
	rng          *rand.Rand
	dir          string
	states       []map[string]string // after each commit
	least, begun atomic.Int64
}

func newCutWriters(seed uint64, n int) (all []*cutWriter) {
	for i := range n {
		all = append(all, &cutWriter{rng: rand.New(rand.NewPCG(seed, uint64(i))), dir: fmt.Sprintf("w%d/", i), states: []map[string]string{{}}})
	}
	return all
}

// run makes some commits. What is delayed is on disk after a Sync.
func (w *cutWriter) run(db *DB, commits int) error {
	for range commits {
		n := len(w.states)
		state := maps.Clone(w.states[n-1])
		state[w.dir+"n"] = strconv.Itoa(n)
		s, err := db.Begin(bg, "main")
		if err != nil {
			return err
		}
		defer s.Close()
		err = s.Set(bg, w.dir+"n", []byte(state[w.dir+"n"]))
		for range w.rng.IntN(8) {
			key := fmt.Sprintf("%sd%d/k%d", w.dir, w.rng.IntN(4), w.rng.IntN(20))
			if w.rng.IntN(5) == 0 {
				delete(state, key)
				err = errors.Join(err, s.Delete(bg, key))
				continue
			}
			state[key] = strings.Repeat(strconv.Itoa(w.rng.IntN(1000)), 1+w.rng.IntN(3)*w.rng.IntN(2000))
			err = errors.Join(err, s.Set(bg, key, []byte(state[key])))
			if w.rng.IntN(10) == 0 {
				err = errors.Join(err, s.Savepoint(bg))
			}
		}
		if err != nil {
			return err
		}
		w.states = append(w.states, state)
		w.begun.Store(int64(n))
		if _, err := s.Commit(bg, CommitOptions{Message: "c"}); err != nil {
			return err
		}
		if db.delayed() {
			if w.rng.IntN(3) > 0 {
				continue
			}
			if err := db.Sync(bg); err != nil {
				return err
			}
		}
		w.least.Store(int64(n))
	}
	return nil
}

// cutKind is a kind of histories with power cuts.
type cutKind struct {
	name             string
	writers, commits int
	oneIn            int // change has a power cut
	durability       Durability
	checkpoints      int
}

var cutKinds = []cutKind{
	{"one writer", 1, 25, 20, DurabilitySync, -1},
	{"groups", 6, 12, 8, DurabilitySync, 8},
	{"delayed", 1, 30, 8, DurabilityAsync, -1},
	{"delayed groups", 4, 10, 8, DurabilityAsync, -1},
}

// After a power cut every commit that is on disk for sure is there in full, and of each writer at
// most the commits that it had begun, in order. Everything is sound, and the database can be
// written on.
func TestPowerCut(t *testing.T) {
	if testing.Short() {
		t.Skip("the work of one goroutine, many times")
	}
	for _, kind := range cutKinds {
		t.Run(kind.name, func(t *testing.T) { crashRounds(t, kind.run) })
	}
}

// TestSoakPowerCut is TestPowerCut with more histories.
func TestSoakPowerCut(t *testing.T) {
	soak(t, func(t *testing.T, seed uint64, over func() bool) int {
		return cutKinds[seed%uint64(len(cutKinds))].run(t, seed, over)
	})
}

func (k cutKind) run(t *testing.T, seed uint64, over func() bool) int {
	writers := newCutWriters(seed, k.writers)
	rng := rand.New(rand.NewPCG(seed, 1<<32))
	mem := vfs.NewCrashableMem()
	var images []crashed
	disk := crashtest.NewDisk(mem, func(d *crashtest.Disk, op errorfs.Op) error {
		if rng.IntN(k.oneIn) > 0 && len(images) > 0 || len(images) == 40 {
			return nil
		}
		c := crashed{op: fmt.Sprint(op.Kind, " ", op.Path)}
		for _, w := range writers {
			c.least = append(c.least, int(w.least.Load()))
		}
		c.fs = d.Cut(rng.IntN(101), rng.IntN(101), rng)
		for _, w := range writers {
			c.begun = append(c.begun, int(w.begun.Load()))
		}
		images = append(images, c)
		return nil
	})
	disk.On(false)
	o := delayedOptions(disk, k.durability)
	o.SessionBytes, o.CheckpointCommits, o.aheadPages = 32<<10, k.checkpoints, someAhead(seed)
	db := must.Get(Create("db", o))(t)
	disk.On(true)
	var wg sync.WaitGroup
	for _, w := range writers {
		wg.Go(func() {
			if err := w.run(db, k.commits); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	closeChecked(t, db)
	for i, c := range images {
		if i > 0 && over() {
			break
		}
		c.verify(t, rng, writers)
		if t.Failed() {
			t.Fatalf("seed %d: after a power cut at %s", seed, c.op)
		}
	}
	if len(images) == 0 {
		t.Error("no power cut happened")
	}
	return k.writers * k.commits
}

func (c *crashed) verify(t *testing.T, rng *rand.Rand, writers []*cutWriter) {
	db, err := Open("db", testOptions(c.fs))
	if err != nil {
		t.Errorf("open: %v", err)
		return
	}
	mustBeSound(t, db)
	got, want, sum := at(t, db, "main"), map[string]string{}, 0
	for i, w := range writers {
		n, _ := strconv.Atoi(got[w.dir+"n"])
		if sum += n; n < c.least[i] || n > c.begun[i] {
			t.Errorf("writer %d is at commit %d, not %d to %d", i, n, c.least[i], c.begun[i])
			return
		}
		maps.Copy(want, w.states[n])
	}
	if !maps.Equal(got, want) {
		t.Errorf("main holds %d keys, and %d were committed", len(got), len(want))
	}
	if h := must.Get(db.Lookup(bg, mustHead(t, db)))(t); int(h.Generation) != sum {
		t.Errorf("head %+v for %d commits", h, sum)
	}
	for _, i := range must.Get(db.Sessions(bg))(t) {
		s := must.Get(db.Resume(bg, i.ID))(t)
		contents(t, s)
		must.Do(t, s.Abort())
	}
	next := newCutWriters(rng.Uint64(), 1)[0]
	next.dir, next.states[0] = "next/", got
	must.Do(t, next.run(db, 3))
	closeChecked(t, db)
	db = must.Get(Open("db", testOptions(c.fs)))(t)
	if !maps.Equal(at(t, db, "main"), next.states[3]) {
		t.Error("the commits after the power cut are not there")
	}
	closeChecked(t, db)
}

// A creation that a power cut ends is either a database or nothing, and then
// can be done again.
func TestPowerCutWhileCreating(t *testing.T) {
	if testing.Short() {
		t.Skip("the work of one goroutine, many times")
	}
	seeds := rand.New(rand.NewPCG(must.Seed(t), 0))
	for range 4 {
		seed := seeds.Uint64()
		disk, images := imagesOf(vfs.NewCrashableMem(), rand.New(rand.NewPCG(seed, 1)), 1)
		closeChecked(t, must.Get(Create("db", testOptions(disk)))(t))
		for _, image := range *images {
			db, err := Open("db", testOptions(image.fs))
			if err != nil {
				db, err = Create("db", testOptions(image.fs))
			}
			if err != nil {
				t.Fatalf("seed %d: after a power cut at %s: %v", seed, image.op, err)
			}
			update(t, db, "main", map[string]string{"a": "1"})
			closeChecked(t, db)
		}
	}
}
