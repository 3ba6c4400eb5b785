package txn

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/zarrdb/zarrdb/internal/crashtest"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/internal/race"
	"github.com/zarrdb/zarrdb/kv"
)

// careStep is one step of a history of everything that changes a database. It
// changes one branch, at one moment, or none.
type careStep struct {
	name string
	do   func(db *DB) error
}

func careOptions(fs vfs.FS) *Options {
	o := testOptions(fs)
	o.Now = newClock().now
	o.CheckpointCommits = 4
	o.PackBytes = 48 << 10
	o.aheadPages = 4 << 10
	return o
}

// putAll commits values of very different sizes.
func putAll(branch, mark string, keys ...string) func(*DB) error {
	return func(db *DB) error {
		s, err := db.Begin(bg, branch)
		if err != nil {
			return err
		}
		defer s.Abort()
		return putAndCommit(s, mark, keys)
	}
}

func putAndCommit(s *Session, mark string, keys []string) error {
	for i, key := range keys {
		if err := s.Set(bg, key, []byte(strings.Repeat(mark, 1+1500*(i%4)*(i%3)))); err != nil {
			return err
		}
	}
	_, err := s.Commit(bg, CommitOptions{Message: mark})
	return err
}

func careHistory() []careStep {
	keys := []string{"a/1", "a/2", "a/3", "b/1", "b/2", "b/3", "c/1", "c/2", "c/3"}
	onHead := func(branch, of string, do func(db *DB, head CommitID) error) func(*DB) error {
		return func(db *DB) error {
			head, err := db.Head(bg, of)
			if err != nil {
				return err
			}
			return do(db, head)
		}
	}
	gc := func(keep int) func(*DB) error {
		return func(db *DB) error {
			if _, err := db.Expire(bg, ExpireOptions{Keep: keep}); err != nil {
				return err
			}
			_, err := db.GC(bg, GCOptions{})
			return err
		}
	}
	return []careStep{
		{"put", putAll("main", "first", keys...)},
		{"branch", onHead("side", "main", func(db *DB, h CommitID) error { return db.CreateBranch(bg, "side", h) })},
		{"put aside", putAll("side", "side", "b/2", "d/1", "d/2")},
		{"put again", putAll("main", "second", "a/1", "a/2", "c/3")},
		{"merge", onHead("main", "side", func(db *DB, h CommitID) error {
			_, err := db.Merge(bg, "main", h, CommitOptions{})
			return err
		})},
		{"session", func(db *DB) error {
			s, err := db.Begin(bg, "side")
			if err != nil {
				return err
			}
			defer s.Abort()
			if err := s.Set(bg, "e/1", []byte(strings.Repeat("saved", 4000))); err != nil {
				return err
			}
			if err := s.Detach(bg); err != nil {
				return err
			}
			again, err := db.Resume(bg, s.ID())
			if err != nil {
				return err
			}
			defer again.Abort()
			return putAndCommit(again, "resumed", []string{"e/2", "e/3"})
		}},
		{"gc", gc(4)},
		{"rebase", onHead("side", "main", func(db *DB, h CommitID) error {
			_, err := db.Rebase(bg, "side", h, RebaseOptions{})
			return err
		})},
		{"overwrite", putAll("main", "third", keys...)},
		{"revert", onHead("main", "main", func(db *DB, h CommitID) error {
			_, err := db.Revert(bg, "main", h, 0, CommitOptions{})
			return err
		})},
		{"pick", onHead("side", "main", func(db *DB, h CommitID) error {
			c, err := db.Lookup(bg, h)
			if err == nil {
				_, err = db.CherryPick(bg, "side", c.Parents[0], 0, CommitOptions{Choices: always(Theirs)})
			}
			return err
		})},
		{"expire and gc", gc(1)},
		{"fsck", func(db *DB) error {
			_, err := db.Check(bg, CheckOptions{Payloads: true})
			return err
		}},
		{"put at last", putAll("main", "fourth", "a/1", "b/3", "e/2")},
		{"last gc", gc(1)},
	}
}

// branches reads all branches.
func branches(db *DB) (map[string]map[string]string, error) {
	out := map[string]map[string]string{}
	for _, b := range branchesOf(db) {
		s, err := db.At(bg, b.Name)
		if err != nil {
			return nil, err
		}
		defer s.Close()
		keys := map[string]string{}
		for k, err := range s.List(bg, kv.ListOptions{}) {
			if err != nil {
				return nil, err
			}
			v, err := s.Get(bg, k, kv.All())
			if err != nil {
				return nil, fmt.Errorf("%s: %w", k, err)
			}
			keys[k] = string(v)
		}
		out[b.Name] = keys
	}
	return out, nil
}

func sameBranches(a, b map[string]map[string]string) bool {
	return maps.EqualFunc(a, b, func(x, y map[string]string) bool { return maps.Equal(x, y) })
}

// careStates are the branches before each step and after the last.
func careStates(t *testing.T, mem vfs.FS) (states []map[string]map[string]string) {
	t.Helper()
	db := must.Get(Create("db", careOptions(mem)))(t)
	note := func() {
		b := must.Get(branches(db))(t)
		states = append(states, b)
	}
	note()
	for _, s := range careHistory() {
		if err := s.do(db); err != nil {
			t.Fatalf("%s: %v", s.name, err)
		}
		note()
	}
	closeChecked(t, db)
	return states
}

// runCare opens the database that Create has made and runs the history until a
// step fails. It returns how many were done.
func runCare(fs vfs.FS) (done int) {
	db, err := Open("db", careOptions(fs))
	if err != nil {
		return 0
	}
	defer db.Close() // may report the fault
	for _, s := range careHistory() {
		if s.do(db) != nil {
			break
		}
		done++
	}
	return done
}

func newCareDB(t *testing.T) *vfs.MemFS {
	t.Helper()
	mem := vfs.NewMem()
	db := must.Get(Create("db", careOptions(mem)))(t)
	must.Do(t, db.Close())
	return mem
}

// faultChoice says which of n operations fail, one in each run of a history.
type faultChoice func(n int64) iter.Seq[int64]

// someFaults are others each time.
func someFaults(t *testing.T) faultChoice {
	step := int64(9)
	if testing.Short() || race.Enabled {
		step = 47
	}
	first := rand.Int64N(step)
	t.Logf("every %d from %d", step, first)
	return func(n int64) iter.Seq[int64] {
		return func(yield func(int64) bool) {
			for k := first; k < n && yield(k); k += step {
			}
		}
	}
}

// soakFaults are all, in random order, as far as the time goes.
func soakFaults(t *testing.T) faultChoice {
	s := startSoak(t)
	return func(n int64) iter.Seq[int64] {
		rng := rand.New(rand.NewPCG(s.seed(), 0))
		return func(yield func(int64) bool) {
			for _, k := range rng.Perm(int(n)) {
				if s.over() || !yield(int64(k)) {
					return
				}
				s.ops++
			}
		}
	}
}

// The k-th operation of the file system fails, reads included, for every k over
// a history of sessions, merges, reverts, picks, rebases, expiry and collections.
// Every branch then holds what the last step left there that was acknowledged,
// or the step that failed; nothing is damaged; and the history goes on.
func TestEveryOperationOfCareFails(t *testing.T) {
	if testing.Short() {
		t.Skip("the work of one goroutine, many times")
	}
	t.Parallel()
	everyOperationFails(t, someFaults(t))
}

// TestSoakOperationsFail is TestEveryOperationOfCareFails with all operations.
func TestSoakOperationsFail(t *testing.T) { everyOperationFails(t, soakFaults(t)) }

func everyOperationFails(t *testing.T, choose faultChoice) {
	states := careStates(t, vfs.NewMem())
	run := func(k int64) (mem vfs.FS, n int64, done int) {
		mem = newCareDB(t)
		f := crashtest.Faults{At: k, Once: true}
		done = runCare(f.Wrap(mem))
		return mem, f.Seen.Load(), done
	}
	_, n, _ := run(-1)
	for k := range choose(n) {
		mem, _, done := run(k)
		db, err := Open("db", careOptions(mem))
		if err != nil {
			t.Fatalf("operation %d of %d: open: %v", k, n, err)
		}
		mustBeSound(t, db)
		before, after := states[done], states[min(done+1, len(states)-1)]
		for range 2 {
			got, err := branches(db)
			if err != nil || !sameBranches(got, before) && !sameBranches(got, after) {
				t.Fatalf("operation %d of %d: %d steps were done, then %v; the branches hold something else", k, n, done, err)
			}
			mustExpire(t, db, ExpireOptions{Keep: 1})
			mustGC(t, db)
		}
		update(t, db, "main", map[string]string{"after": strings.Repeat("x", 2000)})
		closeChecked(t, db)
		if t.Failed() {
			t.Fatalf("operation %d of %d", k, n)
		}
	}
}

// A bit of the k-th read flips, for every k over the same history: whatever is
// read later is right, or an error. A bit that flips while Pebble reads its log
// cuts the log off there; the index is then refused, and salvage opens it.
func TestEveryReadOfCareFlips(t *testing.T) {
	t.Parallel()
	everyReadFlips(t, someFaults(t))
}

// TestSoakReadsFlip is TestEveryReadOfCareFlips with all reads.
func TestSoakReadsFlip(t *testing.T) { everyReadFlips(t, soakFaults(t)) }

func everyReadFlips(t *testing.T, choose faultChoice) {
	states := careStates(t, vfs.NewMem())
	count := crashtest.Flips{At: -1}
	runCare(count.Wrap(newCareDB(t)))
	n := count.Seen.Load()
	tried, noticed := 0, 0
	for k := range choose(n) {
		tried++
		mem := newCareDB(t)
		done := runCare((&crashtest.Flips{At: k}).Wrap(mem))
		if done < len(states)-1 {
			noticed++
		}
		db, err := Open("db", careOptions(mem))
		if errors.Is(err, kv.ErrCorrupt) {
			noticed++
			if _, err := Salvage(bg, "db", SalvageOptions{Options: *careOptions(mem)}); err != nil {
				t.Fatalf("read %d of %d: salvage: %v", k, n, err)
			}
			if db, err = Open("db", careOptions(mem)); err == nil {
				mustBeSound(t, db)
				closeChecked(t, db)
				continue
			}
		}
		if err != nil {
			t.Fatalf("read %d of %d: open: %v", k, n, err)
		}
		got, err := branches(db)
		if err != nil && !errors.Is(err, kv.ErrCorrupt) {
			t.Fatalf("read %d of %d: %v", k, n, err)
		}
		if err == nil && !sameBranches(got, states[done]) && !sameBranches(got, states[min(done+1, len(states)-1)]) {
			t.Fatalf("read %d of %d: %d steps were done; the branches hold something else", k, n, done)
		}
		must.Do(t, db.Close())
	}
	t.Logf("%d of %d reads, %d noticed", tried, n, noticed)
	if noticed == 0 && tried > 50 {
		t.Error("no flipped bit was noticed")
	}
}
