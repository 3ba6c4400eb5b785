package object

import (
	"bytes"
	"encoding/base64"
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/internal/msgpack"
	"github.com/zarrdb/zarrdb/zarr/dtype"
)

// unpacker reads MessagePack and writes JSON.
type unpacker struct {
	msgpack.Reader
	out   []byte
	limit int64 // of out
}

func (u *unpacker) bad(what string) error {
	return codecs.Corruptf("msgpack2", "%s, at byte %d", what, u.Pos)
}

// arrayHead reads the head of an array and returns its length.
func (u *unpacker) arrayHead() (n int, ok bool) {
	it := u.Head()
	// Every member has at least a byte, so that a larger number is wrong.
	return int(min(it.N, math.MaxInt32)), it.Kind == msgpack.List && it.N <= uint64(len(u.Src)-u.Pos)
}

// ints reads an array of small numbers.
func (u *unpacker) ints() ([]int, bool) {
	n, ok := u.arrayHead()
	if !ok || n > codecs.MaxRank {
		return nil, false
	}
	list := make([]int, n)
	for i := range list {
		it := u.Head()
		if it.Kind != msgpack.Uint || it.N > math.MaxInt32 {
			return nil, false
		}
		list[i] = int(it.N)
	}
	return list, true
}

// skip passes over an item.
func (u *unpacker) skip(depth int) error {
	if depth > maxJSONDepth {
		return u.bad("nested too deep")
	}
	it := u.Head()
	members := it.N
	switch it.Kind {
	case msgpack.Bad:
		return u.bad("no item")
	case msgpack.Text, msgpack.Bytes:
		if u.Next(it.N) == nil && it.N > 0 {
			return u.bad("cut off")
		}
		return nil
	case msgpack.Map:
		members *= 2
	case msgpack.List:
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
	switch it := u.Head(); it.Kind {
	case msgpack.Nil:
		u.out = append(u.out, "null"...)
	case msgpack.False:
		u.out = append(u.out, "false"...)
	case msgpack.True:
		u.out = append(u.out, "true"...)
	case msgpack.Uint:
		u.out = strconv.AppendUint(u.out, it.N, 10)
	case msgpack.Int:
		u.out = strconv.AppendInt(u.out, int64(it.N), 10)
	case msgpack.Float:
		u.float(it.Float)
	case msgpack.Text:
		b := u.Next(it.N)
		if b == nil && it.N > 0 || !utf8.Valid(b) {
			return u.bad("text that is cut off or not UTF-8")
		}
		u.out = dtype.AppendString(u.out, string(b))
	case msgpack.Bytes:
		b := u.Next(it.N)
		if b == nil && it.N > 0 {
			return u.bad("bytes that are cut off")
		}
		u.out = append(base64.StdEncoding.AppendEncode(append(u.out, `"base64:`...), b), '"')
	case msgpack.List:
		return u.members('[', it.N, depth)
	case msgpack.Map:
		return u.members('{', it.N, depth)
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
	if n > uint64(len(u.Src)-u.Pos) {
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
