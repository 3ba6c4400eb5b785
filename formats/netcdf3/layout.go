package netcdf3

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/zarrdb/zarrdb/formats"
)

// layout is where the variables lie.
type layout struct {
	records int64
	stride  int64 // from one record to the next
}

// place finds where the variables lie, and checks that the file has them all.
func (h *header) place(size int64) (layout, error) {
	var l layout
	records := -1 // number of the record dimension
	for i, d := range h.dims {
		if d.length == 0 && records >= 0 {
			return l, formats.Invalid("netcdf3: the dimensions %q and %q both have records", h.dims[records].name, d.name)
		}
		if d.length == 0 {
			records = i
		}
	}
	var fixed, recorded []*variable
	for _, v := range h.vars {
		if err := v.measure(h.dims, records); err != nil {
			return l, err
		}
		if v.record {
			recorded = append(recorded, v)
		} else {
			fixed = append(fixed, v)
		}
	}
	end, err := inOrder(fixed, h.end)
	if err != nil {
		return l, err
	}
	if len(recorded) == 0 {
		l.records = max(0, h.stored)
		return l, whole(size, end)
	}
	last, err := inOrder(recorded, end)
	if err != nil {
		return l, err
	}
	first := recorded[0].begin
	for _, v := range recorded {
		n := v.bytes
		if len(recorded) > 1 {
			n += -n & 3 // padding
		}
		if l.stride += n; l.stride < 0 {
			return l, formats.Invalid("netcdf3: the bytes of a record are more than 2^63")
		}
	}
	if last-first > l.stride {
		return l, formats.Invalid("netcdf3: a record takes %d bytes, where it has %d", last-first, l.stride)
	}
	if l.records = h.stored; l.records < 0 {
		if size >= last {
			l.records = (size-last)/l.stride + 1
		}
	}
	if l.records > 0 {
		hi, lo := bits.Mul64(uint64(l.records-1), uint64(l.stride))
		if hi != 0 || lo > 1<<62 {
			return l, formats.Invalid("netcdf3: %d records of %d bytes in a file of %d", l.records, l.stride, size)
		}
		end = last + int64(lo)
	}
	return l, whole(size, end)
}

// whole fails if the file ends too early. The padding at its end may be missing.
func whole(size, end int64) error {
	if size < end {
		return formats.Invalid("netcdf3: the file has %d bytes and should have %d: it is cut off", size, end)
	}
	return nil
}

// measure sets the shape of a variable.
func (v *variable) measure(dims []dimension, records int) error {
	v.bytes = types[v.typ].size
	for i, d := range v.dims {
		if d >= int64(len(dims)) {
			return formats.Invalid("netcdf3: variable %q has dimension %d of %d", v.name, d, len(dims))
		}
		if int(d) == records {
			if i > 0 {
				return formats.Invalid("netcdf3: variable %q has records along dimension %d", v.name, i)
			}
			v.record = true
			continue
		}
		n := dims[d].length
		hi, lo := bits.Mul64(uint64(v.bytes), uint64(n))
		if hi != 0 || lo > 1<<62 {
			return formats.Invalid("netcdf3: variable %q has more than 2^62 bytes", v.name)
		}
		v.shape, v.bytes = append(v.shape, n), int64(lo)
	}
	return nil
}

// inOrder sorts variables by their offset, which is from start on, and returns where the
// last one ends. No two may overlap.
func inOrder(vars []*variable, start int64) (end int64, err error) {
	slices.SortStableFunc(vars, func(a, b *variable) int { return cmp.Compare(a.begin, b.begin) })
	for _, v := range vars {
		if v.begin < start || v.begin > 1<<62 {
			return 0, formats.Invalid("netcdf3: variable %q begins at byte %d, where other things are up to %d", v.name, v.begin, start)
		}
		start = v.begin + v.bytes
	}
	return start, nil
}
