//go:build unix && !aix

package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/serve"
	"github.com/zarrdb/zarrdb/txn"
)

// While the process that has the database open is stopped, reads end with their contexts,
// and versions, databases and clients are closed. No call waits longer because another call of the
// session waits for the holder.
func TestStoppedHolder(t *testing.T) {
	runtimeDir(t)
	dir := filepath.Join(shortDir(t), "t.zdb")
	h := hold(t, dir, nil)
	put(t, h.db, map[string][]byte{"k": random(1, 100<<10)})
	must.Do(t, h.end())
	child := startHolder(t, dir)
	c := joinDir(t, dir)
	p := must.Get(c.Peer(nil))(t)
	v := must.Get(p.At(bg, ""))(t)
	s := must.Get(p.Begin(bg, ""))(t)
	stop(t, child)
	slow, end := context.WithCancel(bg)
	var hang sync.WaitGroup
	defer hang.Wait()
	defer end()
	hang.Go(func() { _ = s.Set(slow, "k", []byte("1")) })
	hang.Go(func() { _ = s.Move(slow, "a", "b") })
	hang.Go(func() { _ = s.Savepoint(slow) })
	for what, do := range map[string]func(context.Context) error{
		"read":    func(ctx context.Context) error { _, err := v.Get(ctx, "k", kv.All()); return err },
		"open":    func(ctx context.Context) error { _, err := p.At(ctx, ""); return err },
		"resolve": func(ctx context.Context) error { _, err := p.Resolve(ctx, "main~1"); return err },
		"log": func(ctx context.Context) error {
			for _, err := range p.Versions().Log(ctx, v.Commit().ID) {
				return err
			}
			return nil
		},
		"reflog": func(ctx context.Context) error {
			for _, err := range p.Reflog(ctx, "main") {
				return err
			}
			return nil
		},
		"stats":     func(ctx context.Context) error { _, err := p.Stats(ctx, ""); return err },
		"get":       func(ctx context.Context) error { _, err := s.Get(ctx, "k", kv.All()); return err },
		"set":       func(ctx context.Context) error { return s.Set(ctx, "k", []byte("2")) },
		"remove":    func(ctx context.Context) error { return s.DeletePrefix(ctx, "a/") },
		"copy":      func(ctx context.Context) error { return s.Copy(ctx, nil, "k", "l") },
		"savepoint": s.Savepoint,
		"refresh":   func(ctx context.Context) error { return s.Refresh(ctx, nil) },
		"fork":      func(ctx context.Context) error { _, err := s.Fork(ctx); return err },
		"commit":    func(ctx context.Context) error { _, err := s.Commit(ctx, txn.CommitOptions{}); return err },
	} {
		ctx, cancel := context.WithTimeout(bg, 20*time.Millisecond)
		if err := do(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %v", what, err)
		}
		cancel()
	}
	if s.Ended() || s.Info().ID != s.ID() {
		t.Error("the session has ended")
	}
	if err := errors.Join(s.Close(), v.Close(), p.Close(), c.Close()); err != nil {
		t.Error(err)
	}
}

// While the process that has the database open is stopped, each request ends within the limit, also if its
// context has no end, and names the process. When that process goes on, requests do.
func TestStoppedHolderIsNamed(t *testing.T) {
	runtimeDir(t)
	must.Set(t, &shortestLook, 20*time.Millisecond)
	dir := filepath.Join(shortDir(t), "t.zdb")
	child := start(t, "opener", dir)
	if got := child.line(t); got != "open" {
		t.Fatal(got)
	}
	db := must.Get(Open(bg, dir, OpenOptions{Engine: engine.Options{LockWait: 100 * time.Millisecond}}))(t)
	defer db.Close()
	s := must.Get(db.Begin(bg, "main"))(t)
	must.Do(t, s.Set(bg, "x", []byte("1")))
	table := serve.New(serve.Options{})
	must.Do(t, table.AddDatabase("t", db))
	cached := must.Get(table.View(bg, serve.Owner("o"), "t", ""))(t)
	defer cached.Release()
	stop(t, child)
	requests := map[string]func() error{
		"view":    func() error { _, err := table.View(bg, serve.Owner("o"), "t", "main"); return err },
		"resolve": func() error { _, err := db.Resolve(bg, "main~1"); return err },
		"write":   func() error { return s.Set(bg, "x", []byte("2")) },
		"body":    func() error { return s.Set(bg, "y", random(3, 4<<20)) },
		"commit":  func() error { _, err := s.Commit(bg, txn.CommitOptions{Message: "m"}); return err },
		"begin":   func() error { _, err := table.Begin(bg, serve.Owner("o"), "t", serve.BeginOptions{}); return err },
		"gc":      func() error { _, err := db.GC(bg, txn.GCOptions{}); return err },
	}
	for range 2 { // the second time the connection has ended
		errs := make(chan error, 3*len(requests))
		for what, do := range requests {
			for range 3 {
				go func() {
					var held *engine.LockedError
					err := do()
					if errors.As(err, &held) && held.Holder.PID == child.cmd.Process.Pid && errors.Is(err, os.ErrDeadlineExceeded) {
						err = nil
					} else {
						err = fmt.Errorf("%s: %w", what, err)
					}
					errs <- err
				}()
			}
		}
		for range cap(errs) {
			if err := <-errs; err != nil {
				t.Error(err)
			}
		}
	}
	must.Do(t, child.cmd.Process.Signal(syscall.SIGCONT))
	for {
		_, err := db.Resolve(bg, "main")
		if err == nil {
			break
		}
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatal(err)
		}
	}
}

// stop stops a process, and waits until it has stopped.
func stop(t *testing.T, c *child) {
	t.Helper()
	must.Do(t, c.cmd.Process.Signal(syscall.SIGSTOP))
	var status syscall.WaitStatus
	if _, err := syscall.Wait4(c.cmd.Process.Pid, &status, syscall.WUNTRACED, nil); err != nil || !status.Stopped() {
		t.Fatalf("%v, status %x", err, status)
	}
}

// A collection does not wait for a reader that is stopped, and leaves its file.
func TestStoppedReader(t *testing.T) {
	h, _ := served(t, nil, nil)
	keys := map[string][]byte{"a": random(1, 1<<20), "b": random(2, 1<<20)}
	old := put(t, h.db, keys)
	put(t, h.db, map[string][]byte{"a": []byte("small")})
	child := start(t, "reader", h.l.Path(), old.String(), "b")
	if got := child.line(t); got != "reading" {
		t.Fatal(got)
	}
	child.say(t, "close")
	if got := child.line(t); got != "closed" {
		t.Fatal(got)
	}
	stop(t, child)
	dropVersions(t, h)
	h.table.Close(bg) // so that the server does not keep the version open for the next one
	if r := collect(t, h); r.Leased == 0 || r.FreedBytes > 0 {
		t.Errorf("beside a reader that is stopped: %+v", r)
	}
	child.kill(t)
	if r := collect(t, h); r.Leased != 0 || r.FreedBytes < 1<<20 {
		t.Errorf("after the reader was killed: %+v", r)
	}
}

// Opening waits so long as LockWait for a holder that is stopped, whether that is more or less than
// the time for an answer.
func TestOpenBesideStoppedHolder(t *testing.T) {
	runtimeDir(t)
	dir := filepath.Join(shortDir(t), "t.zdb")
	child := start(t, "opener", dir)
	if got := child.line(t); got != "open" {
		t.Fatal(got)
	}
	stop(t, child)
	must.Set(t, &helloTime, helloTime)
	for _, d := range []time.Duration{time.Hour, time.Millisecond} {
		helloTime = d
		var held *engine.LockedError
		begun := time.Now()
		const wait = 100 * time.Millisecond
		_, err := Open(bg, dir, OpenOptions{Engine: engine.Options{LockWait: wait}})
		if !errors.As(err, &held) || !errors.Is(err, os.ErrDeadlineExceeded) || held.Holder.PID != child.cmd.Process.Pid {
			t.Errorf("stopped: %v", err)
		}
		if took := time.Since(begun); took < wait {
			t.Errorf("it took %v", took)
		}
	}
}
