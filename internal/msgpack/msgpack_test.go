package msgpack

import (
	"math"
	"strings"
	"testing"
)

// TestItems reads what is written, in the shortest form of each range, and nothing
// of an item that is cut off.
func TestItems(t *testing.T) {
	type want struct {
		b    []byte
		head int // bytes of the head
		Item
	}
	var list []want
	for n, size := range map[int64]int{0: 1, 127: 1, 128: 2, 255: 2, 256: 3, 65535: 3, 65536: 5, math.MaxUint32: 5, math.MaxInt64: 9} {
		list = append(list, want{AppendInt(nil, n), size, Item{Kind: Uint, N: uint64(n)}})
	}
	for n, size := range map[int64]int{-1: 1, -32: 1, -33: 2, -128: 2, -129: 3, -32768: 3, -32769: 5, math.MinInt32: 5, math.MinInt64: 9} {
		list = append(list, want{AppendInt(nil, n), size, Item{Kind: Int, N: uint64(n)}})
	}
	list = append(list, want{AppendUint(nil, math.MaxUint64), 9, Item{Kind: Uint, N: math.MaxUint64}})
	for n, size := range map[int]int{0: 1, 31: 1, 32: 2, 255: 2, 256: 3, 65535: 3, 65536: 5} {
		list = append(list, want{AppendText(nil, strings.Repeat("x", n)), size, Item{Kind: Text, N: uint64(n)}})
	}
	for n, size := range map[int]int{0: 1, 15: 1, 16: 3, 65535: 3, 65536: 5} {
		list = append(list, want{AppendList(nil, n), size, Item{Kind: List, N: uint64(n)}}, want{AppendMap(nil, n), size, Item{Kind: Map, N: uint64(n)}})
	}
	for code, item := range map[string]Item{
		"\xc0": {Kind: Nil}, "\xc2": {Kind: False}, "\xc3": {Kind: True}, "\xc4\x07": {Kind: Bytes, N: 7}, "\xc5\x01\x02": {Kind: Bytes, N: 258},
		"\xc7\x07": {Kind: Bytes, N: 8}, "\xd4": {Kind: Bytes, N: 2}, "\xd8": {Kind: Bytes, N: 17},
		"\xca\x3f\xc0\x00\x00": {Kind: Float, N: 0x3fc00000, Float: 1.5}, "\xcb\x3f\xf8\x00\x00\x00\x00\x00\x00": {Kind: Float, N: 0x3ff8 << 48, Float: 1.5},
		"\xc1": {}, "": {},
	} {
		list = append(list, want{[]byte(code), len(code), item})
	}
	for _, w := range list {
		r := Reader{Src: w.b}
		if got := r.Head(); got != w.Item || r.Pos != w.head {
			t.Errorf("%.20x: %+v after %d bytes, want %+v after %d", w.b, got, r.Pos, w.Item, w.head)
		}
		for n := range w.head {
			r := Reader{Src: w.b[:n]}
			if got := r.Head(); got.Kind != Bad {
				t.Errorf("%d bytes of %x: %+v", n, w.b[:w.head], got)
			}
		}
	}
	r := Reader{Src: []byte("abc"), Pos: 1}
	if r.Next(3) != nil || string(r.Next(2)) != "bc" || r.Next(1) != nil || r.Next(math.MaxUint64) != nil {
		t.Error("bytes behind the end are read, or those before it are not")
	}
}
