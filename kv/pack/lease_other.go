//go:build !unix || aix

package pack

import "github.com/cockroachdb/pebble/v2/vfs"

// LockShared returns false: files have no such locks here.
func LockShared(vfs.File) bool { return false }

// LockedElsewhere returns false: files have no such locks here.
func LockedElsewhere(vfs.File) (leased bool) { return false }
