package zarrdb_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zarrdb/zarrdb"
	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/txn"
	"github.com/zarrdb/zarrdb/zarr"
)

var bg = context.Background()

// A test that needs another process runs this program with ZARRDB_ROLE set.
func TestMain(m *testing.M) {
	switch role := os.Getenv("ZARRDB_ROLE"); role {
	case "":
		os.Exit(m.Run())
	case "hold":
		hold(os.Getenv("ZARRDB_DIR"))
	case "look":
		look(os.Getenv("ZARRDB_DIR"))
	default:
		count(os.Getenv("ZARRDB_DIR"), role)
	}
}

// hold has the database open until standard input ends.
func hold(dir string) {
	db, err := zarrdb.Open(bg, dir, nil)
	exitOn(err)
	fmt.Println("open", zarrdb.Holds(db))
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
	exitOn(db.Close())
}

// count adds one to every element so often.
func count(dir, times string) {
	n, err := strconv.Atoi(times)
	exitOn(err)
	db, err := zarrdb.Open(bg, dir, nil)
	exitOn(err)
	for range n {
		exitOn(increment(db))
	}
	exitOn(db.Close())
}

func exitOn(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func increment(db *engine.DB) error {
	_, err := db.Retry(bg, "", "one more", func(s *engine.Session) error {
		a, err := s.Array(bg, "counter")
		if err != nil {
			return err
		}
		v, _, err := zarr.Read[int64](bg, a, zarr.Sel())
		if err != nil {
			return err
		}
		v[0]++
		return zarr.Write(bg, a, zarr.Sel(), v)
	})
	return err
}

// process starts this program in another role.
func process(t testing.TB, dir, role string) *exec.Cmd {
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), "ZARRDB_ROLE="+role, "ZARRDB_DIR="+dir)
	c.Stderr = os.Stderr
	return c
}

// holder starts a process that has the database open, and returns what ends it.
func holder(t testing.TB, dir string) (c *exec.Cmd, end func()) {
	t.Helper()
	c = process(t, dir, "hold")
	in := must.Get(c.StdinPipe())(t)
	out := must.Get(c.StdoutPipe())(t)
	must.Do(t, c.Start())
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "open true\n" {
		t.Fatalf("the holder says %q, %v", line, err)
	}
	end = sync.OnceFunc(func() {
		_ = in.Close()
		_ = c.Wait()
	})
	t.Cleanup(end)
	return c, end
}

// counterDB makes a database with a counter.
func counterDB(t *testing.T) (dir string) {
	dir = filepath.Join(t.TempDir(), "w.zdb")
	db := open(t, dir, &zarrdb.Options{Create: true})
	_, err := db.Update(bg, "", "counter", func(s *engine.Session) error {
		_, err := s.CreateArray(bg, "counter", zarr.Spec{Shape: []int64{1}, DataType: "int64"})
		return err
	})
	must.Do(t, errors.Join(err, db.Close()))
	return dir
}

func open(t *testing.T, dir string, o *zarrdb.Options) *engine.DB {
	t.Helper()
	db := must.Get(zarrdb.Open(bg, dir, o))(t)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func value(t *testing.T, s *engine.Snapshot) int64 {
	t.Helper()
	a := must.Get(s.Array(bg, "counter"))(t)
	v, _, err := zarr.Read[int64](bg, a, zarr.Sel())
	must.Do(t, err)
	return v[0]
}

func at(t *testing.T, db *engine.DB, rev string) *engine.Snapshot {
	t.Helper()
	s := must.Get(db.At(bg, rev))(t)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// A program that forgot Create is told so.
func TestMissing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "none.zdb")
	if _, err := zarrdb.Open(bg, dir, nil); !errors.Is(err, zarrdb.ErrNotFound) || !strings.Contains(err.Error(), "Options.Create") {
		t.Error(err)
	}
	if _, err := zarrdb.Open(bg, t.TempDir(), nil); !errors.Is(err, zarrdb.ErrNotFound) || strings.Contains(err.Error(), "Create") {
		t.Error(err)
	}
}

// A database works the same in this process and through another one.
// A database in memory is one of its own, takes all that others do, and leaves no file.
func TestMemory(t *testing.T) {
	t.Chdir(t.TempDir())
	one, other := must.Get(zarrdb.Open(bg, ":memory:", nil))(t), must.Get(zarrdb.Open(bg, ":memory:", nil))(t)
	long := make([]byte, 1<<20)
	s := must.Get(one.Begin(bg, "main"))(t)
	must.Do(t, s.Set(bg, "k", long))
	must.Get(s.Commit(bg, txn.CommitOptions{Message: "long"}))(t)
	must.Get(one.GC(bg, txn.GCOptions{}))(t)
	v := must.Get(one.At(bg, "main"))(t)
	if got := must.Get(kv.Get(bg, v, "k"))(t); len(got) != len(long) || !zarrdb.Holds(one) {
		t.Errorf("%d bytes, holds %v", len(got), zarrdb.Holds(one))
	}
	must.Do(t, v.Close())
	if must.Get(other.Head(bg, "main"))(t) == must.Get(one.Head(bg, "main"))(t) {
		t.Error("both databases have the same commits")
	}
	must.Do(t, errors.Join(one.Close(), other.Close()))
	if files := must.Get(os.ReadDir("."))(t); len(files) > 0 {
		t.Errorf("left %v", files)
	}
}

func TestHereAndThere(t *testing.T) {
	for _, there := range []bool{false, true} {
		t.Run(fmt.Sprint(there), func(t *testing.T) {
			dir := counterDB(t)
			if there {
				holder(t, dir)
			}
			db := open(t, dir, nil)
			if zarrdb.Holds(db) == there {
				t.Fatalf("open here: %v", zarrdb.Holds(db))
			}
			must.Do(t, increment(db))
			must.Do(t, db.CreateTag(bg, "v1", ""))
			must.Do(t, increment(db))
			if a, b, c := value(t, at(t, db, "")), value(t, at(t, db, "v1")), value(t, at(t, db, "main~2")); a != 2 || b != 1 || c != 0 {
				t.Errorf("values %d, %d, %d", a, b, c)
			}
			_, tags, err := db.Refs(bg)
			if err != nil || len(tags) != 1 || tags[0].Name != "v1" {
				t.Errorf("tags %v, %v", tags, err)
			}
			var messages []string
			for c, err := range db.Log(bg, "") {
				must.Do(t, err)
				messages = append(messages, c.Message)
			}
			if got := fmt.Sprint(messages); got != "[one more one more counter create database]" {
				t.Errorf("log %s", got)
			}
			var keys []string
			for c, err := range db.Diff(bg, "v1", "main", "") {
				must.Do(t, err)
				keys = append(keys, c.Key)
			}
			if got := fmt.Sprint(keys); got != "[counter/c/0]" {
				t.Errorf("diff %s", got)
			}
			must.Do(t, db.CreateBranch(bg, "trial", "v1"))
			must.Get(db.Update(bg, "trial", "another counter", func(s *engine.Session) error {
				_, err := s.CreateArray(bg, "other", zarr.Spec{Shape: []int64{1}, DataType: "int64"})
				return err
			}))(t)
			merged, err := db.Merge(bg, "", "trial", engine.CommitOptions{Message: "both", Author: "me", Properties: map[string]string{"k": "v"}})
			if err != nil || merged.Message != "both" || merged.Author != "me" || merged.Properties["k"] != "v" || len(merged.Parents) != 2 {
				t.Fatalf("merge: %+v, %v", merged, err)
			}
			if again, err := db.Merge(bg, "main", "trial", engine.CommitOptions{}); err != nil || again.ID != merged.ID {
				t.Errorf("merge again: %+v, %v", again, err)
			}
			if got := value(t, at(t, db, "")); got != 2 {
				t.Errorf("after the merge %d", got)
			}
			must.Get(db.Reset(bg, "trial", "v1"))(t)
			must.Get(db.Update(bg, "trial", "more", func(s *engine.Session) error {
				a, err := s.Array(bg, "counter")
				return errors.Join(err, zarr.Write(bg, a, zarr.Sel(), []int64{101}))
			}))(t)
			var conflict *txn.ConflictError
			if _, err := db.Merge(bg, "main", "trial", engine.CommitOptions{}); !errors.As(err, &conflict) || len(conflict.Conflicts) != 1 || conflict.Conflicts[0].Path != "counter/c/0" {
				t.Errorf("a merge with a conflict: %v", err)
			}
			theirs := []txn.PathChoice{{Path: "counter", Choice: txn.Theirs}}
			if _, err := db.Merge(bg, "main", "trial", engine.CommitOptions{Choices: theirs}); err != nil || value(t, at(t, db, "")) != 101 {
				t.Errorf("a merge that takes theirs: %v", err)
			}
			if _, err := db.Merge(bg, "main", "none", engine.CommitOptions{}); !errors.Is(err, zarrdb.ErrNotFound) {
				t.Errorf("a merge of a branch that is not there: %v", err)
			}
			must.Get(db.Reset(bg, "main", "v1"))(t)
			if got := value(t, at(t, db, "")); got != 1 {
				t.Errorf("after the reset %d", got)
			}
			if _, err := at(t, db, "").Array(bg, "none"); !errors.Is(err, zarrdb.ErrNotFound) {
				t.Errorf("an array that is not there: %v", err)
			}
			if _, err := db.At(bg, "none"); !errors.Is(err, zarrdb.ErrNotFound) {
				t.Errorf("a branch that is not there: %v", err)
			}
		})
	}
}

// A session is one transaction for all processes that name it.
func TestSessionInTwoProcesses(t *testing.T) {
	dir := counterDB(t)
	holder(t, dir)
	one, two := open(t, dir, nil), open(t, dir, nil)
	s := must.Get(one.Begin(bg, ""))(t)
	same := must.Get(two.Resume(bg, s.ID()))(t)
	must.Do(t, s.Set(bg, "a", []byte("1")))
	if b, err := same.Get(bg, "a", kv.All()); err != nil || string(b) != "1" {
		t.Fatalf("%q, %v", b, err)
	}
	must.Get(same.Commit(bg, engine.CommitOptions{Message: "both"}))(t)
	if b, err := at(t, one, "").Get(bg, "a", kv.All()); err != nil || string(b) != "1" {
		t.Fatalf("%q, %v", b, err)
	}
}

// Counters of several processes are exact, whichever has the database open.
func TestCounterOfProcesses(t *testing.T) {
	dir := counterDB(t)
	const processes, times = 4, 25
	var wg sync.WaitGroup
	for range processes {
		wg.Go(func() {
			if err := process(t, dir, strconv.Itoa(times)).Run(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if got := value(t, at(t, open(t, dir, nil), "")); got != processes*times {
		t.Errorf("counted %d, want %d", got, processes*times)
	}
}

// When the process that has the database open is killed, the next one takes its place,
// and what was open through it goes on.
func TestHolderIsKilled(t *testing.T) {
	dir := counterDB(t)
	c, end := holder(t, dir)
	db := open(t, dir, nil)
	must.Do(t, increment(db))
	snap := at(t, db, "main")
	s := must.Get(db.Begin(bg, ""))(t)
	must.Do(t, s.Set(bg, "saved", []byte("yes")))
	must.Do(t, s.Savepoint(bg))
	must.Do(t, c.Process.Kill())
	end()
	if got := value(t, snap); got != 1 {
		t.Errorf("the version holds %d", got)
	}
	if !zarrdb.Holds(db) {
		t.Error("no process took its place")
	}
	if _, err := s.Commit(bg, engine.CommitOptions{Message: "after all"}); err != nil {
		t.Errorf("the session that was saved: %v", err)
	}
	must.Do(t, increment(db))
	now := at(t, db, "")
	if got := value(t, now); got != 2 {
		t.Errorf("counted %d", got)
	}
	if b, err := now.Get(bg, "saved", kv.All()); err != nil || string(b) != "yes" {
		t.Errorf("%q, %v", b, err)
	}
}

// Programs read the same in the process that has the database open, beside it, and when it is
// killed before any of their requests.
func TestKilledBeforeEveryRequest(t *testing.T) {
	type state struct {
		db   *engine.DB
		snap *engine.Snapshot
	}
	steps := []func(s *state) (any, error){
		func(s *state) (any, error) { return nil, increment(s.db) },
		func(s *state) (any, error) {
			err := s.db.CreateTag(bg, "v1", "main")
			if errors.Is(err, zarrdb.ErrGone) { // requests that write are not repeated
				err = s.db.CreateTag(bg, "v1", "main")
			}
			return nil, err
		},
		func(s *state) (_ any, err error) { s.snap, err = s.db.At(bg, "main"); return nil, err },
		func(s *state) (any, error) { return nil, increment(s.db) },
		func(s *state) (any, error) {
			var out []string
			for c, err := range s.db.Log(bg, "") {
				if err != nil {
					return nil, err
				}
				out = append(out, c.Message)
			}
			return out, nil
		},
		func(s *state) (any, error) {
			var out []string
			for c, err := range s.db.Diff(bg, "v1", "main@{0}", "") {
				if err != nil {
					return nil, err
				}
				out = append(out, c.Key)
			}
			return out, nil
		},
		func(s *state) (any, error) {
			branches, tags, err := s.db.Refs(bg)
			if err != nil {
				return nil, err
			}
			return []string{branches[0].Name, tags[0].Name, fmt.Sprint(len(branches), len(tags))}, nil
		},
		func(s *state) (any, error) {
			var out []string
			for n, err := range s.snap.Walk(bg, "") {
				if err != nil {
					return nil, err
				}
				out = append(out, n.Path())
			}
			return out, nil
		},
		func(s *state) (any, error) {
			a, err := s.snap.Array(bg, "counter")
			if err != nil {
				return nil, err
			}
			v, _, err := zarr.Read[int64](bg, a, zarr.Sel())
			return v, err
		},
		func(s *state) (any, error) {
			c, err := s.db.Lookup(bg, "main~1")
			if err != nil {
				return nil, err
			}
			return c.Generation, nil
		},
		func(s *state) (any, error) {
			_, err := s.db.Lookup(bg, "none")
			return errors.Is(err, zarrdb.ErrNotFound), nil
		},
	}
	run := func(kill int, there bool) (out []string) {
		dir := counterDB(t)
		var c *exec.Cmd
		end := func() {}
		if there {
			c, end = holder(t, dir)
		}
		s := state{db: open(t, dir, nil)}
		for i, step := range steps {
			if i == kill {
				must.Do(t, c.Process.Kill())
				end()
			}
			v, err := step(&s)
			if err != nil {
				t.Errorf("killed before %d: step %d: %v", kill, i, err)
			}
			out = append(out, fmt.Sprint(v))
		}
		_ = s.snap.Close()
		if err := s.db.Close(); err != nil {
			t.Error(err)
		}
		end()
		return out
	}
	want := run(-1, false)
	for kill := -1; kill < len(steps); kill++ {
		if got := run(kill, true); !slices.Equal(got, want) {
			t.Errorf("killed before %d: %q, want %q", kill, got, want)
		}
	}
}

// A private database keeps others out, who are told who has it.
func TestPrivate(t *testing.T) {
	dir := counterDB(t)
	open(t, dir, &zarrdb.Options{Private: true})
	if _, err := zarrdb.Open(bg, dir, nil); !errors.Is(err, zarrdb.ErrLocked) {
		t.Errorf("opened beside a private one: %v", err)
	}
}

// What a session guards is a conflict if it changes, wherever the database is open.
func TestGuards(t *testing.T) {
	for _, where := range []string{"here", "elsewhere"} {
		t.Run(where, func(t *testing.T) {
			dir := counterDB(t)
			if where == "elsewhere" {
				holder(t, dir)
			}
			db := open(t, dir, nil)
			guards := map[string]func(s *engine.Session) error{
				"a path": func(s *engine.Session) error { return s.Guard(bg, "counter") },
				"a read": func(s *engine.Session) error {
					a, err := s.Array(bg, "counter")
					if err != nil {
						return err
					}
					return s.GuardRead(bg, a, zarr.Sel())
				},
				"nothing": func(s *engine.Session) error { return nil },
			}
			for name, guard := range guards {
				s, err := db.Begin(bg, "")
				if err == nil {
					err = guard(s)
				}
				if err == nil {
					err = s.Set(bg, "other", []byte(name))
				}
				if err == nil {
					err = increment(db)
				}
				must.Do(t, err)
				_, err = s.Commit(bg, engine.CommitOptions{})
				if want := name != "nothing"; errors.Is(err, zarrdb.ErrConflict) != want || !want && err != nil {
					t.Errorf("%s is guarded: %v", name, err)
				}
			}
		})
	}
}

// Consolidated metadata names an array that was made below it, also where another
// process has the database open.
func TestConsolidatedHereAndThere(t *testing.T) {
	for _, version := range []zarr.Version{zarr.V2, zarr.V3} {
		for _, there := range []bool{false, true} {
			t.Run(fmt.Sprint(version, there), func(t *testing.T) {
				dir := counterDB(t)
				if there {
					holder(t, dir)
				}
				db := open(t, dir, nil)
				spec := zarr.Spec{Shape: []int64{1}, DataType: "int64"}
				update := func(fn func(s *engine.Session) error) {
					t.Helper()
					must.Get(db.Update(bg, "main", "", fn))(t)
				}
				update(func(s *engine.Session) error {
					err := s.DeletePrefix(bg, "")
					if err == nil {
						_, err = s.CreateGroup(bg, "g", version, zarr.Attributes{})
					}
					for _, name := range []string{"g/a", "g/gone"} {
						if err == nil {
							_, err = s.CreateArray(bg, name, spec)
						}
					}
					return errors.Join(err, zarr.Consolidate(bg, s, "g", nil))
				})
				update(func(s *engine.Session) error {
					_, err := s.CreateArray(bg, "g/b", spec)
					return errors.Join(err, s.DeletePrefix(bg, "g/gone/"))
				})
				var paths []string
				for n, err := range zarr.Walk(bg, at(t, db, ""), "g", &zarr.OpenOptions{Consolidated: true}) {
					must.Do(t, err)
					paths = append(paths, n.Path())
				}
				key := "g/.zmetadata"
				if version == zarr.V3 {
					key = "g/zarr.json"
				}
				doc, err := at(t, db, "").Get(bg, key, kv.All())
				if err != nil || fmt.Sprint(paths) != "[g g/a g/b]" || !strings.Contains(string(doc), "consolidated") {
					t.Errorf("nodes %v, consolidated metadata %s (%v)", paths, doc, err)
				}
			})
		}
	}
}

// Update leaves no session open, however the function ends.
func TestUpdateThatPanics(t *testing.T) {
	db := must.Get(zarrdb.Open(bg, filepath.Join(t.TempDir(), "p.zdb"), &zarrdb.Options{Create: true}))(t)
	defer db.Close()
	wrong := errors.New("wrong")
	for name, end := range map[string]func() error{
		"panic": func() error { panic(wrong) },
		"exit":  func() error { runtime.Goexit(); return nil },
		"error": func() error { return wrong },
	} {
		done := make(chan any, 1)
		go func() {
			defer func() { done <- recover() }()
			_, err := db.Update(bg, "main", "", func(s *engine.Session) error {
				if err := s.Set(bg, "k", []byte("1")); err != nil {
					return err
				}
				return end()
			})
			panic(err)
		}()
		if got := <-done; name != "exit" && got != wrong {
			t.Errorf("%s: %v", name, got)
		}
		if list, err := db.Sessions(bg); err != nil || len(list) > 0 {
			t.Errorf("%s: sessions that are open: %v, %v", name, list, err)
		}
	}
}

// TestOpenRemote opens a remote by its URL, which fetches what is read, follows the remote, and takes no writes.
func TestOpenRemote(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", filepath.Join(dir, "cache"))
	url := "file://" + filepath.ToSlash(dir) + "/remote"
	db := must.Get(zarrdb.Open(bg, filepath.Join(dir, "w.zdb"), &zarrdb.Options{Create: true}))(t)
	defer db.Close()
	get := func(db *engine.DB) string {
		s := must.Get(db.At(bg, "main"))(t)
		defer s.Close()
		return string(must.Get(s.Get(bg, "k", kv.All()))(t))
	}
	for _, value := range []string{"one", "two"} {
		must.Get(db.Update(bg, "main", value, func(s *engine.Session) error { return s.Set(bg, "k", []byte(value)) }))(t)
		r := must.Get(db.Remote(bg, url, &engine.RemoteOptions{Push: true}))(t)
		must.Get(r.Push(bg, txn.TransferOptions{}))(t)
		must.Do(t, r.Close())
		first := must.Get(zarrdb.Open(bg, url, nil))(t)
		second := must.Get(zarrdb.Open(bg, url, &zarrdb.Options{ReadOnly: true}))(t)
		if get(first) != value || get(second) != value {
			t.Errorf("%q and %q, not %q", get(first), get(second), value)
		}
		_, err := first.Begin(bg, "main")
		if !errors.Is(err, zarrdb.ErrReadOnly) || !strings.Contains(err.Error(), "zarrdb clone "+url) {
			t.Errorf("a write: %v", err)
		}
		if info := must.Get(os.Stat(first.Dir()))(t); runtime.GOOS != "windows" && info.Mode().Perm() != 0o700 {
			t.Errorf("others may look into the cache: %v", info.Mode())
		}
		must.Do(t, first.Close())
		must.Do(t, second.Close())
	}
	// What stays open follows when it is asked, after a while.
	open := must.Get(zarrdb.Open(bg, url, nil))(t)
	defer open.Close()
	for _, value := range []string{"three", "four"} {
		must.Get(db.Update(bg, "main", value, func(s *engine.Session) error { return s.Set(bg, "k", []byte(value)) }))(t)
		r := must.Get(db.Remote(bg, url, &engine.RemoteOptions{Push: true}))(t)
		must.Get(r.Push(bg, txn.TransferOptions{}))(t)
		must.Do(t, r.Close())
		must.Do(t, open.Follow(bg, time.Hour))
		if got := get(open); got != "two" {
			t.Errorf("followed: %q", got)
		}
	}
	if must.Do(t, open.Follow(bg, 0)); get(open) != "four" {
		t.Errorf("followed: %q", get(open))
	}
	must.Do(t, os.Rename(filepath.Join(dir, "remote"), filepath.Join(dir, "gone")))
	var told string
	again := must.Get(zarrdb.Open(bg, url, &zarrdb.Options{Engine: engine.Options{Warn: func(text string) { told = text }}}))(t)
	defer again.Close()
	if get(again) != "four" || !strings.Contains(told, url) {
		t.Errorf("offline: %q", told)
	}
	if _, err := zarrdb.Open(bg, url+"2", nil); !errors.Is(err, zarrdb.ErrNotFound) {
		t.Errorf("nothing there: %v", err)
	}
}
