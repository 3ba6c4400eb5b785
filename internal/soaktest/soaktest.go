// Package soaktest has the settings of tests that run for long.
package soaktest

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"
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
	seed := rand.Uint64()
	if text := os.Getenv("ZARRDB_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("ZARRDB_SEED: %v", err)
		}
	}
	t.Logf("ZARRDB_SEED=%d", seed)
	return seed
}
