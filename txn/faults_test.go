package txn

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/zarrdb/zarrdb/internal/must"
)

// The k-th write of the file system fails, for every k until a run needs fewer:
// a commit that was acknowledged is there after reopening, and whatever else is
// there is a commit that was tried.
func TestEveryWriteFails(t *testing.T) {
	boom := errors.New("boom")
	step := 1
	if testing.Short() {
		step = 7
	}
	for k := 0; ; k += step {
		mem := vfs.NewCrashableMem()
		db, err := Create("db", testOptions(mem))
		must.Do(t, err)
		must.Do(t, db.Close())
		var n atomic.Int64
		var hit atomic.Bool
		fs := faultFS(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
			if op.Kind.ReadOrWrite() == errorfs.OpIsWrite && n.Add(1) == int64(k)+1 {
				hit.Store(true)
				return boom
			}
			return nil
		}))
		states := []map[string]string{{}}
		acked := 0
		if db, err = Open("db", testOptions(fs)); err == nil {
			states, acked = commitUntilError(db)
			_ = db.Close() // may report the failure again
		}
		verifyOneOf(t, mem, states, acked, fmt.Sprintf("write %d failed", k))
		if !hit.Load() {
			return
		}
		if k > 5000 {
			t.Fatal("a small history takes more than 5000 writes")
		}
	}
}

// commitUntilError makes three commits and stops at the first that fails.
func commitUntilError(db *DB) (states []map[string]string, acked int) {
	states = []map[string]string{{}}
	for i := range 3 {
		next := maps.Clone(states[i])
		for j := range 3 {
			next[fmt.Sprintf("d/k%d", (i+j)%4)] = strings.Repeat(fmt.Sprint(i), 1+700*j)
		}
		states = append(states, next)
		s, err := db.Begin(bg, "main")
		if err != nil {
			return states, acked
		}
		for key, val := range next {
			if err := s.Set(bg, key, []byte(val)); err != nil {
				return states, acked
			}
		}
		if _, err := s.Commit(bg, CommitOptions{}); err != nil {
			return states, acked
		}
		acked = i + 1
	}
	return states, acked
}

func verifyOneOf(t *testing.T, mem *vfs.MemFS, states []map[string]string, acked int, what string) {
	t.Helper()
	db, err := Open("db", testOptions(mem))
	if err != nil {
		t.Fatalf("%s: open: %v", what, err)
	}
	got := at(t, db, "main")
	ok := false
	for _, s := range states[acked:] {
		ok = ok || maps.Equal(got, s)
	}
	if !ok {
		t.Errorf("%s: main holds %d keys, and %d commits were acknowledged", what, len(got), acked)
	}
	closeChecked(t, db)
	if t.Failed() {
		t.FailNow()
	}
}
