//go:build !race

package codecs_test

const raceEnabled = false
