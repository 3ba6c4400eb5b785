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

	"github.com/zarrdb/zarrdb/internal/crashtest"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
)

// gcWorld is a database beside a plain model of it.
type gcWorld struct {
	t        *testing.T
	rng      *rand.Rand
	db       *DB
	o        *Options
	ids      []CommitID
	states   map[CommitID]map[string]string
	sessions []openIn[*Session]
	stored   []openIn[SessionID] // sessions that are not open
	views    []openIn[*Snapshot]
	tags     map[string]CommitID
	ops      int
}

// openIn is an open session or snapshot and what it holds.
type openIn[V any] struct {
	v     V
	state map[string]string
}

func newGCWorld(t *testing.T, seed uint64, fs vfs.FS) *gcWorld {
	w := &gcWorld{
		t: t, rng: rand.New(rand.NewPCG(seed, 21)), states: map[CommitID]map[string]string{},
		tags: map[string]CommitID{},
	}
	w.o = testOptions(fs)
	w.o.SessionBytes = 4 << 10 // spill much
	w.o.PackBytes = 300 << 10
	w.o.aheadPages = someAhead(seed)
	now := newClock()
	var mu sync.Mutex
	w.o.Now = func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		return now.now()
	}
	db := must.Get(Create("db", w.o))(t)
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
	refs := branchesOf(w.db)
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

// pick picks an open session, -1 if there is none.
func (w *gcWorld) pick() int {
	if len(w.sessions) == 0 {
		return -1
	}
	return w.rng.IntN(len(w.sessions))
}

func (w *gcWorld) step() {
	w.ops++
	switch k := w.rng.IntN(30); {
	case k < 7:
		s, state := w.begin()
		w.write(s, state)
		w.commit(s, state)
	case k < 9 && len(w.sessions) < 4:
		s, state := w.begin()
		w.sessions = append(w.sessions, openIn[*Session]{s, state})
	case k < 13:
		if i := w.pick(); i >= 0 {
			open := w.sessions[i]
			w.write(open.v, open.state)
			if w.rng.IntN(3) == 0 {
				w.must(open.v.Savepoint(bg))
			}
		}
	case k < 14:
		if i := w.pick(); i >= 0 {
			open := w.sessions[i]
			w.sessions = slices.Delete(w.sessions, i, i+1)
			if w.rng.IntN(2) == 0 {
				w.commit(open.v, open.state)
			} else {
				w.must(open.v.Abort())
			}
		}
	case k < 16:
		id := w.ids[w.rng.IntN(len(w.ids))]
		if v, err := w.db.Snapshot(bg, id); err == nil {
			w.views = append(w.views, openIn[*Snapshot]{v, w.states[id]})
		}
	case k < 17:
		if n := len(w.views); n > 0 {
			i := w.rng.IntN(n)
			w.must(w.views[i].v.Close())
			w.views = slices.Delete(w.views, i, i+1)
		}
	case k < 18:
		name := fmt.Sprint("b", w.rng.IntN(3))
		id := w.ids[w.rng.IntN(len(w.ids))]
		if err := w.db.CreateBranch(bg, name, id); errors.Is(err, ErrRefExists) {
			w.must(w.db.DeleteBranch(bg, name))
		} else if !errors.Is(err, ErrExpired) {
			w.must(err)
		}
	case k < 19:
		a, b := w.branch(), w.branch()
		head, err := w.db.Head(bg, b)
		w.must(err)
		c, err := w.db.Merge(bg, a, head, CommitOptions{})
		if err == nil {
			w.note(c.ID, at(w.t, w.db, c.ID.String()))
		} else if !errors.Is(err, ErrConflict) && !errors.Is(err, ErrExpired) && !errors.Is(err, ErrManyBases) {
			w.t.Fatal(err)
		}
	case k < 21:
		mustExpire(w.t, w.db, ExpireOptions{Keep: 1 + w.rng.IntN(3)})
	case k < 23:
		w.store()
	case k < 25:
		w.copyOld()
	case k < 27:
		w.hold()
	default:
		var o GCOptions
		if w.rng.IntN(2) == 0 { // little memory
			o.deadNames, o.rangeBytes = 1+w.rng.IntN(20), 1+w.rng.IntN(200)
		}
		o.Explain = w.rng.IntN(4) == 0
		mustGCWith(w.t, w.db, o)
		w.check()
	}
}

// store lets a session wait, or goes on with one that did.
func (w *gcWorld) store() {
	if n := len(w.stored); n > 1 || n > 0 && w.rng.IntN(2) == 0 {
		s, err := w.db.Resume(bg, w.stored[0].v)
		w.must(err)
		w.sessions = append(w.sessions, openIn[*Session]{s, w.stored[0].state})
		w.stored = w.stored[1:]
	} else if i := w.pick(); i >= 0 {
		open := w.sessions[i]
		w.must(open.v.Detach(bg))
		w.stored = append(w.stored, openIn[SessionID]{open.v.ID(), open.state})
		w.sessions = slices.Delete(w.sessions, i, i+1)
	}
}

// copyOld takes a directory of an open snapshot, which may have expired, into a
// session.
func (w *gcWorld) copyOld() {
	i := w.pick()
	if i < 0 || len(w.views) == 0 {
		return
	}
	s, view := w.sessions[i], w.views[w.rng.IntN(len(w.views))]
	from, to := fmt.Sprintf("d%d", w.rng.IntN(3)), fmt.Sprintf("o%d", w.rng.IntN(50))
	err := s.v.Copy(bg, view.v, from, to)
	if errors.Is(err, kv.ErrNotFound) || errors.Is(err, ErrExists) {
		return
	}
	w.must(err)
	for k, v := range view.state {
		if rest, ok := strings.CutPrefix(k, from+"/"); ok {
			s.state[to+"/"+rest] = v
		}
	}
}

// hold makes or drops a tag.
func (w *gcWorld) hold() {
	name, id := fmt.Sprint("h", w.rng.IntN(2)), w.ids[w.rng.IntN(len(w.ids))]
	if _, ok := w.tags[name]; ok {
		w.must(w.db.DeleteTag(bg, name))
		delete(w.tags, name)
	} else if err := w.db.CreateTag(bg, name, id); err == nil {
		w.tags[name] = id
	} else if !errors.Is(err, ErrExpired) {
		w.must(err)
	}
}

// check compares everything that is kept with the model.
func (w *gcWorld) check() {
	w.t.Helper()
	var held []CommitID
	for _, b := range branchesOf(w.db) {
		held = append(held, b.Commit)
	}
	for _, id := range slices.Concat(held, slices.Collect(maps.Values(w.tags))) {
		if gone, err := w.db.Expired(bg, id); gone || err != nil {
			w.t.Fatalf("commit %s has expired: %v, %v", id.Short(), gone, err)
		}
	}
	for _, open := range w.sessions {
		if gone, err := w.db.Expired(bg, open.v.Base()); gone || err != nil {
			w.t.Fatalf("the base of a session has expired: %v, %v", gone, err)
		}
	}
	for _, stored := range w.stored {
		s, err := w.db.Resume(bg, stored.v)
		w.must(err)
		if gone, err := w.db.Expired(bg, s.Base()); gone || err != nil {
			w.t.Fatalf("the base of a stored session has expired: %v, %v", gone, err)
		}
		if got := contents(w.t, s); !maps.Equal(got, stored.state) {
			w.t.Fatalf("a stored session holds %d keys, want %d", len(got), len(stored.state))
		}
		w.must(s.Close())
	}
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
	for _, open := range w.views {
		if got := contents(w.t, open.v); !maps.Equal(got, open.state) {
			w.t.Fatalf("an open snapshot holds %d keys, want %d", len(got), len(open.state))
		}
	}
	for _, open := range w.sessions {
		if got := contents(w.t, open.v); !maps.Equal(got, open.state) {
			w.t.Fatalf("an open session holds %d keys, want %d", len(got), len(open.state))
		}
	}
}

// end ends all sessions and snapshots.
func (w *gcWorld) end() {
	for _, open := range w.sessions {
		w.must(open.v.Abort())
	}
	for _, open := range w.views {
		w.must(open.v.Close())
	}
	for _, stored := range w.stored {
		s, err := w.db.Resume(bg, stored.v)
		w.must(err)
		w.must(s.Abort())
	}
	w.sessions, w.views, w.stored = nil, nil, nil
}

// quiesce ends all that is open and expects that only what is reachable is left.
func (w *gcWorld) quiesce() {
	w.end()
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
	w.views = nil
	for _, open := range w.sessions {
		w.must(open.v.Savepoint(bg))
		w.must(open.v.Close())
	}
	closeChecked(w.t, w.db)
	db, err := Open("db", w.o)
	w.must(err)
	w.db = db
	for i := range w.sessions {
		w.sessions[i].v, err = w.db.Resume(bg, w.sessions[i].v.ID())
		w.must(err)
	}
}

// Random histories of everything that makes, moves and drops versions: nothing
// that is reachable is ever lost, and nothing else stays.
func TestGCModel(t *testing.T) {
	t.Parallel()
	crashRounds(t, gcHistory)
}

func gcHistory(t *testing.T, seed uint64, over func() bool) int {
	w := newGCWorld(t, seed, vfs.NewMem())
	for i := range 150 {
		if over() {
			break
		}
		w.step()
		if i%50 == 49 {
			w.reopen()
			w.check()
		}
	}
	w.quiesce()
	closeChecked(t, w.db)
	return w.ops
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
	fs := crashtest.NewDisk(mem, func(d *crashtest.Disk, op errorfs.Op) error {
		// A checkpoint takes many writes, and little can go wrong with it here.
		if on.Load() && (rng.IntN(6) == 0 || !strings.Contains(op.Path, "/"+checkpointDir+"/")) {
			images = append(images, d.Cut(rng.IntN(101), rng.IntN(101), rng))
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
	for _, open := range w.sessions { // open ones keep what was written since
		w.must(open.v.Detach(bg))
		w.stored = append(w.stored, openIn[SessionID]{open.v.ID(), open.state})
	}
	w.sessions = nil
	heads, stored := branchesOf(w.db), slices.Clone(w.stored)
	w.must(w.db.Checkpoint(bg))
	on.Store(true)
	expired := mustExpire(t, w.db, ExpireOptions{Keep: 1})
	collected := mustGC(t, w.db)
	on.Store(false)
	t.Logf("%d images, expired %+v, collected %+v", len(images), expired, collected)
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
		checkpointsAreSound(t, &o)
		for _, was := range stored {
			s, err := db.Resume(bg, was.v)
			if err != nil {
				t.Fatalf("image %d: %v", i, err)
			}
			if got := contents(t, s); !maps.Equal(got, was.state) {
				t.Fatalf("image %d: a stored session holds %d keys, want %d", i, len(got), len(was.state))
			}
			w.must(s.Close())
		}
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

// checkpointsAreSound expects that every checkpoint has all its payloads.
func checkpointsAreSound(t *testing.T, o *Options) {
	t.Helper()
	list := must.Get(listCheckpoints(o.FS, "db"))(t)
	ro := o.withDefaults()
	ro.ReadOnly = true
	for _, c := range list {
		db, err := open("db", "db/"+checkpointDir+"/"+c.Name, ro, false)
		if err != nil {
			t.Fatalf("checkpoint %s: %v", c.Name, err)
		}
		r, err := db.Check(bg, CheckOptions{Payloads: true, gone: true})
		if err = errors.Join(err, db.Close()); err != nil || r.Found > 0 {
			t.Errorf("checkpoint %s: %v, %v", c.Name, r.Problems, err)
		}
	}
}

// The k-th write of a collection fails, for every k. What fails in silence does no
// harm: an expiry and a collection that say nothing are done, and stay done.
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
		mem := vfs.NewCrashableMem()
		fs := crashtest.NewDisk(mem, func(*crashtest.Disk, errorfs.Op) error {
			if on.Load() && n.Add(1) == k {
				return errorfs.ErrInjected
			}
			return nil
		})
		w := newGCWorld(t, seed, fs)
		for range 25 {
			w.step()
		}
		garbage, state := w.begin() // some packs have nothing else
		for range 20 {
			w.write(garbage, state)
		}
		w.must(garbage.Savepoint(bg))
		w.must(garbage.Abort())
		quiet := k%2 == 0 // else sessions and snapshots are open
		if quiet {
			w.end()
		}
		on.Store(true)
		_, err := w.db.Expire(bg, ExpireOptions{Keep: 1})
		if err == nil {
			_, err = w.db.GC(bg, GCOptions{})
		}
		on.Store(false)
		if err == nil && quiet {
			collectedDurably(t, w.o, mem)
		}
		_ = w.db.Close() // may report the failure
		o := *w.o
		o.FS = mem
		db, err := Open("db", &o)
		if err != nil {
			t.Fatalf("write %d: %v", k, err)
		}
		mustBeSound(t, db)
		w.db = db
		w.sessions, w.views = nil, nil
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

// collectedDurably expects that a power cut now leaves nothing that an expiry and a
// collection were to remove.
func collectedDurably(t *testing.T, o *Options, mem *vfs.MemFS) {
	t.Helper()
	again := *o
	again.FS = mem.CrashClone(vfs.CrashCloneCfg{})
	db := must.Get(Open("db", &again))(t)
	mustBeTidy(t, db)
	if r := mustExpire(t, db, ExpireOptions{Keep: 1}); r.Expired != 0 {
		t.Errorf("%d versions have not expired", r.Expired)
	}
	closeChecked(t, db)
}

// Readers, writers, expiry, collections and checks at the same time; snapshots that
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
	var rounds, checks atomic.Int64
	for g := range 2 {
		branch := fmt.Sprint("w", g)
		must.Do(t, db.CreateBranch(bg, branch, mustHead(t, db)))
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
	wg.Go(func() { // nothing is taken for damage that is only going
		for n := 0; ctx.Err() == nil; n++ {
			r, err := db.Check(bg, CheckOptions{Payloads: n%2 == 0})
			if err != nil || len(r.Problems) > 0 {
				t.Errorf("a check beside a collection: %v, %v", r.Problems, err)
				return
			}
			checks.Add(1)
		}
	})
	for (rounds.Load() < 60 || checks.Load() < 4) && !t.Failed() {
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

func TestSoakGC(t *testing.T) { soak(t, gcHistory) }
