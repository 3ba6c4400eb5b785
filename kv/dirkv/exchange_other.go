//go:build !linux

package dirkv

// exchange swaps two names in one folder. There may be nothing at b; then there
// is nothing at a afterwards.
func exchange(a, b string) error { return renames(a, b) }
