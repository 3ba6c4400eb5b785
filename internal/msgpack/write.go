package msgpack

import (
	"encoding/binary"
	"math"
)

// AppendList appends the head of a list of n items.
func AppendList(dst []byte, n int) []byte { return appendHead(dst, 0x90, 15, 0xdc, n) }

// AppendMap appends the head of a map of n pairs.
func AppendMap(dst []byte, n int) []byte { return appendHead(dst, 0x80, 15, 0xde, n) }

// AppendText appends a text.
func AppendText(dst []byte, s string) []byte {
	if len(s) > 31 && len(s) < 256 {
		dst = append(dst, 0xd9, byte(len(s)))
	} else {
		dst = appendHead(dst, 0xa0, 31, 0xda, len(s))
	}
	return append(dst, s...)
}

// appendHead appends the head of something of n parts: one byte up to small, else
// code and two bytes, or code+1 and four.
func appendHead(dst []byte, fix byte, small int, code byte, n int) []byte {
	switch {
	case n <= small:
		return append(dst, fix|byte(n))
	case n <= math.MaxUint16:
		return binary.BigEndian.AppendUint16(append(dst, code), uint16(n))
	}
	return binary.BigEndian.AppendUint32(append(dst, code+1), uint32(n))
}

// AppendInt appends an integer in the shortest form.
func AppendInt(dst []byte, v int64) []byte {
	be := binary.BigEndian
	switch {
	case v >= 0:
		return AppendUint(dst, uint64(v))
	case v >= -32:
		return append(dst, byte(v))
	case v >= math.MinInt8:
		return append(dst, 0xd0, byte(v))
	case v >= math.MinInt16:
		return be.AppendUint16(append(dst, 0xd1), uint16(v))
	case v >= math.MinInt32:
		return be.AppendUint32(append(dst, 0xd2), uint32(v))
	}
	return be.AppendUint64(append(dst, 0xd3), uint64(v))
}

// AppendUint is [AppendInt] of an integer that is not negative.
func AppendUint(dst []byte, v uint64) []byte {
	be := binary.BigEndian
	switch {
	case v < 128:
		return append(dst, byte(v))
	case v <= math.MaxUint8:
		return append(dst, 0xcc, byte(v))
	case v <= math.MaxUint16:
		return be.AppendUint16(append(dst, 0xcd), uint16(v))
	case v <= math.MaxUint32:
		return be.AppendUint32(append(dst, 0xce), uint32(v))
	}
	return be.AppendUint64(append(dst, 0xcf), v)
}
