package object_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/codecs/builtin"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/zarr/dtype"
)

// chain binds a v2 chain of one filter of objects.
func chain(t testing.TB, filter string, shape ...int) *codecs.Bound {
	t.Helper()
	c := must.Get(builtin.Registry().ParseV2(codecs.V2{Type: dtype.NewJSON(), Order: "C", Rank: len(shape), Filters: json.RawMessage(`[` + filter + `]`)}))(t)
	b := must.Get(c.Bind(codecs.Rep{Type: dtype.NewJSON(), Shape: shape, Max: 1 << 20}))(t)
	return b
}

// texts returns the elements of a decoded chunk.
func texts(t testing.TB, elems []byte, n int) []string {
	t.Helper()
	v := must.Get(dtype.OpenVariable(elems, n))(t)
	var list []string
	for i := range n {
		list = append(list, string(v.At(i)))
	}
	return list
}

func TestJSONForms(t *testing.T) {
	b2, b1 := chain(t, `{"id":"json2"}`, 2, 2), chain(t, `{"id":"json"}`, 2, 2)
	for _, c := range []struct {
		b            *codecs.Bound
		stored, want string
	}{
		{b2, `[1,2,3,4,"|O",[4]]`, `1 2 3 4`},
		{b2, ` [ [1, [2]] ,[ "x", {"a": NaN}],"|O",[2,2]] `, `1 [2] "x" {"a": NaN}`},
		{b2, `[[[1],[2],[3],[4]],"|O",[1,4,1]]`, `1 2 3 4`},
		{b1, `[1,2,3,4,"|O"]`, `1 2 3 4`},
		{b1, `[[1,2],[3,-Infinity],"|O"]`, `1 2 3 -Infinity`},
		{b2, `[1,2,3,4,"|O",[5]]`, ``},
		{b2, `[1,2,3,"|O",[4]]`, ``},
		{b2, `[[1,2],[3],"|O",[2,2]]`, ``},
		{b2, `[[1,2],3,"|O",[2,2]]`, ``},
		{b2, `[1,2,3,4,"|O",4]`, ``},
		{b2, `[1,2,3,4]`, ``},
		{b2, `[1,2,3,4,"|O",[4]`, ``},
		{b2, `[1,2,3,4,"|O",[4]]]`, ``},
		{b2, `[1,2,3,,"|O",[4]]`, ``},
		{b2, `[1,2,3,tru,"|O",[4]]`, ``},
		{b2, `[1,2,3,"\x`, ``},
		{b2, `{}`, ``},
		{b2, "[1,2,3,\"\xff\",\"|O\",[4]]", ``},
		{b2, `[` + strings.Repeat("1,", 5000) + `"|O",[5000]]`, ``},
		{b2, strings.Repeat("[", 100_000), ``},
	} {
		got, err := c.b.Decode(nil, []byte(c.stored))
		if c.want == "" {
			if !errors.Is(err, codecs.ErrCorrupt) {
				t.Errorf("%.60s: %v", c.stored, err)
			}
			continue
		}
		if err != nil || strings.Join(texts(t, got, 4), " ") != c.want {
			t.Errorf("%s: %q (%v)", c.stored, got, err)
		}
	}
}

func TestMsgpackForms(t *testing.T) {
	b := chain(t, `{"id":"msgpack2"}`, 2)
	head := func(n int) []byte { return []byte{0x90 | byte(n)} }
	chunk := func(items ...[]byte) []byte {
		out := head(len(items) + 2)
		for _, i := range items {
			out = append(out, i...)
		}
		return append(out, 0xa2, '|', 'O', 0x91, byte(len(items)))
	}
	for _, c := range []struct {
		item []byte
		want string
	}{
		{[]byte{0xc0}, `null`}, {[]byte{0xc2}, `false`}, {[]byte{0x7f}, `127`}, {[]byte{0xe0}, `-32`}, {[]byte{0xcc, 200}, `200`},
		{[]byte{0xcd, 1, 0}, `256`}, {[]byte{0xd0, 0x80}, `-128`}, {[]byte{0xd1, 0x80, 0}, `-32768`}, {[]byte{0xd3, 0x80, 0, 0, 0, 0, 0, 0, 0}, `-9223372036854775808`},
		{[]byte{0xcf, 255, 255, 255, 255, 255, 255, 255, 255}, `18446744073709551615`},
		{[]byte{0xca, 0x3f, 0x80, 0, 0}, `1.0`}, {[]byte{0xcb, 0x7f, 0xf0, 0, 0, 0, 0, 0, 0}, `Infinity`}, {[]byte{0xcb, 0x7f, 0xf8, 0, 0, 0, 0, 0, 0}, `NaN`},
		{[]byte{0xa1, '"'}, `"\""`}, {[]byte{0xd9, 1, 'x'}, `"x"`}, {[]byte{0xc4, 2, 1, 2}, `"base64:AQI="`}, {[]byte{0xd4, 5, 6}, `"base64:BQY="`},
		{[]byte{0x92, 1, 0x90}, `[1,[]]`}, {[]byte{0x82, 0xa1, 'a', 1, 2, 0xc3}, `{"a":1,"2":true}`}, {[]byte{0xdc, 0, 1, 5}, `[5]`},
	} {
		got, err := b.Decode(nil, chunk(c.item, []byte{1}))
		if err != nil || texts(t, got, 2)[0] != c.want {
			t.Errorf("% x: %q (%v), want %s", c.item, got, err, c.want)
		}
	}
	for name, bad := range map[string][]byte{
		"nothing": {}, "no array": {1}, "too few": chunk([]byte{1}), "too many": chunk([]byte{1}, []byte{1}, []byte{1}),
		"no shape": {0x92, 1, 1}, "wrong shape": {0x94, 1, 1, 0xa1, 'O', 0x91, 3}, "behind": append(chunk([]byte{1}, []byte{1}), 0),
		"a length that lies": {0xdd, 255, 255, 255, 255}, "text that is cut off": {0x94, 0xdb, 255, 255, 255, 255, 1},
		"no UTF-8": chunk([]byte{0xa1, 0xff}, []byte{1}), "reserved": chunk([]byte{0xc1}, []byte{1}),
		"deep":             append(head(4), bytes.Repeat([]byte{0x91}, 100_000)...),
		"members that lie": chunk([]byte{0xdf, 0, 255, 255, 255}, []byte{1}),
	} {
		if _, err := b.Decode(nil, bad); !errors.Is(err, codecs.ErrCorrupt) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
