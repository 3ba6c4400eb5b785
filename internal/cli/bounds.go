package cli

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/zarr"
)

// diskFree returns the free bytes of the disk of a directory.
var diskFree = engine.DiskFree // tests change it

// fits returns an error if the file at path, which lists n elements of at least size bytes
// behind a header, cannot hold them. Selections of sparse arrays can be longer than any disk.
func (r *reading) fits(path string, size int64) error {
	n, problem := product(r.shape), ""
	if size == 0 || n <= math.MaxInt64/size {
		free, err := diskFree(filepath.Dir(path))
		if err != nil || uint64(n*size) <= free { // not every system says how much is free
			return nil
		}
		problem = fmt.Sprintf("at least %d bytes, and its disk has %d free", n*size, free)
	} else {
		problem = fmt.Sprintf("more than %d bytes, which no file can have", int64(math.MaxInt64))
	}
	return fmt.Errorf("read /%s: %w: a result of shape %v takes %s; use --select for less of it, or -o - for a pipe",
		r.a.Path(), zarr.ErrTooLarge, r.shape, problem)
}

// leastSize is the least size of an element in a file of the form of ext.
func (r *reading) leastSize(ext string) int64 {
	switch t := r.typ(); {
	case ext == ".png": // has a limit of its own
		return 0
	case slices.Contains(tableFormats, ext): // equal values take no space
		return 0
	case t.Variable():
		return 1
	case ext == ".npy":
		return int64(t.Size())
	}
	return 2 // a character and what separates it from the next
}
