package txn

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/zarrdb/zarrdb/internal/crashtest"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/txn/internal/care"
	"github.com/zarrdb/zarrdb/txn/internal/catalog"
)

// collectable runs a history that leaves much to be collected. Its sessions are stored.
func collectable(t *testing.T, seed uint64, fs vfs.FS, steps int) *versionsRun {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 21))
	r := must.Get(newVersionsRun(rng.IntN(numOptions)/6*6, fs))(t) // with sessions of the default size, and a cache of pages
	must.Do(t, r.steps(randomHistory(rng, steps, true, false)))
	head := r.m.order[len(r.m.order)-1]
	must.Do(t, r.db.CreateBranch(bg, "large", head))
	r.m.move(catalog.HeadRef("large"), head)
	for n := range 6 {
		s := must.Get(r.db.Begin(bg, "large"))(t)
		next := r.m.commits[head].content.clone()
		for i := range 20 {
			key, value := fmt.Sprintf("d%d/k%d", i%3, i), fmt.Sprint(n, strings.Repeat("large", rng.IntN(2000)))
			next.keys[key] = value
			must.Do(t, s.Set(bg, key, []byte(value)))
		}
		must.Do(t, s.Savepoint(bg))
		if n%2 == 0 { // some packs have nothing else
			must.Do(t, s.Abort())
			continue
		}
		c := must.Get(s.Commit(bg, CommitOptions{}))(t)
		must.Do(t, r.committed(catalog.HeadRef("large"), c, []CommitID{head}, next))
		head = c.ID
	}
	for _, m := range r.sessions {
		must.Do(t, m.s.Detach(bg))
	}
	return r
}

// left compares what an expiry and a collection leave in a database with the model.
func (r *versionsRun) left(t *testing.T, db *DB) {
	t.Helper()
	mustBeSound(t, db)
	if refs := refsOf(db); !maps.Equal(refs, r.m.refs) {
		t.Fatalf("refs %v, want %v", refs, r.m.refs)
	}
	for _, m := range r.sessions {
		s := must.Get(db.Resume(bg, m.s.ID()))(t)
		if got := contentsIn(s); !maps.Equal(got, m.work.keys) {
			t.Fatalf("a stored session holds %d keys, want %d", len(got), len(m.work.keys))
		}
		must.Do(t, s.Close())
	}
	needed := r.m.needs(false)
	for _, id := range r.m.order {
		if err := r.keeps(db, id); err != nil && (!errors.Is(err, ErrExpired) || needed[id]) {
			t.Fatal(err)
		}
	}
}

// A power loss at any write of an expiry and a collection loses nothing that is
// kept, and the collection can be run again to its end.
func TestGCPowerCut(t *testing.T) {
	t.Parallel()
	seed := must.Seed(t)
	var images []*vfs.MemFS
	rng := rand.New(rand.NewPCG(seed, 5))
	disk := crashtest.NewDisk(vfs.NewCrashableMem(), func(d *crashtest.Disk, op errorfs.Op) error {
		// A checkpoint takes many writes, and little can go wrong with it here.
		if rng.IntN(6) == 0 || !strings.Contains(op.Path, "/"+checkpointDir+"/") {
			images = append(images, d.Cut(rng.IntN(101), rng.IntN(101), rng))
		}
		return nil
	})
	disk.On(false)
	r := collectable(t, seed, disk, 120)
	must.Do(t, errors.Join(r.db.Sync(bg), r.db.Checkpoint(bg)))
	disk.On(true)
	must.Do(t, expireAndCollect(r.db))
	disk.On(false)
	r.left(t, r.db)
	must.Do(t, errors.Join(r.db.Close(), r.other.Close()))
	step := 1
	if testing.Short() || raceEnabled {
		step = 1 + len(images)/25
	}
	for i := 0; i < len(images); i += step {
		o := *r.o
		o.FS = images[i]
		db, err := Open("db", &o)
		if err != nil {
			t.Fatalf("image %d: %v", i, err)
		}
		checkpointsAreSound(t, &o)
		for range 2 {
			r.left(t, db)
			must.Do(t, expireAndCollect(db))
		}
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
		look := &care.Checker{Options: CheckOptions{Payloads: true}, Gone: true}
		r, err := &look.Report, db.look(bg, look)
		if err = errors.Join(err, db.Close()); err != nil || r.Found > 0 {
			t.Errorf("checkpoint %s: %v, %v", c.Name, r.Problems, err)
		}
	}
}

// Each write of a collection fails once, with -short some of them. What fails in silence does no
// harm: an expiry and a collection that say nothing are done, and stay done.
func TestGCFaults(t *testing.T) {
	t.Parallel()
	every := int64(1)
	if testing.Short() || raceEnabled {
		every = 5
	}
	seed := must.Seed(t)
	for k := rand.Int64N(every); ; k += every {
		mem := vfs.NewCrashableMem()
		f := crashtest.Faults{Match: crashtest.IsWrite, At: k, Once: true}
		f.Off.Store(true)
		r := collectable(t, seed, f.Wrap(mem), 25)
		quiet := k%2 == 0 // else sessions are stored, and versions are open
		if quiet {
			for _, m := range r.sessions {
				must.Do(t, r.db.AbortSession(bg, m.s.ID()))
			}
			r.sessions = nil
		}
		for !quiet && len(r.views) < 3 {
			must.Do(t, r.lease(step{b: len(r.views)}))
		}
		must.Do(t, r.db.Sync(bg))
		f.Off.Store(false)
		err := expireAndCollect(r.db)
		f.Off.Store(true)
		o := *r.o
		if o.FS = crashtest.Cut(mem, 0, nil); err == nil && quiet { // and stays done
			db := must.Get(Open("db", &o))(t)
			must.Do(t, untidy(db))
			if r := mustExpire(t, db, ExpireOptions{Keep: 1}); r.Expired != 0 {
				t.Errorf("%d versions have not expired", r.Expired)
			}
			closeChecked(t, db)
		}
		_ = errors.Join(r.db.Close(), r.other.Close()) // may report the failure
		o.FS = mem
		db, err := Open("db", &o)
		if err != nil {
			t.Fatalf("write %d: %v", k, err)
		}
		r.left(t, db)
		must.Do(t, expireAndCollect(db))
		r.left(t, db)
		closeChecked(t, db)
		if t.Failed() {
			t.Fatalf("after write %d failed", k)
		}
		if f.Hits.Load() == 0 {
			return
		}
	}
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
	must.Do(t, untidy(db))
}
