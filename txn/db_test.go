package txn

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/index"
	"github.com/zarrdb/zarrdb/kv/kvtest"
)

func TestCreateAndOpen(t *testing.T) {
	fs := vfs.NewMem()
	if _, err := Open("db", testOptions(fs)); !errors.Is(err, ErrNotDatabase) {
		t.Fatalf("open of nothing: %v", err)
	}
	db := must.Get(Create("db", testOptions(fs)))(t)
	update(t, db, "main", map[string]string{"a": "1", "b/c": strings.Repeat("x", 5000)})
	want := at(t, db, "main")
	closeChecked(t, db)
	if _, err := db.At(bg, "main"); !errors.Is(err, ErrClosed) {
		t.Errorf("use after close: %v", err)
	}
	if _, err := Create("db", testOptions(fs)); !errors.Is(err, ErrExists) {
		t.Errorf("create over a database: %v", err)
	}
	db = must.Get(Open("db", testOptions(fs)))(t)
	defer closeChecked(t, db)
	if got := at(t, db, ""); !maps.Equal(got, want) {
		t.Errorf("after reopening: %v", got)
	}
}

func TestNewerFormatIsRefusedByName(t *testing.T) {
	fs := vfs.NewMem()
	db, err := Create("db", testOptions(fs))
	must.Do(t, err)
	closeChecked(t, db)
	f := must.Get(fs.Create("db/"+FormatFile, index.WriteCategory))(t)
	fmt.Fprintf(f, "zarrdb %d\n", Format+1)
	f.Close()
	_, err = Open("db", testOptions(fs))
	var fe *index.FormatError
	if !errors.As(err, &fe) || fe.Have != Format+1 || fe.Known != Format {
		t.Errorf("got %v", err)
	}
}

func TestCreateRefusesOtherFiles(t *testing.T) {
	fs := vfs.NewMem()
	must.Do(t, fs.MkdirAll("db", 0o755))
	f := must.Get(fs.Create("db/precious", index.WriteCategory))(t)
	f.Close()
	if _, err := Create("db", testOptions(fs)); !errors.Is(err, ErrExists) {
		t.Errorf("got %v", err)
	}
}

func TestSessionsAreIsolated(t *testing.T) {
	db := openTest(t, nil)
	update(t, db, "main", map[string]string{"a": "1", "gone": "x"})
	before := must.Get(db.At(bg, "main"))(t)
	defer before.Close()
	s, _ := db.Begin(bg, "main")
	other, _ := db.Begin(bg, "main")
	set(t, s, map[string]string{"a": "2", "new": "n", "gone": ""})
	want := map[string]string{"a": "2", "new": "n"}
	if got := contents(t, s); !maps.Equal(got, want) {
		t.Errorf("the session sees %v", got)
	}
	old := map[string]string{"a": "1", "gone": "x"}
	for name, v := range map[string]kv.ReadLister{"another session": other, "the snapshot": before} {
		if got := contents(t, v); !maps.Equal(got, old) {
			t.Errorf("%s sees %v", name, got)
		}
	}
	c := must.Get(s.Commit(bg, CommitOptions{Message: "m", Properties: map[string]string{"k": "v"}}))(t)
	if got := at(t, db, "main"); !maps.Equal(got, want) {
		t.Errorf("main is %v", got)
	}
	if got := contents(t, before); !maps.Equal(got, old) {
		t.Errorf("the snapshot moved to %v", got)
	}
	again, err := db.Lookup(bg, c.ID)
	if err != nil || again.Message != "m" || again.Author != "tester" || again.Properties["k"] != "v" || len(again.Parents) != 1 {
		t.Errorf("commit reads back as %+v, %v", again, err)
	}
	if err := s.Set(bg, "late", nil); !errors.Is(err, ErrSessionClosed) {
		t.Errorf("write after commit: %v", err)
	}
	if err := other.Abort(); err != nil {
		t.Error(err)
	}
}

func TestEmptyCommitMakesNone(t *testing.T) {
	db := openTest(t, nil)
	c := update(t, db, "main", map[string]string{"a": "1"})
	if again := update(t, db, "main", map[string]string{"a": "1"}); again.ID != c.ID {
		t.Error("setting equal bytes made a commit")
	}
	s, _ := db.Begin(bg, "main")
	forced, err := s.Commit(bg, CommitOptions{AllowEmpty: true})
	if err != nil || forced.ID == c.ID || forced.Root != c.Root {
		t.Errorf("%+v, %v", forced, err)
	}
}

// Few edits are made on the head when they are committed; those of a session
// with pages of its own are merged.
func TestMovedHeadMergesOrConflicts(t *testing.T) {
	t.Run("edits", func(t *testing.T) { testMovedHead(t, func(*Session) error { return nil }) })
	t.Run("pages", func(t *testing.T) { testMovedHead(t, func(s *Session) error { return s.Savepoint(bg) }) })
}

func testMovedHead(t *testing.T, written func(*Session) error) {
	db := openTest(t, nil)
	set := func(t *testing.T, s *Session, values map[string]string) {
		t.Helper()
		set(t, s, values)
		must.Do(t, written(s))
	}
	update(t, db, "main", map[string]string{"a": "1", "b": "1", "c": "1"})
	s, _ := db.Begin(bg, "main")
	set(t, s, map[string]string{"a": "2"})
	update(t, db, "main", map[string]string{"b": "2"})
	if _, err := s.Commit(bg, CommitOptions{}); err != nil {
		t.Fatalf("disjoint changes: %v", err)
	}
	if got, want := at(t, db, ""), (map[string]string{"a": "2", "b": "2", "c": "1"}); !maps.Equal(got, want) {
		t.Errorf("merged to %v", got)
	}
	s, _ = db.Begin(bg, "main")
	set(t, s, map[string]string{"c": "mine"})
	update(t, db, "main", map[string]string{"c": "theirs"})
	_, err := s.Commit(bg, CommitOptions{})
	var ce *ConflictError
	if !errors.As(err, &ce) || !errors.Is(err, ErrConflict) || len(ce.Conflicts) != 1 || ce.Conflicts[0].Path != "c" {
		t.Fatalf("got %v", err)
	}
	if got := contents(t, s)["c"]; got != "mine" {
		t.Errorf("after the conflict the session has %q", got)
	}
	set(t, s, map[string]string{"c": "theirs"})
	_, err = s.Commit(bg, CommitOptions{})
	if !errors.As(err, &ce) || len(ce.Conflicts) != 1 || !ce.Conflicts[0].Same {
		t.Errorf("both wrote the same: %v", err)
	}
	set(t, s, map[string]string{"c": "1"})
	if _, err := s.Commit(bg, CommitOptions{}); err != nil {
		t.Errorf("what the base has is not a change: %v", err)
	}
}

func TestGuard(t *testing.T) {
	db := openTest(t, nil)
	update(t, db, "main", map[string]string{"in/x": "1", "out": "1"})
	s, _ := db.Begin(bg, "main")
	must.Do(t, s.Guard(bg, "in"))
	set(t, s, map[string]string{"out": "2"})
	// It is remembered with the session.
	must.Do(t, s.Detach(bg))
	s = must.Get(db.Resume(bg, s.ID()))(t)
	update(t, db, "main", map[string]string{"in/x": "2"})
	if _, err := s.Commit(bg, CommitOptions{}); !errors.Is(err, ErrConflict) {
		t.Errorf("a guarded path changed: %v", err)
	}
}

// The guard of a group's members makes a new node in the group a conflict. Documents and chunks of members may change.
func TestGuardMembers(t *testing.T) {
	for key, conflict := range map[string]bool{"g/a/zarr.json": false, "g/a/c/0": false, "g/b/zarr.json": true, "h/b/zarr.json": false} {
		db := openTest(t, nil)
		update(t, db, "main", map[string]string{"zarr.json": "{}", "g/zarr.json": "{}", "g/a/zarr.json": "{}", "h/zarr.json": "{}"})
		s := must.Get(db.Begin(bg, "main"))(t)
		must.Do(t, s.Guard(bg, "g/"))
		set(t, s, map[string]string{"other": "1"})
		update(t, db, "main", map[string]string{key: `{"x":1}`})
		if _, err := s.Commit(bg, CommitOptions{}); errors.Is(err, ErrConflict) != conflict {
			t.Errorf("another commit wrote %s: %v, want a conflict: %v", key, err, conflict)
		}
	}
}

func TestRewoundBranchIsAConflict(t *testing.T) {
	db := openTest(t, nil)
	first := update(t, db, "main", map[string]string{"a": "1"})
	update(t, db, "main", map[string]string{"a": "2"})
	s, _ := db.Begin(bg, "main")
	set(t, s, map[string]string{"b": "1"})
	must.Get(db.Reset(bg, "main", first.ID))(t)
	_, err := s.Commit(bg, CommitOptions{})
	var ce *ConflictError
	if !errors.As(err, &ce) || ce.Conflicts[0].Kind != conflictBranchRewound {
		t.Errorf("got %v", err)
	}
	must.Do(t, db.DeleteBranch(bg, "main"))
	if _, err := s.Commit(bg, CommitOptions{}); !errors.Is(err, ErrNoRef) {
		t.Errorf("commit to a deleted branch: %v", err)
	}
}

func TestRevisions(t *testing.T) {
	clk := newClock()
	o := testOptions(vfs.NewMem())
	o.Now = clk.now
	db := openTest(t, o)
	var ids []CommitID
	var times []time.Time
	first, _ := db.Head(bg, "main")
	ids, times = append(ids, first), append(times, clk.t)
	for i := range 4 {
		ids = append(ids, update(t, db, "main", map[string]string{"a": fmt.Sprint(i)}).ID)
		times = append(times, clk.t)
	}
	must.Do(t, db.CreateTag(bg, "v1", ids[2]))
	must.Do(t, db.CreateBranch(bg, "exp/one", ids[1]))
	for rev, want := range map[string]int{
		"": 4, "main": 4, "main~": 3, "main~1": 3, "main~3~": 0, "v1": 2, "v1~2": 0, "exp/one": 1,
		ids[3].String(): 3, ids[3].String()[:12]: 3, strings.ToUpper(ids[3].String()): 3, "main@{0}": 4, "main@{2}": 2, "@{1}": 3, "main@{1}~2": 1,
		"main@{" + times[2].Format(time.RFC3339) + "}":                                                2,
		"main@{" + times[2].In(time.FixedZone("", -5*3600)).Format("2006-01-02 15:04:05 -0700") + "}": 2,
		"main@{" + times[1].UTC().Format(time.RFC1123Z) + "}":                                         1,
		"main@{now}": 4, "main@{0 seconds ago}~1": 3, "main^": 3, "main^^1": 2, "main^1~2": 1, "main~1^0": 3, "v1^0": 2, "^": 3,
	} {
		got, err := db.Resolve(bg, rev)
		if err != nil || got != ids[want] {
			t.Errorf("%q is %v, %v; want commit %d", rev, got, err, want)
		}
	}
	for _, rev := range []string{"nope", "main~5", "main~x", "v2", "abc", "zzzzzzzz", "main@{9}", "main@{1", "main@{noon}", "main@{1999-01-01}", "main@{100 weeks ago}", "main^2", "main^x", "main^-1", "main~1^2~1", "main^4294967296", "~", strings.Repeat("a", 41)} {
		if id, err := db.Resolve(bg, rev); !errors.Is(err, ErrNoRef) && rev != "~" {
			t.Errorf("%q is %v, %v", rev, id, err)
		}
	}
}

func TestRefNames(t *testing.T) {
	db := openTest(t, nil)
	head, _ := db.Head(bg, "main")
	for _, name := range []string{"", " ", "a b", "a~1", "a@b", "/a", "a/", "a//b", "..", "a/./b", "-x", "a\x00", "a\nb", strings.Repeat("x", 256), "a:b"} {
		if err := db.CreateBranch(bg, name, head); !errors.Is(err, ErrRefName) {
			t.Errorf("%q: %v", name, err)
		}
		if like := ToRefName(name); len(name) < 256 && checkRefName(like) != nil {
			t.Errorf("%q becomes %q", name, like)
		}
	}
	for name, want := range map[string]string{"a b": "a_b", "-x/../é/": "_x/__/é/_", "a/.../b": "a/.../b", "v1@{2}": "v1_{2}"} {
		if got := ToRefName(name); got != want {
			t.Errorf("%q becomes %q, want %q", name, got, want)
		}
	}
	if err := db.CreateTag(bg, "ok/é-1.0", head); err != nil {
		t.Error(err)
	}
	if err := db.CreateTag(bg, "ok/é-1.0", head); !errors.Is(err, ErrRefExists) {
		t.Errorf("twice: %v", err)
	}
	if err := db.CreateBranch(bg, "x", CommitID{1}); !errors.Is(err, ErrNoRef) {
		t.Errorf("at a commit that is not there: %v", err)
	}
	if err := db.DeleteTag(bg, "nope"); !errors.Is(err, ErrNoRef) {
		t.Errorf("delete of nothing: %v", err)
	}
}

func TestRevertAndCherryPick(t *testing.T) {
	db := openTest(t, nil)
	update(t, db, "main", map[string]string{"a": "1", "b": "1"})
	bad := update(t, db, "main", map[string]string{"a": "bad", "extra": "x"})
	update(t, db, "main", map[string]string{"b": "2"})
	must.Get(db.Revert(bg, "main", bad.ID, 0, CommitOptions{}))(t)
	if got, want := at(t, db, ""), (map[string]string{"a": "1", "b": "2"}); !maps.Equal(got, want) {
		t.Errorf("reverted to %v", got)
	}
	must.Get(db.CherryPick(bg, "main", bad.ID, 0, CommitOptions{}))(t)
	if got := at(t, db, "")["a"]; got != "bad" {
		t.Errorf("picked to %q", got)
	}
	update(t, db, "main", map[string]string{"a": "later"})
	if _, err := db.Revert(bg, "main", bad.ID, 0, CommitOptions{}); !errors.Is(err, ErrConflict) {
		t.Errorf("revert of what changed since: %v", err)
	}
	first, _ := db.Resolve(bg, "main~5")
	if _, err := db.Revert(bg, "main", first, 0, CommitOptions{}); err == nil {
		t.Error("the first commit was reverted")
	}
}

func TestSavepointAndResume(t *testing.T) {
	fs := vfs.NewMem()
	db, err := Create("db", testOptions(fs))
	must.Do(t, err)
	s, _ := db.Begin(bg, "main")
	s.SetLabel("import of x")
	big := strings.Repeat("big", 3000)
	set(t, s, map[string]string{"a": "1", "p/q": big})
	must.Do(t, s.Savepoint(bg))
	if _, err := db.Resume(bg, s.ID()); !errors.Is(err, ErrSessionBusy) {
		t.Errorf("resume of an open session: %v", err)
	}
	set(t, s, map[string]string{"lost": "x"})
	closeChecked(t, db)

	if db, err = Open("db", testOptions(fs)); err != nil {
		t.Fatal(err)
	}
	defer func() { closeChecked(t, db) }()
	list, err := db.Sessions(bg)
	if err != nil || len(list) != 1 || list[0].ID != s.ID() || list[0].Label != "import of x" || list[0].Open {
		t.Fatalf("sessions %+v, %v", list, err)
	}
	r := must.Get(db.Resume(bg, s.ID()))(t)
	if got, want := contents(t, r), (map[string]string{"a": "1", "p/q": big}); !maps.Equal(got, want) {
		t.Errorf("resumed with %d keys", len(got))
	}
	must.Get(r.Commit(bg, CommitOptions{}))(t)
	if list, err := db.Sessions(bg); err != nil || len(list) != 0 {
		t.Errorf("sessions after the commit %+v, %v", list, err)
	}
	if _, err := db.Resume(bg, s.ID()); !errors.Is(err, ErrNoRef) {
		t.Errorf("resume after the commit: %v", err)
	}
}

func TestAbortForgets(t *testing.T) {
	db := openTest(t, nil)
	s, _ := db.Begin(bg, "main")
	set(t, s, map[string]string{"a": "1"})
	must.Do(t, s.Savepoint(bg))
	must.Do(t, s.Abort())
	if list, _ := db.Sessions(bg); len(list) != 0 {
		t.Errorf("sessions %+v", list)
	}
	if got := at(t, db, ""); len(got) != 0 {
		t.Errorf("main is %v", got)
	}
}

// Many sessions on one branch and others commit at the same time; every
// acknowledged write is there, and the history is one line.
func TestConcurrentCommits(t *testing.T) {
	db := openTest(t, nil)
	const writers, rounds = 16, 12
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for r := range rounds {
				s, err := db.Begin(bg, "main")
				if err != nil {
					t.Error(err)
					return
				}
				key := fmt.Sprintf("w%d/k%d", w, r%3)
				val := bytes.Repeat([]byte{byte(w), byte(r)}, 300*(r%4)+1)
				if err := s.Set(bg, key, val); err != nil {
					t.Error(err)
					return
				}
				if w%2 == 0 { // else the edit is made on the head
					if err := s.Savepoint(bg); err != nil {
						t.Error(err)
						return
					}
				}
				if _, err := s.Commit(bg, CommitOptions{Message: key}); err != nil {
					t.Error(err)
					return
				}
				got, err := kv.Get(bg, mustAt(t, db), key)
				if err != nil || !bytes.Equal(got, val) {
					t.Errorf("%s is not what was committed: %v", key, err)
					return
				}
			}
		})
	}
	wg.Wait()
	head, _ := db.Head(bg, "main")
	n := 0
	for c, err := range db.Log(bg, head) {
		must.Do(t, err)
		if len(c.Parents) > 1 {
			t.Error("a merge commit")
		}
		n++
	}
	if n != writers*rounds+1 {
		t.Errorf("%d commits, want %d", n, writers*rounds+1)
	}
}

func mustAt(t *testing.T, db *DB) *Snapshot {
	s, err := db.At(bg, "main")
	if err != nil {
		t.Error(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// The session and the snapshot are plain views; small buffers make them spill
// and savepoint all the time.
func TestConformance(t *testing.T) {
	if testing.Short() {
		t.Skip("the work of one goroutine, many times")
	}
	for name, tune := range map[string]func(*Options){
		"default": func(*Options) {},
		"tiny":    func(o *Options) { o.SessionBytes, o.SavepointBytes, o.PageCacheBytes = 4<<10, 16<<10, 64<<10 },
	} {
		t.Run("session/"+name, func(t *testing.T) {
			kvtest.Run(t, func(t *testing.T) kv.Reader {
				o := testOptions(vfs.NewMem())
				tune(o)
				s := must.Get(openTest(t, o).Begin(bg, "main"))(t)
				return s
			}, kvtest.Options{Steps: 200})
		})
	}
	t.Run("snapshot", func(t *testing.T) {
		kvtest.Run(t, nil, kvtest.Options{Fill: func(t *testing.T, content map[string][]byte) kv.Reader {
			db := openTest(t, nil)
			s := must.Get(db.Begin(bg, "main"))(t)
			for k, v := range content {
				must.Do(t, s.Set(bg, k, v))
			}
			must.Get(s.Commit(bg, CommitOptions{}))(t)
			return mustAt(t, db)
		}})
	})
}

func TestNoBranchIsMain(t *testing.T) {
	db := openTest(t, nil)
	first := must.Get(db.Head(bg, ""))(t)
	update(t, db, "", map[string]string{"a": "1"})
	if m, err := db.Reset(bg, "", first); err != nil || m.New != first {
		t.Errorf("reset %+v, %v", m, err)
	}
	n := 0
	for _, err := range db.Reflog(bg, "") {
		must.Do(t, err)
		n++
	}
	if n != 3 {
		t.Errorf("%d moves, want 3", n)
	}
}
