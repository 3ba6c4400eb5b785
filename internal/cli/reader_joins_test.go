package cli

import (
	"context"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/internal/mmap"
	"github.com/zarrdb/zarrdb/internal/must"
)

// A command whose output is blocked does not keep other commands from writing.
func TestWriteBesideReader(t *testing.T) {
	if !mmap.Supported {
		t.Skip("processes are not joined")
	}
	db := filepath.Join(t.TempDir(), "w.zdb")
	for _, args := range [][]string{{"init", db}, {"create", db + ":a", "--shape", "1000000", "--dtype", "int8"}} {
		must.Get(runProcess(args...))(t)
	}
	reader := exec.Command("zarrdb", "read", db+":a", "-o", "-")
	out := must.Get(reader.StdoutPipe())(t)
	must.Do(t, reader.Start())
	if _, err := out.Read(make([]byte, 1)); err != nil { // it has the database open
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { _, err := runProcess("tag", db, "v1"); done <- err }()
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Error("the writer waits for the reader")
	}
	_ = reader.Process.Kill()
	_ = reader.Wait()
	if got, err := runProcess("tag", db); err != nil || got == "" {
		t.Errorf("%q, %v", got, err)
	}
}

// The completion of a word does not keep other commands from writing.
func TestWriteBesideCompletion(t *testing.T) {
	if !mmap.Supported {
		t.Skip("processes are not joined")
	}
	db := filepath.Join(t.TempDir(), "w.zdb")
	must.Get(runProcess("init", db))(t)
	cmd, tried := newRoot(), false
	cmd.SetContext(t.Context())
	wordsIn(t.Context(), cmd, db, func(context.Context, *engine.DB) []string {
		tried = true
		if out, err := exec.Command("zarrdb", "tag", db, "v1").CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
		return nil
	})
	if !tried {
		t.Error("the database was not opened")
	}
}
