//go:build race

package kv_test

// Under the race detector sync.Pool drops buffers on purpose.
const raceEnabled = true
