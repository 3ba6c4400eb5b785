package pco

import (
	"errors"
	"fmt"
)

var (
	// errCorrupt marks data that break the format.
	errCorrupt = errors.New("pco: corrupt data")

	// ErrTooLarge means that the data hold more numbers than they may.
	ErrTooLarge = errors.New("pco: more numbers than allowed")
)

func corrupt(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{errCorrupt}, args...)...)
}

// errShort means that the data end too early.
var errShort = fmt.Errorf("%w: the data end too early", errCorrupt)

// Type is a type of numbers, as it is stored.
type Type uint8

// The types.
const (
	Uint32 Type = 1 + iota
	Uint64
	Int32
	Int64
	Float32
	Float64
	Uint16
	Int16
	Float16
	Uint8
	Int8
)

var typeNames = [...]string{"none", "uint32", "uint64", "int32", "int64", "float32", "float64", "uint16", "int16", "float16", "uint8", "int8"}

// String returns numpy's name of the type.
func (t Type) String() string {
	if int(t) < len(typeNames) {
		return typeNames[t]
	}
	return fmt.Sprintf("type %d", uint8(t))
}

// Size returns the bytes of a number.
func (t Type) Size() int {
	switch t {
	case Uint8, Int8:
		return 1
	case Uint16, Int16, Float16:
		return 2
	case Uint32, Int32, Float32:
		return 4
	}
	return 8
}

func (t Type) bits() uint { return 8 * uint(t.Size()) }

func (t Type) float() bool { return t == Float16 || t == Float32 || t == Float64 }

func (t Type) signed() bool { return t == Int8 || t == Int16 || t == Int32 || t == Int64 }

// explicitBits returns the number of stored bits of a float's significand.
func (t Type) explicitBits() uint {
	switch t {
	case Float16:
		return 10
	case Float32:
		return 23
	}
	return 52
}

// Constants of the format.
const (
	magic = "pco!"

	// standaloneMax is the newest version of the file around the chunks, majorMax
	// of the chunks themselves.
	standaloneMax = 3
	majorMax      = 4

	batchSize = 256
	// chunkMax is the most numbers that a chunk holds, and so a dictionary.
	chunkMax = 1 << 24
	// states is the number of interleaved tANS states.
	states = 4

	maxLog       = 14 // of a tANS table
	maxConvOrder = 32
	maxWindowLog = 24
)

// modeKind is how numbers are split into latents.
type modeKind uint8

const (
	classic    modeKind = iota
	intMult             // base × primary + secondary
	floatMult           // base × primary, off by secondary steps of the last place
	floatQuant          // primary are the upper bits, secondary the k lowest
	dictionary          // primary is an index
)

// deltaKind is how latents are predicted.
type deltaKind uint8

const (
	noDelta     deltaKind = iota
	consecutive           // by the one before, order times over
	lookback              // by an earlier one that a variable of its own names
	conv1                 // by a weighted sum of the ones before
)

// low returns n ones, for n up to 64.
func low(n uint) uint64 { return 1<<n - 1 }
