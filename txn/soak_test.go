package txn

import (
	"flag"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/internal/soaktest"
)

// soaking is a run of histories of one kind. Its seeds follow from ZARRDB_SEED, so
// that a run can be had again; without that they are others each time.
type soaking struct {
	rng            *rand.Rand
	start, end     time.Time
	histories, ops int
	last           uint64 // seed
}

// startSoak skips the test if ZARRDB_SOAK is not set.
func startSoak(t *testing.T) *soaking {
	t.Helper()
	d := soaktest.Time(t)
	now := time.Now()
	s := &soaking{rng: seeds(t), start: now, end: now.Add(d / time.Duration(soakKinds(t)))}
	t.Cleanup(func() {
		t.Logf("%d operations in %d histories, %v", s.ops, s.histories, time.Since(now).Round(time.Second))
		switch {
		case t.Failed():
			t.Logf("the last one had seed %d", s.last)
		case s.ops == 0:
			t.Error("nothing was run")
		}
	})
	return s
}

// seeds returns the seeds of histories, which follow from ZARRDB_SEED.
func seeds(t *testing.T) *rand.Rand {
	t.Helper()
	return rand.New(rand.NewPCG(soaktest.Seed(t), 0))
}

func (s *soaking) over() bool { return !time.Now().Before(s.end) }

// part returns when the i-th of n parts is over, counted from 0.
func (s *soaking) part(i, n int) func() bool {
	end := s.start.Add(s.end.Sub(s.start) / time.Duration(n) * time.Duration(i+1))
	return func() bool { return !time.Now().Before(end) }
}

// seed returns the seed of the next history.
func (s *soaking) seed() uint64 {
	s.last = s.rng.Uint64()
	s.histories++
	return s.last
}

// soakHistory runs one of a seed, which ends early when over says so, and returns how
// many operations it had.
type soakHistory func(t *testing.T, seed uint64, over func() bool) (ops int)

// soak runs histories until the time is over.
func soak(t *testing.T, fn soakHistory) {
	for s := startSoak(t); !s.over(); {
		s.ops += fn(t, s.seed(), s.over)
	}
}

// soakKinds is how many tests of this package share the time: those that run.
func soakKinds(t *testing.T) (n int) {
	t.Helper()
	files := must.Get(filepath.Glob("*_test.go"))(t)
	runs := regexp.MustCompile(flag.Lookup("test.run").Value.String())
	for _, name := range files {
		b := must.Get(os.ReadFile(name))(t)
		for _, name := range regexp.MustCompile(`(?m)^func (TestSoak\w*)`).FindAllSubmatch(b, -1) {
			if runs.Match(name[1]) {
				n++
			}
		}
	}
	return n
}

// crashRounds runs a few histories with seeds that it prints.
func crashRounds(t *testing.T, fn soakHistory) {
	rounds := 3
	if testing.Short() {
		rounds = 1
	}
	rnd := rand.New(rand.NewPCG(must.Seed(t), 0))
	for range rounds {
		seed := rnd.Uint64()
		t.Logf("seed %d", seed)
		fn(t, seed, func() bool { return false })
	}
}
