package txn

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/zarrdb/zarrdb/internal/must"
)

// groupCut is a disk after a power cut under committers, each of which counts up
// under a key of its own: between which counts each one was.
type groupCut struct {
	fs           *vfs.MemFS
	op           string
	acked, begun []int
}

// After a power cut under many committers, whose groups are planned and written
// at the same time, every commit that was acknowledged is there, in full, and
// of each committer at most the one that it was making.
func TestPowerCutGroups(t *testing.T) { crashRounds(t, groupsCut) }

// TestSoakPowerCutGroups is TestPowerCutGroups for ZARRDB_SOAK.
func TestSoakPowerCutGroups(t *testing.T) { soak(t, groupsCut) }

func groupsCut(t *testing.T, seed uint64, _ func() bool) int {
	const workers, each = 6, 12
	rng := rand.New(rand.NewPCG(seed, 3))
	acked, begun := make([]atomic.Int64, workers), make([]atomic.Int64, workers)
	counts := func(from []atomic.Int64) (list []int) {
		for i := range from {
			list = append(list, int(from[i].Load()))
		}
		return list
	}
	mem := vfs.NewCrashableMem()
	var cuts []groupCut
	var on atomic.Bool
	seen := 0
	o := testOptions(crashFS(mem, func(op errorfs.Op) error {
		if seen++; !on.Load() || len(cuts) == 40 || seen%3 != 0 {
			return nil
		}
		cut := groupCut{op: fmt.Sprint(op.Kind, " ", op.Path), acked: counts(acked)}
		cut.fs = mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: rng.IntN(101), RNG: rng})
		cut.begun = counts(begun)
		cuts = append(cuts, cut)
		return nil
	}))
	o.CheckpointCommits = 8
	o.aheadPages = someAhead(seed)
	db := must.Get(Create("db", o))(t)
	on.Store(true)
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for n := 1; n <= each; n++ {
				begun[w].Store(int64(n))
				if err := countUp(db, w, n); err != nil {
					t.Error(err)
					return
				}
				acked[w].Store(int64(n))
			}
		})
	}
	wg.Wait()
	on.Store(false)
	closeChecked(t, db)
	if len(cuts) == 0 {
		t.Error("no power cut happened")
	}
	for i := range cuts {
		cuts[i].verify(t)
		if t.Failed() {
			t.Fatalf("after a power cut at %s", cuts[i].op)
		}
	}
	return workers * each
}

// countUp commits the count of a committer, every other time in a pack.
func countUp(db *DB, w, n int) error {
	s, err := db.Begin(bg, "main")
	if err != nil {
		return err
	}
	defer s.Close()
	value := fmt.Sprintf("%d %s", n, strings.Repeat("x", n%2*2000))
	if err := s.Set(bg, fmt.Sprintf("w%d/k", w), []byte(value)); err != nil {
		return err
	}
	_, err = s.Commit(bg, CommitOptions{})
	return err
}

func (c *groupCut) verify(t *testing.T) {
	db, err := Open("db", testOptions(c.fs))
	if err != nil {
		t.Errorf("open: %v", err)
		return
	}
	defer closeChecked(t, db)
	got, sum := at(t, db, "main"), 0
	for w := range c.acked {
		n := 0
		if text, ok := got[fmt.Sprintf("w%d/k", w)]; ok {
			count, _, _ := strings.Cut(text, " ")
			if n, err = strconv.Atoi(count); err != nil {
				t.Error(err)
			}
		}
		if n < c.acked[w] || n > c.begun[w] {
			t.Errorf("committer %d is at %d, not %d to %d", w, n, c.acked[w], c.begun[w])
		}
		sum += n
	}
	head := must.Get(db.Head(bg, "main"))(t)
	if h, err := db.Lookup(bg, head); err != nil || int(h.Generation) != sum {
		t.Errorf("head %+v for %d commits, %v", h, sum, err)
	}
}
