package wire

import (
	"encoding/binary"
	"fmt"
)

// IDSize is the length of the identity of a value.
const IDSize = 20

// RangeKind is the meaning of the two numbers of a range.
type RangeKind uint8

const (
	RangeAll    RangeKind = iota // the whole value
	RangeFrom                    // from byte Off on
	RangeSpan                    // N bytes from byte Off on
	RangeLast                    // the last N bytes
	RangeAtMost                  // the whole value, unless it is longer than N
	numRanges
)

// Range selects bytes of a value.
type Range struct {
	Kind   RangeKind
	Off, N int64
}

// Get asks for the bytes of a key.
//
//	view uint32, kind uint8, 3 bytes of zero, off int64, n int64, key
type Get struct {
	View  uint32
	Range Range
	Key   string
}

const getSize = 24

// Append appends the meta to dst.
func (g *Get) Append(dst []byte) []byte {
	dst = binary.LittleEndian.AppendUint32(dst, g.View)
	dst = append(dst, byte(g.Range.Kind), 0, 0, 0)
	dst = binary.LittleEndian.AppendUint64(dst, uint64(g.Range.Off))
	dst = binary.LittleEndian.AppendUint64(dst, uint64(g.Range.N))
	return append(dst, g.Key...)
}

// ParseGet is the inverse of Append.
func ParseGet(b []byte) (Get, error) {
	if len(b) < getSize || b[4] >= byte(numRanges) || b[5]|b[6]|b[7] != 0 {
		return Get{}, badMeta("get", b)
	}
	return Get{
		View: binary.LittleEndian.Uint32(b),
		Range: Range{
			Kind: RangeKind(b[4]),
			Off:  int64(binary.LittleEndian.Uint64(b[8:])), N: int64(binary.LittleEndian.Uint64(b[16:])),
		},
		Key: string(b[getSize:]),
	}, nil
}

// Stat asks for the size and the identity of a value. With OpDeletePrefix it
// asks to remove all keys that begin with Key.
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

// List asks for a page of keys, or of the children of a prefix. Prefixes need not
// be UTF-8, so they are in no JSON.
//
//	view uint32, limit uint32, length of prefix uint32, flags uint8, 3 bytes of
//	zero, prefix, after
type List struct {
	View  uint32
	Limit uint32 // 0: the server chooses
	// Prefix is a string prefix of keys, or for children empty or with a slash at
	// the end.
	Prefix string
	// After leaves out names up to and including it. For children, AfterPrefix
	// (flag 1) also leaves out the prefix of that name.
	After       string
	AfterPrefix bool
}

const listSize = 16

// Append appends the meta to dst.
func (l *List) Append(dst []byte) []byte {
	dst = binary.LittleEndian.AppendUint32(dst, l.View)
	dst = binary.LittleEndian.AppendUint32(dst, l.Limit)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(l.Prefix)))
	flag := byte(0)
	if l.AfterPrefix {
		flag = 1
	}
	dst = append(dst, flag, 0, 0, 0)
	return append(append(dst, l.Prefix...), l.After...)
}

// ParseList is the inverse of Append.
func ParseList(b []byte) (List, error) {
	if len(b) < listSize || b[12] > 1 || b[13]|b[14]|b[15] != 0 {
		return List{}, badMeta("list", b)
	}
	n, rest := uint64(binary.LittleEndian.Uint32(b[8:])), b[listSize:]
	if n > uint64(len(rest)) {
		return List{}, badMeta("list", b)
	}
	return List{
		View: binary.LittleEndian.Uint32(b), Limit: binary.LittleEndian.Uint32(b[4:]),
		Prefix: string(rest[:n]), After: string(rest[n:]), AfterPrefix: b[12] == 1,
	}, nil
}

// Page is the reply to List: each name in the body with a zero byte behind it.
// The meta is one byte: 1 if more names follow in a next page, else 0. A child
// that is a prefix has a slash at the end.
type Page struct {
	Names []string
	More  bool
}

// Frame returns the reply.
func (p *Page) Frame() *Frame {
	f := &Frame{Meta: []byte{0}}
	if p.More {
		f.Meta[0] = 1
	}
	for _, name := range p.Names {
		f.Body = append(append(f.Body, name...), 0)
	}
	return f
}

// Found is the reply to Get and Stat.
//
//	size uint64, id 20 bytes
type Found struct {
	Size int64        // of the whole value
	ID   [IDSize]byte // zero if the bytes may change
}

// Append appends the meta to dst.
func (f *Found) Append(dst []byte) []byte {
	dst = binary.LittleEndian.AppendUint64(dst, uint64(f.Size))
	return append(dst, f.ID[:]...)
}

// Place is the reply to Get and Stat with FlagPlace: the requested bytes are in
// a file. The descriptor of the file comes with the first reply that names it;
// the client closes it.
//
//	size uint64, id 20 bytes, file uint32, off uint64, n uint64
type Place struct {
	Found
	File   uint32 // a number unique to the connection
	Off, N int64
}

// Append appends the meta to dst.
func (p *Place) Append(dst []byte) []byte {
	dst = p.Found.Append(dst)
	dst = binary.LittleEndian.AppendUint32(dst, p.File)
	dst = binary.LittleEndian.AppendUint64(dst, uint64(p.Off))
	return binary.LittleEndian.AppendUint64(dst, uint64(p.N))
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
//	count uint8, names of 20 bytes each, database
type Pages struct {
	Names    [][IDSize]byte
	Database string
}

// Append appends the meta to dst.
func (p *Pages) Append(dst []byte) []byte {
	dst = append(dst, byte(len(p.Names)))
	for i := range p.Names {
		dst = append(dst, p.Names[i][:]...)
	}
	return append(dst, p.Database...)
}

// ParsePages is the inverse of Append.
func ParsePages(b []byte) (p Pages, err error) {
	if len(b) == 0 || b[0] == 0 || b[0] > MaxPages || len(b) < 1+int(b[0])*IDSize {
		return p, badMeta("pages", b)
	}
	n := int(b[0])
	p.Names = make([][IDSize]byte, n)
	for i := range p.Names {
		p.Names[i] = [IDSize]byte(b[1+i*IDSize:])
	}
	p.Database = string(b[1+n*IDSize:])
	return p, nil
}

// OwnPages is [Pages] for pages of a session too.
//
//	view uint32, then as Pages, without a database
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
	if err == nil && pages.Database != "" {
		err = badMeta("pages", b)
	}
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
