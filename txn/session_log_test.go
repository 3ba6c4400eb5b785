package txn

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/zarrdb/zarrdb/internal/crashtest"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/index"
	"github.com/zarrdb/zarrdb/kv/pack"
	"github.com/zarrdb/zarrdb/kv/tree"
	"github.com/zarrdb/zarrdb/txn/internal/catalog"
)

// killed opens what is left of a database on a file system: percent of what was written
// and not synced. After a kill of the process that is all of it.
func killed(t *testing.T, mem *vfs.MemFS, percent int) *DB {
	t.Helper()
	return openPlain(t, crashtest.Cut(mem, percent, rand.New(rand.NewPCG(1, uint64(percent)))), "db")
}

func random(seed uint64, n int) []byte {
	b := make([]byte, n)
	rnd := rand.New(rand.NewPCG(seed, 1))
	for i := range b {
		b[i] = byte(rnd.Uint32())
	}
	return b
}

func logged(t *testing.T, db *DB) *Session {
	t.Helper()
	s, err := db.Begin(bg, "")
	if err == nil {
		err = s.Log(bg)
	}
	must.Do(t, err)
	return s
}

// loggedSteps is every kind of change that a session may make.
func loggedSteps(t *testing.T, db *DB) []struct {
	name string
	do   func(s *Session) error
} {
	large, small := random(7, 100<<10), random(8, 3000)
	return []struct {
		name string
		do   func(s *Session) error
	}{
		{"small", func(s *Session) error { return s.Set(bg, "g/small", []byte("1")) }},
		{"in a buffer", func(s *Session) error { return s.Set(bg, "g/packed", small) }},
		{"large", func(s *Session) error { return s.Set(bg, "g/large", large) }},
		{"of the base", func(s *Session) error { return s.Set(bg, "base", []byte("1")) }},
		{"virtual", func(s *Session) error {
			return s.SetVirtual(bg, "g/v", tree.Source{URL: "file:///a\xff", Validator: "v"}, 3, 4)
		}},
		{"guard", func(s *Session) error { return s.Guard(bg, "base", "g") }},
		{"move", func(s *Session) error { return s.Move(bg, "g", "h") }},
		{"delete", func(s *Session) error { return s.Delete(bg, "h/small") }},
		{"nothing", func(s *Session) error { return s.Delete(bg, "h/small") }},
		{"copy", func(s *Session) error { return s.Copy(bg, nil, "h", "i") }},
		{"after a savepoint", func(s *Session) error { return s.Set(bg, "i/large", small) }},
		{"move again", func(s *Session) error { return s.Move(bg, "i", "g") }},
		{"prefix", func(s *Session) error { return s.DeletePrefix(bg, "h/") }},
		{"rebase", func(s *Session) error {
			say(t, db, "", "other", setAll("other", "1"))
			return s.Refresh(bg, nil)
		}},
		{"large again", func(s *Session) error { return s.Set(bg, "g/large", large[1:]) }},
		{"savepoint", func(s *Session) error { return s.Savepoint(bg) }},
		{"last", func(s *Session) error { return s.Set(bg, "last", small) }},
	}
}

// After a kill, a session has every change that was acknowledged, whatever it was, and the
// database is sound also when garbage is collected before the session goes on.
func TestLogAfterKill(t *testing.T) {
	for _, saved := range []bool{false, true} {
		t.Run(fmt.Sprint("saved=", saved), func(t *testing.T) {
			mem := vfs.NewCrashableMem()
			db := openTest(t, testOptions(mem))
			say(t, db, "", "base", setAll("base", "0", "gone", "0"))
			s := logged(t, db)
			if saved {
				must.Do(t, s.Savepoint(bg))
			}
			for _, step := range loggedSteps(t, db) {
				if err := step.do(s); err != nil {
					t.Fatalf("%s: %v", step.name, err)
				}
				wantTakenUp(t, step.name, mem, s)
			}
			must.Get(s.Commit(bg, CommitOptions{}))(t)
			if names, err := mem.List("db/sessions"); err != nil || len(names) > 0 {
				t.Errorf("left after the commit: %q, %v", names, err)
			}
		})
	}
}

func wantTakenUp(t *testing.T, step string, mem *vfs.MemFS, s *Session) {
	t.Helper()
	db := killed(t, mem, 100)
	defer closeChecked(t, db)
	mustBeSound(t, db)
	if _, err := db.GC(bg, GCOptions{}); err != nil {
		t.Fatalf("%s: %v", step, err)
	}
	again, err := db.Resume(bg, s.ID())
	if err != nil {
		t.Fatalf("%s: %v", step, err)
	}
	if got, want := rawContents(t, again), rawContents(t, s); !maps.Equal(got, want) {
		t.Errorf("%s: %d keys are there, want %d: %v", step, len(got), len(want), slices.Sorted(maps.Keys(got)))
	}
	if got, want := again.guarded(), s.guarded(); !slices.Equal(got, want) {
		t.Errorf("%s: guards %q, want %q", step, got, want)
	}
	if again.Base() != s.Base() || again.Branch() != s.Branch() {
		t.Errorf("%s: another base or branch", step)
	}
	if _, err := again.Commit(bg, CommitOptions{AllowEmpty: true}); err != nil {
		t.Errorf("%s: %v", step, err)
	}
}

// rawContents are the values of a session by key, virtual ones as their sources.
func rawContents(t *testing.T, s *Session) map[string]string {
	t.Helper()
	all := map[string]string{}
	for v, err := range s.Values(bg, "") {
		must.Do(t, err)
		all[v.Key] = fmt.Sprint(v)
		if v.Kind != "virtual" {
			b := must.Get(kv.Get(bg, s, v.Key))(t)
			all[v.Key] = string(b)
		}
	}
	return all
}

// A session that ended in any way does not come back, and neither does a change that a
// Close has forgotten.
func TestLogOfEndedSession(t *testing.T) {
	for _, saved := range []bool{false, true} {
		for name, end := range map[string]func(*Session) error{
			"commit": func(s *Session) error { _, err := s.Commit(bg, CommitOptions{}); return err },
			"abort":  (*Session).Abort,
			"close":  (*Session).Close,
			"the log stays after the commit": func(s *Session) error {
				fs, path := s.db.opts.FS, s.db.logPath(s.id)
				if err := vfs.LinkOrCopy(fs, path, "copy"); err != nil {
					return err
				}
				_, err := s.Commit(bg, CommitOptions{})
				return errors.Join(err, fs.Rename("copy", path))
			},
		} {
			t.Run(fmt.Sprint(name, " saved=", saved), func(t *testing.T) {
				mem := vfs.NewCrashableMem()
				db := openTest(t, testOptions(mem))
				s := logged(t, db)
				if saved {
					must.Do(t, s.Savepoint(bg))
				}
				set(t, s, map[string]string{"k": strings.Repeat("1", 2000)})
				must.Do(t, end(s))
				db = killed(t, mem, 100)
				defer closeChecked(t, db)
				list := must.Get(db.Sessions(bg))(t)
				if name != "close" || !saved {
					if len(list) > 0 {
						t.Errorf("the session is there: %v", list)
					}
					return
				}
				again := must.Get(db.Resume(bg, s.ID()))(t)
				if got := contents(t, again); len(got) > 0 {
					t.Errorf("the session holds %v", got)
				}
			})
		}
	}
}

// After a power loss the session is as it was at its savepoint, or after some of the
// changes since, in order; and the database is sound.
func TestLogAfterPowerLoss(t *testing.T) {
	mem := vfs.NewCrashableMem()
	db := openTest(t, testOptions(mem))
	s := logged(t, db)
	states := map[string]bool{}
	note := func(s *Session) string { return fmt.Sprint(contents(t, s)) }
	for i := range 12 {
		set(t, s, map[string]string{"k": strings.Repeat(fmt.Sprint(i), 1+i%3*1500), fmt.Sprint("n", i): "1"})
		if i == 3 {
			must.Do(t, s.Savepoint(bg))
			clear(states)
		}
		states[note(s)] = true
		if i < 3 {
			continue
		}
		for percent := range 10 {
			db := killed(t, mem, 10*percent)
			again := must.Get(db.Resume(bg, s.ID()))(t)
			if got := note(again); !states[got] && !between(contents(t, again), i) {
				t.Errorf("step %d, %d %%: %s", i, 10*percent, got)
			}
			closeChecked(t, db)
		}
	}
}

// between reports whether a session of the test above is within a step: the two keys of a
// step are set one by one.
func between(got map[string]string, last int) bool {
	n := 0
	for got[fmt.Sprint("n", n)] != "" {
		n++
	}
	extra := 0
	if _, ok := got["k"]; ok {
		extra = 1
	}
	return n <= last+1 && len(got) == n+extra
}

// A write whose log cannot be written is not acknowledged and has not happened; the
// session goes on when there is space again.
func TestLogCannotBeWritten(t *testing.T) {
	mem := vfs.NewCrashableMem()
	full := crashtest.Faults{Err: syscall.ENOSPC, Match: func(op errorfs.Op) bool { return strings.Contains(op.Path, logSuffix) && op.Kind != errorfs.OpRemove }}
	full.Off.Store(true)
	db := openTest(t, testOptions(full.Wrap(mem)))
	s := logged(t, db)
	set(t, s, map[string]string{"a": "1"})
	full.Off.Store(false)
	if err := s.Set(bg, "b", []byte("1")); !errors.Is(err, pack.ErrFull) {
		t.Errorf("%v", err)
	}
	if err := s.Guard(bg, "g"); !errors.Is(err, pack.ErrFull) {
		t.Errorf("%v", err)
	}
	if err := s.Move(bg, "a", "moved"); !errors.Is(err, pack.ErrFull) {
		t.Errorf("%v", err)
	}
	full.Off.Store(true)
	set(t, s, map[string]string{"c": "1"})
	want := map[string]string{"a": "1", "c": "1"}
	if got := contents(t, s); !maps.Equal(got, want) || len(s.guarded()) > 0 {
		t.Errorf("the session holds %v, guards %v", got, s.guarded())
	}
	wantTakenUp(t, "after the failure", mem, s)
}

// A log that cannot be applied when the database is opened is kept, keeps what it needs
// from being collected, and is applied when the session is opened and there is space.
func TestLogIsAppliedLater(t *testing.T) {
	mem := vfs.NewCrashableMem()
	db := openTest(t, testOptions(mem))
	s, other := logged(t, db), logged(t, db)
	want := string(random(1, 3000))
	set(t, s, map[string]string{"k": want})
	set(t, other, map[string]string{"k": want})

	full := crashtest.Faults{Err: syscall.ENOSPC, Match: func(op errorfs.Op) bool {
		return strings.HasSuffix(op.Path, ".pack") && slices.Contains([]errorfs.OpKind{errorfs.OpFileWrite, errorfs.OpFileWriteAt, errorfs.OpFilePreallocate, errorfs.OpFileSyncData}, op.Kind)
	}}
	db = must.Get(Open("db", testOptions(full.Wrap(all(mem)))))(t)
	defer closeChecked(t, db)
	if _, err := db.Resume(bg, s.ID()); !errors.Is(err, pack.ErrFull) && !errors.Is(err, ErrLost) {
		t.Errorf("resume: %v", err)
	}
	if _, err := db.GC(bg, GCOptions{}); err == nil {
		t.Error("a collection does not know what the log names")
	}
	full.Off.Store(true)
	again := must.Get(db.Resume(bg, s.ID()))(t)
	if got := contents(t, again)["k"]; got != want {
		t.Errorf("the session holds %d bytes", len(got))
	}
	if err := db.AbortSession(bg, again.ID()); err != nil {
		t.Errorf("abort of a session that is open: %v", err)
	}
	if _, err := again.Get(bg, "k", kv.All()); !errors.Is(err, ErrSessionClosed) {
		t.Errorf("use of a session that was ended: %v", err)
	}
	if err := db.AbortSession(bg, other.ID()); err != nil {
		t.Error(err)
	}
	if err := db.AbortSession(bg, other.ID()); !errors.Is(err, ErrNoRef) {
		t.Errorf("abort of a session that has ended: %v", err)
	}
	if _, err := db.GC(bg, GCOptions{}); err != nil {
		t.Error(err)
	}
}

// When the index does not say whether it took a savepoint, nothing more is acknowledged:
// the log may be void. What was acknowledged before is there.
func TestLogAfterFailedIndex(t *testing.T) {
	mem := vfs.NewCrashableMem()
	f := crashtest.Faults{Err: syscall.EIO, Match: func(op errorfs.Op) bool { return strings.Contains(op.Path, indexDir) && crashtest.IsSync(op) }}
	f.Off.Store(true)
	db := must.Get(Create("db", testOptions(f.Wrap(mem))))(t)
	s := logged(t, db)
	set(t, s, map[string]string{"a": "1"})
	f.Off.Store(false)
	if err := s.Savepoint(bg); !errors.Is(err, index.ErrFailed) {
		t.Fatalf("savepoint: %v", err)
	}
	if err := s.Set(bg, "b", []byte("1")); !errors.Is(err, index.ErrFailed) {
		t.Errorf("set: %v", err)
	}
	for _, percent := range []int{0, 100} {
		left := killed(t, mem, percent)
		again, err := left.Resume(bg, s.ID())
		switch {
		case percent == 0 && errors.Is(err, ErrNoRef): // the power went before a savepoint
		case err != nil:
			t.Fatal(err)
		case contents(t, again)["a"] != "1":
			t.Errorf("%d %%: the session holds %v", percent, contents(t, again))
		}
		closeChecked(t, left)
	}
	_ = db.Close() // it has failed
}

// A session without a savepoint that was committed does not come back after a power loss,
// also if all of its log but the name of the commit is on disk.
func TestCommittedLogAfterPowerLoss(t *testing.T) {
	mem := vfs.NewCrashableMem()
	db := openTest(t, testOptions(mem))
	s := logged(t, db)
	set(t, s, map[string]string{"k": "1"})
	for _, open := range []func() (vfs.File, error){
		func() (vfs.File, error) { return mem.OpenReadWrite(db.logPath(s.ID()), vfs.WriteCategoryUnspecified) },
		func() (vfs.File, error) { return mem.OpenDir("db/sessions") },
		func() (vfs.File, error) { return mem.OpenDir("db") },
	} {
		f := must.Get(open())(t)
		must.Do(t, errors.Join(f.Sync(), f.Close()))
	}
	must.Get(s.Commit(bg, CommitOptions{}))(t)
	left := killed(t, mem, 0)
	defer closeChecked(t, left)
	if list, err := left.Sessions(bg); err != nil || len(list) > 0 {
		t.Errorf("sessions %v, %v", list, err)
	}
	if got := at(t, left, "main")["k"]; got != "1" {
		t.Errorf("the branch has %q", got)
	}
}

// The list of committed sessions whose logs a power loss may bring back stays short, and no
// log comes back, whichever removals reached the disk.
func TestEndedLogs(t *testing.T) {
	mem := vfs.NewCrashableMem()
	db := openTest(t, testOptions(mem))
	const sessions = 2*maxGone + 10
	for i := range sessions {
		s := logged(t, db)
		set(t, s, map[string]string{"k": fmt.Sprint(i)})
		f := must.Get(mem.OpenDir("db/sessions"))(t)
		if err := errors.Join(f.Sync(), f.Close()); err != nil { // the log is there for good
			t.Fatal(err)
		}
		must.Get(s.Commit(bg, CommitOptions{}))(t)
		if _, err := db.BeginWith(bg, BeginOptions{ID: s.ID(), Branch: "", Base: s.Base()}); !errors.Is(err, ErrSessionBusy) {
			t.Errorf("a session that was committed begins again: %v", err)
		}
		ids, err := catalog.Ended(db.idx)
		if err != nil || len(ids) > maxGone+1 {
			t.Fatalf("%d sessions in the list, %v", len(ids), err)
		}
		if i%20 > 0 {
			continue
		}
		for _, percent := range []int{0, 50, 100} {
			left := killed(t, mem, percent)
			if list, err := left.Sessions(bg); err != nil || len(list) > 0 {
				t.Errorf("commit %d, %d %%: sessions %v, %v", i, percent, list, err)
			}
			if got := at(t, left, "main")["k"]; got != fmt.Sprint(i) {
				t.Errorf("commit %d, %d %%: the branch has %q", i, percent, got)
			}
			closeChecked(t, left)
		}
	}
}

// A session whose log cannot be removed is not aborted without a word, and can be aborted
// again, also if it is not open.
func TestLogCannotBeRemoved(t *testing.T) {
	mem := vfs.NewCrashableMem()
	f := crashtest.Faults{Err: syscall.EIO, Match: func(op errorfs.Op) bool { return strings.Contains(op.Path, logSuffix) && op.Kind == errorfs.OpRemove }}
	fs := f.Wrap(mem)
	db, err := Create("db", testOptions(fs))
	must.Do(t, err)
	s := logged(t, db)
	set(t, s, map[string]string{"k": "1"})
	if err := s.Abort(); !errors.Is(err, syscall.EIO) {
		t.Errorf("abort: %v", err)
	}
	f.Off.Store(true)
	if err := s.Abort(); err != nil {
		t.Error(err)
	}

	s = logged(t, db)
	id := s.ID()
	must.Do(t, errors.Join(s.Abort(), db.Close()))
	writeFile(t, mem, "db/sessions/"+id.String()+logSuffix, []byte(strings.Replace(catalog.LogHeader, "1", "2", 1)))
	if db, err = Open("db", testOptions(fs)); err != nil {
		t.Fatal(err)
	}
	defer closeChecked(t, db)
	if _, err := db.GC(bg, GCOptions{}); err == nil || strings.Contains(err.Error(), "free space") || !strings.Contains(err.Error(), "abort session "+id.String()) {
		t.Errorf("gc: %v", err)
	}
	f.Off.Store(false)
	if err := db.AbortSession(bg, id); !errors.Is(err, syscall.EIO) {
		t.Errorf("abort: %v", err)
	}
	if _, err := db.GC(bg, GCOptions{}); err == nil {
		t.Error("a collection runs beside the log")
	}
	f.Off.Store(true)
	if err := db.AbortSession(bg, id); err != nil {
		t.Error(err)
	}
	mustGC(t, db)
}

// A write of the bytes that a key has is a use of the session, whether they were hashed or
// compared.
func TestEqualWritesAreUse(t *testing.T) {
	db := openTest(t, nil)
	update(t, db, "main", map[string]string{"k": payload("k")})
	s := mustBegin(t, db)
	for i := range 3 {
		s.used = time.Time{}
		if set(t, s, map[string]string{"k": payload("k")}); s.used.IsZero() {
			t.Errorf("write %d is not a use", i)
		}
	}
	must.Do(t, s.Abort())
}

// After a kill, a payload or an entry of the log that is damaged costs that change and those behind it. They
// are named, and the log is kept.
func TestLogWithDamage(t *testing.T) {
	large := func(i int) string { return string(random(uint64(100+i), 3000)) }
	for _, in := range []string{".pack", logSuffix, logSuffix + " at its beginning"} {
		mem := vfs.NewCrashableMem()
		db := openTest(t, testOptions(mem))
		s := logged(t, db)
		set(t, s, map[string]string{"a": large(0)})
		set(t, s, map[string]string{"lost": large(1)})
		set(t, s, map[string]string{"b": large(2)})
		must.Do(t, s.Move(bg, "lost", "moved"))
		set(t, s, map[string]string{"c": "1"})
		must.Do(t, s.Guard(bg, "b"))

		left := crashtest.Cut(mem, 100, rand.New(rand.NewPCG(1, 1)))
		find := large(1)[:100]
		if in != ".pack" {
			find = "lost"
		}
		suffix, start, _ := strings.Cut(in, " ")
		if start != "" {
			id := s.ID()
			find = string(id[:])
		}
		damageText(t, left, suffix, find)
		var failed []CareError
		o := testOptions(left)
		o.CareFailed = func(e CareError) { failed = append(failed, e) }
		again := must.Get(Open("db", o))(t)
		r, err := again.Resume(bg, s.ID())
		if start != "" {
			if !errors.Is(err, kv.ErrCorrupt) {
				t.Errorf("%s: %v", in, err)
			}
			must.Do(t, again.AbortSession(bg, s.ID()))
			must.Do(t, again.Close())
			continue
		}
		must.Do(t, err)
		if got, want := contents(t, r), map[string]string{"a": large(0)}; !maps.Equal(got, want) || len(r.guarded()) > 0 {
			t.Errorf("%s: the session holds %v, guards %v", in, slices.Sorted(maps.Keys(got)), r.guarded())
		}
		named := `"lost", "b", the move from "lost" to "moved", "c", `
		if in == logSuffix {
			named = `a change whose name is damaged, "b", the move`
		}
		if len(failed) != 1 || !strings.Contains(failed[0].Error(), named) || !strings.Contains(failed[0].Error(), "quarantine") || !strings.Contains(r.Info().Label, "lacks 5") {
			t.Errorf("%s: %v, label %q", in, failed, r.Info().Label)
		}
		must.Do(t, r.Abort())
		closeChecked(t, again)
	}
}

// damageText changes a byte of the file below db that has a text.
func damageText(t *testing.T, fs vfs.FS, suffix, text string) {
	t.Helper()
	for _, dir := range []string{"db/packs", "db/sessions"} {
		names, _ := fs.List(dir)
		for _, name := range names {
			b := readFile(t, fs, dir+"/"+name)
			if at := strings.Index(b, text); at >= 0 && strings.HasSuffix(name, suffix) {
				changed := []byte(b)
				changed[at] ^= 1
				writeFile(t, fs, dir+"/"+name, changed)
				return
			}
		}
	}
	t.Fatalf("no %s file has the text", suffix)
}

// A savepoint is made although the log before it cannot be removed: the session has what is stored, and
// an earlier log does not bring the session back.
func TestSavepointBesideOldLog(t *testing.T) {
	mem := vfs.NewCrashableMem()
	f := crashtest.Faults{Err: syscall.EIO, Match: func(op errorfs.Op) bool { return strings.Contains(op.Path, logSuffix) && op.Kind == errorfs.OpRemove }}
	db := openTest(t, testOptions(f.Wrap(mem)))
	say(t, db, "", "base", setAll("base", "0"))
	s := logged(t, db)
	set(t, s, map[string]string{"k": "1"})
	if err := s.Copy(bg, nil, "k", "copy"); err != nil { // makes a savepoint
		t.Errorf("a copy: %v", err)
	}
	if got, want := contents(t, s), map[string]string{"base": "0", "k": "1", "copy": "1"}; !maps.Equal(got, want) {
		t.Errorf("the session holds %v", got)
	}
	wantTakenUp(t, "after the savepoint", mem, s)
	set(t, s, map[string]string{"more": "1"})
	wantTakenUp(t, "after another change", mem, s)
	must.Do(t, s.Abort())
	again := killed(t, mem, 100)
	defer closeChecked(t, again)
	if list, err := again.Sessions(bg); err != nil || len(list) > 0 {
		t.Errorf("after the end: %v, %v", list, err)
	}
}
