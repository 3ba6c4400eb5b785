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

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/zarrdb/zarrdb/internal/crashtest"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/internal/race"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/txn/internal/care"
)

// collected is a database with much to collect, and what it holds.
type collected struct {
	o        *Options
	db       *DB
	refs     map[string]CommitID
	versions map[CommitID]map[string]string
	sessions map[SessionID]map[string]string // stored
}

// collectable makes versions on a few branches, in which values of all sizes come and go. Some
// sessions are aborted, and some are stored.
func collectable(t *testing.T, seed uint64, fs vfs.FS, commits int) *collected {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 21))
	o := testOptions(fs)
	o.Now, o.aheadPages = newClock().now, someAhead(rng.Uint64())
	o.PackBytes, o.CheckpointCommits = []uint64{0, 16 << 10}[rng.IntN(2)], []int{-1, 3}[rng.IntN(2)]
	c := &collected{o: o, db: must.Get(Create("db", o))(t), versions: map[CommitID]map[string]string{}, sessions: map[SessionID]map[string]string{}}
	branches := []string{MainBranch}
	c.versions[mustHead(t, c.db)] = map[string]string{}
	for n := range commits {
		s := must.Get(c.db.Begin(bg, branches[rng.IntN(len(branches))]))(t)
		want := maps.Clone(c.versions[s.Base()])
		for range 1 + rng.IntN(8) {
			key, value := fmt.Sprintf("d%d/k%d", rng.IntN(3), rng.IntN(20)), fmt.Sprint(n, strings.Repeat("large", rng.IntN(2)*rng.IntN(2000)))
			if rng.IntN(4) == 0 {
				delete(want, key)
				must.Do(t, s.Delete(bg, key))
				continue
			}
			want[key] = value
			must.Do(t, s.Set(bg, key, []byte(value)))
		}
		switch rng.IntN(8) {
		case 0: // some packs have nothing else
			must.Do(t, errors.Join(s.Savepoint(bg), s.Abort()))
			continue
		case 1:
			c.sessions[s.ID()] = want
			must.Do(t, s.Detach(bg))
			continue
		}
		id := must.Get(s.Commit(bg, CommitOptions{}))(t).ID
		c.versions[id] = want
		if len(branches) < 4 && rng.IntN(4) == 0 {
			branches = append(branches, fmt.Sprint("b", n))
			must.Do(t, c.db.CreateBranch(bg, branches[len(branches)-1], id))
		}
	}
	c.refs = refsOf(c.db)
	return c
}

// left compares what an expiry and a collection leave in a database.
func (c *collected) left(t *testing.T, db *DB) {
	t.Helper()
	mustBeSound(t, db)
	if refs := refsOf(db); !maps.Equal(refs, c.refs) {
		t.Fatalf("refs %v, want %v", refs, c.refs)
	}
	for id, want := range c.sessions {
		s := must.Get(db.Resume(bg, id))(t)
		if got := contentsIn(s); !maps.Equal(got, want) {
			t.Fatalf("a stored session holds %d keys, want %d", len(got), len(want))
		}
		must.Do(t, s.Close())
	}
	heads := slices.Collect(maps.Values(c.refs))
	for id, want := range c.versions {
		v, err := db.Snapshot(bg, id)
		if errors.Is(err, ErrExpired) && !slices.Contains(heads, id) {
			continue
		}
		must.Do(t, err)
		if got := contentsIn(v); !maps.Equal(got, want) {
			t.Fatalf("commit %s has %d keys, want %d", id.Short(), len(got), len(want))
		}
		must.Do(t, v.Close())
	}
}

// contentsIn reads everything that a view lists. An error is a value of its key.
func contentsIn(v kv.ReadLister) map[string]string {
	got := map[string]string{}
	for key, err := range v.List(bg, kv.ListOptions{}) {
		var b []byte
		if err == nil {
			b, err = v.Get(bg, key, kv.All())
		}
		if err != nil {
			b = []byte("error " + err.Error())
		}
		got[key] = string(b)
	}
	return got
}

// expireAndCollect lets all versions go that can go, and collects.
func expireAndCollect(db *DB) error {
	_, err := db.Expire(bg, ExpireOptions{Keep: 1})
	if err == nil {
		_, err = db.GC(bg, GCOptions{})
	}
	return err
}

// A power loss at any write of an expiry and a collection loses nothing that is
// kept, and the collection can be run again to its end.
func TestGCPowerCut(t *testing.T) {
	if race.Enabled {
		t.Skip("the work of one goroutine, many times")
	}
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
	r := collectable(t, seed, disk, 40)
	must.Do(t, errors.Join(r.db.Sync(bg), r.db.Checkpoint(bg)))
	disk.On(true)
	must.Do(t, expireAndCollect(r.db))
	disk.On(false)
	r.left(t, r.db)
	must.Do(t, r.db.Close())
	step := 1
	if testing.Short() || race.Enabled {
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
	list := must.Get(care.ListCheckpoints(o.FS, "db"))(t)
	ro := o.withDefaults()
	ro.ReadOnly = true
	for _, c := range list {
		db, err := open("db", "db/"+checkpointDir+"/"+c.Name, ro, false)
		if err != nil {
			t.Fatalf("checkpoint %s: %v", c.Name, err)
		}
		look := &care.Checker{Parts: &db.care, Options: CheckOptions{Payloads: true}, Gone: true}
		r, err := &look.Report, look.Run(bg)
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
	if testing.Short() || race.Enabled {
		every = 5
	}
	seed := must.Seed(t)
	for k := rand.Int64N(every); ; k += every {
		mem := vfs.NewCrashableMem()
		f := crashtest.Faults{Match: crashtest.IsWrite, At: k, Once: true}
		f.Off.Store(true)
		r := collectable(t, seed, f.Wrap(mem), 12)
		quiet := k%2 == 0 // else sessions are stored, and versions are open
		if quiet {
			for id := range r.sessions {
				must.Do(t, r.db.AbortSession(bg, id))
			}
			r.sessions = nil
		}
		if !quiet {
			for _, id := range slices.Collect(maps.Keys(r.versions))[:3] {
				must.Get(r.db.Snapshot(bg, id))(t)
			}
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
		_ = r.db.Close() // may report the failure
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
