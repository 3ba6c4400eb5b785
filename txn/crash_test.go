package txn

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// crashed is the disk as a power cut left it, and what may be on it.
type crashed struct {
	fs    *vfs.MemFS
	op    string
	acked int // commits that had been acknowledged
}

// cutHistory commits random changes to one database and takes pictures of the disk
// as it would be after a power cut at random operations of the file system.
type cutHistory struct {
	t      *testing.T
	rng    *rand.Rand
	states []map[string]string // after each commit

	mu     sync.Mutex // files are written in the background too
	acked  int
	images []crashed
}

func (h *cutHistory) hook(fs *vfs.MemFS, oneIn int) errorfs.Injector {
	return errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind.ReadOrWrite() != errorfs.OpIsWrite {
			return nil
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		// The first one does not depend on luck.
		if (rand.IntN(oneIn) == 0 || len(h.images) == 0 && h.acked > 5) && len(h.images) < 60 {
			cfg := vfs.CrashCloneCfg{UnsyncedDataPercent: rand.IntN(101), RNG: rand.New(rand.NewPCG(rand.Uint64(), 0))}
			h.images = append(h.images, crashed{fs.CrashClone(cfg), fmt.Sprint(op.Kind, " ", op.Path), h.acked})
		}
		return nil
	})
}

func (h *cutHistory) run(db *DB, commits int) {
	for range commits {
		state := maps.Clone(h.states[len(h.states)-1])
		s, err := db.Begin(bg, "main")
		if err != nil {
			h.t.Fatal(err)
		}
		for range 1 + h.rng.IntN(8) {
			key := fmt.Sprintf("d%d/k%d", h.rng.IntN(4), h.rng.IntN(20))
			if h.rng.IntN(5) == 0 {
				delete(state, key)
				if err := s.Delete(bg, key); err != nil {
					h.t.Fatal(err)
				}
				continue
			}
			val := strings.Repeat(strconv.Itoa(h.rng.IntN(1000)), 1+h.rng.IntN(3)*h.rng.IntN(2000))
			state[key] = val
			if err := s.Set(bg, key, []byte(val)); err != nil {
				h.t.Fatal(err)
			}
			if h.rng.IntN(10) == 0 {
				if err := s.Savepoint(bg); err != nil {
					h.t.Fatal(err)
				}
			}
		}
		h.states = append(h.states, state)
		if _, err := s.Commit(bg, CommitOptions{Message: "c", AllowEmpty: true}); err != nil {
			h.t.Fatal(err)
		}
		h.mu.Lock()
		h.acked = len(h.states) - 1
		h.mu.Unlock()
	}
}

// After a power cut the head is the last acknowledged commit or the one that
// was being made, everything is sound, and the database can be written on: the
// second history begins on the disk that the first cut left.
func TestPowerCut(t *testing.T) { crashRounds(t, powerCut) }

// TestSoakPowerCut is TestPowerCut for ZARRDB_SOAK.
func TestSoakPowerCut(t *testing.T) { soak(t, powerCut) }

func powerCut(t *testing.T, seed uint64) {
	h := &cutHistory{t: t, rng: rand.New(rand.NewPCG(seed, 1)), states: []map[string]string{{}}}
	mem := vfs.NewCrashableMem()
	o := testOptions(faultFS(mem, h.hook(mem, 40)))
	o.SessionBytes = 32 << 10
	db, err := Create("db", o)
	if err != nil {
		t.Fatal(err)
	}
	h.mu.Lock()
	h.images = nil // a database that is not made yet is another test
	h.mu.Unlock()
	h.run(db, 25)
	closeChecked(t, db)
	for _, image := range h.images {
		h.verify(image)
		if t.Failed() {
			t.Fatalf("after a power cut at %s", image.op)
		}
	}
	if len(h.images) == 0 {
		t.Error("no power cut happened")
	}
}

// crashRounds runs fn a few times with seeds that it prints.
func crashRounds(t *testing.T, fn func(t *testing.T, seed uint64)) {
	rounds := 3
	if testing.Short() {
		rounds = 1
	}
	for range rounds {
		seed := rand.Uint64()
		t.Logf("seed %d", seed)
		fn(t, seed)
	}
}

// soak runs fn for the time that ZARRDB_SOAK says; without it, not at all.
func soak(t *testing.T, fn func(t *testing.T, seed uint64)) {
	d, err := time.ParseDuration(os.Getenv("ZARRDB_SOAK"))
	if err != nil {
		t.Skip("ZARRDB_SOAK says for how long")
	}
	rounds := 0
	for end := time.Now().Add(d); time.Now().Before(end); rounds++ {
		seed := rand.Uint64()
		t.Logf("seed %d", seed)
		fn(t, seed)
	}
	t.Logf("%d histories", rounds)
}

func (h *cutHistory) verify(image crashed) {
	t := h.t
	db, err := Open("db", testOptions(image.fs))
	if err != nil {
		t.Errorf("open: %v", err)
		return
	}
	mustBeSound(t, db)
	got := at(t, db, "main")
	ok := maps.Equal(got, h.states[image.acked])
	if !ok && image.acked+1 < len(h.states) {
		ok = maps.Equal(got, h.states[image.acked+1])
	}
	if !ok {
		t.Errorf("main holds %d keys and is neither commit %d nor the next", len(got), image.acked)
	}
	sessions, err := db.Sessions(bg)
	if err != nil {
		t.Error(err)
	}
	for _, i := range sessions {
		s, err := db.Resume(bg, i.ID)
		if err != nil {
			t.Errorf("resume: %v", err)
			continue
		}
		contents(t, s)
		if err := s.Abort(); err != nil {
			t.Error(err)
		}
	}
	next := &cutHistory{t: t, rng: h.rng, states: []map[string]string{got}}
	next.run(db, 3)
	want := at(t, db, "main")
	closeChecked(t, db)
	if db, err = Open("db", testOptions(image.fs)); err != nil {
		t.Errorf("open again: %v", err)
		return
	}
	if got := at(t, db, "main"); !maps.Equal(got, want) {
		t.Error("what was committed after the power cut is not there")
	}
	closeChecked(t, db)
}

// A creation that a power cut ends is either a database or nothing, and then
// can be done again.
func TestPowerCutWhileCreating(t *testing.T) {
	for range 20 {
		h := &cutHistory{t: t}
		mem := vfs.NewCrashableMem()
		db, err := Create("db", testOptions(faultFS(mem, h.hook(mem, 3))))
		if err != nil {
			t.Fatal(err)
		}
		closeChecked(t, db)
		for _, image := range h.images {
			db, err := Open("db", testOptions(image.fs))
			if err != nil {
				db, err = Create("db", testOptions(image.fs))
			}
			if err != nil {
				t.Fatalf("after a power cut at %s: %v", image.op, err)
			}
			update(t, db, "main", map[string]string{"a": "1"})
			closeChecked(t, db)
		}
	}
}
