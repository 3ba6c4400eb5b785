//go:build unix

package cli

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/serve/local"
)

// holding starts a process that has a database open, and returns it when it serves.
func holding(t *testing.T, db string) *exec.Cmd {
	t.Helper()
	c := exec.Command("zarrdb", "serve", db, "--local", "--idle", "0s")
	must.Do(t, c.Start())
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
	})
	awaitServed(t, db)
	return c
}

// awaitServed waits until a process serves a database.
func awaitServed(t *testing.T, db string) {
	t.Helper()
	for begun := time.Now(); ; time.Sleep(time.Millisecond) {
		client, err := local.DialDir(t.Context(), db, nil)
		if err == nil {
			_ = client.Close()
			return
		}
		if time.Since(begun) > time.Minute {
			t.Fatal(err)
		}
	}
}

// A command goes on when the process that has the database open is killed while the command
// reads its input.
func TestHolderKilledWhileItReads(t *testing.T) {
	db := filepath.Join(t.TempDir(), "w.zdb")
	must.Get(runProcess("init", db))(t)
	holder := holding(t, db)
	put := exec.Command("zarrdb", "put", db, "key")
	var messages bytes.Buffer
	put.Stderr = &messages
	in := must.Get(put.StdinPipe())(t)
	must.Do(t, put.Start())
	// More than a pipe holds: when it is written, some of it was read.
	must.Get(in.Write(bytes.Repeat([]byte("a"), 4<<20)))(t)
	must.Do(t, holder.Process.Kill())
	_ = holder.Wait()
	_, _ = in.Write([]byte("b")) // the client may have ended
	_ = in.Close()
	if err := put.Wait(); err != nil {
		t.Errorf("%v: %s", err, &messages)
	}
	if out, err := runProcess("get", db, "key"); err != nil || out != strings.Repeat("a", 4<<20)+"b" {
		t.Errorf("%d bytes were written, %v", len(out), err)
	}
}

// A command that is interrupted ends though its input or output blocks, alone and in
// another process, which then is free to end too.
func TestInterruptWhileBlocked(t *testing.T) {
	db := filepath.Join(t.TempDir(), "w.zdb")
	for _, args := range [][]string{
		{"init", db}, {"create", db + ":a", "--shape", "1000000", "--dtype", "int64"},
	} {
		must.Get(runProcess(args...))(t)
	}
	for _, c := range []struct {
		name string
		args []string
	}{
		{"input", []string{"put", db, "key"}},
		{"output", []string{"read", db + ":a", "-o", "-"}},
	} {
		for _, where := range []string{"alone", "elsewhere"} {
			t.Run(c.name+" "+where, func(t *testing.T) {
				var holder *exec.Cmd
				if where == "elsewhere" {
					holder = holding(t, db)
				}
				command := exec.Command("zarrdb", c.args...)
				in, out := pipes(t, command)
				must.Do(t, command.Start())
				if c.name == "input" {
					_, err := in.Write(bytes.Repeat([]byte("a"), 1<<20)) // more than a pipe holds
					must.Do(t, err)
				} else if _, err := out.Read(make([]byte, 1)); err != nil {
					t.Fatal(err)
				}
				must.Do(t, command.Process.Signal(os.Interrupt))
				ended(t, command, exitInterrupted)
				if holder != nil {
					must.Do(t, holder.Process.Signal(os.Interrupt))
					ended(t, holder, exitOK)
				}
			})
		}
	}
}

// pipes gives a command an input and an output that this process has the ends of.
func pipes(t *testing.T, c *exec.Cmd) (in, out *os.File) {
	t.Helper()
	ends := func() (r, w *os.File) {
		r, w, err := os.Pipe()
		must.Do(t, err)
		t.Cleanup(func() { r.Close(); w.Close() })
		return r, w
	}
	stdin, in := ends()
	out, stdout := ends()
	c.Stdin, c.Stdout = stdin, stdout
	return in, out
}

// ended waits for a process, which must exit with a code before its files move.
func ended(t *testing.T, c *exec.Cmd, code int) {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- c.Wait() }()
	select {
	case <-done:
		if got := c.ProcessState.ExitCode(); got != code {
			t.Errorf("%q: exit code %d, not %d", c.Args, got, code)
		}
	case <-time.After(time.Minute):
		_ = c.Process.Kill()
		t.Errorf("%q does not end", c.Args)
	}
}

// A command waits for a process that has taken the lock and not yet recorded its
// PID.
func TestWaitForUnknownHolder(t *testing.T) {
	db := filepath.Join(t.TempDir(), "w.zdb")
	must.Get(runProcess("init", db))(t)
	lock := must.Get(vfs.Default.Lock(filepath.Join(db, "index", "LOCK")))(t)
	time.AfterFunc(300*time.Millisecond, func() { _ = lock.Close() })
	if out, err := exec.Command("zarrdb", "log", db).CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

// With --wait a process on another host is waited for, though it serves the database
// there.
func TestWaitForOtherHost(t *testing.T) {
	db := filepath.Join(t.TempDir(), "w.zdb")
	must.Get(runProcess("init", db))(t)
	lock := must.Get(vfs.Default.Lock(filepath.Join(db, "index", "LOCK")))(t)
	description := `{"pid": 1, "host": "elsewhere", "program": "zarrdb", "socket": "/tmp/elsewhere.sock"}`
	must.Do(t, os.WriteFile(filepath.Join(db, "index", "HOLDER"), []byte(description), 0o644))
	time.AfterFunc(300*time.Millisecond, func() { _ = lock.Close() })
	if out, err := exec.Command("zarrdb", "log", db, "--wait", "1m").CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

// A command that waits for a stopped process names it after a few seconds, and goes on
// when that does.
func TestStoppedHolder(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for some seconds")
	}
	db := filepath.Join(t.TempDir(), "w.zdb")
	must.Get(runProcess("init", db))(t)
	holder := holding(t, db)
	halt(t, holder)
	defer holder.Process.Signal(syscall.SIGCONT) //nolint:errcheck // it may have ended
	log := exec.Command("zarrdb", "log", db)
	messages := must.Get(log.StderrPipe())(t)
	must.Do(t, log.Start())
	line, err := bufio.NewReader(messages).ReadString('\n')
	if want := fmt.Sprintf("process %d ", holder.Process.Pid); err != nil || !strings.Contains(line, want) || !strings.Contains(line, "does not answer") {
		t.Errorf("it says %q, %v", line, err)
	}
	must.Do(t, holder.Process.Signal(syscall.SIGCONT))
	ended(t, log, exitOK)
}

// A server beside a process that is stopped answers over HTTP and S3 in time, with the process and the cure, and goes
// on when that process does.
func TestServeBesideStoppedHolder(t *testing.T) {
	db := filepath.Join(t.TempDir(), "w.zdb")
	must.Get(runProcess("init", db))(t)
	must.Get(runProcess("create", db+":t", "--shape", "2", "--dtype", "int8", "-m", "c"))(t)
	holder := holding(t, db)
	urls, end := serving(t, db, "--s3", "localhost:0", "--wait", "2s")
	defer end()
	paths := []string{urls[0] + "t/zarr.json", urls[1] + "/w.zdb/main/t/zarr.json"}
	for _, path := range paths {
		if status, body := get(t, path); status != 200 {
			t.Fatalf("%s: %d, %s", path, status, body)
		}
	}
	halt(t, holder)
	for _, path := range paths {
		if status, body := get(t, path); status != 503 || !strings.Contains(body, fmt.Sprintf("kill -CONT %d", holder.Process.Pid)) || strings.Contains(body, db) {
			t.Errorf("%s: %d, %s", path, status, body)
		}
	}
	must.Do(t, holder.Process.Signal(syscall.SIGCONT))
	for status := 0; status != 200; {
		var body string
		if status, body = get(t, paths[0]); status != 200 && status != 503 {
			t.Fatalf("%d, %s", status, body)
		}
	}
}

// halt stops a process, and returns when it has stopped: until then it may answer.
func halt(t *testing.T, c *exec.Cmd) {
	t.Helper()
	must.Do(t, c.Process.Signal(syscall.SIGSTOP))
	var status syscall.WaitStatus
	if _, err := syscall.Wait4(c.Process.Pid, &status, syscall.WUNTRACED, nil); err != nil || !status.Stopped() {
		t.Fatalf("%v, status %x", err, status)
	}
}
