package txn

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/index"
	"github.com/zarrdb/zarrdb/kv/tree"
)

func mustGC(t *testing.T, db *DB) *GCReport {
	t.Helper()
	r, err := db.GC(bg, GCOptions{})
	if err != nil {
		t.Fatalf("gc: %v", err)
	}
	return r
}

func mustExpire(t *testing.T, db *DB, o ExpireOptions) *ExpireReport {
	t.Helper()
	r, err := db.Expire(bg, o)
	if err != nil {
		t.Fatalf("expire: %v", err)
	}
	return r
}

// storedPages are the names of all pages in the index.
func storedPages(t *testing.T, db *DB) map[tree.Name]struct{} {
	t.Helper()
	names := map[tree.Name]struct{}{}
	for rec, err := range db.idx.Scan(index.SpacePage, nil, nil, false) {
		if err != nil {
			t.Fatal(err)
		}
		names[tree.Name(rec.Key)] = struct{}{}
	}
	return names
}

// reachablePages are those below all commits that have not expired, found by
// another walk than the collector's.
func reachablePages(t *testing.T, db *DB, roots ...tree.Root) map[tree.Name]struct{} {
	t.Helper()
	names := map[tree.Name]struct{}{}
	for rec, err := range db.idx.Scan(index.SpaceCommit, nil, nil, false) {
		if err != nil {
			t.Fatal(err)
		}
		id := CommitID(rec.Key)
		c, err := decodeCommit(id, rec.Value)
		if err != nil {
			t.Fatal(err)
		}
		if gone, _, err := db.expired(id); err != nil || gone {
			continue
		}
		roots = append(roots, c.Root)
	}
	uncached := tree.New(indexPages{db.idx, nil}, &tree.Options{CacheBytes: -1})
	for _, root := range roots {
		err := uncached.Walk(bg, root, func(name tree.Name, _ uint8, _ int) (bool, error) {
			_, seen := names[name]
			names[name] = struct{}{}
			return !seen, nil
		}, nil)
		if err != nil {
			t.Fatalf("a page that must be there: %v", err)
		}
	}
	return names
}

// mustBeTidy expects that nothing is stored but what is reachable.
func mustBeTidy(t *testing.T, db *DB) {
	t.Helper()
	stored, reachable := storedPages(t, db), reachablePages(t, db)
	for name := range stored {
		if _, ok := reachable[name]; !ok {
			t.Errorf("page %v is reachable from nothing", name)
		}
	}
	for name := range reachable {
		if _, ok := stored[name]; !ok {
			t.Errorf("page %v is missing", name)
		}
	}
}

func TestExpire(t *testing.T) {
	// Commits c1 to c5 on main, one a day, then feature from c2.
	build := func(t *testing.T) (*DB, map[string]CommitID, func(int) time.Time) {
		day := func(n int) time.Time { return time.Date(2026, 1, n, 12, 0, 0, 0, time.UTC) }
		now := day(0)
		o := testOptions(vfs.NewMem())
		o.Now = func() time.Time { return now }
		db := openTest(t, o)
		ids := map[string]CommitID{"c0": mustHead(t, db)}
		for i := 1; i <= 5; i++ {
			now = day(i)
			ids[fmt.Sprint("c", i)] = update(t, db, "main", map[string]string{"k": fmt.Sprint(i)}).ID
		}
		now = day(6)
		if err := db.CreateTag(bg, "v1", ids["c1"]); err != nil {
			t.Fatal(err)
		}
		return db, ids, day
	}
	for _, c := range []struct {
		name string
		o    func(day func(int) time.Time) ExpireOptions
		kept string
	}{
		// c3 was the head at noon of the fourth day, until c4 came.
		{"by age", func(day func(int) time.Time) ExpireOptions { return ExpireOptions{Before: day(4)} }, "c1 c3 c4 c5"},
		{"nothing is older", func(day func(int) time.Time) ExpireOptions { return ExpireOptions{Before: day(0)} }, "c0 c1 c2 c3 c4 c5"},
		{"by count", func(func(int) time.Time) ExpireOptions { return ExpireOptions{Keep: 2} }, "c1 c4 c5"},
		{"one", func(func(int) time.Time) ExpireOptions { return ExpireOptions{Keep: 1} }, "c1 c5"},
		{"either keeps", func(day func(int) time.Time) ExpireOptions { return ExpireOptions{Before: day(5), Keep: 3} }, "c1 c3 c4 c5"},
		{"a branch", func(func(int) time.Time) ExpireOptions { return ExpireOptions{Keep: 1, Branches: []string{"main"}} }, "c0 c1 c5"},
	} {
		t.Run(c.name, func(t *testing.T) {
			db, ids, day := build(t)
			o := c.o(day)
			o.DryRun = true
			dry := mustExpire(t, db, o)
			o.DryRun = false
			if got := mustExpire(t, db, o); *got != *dry {
				t.Errorf("expired %+v, the dry run said %+v", got, dry)
			}
			var kept []string
			for _, name := range slices.Sorted(maps.Keys(ids)) {
				_, err := db.Resolve(bg, ids[name].String())
				switch {
				case err == nil:
					kept = append(kept, name)
				case !errors.Is(err, ErrExpired) || !errors.Is(err, ErrNoRef):
					t.Errorf("%s: %v", name, err)
				}
			}
			if got := strings.Join(kept, " "); got != c.kept {
				t.Errorf("kept %s, want %s", got, c.kept)
			}
			if dry.Kept != int64(len(kept)) || dry.Kept+dry.Expired != int64(len(ids)) {
				t.Errorf("report %+v", dry)
			}
			if again := mustExpire(t, db, o); again.Expired != 0 || again.Reflog != 0 || again.Earlier != dry.Expired {
				t.Errorf("again: %+v", again)
			}
			mustGC(t, db)
			mustBeTidy(t, db)
			n := 0
			for _, err := range db.Log(bg, mustHead(t, db)) {
				if err != nil {
					t.Fatal(err)
				}
				n++
			}
			if n != len(ids) {
				t.Errorf("the log has %d commits, want %d", n, len(ids))
			}
		})
	}
}

// What has expired can be named by nothing new.
func TestExpiredIsRefused(t *testing.T) {
	db := openTest(t, nil)
	old := update(t, db, "main", map[string]string{"k": "1"})
	if err := db.CreateBranch(bg, "side", old.ID); err != nil {
		t.Fatal(err)
	}
	update(t, db, "side", map[string]string{"s": "1"})
	update(t, db, "main", map[string]string{"k": "2"})
	update(t, db, "main", map[string]string{"k": "3"})
	mustExpire(t, db, ExpireOptions{Keep: 1})
	mustGC(t, db)
	for what, err := range map[string]error{
		"snapshot":    second(db.Snapshot(bg, old.ID)),
		"branch":      db.CreateBranch(bg, "b", old.ID),
		"tag":         db.CreateTag(bg, "t", old.ID),
		"pin":         db.CreatePin(bg, "p", old.ID, ""),
		"reset":       second(db.Reset(bg, "main", old.ID)),
		"cherry-pick": second(db.CherryPick(bg, "main", old.ID, 0, CommitOptions{})),
		"merge":       second(db.Merge(bg, "main", mustResolve(t, db, "side"), CommitOptions{})),
		"REV~1":       second(db.Resolve(bg, "main~1")),
	} {
		if !errors.Is(err, ErrExpired) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := db.Expire(bg, ExpireOptions{}); err == nil {
		t.Error("expire without a limit")
	}
}

func second[T any](_ T, err error) error { return err }

func mustResolve(t *testing.T, db *DB, rev string) CommitID {
	t.Helper()
	id, err := db.Resolve(bg, rev)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// Damage of a version that has not expired stops the collector before it
// removes anything, and is a problem for Check; that of an expired one is none.
func TestGCMeetsDamage(t *testing.T) {
	mem := vfs.NewMem()
	db, err := Create("db", testOptions(mem))
	if err != nil {
		t.Fatal(err)
	}
	first := update(t, db, "main", map[string]string{"a/k": "1"})
	update(t, db, "main", map[string]string{"a/k": "2"})
	batch := db.idx.NewBatch()
	batch.Delete(index.SpacePage, first.Root.Name[:])
	if err := batch.Commit(true); err != nil {
		t.Fatal(err)
	}
	batch.Close()
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if db, err = Open("db", testOptions(mem)); err != nil {
		t.Fatal(err)
	}
	before := len(storedPages(t, db))
	if _, err := db.GC(bg, GCOptions{}); !errors.Is(err, tree.ErrMissing) {
		t.Errorf("gc of a damaged database: %v", err)
	}
	if after := len(storedPages(t, db)); after != before {
		t.Errorf("%d pages of %d are left", after, before)
	}
	r, err := db.Check(bg, CheckOptions{})
	if err != nil || len(r.Problems) == 0 {
		t.Errorf("check: %v, %v", r.Problems, err)
	}
	mustExpire(t, db, ExpireOptions{Keep: 1})
	mustGC(t, db)
	mustBeTidy(t, db)
	closeChecked(t, db)
}

// gcWorld is a database beside a plain model of it.
type gcWorld struct {
	t        *testing.T
	rng      *rand.Rand
	db       *DB
	o        *Options
	ids      []CommitID
	states   map[CommitID]map[string]string
	sessions map[*Session]map[string]string
	views    map[*Snapshot]map[string]string
	ops      int
}

func newGCWorld(t *testing.T, seed uint64, fs vfs.FS) *gcWorld {
	w := &gcWorld{
		t: t, rng: rand.New(rand.NewPCG(seed, 21)), states: map[CommitID]map[string]string{},
		sessions: map[*Session]map[string]string{}, views: map[*Snapshot]map[string]string{},
	}
	w.o = testOptions(fs)
	w.o.SessionBytes = 4 << 10 // spill much
	w.o.PackBytes = 300 << 10
	now := newClock()
	var mu sync.Mutex
	w.o.Now = func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		return now.now()
	}
	db, err := Create("db", w.o)
	if err != nil {
		t.Fatal(err)
	}
	w.db = db
	w.note(mustHead(t, db), map[string]string{})
	return w
}

func (w *gcWorld) note(id CommitID, state map[string]string) {
	if w.states[id] == nil {
		w.ids = append(w.ids, id)
		w.states[id] = maps.Clone(state)
	}
}

func (w *gcWorld) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *gcWorld) branch() string {
	refs := w.db.Branches()
	return refs[w.rng.IntN(len(refs))].Name
}

func (w *gcWorld) key() string {
	return fmt.Sprintf("d%d/e%d/k%d", w.rng.IntN(3), w.rng.IntN(3), w.rng.IntN(12))
}

func (w *gcWorld) value() string {
	n := 1 + w.rng.IntN(200)
	switch w.rng.IntN(6) {
	case 0:
		n = 600 + w.rng.IntN(5000)
	case 1:
		n = 20_000 + w.rng.IntN(80_000)
	}
	return strings.Repeat(string(rune('a'+w.rng.IntN(26))), n)
}

// write makes random changes in a session and in its model.
func (w *gcWorld) write(s *Session, state map[string]string) {
	for range 1 + w.rng.IntN(6) {
		switch w.rng.IntN(10) {
		case 0:
			key := w.key()
			w.must(s.Delete(bg, key))
			delete(state, key)
		case 1:
			prefix := fmt.Sprintf("d%d/", w.rng.IntN(3))
			w.must(s.DeletePrefix(bg, prefix))
			maps.DeleteFunc(state, func(k, _ string) bool { return strings.HasPrefix(k, prefix) })
		case 2:
			from, to := fmt.Sprintf("d%d", w.rng.IntN(3)), fmt.Sprintf("m%d", w.rng.IntN(50))
			if err := s.Move(bg, from, to); errors.Is(err, kv.ErrNotFound) || errors.Is(err, ErrExists) {
				continue
			} else {
				w.must(err)
			}
			for k, v := range maps.Clone(state) {
				if rest, ok := strings.CutPrefix(k, from+"/"); ok {
					delete(state, k)
					state[to+"/"+rest] = v
				}
			}
		default:
			key, val := w.key(), w.value()
			w.must(s.Set(bg, key, []byte(val)))
			state[key] = val
		}
	}
}

func (w *gcWorld) begin() (*Session, map[string]string) {
	s, err := w.db.Begin(bg, w.branch())
	w.must(err)
	return s, maps.Clone(w.states[s.Base()])
}

func (w *gcWorld) commit(s *Session, state map[string]string) {
	c, err := s.Commit(bg, CommitOptions{Message: "c"})
	if errors.Is(err, ErrConflict) || errors.Is(err, ErrNoRef) { // the branch may be gone
		w.must(s.Abort())
		return
	}
	w.must(err)
	if c.Parents != nil && c.Parents[0] == s.Base() || c.ID == s.Base() {
		w.note(c.ID, state)
		return
	}
	w.note(c.ID, at(w.t, w.db, c.ID.String())) // merged: the merge has tests of its own
}

func (w *gcWorld) pick() (*Session, map[string]string) {
	for s, state := range w.sessions {
		return s, state
	}
	return nil, nil
}

func (w *gcWorld) step() {
	w.ops++
	switch k := w.rng.IntN(24); {
	case k < 7:
		s, state := w.begin()
		w.write(s, state)
		w.commit(s, state)
	case k < 9 && len(w.sessions) < 4:
		s, state := w.begin()
		w.sessions[s] = state
	case k < 13:
		if s, state := w.pick(); s != nil {
			w.write(s, state)
			if w.rng.IntN(3) == 0 {
				w.must(s.Savepoint(bg))
			}
		}
	case k < 14:
		if s, state := w.pick(); s != nil {
			delete(w.sessions, s)
			if w.rng.IntN(2) == 0 {
				w.commit(s, state)
			} else {
				w.must(s.Abort())
			}
		}
	case k < 16:
		id := w.ids[w.rng.IntN(len(w.ids))]
		if v, err := w.db.Snapshot(bg, id); err == nil {
			w.views[v] = w.states[id]
		}
	case k < 17:
		for v := range w.views {
			w.must(v.Close())
			delete(w.views, v)
			break
		}
	case k < 18:
		name := fmt.Sprint("b", w.rng.IntN(3))
		id := w.ids[w.rng.IntN(len(w.ids))]
		if err := w.db.CreateBranch(bg, name, id); errors.Is(err, ErrRefExists) {
			w.must(w.db.DeleteBranch(name))
		} else if !errors.Is(err, ErrExpired) {
			w.must(err)
		}
	case k < 19:
		a, b := w.branch(), w.branch()
		head, err := w.db.Head(b)
		w.must(err)
		c, err := w.db.Merge(bg, a, head, CommitOptions{})
		if err == nil {
			w.note(c.ID, at(w.t, w.db, c.ID.String()))
		} else if !errors.Is(err, ErrConflict) && !errors.Is(err, ErrExpired) && !errors.Is(err, ErrManyBases) {
			w.t.Fatal(err)
		}
	case k < 21:
		mustExpire(w.t, w.db, ExpireOptions{Keep: 1 + w.rng.IntN(3)})
	default:
		mustGC(w.t, w.db)
		w.check()
	}
}

// check compares everything that is kept with the model.
func (w *gcWorld) check() {
	w.t.Helper()
	for _, id := range w.ids {
		v, err := w.db.Snapshot(bg, id)
		if errors.Is(err, ErrExpired) {
			continue
		}
		w.must(err)
		if got := contents(w.t, v); !maps.Equal(got, w.states[id]) {
			w.t.Fatalf("commit %s holds %d keys, want %d", id.Short(), len(got), len(w.states[id]))
		}
		w.must(v.Close())
	}
	for v, state := range w.views {
		if got := contents(w.t, v); !maps.Equal(got, state) {
			w.t.Fatalf("an open snapshot holds %d keys, want %d", len(got), len(state))
		}
	}
	for s, state := range w.sessions {
		if got := contents(w.t, s); !maps.Equal(got, state) {
			w.t.Fatalf("an open session holds %d keys, want %d", len(got), len(state))
		}
	}
}

// quiesce ends all that is open and expects that only what is reachable is left.
func (w *gcWorld) quiesce() {
	for s := range w.sessions {
		w.must(s.Abort())
	}
	for v := range w.views {
		w.must(v.Close())
	}
	clear(w.sessions)
	clear(w.views)
	mustExpire(w.t, w.db, ExpireOptions{Keep: 2})
	mustGC(w.t, w.db)
	w.check()
	mustBeTidy(w.t, w.db)
	r := mustGC(w.t, w.db)
	if r.DeletedPages != 0 || r.FreedBytes > 0 && r.Removed == 0 {
		w.t.Errorf("a second collection finds something: %+v", r)
	}
}

func (w *gcWorld) reopen() {
	clear(w.views)
	for s, state := range w.sessions {
		w.must(s.Savepoint(bg))
		w.must(s.Close())
		delete(w.sessions, s)
		defer func() {
			again, err := w.db.Resume(bg, s.ID())
			w.must(err)
			w.sessions[again] = state
		}()
	}
	closeChecked(w.t, w.db)
	db, err := Open("db", w.o)
	w.must(err)
	w.db = db
}

// Random histories of everything that makes, moves and drops versions: nothing
// that is reachable is ever lost, and nothing else stays.
func TestGCModel(t *testing.T) {
	t.Parallel()
	crashRounds(t, gcHistory)
}

func gcHistory(t *testing.T, seed uint64) {
	w := newGCWorld(t, seed, vfs.NewMem())
	for i := range 150 {
		w.step()
		if i%50 == 49 {
			w.reopen()
			w.check()
		}
	}
	w.quiesce()
	closeChecked(t, w.db)
}

// A power loss at any write of an expiry and a collection loses nothing that is
// kept, and the collection can be run again to its end.
func TestGCPowerCut(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	mem := vfs.NewCrashableMem()
	var images []*vfs.MemFS
	var on atomic.Bool
	rng := rand.New(rand.NewPCG(seed, 5))
	fs := crashFS(mem, func(errorfs.Op) error {
		if on.Load() && len(images) < 200 {
			images = append(images, mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: rng.IntN(101), RNG: rng}))
		}
		return nil
	})
	w := newGCWorld(t, seed, fs)
	for range 120 {
		w.step()
	}
	garbage, state := w.begin()
	for range 30 {
		w.write(garbage, state)
	}
	w.must(garbage.Savepoint(bg))
	w.must(garbage.Abort())
	for s := range w.sessions {
		w.must(s.Savepoint(bg))
	}
	heads := w.db.Branches()
	on.Store(true)
	expired := mustExpire(t, w.db, ExpireOptions{Keep: 1})
	collected := mustGC(t, w.db)
	on.Store(false)
	t.Logf("expired %+v, collected %+v", expired, collected)
	w.quiesce()
	closeChecked(t, w.db)
	step := 1
	if testing.Short() || raceEnabled {
		step = 1 + len(images)/25
	}
	for i := 0; i < len(images); i += step {
		o := *w.o
		o.FS = images[i]
		db, err := Open("db", &o)
		if err != nil {
			t.Fatalf("image %d: %v", i, err)
		}
		mustBeSound(t, db)
		for range 2 {
			for _, h := range heads {
				if got := at(t, db, h.Commit.String()); !maps.Equal(got, w.states[h.Commit]) {
					t.Fatalf("image %d: %s holds %d keys, want %d", i, h.Name, len(got), len(w.states[h.Commit]))
				}
			}
			mustExpire(t, db, ExpireOptions{Keep: 1})
			mustGC(t, db)
		}
		update(t, db, "main", map[string]string{"after": strings.Repeat("x", 2000)})
		closeChecked(t, db)
		if t.Failed() {
			t.Fatalf("image %d of %d", i, len(images))
		}
	}
	if len(images) == 0 {
		t.Error("nothing was written")
	}
}

// The k-th write of a collection fails, for every k.
func TestGCFaults(t *testing.T) {
	t.Parallel()
	step := 1
	if testing.Short() || raceEnabled {
		step = 5
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	for k := int64(1); ; k += int64(step) {
		var n atomic.Int64
		var on atomic.Bool
		mem := vfs.NewMem()
		fs := crashFS(mem, func(errorfs.Op) error {
			if on.Load() && n.Add(1) == k {
				return errorfs.ErrInjected
			}
			return nil
		})
		w := newGCWorld(t, seed, fs)
		for range 25 {
			w.step()
		}
		on.Store(true)
		if _, err := w.db.Expire(bg, ExpireOptions{Keep: 1}); err == nil {
			_, _ = w.db.GC(bg, GCOptions{})
		}
		on.Store(false)
		_ = w.db.Close() // may report the failure
		o := *w.o
		o.FS = mem
		db, err := Open("db", &o)
		if err != nil {
			t.Fatalf("write %d: %v", k, err)
		}
		w.db = db
		clear(w.sessions)
		clear(w.views)
		w.check()
		mustExpire(t, w.db, ExpireOptions{Keep: 1})
		mustGC(t, w.db)
		w.check()
		closeChecked(t, w.db)
		if t.Failed() {
			t.Fatalf("after write %d failed", k)
		}
		if n.Load() < k {
			return
		}
	}
}

// Readers, writers, expiry and collections at the same time; snapshots that
// were opened before their version expired read on.
func TestGCBesideReadersAndWriters(t *testing.T) {
	t.Parallel()
	o := testOptions(vfs.NewMem())
	o.SessionBytes, o.PackBytes = 8<<10, 200<<10
	db := openTest(t, o)
	state := func(n int) map[string]string {
		m := map[string]string{}
		for i := range 12 {
			m[fmt.Sprintf("d%d/k%d", i%3, i)] = strings.Repeat(fmt.Sprint(n, "."), 300*(i%4)+1)
		}
		return m
	}
	ctx, cancel := context.WithCancel(bg)
	var wg sync.WaitGroup
	var rounds atomic.Int64
	for g := range 2 {
		branch := fmt.Sprint("w", g)
		if err := db.CreateBranch(bg, branch, mustHead(t, db)); err != nil {
			t.Fatal(err)
		}
		wg.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				want := state(n % 7) // the same pages come and go
				s, err := db.Begin(bg, branch)
				if err != nil {
					t.Error(err)
					return
				}
				for k, v := range want {
					if err := s.Set(bg, k, []byte(v)); err != nil {
						t.Error(err)
					}
				}
				c, err := s.Commit(bg, CommitOptions{})
				if err != nil {
					t.Error(err)
					return
				}
				if v, err := db.Snapshot(bg, c.ID); err == nil {
					for range 3 {
						if got := contents(t, v); !maps.Equal(got, want) {
							t.Errorf("commit %d of %s: %d keys", n, branch, len(got))
						}
					}
					_ = v.Close()
				} else if !errors.Is(err, ErrExpired) {
					t.Error(err)
				}
				rounds.Add(1)
			}
		})
	}
	for rounds.Load() < 60 && !t.Failed() {
		if _, err := db.Expire(bg, ExpireOptions{Keep: 1}); err != nil {
			t.Error(err)
		}
		if _, err := db.GC(bg, GCOptions{}); err != nil {
			t.Error(err)
		}
	}
	cancel()
	wg.Wait()
	mustExpire(t, db, ExpireOptions{Keep: 1})
	mustGC(t, db)
	mustBeTidy(t, db)
}

// A pin keeps its version, and the files that hold it as they are.
func TestPins(t *testing.T) {
	mem := vfs.NewMem()
	o := testOptions(mem)
	db := openTest(t, o)
	values := map[string]string{}
	for i := range 40 {
		values[fmt.Sprint("k", i)] = strings.Repeat(fmt.Sprint(i), 3000)
	}
	pinned := update(t, db, "main", values)
	if err := db.CreatePin(bg, "export", pinned.ID, "for a test"); err != nil {
		t.Fatal(err)
	}
	if err := db.CreatePin(bg, "export", pinned.ID, ""); !errors.Is(err, ErrRefExists) {
		t.Errorf("second pin: %v", err)
	}
	pins, err := db.Pins(bg)
	if err != nil || len(pins) != 1 || pins[0].Name != "export" || pins[0].Commit != pinned.ID || pins[0].Note != "for a test" {
		t.Errorf("pins %+v, %v", pins, err)
	}
	// Garbage in the same pack.
	s := mustBegin(t, db)
	for i := range 40 {
		set(t, s, map[string]string{fmt.Sprint("x", i): strings.Repeat("y", 5000+i)})
	}
	if err := s.Savepoint(bg); err != nil {
		t.Fatal(err)
	}
	if err := s.Abort(); err != nil {
		t.Fatal(err)
	}
	update(t, db, "main", map[string]string{"k0": "small"})
	mustExpire(t, db, ExpireOptions{Keep: 1})
	r := mustGC(t, db)
	if r.FreedBytes != 0 || r.HeldBytes == 0 {
		t.Errorf("with a pin: %+v", r)
	}
	if got := at(t, db, pinned.ID.String()); !maps.Equal(got, values) {
		t.Error("the pinned version has changed")
	}
	if err := db.DeletePin("export"); err != nil {
		t.Fatal(err)
	}
	if err := db.DeletePin("export"); !errors.Is(err, ErrNoRef) {
		t.Errorf("second delete: %v", err)
	}
	mustExpire(t, db, ExpireOptions{Keep: 1})
	if r := mustGC(t, db); r.FreedBytes == 0 {
		t.Errorf("without the pin: %+v", r)
	}
	mustBeTidy(t, db)
}

// The report says who holds what.
func TestGCExplain(t *testing.T) {
	db := openTest(t, nil)
	value := func(c string) string { return strings.Repeat(c, 10_000) }
	base := update(t, db, "main", map[string]string{"both": value("b"), "old": value("o")})
	if err := db.CreateBranch(bg, "side", base.ID); err != nil {
		t.Fatal(err)
	}
	update(t, db, "main", map[string]string{"old": "", "main": value("m") + value("m")})
	update(t, db, "side", map[string]string{"old": "", "side": value("s")})
	before := len(storedPages(t, db))
	r, err := db.GC(bg, GCOptions{DryRun: true, Explain: true})
	if err != nil {
		t.Fatal(err)
	}
	if len(storedPages(t, db)) != before {
		t.Error("a dry run deleted something")
	}
	got := map[string]int64{}
	for _, h := range r.Holders {
		got[h.Kind+" "+h.Name] = h.OnlyBytes
	}
	want := map[string]int64{"branch main": 20_000, "branch side": 10_000, "history ": 10_000}
	for name, n := range want {
		// Headers between payloads may count.
		if got[name] < n || got[name] > n+500 || len(got) != len(want) {
			t.Errorf("held only by: %v, want %v", got, want)
		}
	}
}

// Space comes back to the file system: after an array was overwritten ten times
// and the old versions let go, little more than one copy is on disk.
func TestGCDiskSpace(t *testing.T) {
	if testing.Short() {
		t.Skip("writes a lot")
	}
	o := testOptions(nil)
	dir := t.TempDir() + "/db"
	db, err := Create(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	const chunks, chunk = 64, 512 << 10
	rng := rand.New(rand.NewPCG(1, 1))
	payload := make([]byte, chunk)
	for range 10 {
		s := mustBegin(t, db)
		for i := range chunks {
			for j := 0; j < len(payload); j += 1 << 10 {
				payload[j] = byte(rng.Uint32())
				payload[j+1] = byte(rng.Uint32())
			}
			if err := s.Set(bg, fmt.Sprint("c/", i), payload); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := s.Commit(bg, CommitOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	before := allocated(t, dir+"/packs")
	mustExpire(t, db, ExpireOptions{Keep: 1})
	r := mustGC(t, db)
	after := allocated(t, dir+"/packs")
	t.Logf("one copy has %d bytes; allocated %d, then %d; %+v", chunks*chunk, before, after, r)
	if after > chunks*chunk*11/10 {
		t.Errorf("%d bytes are allocated for %d", after, chunks*chunk)
	}
	closeChecked(t, db)
}

func TestSoakGC(t *testing.T) { soak(t, gcHistory) }
