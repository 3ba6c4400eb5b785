package txn

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/tree"
	"github.com/zarrdb/zarrdb/txn/internal/namespace"
)

func bulkDB(t testing.TB) *DB {
	t.Helper()
	db := must.Get(Create("db", testOptions(vfs.NewMem())))(t)
	t.Cleanup(func() {
		if r, err := db.Check(bg, CheckOptions{Payloads: true}); err != nil || len(r.Problems) > 0 {
			t.Errorf("check: %v %v", r, err)
		}
		db.Close()
	})
	return db
}

func begin(t testing.TB, db *DB) *Session {
	t.Helper()
	s := must.Get(db.Begin(bg, ""))(t)
	// One identity for all: equal content then has equal roots.
	s.space.NewID = func() [16]byte { return [16]byte{7} }
	t.Cleanup(func() { s.Abort() })
	return s
}

// bulkPut is one put of a random history: bytes, or a reference.
type bulkPut struct {
	key     string
	bytes   string
	url     string
	off, sz uint64
}

// randomPuts makes puts of arrays, also inside of one another, in any order.
func randomPuts(rnd *rand.Rand, n int, again bool) (puts []bulkPut) {
	dirs := []string{"", "t/", "t/0/", "g/a/", "g/b/", "g/b/c/"}
	docs := []string{"f=:.:2 array", "f=c/:/:2 array", "f=:/:3 array", "f=:.:1", "array", "f=x:.:1 f=:/:2"}
	seen := map[string]bool{}
	for range n {
		dir := dirs[rnd.IntN(len(dirs))]
		p := bulkPut{url: fmt.Sprintf("s3://b/%d", rnd.IntN(3)), off: rnd.Uint64N(100), sz: rnd.Uint64N(100)}
		num := func() int { return rnd.IntN(12) }
		switch rnd.IntN(12) {
		case 0:
			p = bulkPut{key: dir + ".zarray", bytes: docs[rnd.IntN(len(docs))]}
			if dir == "" && rnd.IntN(4) > 0 || seen[p.key] && !again {
				continue
			}
		case 1:
			p = bulkPut{key: dir + "notes", bytes: "text"}
		case 2:
			p = bulkPut{key: fmt.Sprintf("%s%d.%d", dir, num(), num()), bytes: strings.Repeat("x", rnd.IntN(400))}
		case 3, 4:
			p.key = fmt.Sprintf("%s%d.%d", dir, num(), num())
		case 5, 6:
			p.key = fmt.Sprintf("%sc/%d/%d", dir, num(), num())
		case 7, 8:
			p.key = fmt.Sprintf("%s%d/%d/%d", dir, num(), num(), num())
		case 9:
			p.key = fmt.Sprintf("%s%d/%d", dir, num(), num())
		case 10:
			p.key = fmt.Sprintf("%sx%d", dir, num())
		default:
			p.key = fmt.Sprintf("%s%02d", dir, num())
		}
		seen[p.key] = true
		puts = append(puts, p)
	}
	if rnd.IntN(3) == 0 { // as sets have it most often
		slices.SortStableFunc(puts, func(a, b bulkPut) int { return strings.Compare(a.key, b.key) })
	}
	return puts
}

func (p *bulkPut) plain(t testing.TB, s *Session, path string) {
	t.Helper()
	err := error(nil)
	if p.url != "" {
		err = s.SetVirtual(bg, path+p.key, tree.Source{URL: p.url}, p.off, p.sz)
	} else {
		err = s.Set(bg, path+p.key, []byte(p.bytes))
	}
	must.Do(t, err)
}

func (p *bulkPut) bulk(t testing.TB, b *Bulk) {
	t.Helper()
	err := error(nil)
	if p.url != "" {
		err = b.SetVirtual(bg, p.key, tree.Source{URL: p.url}, p.off, p.sz)
	} else {
		err = b.Set(bg, p.key, []byte(p.bytes))
	}
	must.Do(t, err)
}

// stored is every key with its value, payloads by their hash.
func stored(t testing.TB, s *Session) map[string]string {
	t.Helper()
	root := must.Get(s.flushed(bg))(t)
	out := map[string]string{}
	for it, err := range s.space.Scan(bg, root, "") {
		must.Do(t, err)
		if _, ok := out[it.Key]; ok {
			t.Errorf("%s is stored twice", it.Key)
		}
		out[it.Key] = fmt.Sprintf("%v %v %q %d %d", it.Value.Kind == tree.KindVirtual, it.Value.ContentSum(), it.Value.Source.URL, it.Value.Offset, it.Value.Length)
	}
	return out
}

// A bulk write makes what puts one by one make, down to the pages.
func TestBulkIsPut(t *testing.T) {
	seed := must.Seed(t)
	rnd := rand.New(rand.NewPCG(seed, 0))
	rounds := 120
	if testing.Short() {
		rounds = 40
	}
	db := bulkDB(t)
	for round := range rounds {
		add, again := rnd.IntN(2) == 0, rnd.IntN(3) == 0
		path := []string{"", "in", "a/b"}[rnd.IntN(3)]
		before := randomPuts(rnd, rnd.IntN(40), again)
		if rnd.IntN(2) == 0 {
			before = nil
		}
		puts := randomPuts(rnd, 1+rnd.IntN(300), again)

		plain, bulk := begin(t, db), begin(t, db)
		for i := range before {
			before[i].plain(t, plain, namespace.DirPath(path))
			before[i].plain(t, bulk, namespace.DirPath(path))
		}
		if !add {
			must.Do(t, plain.DeletePrefix(bg, namespace.DirPath(path)))
		}
		for i := range puts {
			puts[i].plain(t, plain, namespace.DirPath(path))
		}
		b := must.Get(bulk.Bulk(bg, path, add))(t)
		if rnd.IntN(2) == 0 {
			b.node.Limits = namespace.BuilderLimits{Builders: 1 + rnd.IntN(3), Pending: 1 + rnd.IntN(9), Held: int64(rnd.IntN(2000))}
		}
		for i := range puts {
			puts[i].bulk(t, b)
		}
		must.Do(t, b.Finish(bg))
		want, got := stored(t, plain), stored(t, bulk)
		if !maps.Equal(want, got) {
			for k := range want {
				if got[k] != want[k] {
					t.Errorf("round %d: %s is %s, want %s", round, k, got[k], want[k])
				}
			}
			t.Fatalf("round %d: %d keys, want %d; path %q, add %v", round, len(got), len(want), path, add)
		}
		if err := checkHomes(bulk); err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		// Which chunk maps there are without a document that names them is a
		// matter of history.
		if !again && before == nil && plain.work != bulk.work {
			t.Fatalf("round %d: other pages for the same keys; path %q, add %v", round, path, add)
		}
		plain.Abort()
		bulk.Abort()
	}
}

// Writing the same keys again changes nothing, also where values are large and
// arrays have an identity.
func TestBulkAgain(t *testing.T) {
	db := bulkDB(t)
	write := func(extra string) *Commit {
		s := must.Get(db.Begin(bg, ""))(t)
		b := must.Get(s.Bulk(bg, "n", false))(t)
		for i, key := range []string{".zgroup", "t/.zarray", "t/1.1", "t/0.5", "t/7.7", extra} {
			p := bulkPut{key: key, bytes: strings.Repeat("f=:.:2 array ", 100*i)}
			p.bulk(t, b)
		}
		must.Do(t, b.Finish(bg))
		if err := b.Finish(bg); err == nil {
			t.Error("finished twice")
		}
		c := must.Get(s.Commit(bg, CommitOptions{}))(t)
		return c
	}
	first := write("t/9.9")
	if again := write("t/9.9"); again.ID != first.ID {
		t.Error("the same keys made a commit")
	}
	other := write("t/8.8")
	n := 0
	for c, err := range db.Diff(bg, first.ID, other.ID, "") {
		if err != nil || c.Key != "n/t/9.9" && c.Key != "n/t/8.8" {
			t.Error(c, err)
		}
		n++
	}
	if n != 2 {
		t.Errorf("%d changes", n)
	}
}

// Writing a node anew leaves out the pages that it has already. They stay while
// the session is open, though nothing else needs them: the branch moves on, its
// history is let go, and collections come in between.
func TestBulkReuse(t *testing.T) {
	db := bulkDB(t)
	write := func(s *Session, changed int, between func()) {
		t.Helper()
		b := must.Get(s.Bulk(bg, "n", false))(t)
		for i := range 20_000 {
			if i == 10_000 {
				between()
			}
			p := bulkPut{key: fmt.Sprintf("t/%d.%d", i/100, i%100), url: "s3://b/x", off: uint64(i), sz: 5}
			if i == changed {
				p.off = 3
			}
			if i == 0 {
				p = bulkPut{key: "t/.zarray", bytes: "f=:.:2 array"}
			}
			p.bulk(t, b)
		}
		between()
		must.Do(t, b.Finish(bg))
		between()
	}
	commit := func(s *Session) *Commit {
		t.Helper()
		c := must.Get(s.Commit(bg, CommitOptions{choose: func(Conflict) Choice { return Theirs }}))(t)
		return c
	}
	s := begin(t, db)
	write(s, -1, func() {})
	commit(s)

	s = begin(t, db)
	used := db.DiskUse().IndexWritten
	round := 0
	write(s, 7777, func() {
		// Others remove the node and let its versions go.
		round++
		update(t, db, "", map[string]string{"round": fmt.Sprint(round)})
		if round == 1 {
			o := begin(t, db)
			must.Do(t, o.DeletePrefix(bg, "n/"))
			commit(o)
		}
		must.Get(db.Expire(bg, ExpireOptions{Keep: 1}))(t)
		must.Get(db.GC(bg, GCOptions{}))(t)
		if round == 2 {
			must.Do(t, s.Savepoint(bg))
		}
	})
	commit(s)
	if wrote := db.DiskUse().IndexWritten - used; wrote > 64<<10 {
		t.Errorf("one changed chunk of 20000 wrote %d bytes", wrote)
	}
	n := 0
	for k := range stored(t, begin(t, db)) {
		if strings.HasPrefix(k, "n/t/") {
			n++
		}
	}
	if n != 20_000 {
		t.Errorf("%d keys", n)
	}
}

func TestBulkErrors(t *testing.T) {
	db := bulkDB(t)
	s := begin(t, db)
	for i, key := range []string{"", strings.Repeat("k", namespace.MaxKey), "a\x00b\xff"} {
		b, err := s.Bulk(bg, "n", false)
		must.Do(t, err)
		err = b.Set(bg, key, nil)
		if bad := kv.ValidKey(key) != nil || i == 1; bad && !errors.Is(err, kv.ErrInvalidKey) {
			t.Errorf("%q: %v", key, err)
		}
		if err != nil && b.Finish(bg) == nil {
			t.Errorf("%q: finished after an error", key)
		}
	}
	set(t, s, map[string]string{"t/.zarray": "f=:.:2 array"})
	if _, err := s.Bulk(bg, "t/0", true); !errors.Is(err, kv.ErrInvalidKey) {
		t.Errorf("add inside an array: %v", err)
	}
	must.Do(t, s.Abort())
	if _, err := s.Bulk(bg, "", false); !errors.Is(err, ErrSessionClosed) {
		t.Errorf("on a closed session: %v", err)
	}
}
