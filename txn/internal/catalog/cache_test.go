package catalog

import (
	"fmt"
	"testing"

	"github.com/zarrdb/zarrdb/kv/digest"
)

// The cache of commits is bounded and keeps what was asked for last.
func TestCommitCache(t *testing.T) {
	var c CommitCache
	id := func(i int) CommitID { return CommitID(digest.Of(fmt.Append(nil, i))) }
	for i := range 5 * commitsCached {
		c.put(&Commit{ID: id(i), Generation: uint64(i)})
		if got, ok := c.Get(id(0)); !ok || got.Generation != 0 {
			t.Fatalf("after %d: what is asked for all the time is gone", i)
		}
		if n := len(c.young) + len(c.old); n > 2*commitsCached {
			t.Fatalf("%d commits are kept", n)
		}
	}
	for i := range commitsCached - 1 {
		n := 5*commitsCached - 1 - i
		if got, ok := c.Get(id(n)); !ok || got.ID != id(n) {
			t.Fatalf("commit %d: %+v, %v", n, got, ok)
		}
	}
	if _, ok := c.Get(id(1)); ok {
		t.Error("an old one is kept")
	}
	c.Forget()
	if _, ok := c.Get(id(0)); ok {
		t.Error("nothing was forgotten")
	}
}
