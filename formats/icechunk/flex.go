package icechunk

import (
	"bytes"
	"encoding/binary"
	"math"

	"github.com/zarrdb/zarrdb/formats"
)

// flex is a value in a flexbuffer, the form that version 2 keeps settings and the
// metadata of snapshots in. Values carry their type; widths of numbers and offsets are
// 1, 2, 4 or 8 bytes. As in [buffer], the first offset that leads out becomes an error
// and all later values are empty.
type flex struct {
	f     *buffer
	pos   int  // of the value, or of the offset that leads to it
	width int  // of that
	typ   byte // type of the value, and width of the object that it points to
}

// Types of flexbuffer values that are looked into.
const (
	flexNull, flexInt, flexUint, flexFloat = 0, 1, 2, 3
	flexKey, flexString                    = 4, 5
	flexIndirectInt, flexIndirectUint      = 6, 7
	flexIndirectFloat                      = 8
	flexMap, flexVector                    = 9, 10
	flexBool                               = 26
)

// parseFlex returns the value that a flexbuffer is: it stands at the end, before its
// type and its width.
func parseFlex(b []byte) (flex, *buffer) {
	f := &buffer{b: b}
	if len(b) < 3 {
		f.fail("a flexbuffer of %d bytes", len(b))
		return flex{f: f}, f
	}
	width := int(b[len(b)-1])
	v := flex{f, len(b) - 2 - width, width, b[len(b)-2]}
	if !v.fits() {
		return flex{f: f}, f
	}
	return v, f
}

// fits makes sure that the value is one of the buffer.
func (v flex) fits() bool {
	if v.width != 1 && v.width != 2 && v.width != 4 && v.width != 8 {
		v.f.fail("a flexbuffer with numbers of %d bytes", v.width)
		return false
	}
	return v.f.span(v.pos, v.width)
}

func (v flex) kind() byte { return v.typ >> 2 }

// child is the width of the object that the value points to.
func (v flex) child() int { return 1 << (v.typ & 3) }

// uint reads the unsigned number of so many bytes at a place.
func (f *buffer) uint(pos, width int) uint64 {
	if !f.span(pos, width) {
		return 0
	}
	switch width {
	case 1:
		return uint64(f.b[pos])
	case 2:
		return uint64(binary.LittleEndian.Uint16(f.b[pos:]))
	case 4:
		return uint64(f.u32(pos))
	}
	return binary.LittleEndian.Uint64(f.b[pos:])
}

// back follows an offset, which leads back, and returns -1 if it leads out.
func (f *buffer) back(pos, width int) int {
	off := f.uint(pos, width)
	if off > uint64(pos) {
		f.fail("an offset leads out of the file")
	}
	if f.err != nil {
		return -1
	}
	return pos - int(off)
}

// members yields the values of a map with their keys, until fn returns false.
func (v flex) members(fn func(key string, value flex) bool) {
	if v.f.err != nil || v.kind() != flexMap {
		return
	}
	at, w := v.f.back(v.pos, v.width), v.child()
	if at < 3*w {
		v.f.fail("a map without keys")
		return
	}
	n := v.f.uint(at-w, w)
	keys, keyWidth := v.f.back(at-3*w, w), int(v.f.uint(at-2*w, w))
	if keys < 0 || n > uint64(len(v.f.b)) || !v.f.span(at, int(n)*(w+1)) || !(flex{v.f, keys, keyWidth, 0}).fits() {
		v.f.fail("a map is longer than the file")
		return
	}
	for i := range int(n) {
		if !v.f.span(keys+i*keyWidth, keyWidth) {
			return
		}
		key := v.f.back(keys+i*keyWidth, keyWidth)
		if key < 0 {
			return
		}
		end := bytes.IndexByte(v.f.b[key:], 0)
		if end < 0 {
			v.f.fail("a key without an end")
			return
		}
		if !fn(string(v.f.b[key:key+end]), flex{v.f, at + i*w, w, v.f.b[at+int(n)*w+i]}) {
			return
		}
	}
}

// get returns the member of a map, nothing if it has none.
func (v flex) get(key string) (found flex) {
	found = flex{f: v.f}
	v.members(func(k string, value flex) bool {
		if k == key {
			found = value
		}
		return k != key
	})
	return found
}

// text returns a string; ok is false for another type.
func (v flex) text() (s string, ok bool) {
	if v.f.err != nil || v.kind() != flexString {
		return "", false
	}
	at, w := v.f.back(v.pos, v.width), v.child()
	if at < w {
		v.f.fail("a string without a length")
		return "", false
	}
	n := v.f.uint(at-w, w)
	if n > uint64(len(v.f.b)) || !v.f.span(at, int(n)) {
		return "", false
	}
	return string(v.f.b[at : at+int(n)]), true
}

// scalar returns a string, number, bool or null, which is nil; ok is false for other types.
func (v flex) scalar() (x any, ok bool) {
	if v.f.err != nil {
		return nil, false
	}
	pos, width := v.pos, v.width
	switch v.kind() {
	case flexIndirectInt, flexIndirectUint, flexIndirectFloat:
		pos, width = v.f.back(pos, width), v.child()
		if pos < 0 {
			return nil, false
		}
	}
	switch v.kind() {
	case flexNull:
		return nil, true
	case flexString:
		return v.text()
	case flexBool:
		return v.f.uint(pos, width) != 0, true
	case flexInt, flexIndirectInt:
		shift := 64 - 8*width
		return int64(v.f.uint(pos, width)<<shift) >> shift, v.f.err == nil
	case flexUint, flexIndirectUint:
		return v.f.uint(pos, width), v.f.err == nil
	case flexFloat, flexIndirectFloat:
		switch width {
		case 4:
			return float64(math.Float32frombits(uint32(v.f.uint(pos, 4)))), v.f.err == nil
		case 8:
			return math.Float64frombits(v.f.uint(pos, 8)), v.f.err == nil
		}
	}
	return nil, false
}

// parseFlexConfig finds the virtual chunk containers in settings of version 2.
func parseFlexConfig(b []byte) (map[string]string, error) {
	found := map[string]string{}
	root, f := parseFlex(b)
	root.get("virtual_chunk_containers").members(func(_ string, c flex) bool {
		name, ok := c.get("name").text()
		if prefix, is := c.get("url_prefix").text(); ok && is {
			found[name] = prefix
		}
		return f.err == nil
	})
	if f.err != nil {
		return nil, formats.Invalid("the settings of the repository: %v", f.err)
	}
	return found, nil
}
