package cli

import (
	"errors"
	"fmt"
	"github.com/zarrdb/zarrdb/internal/must"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// runProcess runs zarrdb in a process of its own and returns what it prints.
func runProcess(args ...string) (string, error) {
	out, err := exec.Command("zarrdb", append([]string{"--wait", "5m"}, args...)...).Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		err = fmt.Errorf("zarrdb %s: %w: %s", strings.Join(args, " "), err, exit.Stderr)
	}
	return strings.TrimSpace(string(out)), err
}

// inSession runs fn with a session that spans several commands and commits it,
// again after each conflict.
func inSession(db string, fn func(id string) error) error {
	for {
		id, err := runProcess("session", "begin", db)
		if err == nil {
			err = fn(id)
		}
		if err == nil {
			_, err = runProcess("session", "commit", db, id, "-m", "update")
		}
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != exitConflict {
			return err
		}
		if _, err := runProcess("session", "abort", db, id); err != nil {
			return err
		}
	}
}

// add changes an element by what a session reads there.
func add(db, id string, element, by int) error {
	sel := fmt.Sprint(element)
	text, err := runProcess("read", db+":x", "--session", id, "--select", sel)
	if err != nil {
		return err
	}
	var n int
	if _, err := fmt.Sscan(text, &n); err != nil {
		return fmt.Errorf("read %q: %w", text, err)
	}
	_, err = runProcess("write", db+":x", "--session", id, "--select", sel, "--value", fmt.Sprint(n+by))
	return err
}

// Processes that update one database in sessions of several commands, and try
// again after a conflict, lose no update: a counter counts all increments, and
// accounts have what was paid in and out.
func TestProcessesLoseNoUpdate(t *testing.T) {
	if testing.Short() {
		t.Skip("some hundred processes")
	}
	const workers, each, elements = 4, 2, 3
	seed := must.Seed(t)
	for _, c := range []struct {
		name   string
		update func(rnd *rand.Rand) (changes map[int]int)
	}{
		{"counter", func(*rand.Rand) map[int]int { return map[int]int{0: 1} }},
		{"bank", func(rnd *rand.Rand) map[int]int {
			from := rnd.IntN(elements)
			return map[int]int{from: -1, (from + 1 + rnd.IntN(elements-1)) % elements: 1}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			db := filepath.Join(t.TempDir(), "w.zdb")
			for _, args := range [][]string{{"init", db}, {"create", db + ":x", "--shape", fmt.Sprint(elements), "--chunks", "1", "--dtype", "int32"}} {
				must.Get(runProcess(args...))(t)
			}
			var want [elements]atomic.Int64
			errs := make([]error, workers)
			var wg sync.WaitGroup
			for w := range workers {
				wg.Go(func() {
					rnd := rand.New(rand.NewPCG(seed, uint64(w)))
					for range each {
						changes := c.update(rnd)
						err := inSession(db, func(id string) (err error) {
							for element, by := range changes {
								err = errors.Join(err, add(db, id, element, by))
							}
							return err
						})
						if errs[w] = err; err != nil {
							return
						}
						for element, by := range changes {
							want[element].Add(int64(by))
						}
					}
				})
			}
			wg.Wait()
			must.Do(t, errors.Join(errs...))
			var values []string
			for i := range want {
				values = append(values, fmt.Sprint(want[i].Load()))
			}
			got, err := runProcess("read", db+":x")
			if want := "[" + strings.Join(values, ", ") + "]"; err != nil || got != want {
				t.Errorf("%s, %v; want %s", got, err, want)
			}
		})
	}
}
