package txn

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/txn/internal/namespace"
)

// Deleting from a number on leaves exactly the chunks before it.
func TestDeleteChunks(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	for round := range uint64(30) {
		rnd := rand.New(rand.NewPCG(seed, round))
		f := Form{Prefix: []string{"", "c/"}[rnd.IntN(2)], Sep: "./"[rnd.IntN(2)], Rank: 1 + rnd.IntN(3)}
		axis, path := rnd.IntN(f.Rank), []string{"", "a", "g/a"}[rnd.IntN(3)]
		spread := []int64{3, 40, 400, 1 << 20}[rnd.IntN(4)]
		from := rnd.Int64N(spread + 1)
		db := bulkDB(t)
		s := begin(t, db)
		want := map[string]string{
			namespace.DirPath(path) + "zarr.json": fmt.Sprintf("array f=%s:%c:%d", f.Prefix, f.Sep, f.Rank),
			namespace.DirPath(path) + "notes":     "n", "other/7": "o",
		}
		set(t, s, want)
		for range 1 + rnd.IntN(1500) {
			rel, outside := f.Prefix, false
			for d := range f.Rank {
				n := rnd.Int64N(spread)
				if d < axis && rnd.IntN(4) > 0 {
					n = rnd.Int64N(3) // long rows
				}
				outside = outside || d == axis && n >= from
				if d > 0 {
					rel += string(f.Sep)
				}
				rel += strconv.FormatInt(n, 10)
			}
			key := namespace.DirPath(path) + rel
			must.Do(t, s.Set(bg, key, []byte("v")))
			if !outside {
				want[key] = "v"
			}
		}
		must.Do(t, s.DeleteChunks(bg, path, f, axis, from))
		if got := contents(t, s); !maps.Equal(got, want) {
			t.Fatalf("seed %d, round %d: %v of %q from %d along %d: %d keys, want %d", seed, round, f, path, from, axis, len(got), len(want))
		}
		before := s.work
		if err := s.DeleteChunks(bg, path, f, axis, from); err != nil || s.work != before {
			t.Fatalf("seed %d, round %d: deleting again changes something, %v", seed, round, err)
		}
	}
}

func TestDeleteChunksRefuses(t *testing.T) {
	s := begin(t, bulkDB(t))
	for _, c := range []struct {
		f    Form
		axis int
		from int64
	}{
		{Form{Sep: '.', Rank: 2}, 2, 0}, {Form{Sep: '.', Rank: 2}, -1, 0}, {Form{Sep: '.', Rank: 2}, 0, -1}, {Form{Sep: 'x', Rank: 2}, 0, 0}, {Form{Prefix: "c"}, 0, 0},
	} {
		if err := s.DeleteChunks(bg, "a", c.f, c.axis, c.from); !errors.Is(err, kv.ErrInvalidKey) {
			t.Errorf("%+v: %v", c, err)
		}
	}
	if err := s.DeleteChunks(bg, "missing", Form{Sep: '.', Rank: 2}, 1, 0); err != nil {
		t.Error(err)
	}
}
