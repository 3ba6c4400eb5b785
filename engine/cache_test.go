package engine

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/zarrdb/zarrdb/engine/internal/cache"
	"github.com/zarrdb/zarrdb/kv"
)

// counting counts what is decoded.
type counting struct {
	*cache.Cache
	decoded *atomic.Int64
}

func (c counting) Load(ctx context.Context, id kv.ID, codec [16]byte, decode func() ([]byte, error)) ([]byte, error) {
	return c.Cache.Load(ctx, id, codec, func() ([]byte, error) {
		c.decoded.Add(1)
		return decode()
	})
}

// The cache serves all versions: a chunk that is the same in two of them is
// kept once, from whichever it is read. One that is read whole is kept when it is read
// again: what passes through once does not drop the others.
func TestVersionsShareTheCache(t *testing.T) {
	db := openDB(t, nil)
	commit(t, db, "", "x", func(s *Session) error { return create(s, "x", line(4000, 1000)) })
	commit(t, db, "", "change", func(s *Session) error { return put(s, "x", 0, 7) })
	var decoded atomic.Int64
	for i, want := range []int64{0, 4, 4, 5, 5} { // the second version has one other chunk
		s := at(t, db, []string{"main~1", "main~1", "main", "main", "main~1"}[i])
		s.nodes.open.Cache = counting{db.cache, &decoded}
		if v := ints(t, s, "x"); v[3999] != 3999 {
			t.Fatal("other values")
		}
		db.cache.Wait()
		if n := decoded.Load(); n != want {
			t.Errorf("after %d reads %d chunks were decoded for it, want %d", i+1, n, want)
		}
	}
}
