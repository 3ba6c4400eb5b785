package engine

import (
	"math"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/zarrdb/zarrdb/internal/budget"
)

// The databases of a process share one budget: it holds for all of them, a database that is
// opened later uses it like the first, and closing gives memory back.
func TestDatabasesShareMemory(t *testing.T) {
	const limit = 128 << 20
	options := func() *Options { return &Options{FS: vfs.NewMem(), Create: true, MemoryBytes: limit} }
	before := UsedMemory()
	within := func(what string) MemoryUse {
		t.Helper()
		u := UsedMemory()
		if u.Limit != limit || u.Used > limit || u.Chunks > limit/2 || u.Pages > limit/8 {
			t.Fatalf("%s: %+v", what, u)
		}
		return u
	}
	n := 100
	if testing.Short() {
		n = 40
	}
	var dbs []*DB
	read := func(db *DB) {
		t.Helper()
		s := at(t, db, "main")
		defer s.Close()
		for range 3 {
			if v := ints(t, s, "x"); v[299_999] != 299_999 {
				t.Fatal("other values")
			}
			db.cache.Wait()
		}
	}
	for range n {
		db := openDB(t, options())
		dbs = append(dbs, db)
		commit(t, db, "", "x", func(s *Session) error { return create(s, "x", line(300_000, 3000)) })
		read(db)
		within("open")
	}
	if u := within("all are open"); u.Chunks < limit/4 || u.Pages == 0 || u.Index == 0 {
		t.Errorf("the budget is not used: %+v", u)
	}
	if s := dbs[n-1].CacheStats(); s.Bytes == 0 || s.Hits == 0 {
		t.Errorf("the last database has no memory: %+v", s)
	}
	var sum int64
	for _, db := range dbs {
		sum += db.CacheStats().Bytes
	}
	if u := within("summed up"); sum != u.Chunks {
		t.Errorf("the databases count %d bytes of chunks, the cache %d", sum, u.Chunks)
	}
	last, index := dbs[n-1], UsedMemory().Index
	for _, db := range dbs[:n-1] {
		closeChecked(t, db)
	}
	if u := within("one is left"); u.Chunks != last.CacheStats().Bytes || u.Index > index/10 {
		t.Errorf("memory of closed databases is kept: %+v", u)
	}
	closeChecked(t, last)
	if u := UsedMemory(); u != before {
		t.Errorf("after all are closed: %+v, before %+v", u, before)
	}
}

// A database that several processes have open takes its part in each of them.
func TestProcessesShareMemory(t *testing.T) {
	o := memOptions()
	o.MemoryBytes, o.CacheBytes, o.PageCacheBytes = 32<<20, 0, 0
	db := openDB(t, o)
	commit(t, db, "", "x", func(s *Session) error { return create(s, "x", line(4_000_000, 10_000)) })
	s := at(t, db, "main")
	for range 3 {
		ints(t, s, "x")
		db.cache.Wait()
	}
	if u := UsedMemory(); u.Chunks <= 8<<20 || u.Limit != 32<<20 {
		t.Errorf("alone: %+v", u)
	}
	others := budget.Divide(4)
	if u := UsedMemory(); u.Chunks > 4<<20 || u.Chunks < 2<<20 || u.Limit != 8<<20 {
		t.Errorf("with three peers: %+v", u)
	}
	for range 3 {
		ints(t, s, "x")
		db.cache.Wait()
	}
	if u := UsedMemory(); u.Chunks > 4<<20 || u.Used > 8<<20 {
		t.Errorf("with three peers, after reads: %+v", u)
	}
	others.Leave()
	if u := UsedMemory(); u.Limit != 32<<20 {
		t.Errorf("alone again: %+v", u)
	}
}

// Stats has the use of memory.
func TestStatsOfMemory(t *testing.T) {
	o := memOptions()
	o.MemoryBytes = 64 << 20
	db := openDB(t, o)
	st, err := db.Stats(bg, "")
	if err != nil || st.Memory.Limit != 64<<20 || st.Memory.Index == 0 {
		t.Errorf("%+v, %v", st, err)
	}
	least := memOptions() // room for nothing is no error
	least.MemoryBytes, least.CacheBytes, least.PageCacheBytes = 1, 0, 0
	other := openDB(t, least)
	commit(t, other, "", "x", func(s *Session) error { return create(s, "x", line(100, 10)) })
	if v := ints(t, at(t, other, ""), "x"); v[99] != 99 {
		t.Error(v)
	}
	for _, n := range []int64{-1, math.MaxInt64} {
		if db, err := Open(bg, "other", &Options{FS: vfs.NewMem(), Create: true, MemoryBytes: n}); err == nil {
			t.Errorf("MemoryBytes %d is not an error: %v", n, db.Close())
		}
	}
}
