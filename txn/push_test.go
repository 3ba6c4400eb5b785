package txn

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
)

// refsOf are the refs of a database by stored name.
func refsOf(db *DB) map[string]CommitID {
	out := map[string]CommitID{}
	for _, r := range db.heads.list("") {
		out[r.Name] = r.Commit
	}
	return out
}

// pairOf makes a database with branches and tags, and a clone of its first state.
func pairOf(t *testing.T) (db, to *DB) {
	t.Helper()
	fs := vfs.NewMem()
	db = openTest(t, testOptions(fs))
	grow(t, db, 2, 0)
	must.Get(db.Clone(bg, "copy", TransferOptions{}))(t)
	to = openCopy(t, fs, "copy")
	for i, name := range []string{"x", "y"} {
		must.Do(t, db.CreateBranch(bg, name, mustHead(t, db)))
		c := update(t, db, name, map[string]string{name: big(name, 5000+i)})
		must.Do(t, db.CreateTag(bg, "t"+name, c.ID))
	}
	return db, to
}

func TestPushOfSeveralRefs(t *testing.T) {
	for _, c := range []struct {
		name string
		o    TransferOptions
		want string // source's name=destination's name
		err  error
	}{
		{"nothing is main", TransferOptions{}, "", nil},
		{"branches", TransferOptions{Refs: []RefSpec{{From: "x"}, {From: "y"}}}, "heads/x=heads/x heads/y=heads/y", nil},
		{"a branch and a tag", TransferOptions{Refs: []RefSpec{{From: "x"}, {From: "ty"}}}, "heads/x=heads/x tags/ty=tags/ty", nil},
		{"other names", TransferOptions{Refs: []RefSpec{{From: "x", To: "mine"}, {From: "ty", To: "mine"}}}, "heads/x=heads/mine tags/ty=tags/mine", nil},
		{"the same twice", TransferOptions{Refs: []RefSpec{{From: "x"}, {From: "x", Force: true}}}, "heads/x=heads/x", nil},
		{"all branches", TransferOptions{AllBranches: true}, "heads/x=heads/x heads/y=heads/y", nil},
		{"all tags", TransferOptions{AllTags: true}, "tags/tx=tags/tx tags/ty=tags/ty", nil},
		{"all, and one more", TransferOptions{AllBranches: true, AllTags: true, Refs: []RefSpec{{From: "x", To: "z"}}}, "heads/x=heads/x heads/y=heads/y heads/x=heads/z tags/tx=tags/tx tags/ty=tags/ty", nil},
		{"one that is not there", TransferOptions{Refs: []RefSpec{{From: "x"}, {From: "nope"}}}, "", ErrNoRef},
		{"a name that cannot be", TransferOptions{Refs: []RefSpec{{From: "x", To: "a~1"}}}, "", ErrRefName},
	} {
		t.Run(c.name, func(t *testing.T) {
			db, to := pairOf(t)
			want := refsOf(to)
			for _, pair := range strings.Fields(c.want) {
				from, name, _ := strings.Cut(pair, "=")
				want[name] = refsOf(db)[from]
			}
			r, err := db.Push(bg, to, c.o)
			if !errors.Is(err, c.err) {
				t.Fatal(err)
			}
			if got := refsOf(to); !maps.Equal(got, want) {
				t.Errorf("refs %v, want %v", got, want)
			}
			if n := len(strings.Fields(c.want)); len(r.Moves) != n {
				t.Errorf("%d moves, want %d", len(r.Moves), n)
			}
			for _, m := range r.Moves {
				if at(t, to, m.New.String())["a/note"] != "1" {
					t.Errorf("%s is not there", m.Ref)
				}
			}
		})
	}
}

// What is refused for one ref is refused for all, and all reasons are told.
func TestPushIsAllOrNothing(t *testing.T) {
	db, to := pairOf(t)
	must.Get(db.Push(bg, to, TransferOptions{AllBranches: true, AllTags: true}))(t)
	theirs := update(t, to, "x", map[string]string{"theirs": big("t", 3000)})
	update(t, db, "x", map[string]string{"ours": big("o", 3000)})
	moved := update(t, db, "y", map[string]string{"more": big("m", 3000)})
	must.Do(t, db.DeleteTag(bg, "tx"))
	must.Do(t, db.CreateTag(bg, "tx", moved.ID))
	before := refsOf(to)
	_, err := db.Push(bg, to, TransferOptions{AllBranches: true, AllTags: true})
	if !errors.Is(err, ErrDiverged) || !errors.Is(err, ErrConflict) ||
		!strings.Contains(fmt.Sprint(err), `branch "x"`) || !strings.Contains(fmt.Sprint(err), `tag "tx"`) {
		t.Fatalf("%v", err)
	}
	if got := refsOf(to); !maps.Equal(got, before) {
		t.Errorf("refs %v, were %v", got, before)
	}
	// A tag alone is ErrDiverged too.
	if _, err = db.Push(bg, to, TransferOptions{AllTags: true}); !errors.Is(err, ErrDiverged) || !errors.Is(err, ErrConflict) {
		t.Errorf("another tag: %v", err)
	}
	if _, err = db.Push(bg, to, TransferOptions{Refs: []RefSpec{{From: "x", Force: true}, {From: "y"}, {From: "tx"}}}); !errors.Is(err, ErrDiverged) {
		t.Errorf("one of them forced: %v", err)
	}
	if _, err = db.Push(bg, to, TransferOptions{Refs: []RefSpec{{From: "x", Force: true}, {From: "y"}}}); err != nil {
		t.Fatal(err)
	}
	if mustResolve(t, to, "x") != mustResolve(t, db, "x") || mustResolve(t, to, "y") != moved.ID {
		t.Error("heads differ")
	}
	if _, err := to.Snapshot(bg, theirs.ID); err != nil {
		t.Errorf("what was dropped: %v", err)
	}
	if _, err = db.Push(bg, to, TransferOptions{Refs: []RefSpec{{From: "x", To: "z"}, {From: "y", To: "z"}}}); err == nil {
		t.Error("two versions for one name")
	}
}

// A tag stays, also where a branch could go forward.
func TestPushMovesNoTag(t *testing.T) {
	db, to := pairOf(t)
	must.Get(db.Push(bg, to, TransferOptions{AllBranches: true, AllTags: true}))(t)
	before := refsOf(to)
	next := update(t, db, "x", map[string]string{"next": "1"})
	must.Do(t, db.DeleteTag(bg, "tx"))
	must.Do(t, db.CreateTag(bg, "tx", next.ID))
	_, err := db.Push(bg, to, TransferOptions{AllTags: true})
	if !errors.Is(err, ErrDiverged) || !strings.Contains(fmt.Sprint(err), `tag "tx"`) {
		t.Errorf("a tag on a later version: %v", err)
	}
	if got := refsOf(to); !maps.Equal(got, before) {
		t.Errorf("refs %v, were %v", got, before)
	}
	must.Get(db.Push(bg, to, TransferOptions{AllTags: true, Force: true}))(t)
	if got := mustResolve(t, to, "tx"); got != next.ID {
		t.Errorf("forced, the tag is %v", got)
	}
}

// Nothing is transferred into a database that is collecting garbage, which could
// take it for some.
func TestPushMeetsACollection(t *testing.T) {
	db, to := pairOf(t)
	before := refsOf(to)
	to.collecting.Lock()
	if _, err := db.Push(bg, to, TransferOptions{AllBranches: true}); !errors.Is(err, ErrCollecting) {
		t.Errorf("a push into a collection: %v", err)
	}
	to.collecting.Unlock()
	if got := refsOf(to); !maps.Equal(got, before) {
		t.Errorf("refs %v, were %v", got, before)
	}
	if _, err := db.Push(bg, to, TransferOptions{AllBranches: true}); err != nil {
		t.Error(err)
	}
}

// Commits that are not on disk yet are pushed too.
func TestPushOfDelayedCommits(t *testing.T) {
	o := testOptions(vfs.NewMem())
	o.Durability = DurabilityNone
	db, to := openTest(t, o), openTest(t, nil)
	want := map[string]string{"a": "1", "b/c": big("b", 3000)}
	c := update(t, db, "main", want)
	if db.pending.waiting.Load() == 0 {
		t.Fatal("nothing is delayed")
	}
	must.Get(db.Push(bg, to, TransferOptions{Force: true}))(t)
	if got := mustHead(t, to); got != c.ID {
		t.Errorf("head %v, pushed %v", got, c.ID)
	}
	if got := at(t, to, "main"); !maps.Equal(got, want) {
		t.Errorf("got %v", got)
	}
	mustBeSound(t, to)
}

// A power cut at any write of a push leaves all refs as they were, or all as they
// are to be.
func TestPushIsAllOrNothingAfterAPowerCut(t *testing.T) {
	mem := vfs.NewCrashableMem()
	db := must.Get(Create("db", testOptions(mem)))(t)
	grow(t, db, 2, 0)
	must.Get(db.Clone(bg, "copy", TransferOptions{}))(t)
	disk, images := imagesOf(mem, rand.New(rand.NewPCG(1, 1)), 1)
	disk.On(false) // the index removes old files beside all else
	to := openPlain(t, disk, "copy")
	for _, name := range []string{"x", "y", "z"} {
		must.Do(t, db.CreateBranch(bg, name, mustHead(t, db)))
	}
	update(t, db, "main", map[string]string{"new": big("new", 3000)})
	before := refsOf(to)
	disk.On(true)
	must.Get(db.Push(bg, to, TransferOptions{AllBranches: true}))(t)
	disk.On(false)
	after := refsOf(to)
	closeChecked(t, to)
	closeChecked(t, db)
	if len(after) != len(before)+3 || len(*images) == 0 {
		t.Fatalf("%v became %v, %d images", before, after, len(*images))
	}
	for _, image := range *images {
		to := openPlain(t, image.fs, "copy")
		if got := refsOf(to); !maps.Equal(got, before) && !maps.Equal(got, after) {
			t.Fatalf("at %s: %v is neither %v nor %v", image.op, got, before, after)
		}
		must.Do(t, to.Close())
	}
}

// A branch that moved while versions were carried is looked at again.
func TestPushMeetsACommit(t *testing.T) {
	for _, op := range []string{"push", "pull", "fetch"} {
		t.Run(op, func(t *testing.T) {
			db, to := pairOf(t)
			head := update(t, db, "main", map[string]string{"new": big("n", 3000)})
			var late *Commit
			o := TransferOptions{Progress: func(TransferProgress) {
				if late == nil {
					late = update(t, to, "main", map[string]string{"late": "1"})
				}
			}}
			run := map[string]func() (*TransferReport, error){
				"push":  func() (*TransferReport, error) { return db.Push(bg, to, o) },
				"pull":  func() (*TransferReport, error) { return to.Pull(bg, db, o) },
				"fetch": func() (*TransferReport, error) { return to.Fetch(bg, db, o) },
			}[op]
			_, err := run()
			if refused := op != "fetch"; errors.Is(err, ErrDiverged) != refused || late == nil {
				t.Fatalf("%v", err)
			}
			if mustHead(t, to) != late.ID {
				t.Fatal("the commit was dropped")
			}
			if op != "fetch" {
				return
			}
			c, err := to.Merge(bg, "main", head.ID, CommitOptions{})
			if err != nil || len(c.Parents) != 2 {
				t.Fatalf("%v, %v", c, err)
			}
			if got := at(t, to, "main"); got["late"] != "1" || got["new"] != big("n", 3000) {
				t.Error("merged wrongly")
			}
		})
	}
}

// A branch that was protected while versions were carried stays where it is.
func TestPushMeetsAProtection(t *testing.T) {
	for _, op := range []string{"push", "pull"} {
		db, to := pairOf(t)
		update(t, db, "main", map[string]string{"new": big("n", 3000)})
		was, late := mustHead(t, to), false
		o := TransferOptions{Progress: func(TransferProgress) {
			if !late {
				late = true
				must.Do(t, to.Protect(bg, "", false, Frozen))
			}
		}}
		run := map[string]func() (*TransferReport, error){
			"push": func() (*TransferReport, error) { return db.Push(bg, to, o) },
			"pull": func() (*TransferReport, error) { return to.Pull(bg, db, o) },
		}[op]
		if _, err := run(); !late || !errors.Is(err, ErrProtected) || mustHead(t, to) != was {
			t.Errorf("%s: %v, protected %t, moved %t", op, err, late, mustHead(t, to) != was)
		}
	}
}

func TestPullLeavesAloneWhatIsAhead(t *testing.T) {
	db, to := pairOf(t)
	if r, err := to.Pull(bg, db, TransferOptions{AllBranches: true, AllTags: true}); err != nil || len(r.Moves) != 4 || r.Moves[0].Op != "pull" {
		t.Fatalf("%+v, %v", r, err)
	}
	ahead := update(t, to, "main", map[string]string{"n": big("n", 3000)})
	update(t, db, "x", map[string]string{"n": big("n", 3000)})
	r, err := to.Pull(bg, db, TransferOptions{AllBranches: true})
	if err != nil || len(r.Moves) != 1 || r.Commits != 1 || len(r.Refs) != 3 {
		t.Fatalf("%+v, %v", r, err)
	}
	if mustHead(t, to) != ahead.ID {
		t.Error("main moved")
	}
	// Forced, it goes back.
	if r, err = to.Pull(bg, db, TransferOptions{Force: true}); err != nil || mustHead(t, to) != mustHead(t, db) {
		t.Errorf("%+v, %v", r, err)
	}
}

// What was fetched is there after a collection and a restart, and expires as other
// versions do.
func TestFetch(t *testing.T) {
	fs := vfs.NewMem()
	db := openTest(t, testOptions(fs))
	grow(t, db, 2, 0)
	must.Get(db.Clone(bg, "copy", TransferOptions{}))(t)
	grow(t, db, 3, 2)
	to := openPlain(t, fs, "copy")
	before := refsOf(to)
	r, err := to.Fetch(bg, db, TransferOptions{})
	if err != nil || r.Commits != 3 || len(r.Moves) != 0 || len(r.Refs) != 1 || r.Refs[0] != (Ref{Name: "heads/main", Commit: mustHead(t, db)}) {
		t.Fatalf("%+v, %v", r, err)
	}
	mustGC(t, to)
	closeChecked(t, to)
	to = openCopy(t, fs, "copy")
	if !maps.Equal(refsOf(to), before) {
		t.Error("a ref moved")
	}
	if got, want := at(t, to, r.Refs[0].Commit.String()), at(t, db, "main"); !maps.Equal(got, want) {
		t.Error("the version differs")
	}
	if r, err := to.Fetch(bg, db, TransferOptions{}); err != nil || r.Commits+r.Pages != 0 {
		t.Errorf("again: %+v, %v", r, err)
	}
	mustExpire(t, to, ExpireOptions{Keep: 1})
	mustGC(t, to)
	if _, err := to.Snapshot(bg, r.Refs[0].Commit); !errors.Is(err, ErrExpired) {
		t.Errorf("after expiry: %v", err)
	}
	if r, err = to.Pull(bg, db, TransferOptions{}); err != nil || r.Commits == 0 || mustHead(t, to) != mustHead(t, db) {
		t.Errorf("%+v, %v", r, err)
	}
	ctx, cancel := context.WithCancel(bg)
	cancel()
	if _, err := to.Fetch(ctx, db, TransferOptions{}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// A small payload between two that the destination has is not taken for there.
func TestPushOfWhatLiesBetween(t *testing.T) {
	fs := vfs.NewMem()
	db := openTest(t, testOptions(fs))
	must.Do(t, db.CreateBranch(bg, "side", mustHead(t, db)))
	update(t, db, "main", map[string]string{"a": big("a", 70_000)})
	must.Get(db.Clone(bg, "copy", TransferOptions{Branch: "main"}))(t)
	to := openCopy(t, fs, "copy")
	update(t, db, "side", map[string]string{"b": big("b", 1500)})
	update(t, db, "main", map[string]string{"c": big("c", 70_000)})
	must.Get(db.Push(bg, to, TransferOptions{}))(t)
	must.Do(t, db.CreateBranch(bg, "both", mustHead(t, db)))
	must.Get(db.Merge(bg, "both", mustResolve(t, db, "side"), CommitOptions{}))(t)
	r, err := db.Push(bg, to, TransferOptions{Refs: []RefSpec{{From: "both"}}})
	if err != nil || r.Verified != 1 || r.PresentBytes != 0 {
		t.Errorf("%+v, %v", r, err)
	}
	if got, want := at(t, to, "both"), at(t, db, "both"); !maps.Equal(got, want) {
		t.Error("the copy differs")
	}
}

// However many versions come at once, no more is read and written than what is new
// in each.
func TestPushOfManyVersionsCostsTheirChanges(t *testing.T) {
	if testing.Short() {
		t.Skip("the work of one goroutine, many times")
	}
	fs := vfs.NewMem()
	db := openTest(t, testOptions(fs))
	all := map[string]string{}
	for i := range 3000 {
		all[fmt.Sprintf("a/c/%d", i)] = big(fmt.Sprint("v", i), 1100)
	}
	update(t, db, "main", all)
	var dirs []*DB
	for _, dir := range []string{"one by one", "at once"} {
		must.Get(db.Clone(bg, dir, TransferOptions{}))(t)
		dirs = append(dirs, openCopy(t, fs, dir))
	}
	var pages, payloads int64
	for i := range 20 {
		update(t, db, "main", map[string]string{fmt.Sprintf("a/c/%d", i*149): big(fmt.Sprint("w", i), 1100)})
		r, err := db.Push(bg, dirs[0], TransferOptions{})
		if err != nil || r.Verified != 1 || r.PresentBytes != 0 || r.Pages > 8 {
			t.Fatalf("%+v, %v", r, err)
		}
		pages, payloads = pages+r.Pages, payloads+r.PayloadBytes
	}
	r, err := db.Push(bg, dirs[1], TransferOptions{})
	if err != nil || r.Pages != pages || r.PayloadBytes > payloads+20*8 || r.Verified != 20 || r.PresentBytes != 0 {
		t.Errorf("one by one %d pages, %d bytes; at once %+v, %v", pages, payloads, r, err)
	}
	// What lies between expired versions too.
	for i := range 20 {
		update(t, db, "main", map[string]string{fmt.Sprintf("a/c/%d", i*149): big(fmt.Sprint("x", i), 1100)})
	}
	mustExpire(t, db, ExpireOptions{Keep: 1})
	r, err = db.Push(bg, dirs[1], TransferOptions{})
	if err != nil || r.Commits != 1 || r.Verified != 20 || r.PresentBytes != 0 || r.Pages > 20*3+2 {
		t.Errorf("%+v, %v", r, err)
	}
}

// A version that the destination lets go while a ref to it is pushed can be read
// there afterwards: what it holds is there, since nothing is collected meanwhile.
func TestPushBesideExpireThere(t *testing.T) {
	fs := vfs.NewMem()
	db := openTest(t, testOptions(fs))
	old := update(t, db, "main", map[string]string{"x": big("x", 3000)})
	update(t, db, "main", map[string]string{"x": big("y", 3000)})
	must.Get(db.Clone(bg, "copy", TransferOptions{}))(t)
	to := openCopy(t, fs, "copy")
	must.Do(t, db.CreateTag(bg, "old", old.ID))
	update(t, db, "main", map[string]string{"x": big("z", 3000)}) // something to copy
	expired := false
	o := TransferOptions{Refs: []RefSpec{{From: "old"}, {From: "main"}}, Progress: func(TransferProgress) {
		if !expired {
			expired = true
			mustExpire(t, to, ExpireOptions{Keep: 1})
		}
	}}
	if _, err := db.Push(bg, to, o); err != nil || !expired {
		t.Fatalf("%v, expired %t", err, expired)
	}
	mustGC(t, to)
	if got, want := at(t, to, "old"), at(t, db, "old"); !maps.Equal(got, want) {
		t.Errorf("got %d keys, want %d", len(got), len(want))
	}
}

// A database that was just made is empty for the first push and pull.
func TestPushIntoANewDatabase(t *testing.T) {
	for _, op := range []string{"push", "pull"} {
		fs := vfs.NewMem()
		db := openTest(t, testOptions(fs))
		update(t, db, "main", map[string]string{"a": "1"})
		to := must.Get(Create("new", testOptions(fs)))(t)
		defer closeChecked(t, to)
		carry := func() error {
			if op == "push" {
				return second(db.Push(bg, to, TransferOptions{}))
			}
			return second(to.Pull(bg, db, TransferOptions{}))
		}
		if err := carry(); err != nil || mustHead(t, to) != mustHead(t, db) {
			t.Errorf("%s: %v", op, err)
		}
		// One with a commit is not.
		other := must.Get(Create("other", testOptions(fs)))(t)
		defer closeChecked(t, other)
		update(t, other, "main", map[string]string{"b": "1"})
		to = other
		if err := carry(); !errors.Is(err, ErrDiverged) {
			t.Errorf("%s into a database with a commit: %v", op, err)
		}
	}
}

// A push with Prune deletes what the source does not have, but never main, and no
// version that only the destination has.
func TestPushPrunes(t *testing.T) {
	fs := vfs.NewMem()
	db := openTest(t, testOptions(fs))
	c := update(t, db, "main", map[string]string{"a": "1"})
	must.Do(t, errors.Join(db.CreateBranch(bg, "old", c.ID), db.CreateTag(bg, "v0", c.ID), db.CreateBranch(bg, "kept", c.ID)))
	must.Get(db.Clone(bg, "copy", TransferOptions{}))(t)
	to := openCopy(t, fs, "copy")
	must.Do(t, errors.Join(db.DeleteBranch(bg, "old"), db.DeleteTag(bg, "v0"), to.CreateBranch(bg, "own", c.ID)))
	update(t, to, "own", map[string]string{"b": "1"})
	names := func() string {
		var out []string
		for _, r := range to.heads.list("") {
			out = append(out, r.Name)
		}
		return strings.Join(out, " ")
	}
	before := names()
	push := func(o TransferOptions) (*TransferReport, error) { return db.Push(bg, to, o) }
	if _, err := push(TransferOptions{Prune: true}); err == nil || names() != before {
		t.Errorf("without a kind of refs: %v, %s", err, names())
	}
	if _, err := push(TransferOptions{AllBranches: true, Prune: true}); !errors.Is(err, ErrDiverged) || !strings.Contains(err.Error(), `"own"`) || names() != before {
		t.Errorf("with a version of its own: %v, %s", err, names())
	}
	if r, err := push(TransferOptions{AllBranches: true, AllTags: true, Prune: true, Force: true, DryRun: true}); err != nil || len(r.Moves) != 3 || names() != before {
		t.Errorf("dry run: %+v, %v, %s", r, err, names())
	}
	if r, err := push(TransferOptions{AllTags: true, Prune: true}); err != nil || len(r.Moves) != 1 || names() != "heads/kept heads/main heads/old heads/own" {
		t.Errorf("tags: %+v, %v, %s", r, err, names())
	}
	must.Do(t, db.DeleteBranch(bg, "main"))
	if r, err := push(TransferOptions{AllBranches: true, Prune: true, Force: true}); err != nil || len(r.Moves) != 2 || names() != "heads/kept heads/main" {
		t.Errorf("branches: %+v, %v, %s", r, err, names())
	}
	if m, err := to.UndoBranch(bg, "own"); err != nil || m.New.IsZero() {
		t.Errorf("undo: %+v, %v", m, err)
	}
}

// A missing pack of the source is damage of the source.
func TestPushNamesAMissingPack(t *testing.T) {
	fs := vfs.NewMem()
	db := must.Get(Create("db", testOptions(fs)))(t)
	defer db.Close()
	update(t, db, "main", map[string]string{"a": big("a", 5000)})
	remove(t, fs, packFiles(t, fs)...)
	to := must.Get(Create("new", testOptions(fs)))(t)
	defer closeChecked(t, to)
	for what, err := range map[string]error{
		"push":  second(db.Push(bg, to, TransferOptions{})),
		"clone": second(db.Clone(bg, "copy", TransferOptions{})),
	} {
		if !errors.Is(err, kv.ErrCorrupt) || errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "fsck of db") {
			t.Errorf("%s: %v", what, err)
		}
	}
}
