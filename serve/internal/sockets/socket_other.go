//go:build !unix

package sockets

import "io/fs"

// OwnerOf knows no user here.
func OwnerOf(string) (uid int, ok bool) { return 0, false }

// audience is this user alone: modes mean nothing here.
func audience(string) (mode fs.FileMode, gid int) { return 0o600, 0 }
