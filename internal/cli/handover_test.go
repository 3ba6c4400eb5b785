package cli

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/internal/soaktest"
)

// Short commands hand the database over to each other many times a second, while others collect,
// expire, check and copy it. Each command ends: a process that has done its work waits for no
// process that waits for it.
func TestShortCommands(t *testing.T)     { shortCommands(t, 3*time.Second) }
func TestSoakShortCommands(t *testing.T) { shortCommands(t, soaktest.Time(t)) }

func shortCommands(t *testing.T, length time.Duration) {
	if testing.Short() {
		t.Skip("some hundred processes")
	}
	dir := t.TempDir()
	db, other := filepath.Join(dir, "w.zdb"), filepath.Join(dir, "o.zdb")
	for _, args := range [][]string{{"init", db}, {"create", db + ":x", "--shape", "16,5", "--chunks", "4,5", "--dtype", "int32"}, {"clone", db, other}} {
		must.Get(runProcess(args...))(t)
	}
	seed := soaktest.Seed(t)
	ctx, failed := context.WithCancel(t.Context()) // ends all loops at the first failure
	defer failed()
	end := time.Now().Add(length)
	commands := 0
	var mu sync.Mutex
	// run runs a command, which may meet a conflict. One that has not ended after minutes, on a machine
	// however busy, waits for itself.
	run := func(args ...string) (out string, conflict bool) {
		late, done := context.WithTimeout(ctx, 5*time.Minute)
		defer done()
		cmd := exec.CommandContext(late, "zarrdb", append([]string{"--wait", "10m"}, args...)...)
		var stderr strings.Builder
		cmd.Stderr = &stderr
		b, err := cmd.Output()
		mu.Lock()
		commands++
		mu.Unlock()
		var exit *exec.ExitError
		switch {
		case ctx.Err() != nil || err == nil:
		case errors.Is(late.Err(), context.DeadlineExceeded):
			t.Errorf("zarrdb %q does not end", args)
			failed()
		case errors.As(err, &exit) && exit.ExitCode() == exitConflict:
			return "", true
		case strings.Contains(stderr.String(), "another collection or transfer is running"): // as documented
		default:
			t.Errorf("zarrdb %q: %v: %s", args, err, stderr.String())
			failed()
		}
		return strings.TrimSpace(string(b)), false
	}
	var all sync.WaitGroup
	loop := func(fn func()) {
		all.Go(func() {
			for first := true; first || ctx.Err() == nil && time.Now().Before(end); first = false {
				fn()
			}
		})
	}
	for w := range 4 {
		rnd := rand.New(rand.NewPCG(seed, uint64(w)))
		loop(func() {
			id, _ := run("session", "begin", db)
			run("write", db+":x", "--session", id, "--select", fmt.Sprintf("%d,0", rnd.IntN(16)), "--value", fmt.Sprint(rnd.IntN(9999)))
			if _, conflict := run("session", "commit", db, id, "-m", "short"); conflict {
				run("session", "abort", db, id)
			}
		})
	}
	loop(func() {
		run("gc", db)
		run("expire", db, "--keep", "20")
		run("backup", db, filepath.Join(dir, "bak"))
		run("fsck", db, "--full")
	})
	loop(func() {
		run("push", db, other)
		run("pull", db, other)
		run("fsck", db)
	})
	all.Wait()
	t.Logf("%d commands", commands)
	if t.Failed() {
		return
	}
	for _, at := range []string{db, other, filepath.Join(dir, "bak")} {
		if out, err := runProcess("fsck", at, "--full"); err != nil {
			t.Errorf("%s, %v", out, err)
		}
	}
}
