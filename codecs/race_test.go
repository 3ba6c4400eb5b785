//go:build race

package codecs_test

const raceEnabled = true
