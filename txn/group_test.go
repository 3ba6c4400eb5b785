package txn

import (
	"errors"
	"fmt"
	"maps"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/internal/race"
	"github.com/zarrdb/zarrdb/kv/pack"
)

// A group is planned while the one before is written, on top of it. If nothing
// of that one could be written, it is planned anew without it.
func TestGroupsOverlap(t *testing.T) {
	for _, fails := range []bool{false, true} {
		t.Run(map[bool]string{false: "written", true: "failed"}[fails], func(t *testing.T) {
			stop := &syncStop{reached: make(chan struct{}), release: make(chan bool)}
			db := openTest(t, testOptions(errorfs.Wrap(vfs.NewMem(), stop)))
			base := update(t, db, "main", map[string]string{"k": "0"})
			first, second, other := begin(t, db), begin(t, db), begin(t, db)
			set(t, first, map[string]string{"a": strings.Repeat("a", 10_000)})
			set(t, second, map[string]string{"b": "1"})

			// The disk is asked twice: when the group is gathered, and, for a payload that
			// came meanwhile, before the group is written. That one is held up.
			stop.arm()
			var commits [2]*Commit
			var errs [2]error
			var wg sync.WaitGroup
			wg.Go(func() { commits[0], errs[0] = first.Commit(bg, CommitOptions{Message: "a"}) })
			<-stop.reached
			set(t, other, map[string]string{"c": strings.Repeat("c", 10_000)})
			stop.arm()
			stop.release <- false
			<-stop.reached
			wg.Go(func() { commits[1], errs[1] = second.Commit(bg, CommitOptions{Message: "b"}) })
			for !leaderWaits(&db.commit) {
				runtime.Gosched()
			}
			stop.release <- fails
			wg.Wait()

			if errs[1] != nil {
				t.Fatalf("the second group: %v", errs[1])
			}
			parent, want := base.ID, map[string]string{"k": "0", "b": "1"}
			if fails {
				if !errors.Is(errs[0], pack.ErrFailed) {
					t.Errorf("the first group: %v", errs[0])
				}
			} else {
				if errs[0] != nil {
					t.Fatalf("the first group: %v", errs[0])
				}
				parent = commits[0].ID
				want["a"] = strings.Repeat("a", 10_000)
			}
			if got := commits[1].Parents; len(got) != 1 || got[0] != parent {
				t.Errorf("the second commit has parents %v, want %v", got, parent)
			}
			if got := at(t, db, "main"); !maps.Equal(got, want) {
				t.Errorf("%d keys, want %d", len(got), len(want))
			}
		})
	}
}

// leaderWaits reports whether a leader has taken what waits, while the group
// before it, which has handed over, is written.
func leaderWaits(c *committer) bool {
	c.qmu.Lock()
	defer c.qmu.Unlock()
	return c.leading && len(c.queue) == 0
}

// syncStop holds up the first sync of a pack after arm, which fails if release
// says so.
type syncStop struct {
	reached chan struct{}
	release chan bool

	mu    sync.Mutex
	armed bool
}

func (s *syncStop) arm() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.armed = true
}

func (s *syncStop) String() string { return "sync of a pack" }

func (s *syncStop) MaybeError(op errorfs.Op) error {
	isSync := op.Kind == errorfs.OpFileSync || op.Kind == errorfs.OpFileSyncData || op.Kind == errorfs.OpFileSyncTo
	if !isSync || !strings.HasSuffix(op.Path, ".pack") {
		return nil
	}
	s.mu.Lock()
	hit := s.armed
	s.armed = false
	s.mu.Unlock()
	if !hit {
		return nil
	}
	s.reached <- struct{}{}
	if <-s.release {
		return errorfs.ErrInjected
	}
	return nil
}

// A group's pages name pages that its sessions have in memory. When those of the
// group outgrow memory and go to the index, a search of what is still to be written
// stops there: so what they name must have gone before.
func TestGroupOutgrowsMemory(t *testing.T) {
	if race.Enabled {
		t.Skip("the work of one goroutine, many times")
	}
	step := int64(1 << 10)
	if testing.Short() {
		step = 4 << 10
	}
	for bound := int64(32 << 10); bound < 40<<10; bound += step {
		groupOutgrows(t, bound)
	}
}

func groupOutgrows(t *testing.T, bound int64) {
	o := testOptions(vfs.NewMem())
	o.SessionBytes = bound
	db := openTest(t, o)
	key := func(i int) string { return fmt.Sprintf("z/%05d", i) }
	const sessions = 4
	own := func(k, i int) string { return fmt.Sprintf("own/%02d/%05d", k, i) }
	s := begin(t, db)
	for i := range 8_000 {
		set(t, s, map[string]string{key(i): fmt.Sprint("value ", i), own(i%sessions, i/sessions): fmt.Sprint("value ", i)})
	}
	must.Get(s.Commit(bg, CommitOptions{}))(t)
	want := at(t, db, "main")
	var group []*Session
	for k := range sessions {
		s := begin(t, db)
		for j := range 8 {
			// In a directory that all of them change, and in one of its own, which
			// the merge takes as it is.
			shared, alone := key(j*900+k), own(k, 100*j)
			want[shared], want[alone] = fmt.Sprint("new ", k), fmt.Sprint("new ", j)
			set(t, s, map[string]string{shared: want[shared], alone: want[alone]})
		}
		s.changing.WaitLock()
		err := s.flush(bg) // its pages are in memory
		s.changing.Unlock()
		must.Do(t, err)
		group = append(group, s)
	}
	db.commit.mu.Lock()
	var wg sync.WaitGroup
	for _, s := range group {
		wg.Go(func() {
			if _, err := s.Commit(bg, CommitOptions{}); err != nil {
				t.Error(err)
			}
		})
	}

	for waiting := 0; waiting < sessions; {
		runtime.Gosched()
		db.commit.qmu.Lock()
		waiting = len(db.commit.queue)
		db.commit.qmu.Unlock()
	}
	db.commit.mu.Unlock()
	wg.Wait()
	must.Do(t, db.Close())
	var err error
	if db, err = Open("db", o); err != nil {
		t.Fatal(err)
	}
	defer closeChecked(t, db)
	if got := at(t, db, "main"); !maps.Equal(got, want) {
		t.Errorf("%d keys, or others than the %d expected", len(got), len(want))
	}
}
