//go:build !unix

package main

import (
	"io/fs"
	"math"
)

// fileID is the same for all names of a file.
type fileID struct{}

// blocks is the size of a file; the bytes that its holes save are unknown.
func blocks(info fs.FileInfo) (fileID, int64) { return fileID{}, info.Size() }

// settle does nothing: this system cannot wait for earlier writes to be on disk.
func settle() {}

// cpuSeconds is NaN: it is not known here.
func cpuSeconds() float64 { return math.NaN() }
