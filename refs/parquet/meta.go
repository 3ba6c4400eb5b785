package parquet

import (
	"context"
	"encoding/binary"

	"github.com/zarrdb/zarrdb/kv"
)

const magic = "PAR1"

// Physical types.
const (
	typeInt32     = 1
	typeInt64     = 2
	typeByteArray = 6
)

// Encodings.
const (
	encPlain           = 0
	encPlainDictionary = 2
	encRLE             = 3
	encDictionary      = 8
)

// Compression codecs.
const (
	codecNone   = 0
	codecSnappy = 1
	codecGzip   = 2
	codecZstd   = 6
	codecLZ4Raw = 7
)

// The columns that a partition may have.
const (
	colPath = iota
	colOffset
	colSize
	colRaw
	numCols
)

var colNames = [numCols]string{"path", "offset", "size", "raw"}

// field is a column of the schema.
type field struct {
	present  bool
	typ      int32
	optional bool
}

// chunk is the position of a column's values in one row group.
type chunk struct {
	codec  int32
	values int64
	start  int64 // of the first page
	size   int64 // of all pages, as declared; may be wrong
}

type rowGroup struct {
	rows int64
	cols [numCols]chunk
}

// meta is the footer of a file.
type meta struct {
	rows   int64
	fields [numCols]field
	groups []rowGroup
	end    int64 // of the pages: where the footer begins
}

// maxFooter bounds the footer. A partition has some hundred bytes per row group
// there.
const maxFooter = 16 << 20

// readMeta reads the footer. whole is the file, if it was read.
func readMeta(ctx context.Context, v kv.Value, whole []byte) (*meta, error) {
	size := v.Size()
	if size < 12 {
		return nil, corrupt("%d bytes are no parquet file", size)
	}
	tail, err := section(ctx, v, whole, size-8, 8)
	if err != nil {
		return nil, err
	}
	if string(tail[4:]) != magic {
		return nil, corrupt("no parquet file, or cut off: it does not end in %q", magic)
	}
	n := int64(binary.LittleEndian.Uint32(tail))
	switch {
	case n > size-12:
		return nil, corrupt("footer of %d bytes in a file of %d", n, size)
	case n > maxFooter:
		return nil, unsupported("footer of %d bytes", n)
	}
	foot, err := section(ctx, v, whole, size-8-n, n)
	if err != nil {
		return nil, err
	}
	m := &meta{end: size - 8 - n}
	d := decoder{b: foot}
	m.decode(&d)
	if d.err != nil {
		return nil, d.err
	}
	return m, m.check()
}

// section returns bytes of the file.
func section(ctx context.Context, v kv.Value, whole []byte, off, n int64) ([]byte, error) {
	if whole != nil {
		return whole[off : off+n], nil
	}
	return kv.ReadValue(ctx, v, kv.Span(off, n))
}

func (m *meta) decode(d *decoder) {
	d.structure(func(id int16, typ byte) bool {
		switch id {
		case 2:
			m.schema(d, typ)
		case 3:
			m.rows = d.i64(typ)
		case 4:
			d.structs(typ, func() { m.groups = append(m.groups, m.group(d)) })
		default:
			return false
		}
		return true
	})
}

// schema reads the flat list of a tree: the root, then columns and groups of
// columns, each with the number of its children.
func (m *meta) schema(d *decoder, typ byte) {
	inner := int64(0) // elements that belong to nested groups
	first := true
	d.structs(typ, func() {
		var f field
		var name string
		var children int32
		repetition := int32(0)
		d.structure(func(id int16, typ byte) bool {
			switch id {
			case 1:
				f.typ = d.i32(typ)
			case 3:
				repetition = d.i32(typ)
			case 4:
				if d.is(typ, tBinary) {
					name = string(d.bytes())
				}
			case 5:
				children = d.i32(typ)
			default:
				return false
			}
			return true
		})
		nested := inner > 0
		if nested {
			inner--
		}
		if first {
			first = false
			return
		}
		inner += int64(max(children, 0))
		if nested {
			return
		}
		for i, want := range colNames {
			if name != want {
				continue
			}
			if m.fields[i].present {
				d.fail(corrupt("two columns %q", name))
			}
			if children > 0 || repetition > 1 {
				d.fail(corrupt("column %q is not a flat one", name))
			}
			f.present, f.optional = true, repetition == 1
			m.fields[i] = f
		}
	})
}

func (m *meta) group(d *decoder) (g rowGroup) {
	d.structure(func(id int16, typ byte) bool {
		switch id {
		case 1:
			d.structs(typ, func() { g.column(d) })
		case 3:
			g.rows = d.i64(typ)
		default:
			return false
		}
		return true
	})
	return g
}

// column reads one column chunk, and keeps it if it is one of the four known columns.
func (g *rowGroup) column(d *decoder) {
	var c chunk
	var path string
	data, dict := int64(0), int64(0)
	d.structure(func(id int16, typ byte) bool {
		switch id {
		case 1:
			d.fail(unsupported("columns in other files"))
		case 3:
			if d.is(typ, tStruct) {
				d.structure(func(id int16, typ byte) bool {
					if id == 3 && typ == tList {
						n, elem := d.list()
						for i := range n {
							if !d.is(elem, tBinary) {
								return true
							}
							if name := d.bytes(); i == 0 && n == 1 {
								path = string(name)
							}
						}
						return true
					}
					dst := map[int16]*int64{5: &c.values, 7: &c.size, 9: &data, 11: &dict}[id]
					switch {
					case id == 4:
						c.codec = d.i32(typ)
					case dst != nil:
						*dst = d.i64(typ)
					default:
						return false
					}
					return true
				})
			}
		default:
			return false
		}
		return true
	})
	if c.start = data; dict > 0 && dict < data {
		c.start = dict
	}
	for i, name := range colNames {
		if path == name {
			g.cols[i] = c
		}
	}
}

// check checks the footer for contradictions.
func (m *meta) check() error {
	f := &m.fields
	switch {
	case !f[colPath].present && !f[colRaw].present:
		return corrupt("neither column %q nor %q", colNames[colPath], colNames[colRaw])
	case f[colPath].present && !f[colOffset].present:
		return corrupt("column %q is missing", colNames[colOffset])
	case f[colPath].present && !f[colSize].present:
		return corrupt("column %q is missing", colNames[colSize])
	}
	for _, i := range []int{colOffset, colSize} {
		if f[i].present && f[i].typ != typeInt64 && f[i].typ != typeInt32 {
			return corrupt("column %q has no integers (type %d)", colNames[i], f[i].typ)
		}
	}
	rows := int64(0)
	for _, g := range m.groups {
		if g.rows < 0 || g.rows > m.rows-rows {
			return corrupt("row groups have other than %d rows", m.rows)
		}
		rows += g.rows
		for i, c := range g.cols {
			if !f[i].present || g.rows == 0 {
				continue
			}
			if c.values != g.rows {
				return corrupt("column %q has %d values in %d rows", colNames[i], c.values, g.rows)
			}
			if c.start < int64(len(magic)) || c.start >= m.end {
				return corrupt("column %q begins at %d", colNames[i], c.start)
			}
			if !knownCodec(c.codec) {
				return unsupported("compression %d of column %q", c.codec, colNames[i])
			}
		}
	}
	if rows != m.rows {
		return corrupt("row groups have %d rows of %d", rows, m.rows)
	}
	return nil
}
