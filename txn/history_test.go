package txn

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/txn/internal/toy"
)

// say commits what fn does.
func say(t *testing.T, db *DB, branch, message string, fn func(*Session) error) CommitID {
	t.Helper()
	s := must.Get(db.Begin(bg, branch))(t)
	if err := fn(s); err != nil {
		t.Fatalf("%s: %v", message, err)
	}
	c, err := s.Commit(bg, CommitOptions{Message: message, AllowEmpty: true})
	if err != nil {
		t.Fatalf("%s: %v", message, err)
	}
	return c.ID
}

// setAll sets pairs of keys and values, "" deletes.
func setAll(pairs ...string) func(*Session) error {
	return func(s *Session) (err error) {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i+1] == "" {
				err = errors.Join(err, s.Delete(bg, pairs[i]))
			} else {
				err = errors.Join(err, s.Set(bg, pairs[i], []byte(pairs[i+1])))
			}
		}
		return err
	}
}

const toyArray = "array f=c/:/:1"

// grown makes a history with renames and merges.
func grown(t *testing.T) *DB {
	db := openTest(t, nil)
	say(t, db, "", "create", setAll("g/zarr.json", "group", "g/a/zarr.json", toyArray, "g/a/c/0", "0", "g/a/c/1", "0"))
	base := say(t, db, "", "elsewhere", setAll("z/k", "1"))
	must.Do(t, db.CreateBranch(bg, "side", base))
	say(t, db, "", "first", setAll("g/a/c/0", "1"))
	say(t, db, "side", "second", setAll("g/a/c/1", "1"))
	side := say(t, db, "side", "far away", setAll("z/l", "1"))
	must.Get(db.Merge(bg, "", side, CommitOptions{Message: "merge"}))(t)
	say(t, db, "", "rename array", func(s *Session) error { return s.Move(bg, "g/a", "g/b") })
	say(t, db, "", "third", setAll("g/b/c/2", "1"))
	say(t, db, "", "rename group", func(s *Session) error { return s.Move(bg, "g", "h") })
	say(t, db, "", "remove", setAll("h/b/c/2", ""))
	return db
}

func TestHistoryOfAPath(t *testing.T) {
	db := grown(t)
	head, _ := db.Head(bg, "")
	for _, c := range []struct {
		path   string
		follow bool
		want   string
	}{
		{"", false, "remove, rename group, third, rename array, merge, far away, second, first, elsewhere, create"},
		{"h/b", false, "remove, rename group"},
		{"h/b", true, "remove h/b, rename group h/b, third g/b, rename array g/b, merge g/a, second g/a, first g/a, create g/a"},
		{"/h/", true, "remove h, rename group h, third g, rename array g, merge g, second g, first g, create g"},
		{"h/b/c/0", true, "rename group h/b/c/0, rename array g/b/c/0, first g/a/c/0, create g/a/c/0"},
		{"h/b/c/2", false, "remove, rename group"},
		{"z", true, "far away z, elsewhere z"},
		{"z/k", false, "elsewhere"},
		{"g/a", false, "rename array, merge, second, first, create"},
		{"nope", true, ""},
	} {
		var got []string
		for pc, err := range db.History(bg, head, c.path, c.follow) {
			must.Do(t, err)
			line := pc.Message
			if c.follow {
				line += " " + pc.Path
			}
			got = append(got, line)
		}
		if strings.Join(got, ", ") != c.want {
			t.Errorf("history of %q, follow %v:\n got %s\nwant %s", c.path, c.follow, strings.Join(got, ", "), c.want)
		}
	}
	for _, err := range db.History(bg, CommitID{1}, "", false) {
		if !errors.Is(err, ErrNoRef) {
			t.Errorf("of a commit that is not there: %v", err)
		}
	}
}

func TestBlame(t *testing.T) {
	db := grown(t)
	head, _ := db.Head(bg, "")
	blame := func(at CommitID, path string, keys ...string) (got []string) {
		t.Helper()
		list := must.Get(db.Blame(bg, at, path, keys))(t)
		for _, c := range list {
			got = append(got, c.Message)
		}
		return got
	}
	keys := []string{"c/0", "c/1", "c/2", "c/3", "zarr.json"}
	if got, want := blame(head, "h/b", keys...), []string{"first", "second", "remove", "create", "create"}; !slices.Equal(got, want) {
		t.Errorf("blame %q, want %q", got, want)
	}
	third := must.Get(db.Resolve(bg, "main~2"))(t)
	if got, want := blame(third, "/g/b/", keys...), []string{"first", "second", "third", "create", "create"}; !slices.Equal(got, want) {
		t.Errorf("blame %q, want %q", got, want)
	}
	say(t, db, "", "again", func(s *Session) error {
		return errors.Join(s.DeletePrefix(bg, "h/b/"), setAll("h/b/zarr.json", toyArray, "h/b/c/0", "1")(s))
	})
	head, _ = db.Head(bg, "")
	if got, want := blame(head, "h/b", keys...), []string{"again", "again", "again", "again", "again"}; !slices.Equal(got, want) {
		t.Errorf("blame of a new array %q, want %q", got, want)
	}
	if _, err := db.Blame(bg, head, "h/b", []string{"c/0", "c/0"}); err == nil {
		t.Error("a key twice")
	}
	if _, err := db.Blame(bg, CommitID{1}, "h/b", keys); !errors.Is(err, ErrNoRef) {
		t.Errorf("of a commit that is not there: %v", err)
	}
}

// TestBlameModel compares blame of random lines of commits with a look at every
// version.
func TestBlameModel(t *testing.T) {
	if testing.Short() {
		t.Skip("the work of one goroutine, many times")
	}
	rnd, _ := toy.Rand(t)
	db := openTest(t, nil)
	const chunks = 300
	keys := make([]string, chunks)
	for i := range keys {
		keys[i] = fmt.Sprintf("c/%d", i)
	}
	path := "a"
	state := map[string]string{}
	writer := map[string]CommitID{}
	id := say(t, db, "", "create", setAll("a/zarr.json", toyArray))
	for _, k := range keys {
		writer[k] = id
	}
	for round := range 40 {
		before := maps.Clone(state)
		id := say(t, db, "", fmt.Sprint(round), func(s *Session) error {
			n := []int{0, 1, 5, chunks}[rnd.IntN(4)]
			for range n {
				k, v := keys[rnd.IntN(chunks)], fmt.Sprint(rnd.IntN(4))
				if v == "3" {
					v = ""
				}
				if err := setAll(path+"/"+k, v)(s); err != nil {
					return err
				}
				state[k] = v
			}
			if rnd.IntN(5) == 0 {
				to := "moved/" + fmt.Sprint(round)
				if err := s.Move(bg, path, to); err != nil {
					return err
				}
				path = to
			}
			return nil
		})
		for k, v := range state {
			if before[k] != v {
				writer[k] = id
			}
		}
	}
	head, _ := db.Head(bg, "")
	// As runs, with windows of few keys, over a grid that has no end.
	v := db.versions()
	for _, most := range []int{4, 50, 0} {
		v.BlameKeys = most
		next, runs := int64(0), 0
		last := CommitID{}
		err := v.BlameRuns(bg, head, path, math.MaxInt64, func(key string) (int64, bool) {
			i, err := strconv.ParseInt(strings.TrimPrefix(key, "c/"), 10, 64)
			return i, err == nil
		}, func(r ChunkRun) bool {
			if runs++; r.From != next || r.To <= r.From || r.Commit.ID == last {
				t.Fatalf("run %v to %v after %d", r.From, r.To, next)
			}
			for i := r.From; i < min(r.To, chunks); i++ {
				if r.Commit.ID != writer[keys[i]] {
					t.Fatalf("windows of %d keys: chunk %d was last changed by %q", most, i, r.Commit.Message)
				}
			}
			next, last = r.To, r.Commit.ID
			return true
		})
		if err != nil || next != math.MaxInt64 || runs > 2*chunks {
			t.Errorf("%d runs end at %d: %v", runs, next, err)
		}
	}
	for _, n := range []int{1, 7, chunks} {
		some := slices.Clone(keys)
		rnd.Shuffle(len(some), func(i, j int) { some[i], some[j] = some[j], some[i] })
		some = some[:n]
		got := must.Get(db.Blame(bg, head, path, some))(t)
		for i, c := range got {
			if c.ID != writer[some[i]] {
				t.Fatalf("%s was last changed by %q, not by %s", some[i], c.Message, writer[some[i]].Short())
			}
		}
	}
}

// Versions that have expired do not make the commits after them changes of a path.
func TestHistoryAfterExpiry(t *testing.T) {
	db := openTest(t, nil)
	made := map[string]CommitID{}
	for _, values := range []string{"a1", "b1", "b2", "b3", "a2", "b4", "b5", "b6"} {
		made[values] = update(t, db, "main", map[string]string{values[:1]: values}).ID
	}
	for _, kept := range []string{"b1", "b3"} {
		must.Do(t, db.CreateTag(bg, kept, made[kept]))
	}
	mustExpire(t, db, ExpireOptions{Keep: 2}) // stays: b1, b3, b5, b6
	mustGC(t, db)
	for path, want := range map[string]string{"a": "b5? b1?", "b": "b6 b5? b3? b1?", "c": ""} {
		var got []string
		for c, err := range db.History(bg, mustHead(t, db), path, false) {
			must.Do(t, err)
			name := ""
			for n, id := range made {
				if id == c.ID {
					name = n
				}
			}
			if c.OrExpired {
				name += "?"
			}
			got = append(got, name)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %v, want %s", path, got, want)
		}
	}
	blamed, err := db.Blame(bg, mustHead(t, db), "", []string{"a", "b"})
	if err != nil || blamed[0].ID != made["b5"] || blamed[1].ID != made["b6"] {
		t.Errorf("blame: %v, %v", blamed, err)
	}
}
