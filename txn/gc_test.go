package txn

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv/digest"
	"github.com/zarrdb/zarrdb/kv/index"
	"github.com/zarrdb/zarrdb/kv/tree"
	"github.com/zarrdb/zarrdb/txn/internal/catalog"
	"github.com/zarrdb/zarrdb/txn/internal/collect"
)

func mustGC(t *testing.T, db *DB) *GCReport {
	t.Helper()
	return mustGCWith(t, db, GCOptions{})
}

func mustGCWith(t *testing.T, db *DB, o GCOptions) *GCReport {
	t.Helper()
	phases := map[string]int64{} // without a lock: calls do not overlap
	o.Progress = func(p GCProgress) {
		if p.Done < phases[p.Phase] {
			t.Errorf("progress of %s goes back from %d to %d", p.Phase, phases[p.Phase], p.Done)
		}
		phases[p.Phase] = p.Done
	}
	r, err := db.GC(bg, o)
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
func storedPages(db *DB) (map[tree.Name]bool, error) {
	names := map[tree.Name]bool{}
	for rec, err := range db.idx.Scan(index.SpacePage, nil, nil, false) {
		if err != nil {
			return nil, err
		}
		names[tree.Name(rec.Key)] = true
	}
	return names, nil
}

// untidy returns an error unless the pages below the commits that have not expired are stored,
// and no others. It walks them in another way than the collector.
func untidy(db *DB) error {
	stored, err := storedPages(db)
	if err != nil {
		return err
	}
	reached := map[tree.Name]bool{}
	uncached := tree.New(indexPages{db.idx, nil}, &tree.Options{CacheBytes: -1})
	for rec, err := range db.idx.Scan(index.SpaceCommit, nil, nil, false) {
		if err != nil {
			return err
		}
		c, err := catalog.DecodeCommit(CommitID(rec.Key), rec.Value)
		if err != nil {
			return err
		}
		if gone, _, err := db.home.expired(bg, c.ID); err != nil || gone {
			continue
		}
		err = uncached.Walk(bg, c.Root, func(name tree.Name, _ uint8, _ int) (bool, error) {
			seen := reached[name]
			reached[name] = true
			return !seen, nil
		})
		if err != nil {
			return fmt.Errorf("a page that must be there: %w", err)
		}
	}
	for name := range stored {
		if !reached[name] {
			return fmt.Errorf("page %v is reachable from nothing", name)
		}
	}
	return nil
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
		must.Do(t, db.CreateTag(bg, "v1", ids["c1"]))
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
			if got := mustExpire(t, db, o); !reflect.DeepEqual(got, dry) {
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
			if o := c.o(day); o.Keep > 0 && o.Before.IsZero() && o.Branches == nil {
				n := 0
				for _, err := range db.Reflog(bg, "main") {
					if n++; err != nil {
						t.Fatal(err)
					}
				}
				if n != o.Keep {
					t.Errorf("%d entries of the reflog stay, want %d", n, o.Keep)
				}
			}
			if dry.Kept != int64(len(kept)) || dry.Kept+dry.Expired != int64(len(ids)) {
				t.Errorf("report %+v", dry)
			}
			var held int64
			for _, h := range dry.Holders {
				held += h.Versions
			}
			if held != dry.Kept || !slices.ContainsFunc(dry.Holders, func(h Holder) bool { return h.Kind == collect.HolderTag && h.Name == "v1" }) {
				t.Errorf("%d versions stay, held by %+v", dry.Kept, dry.Holders)
			}
			if again := mustExpire(t, db, o); again.Expired != 0 || again.Reflog != 0 || again.Earlier != dry.Expired {
				t.Errorf("again: %+v", again)
			}
			mustGC(t, db)
			must.Do(t, untidy(db))
			n := 0
			for _, err := range db.Log(bg, mustHead(t, db)) {
				must.Do(t, err)
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
	must.Do(t, db.CreateBranch(bg, "side", old.ID))
	update(t, db, "side", map[string]string{"s": "1"})
	update(t, db, "main", map[string]string{"k": "2"})
	update(t, db, "main", map[string]string{"k": "3"})
	mustExpire(t, db, ExpireOptions{Keep: 1, DropBases: true})
	mustGC(t, db)
	for what, err := range map[string]error{
		"snapshot":    second(db.Snapshot(bg, old.ID)),
		"branch":      db.CreateBranch(bg, "b", old.ID),
		"tag":         db.CreateTag(bg, "t", old.ID),
		"reset":       second(db.Reset(bg, "main", old.ID)),
		"cherry-pick": second(db.CherryPick(bg, "main", old.ID, 0, CommitOptions{})),
		"rebase":      second(db.Rebase(bg, "side", mustHead(t, db), RebaseOptions{})),
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

// A version that has expired and is made again, as by the same import or rebase,
// is one like any other.
func TestExpiredIsMadeAgain(t *testing.T) {
	for _, d := range []Durability{DurabilitySync, DurabilityAsync, DurabilityNone} {
		o := testOptions(vfs.NewMem())
		o.Durability = d
		db := openTest(t, o)
		base := mustHead(t, db)
		content := map[string]string{"k": strings.Repeat("again", 50)}
		add := func() CommitID {
			s := mustBegin(t, db)
			set(t, s, content)
			c := must.Get(s.Commit(bg, CommitOptions{Message: "same", Time: time.Unix(1e9, 0)}))(t)
			return c.ID
		}
		first := add()
		must.Get(db.Reset(bg, "main", base))(t)
		mustExpire(t, db, ExpireOptions{Keep: 1})
		if gone, err := db.Expired(bg, first); !gone || err != nil {
			t.Fatalf("expired: %v, %v", gone, err)
		}
		if d == DurabilityNone {
			mustGC(t, db)
		}
		if again := add(); again != first {
			t.Fatalf("made %v, then %v", first, again)
		}
		for range 2 {
			if got := at(t, db, "main"); !maps.Equal(got, content) {
				t.Errorf("durability %v: %d keys", d, len(got))
			}
			mustGC(t, db)
		}
	}
}

func second[T any](_ T, err error) error { return err }

func mustResolve(t *testing.T, db *DB, rev string) CommitID {
	t.Helper()
	id := must.Get(db.Resolve(bg, rev))(t)
	return id
}

// Damage of a version that has not expired stops the collector before it
// removes anything, and is a problem for Check; that of an expired one is none.
func TestGCMeetsDamage(t *testing.T) {
	root := func(_ *testing.T, _ *DB, c *Commit) tree.Name { return c.Root.Name }
	leaf := func(t *testing.T, db *DB, c *Commit) tree.Name {
		dir, _, err := db.space.Dir(bg, c.Root, "a/")
		must.Do(t, err)
		return dir.Name
	}
	gone := func(*testing.T, *DB, tree.Name) []byte { return nil }
	other := func(t *testing.T, db *DB, name tree.Name) []byte {
		b := must.Get(db.idx.GetPage(bg, name))(t)
		return b
	}
	for _, c := range []struct {
		name string
		page func(t *testing.T, db *DB, c *Commit) tree.Name
		size int
		is   func(t *testing.T, db *DB, newer tree.Name) []byte
		want error
	}{
		{"page that leads to others", root, 1, gone, tree.ErrMissing},
		{"page with payloads", leaf, 1000, gone, tree.ErrMissing},
		{"another that leads to others", root, 1, other, tree.ErrCorrupt},
		{"another with payloads", leaf, 1000, other, tree.ErrCorrupt},
	} {
		run := func(t *testing.T, reopen bool) {
			mem := vfs.NewMem()
			db, err := Create("db", testOptions(mem))
			must.Do(t, err)
			first := update(t, db, "main", map[string]string{"a/k": strings.Repeat("1", c.size)})
			second := update(t, db, "main", map[string]string{"a/k": strings.Repeat("2", c.size)})
			name := c.page(t, db, first)
			setRecord(t, db, index.SpacePage, name[:], c.is(t, db, c.page(t, db, second)))
			if reopen {
				must.Do(t, db.Close())
				if db, err = Open("db", testOptions(mem)); err != nil {
					t.Fatal(err)
				}
			}
			before := len(must.Get(storedPages(db))(t))
			_, err = db.GC(bg, GCOptions{})
			if !errors.Is(err, c.want) {
				t.Errorf("gc of a damaged database: %v", err)
			}
			if after := len(must.Get(storedPages(db))(t)); after != before {
				t.Errorf("%d pages of %d are left", after, before)
			}
			r, err := db.Check(bg, CheckOptions{})
			if err != nil || len(r.Problems) == 0 {
				t.Errorf("check: %v, %v", r.Problems, err)
			}
			mustExpire(t, db, ExpireOptions{Keep: 1})
			mustGC(t, db)
			must.Do(t, untidy(db))
			closeChecked(t, db)
		}
		t.Run(c.name, func(t *testing.T) { run(t, true) })
		t.Run(c.name+" that is cached", func(t *testing.T) { run(t, false) })
	}
}

// A version that is kept by name outlives expiry and collections, that of a process which has ended too. Refs show none of it.
func TestKeptVersions(t *testing.T) {
	db := openTest(t, nil)
	old := update(t, db, "main", map[string]string{"k": payload("1")})
	update(t, db, "main", map[string]string{"k": payload("2")})
	if err := db.KeepVersion(bg, "a b", old.ID, ""); !errors.Is(err, ErrRefName) {
		t.Error(err)
	}
	if err := db.KeepVersion(bg, "x", CommitID{1}, ""); !errors.Is(err, ErrNoRef) {
		t.Error(err)
	}
	must.Do(t, db.KeepVersion(bg, "training", db.heads.list(catalog.HeadPrefix)[0].Commit, "a job"))
	must.Do(t, db.KeepVersion(bg, "training", old.ID, ""))
	must.Get(db.Expire(bg, ExpireOptions{Keep: 1}))(t)
	must.Get(db.GC(bg, GCOptions{}))(t)
	if got := at(t, db, old.ID.String()); got["k"] != payload("1") {
		t.Errorf("the version that is kept has %d keys", len(got))
	}
	if list := must.Get(db.KeptVersions(bg))(t); len(list) != 1 || list[0].Name != "training" || list[0].Commit != old.ID || !strings.Contains(list[0].Note, "process") {
		t.Errorf("%+v", list)
	}
	branches, tags, _ := db.Refs(bg)
	if len(branches) != 1 || len(tags) != 0 {
		t.Errorf("refs %v, %v", branches, tags)
	}
	if list := must.Get(db.EndKeptBefore(bg, time.Now().Add(-time.Hour)))(t); len(list) != 0 {
		t.Errorf("ended %+v", list)
	}
	must.Do(t, db.EndKept(bg, "training"))
	if err := db.EndKept(bg, "training"); !errors.Is(err, ErrNoRef) {
		t.Error(err)
	}
	must.Get(db.Expire(bg, ExpireOptions{Keep: 1}))(t)
	if err := db.KeepVersion(bg, "training", old.ID, ""); !errors.Is(err, ErrExpired) {
		t.Errorf("an expired version: %v", err)
	}
	if r := must.Get(db.GC(bg, GCOptions{}))(t); r.DeletedPages == 0 {
		t.Errorf("%+v", r)
	}
}

// The report says who holds what.
func TestGCExplain(t *testing.T) {
	db := openTest(t, nil)
	value := func(c string) string { return strings.Repeat(c, 10_000) }
	base := update(t, db, "main", map[string]string{"both": value("b"), "old": value("o")})
	must.Do(t, db.CreateBranch(bg, "side", base.ID))
	update(t, db, "main", map[string]string{"old": "", "main": value("m") + value("m")})
	update(t, db, "side", map[string]string{"old": "", "side": value("s")})
	before := len(must.Get(storedPages(db))(t))
	r := must.Get(db.GC(bg, GCOptions{DryRun: true, Explain: true}))(t)
	if len(must.Get(storedPages(db))(t)) != before {
		t.Error("a dry run deleted something")
	}
	got := map[string]int64{}
	for _, h := range r.Holders {
		got[h.Kind+" "+h.Name] = h.OnlyBytes
	}
	want := map[string]int64{
		"branch main": 20_000, "branch side": 10_000, "history ": 0,
		"merge base " + base.ID.Short(): 10_000,
	}
	for name, n := range want {
		// Headers between payloads may count.
		if got[name] < n || got[name] > n+500 || len(got) != len(want) {
			t.Errorf("held only by: %v, want %v", got, want)
		}
	}
}

// A page that an open session has spilled, and that nothing names yet because a
// write is under way, stays as long as the session is open.
func TestGCSparesSpilledPages(t *testing.T) {
	o := testOptions(vfs.NewMem())
	o.SessionBytes = 1
	db := openTest(t, o)
	s := mustBegin(t, db)
	page := bytes.Repeat([]byte("page"), 500)
	name := digest.Of(page)
	must.Do(t, s.pages.PutPage(bg, name, page))
	mustGC(t, db)
	if b, err := db.idx.GetPage(bg, name); err != nil || !bytes.Equal(b, page) {
		t.Fatalf("the page is gone: %v", err)
	}
	must.Do(t, s.Abort())
	mustGC(t, db)
	if _, err := db.idx.GetPage(bg, name); !errors.Is(err, index.ErrNotFound) {
		t.Errorf("after the session the page is there: %v", err)
	}
}

// What an open session copied from a version stays, though that has expired and
// nothing else reaches it.
func TestGCSparesWhatASessionCopied(t *testing.T) {
	for _, savepoint := range []bool{false, true} {
		db := openTest(t, nil)
		want := map[string]string{}
		for i := range 200 {
			want[fmt.Sprint("copy/c/", i)] = big(fmt.Sprint(i), 2000)
		}
		values := map[string]string{}
		for k, v := range want {
			values[strings.Replace(k, "copy", "old", 1)] = v
		}
		old := update(t, db, "main", values)
		must.Get(db.Reset(bg, "main", mustResolve(t, db, "main~1")))(t)
		s := mustBegin(t, db)
		src := must.Get(db.Snapshot(bg, old.ID))(t)
		must.Do(t, s.Copy(bg, src, "old", "copy"))
		src.Close()
		if savepoint {
			must.Do(t, s.Savepoint(bg))
		}
		if r := mustExpire(t, db, ExpireOptions{Keep: 1}); r.Expired == 0 {
			t.Fatal("nothing has expired")
		}
		mustGC(t, db)
		if got := contents(t, s); !maps.Equal(got, want) {
			t.Errorf("the session has %d values of %d", len(got), len(want))
		}
		must.Get(s.Commit(bg, CommitOptions{}))(t)
		if got := at(t, db, "main"); !maps.Equal(got, want) {
			t.Errorf("the commit has %d values of %d", len(got), len(want))
		}
		mustBeSound(t, db)
	}
}

// Space comes back to the file system: after an array was overwritten ten times
// and the old versions let go, little more than one copy is on disk, and nearly
// no room is taken on the way.
func TestGCDiskSpace(t *testing.T) {
	if testing.Short() {
		t.Skip("writes a lot")
	}
	o := testOptions(nil)
	dir := t.TempDir() + "/db"
	db := must.Get(Create(dir, o))(t)
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
			must.Do(t, s.Set(bg, fmt.Sprint("c/", i), payload))
		}
		must.Get(s.Commit(bg, CommitOptions{}))(t)
	}
	mustExpire(t, db, ExpireOptions{Keep: 1})
	before := allocated(t, dir)
	done, peaks := make(chan struct{}), make(chan int64)
	go func() {
		peak := before
		for {
			select {
			case <-done:
				peaks <- peak
				return
			default:
				peak = max(peak, allocated(t, dir))
			}
		}
	}()
	r := mustGC(t, db)
	close(done)
	peak, after := <-peaks, allocated(t, dir+"/packs") // beside them are files of fixed sizes
	t.Logf("one copy has %d bytes; allocated %d, at most %d, then %d; %+v", chunks*chunk, before, peak, after, r)
	if after > chunks*chunk*11/10 {
		t.Errorf("%d bytes are allocated for %d", after, chunks*chunk)
	}
	if peak-before > chunks*chunk/50 {
		t.Errorf("%d bytes more were allocated meanwhile", peak-before)
	}
	closeChecked(t, db)
}
