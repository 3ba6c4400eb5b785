package modeltest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zarrdb/zarrdb/txn"
	"github.com/zarrdb/zarrdb/zarr"
)

var bg = context.Background()

// version is the model of a commit. Commits have the same id in all databases.
type version struct {
	id      txn.CommitID
	name    string // in the list of what was done
	parents []txn.CommitID
	tree    tree
	// raw says that keys were stored past the methods that keep consolidated
	// metadata up to date.
	raw bool
}

// run is one history under way.
type run struct {
	seed   uint64
	format zarr.Version
	dir    string
	done   []string // what was done, a line each
	rng    *rand.Rand
	clock  atomic.Int64

	versions map[txn.CommitID]*version
	order    []*version
	dbs      []*database
	stores   []*store
	names    int // of files, nodes and sessions
}

// failure is what the steps of a run panic with.
type failure struct{ error }

func (r *run) fail(format string, args ...any) { panic(failure{fmt.Errorf(format, args...)}) }

// must ends the run if there is an error.
func (r *run) must(err error, doing string) {
	if err != nil {
		r.fail("%s: %w", doing, err)
	}
}

// expect ends the run if an error is not one of those that are due; none is due if
// the list is empty. It reports whether err is nil.
func (r *run) expect(err error, doing string, due ...error) bool {
	if len(due) == 0 {
		r.must(err, doing)
		return true
	}
	if !slices.ContainsFunc(due, func(d error) bool { return d == nil && err == nil || d != nil && errors.Is(err, d) }) {
		r.fail("%s: error %v, want %v", doing, err, due)
	}
	return err == nil
}

// note adds a line to the list of what was done.
func (r *run) note(format string, args ...any) {
	r.done[len(r.done)-1] += fmt.Sprintf(format, args...) + "; "
}

func (r *run) fresh() int { r.names++; return r.names }

// file returns a path that is not taken.
func (r *run) file(name string) string {
	return filepath.Join(r.dir, fmt.Sprintf("%d-%s", r.fresh(), name))
}

// chance is true once in n times.
func (r *run) chance(n int) bool { return r.rng.IntN(n) == 0 }

// one picks an element of a list that is not empty.
func one[T any](r *run, list []T) T { return list[r.rng.IntN(len(list))] }

// now is a clock that moves a second each time that it is asked.
func (r *run) now() time.Time {
	return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(r.clock.Add(1)) * time.Second)
}

// step is one kind of step; often is its weight.
type step struct {
	name  string
	often int
	do    func(*run)
}

func pickStep(rng *rand.Rand) step {
	total := 0
	for _, s := range steps {
		total += s.often
	}
	n := rng.IntN(total)
	for _, s := range steps {
		if n -= s.often; n < 0 {
			return s
		}
	}
	panic("unreachable")
}

// runSteps runs those steps of a history whose numbers are given, in a new
// directory below dir. It returns the steps and the first error.
func runSteps(dir string, seed uint64, numbers []int) (done []string, err error) {
	dir, err = os.MkdirTemp(dir, "run")
	if err != nil {
		return nil, err
	}
	rng := rand.New(rand.NewPCG(seed, 1<<32))
	r := &run{seed: seed, dir: dir, rng: rng, format: []zarr.Version{zarr.V2, zarr.V3}[rng.IntN(2)], versions: map[txn.CommitID]*version{}}
	defer func() {
		if p := recover(); p != nil {
			f, ok := p.(failure)
			if !ok {
				f = failure{fmt.Errorf("panic: %v\n%s", p, debug.Stack())}
			}
			err = f.error
		}
		done = r.done
		r.abandon()
		_ = os.RemoveAll(dir)
	}()
	r.done = append(r.done, fmt.Sprintf("seed %d, %v: ", seed, r.format))
	r.begin()
	for _, i := range numbers {
		r.rng = rand.New(rand.NewPCG(seed, uint64(i)))
		s := pickStep(r.rng)
		r.done = append(r.done, fmt.Sprintf("%3d %s: ", i, s.name))
		s.do(r)
		r.glance()
	}
	r.done = append(r.done, "    at the end: ")
	r.finish()
	return r.done, nil
}

// history runs a history of n steps. One that fails is made shorter and printed.
func history(t *testing.T, seed uint64, n int) {
	t.Helper()
	numbers := make([]int, n)
	for i := range numbers {
		numbers[i] = i
	}
	dir := t.TempDir()
	done, err := runSteps(dir, seed, numbers)
	if err == nil {
		return
	}
	numbers = numbers[:min(len(done)-1, n)]
	numbers = shorten(numbers, func(fewer []int) bool {
		_, err := runSteps(dir, seed, fewer)
		return err != nil
	})
	if shorter, again := runSteps(dir, seed, numbers); again != nil {
		done, err = shorter, again
	}
	t.Fatalf("%v\nafter\n%s", err, strings.Join(done, "\n"))
}

// shortenTime bounds how long a history is made shorter.
const shortenTime = time.Minute

// shorten leaves out numbers as long as the rest fails.
func shorten(numbers []int, fails func([]int) bool) []int {
	end := time.Now().Add(shortenTime)
	for size := len(numbers) / 2; size > 0; size /= 2 {
		for at := 0; at+size <= len(numbers) && time.Now().Before(end); {
			fewer := slices.Concat(numbers[:at], numbers[at+size:])
			if fails(fewer) {
				numbers = fewer
			} else {
				at += size
			}
		}
	}
	return numbers
}
