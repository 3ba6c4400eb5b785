package picture

import (
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"math"
	"slices"

	"github.com/zarrdb/zarrdb/zarr"
	"github.com/zarrdb/zarrdb/zarr/cf"
	"github.com/zarrdb/zarrdb/zarr/dtype"
)

// What is read of an array for its range at most.
const (
	sampleElements = 1 << 18
	sampleChunks   = 32
	sampleBytes    = 16 << 20 // of chunks, if they are more than 4
)

// Range is where most values of a selection lie, all of it and not only the part that a picture
// shows: from the 2nd to the 98th percentile of every n-th element along each axis, within the
// range that attributes call valid. ok is false if none of them is a number.
func Range(ctx context.Context, a *zarr.Array, r Request) (l Limits, ok bool, err error) {
	axes, at, err := a.Axes(r.Select)
	if err != nil {
		return l, false, err
	}
	var lines []*line
	size := int64(max(a.Type().Size(), 1)) // of a chunk
	for d := range a.Shape() {
		size *= chunkLength(a, d)
	}
	chunks := float64(min(max(sampleBytes/max(size, 1), 4), sampleChunks))
	for _, x := range axes {
		if x.Dim >= 0 && x.Len > 0 {
			n := &line{Axis: x}
			n.limit(chunkLength(a, x.Dim), math.MaxInt32)
			lines = append(lines, n)
		}
	}
	total := func(of func(*line) int64) float64 {
		n := 1.0
		for _, l := range lines {
			n *= float64(of(l))
		}
		return n
	}
	largest := func(of func(*line) int64) *line {
		return slices.MaxFunc(lines, func(a, b *line) int { return cmp.Compare(of(a), of(b)) })
	}
	for total((*line).chunks) > chunks {
		most := largest((*line).chunks)
		if most.chunks() == 1 { // rounding can keep one more
			break
		}
		most.coarser()
	}
	for most := float64(max(min(sampleElements, sampleBytes/max(a.Type().Size(), 1)), 1)); total((*line).count) > most; {
		largest((*line).count).fewer()
	}
	for _, l := range lines {
		l.line(at)
	}
	s := sideOf(a, r.Decoder)
	b, err := s.read(ctx, zarr.Orthogonal(at...))
	if err != nil {
		return l, false, err
	}
	t, b, err := partOf(s.t, b, r.Part)
	if err != nil {
		return l, false, err
	}
	values := AppendFloats(nil, t, b)
	lo, hi := validRange(a, r.Decoder)
	values = slices.DeleteFunc(values, func(v float64) bool { return v < lo || v > hi || r.Log && v <= 0 })
	l, ok = Percentiles(values, 2, 98)
	return l, ok, nil
}

// validRange is the range of valid values, decoded if dec is not nil: it is -∞ to ∞ without the
// attributes valid_range, valid_min and valid_max, which are in units of stored values.
func validRange(a *zarr.Array, dec *cf.Decoder) (lo, hi float64) {
	lo, hi = math.Inf(-1), math.Inf(1)
	attrs := a.Meta().Attributes
	var both []float64
	if raw, ok := attrs.Get("valid_range"); ok && json.Unmarshal(raw, &both) == nil && len(both) == 2 {
		lo, hi = both[0], both[1]
	}
	for name, to := range map[string]*float64{"valid_min": &lo, "valid_max": &hi} {
		var v float64
		if raw, ok := attrs.Get(name); ok && json.Unmarshal(raw, &v) == nil {
			*to = v
		}
	}
	if dec == nil || dec.Plain() {
		return lo, hi
	}
	none := math.Inf(1)
	if dec.Falls() {
		none = -none
	}
	lo, hi = limitAs(a, dec, lo, -none), limitAs(a, dec, hi, none)
	if dec.Falls() {
		lo, hi = hi, lo
	}
	return lo, hi
}

// limitAs decodes a limit as it is stored. An array without the limit, and a limit that decodes to a missing
// value, give the argument none. Where elements are not plain numbers, the result is v.
func limitAs(a *zarr.Array, dec *cf.Decoder, v, none float64) float64 {
	t := a.Type()
	var bits uint64
	switch k := t.Kind(); {
	case math.IsInf(v, 0):
		return none
	case k == dtype.Float:
		bits = t.FloatBits(v)
	case k == dtype.Int || k == dtype.Uint:
		bits = integerBits(t, v, attribute(a.Meta(), "_Unsigned") != "")
	default:
		return v
	}
	b, err := dec.Append(nil, binary.LittleEndian.AppendUint64(nil, bits)[:t.Size()])
	if err != nil {
		return none
	}
	if out := AppendFloats(nil, dec.Type(), b); len(out) == 1 && out[0] == out[0] {
		return out[0]
	}
	return none
}

// integerBits are those of the value of a type that is next to v. With either they may be read as
// signed or not, and v is in one of both ranges.
func integerBits(t dtype.Type, v float64, either bool) uint64 {
	n := t.Bits()
	if t.Kind() == dtype.Int && !either {
		n--
	}
	switch {
	case v >= math.Ldexp(1, n):
		return math.MaxUint64 >> (64 - n)
	case v >= 0:
		return uint64(v)
	case t.Kind() == dtype.Uint && !either:
		return 0
	}
	return uint64(int64(max(v, -math.Ldexp(1, t.Bits()-1))))
}
