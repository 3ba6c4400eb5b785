package formats

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/zarr/dtype"
)

const (
	// slabBytes is the length of a part of an array, along its first dimension, from which
	// it is a chunk.
	slabBytes = 4 << 10
	// mostBytes bounds the chunks of an array that a file has in one piece.
	mostBytes = 4 << 20
)

// Join returns the path of a node in the group at path; "" is the root.
func Join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "/" + name
}

// Contiguous returns the shape of the chunks of an array that a file has in one piece, with
// elements of item bytes. Each lies in one piece too. They have one element along the first
// dimension, so that arrays of many files can be joined along it and parts be read, or more
// where that is less than 4 KiB; and at most 4 MiB.
func Contiguous(shape []int64, item int64) []int64 {
	chunk := make([]int64, len(shape))
	for d, n := range shape {
		chunk[d] = max(1, n)
	}
	for d := range chunk {
		row := bytesOf(chunk[d+1:], item)
		if d == 0 && row >= slabBytes {
			chunk[d] = 1
		}
		chunk[d] = fit(chunk[d], max(1, mostBytes/row))
		if row <= mostBytes {
			break
		}
	}
	return chunk
}

// Limited returns the shape of the chunks of one piece that is a chunk if it has no more
// than 4 MiB.
func Limited(shape []int64, item int64) []int64 {
	if bytesOf(shape, item) <= mostBytes {
		chunk := make([]int64, len(shape))
		for d, n := range shape {
			chunk[d] = max(1, n)
		}
		return chunk
	}
	return Contiguous(shape, item)
}

// bytesOf returns the bytes of an array, as many as there can be if there are more.
func bytesOf(shape []int64, item int64) int64 {
	n := item
	for _, s := range shape {
		if s > 1 && n > math.MaxInt64/s {
			return math.MaxInt64
		}
		n *= max(1, s)
	}
	return n
}

// fit returns how many of n elements are in a chunk of at most limit: as many in each, if there
// is such a number that is not much smaller.
func fit(n, limit int64) int64 {
	if n <= limit {
		return n
	}
	parts := (n-1)/limit + 1
	for p := parts; p <= 8*parts && p < parts+1<<16; p++ {
		if n%p == 0 {
			return n / p
		}
	}
	return limit
}

// Grid returns "chunk_grid" of a Zarr v3 document: a regular one, or where the last chunk of
// a dimension is cut at the border of the array, a rectilinear one.
func Grid(shape, chunk []int64) json.RawMessage {
	edges, whole := make([]any, len(shape)), true
	for d, n := range shape {
		edges[d] = Edges(n, chunk[d])
		whole = whole && n%chunk[d] == 0
	}
	if whole {
		return Named("regular", codecs.Object("chunk_shape", chunk))
	}
	return Named("rectilinear", codecs.Object("kind", "inline", "chunk_shapes", edges))
}

// Text decodes UTF-8. Bytes that are not UTF-8 become U+FFFD, in the pieces that Python replaces
// with errors="replace".
func Text(b []byte) string {
	if utf8.Valid(b) {
		return string(b)
	}
	out := make([]byte, 0, len(b)+8)
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		if r == utf8.RuneError && n == 1 {
			n = truncated(b)
		}
		out, b = utf8.AppendRune(out, r), b[n:]
	}
	return string(out)
}

// truncated returns how many bytes begin a character that does not go on.
func truncated(b []byte) int {
	lo, hi, more := byte(0x80), byte(0xbf), 0
	switch c := b[0]; {
	case c >= 0xc2 && c <= 0xdf:
		more = 1
	case c >= 0xe0 && c <= 0xef:
		more = 2
	case c >= 0xf0 && c <= 0xf4:
		more = 3
	}
	switch b[0] {
	case 0xe0:
		lo = 0xa0
	case 0xed:
		hi = 0x9f
	case 0xf0:
		lo = 0x90
	case 0xf4:
		hi = 0x8f
	}
	n := 1
	for n <= more && n < len(b) && b[n] >= lo && b[n] <= hi {
		n, lo, hi = n+1, 0x80, 0xbf
	}
	return n
}

// Float returns a number as JSON, exact as a float64; "NaN", "Infinity" and "-Infinity" are
// texts.
func Float(f float64) json.RawMessage {
	switch {
	case math.IsNaN(f):
		return json.RawMessage(`"NaN"`)
	case math.IsInf(f, 0):
		return json.RawMessage(map[bool]string{true: `"Infinity"`, false: `"-Infinity"`}[f > 0])
	}
	b := strconv.AppendFloat(nil, f, 'g', -1, 64)
	for _, c := range b {
		if c == '.' || c == 'e' {
			return b
		}
	}
	return append(b, ".0"...)
}

// Number returns an element, in memory layout, as JSON: an integer, or as [Float] the float64
// that equals a float.
func Number(t dtype.Type, b []byte) (json.RawMessage, error) {
	if t.Kind() != dtype.Float {
		return t.AppendJSON(nil, b)
	}
	var word [8]byte
	copy(word[:], b)
	return Float(t.FloatValue(binary.LittleEndian.Uint64(word[:]))), nil
}
