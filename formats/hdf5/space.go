package hdf5

import (
	"slices"

	"github.com/zarrdb/zarrdb/formats"
)

// space is the shape of a dataset or of an attribute.
type space struct {
	null bool // there is no element, and no shape
	dims []int64
	max  []int64 // the largest shape; unlimited where it has no bound
}

const unlimited = -1

// maxRank is the largest number of dimensions in HDF5.
const maxRank = 32

func readSpace(d *dec) (space, error) {
	var s space
	version, rank, flags := d.u8(), int(d.u8()), d.u8()
	switch {
	case d.err != nil:
		return s, d.err
	case rank > maxRank:
		return s, formats.Invalid("hdf5: %d dimensions", rank)
	case version == 1:
		d.skip(5)
	case version == 2:
		s.null = d.u8() == 2
	default:
		return s, formats.Unsupported("hdf5: dataspaces of version %d", version)
	}
	for range rank {
		s.dims = append(s.dims, d.length())
	}
	s.max = slices.Clone(s.dims)
	for i := range s.max {
		if flags&1 == 0 {
			break
		}
		v := d.take(d.f.lenSize)
		if s.max[i] = address(d, v); d.err == nil && s.max[i] != unlimited && s.max[i] < s.dims[i] {
			d.fail("has the size %d along dimension %d, where at most %d are allowed", s.dims[i], i, s.max[i])
		}
	}
	return s, d.err
}

// product multiplies sizes, and reports whether the result is a size.
func product(sizes ...int64) (int64, bool) {
	n := int64(1)
	for _, s := range sizes {
		if s == 0 {
			return 0, true
		}
	}
	for _, s := range sizes {
		if s < 0 || n > (1<<62)/s {
			return 0, false
		}
		n *= s
	}
	return n, true
}

// count is the number of elements, and whether that is a number.
func (s *space) count() (int64, bool) {
	if s.null {
		return 0, true
	}
	return product(s.dims...)
}
