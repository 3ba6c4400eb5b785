package netcdf3

import (
	"context"
	"math"
	"strings"

	"github.com/zarrdb/zarrdb/formats"
	"github.com/zarrdb/zarrdb/zarr/dtype"
)

const (
	tagDimension = 10
	tagVariable  = 11
	tagAttribute = 12

	// maxHeader bounds the bytes of a header, maxName those of a name, and maxRank the
	// dimensions of a variable.
	maxHeader = 16 << 20
	maxName   = 1 << 10
	maxRank   = 64
)

// header has the dimensions, attributes and variables of a file.
//
//	list       tag 4 │ count │ items, or 0 │ 0
//	name       count │ bytes, padded to four
//	dimension  name │ length, 0 is the record dimension
//	attribute  name │ type 4 │ count │ values, padded to four
//	variable   name │ count │ numbers of dimensions │ attributes │ type 4 │ size │ offset
//
// Counts, lengths and sizes have 4 bytes, in CDF-5 8; offsets 4 bytes in CDF-1.
type header struct {
	stored int64 // number of records, -1 if it is not known
	dims   []dimension
	attrs  []attribute
	vars   []*variable
	end    int64
}

type dimension struct {
	name   string
	length int64
}

type attribute struct {
	name   string
	typ    int
	values []byte
}

type variable struct {
	name   string
	dims   []int64
	attrs  []attribute
	typ    int
	begin  int64
	record bool    // its first dimension is that of records
	shape  []int64 // of all, or of one record
	bytes  int64   // of that
}

// types are those of elements by number, with the bytes of one; a character is 2.
var types = []struct {
	dtype.Type
	size int64
}{
	1: {dtype.NewInt(8), 1}, 2: {char, 1}, 3: {dtype.NewInt(16), 2}, 4: {dtype.NewInt(32), 4},
	5: {dtype.NewFloat(32), 4}, 6: {dtype.NewFloat(64), 8},
	7: {dtype.NewUint(8), 1}, 8: {dtype.NewUint(16), 2}, 9: {dtype.NewUint(32), 4},
	10: {dtype.NewInt(64), 8}, 11: {dtype.NewUint(64), 8},
}

const typeChar = 2

var char, _ = dtype.NewFixedBytes(1) // of one byte it is always a type

// parser reads a header from the front to the back. After an error it returns zeros.
type parser struct {
	*formats.Window
	ctx     context.Context
	version byte
	width   int64 // bytes of a count, length or size
	at      int64
	err     error
}

func (p *parser) fail(format string, args ...any) {
	if p.err == nil {
		p.err = formats.Invalid("netcdf3: "+format, args...)
	}
}

func (p *parser) take(n int64) []byte {
	if p.err != nil {
		return nil
	}
	if n > p.Size()-p.at {
		p.fail("the file has %d bytes, and its header does not end there", p.Size())
		return nil
	}
	if n > maxHeader-p.at {
		p.err = formats.Unsupported("netcdf3: a header of more than %d bytes", maxHeader)
		return nil
	}
	b, err := p.Bytes(p.ctx, p.at, n)
	p.at, p.err = p.at+n, err
	return b
}

// uint reads an integer of some bytes.
func (p *parser) uint(bytes int64) int64 {
	n := uint64(0)
	for _, c := range p.take(bytes) {
		n = n<<8 | uint64(c)
	}
	if n > math.MaxInt64 {
		p.fail("the number %d at byte %d", n, p.at-bytes)
		return 0
	}
	return int64(n)
}

// number is a count, length or size.
func (p *parser) number() int64 {
	n := p.uint(p.width)
	if p.width == 4 && n > math.MaxInt32 {
		p.fail("the number %d at byte %d", n, p.at-4)
	}
	return n
}

// list returns the count of a list whose items have at least that many bytes.
func (p *parser) list(tag, item int64) int64 {
	got, n := p.uint(4), p.number()
	switch {
	case p.err != nil:
		return 0
	case got != tag && (got != 0 || n != 0):
		p.fail("the tag %d at byte %d, where a list of %d is", got, p.at, tag)
		return 0
	}
	return p.fits(n, item)
}

// fits returns a number of items, if the rest of the file can hold them.
func (p *parser) fits(n, item int64) int64 {
	if p.err == nil && n > (p.Size()-p.at)/item {
		p.fail("the file has %d bytes, too few for %d items at byte %d", p.Size(), n, p.at)
	}
	if p.err != nil {
		return 0
	}
	return n
}

// padded returns n bytes and skips what fills them to a multiple of four. The file may end
// before that.
func (p *parser) padded(n int64) []byte {
	b := p.take(n)
	if p.at += -n & 3; p.at > p.Size() {
		p.at = p.Size()
	}
	return b
}

func (p *parser) name() string {
	n := p.fits(p.number(), 1)
	if n > maxName {
		p.fail("a name of %d bytes at byte %d", n, p.at)
	}
	return string(p.padded(n))
}

func (p *parser) typ() int {
	n, most := p.uint(4), int64(6)
	if p.version == 5 {
		most = 11
	}
	if p.err == nil && (n < 1 || n > most) {
		p.fail("the type %d", n)
	}
	if p.err != nil {
		return 1
	}
	return int(n)
}

func (p *parser) attributes() []attribute {
	n := p.list(tagAttribute, 12)
	var list []attribute
	for i := int64(0); i < n && p.err == nil; i++ {
		a := attribute{name: p.name(), typ: p.typ()}
		size := types[a.typ].size
		a.values = p.padded(size * p.fits(p.number(), size))
		list = append(list, a)
	}
	return list
}

func (p *parser) variable() *variable {
	v := &variable{name: p.name()}
	n := p.fits(p.number(), 4)
	if n > maxRank {
		p.fail("variable %q has %d dimensions", v.name, n)
	}
	for i := int64(0); i < n && p.err == nil; i++ {
		v.dims = append(v.dims, p.number())
	}
	v.attrs = p.attributes()
	v.typ = p.typ()
	p.take(p.width) // the size, which is wrong for variables of 4 GiB in CDF-1 and 2
	if p.version == 1 {
		v.begin = p.uint(4)
	} else {
		v.begin = p.uint(8)
	}
	return v
}

// parse reads the header.
func parse(ctx context.Context, w *formats.Window) (*header, error) {
	front := w.Front()
	if len(front) < 4 || string(front[:3]) != "CDF" || front[3] != 1 && front[3] != 2 && front[3] != 5 {
		return nil, formats.Other("classic NetCDF")
	}
	p := &parser{Window: w, ctx: ctx, version: front[3], width: 4, at: 4}
	h := &header{stored: -1}
	if p.version == 5 {
		p.width = 8
	}
	if b := p.take(p.width); string(b) != strings.Repeat("\xff", len(b)) { // all ones: the writer did not know yet
		p.at = 4
		h.stored = p.number()
	}
	n := p.list(tagDimension, 8)
	for i := int64(0); i < n && p.err == nil; i++ {
		h.dims = append(h.dims, dimension{p.name(), p.number()})
	}
	h.attrs = p.attributes()
	n = p.list(tagVariable, 28)
	for i := int64(0); i < n && p.err == nil; i++ {
		h.vars = append(h.vars, p.variable())
	}
	h.end = p.at
	return h, p.err
}
