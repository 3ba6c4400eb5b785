package txn

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/zarrdb/zarrdb/internal/must"
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

	ops int

	mu     sync.Mutex // files are written in the background too
	cuts   *rand.Rand // says when and how
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
		if (h.cuts.IntN(oneIn) == 0 || len(h.images) == 0 && h.acked > 5) && len(h.images) < 60 {
			cfg := vfs.CrashCloneCfg{UnsyncedDataPercent: h.cuts.IntN(101), RNG: rand.New(rand.NewPCG(h.cuts.Uint64(), 0))}
			h.images = append(h.images, crashed{fs.CrashClone(cfg), fmt.Sprint(op.Kind, " ", op.Path), h.acked})
		}
		return nil
	})
}

func newCutHistory(t *testing.T, seed uint64) *cutHistory {
	return &cutHistory{
		t: t, rng: rand.New(rand.NewPCG(seed, 1)), cuts: rand.New(rand.NewPCG(seed, 2)),
		states: []map[string]string{{}},
	}
}

func (h *cutHistory) run(db *DB, commits int) {
	for range commits {
		state := maps.Clone(h.states[len(h.states)-1])
		s, err := db.Begin(bg, "main")
		if err != nil {
			h.t.Fatal(err)
		}
		for range 1 + h.rng.IntN(8) {
			h.ops++
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
		h.ops++
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

// TestSoakPowerCut is TestPowerCut with more histories.
func TestSoakPowerCut(t *testing.T) { soak(t, powerCut) }

func powerCut(t *testing.T, seed uint64, over func() bool) int {
	h := newCutHistory(t, seed)
	mem := vfs.NewCrashableMem()
	o := testOptions(faultFS(mem, h.hook(mem, 40)))
	o.SessionBytes = 32 << 10
	o.aheadPages = someAhead(seed)
	db := must.Get(Create("db", o))(t)
	h.mu.Lock()
	h.images = nil // a database that is not made yet is another test
	h.mu.Unlock()
	h.run(db, 25)
	closeChecked(t, db)
	for i, image := range h.images {
		if i > 0 && over() {
			break
		}
		h.verify(image)
		if t.Failed() {
			t.Fatalf("after a power cut at %s", image.op)
		}
	}
	if len(h.images) == 0 {
		t.Error("no power cut happened")
	}
	return h.ops
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
	h.ops += next.ops
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
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	for i := range uint64(20) {
		h := newCutHistory(t, seed+i)
		mem := vfs.NewCrashableMem()
		db := must.Get(Create("db", testOptions(faultFS(mem, h.hook(mem, 3)))))(t)
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
