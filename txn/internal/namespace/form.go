package namespace

import (
	"cmp"
	"encoding/binary"
	"math"
	"math/bits"
	"strconv"
	"strings"
)

// Coordinates are kept in chunk maps as one binary string: the numbers one
// after the other, each in the fewest bytes, big-endian behind a prefix that
// gives the number of bytes:
//
//	0xxxxxxx                      below 2^7
//	10xxxxxx xxxxxxxx             below 2^14
//	110xxxxx … (3 bytes)          below 2^21
//	…
//	11111110 + 7 bytes            below 2^56
//	11111111 + 8 bytes            below 2^63
//
// Longer numbers begin with a greater byte and no number's bytes begin
// another's, so byte order of the strings is C order of the coordinates.
// Numbers have only one encoding: the shortest.

const (
	maxRank       = 32
	maxFormPrefix = 64
	maxCoord      = math.MaxInt64
	maxCoordBytes = 9
	maxCoordsLen  = maxRank * maxCoordBytes
	maxDigits     = 19 // of maxCoord
)

// normal returns the form as it is stored, or false if it is not supported. Where
// there is nothing to separate, Sep is '/'.
func (f Form) normal() (Form, bool) {
	if f.Rank < 0 || f.Rank > maxRank || len(f.Prefix) > maxFormPrefix {
		return f, false
	}
	if f.Rank < 2 {
		f.Sep = '/'
	}
	if f.Rank == 0 {
		return f, f.Prefix != "" && !strings.Contains(f.Prefix, "/")
	}
	// Without digits in prefixes no two forms match the same key: the first digit
	// ends the prefix, and the separators determine the rest.
	return f, (f.Sep == '.' || f.Sep == '/') && !strings.ContainsAny(f.Prefix, "0123456789")
}

func compareForms(a, b Form) int {
	return cmp.Or(cmp.Compare(a.Rank, b.Rank), cmp.Compare(a.Sep, b.Sep), strings.Compare(a.Prefix, b.Prefix))
}

// appendCoord appends the encoding of n, which is at most maxCoord.
func appendCoord(dst []byte, n uint64) []byte {
	switch {
	case n < 1<<7:
		return append(dst, byte(n))
	case n < 1<<14:
		return append(dst, 0x80|byte(n>>8), byte(n))
	case n < 1<<21:
		return append(dst, 0xc0|byte(n>>16), byte(n>>8), byte(n))
	}
	size := coordSize(n)
	var b [maxCoordBytes]byte
	binary.BigEndian.PutUint64(b[1:], n)
	if size == maxCoordBytes {
		b[0] = 0xff
		return append(dst, b[:]...)
	}
	b[maxCoordBytes-size] |= ^byte(0xff >> (size - 1))
	return append(dst, b[maxCoordBytes-size:]...)
}

// coordSize is how many bytes encode n.
func coordSize(n uint64) int {
	if n >= 1<<56 {
		return maxCoordBytes
	}
	return max(1, (bits.Len64(n)+6)/7)
}

// splitCoord splits the first number off an encoding. ok is false for bytes that
// appendCoord does not write.
func splitCoord(b []byte) (n uint64, rest []byte, ok bool) {
	if len(b) == 0 {
		return 0, nil, false
	}
	if b[0] < 0x80 {
		return uint64(b[0]), b[1:], true
	}
	size := bits.LeadingZeros8(^b[0]) + 1
	if len(b) < size {
		return 0, nil, false
	}
	if size < 8 {
		n = uint64(b[0] & (0xff >> size))
	}
	for _, c := range b[1:size] {
		n = n<<8 | uint64(c)
	}
	return n, b[size:], n <= maxCoord && coordSize(n) == size
}

// splitNumber splits a canonical decimal number off the front of s: no sign, no
// leading zero, at most maxCoord.
func splitNumber(s string) (n uint64, rest string, ok bool) {
	i := 0
	for i < len(s) && s[i]-'0' < 10 {
		if i == maxDigits {
			return 0, s, false
		}
		n = n*10 + uint64(s[i]-'0') // 19 digits fit 64 bits
		i++
	}
	if i == 0 || i > 1 && s[0] == '0' || n > maxCoord {
		return 0, s, false
	}
	return n, s[i:], true
}

// parse appends the coordinates of key to dst. ok reports whether the form matches
// key: print gives exactly key back.
func (f *Form) parse(dst []byte, key string) (coords []byte, ok bool) {
	if f.Rank == 0 || !strings.HasPrefix(key, f.Prefix) {
		return dst, false
	}
	rest := key[len(f.Prefix):]
	for i := 0; ; i++ {
		n, r, ok := splitNumber(rest)
		if !ok {
			return dst, false
		}
		dst = appendCoord(dst, n)
		if i == f.Rank-1 {
			return dst, r == ""
		}
		if r == "" || r[0] != f.Sep {
			return dst, false
		}
		rest = r[1:]
	}
}

// print appends the key of encoded coordinates to dst. ok is false if they are
// not Rank numbers.
func (f *Form) print(dst, coords []byte) (key []byte, ok bool) {
	return f.printFrom(append(dst, f.Prefix...), 0, coords)
}

// printFrom appends the part of a key that begins with the number of a dimension.
// coords are those of this and all later dimensions.
func (f *Form) printFrom(dst []byte, dim int, coords []byte) (key []byte, ok bool) {
	for i := dim; i < f.Rank; i++ {
		n, rest, ok := splitCoord(coords)
		if !ok {
			return dst, false
		}
		if i > dim {
			dst = append(dst, f.Sep)
		}
		dst = strconv.AppendUint(dst, n, 10)
		coords = rest
	}
	return dst, len(coords) == 0
}

// numbers decodes coordinates; nil if they are not Rank numbers.
func (f *Form) numbers(coords []byte) []int64 {
	out := make([]int64, 0, f.Rank)
	for range f.Rank {
		n, rest, ok := splitCoord(coords)
		if !ok {
			return nil
		}
		out = append(out, int64(n))
		coords = rest
	}
	if len(coords) > 0 {
		return nil
	}
	return out
}

// A formCut stands for the keys of a form that begin with a prefix: complete numbers, then the first digits of the next number.
type formCut struct {
	lead   []byte // encoded complete numbers
	dim    int    // how many they are
	digits string // of number dim; "" if it may be any
}

// cut analyses a key prefix. ok is false if no key of the form begins with it.
func (f *Form) cut(prefix string) (c formCut, ok bool) {
	if len(prefix) <= len(f.Prefix) {
		return c, strings.HasPrefix(f.Prefix, prefix) && f.Rank > 0
	}
	if f.Rank == 0 || !strings.HasPrefix(prefix, f.Prefix) {
		return c, false
	}
	rest := prefix[len(f.Prefix):]
	for {
		n, r, ok := splitNumber(rest)
		if !ok {
			return c, false
		}
		if r == "" {
			c.digits = rest
			return c, true
		}
		if r[0] != f.Sep || c.dim == f.Rank-1 {
			return c, false
		}
		c.lead, c.dim, rest = appendCoord(c.lead, n), c.dim+1, r[1:]
		if rest == "" {
			return c, true
		}
	}
}

// spans yields the ranges of encoded coordinates that a cut stands for, one
// for each number of digits: [from, to), to nil at the end of the map.
func (c *formCut) spans(yield func(from, to []byte) bool) {
	if c.digits == "" {
		yield(c.lead, keyAfter(c.lead))
		return
	}
	lo, _ := strconv.ParseUint(c.digits, 10, 64)
	hi := lo
	for k := len(c.digits); k <= maxDigits; k++ {
		from := appendCoord(clip(c.lead), lo)
		to := keyAfter(appendCoord(clip(c.lead), min(hi, maxCoord)))
		if !yield(from, to) || lo == 0 || lo > maxCoord/10 {
			return
		}
		lo, hi = lo*10, saturate10(hi)
	}
}

// saturate10 is 10n+9, or the greatest number if that is too large.
func saturate10(n uint64) uint64 {
	if n > (math.MaxUint64-9)/10 {
		return math.MaxUint64
	}
	return n*10 + 9
}

// clip makes append copy.
func clip(b []byte) []byte { return b[:len(b):len(b)] }

// keyAfter returns the first byte string after all that begin with b, nil if
// there is none.
func keyAfter(b []byte) []byte {
	for i := len(b) - 1; i >= 0; i-- {
		if b[i] != 0xff {
			out := append([]byte(nil), b[:i+1]...)
			out[i]++
			return out
		}
	}
	return nil
}
