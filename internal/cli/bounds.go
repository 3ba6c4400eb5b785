package cli

import (
	"fmt"
	"math"
	"path/filepath"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/zarr"
	"github.com/zarrdb/zarrdb/zarr/dtype"
)

// diskFree returns the free bytes of the disk of a directory.
var diskFree = engine.DiskFree // tests change it

// fits returns an error if the file at path, of the form of ext, cannot hold the elements.
// Selections of sparse arrays can be longer than any disk.
func (r *reading) fits(path, ext string) error {
	size, each := r.leastSize(ext)
	n, problem := product(r.shape)/each, ""
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

// leastSize returns the least size in bytes of so many elements in a file of the form of ext.
func (r *reading) leastSize(ext string) (size, each int64) {
	t := r.typ()
	kind := t.Kind()
	text := t.Variable() || kind == dtype.FixedUTF32 || kind == dtype.FixedBytes
	switch {
	case ext == ".png": // has a limit of its own
		return 0, 1
	case ext == ".parquet" && (kind == dtype.Bool || kind == dtype.Datetime || kind == dtype.Timedelta || r.dec != nil):
		return 1, 1 << 14 // equal bits and missing values take none, but a row group of 2²⁰ rows takes over 64
	case ext == ".parquet":
		return 1, 8 // values have 4 bytes, of which snappy leaves a 22nd part
	case ext == ".arrow" && kind == dtype.Bool:
		return 1, 8
	case ext == ".arrow" && text: // where each ends
		return 4, 1
	case t.Variable():
		return 1, 1
	case ext == ".npy" || ext == ".arrow":
		return int64(t.Size()), 1
	}
	return 2, 1 // a character and what separates it from the next
}
