package local

import (
	"errors"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/internal/crashtest"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/txn"
)

// When a write of the database fails, a process that can open it again is told, and serves others no more. Another
// process goes on with reading.
func TestServingEndsWithAFailure(t *testing.T) {
	for _, opensAgain := range []bool{true, false} {
		runtimeDir(t)
		dir := filepath.Join(shortDir(t), "t.zdb")
		full := crashtest.Faults{Err: syscall.EDQUOT, Match: crashtest.IsSync}
		full.Off.Store(true)
		ended := make(chan error, 1)
		var told func(error)
		if opensAgain {
			told = func(err error) { ended <- err }
		}
		db := must.Get(engine.Open(bg, dir, &engine.Options{FS: full.Wrap(vfs.Default), Create: true, Serve: func(dir string) (*engine.Serving, error) {
			return Serving(dir, nil, told)
		}}))(t)
		c := must.Get(DialDir(bg, dir, nil))(t)
		p := must.Get(c.Peer(nil))(t)
		full.Off.Store(false)
		s := must.Get(p.Begin(bg, "main"))(t)
		_ = s.Set(bg, "k", []byte("v"))
		_, err := s.Commit(bg, txn.CommitOptions{})
		if err == nil {
			t.Error("a commit that cannot be synced succeeds")
		}
		if opensAgain {
			if err := <-ended; !errors.Is(err, engine.ErrFailed) {
				t.Errorf("serving ended with %v", err)
			}
		} else if _, err := p.Resolve(bg, "main"); err != nil {
			t.Errorf("reading: %v", err)
		}
		_ = s.Close()
		_, _ = p.Close(), c.Close()
		_ = db.Close()
		full.Off.Store(true)
		must.Do(t, must.Get(engine.Open(bg, dir, nil))(t).Close())
	}
}
