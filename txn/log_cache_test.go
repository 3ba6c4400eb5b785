package txn

import (
	"fmt"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/zarrdb/zarrdb/kv/digest"
)

// The cache of commits is bounded and keeps what was asked for last.
func TestCommitCache(t *testing.T) {
	var c commitCache
	id := func(i int) CommitID { return CommitID(digest.Of(fmt.Append(nil, i))) }
	for i := range 5 * commitsCached {
		c.put(&Commit{ID: id(i), Generation: uint64(i)})
		if got, ok := c.get(id(0)); !ok || got.Generation != 0 {
			t.Fatalf("after %d: what is asked for all the time is gone", i)
		}
		if n := len(c.young) + len(c.old); n > 2*commitsCached {
			t.Fatalf("%d commits are kept", n)
		}
	}
	for i := range commitsCached - 1 {
		n := 5*commitsCached - 1 - i
		if got, ok := c.get(id(n)); !ok || got.ID != id(n) {
			t.Fatalf("commit %d: %+v, %v", n, got, ok)
		}
	}
	if _, ok := c.get(id(1)); ok {
		t.Error("an old one is kept")
	}
	c.forget()
	if _, ok := c.get(id(0)); ok {
		t.Error("nothing was forgotten")
	}
}

// BenchmarkLog reads the newest thousand versions of many.
func BenchmarkLog(b *testing.B) {
	db, err := Create("db", testOptions(vfs.NewMem()))
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	for i := range 3000 {
		s, err := db.Begin(bg, "main")
		if err != nil {
			b.Fatal(err)
		}
		if err := s.Set(bg, "k", fmt.Append(nil, i)); err != nil {
			b.Fatal(err)
		}
		if _, err := s.Commit(bg, CommitOptions{}); err != nil {
			b.Fatal(err)
		}
	}
	head, err := db.Head("main")
	if err != nil {
		b.Fatal(err)
	}
	for _, cached := range []bool{false, true} {
		b.Run(fmt.Sprintf("cached=%v", cached), func(b *testing.B) {
			for b.Loop() {
				if !cached {
					db.commits.forget()
				}
				n := 0
				for _, err := range db.Log(bg, head) {
					if err != nil {
						b.Fatal(err)
					}
					if n++; n == 1000 {
						break
					}
				}
			}
		})
	}
}
