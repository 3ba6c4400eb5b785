package engine

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zarrdb/zarrdb/internal/must"
)

// Options.Locked is called while a database is waited for that is open elsewhere,
// here in the same process.
func TestOpenLocked(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "t.zdb")
	first := openAt(t, dir, &Options{Create: true})
	calls := 0
	o := &Options{LockWait: time.Hour, Locked: func(held *LockedError) error {
		if held.Holder.PID == 0 {
			t.Errorf("held by %+v", held.Holder)
		}
		if calls++; calls == 3 {
			return first.Close()
		}
		return nil
	}}
	second, err := Open(bg, dir, o)
	if err != nil || calls != 3 {
		t.Fatalf("%v after %d calls", err, calls)
	}
	defer second.Close()

	enough := errors.New("enough")
	stop := &Options{ReadOnly: true, LockWait: time.Hour, Locked: func(*LockedError) error { return enough }}
	if _, err := Open(bg, dir, stop); !errors.Is(err, enough) {
		t.Errorf("%v", err)
	}
	_, err = OpenDatabaseSource(bg, dir, "", "", "", &SourceOptions{Open: func(ctx context.Context, dir string, _ *Options) (*DB, error) {
		return Open(ctx, dir, stop)
	}})
	if !errors.Is(err, enough) {
		t.Errorf("a source: %v", err)
	}
	if _, err := Open(bg, dir, &Options{LockWait: time.Hour}); !errors.Is(err, ErrLocked) {
		t.Errorf("a wait for this process itself: %v", err)
	}
	must.Do(t, second.Close())
	c := start(t, "hold", dir)
	defer c.kill(t)
	c.line(t)
	begun := time.Now()
	if _, err := Open(bg, dir, nil); !errors.Is(err, ErrLocked) {
		t.Errorf("without time to wait: %v", err)
	}
	if _, err := Open(bg, dir, &Options{LockWait: 60 * time.Millisecond}); !errors.Is(err, ErrLocked) || time.Since(begun) < 60*time.Millisecond {
		t.Errorf("after %v: %v", time.Since(begun), err)
	}
	gone, cancel := context.WithCancel(bg)
	cancel()
	if _, err := Open(gone, dir, &Options{LockWait: time.Hour}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestLockWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		held := &LockedError{Dir: "d"}
		wait := (&Options{LockWait: time.Minute}).waitLocked(bg)
		for _, c := range []struct{ waited, want time.Duration }{
			{0, 50 * time.Millisecond},
			{200 * time.Millisecond, 50 * time.Millisecond},
			{time.Second, 250 * time.Millisecond},
			{30 * time.Second, time.Second},
			{time.Minute - time.Millisecond, time.Millisecond},
		} {
			begun := time.Now()
			must.Do(t, wait(held, c.waited))
			if got := time.Since(begun); got != c.want {
				t.Errorf("after %v: %v, not %v", c.waited, got, c.want)
			}
		}
		if err := wait(held, time.Minute); err != error(held) {
			t.Errorf("at the limit: %v", err)
		}
	})
}
