package icechunk

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"unicode/utf8"
)

// Metadata of a snapshot: names with values, which are MessagePack in files of version
// 1 and flexbuffers in those of version 2. Strings, numbers and bools are read; others
// are left out, because nothing here gives them a meaning.

// authorName is the name of the metadata that an author is read from and written to.
const authorName = "author"

// parseMetadata returns the metadata that a vector of a flatbuffer has: strings as they
// are, others as JSON.
func parseMetadata(v vector, spec byte) map[string]string {
	if v.n == 0 {
		return nil
	}
	found := map[string]string{}
	for i := range v.n {
		t := v.table(i)
		name, value := t.needBytes(0, "the name of metadata"), t.needBytes(1, "the value of metadata")
		if v.f.err != nil {
			return nil
		}
		var x any
		ok := false
		if spec == spec1 {
			x, ok = parseMessage(value)
		} else {
			root, _ := parseFlex(value)
			x, ok = root.scalar()
		}
		if !ok || !utf8.Valid(name) {
			continue
		}
		if s, is := x.(string); is {
			found[string(name)] = s
		} else if b, err := json.Marshal(x); err == nil {
			found[string(name)] = string(b)
		}
	}
	return found
}

// parseMessage reads a scalar of MessagePack.
func parseMessage(b []byte) (x any, ok bool) {
	if len(b) == 0 {
		return nil, false
	}
	kind, b := b[0], b[1:]
	number := func(n int) uint64 { // big-endian
		if ok = len(b) >= n; !ok {
			return 0
		}
		var wide [8]byte
		copy(wide[8-n:], b[:n])
		b = b[n:]
		return binary.BigEndian.Uint64(wide[:])
	}
	text := func(n uint64) (any, bool) {
		if n > uint64(len(b)) || !utf8.Valid(b[:n]) {
			return nil, false
		}
		return string(b[:n]), true
	}
	switch {
	case kind < 0x80:
		return uint64(kind), true
	case kind >= 0xe0:
		return int64(int8(kind)), true
	case kind>>5 == 5: // 101xxxxx
		return text(uint64(kind & 31))
	}
	switch kind {
	case 0xc0:
		return nil, true
	case 0xc2, 0xc3:
		return kind == 0xc3, true
	case 0xca:
		x = float64(math.Float32frombits(uint32(number(4))))
	case 0xcb:
		x = math.Float64frombits(number(8))
	case 0xcc, 0xcd, 0xce, 0xcf:
		x = number(1 << (kind - 0xcc))
	case 0xd0, 0xd1, 0xd2, 0xd3:
		n := 1 << (kind - 0xd0)
		shift := 64 - 8*n
		x = int64(number(n)<<shift) >> shift
	case 0xd9, 0xda, 0xdb:
		if n := number(1 << (kind - 0xd9)); ok {
			return text(n)
		}
	default:
		return nil, false
	}
	return x, ok
}

// appendMessage writes a string as MessagePack.
func appendMessage(dst []byte, s string) []byte {
	switch n := len(s); {
	case n < 32:
		dst = append(dst, 0xa0|byte(n))
	case n < 1<<8:
		dst = append(dst, 0xd9, byte(n))
	case n < 1<<16:
		dst = binary.BigEndian.AppendUint16(append(dst, 0xda), uint16(n))
	default:
		dst = binary.BigEndian.AppendUint32(append(dst, 0xdb), uint32(n))
	}
	return append(dst, s...)
}
