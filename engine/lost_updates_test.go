package engine

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/txn"
	"github.com/zarrdb/zarrdb/zarr"
)

// retried updates the main branch until that is no conflict.
func retried(db *DB, fn func(*Session) error) error {
	return txn.Retry(bg, func() error { _, err := db.Update(bg, "", "update", fn); return err })
}

// change adds to one element of an array what the session reads there.
func change(s *Session, path string, i int64, by int32) error {
	a, err := s.Array(bg, path)
	if err != nil {
		return err
	}
	at := zarr.Sel(zarr.Slice(i, i+1, 1))
	v, _, err := zarr.Read[int32](bg, a, at)
	if err != nil {
		return err
	}
	return zarr.Write(bg, a, at, []int32{v[0] + by})
}

// together runs fn in goroutines.
func together(t *testing.T, n int, fn func(worker int) error) {
	t.Helper()
	errs := make([]error, n)
	var wg sync.WaitGroup
	for w := range n {
		wg.Go(func() { errs[w] = fn(w) })
	}
	wg.Wait()
	must.Do(t, errors.Join(errs...))
}

// Increments of one number by many, without a guard, all count: in a chunk, and in
// an attribute.
func TestCounterIsExact(t *testing.T) {
	db := openDB(t, nil)
	commit(t, db, "", "n", func(s *Session) error {
		return errors.Join(create(s, "n", line(2, 2)), setAttr(s, "n", "count", 0))
	})
	const workers, each = 8, 8
	together(t, workers, func(int) (err error) {
		for range each {
			err = errors.Join(err,
				retried(db, func(s *Session) error { return change(s, "n", 0, 1) }),
				retried(db, func(s *Session) error {
					n, err := s.Node(bg, "n")
					if err != nil {
						return err
					}
					raw, _ := n.Attributes().Get("count")
					count, err := strconv.Atoi(string(raw))
					if err != nil {
						return err
					}
					return setAttr(s, "n", "count", count+1)
				}))
		}
		return err
	})
	s := at(t, db, "")
	wantInts(t, s, "n", workers*each, 1)
	if got := attrsOf(t, s, "n"); got != `{"count":64}` {
		t.Errorf("attributes %s", got)
	}
}

// Transfers between accounts in chunks of their own keep the sum, and every
// account has what was paid in and out.
func TestBankIsExact(t *testing.T) {
	db := openDB(t, nil)
	const accounts, workers, each = 5, 8, 12
	commit(t, db, "", "bank", func(s *Session) error { return create(s, "bank", line(accounts, 1)) })
	var want [accounts]atomic.Int32
	for i := range want {
		want[i].Store(int32(i))
	}
	seed := must.Seed(t)
	together(t, workers, func(w int) error {
		rnd := rand.New(rand.NewPCG(seed, uint64(w)))
		for range each {
			from, to := rnd.Int64N(accounts), rnd.Int64N(accounts-1)
			if to >= from {
				to++
			}
			// Few amounts, so that equal bytes meet.
			amount := 1 + rnd.Int32N(2)
			err := retried(db, func(s *Session) error {
				return errors.Join(change(s, "bank", from, -amount), change(s, "bank", to, amount))
			})
			if err != nil {
				return err
			}
			want[from].Add(-amount)
			want[to].Add(amount)
		}
		return nil
	})
	var balances []int32
	for i := range want {
		balances = append(balances, want[i].Load())
	}
	wantInts(t, at(t, db, ""), "bank", balances...)
}

// A chunk that becomes the fill value is removed, and that is an update too.
func TestCounterPassesTheFillValue(t *testing.T) {
	db := openDB(t, nil)
	for _, shape := range [][]int64{{1}, {}} {
		path := fmt.Sprint("n", len(shape))
		commit(t, db, "", path, func(s *Session) error {
			a, err := s.CreateArray(bg, path, zarr.Spec{Shape: shape, Chunks: shape, DataType: "int32"})
			if err != nil {
				return err
			}
			return zarr.Write(bg, a, zarr.Sel(), []int32{-1})
		})
		var sessions [2]*Session
		for i := range sessions {
			s := must.Get(db.Begin(bg, ""))(t)
			defer s.Abort()
			a := array(t, s, path)
			v, _, err := zarr.Read[int32](bg, a, zarr.Sel())
			must.Do(t, err)
			must.Do(t, zarr.Write(bg, a, zarr.Sel(), []int32{v[0] + 1}))
			sessions[i] = s
		}
		_, first := sessions[0].Commit(bg, txn.CommitOptions{})
		_, second := sessions[1].Commit(bg, txn.CommitOptions{})
		if first != nil || !errors.Is(second, txn.ErrConflict) {
			t.Errorf("shape %v: errors %v and %v, want a conflict of the second", shape, first, second)
		}
	}
}

// Two appends of equal values are two: the second has a conflict, and comes
// behind the first when it is tried again.
func TestEqualAppendsAreTwo(t *testing.T) {
	db := openDB(t, nil)
	commit(t, db, "", "x", func(s *Session) error { return create(s, "x", line(2, 2)) })
	together(t, 4, func(int) error {
		return retried(db, func(s *Session) error {
			a, err := s.Array(bg, "x")
			if err != nil {
				return err
			}
			n := a.Shape()[0]
			if err := a.Resize(bg, []int64{n + 2}, zarr.ResizeOptions{}); err != nil {
				return err
			}
			return put(s, "x", n, 8, 9)
		})
	})
	wantInts(t, at(t, db, ""), "x", 0, 1, 8, 9, 8, 9, 8, 9, 8, 9)
}

// A guard is about the chunks that a selection touches and the array's metadata,
// and is kept by a session that is taken up again.
func TestGuardRead(t *testing.T) {
	write := func(path string, from int64, v ...int32) func(*Session) error {
		return func(s *Session) error { return put(s, path, from, v...) }
	}
	grow := func(s *Session) error {
		a, err := s.Array(bg, "x")
		if err != nil {
			return err
		}
		return a.Resize(bg, []int64{9}, zarr.ResizeOptions{})
	}
	const none, metadata = -1, -2
	part := zarr.Sel(zarr.Slice(2, 5, 1)) // chunks 1 and 2
	for _, c := range []struct {
		what, read string
		sel        zarr.Selection
		ours       func(*Session) error
		conflict   int64 // the chunk that it is about, none or metadata
	}{
		{"a chunk of the selection", "x", part, write("x", 5, 50), 2},
		{"a chunk beside it", "x", part, write("x", 0, 50), none},
		{"a chunk that was not stored", "x", zarr.Sel(zarr.At(7)), write("x", 6, 50), 3},
		{"the shape", "x", part, grow, metadata},
		{"an attribute", "x", part, func(s *Session) error { return setAttr(s, "x", "a", 1) }, metadata},
		{"another array", "x", zarr.Sel(), write("y", 0, 50), none},
		{"a chunk of the whole array", "x", zarr.Sel(), write("x", 0, 50), 0},
		{"scattered points", "x", zarr.Points([]int64{0, 5}), write("x", 4, 50), 2},
		{"a chunk between scattered points", "x", zarr.Points([]int64{0, 5}), write("x", 2, 50), none},
		{"the array is renamed", "x", part, func(s *Session) error { return s.Rename(bg, "x", "z") }, metadata},
		{"a chunk of many", "large", zarr.Sel(zarr.Slice(0, 4000, 1)), write("large", 3999, 50), 3999},
		{"a chunk beside many", "large", zarr.Sel(zarr.Slice(0, 4000, 1)), write("large", 8000, 50), none},
		{"a chunk beside too many", "large", zarr.Sel(zarr.Slice(0, 5000, 1)), write("large", 8000, 50), 8000},
	} {
		for _, version := range []zarr.Version{zarr.V2, zarr.V3} {
			t.Run(c.what+" "+version.String(), func(t *testing.T) {
				db := openDB(t, nil)
				commit(t, db, "", "arrays", func(s *Session) error {
					x := line(8, 2)
					x.Version = version
					_, err := s.CreateArray(bg, "x", x)
					large := line(9000, 1)
					large.Version = version
					_, lerr := s.CreateArray(bg, "large", large)
					y := line(2, 2)
					y.Version = version
					return errors.Join(err, lerr, put(s, "x", 0, 1, 2, 3, 4, 5, 6), create(s, "y", y), create(s, "mine", y))
				})
				s, err := db.Begin(bg, "")
				must.Do(t, err)
				a := array(t, s, c.read)
				must.Do(t, s.GuardRead(bg, a, c.sel))
				must.Do(t, put(s, "mine", 0, 7))
				must.Do(t, s.Detach(bg))
				s = must.Get(db.Resume(bg, s.ID()))(t)
				defer s.Abort()
				commit(t, db, "", "ours", c.ours)
				_, err = s.Commit(bg, txn.CommitOptions{})
				var conflict *txn.ConflictError
				if c.conflict == none {
					if err != nil {
						t.Error(err)
					}
					return
				}
				if !errors.As(err, &conflict) {
					t.Fatalf("error %v, want a conflict", err)
				}
				got := conflict.Conflicts[0]
				named := got.Path == a.ChunkKey([]int64{max(c.conflict, 0)})
				if got.Kind != txn.ConflictGuard || named != (c.conflict != metadata) {
					t.Errorf("conflict %v", got)
				}
			})
		}
	}
}
