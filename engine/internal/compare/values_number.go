package compare

import (
	"encoding/binary"
	"math"

	"github.com/zarrdb/zarrdb/zarr/dtype"
)

// Difference compares two elements whose bytes differ.
type Difference func(was, is []byte) (by float64, how Differs)

// Differs is the kind of a difference.
type Differs uint8

// The kinds of differences.
const (
	NoDifference     Differs = iota // both are not a number
	SomeDifference                  // but none that is a number
	NumberDifference                // newer minus older
)

// DifferenceOf returns how elements of a type of fixed size are compared.
func DifferenceOf(t dtype.Type) Difference {
	switch t.Kind() {
	case dtype.Bool:
		return func(was, is []byte) (float64, Differs) { return float64(is[0]) - float64(was[0]), NumberDifference }
	case dtype.Int:
		return func(was, is []byte) (float64, Differs) {
			return intDifference(signed(was), signed(is)), NumberDifference
		}
	case dtype.Uint:
		return func(was, is []byte) (float64, Differs) {
			a, b := unsigned(was), unsigned(is)
			if a > b {
				return -float64(a - b), NumberDifference
			}
			return float64(b - a), NumberDifference
		}
	case dtype.Datetime, dtype.Timedelta:
		return func(was, is []byte) (float64, Differs) {
			a, b := signed(was), signed(is)
			if a == math.MinInt64 || b == math.MinInt64 { // NaT
				return 0, SomeDifference
			}
			return intDifference(a, b), NumberDifference
		}
	case dtype.Float:
		return func(was, is []byte) (float64, Differs) {
			return floatDifference(t.FloatValue(unsigned(was)), t.FloatValue(unsigned(is)))
		}
	case dtype.Complex:
		return complexDifference(t)
	}
	return func([]byte, []byte) (float64, Differs) { return 0, SomeDifference }
}

// complexDifference is the modulus of the difference.
func complexDifference(t dtype.Type) Difference {
	half := t.Size() / 2
	part, err := dtype.NewNarrowFloat(t.Format())
	if err != nil { // it is plain
		part = dtype.NewFloat(t.Bits() / 2)
	}
	nan := func(b []byte) bool {
		return math.IsNaN(part.FloatValue(unsigned(b[:half]))) || math.IsNaN(part.FloatValue(unsigned(b[half:])))
	}
	return func(was, is []byte) (float64, Differs) {
		if nan(was) && nan(is) {
			return 0, NoDifference
		}
		re := part.FloatValue(unsigned(is[:half])) - part.FloatValue(unsigned(was[:half]))
		im := part.FloatValue(unsigned(is[half:])) - part.FloatValue(unsigned(was[half:]))
		return finite(math.Hypot(re, im))
	}
}

func floatDifference(was, is float64) (float64, Differs) {
	if math.IsNaN(was) && math.IsNaN(is) {
		return 0, NoDifference
	}
	return finite(is - was)
}

func finite(by float64) (float64, Differs) {
	if math.IsNaN(by) || math.IsInf(by, 0) {
		return 0, SomeDifference
	}
	return by + 0, NumberDifference // no -0
}

// intDifference is exact where a float64 can be, without overflow.
func intDifference(was, is int64) float64 {
	if is >= was {
		return float64(uint64(is) - uint64(was))
	}
	return -float64(uint64(was) - uint64(is))
}

// unsigned reads a little-endian number of 1 to 8 bytes.
func unsigned(b []byte) uint64 {
	switch len(b) {
	case 1:
		return uint64(b[0])
	case 2:
		return uint64(binary.LittleEndian.Uint16(b))
	case 4:
		return uint64(binary.LittleEndian.Uint32(b))
	}
	return binary.LittleEndian.Uint64(b)
}

func signed(b []byte) int64 {
	switch len(b) {
	case 1:
		return int64(int8(b[0]))
	case 2:
		return int64(int16(binary.LittleEndian.Uint16(b)))
	case 4:
		return int64(int32(binary.LittleEndian.Uint32(b)))
	}
	return int64(binary.LittleEndian.Uint64(b))
}
