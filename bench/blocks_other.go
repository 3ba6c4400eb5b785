//go:build !unix

package main

import (
	"io/fs"
	"math"
)

// fileID is the same for all names of a file.
type fileID struct{}

// blocks is the size of a file; what its holes save is not known.
func blocks(info fs.FileInfo) (fileID, int64) { return fileID{}, info.Size() }

// settle cannot ask for what was written to be on the disk.
func settle() {}

// cpuSeconds is NaN: it is not known here.
func cpuSeconds() float64 { return math.NaN() }
