//go:build unix

package main

import (
	"io/fs"
	"syscall"
	"time"
)

// fileID is the same for all names of a file.
type fileID struct{ dev, ino uint64 }

// blocks is how much room a file takes on disk; holes take none.
func blocks(info fs.FileInfo) (fileID, int64) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return fileID{}, info.Size()
	}
	return fileID{uint64(st.Dev), uint64(st.Ino)}, int64(st.Blocks) * 512
}

// settle waits until earlier writes are on disk, so that they do not slow the
// measured work.
func settle() { syscall.Sync() }

// cpuSeconds is what this process has used of all processors.
func cpuSeconds() float64 {
	var r syscall.Rusage
	check(syscall.Getrusage(syscall.RUSAGE_SELF, &r))
	return time.Duration(r.Utime.Nano() + r.Stime.Nano()).Seconds()
}
