package msgpack

import "math"

// Reader reads items from Src, from Pos on. Not safe for concurrent use.
type Reader struct {
	Src []byte
	Pos int
}

// Next returns the next n bytes, a part of Src, or nil if fewer are left.
func (r *Reader) Next(n uint64) []byte {
	if n > uint64(len(r.Src)-r.Pos) {
		return nil
	}
	b := r.Src[r.Pos : r.Pos+int(n) : r.Pos+int(n)]
	r.Pos += int(n)
	return b
}

// number returns the next n bytes as a number.
func (r *Reader) number(n int) (v uint64, ok bool) {
	b := r.Next(uint64(n))
	for _, c := range b {
		v = v<<8 | uint64(c)
	}
	return v, b != nil
}

// Item is the head of an item.
type Item struct {
	Kind  Kind
	N     uint64  // bytes of Text and Bytes, members of List and Map, an integer in two's complement
	Float float64 // of Float
}

// Kind is the kind of an item. An ext is read as Bytes that begin with its type.
type Kind uint8

const (
	Bad Kind = iota // cut off, or no head
	Nil
	False
	True
	Uint
	Int
	Float
	Text
	Bytes
	List
	Map
)

// Head reads the head of an item.
func (r *Reader) Head() Item {
	b := r.Next(1)
	if b == nil {
		return Item{}
	}
	sized := func(k Kind, n int) Item {
		v, ok := r.number(n)
		if !ok {
			return Item{}
		}
		return Item{Kind: k, N: v}
	}
	switch c := b[0]; {
	case c < 0x80:
		return Item{Kind: Uint, N: uint64(c)}
	case c < 0x90:
		return Item{Kind: Map, N: uint64(c & 15)}
	case c < 0xa0:
		return Item{Kind: List, N: uint64(c & 15)}
	case c < 0xc0:
		return Item{Kind: Text, N: uint64(c & 31)}
	case c >= 0xe0:
		return Item{Kind: Int, N: uint64(int64(int8(c)))}
	case c == 0xc0:
		return Item{Kind: Nil}
	case c == 0xc2:
		return Item{Kind: False}
	case c == 0xc3:
		return Item{Kind: True}
	case c >= 0xc4 && c <= 0xc6:
		return sized(Bytes, 1<<(c-0xc4))
	case c >= 0xc7 && c <= 0xc9: // ext: a type, which is read as bytes too
		it := sized(Bytes, 1<<(c-0xc7))
		it.N++
		return it
	case c >= 0xd4 && c <= 0xd8:
		return Item{Kind: Bytes, N: 1<<(c-0xd4) + 1}
	case c == 0xca:
		it := sized(Float, 4)
		it.Float = float64(math.Float32frombits(uint32(it.N)))
		return it
	case c == 0xcb:
		it := sized(Float, 8)
		it.Float = math.Float64frombits(it.N)
		return it
	case c >= 0xcc && c <= 0xcf:
		return sized(Uint, 1<<(c-0xcc))
	case c >= 0xd0 && c <= 0xd3:
		n := 1 << (c - 0xd0)
		it := sized(Int, n)
		it.N = uint64(int64(it.N<<(64-8*n)) >> (64 - 8*n))
		return it
	case c >= 0xd9 && c <= 0xdb:
		return sized(Text, 1<<(c-0xd9))
	case c == 0xdc || c == 0xdd:
		return sized(List, 2<<(c-0xdc))
	case c == 0xde || c == 0xdf:
		return sized(Map, 2<<(c-0xde))
	}
	return Item{}
}
