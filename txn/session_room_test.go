package txn

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
)

// lateCancel is a context that is cancelled when it is asked for the n-th time.
type lateCancel struct {
	context.Context
	n int
}

func (c *lateCancel) Err() error {
	if c.n--; c.n <= 0 {
		return context.Canceled
	}
	return nil
}

// A write that failed has not happened, whatever made it fail: no later commit has
// what the caller was told is lost.
func TestFailedSetIsNotCommitted(t *testing.T) {
	for name, tune := range map[string]func(*Options){
		"flush":     func(o *Options) { o.SessionBytes = 1 },
		"savepoint": func(o *Options) { o.SavepointBytes = 1 },
	} {
		t.Run(name, func(t *testing.T) {
			o := testOptions(vfs.NewMem())
			tune(o)
			db := openTest(t, o)
			s := mustBegin(t, db)
			want := map[string]string{}
			set(t, s, map[string]string{"first/a": "0"})
			want["first/a"] = "0"
			failed := 0
			for n := 1; n < 60; n++ {
				key, value := fmt.Sprintf("dir/%d", n), strings.Repeat("x", 600+n)
				err := s.Set(&lateCancel{bg, n}, key, []byte(value))
				switch {
				case err == nil:
					want[key] = value
				case !errors.Is(err, context.Canceled):
					t.Fatal(err)
				default:
					failed++
					if _, err := s.Get(bg, key, kv.All()); !errors.Is(err, kv.ErrNotFound) {
						t.Errorf("cancelled at %d: the key is there: %v", n, err)
					}
				}
			}
			must.Get(s.Commit(bg, CommitOptions{}))(t)
			if got := at(t, db, "main"); !maps.Equal(got, want) || failed == 0 {
				t.Errorf("%d keys, want %d; %d failed", len(got), len(want), failed)
			}
		})
	}
}
