//go:build race

package pack

// Under the race detector fewer histories are run.
const raceEnabled = true
