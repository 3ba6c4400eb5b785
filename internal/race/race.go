//go:build race

// Package race tells tests whether they run under the race detector, which makes them
// some ten times slower and lets pools forget what they hold.
package race

// Enabled reports whether the race detector is on.
const Enabled = true
