package filter

import (
	"encoding/binary"
	"math"
	"sync"

	"github.com/zarrdb/zarrdb/codecs/kernels"
	"github.com/zarrdb/zarrdb/zarr/dtype"
)

// number is a type of real numbers in memory layout for the filters: either
// whole numbers, computed as int64 modulo 2^bits, or floats.
type number uint8

const (
	notANumber number = iota
	boolean
	int8s
	int16s
	int32s
	int64s
	uint8s
	uint16s
	uint32s
	uint64s
	float16s
	float32s
	float64s
)

// numberOf returns how t is computed with, notANumber if it cannot be.
func numberOf(t dtype.Type) number {
	log2 := map[int]number{1: 0, 2: 1, 4: 2, 8: 3}[t.Size()]
	switch t.Kind() {
	case dtype.Bool:
		return boolean
	case dtype.Int:
		if t.Bits() == 8*t.Size() {
			return int8s + log2
		}
	case dtype.Datetime, dtype.Timedelta:
		return int64s
	case dtype.Uint:
		if t.Bits() == 8*t.Size() {
			return uint8s + log2
		}
	case dtype.Float:
		if t.Format() == "" {
			return float16s + log2 - 1
		}
	}
	return notANumber
}

func (k number) isFloat() bool { return k >= float16s }

func (k number) size() int {
	return [...]int{0, 1, 1, 2, 4, 8, 1, 2, 4, 8, 2, 4, 8}[k]
}

// Elements are loaded and stored in blocks of this size, so that inner loops do
// not depend on the type.
const numberBlock = 256

type (
	intBlock   [numberBlock]int64
	floatBlock [numberBlock]float64
)

// loadInts loads len(dst) whole numbers; uint64 as the same bits.
func (k number) loadInts(dst []int64, src []byte) {
	le := binary.LittleEndian
	switch k {
	case boolean, uint8s:
		for i := range dst {
			dst[i] = int64(src[i])
		}
	case int8s:
		for i := range dst {
			dst[i] = int64(int8(src[i]))
		}
	case int16s:
		for i := range dst {
			dst[i] = int64(int16(le.Uint16(src[2*i:])))
		}
	case uint16s:
		for i := range dst {
			dst[i] = int64(le.Uint16(src[2*i:]))
		}
	case int32s:
		for i := range dst {
			dst[i] = int64(int32(le.Uint32(src[4*i:])))
		}
	case uint32s:
		for i := range dst {
			dst[i] = int64(le.Uint32(src[4*i:]))
		}
	case int64s, uint64s:
		for i := range dst {
			dst[i] = int64(le.Uint64(src[8*i:]))
		}
	}
}

// storeInts stores whole numbers modulo 2^bits, as bool whether they are not 0.
func (k number) storeInts(dst []byte, src []int64) {
	le := binary.LittleEndian
	switch k {
	case boolean:
		for i, v := range src {
			dst[i] = 0
			if v != 0 {
				dst[i] = 1
			}
		}
	case int8s, uint8s:
		for i, v := range src {
			dst[i] = byte(v)
		}
	case int16s, uint16s:
		for i, v := range src {
			le.PutUint16(dst[2*i:], uint16(v))
		}
	case int32s, uint32s:
		for i, v := range src {
			le.PutUint32(dst[4*i:], uint32(v))
		}
	case int64s, uint64s:
		for i, v := range src {
			le.PutUint64(dst[8*i:], uint64(v))
		}
	case float16s:
		for i, v := range src {
			le.PutUint16(dst[2*i:], kernels.HalfOf(float64(v)))
		}
	case float32s:
		for i, v := range src {
			le.PutUint32(dst[4*i:], math.Float32bits(float32(v)))
		}
	case float64s:
		for i, v := range src {
			le.PutUint64(dst[8*i:], math.Float64bits(float64(v)))
		}
	}
}

// wrap reduces v modulo 2^bits to the range of the type.
func (k number) wrap(v int64) int64 {
	switch k {
	case boolean, uint8s:
		return int64(uint8(v))
	case int8s:
		return int64(int8(v))
	case int16s:
		return int64(int16(v))
	case uint16s:
		return int64(uint16(v))
	case int32s:
		return int64(int32(v))
	case uint32s:
		return int64(uint32(v))
	}
	return v
}

// loadFloats loads len(dst) numbers of any type, rounded to float64.
func (k number) loadFloats(dst []float64, src []byte) {
	le := binary.LittleEndian
	switch k {
	case float16s:
		for i := range dst {
			dst[i] = kernels.HalfValue(le.Uint16(src[2*i:]))
		}
	case float32s:
		for i := range dst {
			dst[i] = float64(math.Float32frombits(le.Uint32(src[4*i:])))
		}
	case float64s:
		for i := range dst {
			dst[i] = math.Float64frombits(le.Uint64(src[8*i:]))
		}
	case uint64s:
		for i := range dst {
			dst[i] = float64(le.Uint64(src[8*i:]))
		}
	default:
		var ints intBlock
		for len(dst) > 0 {
			n := min(len(dst), numberBlock)
			k.loadInts(ints[:n], src)
			for i, v := range ints[:n] {
				dst[i] = float64(v)
			}
			dst, src = dst[n:], src[n*k.size():]
		}
	}
}

// storeFloats stores numbers as any type: floats rounded to the nearest, whole
// numbers without the fraction, modulo 2^bits.
func (k number) storeFloats(dst []byte, src []float64) {
	le := binary.LittleEndian
	switch k {
	case float16s:
		for i, v := range src {
			le.PutUint16(dst[2*i:], kernels.HalfOf(v))
		}
	case float32s:
		for i, v := range src {
			le.PutUint32(dst[4*i:], math.Float32bits(float32(v)))
		}
	case float64s:
		for i, v := range src {
			le.PutUint64(dst[8*i:], math.Float64bits(v))
		}
	case boolean:
		for i, v := range src {
			dst[i] = 0
			if v != 0 {
				dst[i] = 1
			}
		}
	default:
		var ints intBlock
		for len(src) > 0 {
			n := min(len(src), numberBlock)
			for i, v := range src[:n] {
				ints[i] = truncated(v)
			}
			k.storeInts(dst, ints[:n])
			dst, src = dst[n*k.size():], src[n:]
		}
	}
}

// Blocks that a function argument changes cannot be on the stack, so they come from pools.
var (
	intBlocks   = sync.Pool{New: func() any { return new(intBlock) }}
	floatBlocks = sync.Pool{New: func() any { return new(floatBlock) }}
)

// eachInts converts elements of type from to the type to as whole numbers. fn changes each
// block of them.
func eachInts(dst, src []byte, to, from number, fn func([]int64)) {
	block := intBlocks.Get().(*intBlock)
	defer intBlocks.Put(block)
	for len(src) > 0 {
		n := min(len(src)/from.size(), numberBlock)
		from.loadWhole(block[:n], src)
		fn(block[:n])
		to.storeInts(dst, block[:n])
		dst, src = dst[n*to.size():], src[n*from.size():]
	}
}

// eachFloats is eachInts for floats.
func eachFloats(dst, src []byte, to, from number, fn func([]float64)) {
	block := floatBlocks.Get().(*floatBlock)
	defer floatBlocks.Put(block)
	for len(src) > 0 {
		n := min(len(src)/from.size(), numberBlock)
		from.loadFloats(block[:n], src)
		fn(block[:n])
		to.storeFloats(dst, block[:n])
		dst, src = dst[n*to.size():], src[n*from.size():]
	}
}

// loadWhole loads numbers of any type as whole ones.
func (k number) loadWhole(dst []int64, src []byte) {
	if !k.isFloat() {
		k.loadInts(dst, src)
		return
	}
	var floats floatBlock
	k.loadFloats(floats[:len(dst)], src)
	for i, v := range floats[:len(dst)] {
		dst[i] = truncated(v)
	}
}

// truncated returns v without its fraction modulo 2^64. A value outside the
// ranges of int64 and uint64, which is undefined in C, becomes the least int64,
// as on amd64.
func truncated(v float64) int64 {
	switch {
	case v >= -1<<63 && v < 1<<63:
		return int64(v)
	case v >= 1<<63 && v < 1<<64:
		return int64(uint64(v))
	}
	return math.MinInt64
}

// round rounds v to a number of the type; whole numbers are computed as float64.
func (k number) round(v float64) float64 {
	switch k {
	case float16s:
		return kernels.HalfValue(kernels.HalfOf(v))
	case float32s:
		return float64(float32(v))
	}
	return v
}
