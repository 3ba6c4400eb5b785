package cli

import (
	"bytes"
	"errors"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zarrdb/zarrdb/serve/local"
)

// holding starts a process that has a database open, and returns it when it serves.
func holding(t *testing.T, db string) *exec.Cmd {
	t.Helper()
	c := exec.Command("zarrdb", "serve", db, "--local", "--idle", "0s")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
	})
	for begun := time.Now(); ; time.Sleep(time.Millisecond) {
		client, err := local.DialDir(t.Context(), db, nil)
		if err == nil {
			_ = client.Close()
			return c
		}
		if time.Since(begun) > time.Minute {
			t.Fatal(err)
		}
	}
}

// A command whose input the other process had begun to read when it was killed does
// not go on with the rest of it.
func TestHolderKilledWhileItReads(t *testing.T) {
	db := filepath.Join(t.TempDir(), "w.zdb")
	if _, err := runProcess("init", db); err != nil {
		t.Fatal(err)
	}
	holder := holding(t, db)
	put := exec.Command("zarrdb", "put", db, "key")
	var messages bytes.Buffer
	put.Stderr = &messages
	in, err := put.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := put.Start(); err != nil {
		t.Fatal(err)
	}
	// More than a pipe holds: when it is written, some of it was read.
	if _, err := in.Write(bytes.Repeat([]byte("a"), 4<<20)); err != nil {
		t.Fatal(err)
	}
	if err := holder.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = holder.Wait()
	_, _ = in.Write([]byte("b")) // the client may have ended
	_ = in.Close()
	var exit *exec.ExitError
	if err := put.Wait(); !errors.As(err, &exit) || exit.ExitCode() != exitFailed || !strings.Contains(messages.String(), "ended while it ran this command") {
		t.Errorf("%v: %s", err, &messages)
	}
	if out, err := runProcess("get", db, "key"); !errors.As(err, &exit) || exit.ExitCode() != exitNotFound {
		t.Errorf("%d bytes were written, %v", len(out), err)
	}
}
