package object

import (
	"bytes"
	"encoding/base64"
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/zarr/dtype"
)

// unpacker reads MessagePack and writes JSON.
type unpacker struct {
	src   []byte
	pos   int
	out   []byte
	limit int64 // of out
}

func (u *unpacker) bad(what string) error {
	return codecs.Corruptf("msgpack2", "%s, at byte %d", what, u.pos)
}

// next returns the next n bytes, or nil if fewer are left.
func (u *unpacker) next(n uint64) []byte {
	if n > uint64(len(u.src)-u.pos) {
		return nil
	}
	b := u.src[u.pos : u.pos+int(n) : u.pos+int(n)]
	u.pos += int(n)
	return b
}

// number returns the next n bytes as a number.
func (u *unpacker) number(n int) (v uint64, ok bool) {
	b := u.next(uint64(n))
	for _, c := range b {
		v = v<<8 | uint64(c)
	}
	return v, b != nil
}

// item is the head of the next value.
type item struct {
	kind itemKind
	n    uint64 // length of text, bytes and ext; members; an integer as it is
	f    float64
}

type itemKind uint8

const (
	itemBad itemKind = iota
	itemNil
	itemFalse
	itemTrue
	itemUint
	itemInt
	itemFloat
	itemText
	itemBytes
	itemList
	itemMap
)

// head reads the head of an item.
func (u *unpacker) head() item {
	b := u.next(1)
	if b == nil {
		return item{}
	}
	sized := func(k itemKind, n int) item {
		v, ok := u.number(n)
		if !ok {
			return item{}
		}
		return item{kind: k, n: v}
	}
	switch c := b[0]; {
	case c < 0x80:
		return item{kind: itemUint, n: uint64(c)}
	case c < 0x90:
		return item{kind: itemMap, n: uint64(c & 15)}
	case c < 0xa0:
		return item{kind: itemList, n: uint64(c & 15)}
	case c < 0xc0:
		return item{kind: itemText, n: uint64(c & 31)}
	case c >= 0xe0:
		return item{kind: itemInt, n: uint64(int64(int8(c)))}
	case c == 0xc0:
		return item{kind: itemNil}
	case c == 0xc2:
		return item{kind: itemFalse}
	case c == 0xc3:
		return item{kind: itemTrue}
	case c >= 0xc4 && c <= 0xc6:
		return sized(itemBytes, 1<<(c-0xc4))
	case c >= 0xc7 && c <= 0xc9: // ext: a type, which is read as bytes too
		it := sized(itemBytes, 1<<(c-0xc7))
		it.n++
		return it
	case c >= 0xd4 && c <= 0xd8:
		return item{kind: itemBytes, n: 1<<(c-0xd4) + 1}
	case c == 0xca:
		it := sized(itemFloat, 4)
		it.f = float64(math.Float32frombits(uint32(it.n)))
		return it
	case c == 0xcb:
		it := sized(itemFloat, 8)
		it.f = math.Float64frombits(it.n)
		return it
	case c >= 0xcc && c <= 0xcf:
		return sized(itemUint, 1<<(c-0xcc))
	case c >= 0xd0 && c <= 0xd3:
		n := 1 << (c - 0xd0)
		it := sized(itemInt, n)
		it.n = uint64(int64(it.n<<(64-8*n)) >> (64 - 8*n))
		return it
	case c >= 0xd9 && c <= 0xdb:
		return sized(itemText, 1<<(c-0xd9))
	case c == 0xdc || c == 0xdd:
		return sized(itemList, 2<<(c-0xdc))
	case c == 0xde || c == 0xdf:
		return sized(itemMap, 2<<(c-0xde))
	}
	return item{}
}

// arrayHead reads the head of an array and returns its length.
func (u *unpacker) arrayHead() (n int, ok bool) {
	it := u.head()
	// Every member has at least a byte, so that a larger number is wrong.
	return int(min(it.n, math.MaxInt32)), it.kind == itemList && it.n <= uint64(len(u.src)-u.pos)
}

// ints reads an array of small numbers.
func (u *unpacker) ints() ([]int, bool) {
	n, ok := u.arrayHead()
	if !ok || n > codecs.MaxRank {
		return nil, false
	}
	list := make([]int, n)
	for i := range list {
		it := u.head()
		if it.kind != itemUint || it.n > math.MaxInt32 {
			return nil, false
		}
		list[i] = int(it.n)
	}
	return list, true
}

// skip passes over an item.
func (u *unpacker) skip(depth int) error {
	if depth > maxJSONDepth {
		return u.bad("nested too deep")
	}
	it := u.head()
	members := it.n
	switch it.kind {
	case itemBad:
		return u.bad("no item")
	case itemText, itemBytes:
		if u.next(it.n) == nil && it.n > 0 {
			return u.bad("cut off")
		}
		return nil
	case itemMap:
		members *= 2
	case itemList:
	default:
		return nil
	}
	for range members {
		if err := u.skip(depth + 1); err != nil {
			return err
		}
	}
	return nil
}

// value reads an item and appends it to out.
func (u *unpacker) value(depth int) error {
	if depth > maxJSONDepth {
		return u.bad("nested too deep")
	}
	if int64(len(u.out)) > u.limit {
		return u.bad("more bytes than there may be")
	}
	switch it := u.head(); it.kind {
	case itemNil:
		u.out = append(u.out, "null"...)
	case itemFalse:
		u.out = append(u.out, "false"...)
	case itemTrue:
		u.out = append(u.out, "true"...)
	case itemUint:
		u.out = strconv.AppendUint(u.out, it.n, 10)
	case itemInt:
		u.out = strconv.AppendInt(u.out, int64(it.n), 10)
	case itemFloat:
		u.float(it.f)
	case itemText:
		b := u.next(it.n)
		if b == nil && it.n > 0 || !utf8.Valid(b) {
			return u.bad("text that is cut off or not UTF-8")
		}
		u.out = dtype.AppendString(u.out, string(b))
	case itemBytes:
		b := u.next(it.n)
		if b == nil && it.n > 0 {
			return u.bad("bytes that are cut off")
		}
		u.out = append(base64.StdEncoding.AppendEncode(append(u.out, `"base64:`...), b), '"')
	case itemList:
		return u.members('[', it.n, depth)
	case itemMap:
		return u.members('{', it.n, depth)
	default:
		return u.bad("no item")
	}
	return nil
}

// float appends a float as Python's json module does.
func (u *unpacker) float(v float64) {
	switch {
	case math.IsNaN(v):
		u.out = append(u.out, "NaN"...)
	case math.IsInf(v, 1):
		u.out = append(u.out, "Infinity"...)
	case math.IsInf(v, -1):
		u.out = append(u.out, "-Infinity"...)
	default:
		n := len(u.out)
		u.out = strconv.AppendFloat(u.out, v, 'g', -1, 64)
		// A whole number stays a float.
		if !bytes.ContainsAny(u.out[n:], ".e") {
			u.out = append(u.out, ".0"...)
		}
	}
}

// members appends the members of an array or a map.
func (u *unpacker) members(open byte, n uint64, depth int) error {
	if n > uint64(len(u.src)-u.pos) {
		return u.bad("more members than bytes")
	}
	u.out = append(u.out, open)
	for i := range n {
		if i > 0 {
			u.out = append(u.out, ',')
		}
		if open == '{' {
			// JSON names are texts.
			start := len(u.out)
			if err := u.value(depth + 1); err != nil {
				return err
			}
			if u.out[start] != '"' {
				name := string(u.out[start:])
				u.out = dtype.AppendString(u.out[:start], name)
			}
			u.out = append(u.out, ':')
		}
		if err := u.value(depth + 1); err != nil {
			return err
		}
	}
	u.out = append(u.out, open+2)
	return nil
}
