// Package field makes the array that all read and write benchmarks use.
//
//	value(t, y, x) = smooth waves + one random bit, rounded to 1/1000
//
// It is float32, little-endian, shape 256 × 1024 × 1024 = 1 GiB, and the same
// to the bit on every machine and in every language: everything up to the last
// division is integer arithmetic. It compresses like measured data do (blosc
// with lz4 and byte shuffle to about 1/2, zstd to about 1/4.7).
package field

import (
	"encoding/binary"
	"math"
)

// Shape is the shape of the whole field.
var Shape = [3]int{256, 1024, 1024}

// SHA256 is the digest of the whole field in C order.
const SHA256 = "1404956b5eeee2b935931e0381e7b7e2727d545b6c3fd113e4eb0f33ff965d73"

// wave is one period of a parabola that looks like a sine, for p mod 65536.
func wave(p int) int {
	p &= 65535
	u := p & 32767
	w := (u * (32768 - u)) >> 16
	if p&32768 != 0 {
		return -w
	}
	return w
}

// noise is the last bit of a hash of the position.
func noise(t, y, x int) int {
	h := uint64(t)<<20 + uint64(1024*y) + uint64(x) + 0x9E3779B97F4A7C15
	h = (h ^ h>>30) * 0xBF58476D1CE4E5B9
	h = (h ^ h>>27) * 0x94D049BB133111EB
	return int((h ^ h>>31) & 1)
}

// at returns one element.
func at(t, y, x int) float32 {
	m := 12000 + (wave(64*t+60*y+18*x)*2000)>>12 + (wave(200*t-31*y+25*x)*600)>>12
	return float32(float64(m+noise(t, y, x)) / 1000)
}

// Fill writes the planes from t on into dst, as many as fit, in C order:
// len(dst) must be a multiple of 4 MiB.
func Fill(dst []byte, t int) {
	for ; len(dst) > 0; t++ {
		for y := range Shape[1] {
			row := dst[:4*Shape[2]]
			dst = dst[len(row):]
			for x := range Shape[2] {
				binary.LittleEndian.PutUint32(row[4*x:], math.Float32bits(at(t, y, x)))
			}
		}
	}
}
