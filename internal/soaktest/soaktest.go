// Package soaktest has the settings of tests that run for long.
package soaktest

import (
	"os"
	"testing"
	"time"

	"github.com/zarrdb/zarrdb/internal/must"
)

// Time returns how long the tests named Soak run, as ZARRDB_SOAK says. Without it, it skips the
// test.
func Time(t *testing.T) time.Duration {
	t.Helper()
	d, err := time.ParseDuration(os.Getenv("ZARRDB_SOAK"))
	if err != nil {
		t.Skip("ZARRDB_SOAK says for how long")
	}
	return d
}

// Seed returns the seed of random histories, which is ZARRDB_SEED, or another one each time. It
// logs the seed.
func Seed(t *testing.T) uint64 {
	t.Helper()
	if os.Getenv("ZARRDB_SEED") == "" {
		t.Setenv("ZARRDB_SEED", "random")
	}
	return must.Seed(t)
}
