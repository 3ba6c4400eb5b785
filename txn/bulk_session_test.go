package txn

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/digest"
	"github.com/zarrdb/zarrdb/kv/pack"
	"github.com/zarrdb/zarrdb/txn/internal/namespace"
)

// A commit must not name a payload that a bulk write stored before packs failed.
func TestBulkPackFailureFailsCommit(t *testing.T) {
	for _, finishFirst := range []bool{true, false} {
		var broken atomic.Bool
		db := openTest(t, testOptions(failingPacks(&broken)))
		s := mustBegin(t, db)
		b := must.Get(s.Bulk(bg, "", true))(t)
		must.Do(t, b.Set(bg, "doc", []byte(payload("mine"))))
		finish := func() {
			t.Helper()
			must.Do(t, b.Finish(bg))
		}
		if finishFirst {
			finish()
		}
		broken.Store(true)
		culprit := mustBegin(t, db)
		set(t, culprit, map[string]string{"culprit": payload("culprit")})
		if _, err := culprit.Commit(bg, CommitOptions{}); !errors.Is(err, pack.ErrFailed) {
			t.Fatalf("commit on a broken disk: %v", err)
		}
		broken.Store(false)
		if !finishFirst {
			if err := b.Set(bg, "later", []byte(payload("later"))); !errors.Is(err, ErrLost) {
				t.Errorf("bulk write after the failure: %v, want ErrLost", err)
			}
			finish()
		}
		if err := s.Savepoint(bg); !errors.Is(err, ErrLost) {
			t.Errorf("savepoint: %v, want ErrLost", err)
		}
		if _, err := s.Commit(bg, CommitOptions{}); !errors.Is(err, ErrLost) {
			t.Errorf("commit: %v, want ErrLost", err)
		}
		must.Do(t, s.Abort())
	}
}

// A payload that is stored while a savepoint syncs is not taken for durable.
func TestPayloadDuringSavepointStaysNoted(t *testing.T) {
	for _, failed := range []bool{false, true} {
		var f fresh
		must.Do(t, f.note(10, 1))
		was := f.take()
		must.Do(t, f.note(5, 1))
		want := int64(5)
		if failed {
			f.restore(was)
			want = 15
		}
		if n, any := f.size(); n != want || !any {
			t.Errorf("savepoint failed %v: %d bytes, want %d", failed, n, want)
		}
		if f.check(2) == nil {
			t.Errorf("savepoint failed %v: a later failure of packs passes", failed)
		}
	}
	// Payloads from both sides of a failure are never trusted again.
	for _, counts := range [][2]uint64{{1, 2}, {2, 1}} {
		var f fresh
		f.note(1, counts[0])
		was := f.take()
		f.note(1, counts[1])
		f.restore(was)
		if f.check(2) == nil {
			t.Errorf("counts %v: trusted at 2", counts)
		}
	}
}

// What the session writes below the path of an adding bulk write stays.
func TestBulkAddKeepsSessionWrites(t *testing.T) {
	db := openTest(t, nil)
	update(t, db, "main", map[string]string{"d/old": "1", "d/gone": "1"})
	s := mustBegin(t, db)
	b := must.Get(s.Bulk(bg, "d", true))(t)
	set(t, s, map[string]string{"d/mine": "2", "d/gone": "", "d/both": "session"})
	for k, v := range map[string]string{"bulk": "3", "both": "bulk"} {
		must.Do(t, b.Set(bg, k, []byte(v)))
	}
	must.Do(t, b.Finish(bg))
	must.Get(s.Commit(bg, CommitOptions{}))(t)
	want := map[string]string{"d/old": "1", "d/mine": "2", "d/bulk": "3", "d/both": "bulk"}
	if got := at(t, db, "main"); !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// The same with arrays in one another: a session and a bulk write share the puts
// of a random history, which end where one session alone would have put them.
func TestBulkAddBesideSession(t *testing.T) {
	db := bulkDB(t)
	for seed := range uint64(60) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		s := begin(t, db)
		must.Do(t, s.DeletePrefix(bg, ""))
		for _, p := range randomPuts(rnd, 30, false) {
			p.plain(t, s, "p/")
		}
		must.Get(s.Commit(bg, CommitOptions{}))(t)
		puts := randomPuts(rnd, 80, true)
		ofSession := func(key string) bool { return digest.Of([]byte(key))[0]&1 == 0 }

		plain := begin(t, db)
		for _, p := range puts {
			p.plain(t, plain, "p/")
		}
		s = begin(t, db)
		s.space.Limits.Moved = 7
		b := must.Get(s.Bulk(bg, "p", true))(t)
		for _, p := range puts {
			if ofSession(p.key) {
				p.plain(t, s, "p/")
			} else {
				p.bulk(t, b)
			}
			if rnd.IntN(20) == 0 {
				stored(t, s) // writes the buffer
			}
		}
		must.Do(t, b.Finish(bg))
		if got, want := stored(t, s), stored(t, plain); !maps.Equal(got, want) {
			for k := range want {
				if got[k] != want[k] {
					t.Errorf("seed %d: %s: %s, want %s", seed, k, got[k], want[k])
				}
			}
			for k := range got {
				if _, ok := want[k]; !ok {
					t.Errorf("seed %d: %s: was not put", seed, k)
				}
			}
			return
		}
		if err := checkHomes(s); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		plain.Abort()
		s.Abort()
	}
}

// An array that the session puts above the path takes keys of the bulk write.
func TestBulkAddBelowNewArray(t *testing.T) {
	db := bulkDB(t)
	s := begin(t, db)
	b := must.Get(s.Bulk(bg, "t/0", true))(t)
	set(t, s, map[string]string{"t/.zarray": "f=:/:2 array"})
	must.Do(t, b.Set(bg, "7", []byte("chunk")))
	must.Do(t, b.Finish(bg))
	if got := contents(t, s); got["t/0/7"] != "chunk" || len(got) != 2 {
		t.Errorf("got %v", got)
	}
	if err := checkHomes(s); err != nil {
		t.Error(err)
	}
}

// A replacing bulk write does not drop what the session wrote meanwhile.
func TestBulkReplaceRefusesSessionWrites(t *testing.T) {
	for _, elsewhere := range []bool{false, true} {
		db := openTest(t, nil)
		update(t, db, "main", map[string]string{"d/old": "1"})
		s := mustBegin(t, db)
		b, err := s.Bulk(bg, "d", false)
		must.Do(t, err)
		must.Do(t, b.Set(bg, "new", []byte("2")))
		key, want := "d/mine", map[string]string{"d/old": "1", "d/mine": "3"}
		if elsewhere {
			key, want = "e", map[string]string{"d/new": "2", "e": "3"}
		}
		set(t, s, map[string]string{key: "3"})
		err = b.Finish(bg)
		if elsewhere && err != nil || !elsewhere && (err == nil || !strings.Contains(err.Error(), "d/mine")) {
			t.Errorf("wrote %s meanwhile: %v", key, err)
		}
		if got := contents(t, s); !maps.Equal(got, want) {
			t.Errorf("wrote %s meanwhile: %v, want %v", key, got, want)
		}
		s.Abort()
	}
}

// packBytes is how far all packs reach.
func packBytes(db *DB) (n uint64) {
	for _, i := range db.packs.Infos() {
		n += i.Size
	}
	return n
}

// Equal bytes at the same key are stored once, however they are written.
func TestEqualPayloadsAreStoredOnce(t *testing.T) {
	small, large := payload("s"), big("large", 300<<10)
	bulkSet := func(path, key string, add, gone bool) func(*testing.T, *Session, string) {
		return func(t *testing.T, s *Session, value string) {
			if gone {
				must.Do(t, s.DeletePrefix(bg, path+"/"))
			}
			b := must.Get(s.Bulk(bg, path, add))(t)
			for range 2 {
				must.Do(t, b.Set(bg, key, []byte(value)))
			}
			must.Do(t, b.Finish(bg))
		}
	}
	flush := func(t *testing.T, s *Session) {
		must.Get(s.flushed(bg))(t)
	}
	cases := map[string]func(t *testing.T, s *Session, value string){
		"set": func(t *testing.T, s *Session, value string) {
			set(t, s, map[string]string{"a/k": value})
		},
		"set twice": func(t *testing.T, s *Session, value string) {
			set(t, s, map[string]string{"a/k": value})
			flush(t, s)
			set(t, s, map[string]string{"a/k": value})
		},
		"delete and set": func(t *testing.T, s *Session, value string) {
			set(t, s, map[string]string{"a/k": ""})
			set(t, s, map[string]string{"a/k": value})
		},
		"delete, flush and set": func(t *testing.T, s *Session, value string) {
			set(t, s, map[string]string{"a/k": ""})
			flush(t, s)
			set(t, s, map[string]string{"a/k": value})
		},
		"delete all and set": func(t *testing.T, s *Session, value string) {
			must.Do(t, s.DeletePrefix(bg, ""))
			set(t, s, map[string]string{"a/k": value})
		},
		"set another and set": func(t *testing.T, s *Session, value string) {
			set(t, s, map[string]string{"a/k": "other"})
			set(t, s, map[string]string{"a/k": value})
		},
		"bulk add":                   bulkSet("a", "k", true, false),
		"bulk replace":               bulkSet("a", "k", false, false),
		"bulk replace all":           bulkSet("", "a/k", false, false),
		"bulk replace after removal": bulkSet("a", "k", false, true),
	}
	for name, write := range cases {
		t.Run(name, func(t *testing.T) {
			for _, value := range []string{small, large} {
				db := openTest(t, nil)
				head := update(t, db, "main", map[string]string{"a/k": value})
				before := packBytes(db)
				s := mustBegin(t, db)
				write(t, s, value)
				c := must.Get(s.Commit(bg, CommitOptions{}))(t)
				if c.ID != head.ID {
					t.Errorf("%d bytes: equal bytes made a commit", len(value))
				}
				if now := packBytes(db); now != before {
					t.Errorf("%d bytes: packs grew by %d", len(value), now-before)
				}
			}
		})
	}
	// Bytes that the base does not have, put again in the same bulk write.
	t.Run("bulk twice", func(t *testing.T) {
		db := openTest(t, nil)
		s := mustBegin(t, db)
		bulkSet("a", "k", true, false)(t, s, small)
		must.Get(s.Commit(bg, CommitOptions{}))(t)
		if n := packBytes(db); n > uint64(3*len(small)/2) {
			t.Errorf("packs have %d bytes", n)
		}
	})
}

// A payload of a base that the session has left is not named again: nothing keeps
// it, so a collection may have taken it.
func TestPayloadOfFormerBaseIsStoredAgain(t *testing.T) {
	db := openTest(t, nil)
	update(t, db, "main", map[string]string{"k": payload("v")})
	s := mustBegin(t, db)
	set(t, s, map[string]string{"k": "", "mine": "1"})
	v, base, err := s.atBase(bg, "k", digest.Of([]byte(payload("v"))), []byte(payload("v")))
	if err != nil || base == nil {
		t.Fatalf("base has %v: %v", base, err)
	}
	update(t, db, "main", map[string]string{"k": ""})
	must.Do(t, s.Refresh(bg, nil))
	if err := s.put(bg, namespace.Edit{Key: "k", Value: v}, base); err != errOtherBase {
		t.Errorf("put of a payload of the former base: %v", err)
	}
	must.Get(db.Expire(bg, ExpireOptions{Keep: 1}))(t)
	must.Get(db.GC(bg, GCOptions{}))(t)
	set(t, s, map[string]string{"k": payload("v")})
	must.Get(s.Commit(bg, CommitOptions{}))(t)
	if at(t, db, "main")["k"] != payload("v") {
		t.Error("the value is gone")
	}
}

// Changes and Refresh may run side by side.
func TestChangesBesideRefresh(t *testing.T) {
	db := openTest(t, nil)
	s := mustBegin(t, db)
	set(t, s, map[string]string{"x": "1"})
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := range 20 {
			update(t, db, "main", map[string]string{fmt.Sprint("k", i): "v"})
			if err := s.Refresh(bg, nil); err != nil {
				t.Error(err)
			}
		}
	})
	wg.Go(func() {
		for range 100 {
			var keys []string
			for c, err := range s.Changes(bg, "") {
				if err != nil {
					t.Error(err)
				}
				keys = append(keys, c.Key)
			}
			if len(keys) != 1 || keys[0] != "x" {
				t.Errorf("changed: %v", keys)
			}
		}
	})
	wg.Wait()
	s.Abort()
}

// A listing below a directory leaves writes to others in the buffer, so that
// making many arrays does not write the directory above once for each.
func TestListingLeavesOtherWritesBuffered(t *testing.T) {
	db := bulkDB(t)
	s := begin(t, db)
	list := func(prefix string) (keys []string) {
		t.Helper()
		for key, err := range s.List(bg, kv.ListOptions{Prefix: prefix}) {
			must.Do(t, err)
			keys = append(keys, key)
		}
		return keys
	}
	for i := range 100 {
		dir := fmt.Sprintf("g/a%d/", i)
		if got := list(dir); len(got) > 0 {
			t.Fatalf("%s: %v", dir, got)
		}
		must.Do(t, s.DeletePrefix(bg, dir))
		set(t, s, map[string]string{dir + ".zarray": "f=:.:2 array"})
	}
	if len(s.buf) != 100 || s.work != s.start {
		t.Errorf("%d of 100 writes are buffered", len(s.buf))
	}
	for prefix, n := range map[string]int{"g": 100, "g/": 100, "g/a1": 11, "g/a1/": 1, "g/a1/.z": 1, "h/": 0, "g/a100/": 0} {
		if got := list(prefix); len(got) != n {
			t.Errorf("%q: %v", prefix, got)
		}
		set(t, s, map[string]string{"h": prefix + "."})
	}
}

// checkHomes compares what a scan of the working root finds with a look-up of each key:
// they differ for a key that is not where its form belongs.
func checkHomes(s *Session) error {
	for it, err := range s.space.Scan(bg, s.work, "") {
		if err != nil {
			return err
		}
		v, ok, err := s.space.Get(bg, s.work, it.Key)
		if err != nil || !ok || !v.Equal(&it.Value) {
			return fmt.Errorf("%s: found %v, %v", it.Key, ok, err)
		}
	}
	return nil
}
