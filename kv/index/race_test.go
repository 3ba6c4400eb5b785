//go:build race

package index

// Under the race detector fewer histories are run.
const raceEnabled = true
