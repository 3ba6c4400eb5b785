package tree

import (
	"encoding/binary"
	"fmt"

	"github.com/zarrdb/zarrdb/kv/digest"
)

// Name is the name of a page: the hash of its stored bytes.
type Name = digest.Sum

// Flags are the kinds of values anywhere below a root, child maps included.
type Flags uint8

const (
	HasNative  Flags = 1 << iota // payloads in packs
	HasVirtual                   // references elsewhere
	HasChild                     // other maps

	allFlags = HasNative | HasVirtual | HasChild
)

// maxHeight is enough for 2^64 entries: interior pages have at least two
// children.
const maxHeight = 64

// Root is a map: its root page and a summary of the pages below. Roots are
// compared with ==. The zero Root is the empty map; equal content has equal
// roots.
type Root struct {
	Name    Name   // of the root page
	Height  uint8  // interior pages above each leaf
	Flags   Flags  // kinds of values below, child maps included
	Size    uint32 // stored bytes of the root page itself
	Entries uint64 // entries of this map; a child map counts as one
	Bytes   uint64 // payload bytes below modulo 2^64, child maps included
}

// Empty reports whether r is the empty map.
func (r Root) Empty() bool { return r == Root{} }

// valid reports whether r can be a root at all.
func (r Root) valid() bool {
	if r.Empty() {
		return true
	}
	return r.Height <= maxHeight && r.Flags&^allFlags == 0 && r.Size >= minPageSize && r.Size <= maxPageSize && r.Entries > 0
}

// AppendBinary appends the binary form of r to dst: one zero byte for the empty
// map, else
//
//	height+1 (1 byte) · flags (1) · name (20) · size, entries, bytes (uvarints)
func (r Root) AppendBinary(dst []byte) []byte {
	if r.Empty() {
		return append(dst, 0)
	}
	dst = append(dst, r.Height+1, byte(r.Flags))
	dst = append(dst, r.Name[:]...)
	dst = binary.AppendUvarint(dst, uint64(r.Size))
	dst = binary.AppendUvarint(dst, r.Entries)
	return binary.AppendUvarint(dst, r.Bytes)
}

// DecodeRoot reads the output of AppendBinary from the front of b and returns
// the rest. It accepts no other form.
func DecodeRoot(b []byte) (r Root, rest []byte, err error) {
	d := decoder{b: b}
	if h := d.byte(); h > 0 {
		r.Height = h - 1
		r.Flags = Flags(d.byte())
		copy(r.Name[:], d.bytes(digest.Size))
		size := d.uvarint()
		r.Size = uint32(min(size, maxPageSize+1))
		r.Entries = d.uvarint()
		r.Bytes = d.uvarint()
		if d.err == "" && (r.Empty() || !r.valid()) {
			d.fail("no such root")
		}
	}
	if d.err != "" {
		return Root{}, nil, fmt.Errorf("%w: root: %s", ErrCorrupt, d.err)
	}
	return r, b[d.pos:], nil
}
