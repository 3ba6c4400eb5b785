//go:build !linux

package dirkv

import "testing"

func forEachSource(t *testing.T, test func(t *testing.T, open func(*Options) *Store)) {
	test(t, func(opts *Options) *Store { return open(t, opts) })
}
