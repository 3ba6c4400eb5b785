package wire

import (
	"encoding/binary"
	"fmt"
)

// IDSize is the length of the identity of a value.
const IDSize = 20

// Stat names a key of a session.
//
//	view uint32, key
type Stat struct {
	View uint32
	Key  string
}

// Append appends the meta to dst.
func (s *Stat) Append(dst []byte) []byte {
	return append(binary.LittleEndian.AppendUint32(dst, s.View), s.Key...)
}

// ParseStat is the inverse of Append.
func ParseStat(b []byte) (Stat, error) {
	if len(b) < 4 {
		return Stat{}, badMeta("stat", b)
	}
	return Stat{View: binary.LittleEndian.Uint32(b), Key: string(b[4:])}, nil
}

// Expect is the condition of a write on the current value of its key.
type Expect uint8

const (
	ExpectAny    Expect = iota
	ExpectAbsent        // no value
	ExpectID            // the value with an identity
	numExpects
)

// Set stores the body under a key, or, with OpDelete, removes the key.
//
//	view uint32, expect uint8, 3 bytes of zero, id 20 bytes, key
type Set struct {
	View   uint32
	Expect Expect
	ID     [IDSize]byte // with ExpectID, else zero
	Key    string
}

const setSize = 8 + IDSize

// Append appends the meta to dst.
func (s *Set) Append(dst []byte) []byte {
	dst = binary.LittleEndian.AppendUint32(dst, s.View)
	dst = append(dst, byte(s.Expect), 0, 0, 0)
	dst = append(dst, s.ID[:]...)
	return append(dst, s.Key...)
}

// ParseSet is the inverse of Append.
func ParseSet(b []byte) (Set, error) {
	if len(b) < setSize || b[4] >= byte(numExpects) || b[5]|b[6]|b[7] != 0 {
		return Set{}, badMeta("set", b)
	}
	return Set{View: binary.LittleEndian.Uint32(b), Expect: Expect(b[4]), ID: [IDSize]byte(b[8:]), Key: string(b[setSize:])}, nil
}

// AppendInBlock appends the meta of a request whose body is the first n bytes of a block,
// where meta is the meta of the request with a body.
//
//	block uint32, n uint32, meta
func AppendInBlock(dst []byte, block, n uint32, meta []byte) []byte {
	dst = binary.LittleEndian.AppendUint32(dst, block)
	return append(binary.LittleEndian.AppendUint32(dst, n), meta...)
}

// ParseInBlock is the inverse of AppendInBlock.
func ParseInBlock(b []byte) (block, n uint32, meta []byte, err error) {
	if len(b) < 8 {
		return 0, 0, nil, badMeta("block", b)
	}
	return binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint32(b[4:]), b[8:], nil
}

func badMeta(of string, b []byte) error {
	return fmt.Errorf("%w: malformed meta of %d bytes in a %s", ErrProtocol, len(b), of)
}

// MaxPages is the most pages that one request may ask for.
const MaxPages = 64

// Pages asks for pages of the index by their names. The answer has the first ones, in this
// order: as many lengths of 4 bytes as pages in the body. The body of the request is empty,
// or with one name a key: the pages below the page on the way to the key may follow.
//
//	count uint8, names of 20 bytes each
type Pages struct{ Names [][IDSize]byte }

// Append appends the meta to dst.
func (p *Pages) Append(dst []byte) []byte {
	dst = append(dst, byte(len(p.Names)))
	for i := range p.Names {
		dst = append(dst, p.Names[i][:]...)
	}
	return dst
}

// ParsePages is the inverse of Append.
func ParsePages(b []byte) (p Pages, err error) {
	if len(b) == 0 || b[0] == 0 || b[0] > MaxPages || len(b) != 1+int(b[0])*IDSize {
		return p, badMeta("pages", b)
	}
	n := int(b[0])
	p.Names = make([][IDSize]byte, n)
	for i := range p.Names {
		p.Names[i] = [IDSize]byte(b[1+i*IDSize:])
	}
	return p, nil
}

// OwnPages is [Pages] for pages of a session too.
//
//	view uint32, then as Pages
type OwnPages struct {
	View  uint32
	Names [][IDSize]byte
}

// Append appends the meta to dst.
func (p *OwnPages) Append(dst []byte) []byte {
	pages := Pages{Names: p.Names}
	return pages.Append(binary.LittleEndian.AppendUint32(dst, p.View))
}

// ParseOwnPages is the inverse of Append.
func ParseOwnPages(b []byte) (p OwnPages, err error) {
	if len(b) < 4 {
		return p, badMeta("pages", b)
	}
	pages, err := ParsePages(b[4:])
	return OwnPages{View: binary.LittleEndian.Uint32(b), Names: pages.Names}, err
}

// Stage brings pages, which are in the body.
//
//	view uint32, the length of each page (4 bytes)
type Stage struct {
	View  uint32
	Sizes []byte // see PageSizes
}

// Append appends the meta to dst.
func (s *Stage) Append(dst []byte) []byte {
	return append(binary.LittleEndian.AppendUint32(dst, s.View), s.Sizes...)
}

// ParseStage is the inverse of Append. SplitPages cuts the body.
func ParseStage(b []byte) (Stage, error) {
	if len(b) < 4 {
		return Stage{}, badMeta("stage", b)
	}
	return Stage{View: binary.LittleEndian.Uint32(b), Sizes: b[4:]}, nil
}

// PageSizes returns the meta of the answer to [Pages]: the length of each page.
func PageSizes(pages [][]byte) []byte {
	b := make([]byte, 0, 4*len(pages))
	for _, p := range pages {
		b = binary.LittleEndian.AppendUint32(b, uint32(len(p)))
	}
	return b
}

// SplitPages cuts the body of the answer to [Pages]. The pages are parts of the body. The
// error is an [ErrProtocol] if lengths and body do not agree.
func SplitPages(meta, body []byte) (pages [][]byte, err error) {
	if len(meta)%4 != 0 || len(meta) > 4*MaxPages {
		return nil, badMeta("pages", meta)
	}
	for ; len(meta) > 0; meta = meta[4:] {
		n := binary.LittleEndian.Uint32(meta)
		if uint64(n) > uint64(len(body)) {
			return nil, badMeta("pages", meta)
		}
		pages, body = append(pages, body[:n:n]), body[n:]
	}
	if len(body) > 0 {
		return nil, badMeta("pages", meta)
	}
	return pages, nil
}

// AppendRecord appends a record of the index to a body: the length of the key as a uvarint,
// the key, the length of the value as a uvarint, the value.
func AppendRecord(dst, key, value []byte) []byte {
	dst = append(binary.AppendUvarint(dst, uint64(len(key))), key...)
	return append(binary.AppendUvarint(dst, uint64(len(value))), value...)
}

// SplitRecords calls fn with each record of a body. Keys and values are parts of the body. The
// error is an [ErrProtocol] if the body is malformed.
func SplitRecords(body []byte, fn func(key, value []byte)) error {
	part := func() (b []byte, ok bool) {
		n, size := binary.Uvarint(body)
		if size <= 0 || n > uint64(len(body)-size) {
			return nil, false
		}
		b, body = body[size:size+int(n)], body[size+int(n):]
		return b, true
	}
	for len(body) > 0 {
		key, ok := part()
		value, ok2 := part()
		if !ok || !ok2 {
			return badMeta("records", body)
		}
		fn(key, value)
	}
	return nil
}
