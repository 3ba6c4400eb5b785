package txn

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/index"
	"github.com/zarrdb/zarrdb/txn/internal/catalog"
	"github.com/zarrdb/zarrdb/txn/internal/collect"
)

// A disk that is full of old versions can be cleared: letting go is admitted
// where writing is not.
func TestFullDiskIsCleared(t *testing.T) {
	var free atomic.Uint64
	free.Store(1 << 40)
	db := openTest(t, &Options{FS: freeFS{vfs.NewMem(), &free}})
	old := update(t, db, "main", map[string]string{"a": "1"})
	update(t, db, "main", map[string]string{"a": "2"})
	must.Do(t, errors.Join(db.CreateBranch(bg, "side", old.ID), db.CreateTag(bg, "v1", old.ID)))
	free.Store(8 << 20)
	if err := db.CreateBranch(bg, "more", old.ID); !errors.Is(err, index.ErrFull) {
		t.Errorf("new branch: %v", err)
	}
	if err := errors.Join(db.DeleteBranch(bg, "side"), db.DeleteTag(bg, "v1")); err != nil {
		t.Errorf("delete: %v", err)
	}
	if _, err := db.Reset(bg, "main", old.ID); err != nil {
		t.Errorf("reset: %v", err)
	}
	if r, err := db.Expire(bg, ExpireOptions{Keep: 1}); err != nil || r.Expired == 0 {
		t.Errorf("expire: %+v %v", r, err)
	}
	if _, err := db.GC(bg, GCOptions{}); err != nil {
		t.Errorf("gc: %v", err)
	}
	if got := at(t, db, "main"); got["a"] != "1" {
		t.Errorf("%v", got)
	}
}

// A session that was refreshed can be closed and resumed at its savepoint, so the
// base of either stays.
func TestExpireKeepsTheBaseOfASavepoint(t *testing.T) {
	db := openTest(t, nil)
	base := update(t, db, "main", map[string]string{"a": "1"})
	s, err := db.Begin(bg, "main")
	must.Do(t, err)
	must.Do(t, errors.Join(s.Set(bg, "b", []byte("mine")), s.Savepoint(bg)))
	for i := range 4 {
		update(t, db, "main", map[string]string{"a": fmt.Sprint(i + 2)})
	}
	must.Do(t, s.Refresh(bg, nil))
	must.Get(db.Expire(bg, ExpireOptions{Keep: 1}))(t)
	if gone, err := db.Expired(bg, base.ID); gone || err != nil {
		t.Errorf("the base of the savepoint has expired: %v, %v", gone, err)
	}
	must.Do(t, s.Close())
	if s, err = db.Resume(bg, s.ID()); err != nil {
		t.Fatal(err)
	}
	must.Get(s.Commit(bg, CommitOptions{}))(t)
	if got := at(t, db, "main"); got["a"] != "5" || got["b"] != "mine" {
		t.Errorf("%v", got)
	}
}

// Expire beside others: what comes to point at a version after it was chosen, and
// before it is marked, keeps it.
func TestExpireKeepsWhatCameMeanwhile(t *testing.T) {
	for _, branches := range [][]string{nil, {"main"}} {
		db := openTest(t, nil)
		var ids []CommitID
		for i := range 12 {
			ids = append(ids, update(t, db, "main", map[string]string{"k": fmt.Sprint(i)}).ID)
		}
		must.Do(t, db.CreateBranch(bg, "other", ids[11]))
		must.Do(t, db.DeleteBranch(bg, "other"))
		o := ExpireOptions{Keep: 2, Branches: branches, DryRun: true}
		if r := mustExpire(t, db, o); r.Expired < 9 {
			t.Fatalf("branches %v: %+v", branches, r)
		}
		o.DryRun = false
		expireBeside(t, db, o, func() {
			must.Do(t, db.CreateTag(bg, "t", ids[1]))
			must.Do(t, db.CreateBranch(bg, "b", ids[5]))
			s := must.Get(db.Begin(bg, "b"))(t)
			t.Cleanup(func() { s.Abort() })
			must.Do(t, db.DeleteBranch(bg, "b")) // its reflog still names it
			must.Do(t, db.CreateBranch(bg, "c", ids[7]))
		})
		kept := map[int]bool{1: true, 5: true, 7: true, 10: true, 11: true}
		if branches == nil {
			kept[6] = true // one below the head of c
		} else {
			for i := range 8 {
				kept[i] = true // what c and t reach, which are not selected
			}
		}
		for i, id := range ids {
			gone, err := db.Expired(bg, id)
			if err != nil || gone == kept[i] {
				t.Errorf("branches %v: version %d expired: %v, want %v; %v", branches, i, gone, !kept[i], err)
			}
		}
	}
}

// besides is a database where something happens after an expiry has looked at it, and before
// versions are marked. It counts the commits that are read.
type besides struct {
	core
	do   func()
	read *atomic.Int64
}

func (b besides) Publish(ctx context.Context, fn func() error) error {
	b.do()
	return b.core.Publish(ctx, fn)
}

func (b besides) Lookup(ctx context.Context, id CommitID) (*Commit, error) {
	b.read.Add(1)
	return b.core.Lookup(ctx, id)
}

// expireBeside lets versions expire while do happens, and returns how many commits were read.
func expireBeside(t *testing.T, db *DB, o ExpireOptions, do func()) (read int64) {
	t.Helper()
	var n atomic.Int64
	db.care.DB = besides{core{db}, do, &n}
	defer func() { db.care.DB = core{db} }()
	must.Get(collect.Expire(bg, &db.care, core{db}, o))(t)
	return n.Load()
}

// The history that many refs share is read once.
func TestExpireReadsSharedHistoryOnce(t *testing.T) {
	o := testOptions(vfs.NewMem())
	o.Durability = DurabilityNone
	db := openTest(t, o)
	const commits, tags = 200, 50
	for i := range commits {
		update(t, db, "main", map[string]string{"k": fmt.Sprint(i)})
	}
	head := must.Get(db.Head(bg, "main"))(t)
	for i := range tags {
		must.Do(t, db.CreateTag(bg, fmt.Sprint("t", i), must.Get(db.Resolve(bg, fmt.Sprintf("%v~%d", head, i)))(t)))
	}
	if read := expireBeside(t, db, ExpireOptions{Keep: 1, Branches: []string{"main"}, DropBases: true}, func() {}); read > 2*(commits+1+tags) {
		t.Errorf("%d commits were read for %d tags on a history of %d", read, tags, commits+1)
	}
}

// Which versions go does not depend on which refs were walked before: a random
// history with merges, against the plain definition.
func TestExpireBranchesIsUnionOfHistories(t *testing.T) {
	for seed := range uint64(20) {
		rnd := rand.New(rand.NewPCG(seed, 5))
		db := openTest(t, nil)
		branches := []string{"main", "a", "b", "c"}
		for _, b := range branches[1:] {
			must.Do(t, db.CreateBranch(bg, b, mustResolve(t, db, "main")))
		}
		for i := range 40 {
			b, from := branches[rnd.IntN(4)], branches[rnd.IntN(4)]
			if rnd.IntN(3) == 0 {
				if _, err := db.Merge(bg, b, mustResolve(t, db, from), CommitOptions{}); err != nil {
					continue // several best ancestors
				}
			} else {
				update(t, db, b, map[string]string{fmt.Sprint(b, i): "v"})
			}
			if rnd.IntN(8) == 0 {
				must.Do(t, db.CreateTag(bg, fmt.Sprint("t", i), mustResolve(t, db, b)))
			}
		}
		keep := 1 + rnd.IntN(4)
		selected := branches[:1+rnd.IntN(3)]
		want := map[CommitID]bool{} // true: stays
		for pass := range 2 {
			for _, r := range db.heads.list("") {
				sel := catalog.IsHead(r.Name) && slices.Contains(selected, r.Name[len(catalog.HeadPrefix):])
				n := 0
				for c, err := range db.Log(bg, r.Commit) {
					must.Do(t, err)
					if pass == 0 && sel {
						want[c.ID] = false
					}
					if pass == 1 && (!sel || n < keep) {
						want[c.ID] = true
					}
					n++
				}
			}
		}
		for m := range reflogEnds(t, db, selected, keep) {
			want[m] = true
		}
		must.Get(db.Expire(bg, ExpireOptions{Keep: keep, Branches: selected}))(t)
		for id, stays := range want {
			if gone, err := db.Expired(bg, id); err != nil || gone == stays {
				t.Errorf("seed %d: %v expired: %v, want %v; %v", seed, id.Short(), gone, !stays, err)
			}
		}
	}
}

// reflogEnds are the versions that reflogs keep: of other refs all, of selected
// ones what the newest moves went to.
func reflogEnds(t *testing.T, db *DB, selected []string, keep int) map[CommitID]bool {
	t.Helper()
	out := map[CommitID]bool{}
	for _, r := range db.heads.list("") {
		n := 0
		for m, err := range db.reflog(bg, r.Name) {
			must.Do(t, err)
			if !catalog.IsHead(r.Name) || !slices.Contains(selected, r.Name[len(catalog.HeadPrefix):]) {
				out[m.Old], out[m.New] = true, true
			} else if n < max(keep, 1) {
				out[m.New] = true
			}
			n++
		}
	}
	delete(out, CommitID{})
	return out
}

// Two branches stay mergeable whatever expires, unless their base is let go: then they
// merge by deciding every difference.
func TestExpireKeepsMergeBases(t *testing.T) {
	for _, drop := range []bool{false, true} {
		db := openTest(t, nil)
		base := update(t, db, "main", map[string]string{"a": "0", "b": "0", "gone": "x"})
		must.Do(t, db.CreateBranch(bg, "f", base.ID))
		for i := range 3 {
			update(t, db, "main", map[string]string{"a": fmt.Sprint(i + 1), "gone": ""})
			update(t, db, "f", map[string]string{"b": fmt.Sprint(i + 1)})
		}
		o := ExpireOptions{Keep: 1, DropBases: drop, DryRun: true}
		r, err := db.Expire(bg, o)
		must.Do(t, err)
		named := slices.ContainsFunc(r.Holders, func(h Holder) bool { return h.Kind == collect.HolderBase && h.Versions == 1 })
		if named == drop {
			t.Errorf("drop %v: holders %v", drop, r.Holders)
		}
		o.DryRun = false
		mustExpire(t, db, o)
		mustGC(t, db)
		other := mustResolve(t, db, "f")
		_, err = db.Merge(bg, "main", other, CommitOptions{})
		if drop {
			var conflict *ConflictError
			if !errors.As(err, &conflict) || len(conflict.Conflicts) != 3 {
				t.Fatalf("without a base: %v", err)
			}
			_, err = db.Merge(bg, "main", other, CommitOptions{Choices: []PathChoice{{Choice: Ours}, {Path: "b", Choice: Theirs}}})
		}
		must.Do(t, err)
		if got := at(t, db, "main"); len(got) != 2 || got["a"] != "3" || got["b"] != "3" {
			t.Errorf("drop %v: %v", drop, got)
		}
	}
}

// A version that refs come to share while expiry looks at the rest stays.
func TestExpireKeepsBasesThatCameMeanwhile(t *testing.T) {
	db := openTest(t, nil)
	base := update(t, db, "main", map[string]string{"a": "1"})
	fork := update(t, db, "main", map[string]string{"a": "2"})
	must.Do(t, db.CreateBranch(bg, "side", fork.ID))
	side := update(t, db, "side", map[string]string{"s": "1"})
	must.Do(t, db.DeleteBranch(bg, "side"))
	for i := range 4 {
		update(t, db, "main", map[string]string{"a": fmt.Sprint(i + 3)})
	}
	if r := mustExpire(t, db, ExpireOptions{Keep: 1, DryRun: true}); r.Kept != 1 {
		t.Fatalf("%+v", r)
	}
	expireBeside(t, db, ExpireOptions{Keep: 1}, func() { must.Do(t, db.CreateBranch(bg, "side", side.ID)) })
	for id, want := range map[CommitID]bool{base.ID: true, fork.ID: false} {
		if gone, err := db.Expired(bg, id); err != nil || gone != want {
			t.Errorf("%v has expired: %v, %v", id, gone, err)
		}
	}
}

// A base that is no ancestor of a side is refused, with what it would undo.
func TestMergeRefusesABaseOfOneSide(t *testing.T) {
	db, _ := forked(t)
	main, side := mustResolve(t, db, "main"), mustResolve(t, db, "side")
	var undone *BaseError
	if _, err := db.Merge(bg, "main", side, CommitOptions{Base: main}); !errors.As(err, &undone) || len(undone.Undone) != 2 || undone.Undone[0].Message != "u2" {
		t.Fatalf("%v", err)
	}
	must.Get(db.Merge(bg, "main", side, CommitOptions{Base: main, ForceBase: true}))(t)
	if got := at(t, db, "main"); got["x"] != "0" {
		t.Errorf("%v", got)
	}
}

// RevertTo goes back by going forward.
func TestRevertTo(t *testing.T) {
	db, base := forked(t)
	before := mustHead(t, db)
	c, err := db.RevertTo(bg, "main", base, CommitOptions{})
	if err != nil || len(c.Parents) != 1 || c.Parents[0] != before {
		t.Fatalf("%+v, %v", c, err)
	}
	if got := at(t, db, "main"); len(got) != 2 || got["x"] != "0" || got["y"] != "0" {
		t.Errorf("%v", got)
	}
	if again, err := db.RevertTo(bg, "main", base, CommitOptions{}); err != nil || again.ID != c.ID {
		t.Errorf("a second time: %v, %v", again, err)
	}
}

// A version that expired while somebody has it open can be opened again by its full id, also
// after a collection. When the last one is closed, the version is gone.
func TestOpenHeldVersion(t *testing.T) {
	db := openTest(t, nil)
	old := update(t, db, "main", map[string]string{"a": "1"})
	first := must.Get(db.At(bg, "main"))(t)
	update(t, db, "main", map[string]string{"a": "2"})
	must.Get(db.Expire(bg, ExpireOptions{Keep: 1}))(t)
	must.Get(db.GC(bg, GCOptions{}))(t)
	if _, err := db.At(bg, old.ID.Short()); !errors.Is(err, ErrExpired) {
		t.Errorf("by a part of the id: %v", err)
	}
	if err := db.CreateTag(bg, "v1", old.ID); !errors.Is(err, ErrExpired) {
		t.Errorf("a tag of an expired version: %v", err)
	}
	second := must.Get(db.At(bg, old.ID.String()))(t)
	must.Do(t, first.Close())
	must.Get(db.GC(bg, GCOptions{}))(t)
	third := must.Get(db.Snapshot(bg, old.ID))(t)
	must.Do(t, second.Close())
	must.Get(db.GC(bg, GCOptions{}))(t)
	if b, err := third.Get(bg, "a", kv.All()); err != nil || string(b) != "1" {
		t.Errorf("%q, %v", b, err)
	}
	must.Do(t, third.Close())
	if _, err := db.Snapshot(bg, old.ID); !errors.Is(err, ErrExpired) {
		t.Errorf("after the last one was closed: %v", err)
	}
}

// A peer that is away has written into its file what it has open. The next process keeps these
// versions, opens them again for others, and keeps none that the peer has closed since.
func TestListedVersions(t *testing.T) {
	fs := vfs.NewMem()
	o := testOptions(fs)
	o.lives = func(string) bool { return true }
	db := must.Get(Create("db", o))(t)
	old := update(t, db, "main", map[string]string{"a": "1"})
	visit := must.Get(db.Visit("", "process 1"))(t)
	must.Do(t, visit.File.Close())
	update(t, db, "main", map[string]string{"a": "2"})
	must.Get(db.Expire(bg, ExpireOptions{Keep: 1}))(t)
	must.Do(t, db.Close())
	list := func(lines string) {
		f := must.Get(fs.Create("db/peers/"+visit.Name, vfs.WriteCategoryUnspecified))(t)
		must.Get(f.Write([]byte("process 1" + lines)))(t)
		must.Do(t, f.Close())
	}

	db = must.Get(Open("db", o))(t)
	defer closeChecked(t, db)
	for _, lines := range []string{"", "\nno id\n"} {
		list(lines)
		if _, err := db.GC(bg, GCOptions{}); !errors.Is(err, ErrPeersAway) {
			t.Fatalf("with a file that ends in %q: %v", lines, err)
		}
	}
	list("\n" + strings.Repeat(" ", 40) + "\n" + strings.Repeat("\x00", 41) + old.ID.String() + "\n" + strings.Repeat("0", 40) + "\n")
	must.Do(t, must.Get(db.Snapshot(bg, old.ID))(t).Close())
	must.Get(db.GC(bg, GCOptions{}))(t)
	s := must.Get(db.At(bg, old.ID.String()))(t)
	if b, err := s.Get(bg, "a", kv.All()); err != nil || string(b) != "1" {
		t.Errorf("%q, %v", b, err)
	}
	must.Do(t, s.Close())
	list("\n")
	must.Get(db.GC(bg, GCOptions{}))(t)
	if _, err := db.Snapshot(bg, old.ID); !errors.Is(err, ErrExpired) {
		t.Errorf("after the peer has closed it: %v", err)
	}
	list("\n" + old.ID.String()) // of a version that was collected
	must.Get(db.GC(bg, GCOptions{}))(t)
	list("\n")
}
