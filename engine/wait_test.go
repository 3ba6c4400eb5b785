package engine

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"
)

// Options.Locked says how often a database is looked at that is open elsewhere,
// here in the same process.
func TestOpenLocked(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "t.zdb")
	first := openAt(t, dir, &Options{Create: true})
	calls, last := 0, time.Duration(-1)
	o := &Options{Locked: func(held *LockedError, waited time.Duration) error {
		if held.Holder.PID == 0 || waited < last {
			t.Errorf("held by %+v, waited %v after %v", held.Holder, waited, last)
		}
		calls, last = calls+1, waited
		if calls == 3 {
			return first.Close()
		}
		return nil
	}}
	second, err := Open(dir, o)
	if err != nil || calls != 3 {
		t.Fatalf("%v after %d calls", err, calls)
	}
	defer second.Close()

	enough := errors.New("enough")
	if _, err := Open(dir, &Options{ReadOnly: true, Locked: func(*LockedError, time.Duration) error { return enough }}); !errors.Is(err, enough) {
		t.Errorf("%v", err)
	}
	_, err = OpenDatabaseSource(bg, dir, "", "", "", &SourceOptions{Open: func(dir string, o *Options) (*DB, error) {
		o.Locked = func(*LockedError, time.Duration) error { return enough }
		return Open(dir, o)
	}})
	if !errors.Is(err, enough) {
		t.Errorf("a source: %v", err)
	}
	var locked *LockedError
	if _, err := Open(dir, &Options{Locked: WaitLocked(bg, 0)}); !errors.As(err, &locked) {
		t.Errorf("without time to wait: %v", err)
	}
	gone, cancel := context.WithCancel(bg)
	cancel()
	if _, err := Open(dir, &Options{Locked: WaitLocked(gone, time.Hour)}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestWaitLocked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		held := &LockedError{Dir: "d"}
		wait := WaitLocked(bg, time.Minute)
		for _, c := range []struct{ waited, want time.Duration }{
			{0, 50 * time.Millisecond},
			{200 * time.Millisecond, 50 * time.Millisecond},
			{time.Second, 250 * time.Millisecond},
			{30 * time.Second, time.Second},
			{time.Minute - time.Millisecond, time.Millisecond},
		} {
			begun := time.Now()
			if err := wait(held, c.waited); err != nil {
				t.Fatal(err)
			}
			if got := time.Since(begun); got != c.want {
				t.Errorf("after %v: %v, not %v", c.waited, got, c.want)
			}
		}
		if err := wait(held, time.Minute); err != error(held) {
			t.Errorf("at the limit: %v", err)
		}
	})
}
