package meta

import (
	"math"
	"strconv"
	"strings"
)

// ChunkKeys converts the coordinates of a chunk to a key below its array, and
// back. It is a small comparable value; the zero ChunkKeys is for a group and
// has no keys.
//
//	                 2 dimensions    0 dimensions
//	default with /   c/1/23          c
//	default with .   c.1.23          c
//	v2 with .        1.23            0
//	early v3 draft   c1/23           c0
type ChunkKeys struct {
	enc  keyEncoding
	sep  byte
	rank int
}

type keyEncoding uint8

const (
	keysNone keyEncoding = iota
	keysDefault
	keysV2
	keysDraft // "c" and the first number without a separator
)

// DefaultKeys returns the "default" chunk key encoding of Zarr v3 for arrays of
// the given rank. sep is '/' or '.', anything else panics.
func DefaultKeys(sep byte, rank int) ChunkKeys { return newKeys(keysDefault, sep, rank) }

// V2Keys returns the keys of Zarr v1 and v2, which are the "v2" chunk key
// encoding of Zarr v3, for arrays of the given rank. sep is '.' or '/',
// anything else panics.
func V2Keys(sep byte, rank int) ChunkKeys { return newKeys(keysV2, sep, rank) }

func newKeys(enc keyEncoding, sep byte, rank int) ChunkKeys {
	if sep != '/' && sep != '.' || rank < 0 || rank > MaxRank {
		panic("zarr: no such chunk keys")
	}
	return ChunkKeys{enc: enc, sep: sep, rank: rank}
}

// Prefix is the text in front of the first number: "c/", "c.", "" or "c".
func (k ChunkKeys) Prefix() string {
	switch k.enc {
	case keysDefault:
		return "c" + string(k.sep)
	case keysDraft:
		return "c"
	}
	return ""
}

// Separator is the character between two numbers, '/' or '.'.
func (k ChunkKeys) Separator() byte { return k.sep }

// Rank is the number of dimensions.
func (k ChunkKeys) Rank() int { return k.rank }

// WithRank returns the keys of arrays of another rank.
func (k ChunkKeys) WithRank(rank int) ChunkKeys { return newKeys(k.enc, k.sep, rank) }

// scalar is the key of the only chunk of an array without dimensions.
func (k ChunkKeys) scalar() string {
	switch k.enc {
	case keysDefault:
		return "c"
	case keysDraft:
		return "c0"
	case keysV2:
		return "0"
	}
	return ""
}

// Append appends the key of the chunk at coords, which has Rank numbers that
// are not negative.
func (k ChunkKeys) Append(dst []byte, coords []int64) []byte {
	if len(coords) == 0 {
		return append(dst, k.scalar()...)
	}
	switch k.enc {
	case keysDefault:
		dst = append(dst, 'c', k.sep)
	case keysDraft:
		dst = append(dst, 'c')
	}
	for i, c := range coords {
		if i > 0 {
			dst = append(dst, k.sep)
		}
		dst = strconv.AppendInt(dst, c, 10)
	}
	return dst
}

// Parse returns the coordinates of key; ok is false if Append does not make this
// key, byte by byte: leading zeros, a sign, or a number over 2^63-1 are not. The
// slice is new and not nil.
func (k ChunkKeys) Parse(key string) (coords []int64, ok bool) {
	if coords, ok = k.AppendCoords(make([]int64, 0, k.rank), key); !ok {
		return nil, false
	}
	return coords, true
}

// AppendCoords is [ChunkKeys.Parse] into memory of the caller: it appends the
// coordinates to dst.
func (k ChunkKeys) AppendCoords(dst []int64, key string) (coords []int64, ok bool) {
	if k.rank == 0 {
		return dst, key != "" && key == k.scalar()
	}
	key, ok = strings.CutPrefix(key, k.Prefix())
	if !ok || len(key) > 20*k.rank {
		return dst, false
	}
	for i := range k.rank {
		number, more := key, false
		if at := strings.IndexByte(key, k.sep); at >= 0 {
			number, key, more = key[:at], key[at+1:], true
		}
		c, ok := parseCoord(number)
		if !ok || more != (i < k.rank-1) {
			return dst, false
		}
		dst = append(dst, c)
	}
	return dst, true
}

// parseCoord parses a decimal number as strconv would print it.
func parseCoord(s string) (int64, bool) {
	if s == "" || len(s) > 19 || s[0] == '0' && len(s) > 1 {
		return 0, false
	}
	var n uint64
	for i := range len(s) {
		d := s[i] - '0'
		if d > 9 {
			return 0, false
		}
		n = 10*n + uint64(d)
	}
	return int64(n), n <= math.MaxInt64
}
