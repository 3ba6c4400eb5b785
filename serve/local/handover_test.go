package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/index"
	"github.com/zarrdb/zarrdb/serve"
	"github.com/zarrdb/zarrdb/serve/internal/sockets"
)

// Each error is waited for as long as what it says about the other process allows.
func TestHandoverLimits(t *testing.T) {
	host, _ := os.Hostname()
	held := func(h index.Holder) error { return fmt.Errorf("open: %w", &engine.LockedError{Holder: h}) }
	own := fmt.Errorf("open: %w", &engine.LockedError{Own: true, Holder: index.Holder{PID: os.Getpid(), Host: host}})
	other := os.Getpid() + 1
	for _, c := range []struct {
		name string
		err  error
		wait time.Duration // of Handover.Wait
		want time.Duration
	}{
		{"no description", held(index.Holder{}), 0, waitUnnamed},
		{"no description, --wait", held(index.Holder{}), time.Hour, time.Hour},
		{"no description, a short --wait", held(index.Holder{}), time.Second, time.Second},
		{"serves, a short --wait", held(index.Holder{PID: other, Host: host, Socket: "s"}), time.Second, time.Second},
		{"is stopped", fmt.Errorf("%w (%w)", os.ErrDeadlineExceeded, held(index.Holder{PID: other, Host: host, Socket: "s"})), time.Hour, 0},
		{"serves", held(index.Holder{PID: other, Host: host, Socket: "s"}), 0, waitServing},
		{"has this number in another container", held(index.Holder{PID: os.Getpid(), Host: host, Socket: "s"}), 0, waitServing},
		{"reader", &engine.LockedError{Reader: true, Holder: index.Holder{PID: other, Host: host}}, 0, waitUnnamed},
		{"reader, --wait", &engine.LockedError{Reader: true, Holder: index.Holder{PID: other, Host: host}}, time.Second, time.Second},
		{"does not serve", held(index.Holder{PID: other, Host: host}), 0, 0},
		{"does not serve, --wait", held(index.Holder{PID: other, Host: host}), time.Minute, time.Minute},
		{"on another host", held(index.Holder{PID: other, Host: host + "x", Socket: "s"}), 0, 0},
		{"this process", own, time.Hour, 0},
		{"ends", gone(errors.New("bye")), 0, waitServing},
		{"ends, a short --wait", gone(errors.New("bye")), time.Second, time.Second},
		{"no process listens", fmt.Errorf("dial: %w", sockets.ErrRefused), 0, waitAbsent},
		{"another user's socket", errors.Join(serve.ErrDenied, held(index.Holder{PID: other, Host: host, Socket: "s"})), 0, 0},
		{"anything else", kv.ErrNotFound, time.Hour, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			h, begun := Handover{Wait: c.wait}, time.Now()
			for {
				if err := h.Again(t.Context(), c.err); err != nil {
					if took := time.Since(begun); err != c.err || took != c.want {
						t.Errorf("%s: %v after %v, want %v", c.name, err, took, c.want)
					}
					return
				}
			}
		})
	}
	ctx, cancel := context.WithCancel(bg)
	cancel()
	var h Handover
	if err := h.Again(ctx, ErrGone); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// noLocks is a file system without locks.
type noLocks struct {
	vfs.FS
	err error
}

func (f noLocks) Lock(string) (io.Closer, error) { return nil, f.err }

func (f noLocks) Unwrap() vfs.FS { return f.FS }

// Without locks a database opens to read, and writes name the cure.
func TestOpenWithoutLocks(t *testing.T) {
	dir := filepath.Join(shortDir(t), "w.zdb")
	db := must.Get(engine.Create(bg, dir, nil))(t)
	must.Do(t, db.Close())
	for _, err := range []error{syscall.ENOLCK, syscall.ENOSYS, syscall.EOPNOTSUPP} {
		to := OpenOptions{Engine: engine.Options{FS: noLocks{index.DefaultFS, err}}, Serve: func(dir string) (*engine.Serving, error) { return Serving(dir, nil, nil) }}
		db := must.Get(OpenOrRead(bg, dir, to))(t)
		must.Get(db.Resolve(bg, "main"))(t)
		_, failed := db.Begin(bg, "main")
		if !errors.Is(failed, engine.ErrReadOnly) || !errors.Is(failed, err) || !strings.Contains(failed.Error(), index.NoLockVariable) {
			t.Errorf("a write without locks: %v", failed)
		}
		must.Do(t, db.Close())
	}
}
