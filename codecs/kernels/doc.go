// Package kernels holds the inner loops of the codecs: byte and bit shuffle,
// byte swap, Adler-32, half-precision floats, and the test for a repeated pattern.
//
// A block of n elements of size bytes is a matrix of bytes; shuffling
// transposes it, so that bytes of equal significance lie side by side:
//
//	element 0   a0 a1 a2 a3        a0 b0 c0 …   plane 0
//	element 1   b0 b1 b2 b3   ->   a1 b1 c1 …   plane 1
//	element 2   c0 c1 c2 c3        a2 b2 c2 …   plane 2
//	…                              a3 b3 c3 …   plane 3
//
// Bit shuffling goes one step further and transposes bits: plane 8·j+k holds
// bit k of byte j of every element, eight elements to a byte, the first in the
// lowest bit.
//
// On amd64 the loops are AVX2 assembly where the processor has it (and GFNI for
// the bit transposition). The plain Go twin of each is always compiled. It
// handles the ends, is the only one with the build tag noasm, and the tests
// compare the assembly with it.
//
// All functions are safe for concurrent use, allocate nothing per call, and
// take any length. Source and destination must not overlap unless the function
// says so.
package kernels
