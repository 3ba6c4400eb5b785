package txn

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/bits"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/txn/history"
)

// The time of a value is that of a commit with this value, whose parent has another one:
// so no two values of a key have the same time, and none is later than the last change.
func TestWritten(t *testing.T) {
	db := openTest(t, nil)
	rnd := rand.New(rand.NewPCG(3, 4))
	keys := []string{"a/zarr.json", "a/c/0", "a/c/1", "b/x", "doc"}
	type version struct {
		id     CommitID
		at     time.Time
		values map[string]string
	}
	now := map[string]string{}
	var all []version
	for range 120 {
		edits := map[string]string{}
		for range 1 + rnd.IntN(2) {
			edits[keys[rnd.IntN(len(keys))]] = []string{"", "0", "1", "2"}[rnd.IntN(4)] // values come back
		}
		id := say(t, db, "main", "m", func(s *Session) error {
			set(t, s, edits)
			return nil
		})
		for key, value := range edits {
			if now[key] = value; value == "" {
				delete(now, key)
			}
		}
		c := must.Get(db.Lookup(bg, id))(t)
		all = append(all, version{id, c.Time, maps.Clone(now)})
	}
	for n, head := range all {
		snap := must.Get(db.Snapshot(bg, head.id))(t)
		for _, key := range keys {
			value, ok := head.values[key]
			at, _, err := snap.Written(bg, key)
			if !ok {
				if !errors.Is(err, kv.ErrNotFound) {
					t.Errorf("version %d, %s without a value: %v, %v", n, key, at, err)
				}
				continue
			}
			must.Do(t, err)
			i := n
			for i >= 0 && !all[i].at.Equal(at) {
				i--
			}
			if i < 0 || all[i].values[key] != value || i > 0 && all[i-1].values[key] == value {
				t.Errorf("version %d, %s: %v is that of version %d", n, key, at, i)
			}
		}
		must.Do(t, snap.Close())
	}
}

// Finding the time of a value takes a logarithmic number of steps in the history.
func TestWrittenSteps(t *testing.T) {
	db := openTest(t, nil)
	const commits = 300
	var ids []CommitID
	for i := range commits {
		ids = append(ids, say(t, db, "main", "m", setAll(fmt.Sprintf("k%d", i), "x")))
	}
	head := ids[commits-1]
	c := must.Get(db.Lookup(bg, head))(t)
	steps := 0
	v := *db.versions()
	kept := v.Kept
	v.Kept = func(ctx context.Context, id CommitID) (*Commit, error) {
		steps++
		return kept(ctx, id)
	}
	var w history.Writes
	for i := range commits {
		key := fmt.Sprintf("k%d", i)
		value, ok, err := v.Space.Get(bg, c.Root, key)
		if err != nil || !ok {
			t.Fatal(ok, err)
		}
		steps = 0
		at, exact, err := w.Since(bg, &v, head, key, &value)
		want, lookupErr := db.Lookup(bg, ids[i])
		if err != nil || lookupErr != nil || !at.Equal(want.Time) {
			t.Errorf("%s: %v, %v, %v", key, at, exact, errors.Join(err, lookupErr))
		}
		if most := 4 * bits.Len(commits); i > 0 && steps > most {
			t.Errorf("%s: %d commits were read, more than %d", key, steps, most)
		}
	}
}

// Where earlier versions have expired, a value has the time of the first one that is kept.
func TestWrittenAfterExpiry(t *testing.T) {
	db := openTest(t, nil)
	var last CommitID
	for i := range 20 {
		last = say(t, db, "main", "m", setAll("old", "1", "new", fmt.Sprint(i)))
	}
	written := func() time.Time {
		t.Helper()
		snap := must.Get(db.Snapshot(bg, last))(t)
		defer snap.Close()
		at, _, err := snap.Written(bg, "old")
		must.Do(t, err)
		return at
	}
	c := must.Get(db.Lookup(bg, last))(t)
	if at := written(); !at.Before(c.Time) {
		t.Errorf("%v", at)
	}
	must.Get(db.Expire(bg, ExpireOptions{Keep: 1}))(t)
	for range 2 {
		if at := written(); !at.Equal(c.Time) {
			t.Errorf("%v, want %v", at, c.Time)
		}
		db.writes = history.Writes{} // as in the next process
	}
}
